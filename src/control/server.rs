//! The daemon's end of the control socket: connections, lines and their bounds. What a request means is in
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

/// How often it is looked again who a client is, if that was not to be seen.
const MORE_LOOKS: usize = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Clients that have connected and are being looked up: fewer than the descriptors that are kept for control.
const DOORSTEP: usize = 3;
/// A client that says nothing at all for this long is let go.
const SILENT_LIMIT: Duration = Duration::from_secs(10);
/// Requests of one client that are under way at once.
const MAX_REQUESTS: usize = 64;
/// Answers that wait for one client to read them, in bytes: the longest line, and a client's own room.
const MAX_UNREAD: usize = MAX_LINE + OWN;
/// The same for people and their programs together, and for all slots together, beyond what each client may always have. One
/// slot may have as much as one client.
const UNREAD_BY_PEOPLE: usize = 24 << 20;
const UNREAD_BY_SLOTS: usize = 2 * MAX_UNREAD;
/// A client that does not read a line for this long is dropped.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// A client that was dropped may read why for this long.
const LINGER: Duration = Duration::from_secs(15);

/// How soon it is seen that a client which has nothing more to ask is gone altogether.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

type Lines = FramedRead<OwnedReadHalf, RequestLines>;

/// At the end of the daemon, answers that are under way have this long to reach their clients.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The server in its task.
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
        // It ends with the last that may give one.
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
        if tokio::time::timeout(LAST_WORDS, &mut self.task)
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
    let hall = Arc::new(Hall {
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
    let doorstep = Arc::new(Semaphore::new(DOORSTEP));
    let mut clients = JoinSet::new();
    // Told once, and not again until one was accepted.
    let mut refuses = false;
    loop {
        tokio::select! {
            () = hall.ending.cancelled() => break,
            Some(next) = listeners.recv() => listener = next,
            accepted = accept(&listener, &doorstep) => match accepted {
                Ok((stream, step)) => {
                    refuses = false;
                    match hall.asks_nothing(&stream) {
                        None => drop(clients.spawn(receive(stream, step, hall.clone()))),
                        Some(away) => turn_away(&stream, away),
                    }
                }
                Err(error) if reserve::is_lack(&error) && hall.reserve.lend() => {}
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

/// What all clients share.
struct Hall {
    places: ConnectionPlaces,
    /// For answers and events that wait to be read.
    unread: Allowances,
    heavy: Arc<HeavyRequests>,
    inbound: Inbound,
    reserve: Reserve,
    refusals: Arc<Refusals>,
    unasked: Mutex<Unasked>,
    dispatcher: Arc<Dispatcher>,
    ending: CancellationToken,
}

impl Hall {
    /// Nobody looks who this is if it is one more connection of a process that asks nothing on those it has.
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
    doorstep: &Arc<Semaphore>,
) -> io::Result<(UnixStream, OwnedSemaphorePermit)> {
    let step = doorstep.clone().acquire_owned().await;
    let step = step.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, step))
}

/// A client that has connected: who it is, and whether there is a place for it.
async fn receive(stream: UnixStream, step: OwnedSemaphorePermit, hall: Arc<Hall>) {
    let (peer, in_need) = match identify(&stream, &hall).await {
        Ok(identified) => identified,
        Err(reason) => {
            tracing::warn!("a client was refused: {reason}");
            return;
        }
    };
    let (source, now) = (ConnectionSource::from(&peer.origin), Instant::now());
    let place = match in_need {
        true => hall.places.admit_in_need(source, now),
        false => hall.places.admit(source, now),
    };
    drop(step);
    let place = match place {
        Ok(place) => Arc::new(place),
        Err(why) => {
            hall.refusals
                .note(&why.of, Fate::TurnedAway, &why.to_string());
            return turn_away(&stream, why);
        }
    };
    let gone = CancellationToken::new();
    let _ended = gone.clone().drop_guard();
    let connection = Connection {
        peer: Arc::new(peer),
        hall: hall.clone(),
        place: place.clone(),
        in_need,
        gone,
        subscriptions: Subscriptions::default(),
    };
    tokio::select! {
        () = client(stream, connection) => {}
        () = last_words(&place) => {}
    }
    // What it had may fill the reserve again.
    hall.reserve.is_in_use();
}

/// The time that a client has to read why it had to make place for another one.
async fn last_words(place: &ConnectionPlace) {
    place.is_taken().await;
    tokio::time::sleep(LAST_WORDS).await;
}

/// Says why in one line. Its socket is empty, so nothing has to be waited for.
fn turn_away(stream: &UnixStream, why: TurnedAway) {
    let line = Line::answer(Value::Null, Err(RpcError::from(why).into()));
    // One that has gone already need not be told.
    let _ = stream.try_write(&line.bytes());
}

/// One client, for as long as it stays.
#[derive(Clone)]
struct Connection {
    peer: Arc<Peer>,
    hall: Arc<Hall>,
    place: Arc<ConnectionPlace>,
    /// It has one of the last descriptors.
    in_need: bool,
    /// Cancelled when the connection has ended.
    gone: CancellationToken,
    subscriptions: Subscriptions,
}

async fn client(stream: UnixStream, connection: Connection) {
    let Connection {
        peer, hall, place, ..
    } = connection.clone();
    let (reading, mut writing) = stream.into_split();
    let source = ConnectionSource::from(&peer.origin);
    let mut lines = FramedRead::new(reading, hall.inbound.lines(&source));
    let budget = hall.unread.of(&source);
    let (answers, mut unread) = budget.queue();
    let written = {
        let mut writer = std::pin::pin!(write(&mut writing, &mut unread));
        tokio::select! {
            written = &mut writer => written.map(|()| None),
            attach = read(&mut lines, connection, answers) => {
                // What was answered last, such as why the connection ends.
                writer.await.map(|()| attach)
            }
        }
    };
    // What nobody has read gives its room back.
    drop(unread);
    match written {
        Ok(None) | Err(Unwritten::Gone) => {}
        Ok(Some(request)) => {
            if let Some(lines) = whole(lines, writing) {
                let _busy = place.busy();
                attach::serve(lines, request, (&peer, &hall.dispatcher), &budget).await;
            }
        }
        Err(Unwritten::Slow(piece)) => {
            let why = too_slow();
            hall.refusals.note(&source, Fate::Dropped, &why.message);
            // Nothing more is kept for it than a client may always have.
            if piece.bytes.len() <= OWN {
                let told = tell_why(&mut writing, piece.bytes, why);
                let _ = tokio::time::timeout(LINGER, told).await;
            }
        }
    }
}

fn too_slow() -> RpcError {
    let patience = humantime::format_duration(WRITE_PATIENCE);
    let text = format!("it did not read for {patience} what it had asked for");
    RpcError::new(Fault::TooSlow, text)
}

/// The rest of a line that the client has in part, and why it is the last but one.
async fn tell_why(writing: &mut OwnedWriteHalf, mut rest: Bytes, why: RpcError) -> io::Result<()> {
    write_rest(writing, &mut rest).await?;
    let why = RpcError {
        message: format!("dropped: {}", why.message),
        ..why
    };
    let line = Line::answer(Value::Null, Err(why.into()));
    writing.write_all(&line.bytes()).await
}

/// Both ways of a connection again, with what was read and not yet used.
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

/// Why something was not written.
enum Unwritten {
    Gone,
    /// The client does not read; this is left of the line that it has in part.
    Slow(OutboxPiece),
}

/// Until nobody can send an answer any more.
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

/// What is still to be written stays in `rest`, also where this is not waited for to the end.
async fn write_rest(writing: &mut OwnedWriteHalf, rest: &mut Bytes) -> io::Result<()> {
    while !rest.is_empty() {
        let count = writing.write(rest).await?;
        rest.advance(count);
    }
    Ok(())
}

/// Until the client has no more requests, or asks to be attached: then the connection is no longer one of lines.
async fn read(lines: &mut Lines, connection: Connection, answers: Outbox) -> Option<Request> {
    let mut requests = JoinSet::new();
    let source = ConnectionSource::from(&connection.peer.origin);
    let turns = connection.hall.heavy.turns(source, answers.clone());
    let (mut is_silent, mut has_asked) = (true, false);
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = tokio::time::sleep(SILENT_LIMIT), if is_silent => {
                return farewell(said_nothing(), &answers).await;
            }
            () = connection.place.is_taken() => {
                return farewell(places::made_place(), &answers).await;
            }
            () = connection.hall.ending.cancelled() => {
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
            connection.hall.unasked().asked(pid);
        }
        if connection.in_need
            && let Err(refusal) = reserve::check(&request.method)
        {
            return farewell(refusal, &answers).await;
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
/// client comes from is looked up at once, before it can end and another process take its id. If there is no descriptor
/// for that, the reserve is given free; the second value says so.
async fn identify(stream: &UnixStream, hall: &Hall) -> Result<(Peer, bool), String> {
    let mine = rustix::process::geteuid().as_raw();
    let told = stream
        .peer_cred()
        .map_err(|error| format!("its user can't be told: {error}"))?;
    if told.uid() != mine {
        return Err(format!("it belongs to uid {}", told.uid()));
    }
    let marks = hall.dispatcher.marks();
    let look = || peer::origin(told.pid(), &marks, &peer::Proc::default());
    let mut in_need = hall.reserve.is_in_use();
    let mut origin = look();
    if matches!(origin, PeerOrigin::Unseen(_)) && hall.reserve.lend() {
        in_need = true;
        origin = look();
    }
    // Another look, or a file that is written, has the last descriptors for a moment.
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

/// A line that is no request gets an answer that says so; after one that is too long the connection ends, since
/// nobody knows where the next begins.
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
            return farewell(request_lines::no_allowance(), answers).await;
        }
        Err(LinesCodecError::Io(_)) => return None,
    };
    let _ = answers.send(fault.bytes()).await;
    None
}

/// The last line of a connection: an error that answers no request.
async fn farewell(error: RpcError, answers: &Outbox) -> Option<Request> {
    let line = Line::answer(Value::Null, Err(error.into()));
    // One that has gone need not be told.
    let _ = answers.send(line.bytes()).await;
    None
}

fn said_nothing() -> RpcError {
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
        hall,
        gone,
        subscriptions,
        ..
    } = connection;
    let peer = peer.asking(&request);
    let call = Call::new(&hall.dispatcher, &peer, &gone, &subscriptions, &holding);
    let outcome = if request.method == Events::NAME {
        tokio::select! {
            // In a box, since other requests must not be as large while they wait.
            subscribed = Box::pin(subscribe(call, &request, &answers)) => match subscribed {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            () = hall.ending.cancelled() => return,
        }
    } else {
        let run = async {
            pause::fault(Moment::Asked);
            call.run(&request.method, request.params.clone()).await
        };
        // Whoever asked is told, and does not wait for an answer that never comes.
        let answer = AssertUnwindSafe(run).catch_unwind().await;
        answer.unwrap_or_else(|_| Err(panicked(&request.method)))
    };
    let line = Line::answer(request.id.clone(), outcome.map_err(ErrorObject::from));
    if answers.try_send(line.bytes().into(), MAX_UNREAD) == Err(Refused::NoRoom) {
        let line = Line::answer(request.id, Err(holding.no_room().into()));
        holding.let_go();
        // One that has gone needs no answer.
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
