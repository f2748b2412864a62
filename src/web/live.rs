//! `GET /api/live?slot=NAME`: snapshots of a slot's screen by WebSocket, as it changes. Data from the client is not read, so
//! a viewer can't press a key.

use super::refusal::HttpRefusal;
use super::server::{Granted, WebState};
use super::socket::{self, SocketConnection, TicketSubject};
use crate::control::client::{CallError, Client, Notice};
use crate::control::requests::{EventsParams, Screen};
use crate::core::model::{Fault, RpcError, ScreenParams};
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use futures_util::StreamExt;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The minimum time between two snapshots.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveQuery {
    slot: String,
}

pub(super) async fn answer(
    State(shared): State<Arc<WebState>>,
    query: Result<Query<LiveQuery>, QueryRejection>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, HttpRefusal> {
    let (subject, granted) = socket::admitted(&shared, &headers).await?;
    let Query(query) = query.map_err(|error| RpcError::new(Fault::Usage, error.body_text()))?;
    let slot = match subject {
        TicketSubject::Screen(slot) if slot == query.slot => slot,
        TicketSubject::Screen(slot) => {
            return Err(socket::forbidden(format!("the ticket is for {slot}")));
        }
        TicketSubject::Events => return Err(socket::forbidden("the ticket is for the events")),
    };
    socket::upgraded(shared, upgrade, async move |shared, mut connection| {
        let ended = show(&shared, &mut connection, slot, &granted).await;
        (connection, ended)
    })
}

/// Sends a snapshot of the screen now and after each change, until the client is gone or its access is revoked.
async fn show(
    shared: &WebState,
    connection: &mut SocketConnection,
    slot: String,
    granted: &Granted,
) -> Result<(), RpcError> {
    let mut client = (shared.dial)().await?;
    let params = EventsParams {
        slots: vec![slot.clone()],
        data: true,
        after: None,
    };
    let events = (shared.dial)().await?.events(params).await;
    let mut events = std::pin::pin!(events.map_err(RpcError::from)?);
    // The first one is due now; the next ones after a change, when the pause is over.
    let mut due = Some(Instant::now());
    loop {
        tokio::select! {
            () = connection.gone() => return Ok(()),
            changed = events.next() => {
                changed_or_ended(changed)?;
                due = due.or(Some(Instant::now() + PAUSE));
            }
            () = async { tokio::time::sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {
                due = None;
                if !granted.holds(shared).await {
                    return Err(RpcError::new(Fault::Refused, "the device was revoked"));
                }
                let picture = picture(&mut client, &slot).await?;
                if !connection.send(picture).await {
                    return Ok(());
                }
            }
        }
    }
}

fn changed_or_ended(changed: Option<Result<Notice, CallError>>) -> Result<(), RpcError> {
    match changed {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(error.into()),
        None => Err(RpcError::new(
            Fault::Failed,
            "the daemon has ended the stream",
        )),
    }
}

async fn picture(client: &mut Client, slot: &str) -> Result<String, RpcError> {
    let params = ScreenParams {
        slot: slot.to_owned(),
        lines: None,
        ansi: true,
    };
    let screen = client
        .call::<Screen>(params)
        .await
        .map_err(RpcError::from)?;
    Ok(json!(screen).to_string())
}
