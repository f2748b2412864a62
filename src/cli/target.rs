//! Which daemon a command talks to.

use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::up;
use crate::config;
use crate::control::client::{CallError, Client};
use crate::control::protocol::{Nothing, Ping, Pong};
use crate::paths::PathError;
use crate::slot::record::Record;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a socket in the runtime directory may take to say who it is, before it is passed over.
const DISCOVERY_LIMIT: Duration = Duration::from_secs(2);

/// Where the daemon of a config is, and where it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub config: PathBuf,
    pub socket: PathBuf,
    pub logs: PathBuf,
}

/// `--socket`, `$MISSIOND_SOCKET`, the one of `-c` or `$MISSIOND_CONFIG`, else the only one that answers.
pub async fn socket(context: &Context) -> Result<PathBuf, Failure> {
    if let Some(socket) = context.named_socket() {
        return Ok(crate::paths::fitting(socket)?);
    }
    if let Some(config) = context.named_config() {
        return match place(context, config) {
            Ok(place) => Ok(place.socket),
            Err(failure) => running_with(context, config, failure)
                .await
                .map(|(socket, _)| socket),
        };
    }
    let Found {
        mut answering,
        silent,
    } = found(context).await;
    match answering.len() {
        0 => match silent.first() {
            Some(socket) => Err(is_silent(socket)),
            None => Err(no_daemon(context, "no daemon answers")),
        },
        1 => Ok(answering.remove(0).0),
        several => {
            let failure = Failure::usage(format!("{several} daemons answer: say which one"));
            let names: Vec<String> = answering.iter().map(named).collect();
            Err(failure.next(names.join("\n")))
        }
    }
}

/// The same for what needs no slots: where nothing is named and there is no config at all, a daemon is started.
pub async fn socket_for_sessions(context: &Context) -> Result<PathBuf, Failure> {
    let failure = match socket(context).await {
        Err(failure) if failure.blame == Blame::NoDaemon => failure,
        found => return found,
    };
    match no_config(context) {
        Some(wanted) => up::for_sessions(context, wanted).await,
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
        Some((config, state)) => Record::running_in(&state.join(config.daemon.name)),
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
    Ok(context.env.cwd.join(config_file(context)?))
}

/// What the config says about the daemon; the slots in it are the daemon's concern.
pub fn place(context: &Context, config: &Path) -> Result<Place, Failure> {
    let daemon = config::load_daemon(config)?;
    Ok(Place {
        config: context.env.cwd.join(config),
        socket: context.env.socket_for(&daemon)?,
        logs: daemon.logs,
    })
}

/// Where the logs are: as the named daemon or config says, else as any daemon or config says.
pub async fn logs(context: &Context) -> Result<PathBuf, Failure> {
    if let Some(socket) = context.named_socket()
        && let Ok(pong) = ping(&socket, DISCOVERY_LIMIT).await
    {
        return Ok(pong.logs);
    }
    if let Some(config) = context.named_config() {
        return match place(context, config) {
            Ok(place) => Ok(place.logs),
            Err(failure) => running_with(context, config, failure)
                .await
                .map(|(_, pong)| pong.logs),
        };
    }
    let failure = match socket(context).await {
        Ok(socket) => match ping(&socket, DISCOVERY_LIMIT).await {
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
async fn running_with(
    context: &Context,
    config: &Path,
    failure: Failure,
) -> Result<(PathBuf, Pong), Failure> {
    let config = context.env.cwd.join(config);
    let mut running = found(context).await.answering.into_iter();
    running
        .find(|(_, pong)| same_file(&pong.config, &config))
        .ok_or(failure)
}

pub fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
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
    Failure::new(Blame::NoDaemon, message).next(how_to_start(context))
}

/// How the person gets a daemon.
pub fn how_to_start(context: &Context) -> String {
    match (context.named_config(), context.env.config_file(None)) {
        (Some(named), _) => format!("start one with: missiond up -c {}", named.display()),
        (None, Ok(_)) => "start one with: missiond up".to_owned(),
        (None, Err(PathError::NoConfig { here: None, .. })) if sessions_left(context) > 0 => {
            "its sessions live on; bring them back with: missiond up".to_owned()
        }
        (None, Err(PathError::NoConfig { here: None, .. })) => {
            "write a config and start one with: missiond init && missiond up\n\
             or make a session, which needs no config: missiond spawn"
                .to_owned()
        }
        (None, Err(_)) => "start one with: missiond up -c slots.toml".to_owned(),
    }
}

fn is_silent(socket: &Path) -> Failure {
    let socket = socket.display();
    Failure::timed_out(format!("a daemon listens at {socket} and does not answer")).next(
        "it may be stopped, or have no file descriptors left: missiond.log in its log directory may say",
    )
}

/// The daemons in the runtime directory.
#[derive(Default)]
struct Found {
    /// Those that say who they are.
    answering: Vec<(PathBuf, Pong)>,
    /// Those that took the question and said nothing.
    silent: Vec<PathBuf>,
}

async fn found(context: &Context) -> Found {
    let mut found = Found::default();
    for socket in context.env.all_sockets() {
        match ping(&socket, DISCOVERY_LIMIT).await {
            Ok(pong) => found.answering.push((socket, pong)),
            Err(CallError::Silent(_)) => found.silent.push(socket),
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

impl From<config::ConfigError> for Failure {
    fn from(error: config::ConfigError) -> Failure {
        Failure::usage(error.in_short()).next(error.to_string())
    }
}
