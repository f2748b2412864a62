//! The HTTP server: connections and their bounds, and the checks that each request passes before it is answered.

use super::access::{Access, Tickets, WebSecret};
use super::devices::{DeviceGrant, Devices};
use super::guard::{Denied, Hosts};
use super::refusal::HttpRefusal;
use super::socket::{self, TicketSubject};
use super::{api, assets, events, live, looking_back, metrics, openapi};
use crate::control::client::Dial;
use crate::control::requests::{WhereFrom, WhereFromParams};
use crate::control::scope::Scope;
use crate::core::model::{Fault, RpcError};
use crate::os::blocking;
use crate::os::tcp_peer::TcpPeer;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::header::{AUTHORIZATION, CONNECTION, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OnceCell, Semaphore};

/// The maximum of connections of people. A browser opens six for each tab.
const MAX_CONNECTIONS: usize = 128;
/// The maximum of connections whose origin is being looked up. They have no place yet, so connections from a slot take
/// no place of a person's.
const MAX_LOOKUPS: usize = 4;
/// The maximum of refused connections that may still read the reason.
const MAX_REFUSED: usize = 8;
/// The shortest time between two refusals in the audit.
const ALARM_PAUSE: Duration = Duration::from_secs(10);
/// The maximum of event streams.
const MAX_STREAMS: usize = 32;
/// How long a client has to send the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// The maximum bytes of a head.
const MAX_HEAD: usize = 64 << 10;
/// The maximum bytes of a body.
const MAX_BODY: usize = 64 << 10;

/// The address of the server, its proxies and its devices.
#[derive(Debug, Clone)]
pub struct WebOptions {
    /// An address on loopback.
    pub listen: SocketAddr,
    /// Names of proxies in front of this server.
    pub hosts: Vec<String>,
    pub devices: Devices,
}

/// State that all requests share.
pub(super) struct WebState {
    pub dial: Dial,
    pub streams: Arc<Semaphore>,
    /// One at a time looks back.
    pub looking_back: Arc<Semaphore>,
    pub devices: Devices,
    hosts: Hosts,
    access: Mutex<Access>,
    /// Tickets, each for a WebSocket.
    tickets: Mutex<Tickets<(TicketSubject, Granted)>>,
    /// The time of the last refusal in the audit.
    alarm: Mutex<Option<Instant>>,
}

impl WebState {
    /// Tells whether a refusal may be written to the audit: many connections from a slot must not fill it.
    fn may_alarm(&self) -> bool {
        let last = *self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_none_or(|last| last.elapsed() >= ALARM_PAUSE)
    }

    fn alarmed(&self) {
        if self.may_alarm() {
            let now = Some(Instant::now());
            *self.alarm.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
    }

    pub fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn tickets(&self) -> MutexGuard<'_, Tickets<(TicketSubject, Granted)>> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a wrong code or token. After too many of them the answer is delayed.
    pub async fn refuse_secret(&self) -> HttpRefusal {
        let penalty = self.access().strike(Instant::now());
        if let Some(penalty) = penalty {
            tokio::time::sleep(penalty).await;
        }
        HttpRefusal::no_token()
    }
}

/// A listening server.
pub struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<WebState>,
}

