//! The daemon's end of the control socket: connections, lines and their bounds. What a request means is in
//! [`super::dispatch`].

use super::attach;
use super::dispatch::Dispatcher;
use super::envelope::{ErrorObject, Line, Request};
use super::listening::listen;
use super::peer::{self, Peer};
use super::protocol::{Attach, Events, Fault, MAX_LINE, Method, RpcError};
use crate::pause::{self, Moment};
use futures_util::{FutureExt, Sink, SinkExt, StreamExt};
use serde_json::Value;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{Interest, Ready};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::codec::{
    Framed, FramedParts, FramedRead, FramedWrite, LinesCodec, LinesCodecError,
};
use tokio_util::sync::CancellationToken;

/// Clients at once: hooks of every slot, people, and scripts that wait. More is a fork bomb.
const MAX_CLIENTS: usize = 512;
/// Requests of one client that are under way at once.
const MAX_REQUESTS: usize = 64;
/// Lines that wait for one client to read them, beyond the socket's own buffer.
const MAX_UNREAD: usize = 64;
/// A client that reads nothing for this long is gone, whatever its socket says.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// How soon it is seen that a client which has nothing more to ask is gone altogether.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

type Lines = FramedRead<OwnedReadHalf, LinesCodec>;

/// At the end of the daemon, answers that are under way have this long to reach their clients.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The server in its task.
#[derive(Debug)]
pub struct Server {
    task: JoinHandle<()>,
    ending: CancellationToken,
}

impl Server {
    pub fn start(listener: UnixListener, dispatcher: Arc<Dispatcher>) -> Server {
        let ending = CancellationToken::new();
        let task = tokio::spawn(serve(listener, dispatcher, ending.clone()));
        Server { task, ending }
    }

    /// Takes nothing new, and lets go of the clients when what they asked is answered.
    pub async fn end(mut self) {
        self.ending.cancel();
        if tokio::time::timeout(LAST_WORDS, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
        }
    }
}

async fn serve(listener: UnixListener, dispatcher: Arc<Dispatcher>, ending: CancellationToken) {
    let places = Arc::new(Semaphore::new(MAX_CLIENTS));
    let mut clients = JoinSet::new();
    // Told once, and not again until one was accepted.
    let mut refuses = false;
    loop {
        tokio::select! {
            () = ending.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    refuses = false;
                    let Ok(place) = places.clone().try_acquire_owned() else {
                        tracing::warn!("a client was turned away: {MAX_CLIENTS} are connected");
                        continue;
                    };
                    let (dispatcher, ending) = (dispatcher.clone(), ending.clone());
                    clients.spawn(async move {
                        client(stream, dispatcher, ending).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    if !std::mem::replace(&mut refuses, true) {
                        tracing::error!("clients can't be accepted: {error}");
                    }
                    // Out of files or memory: others have to finish first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = clients.join_next() => {}
        }
    }
    while clients.join_next().await.is_some() {}
}

/// One client, for as long as it stays.
#[derive(Clone)]
struct Connection {
    peer: Arc<Peer>,
    dispatcher: Arc<Dispatcher>,
    ending: CancellationToken,
    /// Cancelled when the connection has ended.
    gone: CancellationToken,
}

async fn client(stream: UnixStream, dispatcher: Arc<Dispatcher>, ending: CancellationToken) {
    let peer = match identify(&stream, &dispatcher) {
        Ok(peer) => Arc::new(peer),
        Err(reason) => {
            tracing::warn!("a client was refused: {reason}");
            return;
        }
    };
    let gone = CancellationToken::new();
    let _ended = gone.clone().drop_guard();
    let connection = Connection {
        peer,
        dispatcher,
        ending,
        gone,
    };
    let Connection {
        peer, dispatcher, ..
    } = connection.clone();
    let codec = || LinesCodec::new_with_max_length(MAX_LINE);
    let (reading, writing) = stream.into_split();
    let (sink, mut lines) = (
        FramedWrite::new(writing, codec()),
        FramedRead::new(reading, codec()),
    );
    let (answers, unread) = mpsc::channel::<Line>(MAX_UNREAD);
    let writer = write(sink, unread);
    let mut writer = std::pin::pin!(writer);
    let attach = tokio::select! {
        _ = &mut writer => return,
        attach = read(&mut lines, connection, answers) => attach,
    };
    // What was answered last, such as why the connection ends.
    let sink = writer.await;
    if let (Some(request), Some(sink)) = (attach, sink)
        && let Some(lines) = whole(lines, sink)
    {
        attach::serve(lines, request, &peer, &dispatcher).await;
    }
}

/// Both ways of a connection again, with what was read and not yet used.
fn whole(
    lines: Lines,
    sink: FramedWrite<OwnedWriteHalf, LinesCodec>,
) -> Option<Framed<UnixStream, LinesCodec>> {
    let FramedParts {
        io,
        codec,
        read_buf,
        ..
    } = lines.into_parts();
    let stream = io.reunite(sink.into_inner()).ok()?;
    let mut parts = FramedParts::new::<String>(stream, codec);
    parts.read_buf = read_buf;
    Some(Framed::from_parts(parts))
}

/// Until nobody can send an answer any more; `None` where the client does not read.
async fn write<S: Sink<String> + Unpin>(
    mut sink: S,
    mut unread: mpsc::Receiver<Line>,
) -> Option<S> {
    while let Some(line) = unread.recv().await {
        let Ok(text) = serde_json::to_string(&line) else {
            continue;
        };
        match tokio::time::timeout(WRITE_PATIENCE, sink.send(text)).await {
            Ok(Ok(())) => {}
            _ => return None,
        }
    }
    Some(sink)
}

/// Until the client has no more requests, or asks to be attached: then the connection is no longer one of lines.
async fn read(
    lines: &mut Lines,
    connection: Connection,
    answers: mpsc::Sender<Line>,
) -> Option<Request> {
    let mut requests = JoinSet::new();
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = connection.ending.cancelled() => {
                while requests.join_next().await.is_some() {}
                return None;
            }
        };
        let Some(line) = line else {
            answered_or_gone(&mut requests, lines.get_ref().as_ref()).await;
            return None;
        };
        let request = understood(line, &answers).await?;
        if request.method == Attach::NAME {
            return Some(request);
        }
        while requests.len() >= MAX_REQUESTS {
            requests.join_next().await;
        }
        while requests.try_join_next().is_some() {}
        requests.spawn(answer(request, connection.clone(), answers.clone()));
    }
}

