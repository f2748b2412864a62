//! Which daemon a command talks to.

use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::up;
use crate::config;
use crate::control::client::{CallError, Client};
use crate::control::identity::Wanted;
use crate::control::requests::Ping;
use crate::core::model::{Nothing, Pong};
use crate::core::text::diagnostic::ConfigError;
use crate::core::text::quoting::quoted;
use crate::daemon::Holder;
use crate::os::files::same_file;
use crate::os::paths::PathError;
use crate::session::SessionRecord;
use crate::shim;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::net::UnixStream;

/// How long a socket in the runtime directory may take to say who it is, before it is passed over.
const DISCOVERY_LIMIT: Duration = Duration::from_secs(2);

/// How long a daemon that lives may need to make its socket again.
const MADE_AGAIN: Duration = Duration::from_secs(5);
/// Between two looks for it.
const LOOK: Duration = Duration::from_millis(50);

/// Where the daemon of a config is, and where it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonPlace {
    pub config: PathBuf,
    pub socket: PathBuf,
    pub logs: PathBuf,
}

/// Where a command connects, and which daemon has to answer there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub socket: PathBuf,
    pub wanted: Wanted,
    /// A daemon took a connection there a moment ago.
    pub was_there: bool,
}

impl Target {
    /// Whoever answers at this socket.
    pub fn at(socket: PathBuf) -> Target {
        Target {
            socket,
            wanted: Wanted::AtSocket,
            was_there: true,
        }
    }
}

/// The daemon of `--socket`, `$MISSIOND_SOCKET`, the one of `-c` or `$MISSIOND_CONFIG`, else the only one that answers.
pub async fn find(context: &Context) -> Result<Target, Failure> {
    if let Some(socket) = context.named_socket() {
        let (socket, wanted) = (crate::os::paths::fitting(socket)?, wanted(context));
        return Ok(Target {
            socket,
            wanted,
            was_there: false,
        });
    }
    if let Some(config) = context.named_config() {
        return of_config(context, config).await;
    }
    let FoundDaemon {
        mut answering,
        silent,
        full,
        mut lost,
    } = found(context).await;
    match answering.len() {
        0 => match (full, silent.first()) {
            (Some(full), _) => Err(full.into()),
            (None, Some(socket)) => Err(is_silent(socket)),
            (None, None) if lost.len() == 1 => Ok(Target::at(lost.remove(0))),
            // Whoever connects waits until its socket is there again.
            (None, None) => match living(context, |_| true) {
                Some(holder) => Ok(Target::at(holder.socket)),
                None => Err(no_daemon(context, "no daemon answers")),
            },
        },
        1 => Ok(Target::at(answering.remove(0).0)),
        several => {
            let failure = Failure::usage(format!("{several} daemons answer: say which one"));
            let names: Vec<String> = answering.iter().map(named).collect();
            Err(failure.next(names.join("\n")))
        }
    }
}

/// The daemon whose config is named, where its address is known: a flag beats the environment, so that
/// `$MISSIOND_CONFIG` says nothing about `--socket`.
fn wanted(context: &Context) -> Wanted {
    let config = match (&context.flags.socket, &context.flags.config) {
        (Some(_), None) => None,
        _ => context.named_config(),
    };
    config.map_or(Wanted::AtSocket, |config| {
        Wanted::Config(context.env.cwd.join(config))
    })
}

/// The daemon of a config is at the config's socket, unless the config has changed since, or the daemon was started with
/// a socket of its own.
pub async fn of_config(context: &Context, config: &Path) -> Result<Target, Failure> {
    let wanted = Wanted::Config(context.env.cwd.join(config));
    let place = place(context, config);
    if let Ok(place) = &place {
        let usual = Target {
            socket: place.socket.clone(),
            wanted: wanted.clone(),
            was_there: true,
        };
        match ping(&usual.socket, DISCOVERY_LIMIT).await {
            Ok(pong) if wanted.check(&usual.socket, &pong).is_ok() => return Ok(usual),
            Err(CallError::Silent(_) | CallError::Lost(_)) => return Ok(usual),
            Err(error) if error.is_full() => return Ok(usual),
            _ => {}
        }
    }
    let running = running_with(context, config).await;
    let running = running.map(|(socket, _)| socket).or_else(|| {
        let living = living(context, |holder| same_file(&holder.config, config));
        living.map(|holder| holder.socket)
    });
    let was_there = running.is_some();
    // Whoever connects is told who answers there, or that nobody does.
    let socket = match running {
        Some(socket) => socket,
        None => place?.socket,
    };
    Ok(Target {
        socket,
        wanted,
        was_there,
    })
}