impl WebServer {
    pub async fn bind(dial: Dial, options: WebOptions) -> io::Result<WebServer> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let shared = WebState {
            dial,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            looking_back: Arc::new(Semaphore::new(1)),
            devices: options.devices,
            hosts: Hosts::new(address, &options.hosts),
            access: Mutex::default(),
            tickets: Mutex::default(),
            alarm: Mutex::default(),
        };
        Ok(WebServer {
            listener,
            address,
            shared: Arc::new(shared),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new code of this scope, for one token.
    pub fn code(&self, scope: Scope) -> io::Result<WebSecret> {
        self.shared.access().mint(scope, Instant::now())
    }

    /// Serves until the process ends.
    pub async fn serve(self) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let refused = Arc::new(Semaphore::new(MAX_REFUSED));
        let lookups = Arc::new(Semaphore::new(MAX_LOOKUPS));
        loop {
            let Ok(lookup) = lookups.clone().acquire_owned().await else {
                return;
            };
            let (stream, theirs) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!("a connection can't be accepted: {error}");
                    // Descriptors are used up: other connections have to end first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (shared, places, refused) = (self.shared.clone(), places.clone(), refused.clone());
            tokio::spawn(async move {
                let caller = Arc::new(Caller::new(&stream, theirs));
                let places = match caller.check(&shared).await {
                    Ok(()) => places,
                    Err(_) => refused,
                };
                drop(lookup);
                // Without a place the connection closes; the client can try again later.
                let Ok(_place) = places.try_acquire_owned() else {
                    return;
                };
                serve_connection(stream, router(shared).layer(Extension(caller))).await;
            });
        }
    }
}

async fn serve_connection(stream: TcpStream, router: Router) {
    // Errors of a single connection do not matter here.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        // `admit` answers a head that is somewhat too long, with the reason; a longer one is refused without.
        .max_buf_size(2 * MAX_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        // For the upgrade to a WebSocket.
        .with_upgrades()
        .await;
}

fn router(shared: Arc<WebState>) -> Router {
    let guarded = Router::new()
        .route("/api/openapi.json", get(openapi::answer))
        .route("/api/ticket", post(socket::ticket))
        .route("/api/timeline", post(looking_back::timeline))
        .route("/api/past", post(looking_back::past))
        .route("/api/{request}", post(api::answer))
        .route("/metrics", get(metrics::answer))
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(shared.clone(), authorize));
    Router::new()
        .route("/api/session", post(api::session))
        .route("/api/live", get(live::answer))
        // By its token or, for a WebSocket, by its ticket.
        .route("/api/events", get(events::answer).post(events::not_posted))
        .method_not_allowed_fallback(wrong_method)
        .merge(guarded)
        .fallback(assets::answer)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(shared.clone(), admit))
        .layer(middleware::map_response(with_headers))
        .with_state(shared)
}

/// The first two checks: the headers of the request, and the kernel's record of its sender.
async fn admit(
    State(shared): State<Arc<WebState>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
    next: Next,
) -> Result<Response, HttpRefusal> {
    let (parts, body) = request.into_parts();
    let head = parts.headers.iter();
    let head = head.map(|(name, value)| name.as_str().len() + value.len());
    if head.sum::<usize>() + parts.uri.to_string().len() > MAX_HEAD {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let text = "the head of the request has more than 64 KiB";
        return Err(HttpRefusal::new(status, Fault::Usage, text));
    }
    // A body has a length: what a proxy and this server might read as two requests is read as none.
    if parts.headers.contains_key(TRANSFER_ENCODING) {
        let text = "a body needs a Content-Length, and no Transfer-Encoding";
        let refusal = HttpRefusal::new(StatusCode::BAD_REQUEST, Fault::Usage, text);
        return Ok(([(CONNECTION, "close")], refusal).into_response());
    }
    if let Err(denied) = shared.hosts.check(&parts) {
        tracing::info!(why = denied.name(), "a request was refused");
        return Err(denied.into());
    }
    caller.check(&shared).await?;
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// Refuses a known path with another method.
async fn wrong_method() -> HttpRefusal {
    Denied::Method.into()
}

/// The scope of a request's token, and its device.
#[derive(Clone)]
pub(super) struct Granted {
    pub scope: Scope,
    pub device: Option<PairedDevice>,
}

/// The device that a request comes from.
#[derive(Clone)]
pub(super) struct PairedDevice {
    pub name: String,
    token: Arc<str>,
}

impl Granted {
    /// Tells whether its device, if it has one, was not revoked since.
    pub async fn holds(&self, shared: &WebState) -> bool {
        match &self.device {
            Some(device) => {
                matches!(granted_to_device(shared, &device.token).await, Ok(Some(_)))
            }
            None => true,
        }
    }
}

/// The grant of a token; `None` if the token is wrong.
async fn granted(shared: &WebState, token: &str) -> Result<Option<Granted>, HttpRefusal> {
    let scope = shared.access().scope(token, Instant::now());
    if let Some(scope) = scope {
        let device = None;
        return Ok(Some(Granted { scope, device }));
    }
    granted_to_device(shared, token).await
}

async fn granted_to_device(shared: &WebState, token: &str) -> Result<Option<Granted>, HttpRefusal> {
    let (devices, token) = (shared.devices.clone(), Arc::<str>::from(token));
    let wanted = token.clone();
    let found = blocking::run(move || devices.grant(&wanted, chrono::Utc::now())).await;
    let found = found.and_then(|found| found).map_err(|error| {
        let text = format!("the devices can't be looked up: {error}");
        HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, Fault::Failed, text)
    })?;
    Ok(found.map(|DeviceGrant { name, scope }| Granted {
        scope,
        device: Some(PairedDevice { name, token }),
    }))
}

