//! `GET /api/events`: events as server-sent events. The id of an event is its position; a client that was cut off
//! continues with
//! `?after=POSITION`, or the header `Last-Event-ID`.

use super::refusal::HttpRefusal;
use super::server::{Granted, WebState};
use crate::control::client::Notice;
use crate::control::requests::EventsParams;
use crate::core::model::envelope::{EVENT, LAGGED, LIVE};
use crate::core::model::{Fault, RpcError};
use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::sse::{self, KeepAlive, Sse};
use futures_util::{Stream, StreamExt};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// Names of slots, separated by commas; empty means all.
    #[serde(default)]
    slots: String,
    /// Also send the output of their programs.
    #[serde(default)]
    data: bool,
    after: Option<u64>,
}

pub(super) async fn stream(
    State(shared): State<Arc<WebState>>,
    Extension(granted): Extension<Granted>,
    headers: HeaderMap,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, HttpRefusal> {
    let Query(query) = query.map_err(|error| RpcError::new(Fault::Usage, error.body_text()))?;
    let Ok(place) = shared.streams.clone().try_acquire_owned() else {
        return Err(HttpRefusal::full("listeners of events"));
    };
    let last = headers.get("last-event-id");
    let last = last.and_then(|id| id.to_str().ok()?.parse().ok());
    let names = query.slots.split(',').filter(|name| !name.is_empty());
    let params = EventsParams {
        slots: names.map(str::to_owned).collect(),
        data: query.data,
        after: last.or(query.after),
    };
    let client = (shared.dial)().await?;
    let notices = client.events(params).await.map_err(RpcError::from)?;
    // The stream of a revoked device ends.
    let notices = notices.take_while(move |_| {
        let (shared, granted) = (shared.clone(), granted.clone());
        async move { granted.holds(&shared).await }
    });
    let told = notices.map(move |notice| {
        // The place is freed when the stream has ended.
        let _ = &place;
        Ok(match notice {
            Ok(notice) => told(notice),
            Err(error) => last_one(&RpcError::from(error)),
        })
    });
    Ok(Sse::new(told).keep_alive(KeepAlive::default()))
}

fn told(notice: Notice) -> sse::Event {
    match notice {
        Notice::Event(event) => {
            let id = event.seq.to_string();
            let data = serde_json::to_string(&event).unwrap_or_default();
            sse::Event::default().event(EVENT).id(id).data(data)
        }
        Notice::Unknown(event) => sse::Event::default().event(EVENT).data(event.to_string()),
        Notice::Live { position } => {
            let data = json!({ "position": position }).to_string();
            sse::Event::default().event(LIVE).data(data)
        }
        Notice::Lagged { missed } => {
            let data = json!({ "missed": missed }).to_string();
            sse::Event::default().event(LAGGED).data(data)
        }
    }
}

/// The last event of a stream: the daemon is gone, or has dropped this listener. The client connects again.
fn last_one(error: &RpcError) -> sse::Event {
    let data = json!({ "error": error }).to_string();
    sse::Event::default().event("lost").data(data)
}