/// The same for what needs no slots: where nothing is named and there is no config at all, a daemon is started.
pub async fn find_for_sessions(context: &Context) -> Result<Target, Failure> {
    let failure = match find(context).await {
        Err(failure) if failure.blame == Blame::NoDaemon => failure,
        found => return found,
    };
    match no_config(context) {
        Some(config) => up::for_sessions(context, config).await.map(Target::at),
        None => Err(failure),
    }
}

/// The config that would be taken, where none is named and there is none at all.
pub fn no_config(context: &Context) -> Option<PathBuf> {
    if context.named_config().is_some() || context.named_socket().is_some() {
        return None;
    }
    match context.env.config_file(None) {
        Err(PathError::NoConfig { wanted, here: None }) => Some(wanted),
        _ => None,
    }
}

/// How many sessions live on that the daemon of sessions alone has left behind.
pub fn sessions_left(context: &Context) -> usize {
    let daemon = no_config(context).and_then(|file| config::for_sessions_alone(&file).ok());
    let state = context.env.state_dir().ok();
    match daemon.zip(state) {
        Some((config, state)) => SessionRecord::running_in(&state.join(config.daemon.name)),
        None => 0,
    }
}

fn named((socket, pong): &(PathBuf, Pong)) -> String {
    let (socket, config) = (socket.display(), pong.config.display());
    format!("--socket {socket}   ({}, {config})", pong.name)
}

/// The config that is meant, as it was named.
pub fn config_file(context: &Context) -> Result<PathBuf, Failure> {
    Ok(context.env.config_file(context.flags.config.as_deref())?)
}

/// The config of a daemon that is to be started.
pub fn config_to_run(context: &Context) -> Result<PathBuf, Failure> {
    let file = config_file(context).map_err(|failure| match ran_last(context) {
        Some(last) if context.named_config().is_none() => {
            let next = failure.next.clone().unwrap_or_default();
            let last = up_with(&last);
            failure.next(format!("the daemon that ran last: {last}\n{next}"))
        }
        _ => failure,
    })?;
    Ok(context.env.cwd.join(file))
}

/// What the config says about the daemon; the slots in it are the daemon's concern.
pub fn place(context: &Context, config: &Path) -> Result<DaemonPlace, Failure> {
    let daemon = config::load_daemon(config)?;
    Ok(DaemonPlace {
        config: context.env.cwd.join(config),
        socket: daemon.socket_in(&context.env)?,
        logs: daemon.logs,
    })
}

/// Where the logs are: as the named daemon or config says, else as any daemon or config says.
pub async fn logs(context: &Context) -> Result<PathBuf, Failure> {
    if let Some(socket) = context.named_socket()
        && let Ok(pong) = ping(&socket, DISCOVERY_LIMIT).await
    {
        wanted(context).check(&socket, &pong)?;
        return Ok(pong.logs);
    }
    if let Some(config) = context.named_config() {
        return match place(context, config) {
            Ok(place) => Ok(place.logs),
            Err(failure) => match running_with(context, config).await {
                Some((_, pong)) => Ok(pong.logs),
                None => Err(failure),
            },
        };
    }
    let failure = match find(context).await {
        Ok(target) => match ping(&target.socket, DISCOVERY_LIMIT).await {
            Ok(pong) => return Ok(pong.logs),
            Err(error) => unreached(context, error),
        },
        Err(failure) => failure,
    };
    match config_to_run(context) {
        Ok(config) => Ok(place(context, &config)?.logs),
        Err(_) if failure.blame == Blame::NoDaemon => Err(Failure {
            next: Some("say whose logs: add -c slots.toml".into()),
            message: "no daemon answers and no config says where the logs are".into(),
            ..failure
        }),
        Err(_) => Err(failure),
    }
}

/// The daemon that was started with this config. What is wrong with the file by now must not keep anybody from it.
pub async fn running_with(context: &Context, config: &Path) -> Option<(PathBuf, Pong)> {
    let config = context.env.cwd.join(config);
    let mut running = found(context).await.answering.into_iter();
    running.find(|(_, pong)| same_file(&pong.config, &config))
}

/// A daemon that lives, by its lock, whatever became of its socket.
pub fn living(context: &Context, is_wanted: impl Fn(&Holder) -> bool) -> Option<Holder> {
    let locks = context.env.all_locks();
    let mut living = locks.iter().filter_map(|lock| Holder::living(lock));
    living.find(is_wanted)
}

