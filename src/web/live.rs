//! `GET /api/live?slot=NAME`: snapshots of a slot's screen by WebSocket, as it changes. A browser can't send a token
//! with it, so the client gets a ticket first (`POST /api/ticket`): it is valid once, for one slot and for half a
//! minute, and is sent as a subprotocol. Data from the client is ignored, so a viewer can't press a key.

use super::refusal::HttpRefusal;
use super::server::{Granted, WebState};
use crate::control::client::{Client, Notice};
use crate::control::requests::{EventsParams, Screen};
use crate::core::model::{Fault, RpcError, ScreenParams};
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Query, State};
use axum::response::Response;
use axum::{Extension, Json};
use futures_util::{Stream, StreamExt};
use http::header::{ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The supported subprotocol.
const PROTOCOL: &str = "missiond.v1";
/// The prefix of a ticket among the subprotocols.
const TICKET: &str = "ticket.";
/// The maximum bytes of a client's message; no messages are expected.
const MAX_MESSAGE: usize = 1 << 10;
/// The minimum time between two snapshots.
const PAUSE: Duration = Duration::from_millis(100);
/// A client that takes no snapshot for this long is dropped.
const SEND_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveQuery {
    slot: String,
}

#[derive(Serialize)]
pub(super) struct TicketAnswer {
    ticket: String,
    expires_s: u64,
}

/// `POST /api/ticket`: a ticket for the screen of one slot.
pub(super) async fn ticket(
    State(shared): State<Arc<WebState>>,
    Extension(granted): Extension<Granted>,
    body: super::api::Body,
) -> Result<Json<TicketAnswer>, HttpRefusal> {
    let params = serde_json::from_value(super::api::object(body)?);
    let LiveQuery { slot } = params.map_err(|error| RpcError::bad_params("ticket", &error))?;
    let ticket = shared.tickets().mint((slot, granted), Instant::now());
    let ticket = ticket.map_err(|error| {
        let text = format!("no ticket can be made: {error}");
        RpcError::new(Fault::Failed, text)
    })?;
    Ok(Json(TicketAnswer {
        ticket: ticket.text().to_owned(),
        expires_s: super::access::TICKET_LIFE.as_secs(),
    }))
}

pub(super) async fn answer(
    State(shared): State<Arc<WebState>>,
    query: Result<Query<LiveQuery>, QueryRejection>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, HttpRefusal> {
    let granted = admitted(&shared, query, &headers).await?;
    let upgrade = upgrade.map_err(|error| RpcError::new(Fault::Usage, error.body_text()))?;
    let Ok(place) = shared.streams.clone().try_acquire_owned() else {
        return Err(HttpRefusal::full("listeners"));
    };
    let upgrade = upgrade.max_message_size(MAX_MESSAGE).protocols([PROTOCOL]);
    Ok(upgrade.on_upgrade(async move |mut socket| {
        let (slot, granted) = granted;
        let ended = show(&shared, &mut socket, slot, &granted).await;
        let reason = ended.err().map_or_else(String::new, |error| error.message);
        let close = CloseFrame {
            code: close_code::NORMAL,
            // A reason has 123 bytes at most.
            reason: crate::core::text::excerpt::head(&reason, 120).into(),
        };
        // The client may be gone.
        let _ = socket.send(Message::Close(Some(close))).await;
        drop(place);
    }))
}

/// Redeems the ticket, for its slot and its grant. A page of another origin is refused, and so is a client without an
/// origin: only browsers need this endpoint, and they always send one.
async fn admitted(
    shared: &WebState,
    query: Result<Query<LiveQuery>, QueryRejection>,
    headers: &HeaderMap,
) -> Result<(String, Granted), HttpRefusal> {
    if !headers.contains_key(ORIGIN) {
        let text = "a WebSocket needs an origin; a program uses /api/screen and /api/events";
        return Err(HttpRefusal::new(
            StatusCode::FORBIDDEN,
            Fault::Refused,
            text,
        ));
    }
    let protocols = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let protocols = protocols.filter_map(|value| value.to_str().ok());
    let mut protocols = protocols.flat_map(|value| value.split(','));
    let ticket = protocols.find_map(|one| one.trim().strip_prefix(TICKET));
    let redeemed = ticket.and_then(|ticket| shared.tickets().redeem(ticket, Instant::now()));
    let Some((slot, granted)) = redeemed else {
        shared.refuse_secret().await;
        let text = "a ticket is needed; each is valid once, for half a minute";
        let refusal = HttpRefusal::new(StatusCode::UNAUTHORIZED, Fault::Refused, text);
        return Err(refusal.next("get one with POST /api/ticket"));
    };
    let Query(query) = query.map_err(|error| RpcError::new(Fault::Usage, error.body_text()))?;
    if query.slot != slot {
        let text = format!("the ticket is for {slot}");
        return Err(HttpRefusal::new(
            StatusCode::FORBIDDEN,
            Fault::Refused,
            text,
        ));
    }
    Ok((slot, granted))
}

/// Sends a snapshot of the screen now and after each change, until the client is gone or its access is revoked.
async fn show(
    shared: &WebState,
    socket: &mut WebSocket,
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
    loop {
        if !granted.holds(shared).await {
            return Err(RpcError::new(Fault::Refused, "the device was revoked"));
        }
        let picture = picture(&mut client, &slot).await?;
        let sent = tokio::time::timeout(SEND_LIMIT, socket.send(Message::text(picture))).await;
        if !matches!(sent, Ok(Ok(()))) {
            return Ok(());
        }
        tokio::select! {
            changed = change(&mut events) => changed?,
            // Only the end of the connection counts: other data is not read.
            () = gone(socket) => return Ok(()),
        }
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

/// Waits for a change, and collects more of them until the pause is over.
async fn change(
    events: &mut (impl Stream<Item = Result<Notice, crate::control::client::CallError>> + Unpin),
) -> Result<(), RpcError> {
    let ended = || RpcError::new(Fault::Failed, "the daemon has ended the stream");
    events.next().await.ok_or_else(ended)??;
    let until = tokio::time::Instant::now() + PAUSE;
    while let Ok(more) = tokio::time::timeout_at(until, events.next()).await {
        more.ok_or_else(ended)??;
    }
    Ok(())
}

/// Returns when the client has ended the connection, or has sent anything: a viewer sends nothing.
async fn gone(socket: &mut WebSocket) {
    loop {
        match socket.recv().await {
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            _ => return,
        }
    }
}
