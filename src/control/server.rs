//! The daemon's side of the control socket: connections, lines and their bounds. The handling of requests is in
//! [`super::dispatch`].

use super::allowances::Allowances;
use super::attach;
use super::dispatch::Dispatcher;
use super::heavy::{HeavyRequests, Holding};
use super::listening::listen;
use super::places::{self, ConnectionPlace, ConnectionPlaces, ConnectionSource, TurnedAway};
use super::refusals::{Fate, Refusals};
use super::remote;
use super::request_lines::{self, Inbound, RequestLines};
use super::requests::{Attach, Call, Events, Method};
use super::reserve::{self, Reserve};
use super::subscriptions::Subscriptions;
use super::unasked::Unasked;
use crate::core::model::envelope::{self, ErrorObject, Line, Request};
use crate::core::model::{Fault, MAX_LINE, RpcError};
use crate::daemon::{RemoteAnswer, Serving};
use crate::os::outbox::{OWN, Outbox, OutboxPiece, Refused, Unread};
use crate::os::pause::{self, Moment};
use crate::os::peer::{self, Peer, PeerOrigin};
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, Interest, Ready};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::bytes::{Buf, Bytes};
use tokio_util::codec::{Framed, FramedParts, FramedRead, LinesCodec, LinesCodecError};
use tokio_util::sync::CancellationToken;

/// How often a client's origin is looked up again if it could not be seen.
const MORE_LOOKS: usize = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The maximum of connected clients that are being looked up: fewer than the reserved descriptors.
const MAX_LOOKUPS: usize = 3;
/// A client that sends nothing for this long after it connects is dropped.
const SILENT_LIMIT: Duration = Duration::from_secs(10);
/// The maximum of requests in progress for one client.
const MAX_REQUESTS: usize = 64;
/// The maximum bytes of unread answers for one client: the longest line, and the bytes that each client may always
/// have.
const MAX_UNREAD: usize = MAX_LINE + OWN;
/// The same bound for people and their programs together, and for all slots together, beyond the bytes that each client
/// may always have. One slot may have as much as one client.
const UNREAD_BY_PEOPLE: usize = 24 << 20;
const UNREAD_BY_SLOTS: usize = 2 * MAX_UNREAD;
/// A client that does not read a line for this long is dropped.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a dropped client has to read the reason.
const LINGER: Duration = Duration::from_secs(15);

/// The interval of checks whether a client without more requests is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

type Lines = FramedRead<OwnedReadHalf, RequestLines>;

/// When the daemon ends, answers in progress have this long to reach their clients.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The server and its task.
#[derive(Debug)]
pub struct Server {
    task: JoinHandle<()>,
    ending: CancellationToken,
    listeners: mpsc::Sender<UnixListener>,
    answers: mpsc::Sender<RemoteAnswer>,
}

impl Server {
    pub fn start(listener: UnixListener, dispatcher: Arc<Dispatcher>) -> Server {
        let ending = CancellationToken::new();
        let (listeners, next) = mpsc::channel(1);
        let (answers, given) = mpsc::channel(remote::MAX_WAITING);
        // The task ends when the last sender of answers is gone.
        tokio::spawn(remote::answer_all(given, dispatcher.clone()));
        let task = tokio::spawn(serve(listener, next, dispatcher, ending.clone()));
        Server {
            task,
            ending,
            listeners,
            answers,
        }
    }
}

impl Serving for Server {
    fn listeners(&self) -> mpsc::Sender<UnixListener> {
        self.listeners.clone()
    }

    fn answers(&self) -> mpsc::Sender<RemoteAnswer> {
        self.answers.clone()
    }

    async fn end(mut self) {
        self.ending.cancel();
        if tokio::time::timeout(FLUSH_LIMIT, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
        }
    }
}

