//! The client side of the control socket.

use super::attach;
use super::identity::Wanted;
use crate::control::requests::{
    Attach, AttachParams, Events, EventsParams, Method, Output, OutputAnswer, OutputParams, Ping,
};
use crate::core::model::envelope::{self, Lagged, Line, Live, Request};
use crate::core::model::{AttachAnswer, Event, Fault, MAX_LINE, Nothing, RpcError};
use crate::os::daemon_lock::displaced_daemon;
use crate::os::paths::Env;
use futures_util::future::BoxFuture;
use futures_util::{SinkExt, Stream, StreamExt, stream};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec, LinesCodec, LinesCodecError};

/// The limit for a connection. A daemon accepts at once unless it is stopped or overloaded with connections.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The pause before the next attempt if the daemon's queue of new connections is full.
const CONNECT_PAUSE: Duration = Duration::from_millis(5);
/// The limit for the daemon's answer to the handshake, which needs no work.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No process listens at the socket.
    #[error("no daemon answers ({0})")]
    NotRunning(String),
    /// The daemon answered with an error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The daemon accepted the connection and has not answered.
    #[error("the daemon accepts connections but has not answered for {}", humantime::format_duration(*.0))]
    Silent(Duration),
    /// The connection ended before the answer came: the daemon is gone.
    #[error("{0}")]
    Lost(String),
    /// The data from the socket was not an answer.
    #[error("{0}")]
    Protocol(String),
}

/// Connects to the daemon, for callers that need several connections or a new one later.
pub type Dial = Arc<dyn Fn() -> BoxFuture<'static, Result<Client, RpcError>> + Send + Sync>;

impl CallError {
    /// Tells whether the daemon has no place for this client now.
    pub fn is_full(&self) -> bool {
        matches!(self, CallError::Rpc(error) if error.fault == Fault::Full)
    }
}

impl From<CallError> for RpcError {
    fn from(error: CallError) -> RpcError {
        match error {
            CallError::Rpc(error) => error,
            CallError::NotRunning(_) => RpcError::new(Fault::Failed, error.to_string())
                .next("start the daemon with: missiond up"),
            CallError::Silent(_) => RpcError::new(Fault::TimedOut, error.to_string()),
            CallError::Protocol(text) | CallError::Lost(text) => RpcError::new(Fault::Failed, text),
        }
    }
}

/// One connection; calls on it run one after another.
#[derive(Debug)]
pub struct Client {
    lines: Framed<UnixStream, LinesCodec>,
    last_id: u64,
    /// The client's name for the audit, if it is not the program's default.
    name: Option<String>,
}

/// An item of an event subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    Event(Box<Event>),
    /// An event of a newer daemon that this program has no type for.
    Unknown(Value),
    /// The snapshot, or the replay of missed events, is complete.
    Live {
        /// The position after which live events follow.
        position: Option<u64>,
    },
    /// This subscriber was too slow, and its subscription has ended.
    Lagged {
        missed: u64,
    },
}

impl Client {
    pub async fn connect(path: &Path) -> Result<Client, CallError> {
        let stream = tokio::time::timeout(CONNECT_LIMIT, connect_patiently(path))
            .await
            .map_err(|_| CallError::NotRunning("it takes no connections".into()))??;
        check_peer(&stream, path)?;
        Ok(Client {
            lines: Framed::new(stream, LinesCodec::new_with_max_length(MAX_LINE)),
            last_id: 0,
            name: None,
        })
    }

    /// Connects, and checks that the answering daemon is the wanted one. Nothing else is sent to another daemon.
    pub async fn connect_to(socket: &Path, wanted: &Wanted) -> Result<Client, CallError> {
        match wanted {
            Wanted::AtSocket => Client::connect(socket).await,
            _ => Client::connect_within(socket, wanted, HANDSHAKE_LIMIT).await,
        }
    }