/// The third check: the token. Its grant is attached to the request.
async fn authorize(
    State(shared): State<Arc<WebState>>,
    mut request: Request,
    next: Next,
) -> Result<Response, HttpRefusal> {
    let granted = authorized(&shared, request.headers()).await?;
    request.extensions_mut().insert(granted);
    Ok(next.run(request).await)
}

/// The grant of the request's token.
pub(super) async fn authorized(
    shared: &WebState,
    headers: &HeaderMap,
) -> Result<Granted, HttpRefusal> {
    let token = bearer(headers).ok_or_else(HttpRefusal::no_token)?;
    match granted(shared, token).await? {
        Some(granted) => Ok(granted),
        None => Err(shared.refuse_secret().await),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token)
        }
        _ => None,
    }
}

/// Adds headers, so that an answer is not cached, framed, sniffed or sent as a referrer.
async fn with_headers(mut response: Response<Body>) -> Response<Body> {
    let headers = [
        ("cache-control", "no-store"),
        (
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        ),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("missiond-version", env!("CARGO_PKG_VERSION")),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ];
    for (name, value) in headers {
        // The page has its own content security policy.
        let entry = response.headers_mut().entry(HeaderName::from_static(name));
        entry.or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The origin of a connection, as it was when it connected.
pub(super) struct Caller {
    ours: io::Result<SocketAddr>,
    theirs: SocketAddr,
    /// Why it is refused; `None` for a person.
    refused: OnceCell<Option<String>>,
}

impl Caller {
    fn new(stream: &TcpStream, theirs: SocketAddr) -> Caller {
        Caller {
            ours: stream.local_addr(),
            theirs,
            refused: OnceCell::new(),
        }
    }

    /// Refuses other users and programs inside slots. If the daemon does not answer, the origin is unknown: then the
    /// next request checks again.
    async fn check(&self, shared: &WebState) -> Result<(), HttpRefusal> {
        let look = || self.look(shared);
        refusal(self.refused.get_or_try_init(look).await?.as_deref())
    }

    /// Like [`Caller::check`], with a new lookup before an action: the connection may have been passed to another
    /// process.
    pub(super) async fn check_again(&self, shared: &WebState) -> Result<(), HttpRefusal> {
        refusal(self.look(shared).await?.as_deref())
    }

    /// Why the client is refused, if it is. A process that was just forked may hold the connection for a moment and be
    /// gone at the lookup, so before a refusal the processes that still hold it are looked up again.
    async fn look(&self, shared: &WebState) -> Result<Option<String>, HttpRefusal> {
        if self.look_once(shared, true).await?.is_none() {
            return Ok(None);
        }
        self.look_once(shared, !shared.may_alarm()).await
    }

    async fn look_once(
        &self,
        shared: &WebState,
        unwritten: bool,
    ) -> Result<Option<String>, HttpRefusal> {
        let unknown = |error: &dyn std::fmt::Display| {
            let text = format!("the client can't be looked up: {error}");
            HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, Fault::Failed, text)
        };
        let ours = *self.ours.as_ref().map_err(|error| unknown(error))?;
        let theirs = self.theirs;
        let peer = blocking::run(move || TcpPeer::of(ours, theirs))
            .await
            .map_err(|error| unknown(&error))?
            .map_err(|error| unknown(&error))?;
        let Some(peer) = peer else {
            return Ok(Some("it is not on this machine, or has gone".to_owned()));
        };
        if peer.uid != rustix::process::getuid().as_raw() {
            return Ok(Some(format!("it belongs to another user ({})", peer.uid)));
        }
        let params = WhereFromParams {
            pids: peer.pids,
            server: "web".to_owned(),
            unwritten,
        };
        let mut client = (shared.dial)().await?;
        let answer = client.call::<WhereFrom>(params).await;
        let answer = answer.map_err(RpcError::from)?;
        if answer.outside {
            return Ok(None);
        }
        if !unwritten {
            shared.alarmed();
        }
        Ok(Some(answer.why.unwrap_or_default()))
    }
}

fn refusal(why: Option<&str>) -> Result<(), HttpRefusal> {
    let Some(why) = why else {
        return Ok(());
    };
    let text = format!("the program that has connected is refused: {why}");
    Err(
        HttpRefusal::new(StatusCode::FORBIDDEN, Fault::Refused, text)
            .next("open the page in a browser outside of the slots, as the daemon's user"),
    )
}