async fn serve(
    mut listener: UnixListener,
    mut listeners: mpsc::Receiver<UnixListener>,
    dispatcher: Arc<Dispatcher>,
    ending: CancellationToken,
) {
    let server = Arc::new(ServerState {
        places: ConnectionPlaces::default(),
        unread: Allowances::new(UNREAD_BY_PEOPLE, UNREAD_BY_SLOTS, MAX_UNREAD),
        heavy: Arc::default(),
        inbound: Inbound::default(),
        reserve: Reserve::default(),
        refusals: Refusals::new(dispatcher.clone()),
        unasked: Mutex::default(),
        dispatcher,
        ending,
    });
    let lookups = Arc::new(Semaphore::new(MAX_LOOKUPS));
    let mut clients = JoinSet::new();
    // The error is logged once, and again only after a client was accepted.
    let mut refuses = false;
    loop {
        tokio::select! {
            () = server.ending.cancelled() => break,
            Some(next) = listeners.recv() => listener = next,
            accepted = accept(&listener, &lookups) => match accepted {
                Ok((stream, lookup)) => {
                    refuses = false;
                    match server.asks_nothing(&stream) {
                        None => drop(clients.spawn(receive(stream, lookup, server.clone()))),
                        Some(away) => turn_away(&stream, away),
                    }
                }
                Err(error) if reserve::is_lack(&error) && server.reserve.lend() => {}
                Err(error) => {
                    if !std::mem::replace(&mut refuses, true) {
                        tracing::error!("clients can't be accepted: {error}");
                    }
                    // Files or memory are used up: other clients have to finish first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = clients.join_next() => {}
        }
    }
    while clients.join_next().await.is_some() {}
}

/// The state that all clients share.
struct ServerState {
    places: ConnectionPlaces,
    /// Budgets for answers and events that wait to be read.
    unread: Allowances,
    heavy: Arc<HeavyRequests>,
    inbound: Inbound,
    reserve: Reserve,
    refusals: Arc<Refusals>,
    unasked: Mutex<Unasked>,
    dispatcher: Arc<Dispatcher>,
    ending: CancellationToken,
}

impl ServerState {
    /// Refuses one more connection of a process that has too many connections without a request. The origin of that
    /// process is not looked up.
    fn asks_nothing(&self, stream: &UnixStream) -> Option<TurnedAway> {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid())?;
        if self.unasked().admits(pid, Instant::now()) {
            return None;
        }
        let away = TurnedAway::unasked(pid);
        self.refusals
            .note(&away.of, Fate::TurnedAway, &away.to_string());
        Some(away)
    }

    fn unasked(&self) -> MutexGuard<'_, Unasked> {
        self.unasked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(
    listener: &UnixListener,
    lookups: &Arc<Semaphore>,
) -> io::Result<(UnixStream, OwnedSemaphorePermit)> {
    let lookup = lookups.clone().acquire_owned().await;
    let lookup = lookup.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, lookup))
}

/// Looks up a new client, and finds a place for it.
async fn receive(stream: UnixStream, lookup: OwnedSemaphorePermit, server: Arc<ServerState>) {
    let (peer, in_need) = match identify(&stream, &server).await {
        Ok(identified) => identified,
        Err(reason) => {
            tracing::warn!("a client was refused: {reason}");
            return;
        }
    };
    let (source, now) = (ConnectionSource::from(&peer.origin), Instant::now());
    let place = match in_need {
        true => server.places.admit_in_need(source, now),
        false => server.places.admit(source, now),
    };
    drop(lookup);
    let place = match place {
        Ok(place) => Arc::new(place),
        Err(why) => {
            server
                .refusals
                .note(&why.of, Fate::TurnedAway, &why.to_string());
            return turn_away(&stream, why);
        }
    };
    let gone = CancellationToken::new();
    let _ended = gone.clone().drop_guard();
    let connection = Connection {
        peer: Arc::new(peer),
        server: server.clone(),
        place: place.clone(),
        in_need,
        gone,
        subscriptions: Subscriptions::default(),
    };
    tokio::select! {
        () = client(stream, connection) => {}
        () = moved_out(&place) => {}
    }
    // The client's freed descriptors may fill the reserve again.
    server.reserve.is_in_use();
}

/// Waits until the client has to make place, and then for the time that it has to read the reason.
async fn moved_out(place: &ConnectionPlace) {
    place.is_taken().await;
    tokio::time::sleep(FLUSH_LIMIT).await;
}

/// Sends the reason in one line. The socket is empty, so this does not block.
fn turn_away(stream: &UnixStream, why: TurnedAway) {
    let line = Line::answer(Value::Null, Err(RpcError::from(why).into()));
    // A client that is gone already need not get it.
    let _ = stream.try_write(&line.bytes());
}

/// One client, while it is connected.
#[derive(Clone)]
struct Connection {
    peer: Arc<Peer>,
    server: Arc<ServerState>,
    place: Arc<ConnectionPlace>,
    /// Whether it has one of the last descriptors.
    in_need: bool,
    /// Cancelled when the connection has ended.
    gone: CancellationToken,
    subscriptions: Subscriptions,
}

