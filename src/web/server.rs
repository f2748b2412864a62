//! The HTTP server: connections and their bounds, and the checks that each request passes before it is answered.

use super::access::{Access, Secret};
use super::guard::Hosts;
use super::refusal::Refusal;
use super::{api, assets, events, openapi};
use crate::control::client::Dial;
use crate::control::requests::{WhereFrom, WhereFromParams};
use crate::control::scope::Scope;
use crate::core::model::{Fault, RpcError};
use crate::os::blocking;
use crate::os::tcp_peer::TcpPeer;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
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

/// Connections of people at once. A browser opens six for each tab.
const MAX_CONNECTIONS: usize = 128;
/// Connections that are looked up at once, before they get a place: what a slot opens takes no place of a person's.
const DOORSTEP: usize = 4;
/// Connections that are refused and may still read why.
const MAX_REFUSED: usize = 8;
/// How often a refusal goes into the audit, at most.
const ALARM_PAUSE: Duration = Duration::from_secs(10);
/// Listeners of events at once.
const MAX_STREAMS: usize = 32;
/// A client has this long to send the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of the longest head.
const MAX_HEAD: usize = 64 << 10;
/// Bytes of the longest body.
const MAX_BODY: usize = 64 << 10;

/// Where and for whom to serve.
#[derive(Debug, Clone)]
pub struct WebOptions {
    /// An address on loopback.
    pub listen: SocketAddr,
    /// Names of proxies in front of this server.
    pub hosts: Vec<String>,
}

/// What all requests share.
pub(super) struct Shared {
    pub dial: Dial,
    pub streams: Arc<Semaphore>,
    hosts: Hosts,
    access: Mutex<Access>,
    /// When a refusal went into the audit last.
    alarm: Mutex<Option<Instant>>,
}

impl Shared {
    /// A crowd of connections from a slot is no reason to fill the audit.
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

    /// A wrong code or token: too many of them have to wait.
    pub async fn refuse_secret(&self) -> Refusal {
        let penalty = self.access().strike(Instant::now());
        if let Some(penalty) = penalty {
            tokio::time::sleep(penalty).await;
        }
        Refusal::no_token()
    }
}

/// A server that listens.
pub struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl WebServer {
    pub async fn bind(dial: Dial, options: WebOptions) -> io::Result<WebServer> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let shared = Shared {
            dial,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            hosts: Hosts::new(address, &options.hosts),
            access: Mutex::default(),
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

    /// A new code of this scope, which gives one token.
    pub fn code(&self, scope: Scope) -> io::Result<Secret> {
        self.shared.access().mint(scope, Instant::now())
    }

    /// Serves until the process ends.
    pub async fn serve(self) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let refused = Arc::new(Semaphore::new(MAX_REFUSED));
        let doorstep = Arc::new(Semaphore::new(DOORSTEP));
        loop {
            let Ok(step) = doorstep.clone().acquire_owned().await else {
                return;
            };
            let (stream, theirs) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!("a connection can't be accepted: {error}");
                    // Out of descriptors: others have to end first.
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
                drop(step);
                // Without a place the connection closes: a client that tries again later finds one.
                let Ok(_place) = places.try_acquire_owned() else {
                    return;
                };
                serve_connection(stream, router(shared).layer(Extension(caller))).await;
            });
        }
    }
}

async fn serve_connection(stream: TcpStream, router: Router) {
    // How a connection ends is the client's affair.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
}

fn router(shared: Arc<Shared>) -> Router {
    let guarded = Router::new()
        .route("/api/events", get(events::stream))
        .route("/api/openapi.json", get(openapi::answer))
        .route("/api/{request}", post(api::answer))
        .layer(middleware::from_fn_with_state(shared.clone(), authorize));
    Router::new()
        .route("/api/session", post(api::session))
        .merge(guarded)
        .fallback(assets::answer)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(shared.clone(), admit))
        .layer(middleware::map_response(with_headers))
        .with_state(shared)
}

/// The first two checks: what the request says of itself, and what the kernel says of its sender.
async fn admit(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    if let Err(denied) = shared.hosts.check(&parts) {
        tracing::info!(why = denied.name(), "a request was refused");
        return Err(denied.into());
    }
    caller.check(&shared).await?;
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// The third check: the token. What it allows goes with the request.
async fn authorize(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let token = bearer(request.headers());
    let scope = token.and_then(|token| shared.access().scope(token, Instant::now()));
    match (token, scope) {
        (_, Some(scope)) => {
            request.extensions_mut().insert(scope);
            Ok(next.run(request).await)
        }
        (None, None) => Err(Refusal::no_token()),
        (Some(_), None) => Err(shared.refuse_secret().await),
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

/// Nothing of an answer is kept, framed, guessed at or named to another page.
async fn with_headers(mut response: Response<Body>) -> Response<Body> {
    let headers = [
        ("cache-control", "no-store"),
        (
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        ),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ];
    for (name, value) in headers {
        // The page has a policy of its own.
        let entry = response.headers_mut().entry(HeaderName::from_static(name));
        entry.or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Who is at the other end of a connection, as it was when it connected.
pub(super) struct Caller {
    ours: io::Result<SocketAddr>,
    theirs: SocketAddr,
    /// `None` if it is a person.
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

    /// Refuses other users and programs inside slots. If the daemon does not answer, nobody can be told apart: then the
    /// next request asks again.
    async fn check(&self, shared: &Shared) -> Result<(), Refusal> {
        let look = || self.look(shared);
        refusal(self.refused.get_or_try_init(look).await?.as_deref())
    }

    /// The same, looked up again: before something is done, a connection may have been passed on to another process.
    pub(super) async fn check_again(&self, shared: &Shared) -> Result<(), Refusal> {
        refusal(self.look(shared).await?.as_deref())
    }

    async fn look(&self, shared: &Shared) -> Result<Option<String>, Refusal> {
        let unknown = |error: &dyn std::fmt::Display| {
            let text = format!("who has connected can't be looked up: {error}");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Fault::Failed, text)
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
            unwritten: !shared.may_alarm(),
        };
        let mut client = (shared.dial)().await?;
        let answer = client.call::<WhereFrom>(params).await;
        let answer = answer.map_err(RpcError::from)?;
        if answer.outside {
            return Ok(None);
        }
        shared.alarmed();
        Ok(Some(answer.why.unwrap_or_default()))
    }
}

fn refusal(why: Option<&str>) -> Result<(), Refusal> {
    let Some(why) = why else {
        return Ok(());
    };
    let text = format!("the program that has connected is refused: {why}");
    Err(Refusal::new(StatusCode::FORBIDDEN, Fault::Refused, text)
        .next("open the page in a browser outside of the slots, as the daemon's user"))
}