/// One that will ask nothing more may still wait for its answers. What nobody waits for is dropped with `requests`.
async fn answered_or_gone(requests: &mut JoinSet<()>, stream: &UnixStream) {
    let gone = async {
        let is_gone = |ready: Ready| ready.is_write_closed();
        while !stream.ready(Interest::WRITABLE).await.is_ok_and(is_gone) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    let answered = async { while requests.join_next().await.is_some() {} };
    tokio::select! { () = gone => {}, () = answered => {} }
}

/// The socket is 0600 in a 0700 directory; the look at the user is the second lock on the same door. Where the
/// client comes from is looked up at once, before it can end and another process take its id.
fn identify(stream: &UnixStream, dispatcher: &Dispatcher) -> Result<Peer, String> {
    let mine = rustix::process::geteuid().as_raw();
    let told = stream
        .peer_cred()
        .map_err(|error| format!("its user can't be told: {error}"))?;
    if told.uid() != mine {
        return Err(format!("it belongs to uid {}", told.uid()));
    }
    Ok(Peer {
        pid: told.pid(),
        uid: told.uid(),
        origin: peer::origin(told.pid(), &dispatcher.marks(), &peer::Proc::default()),
    })
}

/// A line that is no request gets an answer that says so; after one that is too long the connection ends, since
/// nobody knows where the next begins.
async fn understood(
    line: Result<String, LinesCodecError>,
    answers: &mpsc::Sender<Line>,
) -> Option<Request> {
    let fault = match line {
        Ok(line) => match serde_json::from_str(&line) {
            Ok(request) => return Some(request),
            Err(error) => {
                let code = if error.is_data() { -32600 } else { -32700 };
                error_line(code, format!("not a JSON-RPC request: {error}"))
            }
        },
        Err(LinesCodecError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            error_line(-32700, "not a JSON-RPC request: it is not UTF-8".to_owned())
        }
        Err(LinesCodecError::MaxLineLengthExceeded) => {
            error_line(-32600, format!("a line of more than {MAX_LINE} bytes"))
        }
        Err(LinesCodecError::Io(_)) => return None,
    };
    let _ = answers.send(fault).await;
    None
}

fn error_line(code: i64, message: String) -> Line {
    Line::answer(
        Value::Null,
        Err(ErrorObject {
            code,
            message,
            data: None,
        }),
    )
}

fn panicked(method: &str) -> RpcError {
    RpcError::new(Fault::Failed, format!("the daemon failed at `{method}`"))
        .next("what went wrong is in missiond.log in the log directory")
}

async fn answer(request: Request, connection: Connection, answers: mpsc::Sender<Line>) {
    let Connection {
        peer,
        dispatcher,
        ending,
        gone,
    } = connection;
    let Request { method, params, .. } = &request;
    let outcome = match dispatcher.permit(&peer, method, params).await {
        Ok(()) if *method == Events::NAME => {
            return tokio::select! {
                () = listen(request, &dispatcher, &answers) => {}
                () = ending.cancelled() => {}
            };
        }
        Ok(()) => {
            let call = async {
                pause::fault(Moment::Asked);
                dispatcher.call(&peer, &gone, method, params.clone()).await
            };
            // Whoever asked is told, and does not wait for an answer that never comes.
            let answer = AssertUnwindSafe(call).catch_unwind().await;
            let answer = answer.unwrap_or_else(|_| Err(panicked(method)));
            answer.map(|answer| peer.may_see(answer))
        }
        Err(refusal) => Err(refusal),
    };
    let _ = answers
        .send(Line::answer(request.id, outcome.map_err(ErrorObject::from)))
        .await;
}