/// Waits until the daemon that lives and is to listen at this socket does so: it makes a socket again that was removed.
pub async fn made_again(context: &Context, socket: &Path) -> Result<(), Failure> {
    let given_up = Instant::now() + MADE_AGAIN;
    while let Some(holder) = living(context, |holder| holder.socket == socket) {
        if UnixStream::connect(socket).await.is_ok() {
            break;
        }
        if Instant::now() >= given_up {
            return Err(is_missing(&holder));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Why the daemon that lives and is to listen at this socket can't: something else is in the place of the socket, or of its
/// directory. It is not waited for, since a person has to move it away.
pub fn out_of_place(context: &Context, socket: &Path) -> Option<Failure> {
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    let mut above = socket.ancestors().skip(1);
    let nearest = above.find(|above| is_there(above))?;
    let is_taken = !nearest.is_dir()
        || socket
            .symlink_metadata()
            .is_ok_and(|found| !found.file_type().is_socket());
    let holder = living(context, |holder| holder.socket == socket);
    holder.filter(|_| is_taken).as_ref().map(is_missing)
}

fn is_missing(holder: &Holder) -> Failure {
    let Holder {
        pid,
        socket,
        config,
    } = holder;
    let directory = socket.parent().unwrap_or(Path::new("/"));
    let shown = quoted(&directory.display().to_string());
    let is_in_the_way = |found: Metadata| !found.file_type().is_socket();
    let way = match directory.symlink_metadata() {
        Ok(_) if socket.symlink_metadata().is_ok_and(is_in_the_way) => {
            let socket = quoted(&socket.display().to_string());
            format!(
                "move {socket} away: it is not a socket, and stands in the place of the daemon's"
            )
        }
        Ok(found) if found.is_dir() => {
            format!("see what the daemon says, and whether you can write {shown}")
        }
        Ok(_) => format!("move {shown} away: it has to be a directory"),
        Err(_) => format!("make the directory {shown}, for you alone"),
    };
    let (socket, config) = (socket.display(), config.display());
    let text = format!(
        "a daemon runs, pid {pid}, with {config}, and its socket {socket} was removed and can't be made again"
    );
    Failure::new(Blame::NoDaemon, text).next(format!(
        "{way}; the daemon makes its socket again within seconds\nor end it with its slots: kill {pid}"
    ))
}

/// Who answers at this socket, if anybody does within this time.
pub async fn ping(socket: &Path, limit: Duration) -> Result<Pong, CallError> {
    let mut client = Client::connect(socket).await?;
    tokio::time::timeout(limit, client.call::<Ping>(Nothing {}))
        .await
        .map_err(|_| CallError::Silent(limit))?
}

pub fn unreached(context: &Context, error: CallError) -> Failure {
    match error {
        CallError::NotRunning(_) => no_daemon(context, &error.to_string()),
        error => error.into(),
    }
}

fn no_daemon(context: &Context, message: &str) -> Failure {
    let failure = Failure::new(Blame::NoDaemon, message);
    match running_alone(context) {
        Some(next) => failure.next(next),
        None => failure.next(how_to_start(context)),
    }
}

/// The slots and sessions that run on although their daemon was killed, and what takes them over. If the command names a
/// config, only those of that config count.
fn running_alone(context: &Context) -> Option<String> {
    let named = context.named_config();
    let named = named.map(|named| context.env.cwd.join(named));
    let is_meant = |config: &Path| match &named {
        Some(named) => same_file(config, named),
        None => context.named_socket().is_none() && config.is_file(),
    };
    let state = context.env.state_dir().ok()?;
    let is_ours = |keeper: &shim::ShimKeeper| keeper.home.starts_with(&state);
    let alone = shim::Handle::kept_by(|keeper| is_ours(keeper) && is_meant(&keeper.config));
    let living = alone.ok()?;
    let config = living.first()?.keeper().config.clone();
    if self::living(context, |holder| same_file(&holder.config, &config)).is_some() {
        return None;
    }
    let same = living.iter().filter(|shim| shim.keeper().config == config);
    let mut names: Vec<&str> = same.map(shim::Handle::slot).collect();
    names.sort_unstable();
    let default = context.env.config_file(None);
    let up = match default.is_ok_and(|default| same_file(&default, &config)) && named.is_none() {
        true => "missiond up".to_owned(),
        false => up_with(&config),
    };
    let (run, them) = match names.len() {
        1 => ("1 slot or session runs", "it"),
        _ => ("slots and sessions run", "them"),
    };
    let count = if names.len() == 1 {
        String::new()
    } else {
        format!("{} ", names.len())
    };
    let names = names.join(", ");
    Some(format!(
        "{count}{run} on without a daemon ({names}): {up} takes {them} over"
    ))
}

/// How the person gets a daemon.
pub fn how_to_start(context: &Context) -> String {
    // A config says which socket its daemon has; the socket alone starts nothing.
    if let (Some(socket), None) = (&context.flags.socket, &context.flags.config) {
        let others = "without --socket, missiond finds the daemon that runs";
        let socket = quoted(&socket.display().to_string());
        return format!(
            "{others}\nor start one there: missiond up --socket {socket} -c slots.toml"
        );
    }
    if let Some(named) = context.named_config() {
        return format!("start one with: {}", up_with(named));
    }
    let default = context.env.config_file(None);
    let is_default = |file: &PathBuf| default.as_ref().is_ok_and(|it| same_file(file, it));
    let last = ran_last(context).filter(|file| !is_default(file));
    match (last, default) {
        (Some(last), Ok(_)) => {
            let last = up_with(&last);
            format!("start one with: missiond up\nor the one that ran last: {last}")
        }
        (Some(last), Err(_)) => format!("the last one can be started with: {}", up_with(&last)),
        (None, Ok(_)) => "start one with: missiond up".to_owned(),
        (None, Err(PathError::NoConfig { here: None, .. })) if sessions_left(context) > 0 => {
            "its sessions live on; bring them back with: missiond up".to_owned()
        }
        (None, Err(PathError::NoConfig { here: None, .. })) => {
            "write a config and start one with: missiond init && missiond up\n\
             or make a session, which needs no config: missiond session spawn"
                .to_owned()
        }
        (None, Err(_)) => "start one with: missiond up -c slots.toml".to_owned(),
    }
}

fn up_with(config: &Path) -> String {
    format!("missiond up -c {}", quoted(&config.display().to_string()))
}

/// The config of the daemon that was started last, by what stands in its lock, if the config is still there.
fn ran_last(context: &Context) -> Option<PathBuf> {
    let locks = context.env.all_locks().into_iter();
    let dated = locks.filter_map(|lock| {
        let began = lock.metadata().and_then(|file| file.modified()).ok()?;
        Some((began, Holder::read(&lock)?.config))
    });
    let there = dated.filter(|(_, config)| config.is_file());
    there.max().map(|(_, config)| config)
}

fn is_silent(socket: &Path) -> Failure {
    let socket = socket.display();
    Failure::timed_out(format!("a daemon listens at {socket} and does not answer")).next(
        "it may be stopped, or have no file descriptors left: missiond.log in its log directory may say",
    )
}

/// The daemons in the runtime directory.
#[derive(Default)]
struct FoundDaemon {
    /// Those that say who they are.
    answering: Vec<(PathBuf, Pong)>,
    /// Those that took the question and said nothing.
    silent: Vec<PathBuf>,
    /// What one said that has no place for this client.
    full: Option<CallError>,
    /// Those that took the connection and ended.
    lost: Vec<PathBuf>,
}

/// Those in the runtime directory, and those that a daemon of another place has written into its lock. A socket that two paths
/// lead to, as over a link, counts once.
fn sockets(context: &Context) -> BTreeSet<PathBuf> {
    let locks = context.env.all_locks();
    let elsewhere = locks.iter().filter_map(|lock| Holder::read(lock));
    let elsewhere = elsewhere.map(|holder| holder.socket);
    let usual = context.env.all_sockets().into_iter();
    let mut known = BTreeSet::new();
    let is_new = |socket: &PathBuf| match std::fs::metadata(socket) {
        Ok(file) => known.insert((file.dev(), file.ino())),
        Err(_) => true,
    };
    usual.chain(elsewhere).filter(is_new).collect()
}

async fn found(context: &Context) -> FoundDaemon {
    let mut found = FoundDaemon::default();
    for socket in sockets(context) {
        match ping(&socket, DISCOVERY_LIMIT).await {
            Ok(pong) => found.answering.push((socket, pong)),
            Err(CallError::Silent(_)) => found.silent.push(socket),
            Err(CallError::Lost(_)) => found.lost.push(socket),
            Err(error) if error.is_full() => found.full = Some(error),
            Err(_) => {}
        }
    }
    found
}

impl From<PathError> for Failure {
    /// Its first line says what is wrong, the others what to do.
    fn from(error: PathError) -> Failure {
        let text = error.to_string();
        match text.split_once('\n') {
            None => Failure::usage(text),
            Some((message, next)) => {
                let next: Vec<&str> = next.lines().map(str::trim).collect();
                Failure::usage(message).next(next.join("\n"))
            }
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::usage(error.in_short()).next(error.to_string())
    }
}