    /// Like [`Client::connect_to`], with a limit for the daemon's answer.
    pub async fn connect_within(
        socket: &Path,
        wanted: &Wanted,
        limit: Duration,
    ) -> Result<Client, CallError> {
        let mut client = Client::connect(socket).await?;
        let asked = client.call::<Ping>(Nothing {});
        let answer = tokio::time::timeout(limit, asked).await;
        let daemon = answer.map_err(|_| CallError::Silent(limit))??;
        wanted.check(socket, &daemon)?;
        Ok(client)
    }

    /// Fetches all output that exists at the time of the call, with its control sequences. A part may end in the middle
    /// of a sequence, so the parts are joined first.
    pub async fn whole_output(
        &mut self,
        mut params: OutputParams,
    ) -> Result<OutputAnswer, CallError> {
        params.raw = true;
        let mut whole = self.call::<Output>(params.clone()).await?;
        let (until, mut bytes) = (whole.total, whole.bytes());
        while whole.end < until {
            params.lines = None;
            params.from = Some(whole.end);
            let more = self.call::<Output>(params.clone()).await?;
            if more.text.is_empty() {
                break;
            }
            bytes.extend(more.bytes());
            whole.end = more.end;
            whole.dropped_bytes += more.dropped_bytes;
            whole.truncated |= more.truncated;
        }
        whole.set_bytes(&bytes);
        Ok(whole)
    }

    /// Sets the client's name for the audit.
    pub fn call_itself(&mut self, name: String) {
        self.name = Some(name);
    }

    /// Calls a method, and waits for the answer without a limit.
    pub async fn call<M: Method>(&mut self, params: M::Params) -> Result<M::Answer, CallError> {
        let params = serde_json::to_value(params).map_err(unspeakable)?;
        let result = self.ask(M::NAME, params).await?;
        serde_json::from_value(result).map_err(|error| {
            CallError::Protocol(format!("answer to `{}` not understood: {error}", M::NAME))
        })
    }

    /// Like [`Client::call`], for a method given by its name, with its parameters and its answer as JSON.
    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, CallError> {
        let id = self.request(method, params).await?;
        loop {
            let line = self.next_line().await?.ok_or_else(closed)?;
            if line.id != Some(id.into()) {
                continue;
            }
            if let Some(error) = line.error {
                return Err(RpcError::from(error).into());
            }
            return Ok(line.result.unwrap_or(Value::Null));
        }
    }

    /// Subscribes to events: a snapshot of the selected slots, [`Notice::Live`], then live events.
    pub async fn events(
        mut self,
        which: impl Into<EventsParams>,
    ) -> Result<impl Stream<Item = Result<Notice, CallError>>, CallError> {
        self.call::<Events>(which.into()).await?;
        Ok(stream::try_unfold(self, |mut client| async move {
            let notice = client.next_notice().await?;
            Ok(notice.map(|notice| (notice, client)))
        })
        .boxed())
    }

    /// Turns this connection into the live terminal of a slot.
    pub async fn attach(
        mut self,
        params: AttachParams,
    ) -> Result<(AttachAnswer, Framed<UnixStream, LengthDelimitedCodec>), CallError> {
        let answer = self.call::<Attach>(params).await?;
        Ok((answer, attach::as_frames(self.lines)))
    }

