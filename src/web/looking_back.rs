//! Looking back, for the page: `POST /api/timeline` says what slots did, `POST /api/past` what stood on a slot's screen at a moment
//! and what happened around it. Both read files of the log directory in this process, one request at a time: the daemon does
//! nothing for it.

use super::api::{Body, object};
use super::refusal::HttpRefusal;
use super::server::WebState;
use crate::control::requests::Ping;
use crate::core::model::{Event, EventKind, Fault, Nothing, RpcError};
use crate::core::settings;
use crate::lookback::{self, AROUND, PastScreen, PastSlot};
use crate::os::blocking;
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default of `since_s`: a working day.
const SINCE_S: i64 = 8 * 60 * 60;
/// The longest time that is looked back at: a month.
const MOST_S: i64 = 31 * 24 * 60 * 60;
/// The events of a moment that are sent at most, those nearest to it.
const MOST_EVENTS: usize = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimelineParams {
    /// From so many seconds ago on.
    #[serde(default = "since_s")]
    since_s: i64,
    /// Names of slots; empty means all that ran in that time.
    #[serde(default)]
    slots: Vec<String>,
}

fn since_s() -> i64 {
    SINCE_S
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PastParams {
    slot: String,
    at: DateTime<Utc>,
}

/// A moment of a slot.
#[derive(Debug, Serialize)]
pub(super) struct PastAnswer {
    slot: String,
    at: DateTime<Utc>,
    /// `null` if no recording of that time is kept.
    screen: Option<PastScreen>,
    /// What happened within five minutes, the oldest first.
    events: Vec<Event>,
}

pub(super) async fn timeline(
    State(shared): State<Arc<WebState>>,
    body: Body,
) -> Result<Json<Value>, HttpRefusal> {
    let params = serde_json::from_value(object(body)?);
    let params: TimelineParams =
        params.map_err(|error| RpcError::bad_params("timeline", &error))?;
    if !(1..=MOST_S).contains(&params.since_s) {
        return Err(usage("`since_s` is from 1 second to 31 days").into());
    }
    params.slots.iter().try_for_each(|slot| named(slot))?;
    look_back(&shared, move |logs| {
        let until = Utc::now();
        let since = until - TimeDelta::seconds(params.since_s);
        let report = lookback::report(logs, &params.slots, since, until);
        let report = report.map_err(|unread| RpcError::new(Fault::Failed, unread.to_string()))?;
        serde_json::to_value(report)
            .map_err(|error| RpcError::new(Fault::Failed, error.to_string()))
    })
    .await
    .map(Json)
}

pub(super) async fn past(
    State(shared): State<Arc<WebState>>,
    body: Body,
) -> Result<Json<PastAnswer>, HttpRefusal> {
    let params = serde_json::from_value(object(body)?);
    let PastParams { slot, at } = params.map_err(|error| RpcError::bad_params("past", &error))?;
    named(&slot)?;
    look_back(&shared, move |logs| moment(logs, slot, at))
        .await
        .map(Json)
}

fn moment(logs: &Path, slot: String, at: DateTime<Utc>) -> Result<PastAnswer, RpcError> {
    let unread = |error: &dyn std::fmt::Display| {
        let text = format!("the past of {slot} can't be read: {error}");
        RpcError::new(Fault::Failed, text)
    };
    let told = PastSlot::read(logs, &slot, at).map_err(|error| unread(&error))?;
    // Without a recording of that time there is no screen, and the events are told all the same.
    let screen = match lookback::opened_before(logs, &slot, at) {
        Ok(recording) => {
            let screens = lookback::screens_at(recording, &told.states, &[at]);
            let mut screens = screens.map_err(|error| unread(&error))?;
            screens.pop().flatten()
        }
        Err(_) => None,
    };
    let is_shown = |event: &Event| {
        let of_that_time = (event.time - at).abs() <= AROUND;
        of_that_time && !matches!(event.what, EventKind::Cost { .. } | EventKind::Data { .. })
    };
    let mut events: Vec<Event> = told.around.into_iter().filter(is_shown).collect();
    let later = events.iter().position(|event| event.time > at);
    let first = later
        .unwrap_or(events.len())
        .saturating_sub(MOST_EVENTS / 2);
    events.drain(..first);
    events.truncate(MOST_EVENTS);
    Ok(PastAnswer {
        slot,
        at,
        screen,
        events,
    })
}

/// Runs this with the log directory, on a thread of its own. One at a time: each may take 60 MB.
async fn look_back<T: Send + 'static>(
    shared: &WebState,
    look: impl FnOnce(&Path) -> Result<T, RpcError> + Send + 'static,
) -> Result<T, HttpRefusal> {
    let pong = (shared.dial)().await?.call::<Ping>(Nothing {}).await;
    let logs: PathBuf = pong.map_err(RpcError::from)?.logs;
    let turn = shared.looking_back.clone().acquire_owned().await;
    let turn = turn.map_err(|_| RpcError::new(Fault::Failed, "the server ends"))?;
    let looked = blocking::run(move || {
        let _turn = turn;
        look(&logs)
    })
    .await;
    let looked = looked.map_err(|error| RpcError::new(Fault::Failed, error.to_string()))?;
    Ok(looked?)
}

/// The name becomes part of a path.
fn named(slot: &str) -> Result<(), RpcError> {
    match settings::is_name(slot) {
        true => Ok(()),
        false => Err(usage(
            "a slot is named by lower-case letters, digits, - and _",
        )),
    }
}

fn usage(text: &str) -> RpcError {
    RpcError::new(Fault::Usage, text)
}