async fn client(stream: UnixStream, connection: Connection) {
    let Connection {
        peer,
        server,
        place,
        ..
    } = connection.clone();
    let (reading, mut writing) = stream.into_split();
    let source = ConnectionSource::from(&peer.origin);
    let mut lines = FramedRead::new(reading, server.inbound.lines(&source));
    let budget = server.unread.of(&source);
    let (answers, mut unread) = budget.queue();
    let written = {
        let mut writer = std::pin::pin!(write(&mut writing, &mut unread));
        tokio::select! {
            written = &mut writer => written.map(|()| None),
            attach = read(&mut lines, connection, answers) => {
                // Waits until the last answers, such as the reason of the end, are written.
                writer.await.map(|()| attach)
            }
        }
    };
    // Unread answers give their bytes back.
    drop(unread);
    match written {
        Ok(None) | Err(Unwritten::Gone) => {}
        Ok(Some(request)) => {
            if let Some(lines) = whole(lines, writing) {
                let _busy = place.busy();
                attach::serve(lines, request, (&peer, &server.dispatcher), &budget).await;
            }
        }
        Err(Unwritten::Slow(piece)) => {
            let why = too_slow();
            server.refusals.note(&source, Fate::Dropped, &why.message);
            // For a dropped client, no more is kept than each client may always have.
            if piece.bytes.len() <= OWN {
                let told = tell_why(&mut writing, piece.bytes, why);
                let _ = tokio::time::timeout(LINGER, told).await;
            }
        }
    }
}

fn too_slow() -> RpcError {
    let patience = humantime::format_duration(WRITE_PATIENCE);
    let text = format!("it did not read its answers for {patience}");
    RpcError::new(Fault::TooSlow, text)
}

/// Writes the rest of a line that the client has in part, and then the reason as the last line.
async fn tell_why(writing: &mut OwnedWriteHalf, mut rest: Bytes, why: RpcError) -> io::Result<()> {
    write_rest(writing, &mut rest).await?;
    let why = RpcError {
        message: format!("dropped: {}", why.message),
        ..why
    };
    let line = Line::answer(Value::Null, Err(why.into()));
    writing.write_all(&line.bytes()).await
}

/// Joins both directions of a connection again, with the bytes that were read and not yet used.
fn whole(lines: Lines, writing: OwnedWriteHalf) -> Option<Framed<UnixStream, LinesCodec>> {
    let FramedParts {
        io,
        codec,
        read_buf,
        ..
    } = lines.into_parts();
    let stream = io.reunite(writing).ok()?;
    let mut parts = FramedParts::new::<String>(stream, codec.into_lines());
    parts.read_buf = read_buf;
    Some(Framed::from_parts(parts))
}

/// Why a line was not written.
enum Unwritten {
    Gone,
    /// The client does not read; this is the unwritten rest of its line.
    Slow(OutboxPiece),
}

/// Writes answers until all their senders are gone.
async fn write(writing: &mut OwnedWriteHalf, unread: &mut Unread) -> Result<(), Unwritten> {
    while let Some(mut piece) = unread.next().await {
        let written = write_rest(writing, &mut piece.bytes);
        match tokio::time::timeout(WRITE_PATIENCE, written).await {
            Ok(written) => written.map_err(|_| Unwritten::Gone)?,
            Err(_) => return Err(Unwritten::Slow(piece)),
        }
    }
    Ok(())
}

/// Writes the rest. If this is cancelled, the unwritten bytes are still in `rest`.
async fn write_rest(writing: &mut OwnedWriteHalf, rest: &mut Bytes) -> io::Result<()> {
    while !rest.is_empty() {
        let count = writing.write(rest).await?;
        rest.advance(count);
    }
    Ok(())
}

/// Reads requests until the client has no more, or asks to be attached: then the connection no longer carries lines.
async fn read(lines: &mut Lines, connection: Connection, answers: Outbox) -> Option<Request> {
    let mut requests = JoinSet::new();
    let source = ConnectionSource::from(&connection.peer.origin);
    let turns = connection.server.heavy.turns(source, answers.clone());
    let (mut is_silent, mut has_asked) = (true, false);
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = tokio::time::sleep(SILENT_LIMIT), if is_silent => {
                return send_last_error(nothing_asked(), &answers).await;
            }
            () = connection.place.is_taken() => {
                return send_last_error(places::made_place(), &answers).await;
            }
            () = connection.server.ending.cancelled() => {
                while requests.join_next().await.is_some() {}
                return None;
            }
        };
        is_silent = false;
        let Some(line) = line else {
            answered_or_gone(&mut requests, lines.get_ref().as_ref()).await;
            return None;
        };
        let request = understood(line, &answers).await?;
        if !std::mem::replace(&mut has_asked, true)
            && let Some(pid) = connection.peer.pid
        {
            connection.server.unasked().asked(pid);
        }
        if connection.in_need
            && let Err(refusal) = reserve::check(&request.method)
        {
            return send_last_error(refusal, &answers).await;
        }
        if request.method == Attach::NAME {
            return Some(request);
        }
        while requests.len() >= MAX_REQUESTS {
            requests.join_next().await;
        }
        while requests.try_join_next().is_some() {}
        let busy = connection.place.busy();
        let holding = Holding::new(turns.clone());
        let answering = answer(request, connection.clone(), answers.clone(), holding);
        requests.spawn(async move {
            answering.await;
            drop(busy);
        });
    }
}