    /// Waits until the daemon closes this connection.
    pub async fn closed(mut self) {
        while let Some(Ok(_)) = self.lines.next().await {}
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<u64, CallError> {
        self.last_id += 1;
        let mut request = Request::new(self.last_id, method, params);
        request.via = self.name.clone().or(request.via);
        let line = serde_json::to_string(&request).map_err(unspeakable)?;
        if line.len() > MAX_LINE {
            return Err(CallError::Protocol(format!(
                "a request of {} bytes is too long (at most {MAX_LINE})",
                line.len()
            )));
        }
        if let Err(error) = self.lines.send(line).await {
            return Err(self.why_closed().await.unwrap_or_else(|| broken(error)));
        }
        Ok(self.last_id)
    }

    /// The error that the daemon sent before it closed the connection, which may be before this request was written.
    async fn why_closed(&mut self) -> Option<CallError> {
        match self.next_line().await {
            Err(error @ CallError::Rpc(_)) => Some(error),
            _ => None,
        }
    }

    async fn next_line(&mut self) -> Result<Option<Line>, CallError> {
        let Some(line) = self.lines.next().await else {
            return Ok(None);
        };
        let line = line.map_err(broken)?;
        let line: Line = serde_json::from_str(&line).map_err(|error| {
            CallError::Protocol(format!("the daemon's line is not JSON-RPC: {error}"))
        })?;
        match (line.id.is_none(), line.error) {
            // An error without a request id is about the connection, and is its last line.
            (true, Some(error)) => Err(RpcError::from(error).into()),
            (_, error) => Ok(Some(Line { error, ..line })),
        }
    }

    async fn next_notice(&mut self) -> Result<Option<Notice>, CallError> {
        while let Some(line) = self.next_line().await? {
            if let Some(notice) = notice(line) {
                return Ok(Some(notice));
            }
        }
        Ok(None)
    }
}

/// Turns a notification into a notice. Unknown notifications are ignored.
fn notice(line: Line) -> Option<Notice> {
    let params = line.params.unwrap_or(Value::Null);
    match line.method.as_deref()? {
        envelope::EVENT => Some(match serde_json::from_value(params.clone()).ok() {
            Some(event) => Notice::Event(Box::new(event)),
            None => Notice::Unknown(params),
        }),
        envelope::LIVE => {
            let live: Option<Live> = serde_json::from_value(params).ok();
            let position = live.map(|live| live.position);
            Some(Notice::Live { position })
        }
        envelope::LAGGED => {
            let lagged: Option<Lagged> = serde_json::from_value(params).ok();
            Some(Notice::Lagged {
                missed: lagged.map_or(0, |lagged| lagged.missed),
            })
        }
        _ => None,
    }
}

async fn connect_patiently(path: &Path) -> Result<UnixStream, CallError> {
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => return Ok(stream),
            // The daemon's backlog is full; a unix socket refuses then instead of waiting.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                tokio::time::sleep(CONNECT_PAUSE).await;
            }
            Err(error) => return Err(not_reached(path, &error)),
        }
    }
}

fn not_reached(path: &Path, error: &std::io::Error) -> CallError {
    let place = path.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            CallError::NotRunning(format!("there is no socket at {place}"))
        }
        ErrorKind::ConnectionRefused => {
            CallError::NotRunning(format!("nothing listens at {place}"))
        }
        _ => CallError::Protocol(format!("cannot connect to {place}: {error}")),
    }
}

/// Refuses to talk to another user's daemon, or to a process in a slot that has put its own socket in the daemon's
/// place.
fn check_peer(stream: &UnixStream, socket: &Path) -> Result<(), CallError> {
    let mine = rustix::process::geteuid().as_raw();
    let peer = stream.peer_cred().map_err(|error| {
        CallError::Protocol(format!("cannot tell whose daemon this is: {error}"))
    })?;
    if peer.uid() != mine {
        return Err(CallError::Protocol(format!(
            "the daemon at this socket belongs to another user (uid {})",
            peer.uid()
        )));
    }
    let listener = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    let displaced = listener.and_then(|pid| displaced_daemon(&Env::of_process(), socket, pid));
    match (listener, displaced) {
        (Some(listener), Some(daemon)) => Err(CallError::Protocol(format!(
            "process {listener} listens at {} in place of the daemon, pid {daemon}: nothing was sent to it. The daemon takes \
             its socket back within seconds; try again, and see what that process is",
            socket.display()
        ))),
        _ => Ok(()),
    }
}

fn closed() -> CallError {
    CallError::Lost("the daemon closed the connection before it answered".into())
}

fn broken(error: LinesCodecError) -> CallError {
    match error {
        LinesCodecError::MaxLineLengthExceeded => CallError::Protocol(format!(
            "the daemon sent a line of more than {MAX_LINE} bytes"
        )),
        LinesCodecError::Io(error) => {
            CallError::Lost(format!("the connection to the daemon broke: {error}"))
        }
    }
}

fn unspeakable(error: serde_json::Error) -> CallError {
    CallError::Protocol(format!("this request has no JSON form: {error}"))
}
