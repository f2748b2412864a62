//! `GET /api/events`: events as server-sent events. The id of an event is its position; a client that was cut off
//! continues with `?after=POSITION`, or the header `Last-Event-ID`. A page may have them by WebSocket too.

use super::guard::Denied;
use super::refusal::HttpRefusal;
use super::server::{Granted, WebState, authorized};
use super::socket::{self, SocketConnection, TicketSubject};
use crate::control::client::{CallError, Notice};
use crate::control::requests::EventsParams;
use crate::core::model::envelope::{EVENT, LAGGED, LIVE};
use crate::core::model::{Fault, RpcError};
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Query, State};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use http::HeaderMap;
use http::header::UPGRADE;
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

/// Server-sent events for a request with a token, and a WebSocket for one with a ticket.
pub(super) async fn answer(
    State(shared): State<Arc<WebState>>,
    headers: HeaderMap,
    query: Result<Query<EventsQuery>, QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, HttpRefusal> {
    if headers.contains_key(UPGRADE) {
        return by_websocket(shared, headers, query, upgrade).await;
    }
    let granted = authorized(&shared, &headers).await?;
    let params = wanted(&headers, query)?;
    Ok(stream(shared, granted, params).await?.into_response())
}

/// Events are read by GET. Like everywhere, who has no token learns nothing else.
pub(super) async fn not_posted(
    State(shared): State<Arc<WebState>>,
    headers: HeaderMap,
) -> HttpRefusal {
    match authorized(&shared, &headers).await {
        Ok(_) => Denied::Method.into(),
        Err(refusal) => refusal,
    }
}

fn wanted(
    headers: &HeaderMap,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<EventsParams, RpcError> {
    let Query(query) = query.map_err(|error| RpcError::new(Fault::Usage, error.body_text()))?;
    let last = headers.get("last-event-id");
    let last = last.and_then(|id| id.to_str().ok()?.parse().ok());
    let names = query.slots.split(',').filter(|name| !name.is_empty());
    Ok(EventsParams {
        slots: names.map(str::to_owned).collect(),
        data: query.data,
        after: last.or(query.after),
    })
}

async fn stream(
    shared: Arc<WebState>,
    granted: Granted,
    params: EventsParams,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, HttpRefusal> {
    let Ok(place) = shared.streams.clone().try_acquire_owned() else {
        return Err(HttpRefusal::full("listeners of events"));
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
        let StreamedNotice { kind, id, data } = StreamedNotice::of(notice);
        let event = sse::Event::default().event(kind).data(data);
        Ok(match id {
            Some(id) => event.id(id.to_string()),
            None => event,
        })
    });
    // A client that hears nothing for longer than this knows that the connection is dead.
    let alive = KeepAlive::new().interval(socket::PING);
    Ok(Sse::new(told).keep_alive(alive))
}

/// The same by WebSocket: each message is `{"event", "id", "data"}`, as the fields of a server-sent event. A browser does not
/// show pings to a page, so `alive` is sent as often as a comment among server-sent events.
async fn by_websocket(
    shared: Arc<WebState>,
    headers: HeaderMap,
    query: Result<Query<EventsQuery>, QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, HttpRefusal> {
    let (subject, granted) = socket::admitted(&shared, &headers).await?;
    if let TicketSubject::Screen(slot) = subject {
        let text = format!("the ticket is for the screen of {slot}");
        return Err(socket::forbidden(text));
    }
    let params = wanted(&headers, query)?;
    socket::upgraded(shared, upgrade, async move |shared, mut connection| {
        let ended = pass_on(&shared, &mut connection, params, &granted).await;
        (connection, ended)
    })
}

async fn pass_on(
    shared: &WebState,
    connection: &mut SocketConnection,
    params: EventsParams,
    granted: &Granted,
) -> Result<(), RpcError> {
    let notices = (shared.dial)().await?.events(params).await;
    let mut notices = std::pin::pin!(notices.map_err(RpcError::from)?);
    let mut alive = tokio::time::interval(socket::PING);
    loop {
        let text = tokio::select! {
            biased;
            () = connection.gone() => return Ok(()),
            _ = alive.tick() => json!({ "event": "alive" }).to_string(),
            notice = notices.next() => match notice {
                Some(notice) => StreamedNotice::of(notice).as_message(),
                None => return Ok(()),
            },
        };
        if !granted.holds(shared).await {
            return Err(RpcError::new(Fault::Refused, "the device was revoked"));
        }
        if !connection.send(text).await {
            return Ok(());
        }
    }
}

/// What is streamed, whatever the form: the fields of a server-sent event.
struct StreamedNotice {
    kind: &'static str,
    /// The position of an event.
    id: Option<u64>,
    /// JSON in one line.
    data: String,
}

impl StreamedNotice {
    fn of(notice: Result<Notice, CallError>) -> StreamedNotice {
        let (kind, id, data) = match notice {
            Ok(Notice::Event(event)) => (EVENT, Some(event.seq), json!(event)),
            Ok(Notice::Unknown(event)) => (EVENT, None, event),
            Ok(Notice::Live { position }) => (LIVE, None, json!({ "position": position })),
            Ok(Notice::Lagged { missed }) => (LAGGED, None, json!({ "missed": missed })),
            // The daemon is gone, or has dropped this listener. The client connects again.
            Err(error) => ("lost", None, json!({ "error": RpcError::from(error) })),
        };
        let data = data.to_string();
        StreamedNotice { kind, id, data }
    }

    fn as_message(&self) -> String {
        let id = self.id.map_or("null".to_owned(), |id| id.to_string());
        format!(
            r#"{{"event":"{}","id":{id},"data":{}}}"#,
            self.kind, self.data
        )
    }
}
