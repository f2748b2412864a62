//! Which daemon a command talks to.

use crate::cli::failure::{Blame, Failure};
use crate::cli::flags::Flags;
use crate::control::client::{CallError, Client};
use crate::control::protocol::{Nothing, Ping, Pong};
use etcetera::BaseStrategy;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a socket in the runtime directory may take to say who it is, before it is passed over.
const DISCOVERY_LIMIT: Duration = Duration::from_secs(2);

/// The longest path that fits into a unix socket address, its final NUL apart.
const SOCKET_PATH_MAX: usize = 107;

/// Where the daemon of a config is, and where it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub config: PathBuf,
    pub socket: PathBuf,
    pub logs: PathBuf,
}

/// `--socket`, `$MISSIOND_SOCKET`, the one of `-c` or `$MISSIOND_CONFIG`, else the only one that answers.
pub async fn socket(flags: &Flags) -> Result<PathBuf, Failure> {
    if let Some(socket) = flags.named_socket() {
        return fitting(socket);
    }
    if let Some(config) = flags.named_config() {
        return Ok(place(&config)?.socket);
    }
    let mut answering = answering().await;
    match answering.len() {
        0 => Err(no_daemon(flags, "no daemon answers")),
        1 => Ok(answering.remove(0).0),
        several => Err(
            Failure::usage(format!("{several} daemons answer: say which one")).next(
                answering
                    .iter()
                    .map(|(socket, pong)| {
                        let (socket, config) = (socket.display(), pong.config.display());
                        format!("--socket {socket}   ({}, {config})", pong.name)
                    })
                    .collect::<Vec<_>>()
                    .join("\n"),
            ),
        ),
    }
}

/// The config of a daemon that is to be started. Never `./slots.toml` unasked: a cloned repository must
/// not bring its own approvals.
pub fn config_to_run(flags: &Flags) -> Result<PathBuf, Failure> {
    if let Some(config) = flags.named_config() {
        return absolute(&config);
    }
    let default = default_config()?;
    if default.is_file() {
        return Ok(default);
    }
    let missing = Failure::usage(format!("no config: {} does not exist", default.display()));
    Err(missing.next(if Path::new("slots.toml").is_file() {
        "there is a slots.toml here; if you trust it and its policies: missiond up -c slots.toml"
    } else {
        "name one with: missiond up -c FILE"
    }))
}

/// What the config says about the daemon; the slots in it are the daemon's concern.
pub fn place(config: &Path) -> Result<Place, Failure> {
    let config = absolute(config)?;
    let text = std::fs::read_to_string(&config).map_err(|error| {
        Failure::usage(format!(
            "cannot read the config {}: {error}",
            config.display()
        ))
        .next("name another with -c FILE, or the daemon's socket with --socket PATH")
    })?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        Failure::usage(format!("{}: {}", config.display(), error.message()))
            .next("to reach a daemon that runs: --socket PATH")
    })?;
    let directory = config.parent().unwrap_or(Path::new("/")).to_path_buf();
    let daemon = |key| table.get("daemon")?.get(key)?.as_str();
    let socket = match daemon("socket") {
        Some(path) => directory.join(path),
        None => runtime_dir()?.join(format!("{}.sock", daemon("name").unwrap_or("missiond"))),
    };
    Ok(Place {
        socket: fitting(socket)?,
        logs: directory.join(daemon("logs").unwrap_or("logs")),
        config,
    })
}

/// Who answers at this socket, if anybody does.
pub async fn ping(socket: &Path) -> Result<Pong, CallError> {
    Client::connect(socket)
        .await?
        .call::<Ping>(Nothing {})
        .await
}

pub fn unreached(flags: &Flags, error: CallError) -> Failure {
    match error {
        CallError::NotRunning(_) => no_daemon(flags, &error.to_string()),
        error => error.into(),
    }
}

fn no_daemon(flags: &Flags, message: &str) -> Failure {
    let config = flags
        .named_config()
        .map_or("slots.toml".into(), |config| config.display().to_string());
    Failure::new(Blame::NoDaemon, message).next(format!("start one with: missiond up -c {config}"))
}

/// The daemons in the runtime directory that say who they are.
async fn answering() -> Vec<(PathBuf, Pong)> {
    let mut found = Vec::new();
    for socket in sockets() {
        let answer = tokio::time::timeout(DISCOVERY_LIMIT, ping(&socket)).await;
        if let Ok(Ok(pong)) = answer {
            found.push((socket, pong));
        }
    }
    found
}

/// What is no socket, or cannot be read, cannot answer either.
fn sockets() -> Vec<PathBuf> {
    let entries = runtime_dir().ok().and_then(|dir| dir.read_dir().ok());
    let mut sockets: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "sock")
        })
        .collect();
    sockets.sort();
    sockets
}

fn runtime_dir() -> Result<PathBuf, Failure> {
    let base = strategy()?;
    let runtime = base.runtime_dir().or_else(|| base.state_dir());
    runtime.map(|dir| dir.join("missiond")).ok_or_else(|| {
        Failure::failed("there is no directory for sockets").next("set HOME or XDG_RUNTIME_DIR")
    })
}

fn default_config() -> Result<PathBuf, Failure> {
    Ok(strategy()?.config_dir().join("missiond/slots.toml"))
}

fn strategy() -> Result<etcetera::base_strategy::Xdg, Failure> {
    etcetera::base_strategy::Xdg::new()
        .map_err(|error| Failure::failed(format!("no home directory: {error}")).next("set HOME"))
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

fn fitting(socket: PathBuf) -> Result<PathBuf, Failure> {
    let length = socket.as_os_str().len();
    if length <= SOCKET_PATH_MAX {
        return Ok(socket);
    }
    Err(Failure::usage(format!(
        "the socket path is too long: {length} bytes, at most {SOCKET_PATH_MAX} ({})",
        socket.display()
    ))
    .next("set a shorter `socket` under [daemon] in the config"))
}