/// Waits until the requests are answered or the client is gone. A client that sends no more requests may still wait for
/// answers; if it is gone, the rest is dropped with `requests`.
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

/// Checks the client's user and looks up its origin. The socket is 0600 in a 0700 directory; the check of the user is a
/// second protection. The origin is looked up at once, before the client can end and another process take its id. If
/// there is no descriptor for that, the reserve is freed; the second value says so.
async fn identify(stream: &UnixStream, server: &ServerState) -> Result<(Peer, bool), String> {
    let mine = rustix::process::geteuid().as_raw();
    let told = stream
        .peer_cred()
        .map_err(|error| format!("its user is unknown: {error}"))?;
    if told.uid() != mine {
        return Err(format!("it belongs to uid {}", told.uid()));
    }
    let marks = server.dispatcher.marks();
    let look = || peer::origin(told.pid(), &marks, &peer::Proc::default());
    let mut in_need = server.reserve.is_in_use();
    let mut origin = look();
    if matches!(origin, PeerOrigin::Unseen(_)) && server.reserve.lend() {
        in_need = true;
        origin = look();
    }
    // Another lookup, or a file that is being written, may have the last descriptors for a moment.
    for _ in 0..MORE_LOOKS {
        if !matches!(origin, PeerOrigin::Unseen(_)) {
            break;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
        origin = look();
    }
    let (pid, uid) = (told.pid(), told.uid());
    let via = envelope::UNNAMED.to_owned();
    let peer = Peer {
        pid,
        uid,
        origin,
        via,
    };
    Ok((peer, in_need))
}

/// Parses a line. If it is not a request, the client gets an error; after a line that is too long the connection ends,
/// since the start of the next one is unknown.
async fn understood(line: Result<String, LinesCodecError>, answers: &Outbox) -> Option<Request> {
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
        Err(LinesCodecError::Io(error)) if error.kind() == io::ErrorKind::QuotaExceeded => {
            return send_last_error(request_lines::no_allowance(), answers).await;
        }
        Err(LinesCodecError::Io(_)) => return None,
    };
    let _ = answers.send(fault.bytes()).await;
    None
}

/// Sends the last line of a connection: an error without a request id.
async fn send_last_error(error: RpcError, answers: &Outbox) -> Option<Request> {
    let line = Line::answer(Value::Null, Err(error.into()));
    // A client that is gone need not get it.
    let _ = answers.send(line.bytes()).await;
    None
}

fn nothing_asked() -> RpcError {
    let limit = humantime::format_duration(SILENT_LIMIT);
    let text = format!("nothing was asked for within {limit}");
    RpcError::new(Fault::TimedOut, text)
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

async fn answer(request: Request, connection: Connection, answers: Outbox, holding: Holding) {
    let Connection {
        peer,
        server,
        gone,
        subscriptions,
        ..
    } = connection;
    let peer = peer.asking(&request);
    let call = Call::new(&server.dispatcher, &peer, &gone, &subscriptions, &holding);
    let outcome = if request.method == Events::NAME {
        tokio::select! {
            // Boxed, since other requests must not be as large while they wait.
            subscribed = Box::pin(subscribe(call, &request, &answers)) => match subscribed {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            () = server.ending.cancelled() => return,
        }
    } else {
        let run = async {
            pause::fault(Moment::Asked);
            call.run(&request.method, request.params.clone()).await
        };
        // After a panic the client gets an error, and does not wait for an answer that never comes.
        let answer = AssertUnwindSafe(run).catch_unwind().await;
        answer.unwrap_or_else(|_| Err(panicked(&request.method)))
    };
    if outcome.is_err() && server.dispatcher.daemon().once().end.leaves() {
        // The client asks the next daemon again when this connection ends, as after a kill.
        return;
    }
    let line = Line::answer(request.id.clone(), outcome.map_err(ErrorObject::from));
    if answers.try_send(line.bytes().into(), MAX_UNREAD) == Err(Refused::NoRoom) {
        let line = Line::answer(request.id, Err(holding.no_room().into()));
        holding.let_go();
        // A client that is gone needs no answer.
        let _ = answers.send(line.bytes()).await;
    }
}

/// Runs a subscription until it ends; an error if it can't begin.
async fn subscribe(call: Call<'_>, request: &Request, answers: &Outbox) -> Result<(), RpcError> {
    call.permit(call.peer(), &request.method, &request.params)
        .await?;
    let listening = listen(request, call.dispatcher(), answers);
    call.subscriptions().run(&request.id, listening).await
}
