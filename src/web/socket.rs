//! WebSockets of the page. A browser can't send a token with one, so the client gets a ticket first (`POST /api/ticket`): it is
//! valid once, for one thing and for half a minute, and is sent as a subprotocol. Data from the client is never read: it ends the
//! connection. The server sends a ping every 15 s, and ends a connection whose client answers none for 45 s.

use super::refusal::HttpRefusal;
use super::server::{Granted, WebState};
use crate::core::model::{Fault, RpcError};
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use axum::{Extension, Json};
use http::header::{ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::Interval;

/// The supported subprotocol.
const PROTOCOL: &str = "missiond.v1";
/// The prefix of a ticket among the subprotocols.
const TICKET: &str = "ticket.";
/// The maximum bytes of a client's message; no messages are expected.
const MAX_MESSAGE: usize = 1 << 10;
/// A client that takes no message for this long is dropped.
const SEND_LIMIT: Duration = Duration::from_secs(10);
/// The time between two pings.
pub const PING: Duration = Duration::from_secs(15);
/// A client that has not answered a ping for this long is gone: three pings.
const SILENCE: Duration = Duration::from_secs(45);

/// What a ticket is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TicketSubject {
    /// The screen of this slot.
    Screen(String),
    Events,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TicketParams {
    /// The slot whose screen is wanted.
    slot: Option<String>,
    /// The events are wanted.
    #[serde(default)]
    events: bool,
}

#[derive(Serialize)]
pub(super) struct TicketAnswer {
    ticket: String,
    expires_s: u64,
}

/// `POST /api/ticket`: a ticket for the screen of one slot, or for the events.
pub(super) async fn ticket(
    State(shared): State<Arc<WebState>>,
    Extension(granted): Extension<Granted>,
    body: super::api::Body,
) -> Result<Json<TicketAnswer>, HttpRefusal> {
    let params = serde_json::from_value(super::api::object(body)?);
    let params: TicketParams = params.map_err(|error| RpcError::bad_params("ticket", &error))?;
    let subject = match (params.slot, params.events) {
        (Some(slot), false) => TicketSubject::Screen(slot),
        (None, true) => TicketSubject::Events,
        _ => {
            let text = "a ticket is for a `slot` or, with `events`: true, for the events";
            return Err(RpcError::new(Fault::Usage, text).into());
        }
    };
    let ticket = shared.tickets().mint((subject, granted), Instant::now());
    let ticket = ticket.map_err(|error| {
        let text = format!("no ticket can be made: {error}");
        RpcError::new(Fault::Failed, text)
    })?;
    Ok(Json(TicketAnswer {
        ticket: ticket.text().to_owned(),
        expires_s: super::access::TICKET_LIFE.as_secs(),
    }))
}

/// Redeems the ticket, for what it is for and its grant. A page of another origin is refused, and so is a client without
/// an origin: only browsers need a WebSocket, and they always send one.
pub(super) async fn admitted(
    shared: &WebState,
    headers: &HeaderMap,
) -> Result<(TicketSubject, Granted), HttpRefusal> {
    if !headers.contains_key(ORIGIN) {
        let text = "a WebSocket needs an origin; a program uses /api/screen and /api/events";
        return Err(forbidden(text));
    }
    let protocols = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let protocols = protocols.filter_map(|value| value.to_str().ok());
    let mut protocols = protocols.flat_map(|value| value.split(','));
    let ticket = protocols.find_map(|one| one.trim().strip_prefix(TICKET));
    let redeemed = ticket.and_then(|ticket| shared.tickets().redeem(ticket, Instant::now()));
    let Some(redeemed) = redeemed else {
        shared.refuse_secret().await;
        let text = "a ticket is needed; each is valid once, for half a minute";
        let refusal = HttpRefusal::new(StatusCode::UNAUTHORIZED, Fault::Refused, text);
        return Err(refusal.next("get one with POST /api/ticket"));
    };
    Ok(redeemed)
}

pub(super) fn forbidden(text: impl Into<String>) -> HttpRefusal {
    HttpRefusal::new(StatusCode::FORBIDDEN, Fault::Refused, text)
}

/// Answers with a WebSocket, which takes a place among the streams. Its end has the reason of `serve`.
pub(super) fn upgraded<F>(
    shared: Arc<WebState>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    serve: impl FnOnce(Arc<WebState>, SocketConnection) -> F + Send + 'static,
) -> Result<Response, HttpRefusal>
where
    F: Future<Output = (SocketConnection, Result<(), RpcError>)> + Send + 'static,
{
    let upgrade = upgrade.map_err(|error| RpcError::new(Fault::Usage, error.body_text()))?;
    let Ok(place) = shared.streams.clone().try_acquire_owned() else {
        return Err(HttpRefusal::full("listeners"));
    };
    let upgrade = upgrade.max_message_size(MAX_MESSAGE).protocols([PROTOCOL]);
    Ok(upgrade.on_upgrade(async move |socket| {
        let (mut connection, ended) = serve(shared, SocketConnection::new(socket)).await;
        let reason = ended.err().map_or_else(String::new, |error| error.message);
        let close = CloseFrame {
            code: close_code::NORMAL,
            // A reason has 123 bytes at most.
            reason: crate::core::text::excerpt::head(&reason, 120).into(),
        };
        // The client may be gone.
        let _ = connection.socket.send(Message::Close(Some(close))).await;
        drop(place);
    }))
}

/// A WebSocket on which only the server talks.
pub(super) struct SocketConnection {
    socket: WebSocket,
    pings: Interval,
    /// When its client was heard last.
    heard: Instant,
}

impl SocketConnection {
    fn new(socket: WebSocket) -> SocketConnection {
        SocketConnection {
            socket,
            pings: tokio::time::interval(PING),
            heard: Instant::now(),
        }
    }

    /// Sends a text; tells whether the client has taken it.
    pub async fn send(&mut self, text: String) -> bool {
        self.send_message(Message::text(text)).await
    }

    async fn send_message(&mut self, message: Message) -> bool {
        let sent = tokio::time::timeout(SEND_LIMIT, self.socket.send(message)).await;
        matches!(sent, Ok(Ok(())))
    }

    /// Sends pings, and returns when the client has ended the connection, has gone silent or has sent anything but the
    /// answer to a ping. May be dropped and called again.
    pub async fn gone(&mut self) {
        loop {
            tokio::select! {
                message = self.socket.recv() => match message {
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => self.heard = Instant::now(),
                    _ => return,
                },
                _ = self.pings.tick() => {
                    let is_silent = self.heard.elapsed() > SILENCE;
                    if is_silent || !self.send_message(Message::Ping(Vec::new().into())).await {
                        return;
                    }
                }
            }
        }
    }
}
