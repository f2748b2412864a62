//! The daemon's place in the file system: its directories, its locks and its socket.

use super::{DaemonError, Holder, service};
use crate::config::Config;
use crate::files;
use crate::paths::{self, Env};
use crate::trusted_file::Trusted;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::net::{UnixListener, UnixStream};

/// Between fork and exec a process has the locks of its parent: moments, on a loaded machine a little more.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

/// Held while the daemon lives; dropping it gives the place free.
#[derive(Debug)]
pub struct Door {
    socket: PathBuf,
    listener: Option<UnixListener>,
    /// Device and inode of the socket file: a newer daemon's socket is not ours to remove, nor is the service
    /// manager's.
    own: Option<(u64, u64)>,
    /// One daemon per name and per log directory. The kernel lets go of them when the process ends.
    _locks: [File; 2],
}

impl Door {
    pub async fn open(config: &Config, env: &Env) -> Result<Door, DaemonError> {
        let logs = &config.daemon.logs;
        log_directory(logs, env)?;
        let socket = env
            .socket_for(&config.daemon)
            .map_err(|error| DaemonError::place("the socket", error))?;
        let runtime = env
            .runtime_dir()
            .map_err(|error| DaemonError::place("the runtime directory", error))?;
        private("the runtime directory", &runtime)?;
        private("the shims' directory", &runtime.join("shims"))?;
        let name_lock = env
            .lock_for(&config.daemon)
            .map_err(|error| DaemonError::place("the lock", error))?;
        let named = format!("a daemon named {}", config.daemon.name);
        let by_name = lock(&name_lock, &named, &socket).await?;
        let logging = format!("a daemon that logs to {}", logs.display());
        let by_logs = lock(&paths::log_lock_for(&config.daemon), &logging, &socket).await?;
        let holder = Holder {
            pid: std::process::id(),
            socket: socket.clone(),
            config: config.file.clone(),
        };
        for lock in [&by_name, &by_logs] {
            let written = holder.write(lock);
            written.map_err(|error| DaemonError::place("the lock", error))?;
        }
        let (listener, own) = match service::passed_listener(&socket)? {
            Some(passed) => (passed, None),
            None => (listen(&socket, env).await?, identity(&socket)),
        };
        Ok(Door {
            socket,
            listener: Some(listener),
            own,
            _locks: [by_name, by_logs],
        })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The listener, once.
    pub fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if self.own.is_some() && identity(&self.socket) == self.own {
            let _ = std::fs::remove_file(&self.socket);
        }
    }
}

fn identity(socket: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(socket)
        .ok()
        .map(|meta| (meta.dev(), meta.ino()))
}

fn private(what: &str, directory: &Path) -> Result<(), DaemonError> {
    paths::ensure_private_dir(directory).map_err(|error| DaemonError::place(what, error))
}

/// Made for this user alone where it is missing. One that exists keeps its mode, since other things may lie in it; the
/// files that are written there are closed to others. It is refused where others could write it: what is in it may be
/// theirs.
fn log_directory(directory: &Path, env: &Env) -> Result<(), DaemonError> {
    let what = "the log directory";
    let Ok(found) = std::fs::symlink_metadata(directory) else {
        return private(what, directory);
    };
    no_link(what, directory, &found)?;
    ours_to_write(what, "logs", directory, &found, env)
}

/// Whoever can write the directory could put a socket of their own in its place.
pub(crate) fn check_socket_directory(directory: &Path, env: &Env) -> Result<(), DaemonError> {
    let what = "the socket's directory";
    let found = std::fs::symlink_metadata(directory);
    let found = found.map_err(|error| DaemonError::place(what, error))?;
    no_link(what, directory, &found)?;
    ours_to_write(what, "socket", directory, &found, env)
}

fn no_link(what: &str, directory: &Path, found: &Metadata) -> Result<(), DaemonError> {
    if !found.is_symlink() {
        return Ok(());
    }
    let shown = directory.display();
    let cause = format!("{shown} is a symbolic link, which may lead elsewhere tomorrow");
    Err(DaemonError::place(what, cause).next("name the directory itself"))
}

fn ours_to_write(
    what: &str,
    key: &str,
    directory: &Path,
    found: &Metadata,
    env: &Env,
) -> Result<(), DaemonError> {
    let place = |cause: String| DaemonError::place(what, cause);
    let shown = directory.display();
    if !found.is_dir() {
        return Err(place(format!("{shown} is not a directory")));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        let cause = format!("{shown} belongs to user {}, not to you", found.uid());
        return Err(place(cause).next(format!("set `{key}` in [daemon] to a place of your own")));
    }
    let Some(fault) = Trusted::of_process().fault_of_directory(found) else {
        return Ok(());
    };
    let another = || format!("set `{key}` in [daemon] to a place that only you can write");
    let next = env.close_to_writers(directory).unwrap_or_else(another);
    Err(place(format!("{shown} {fault}")).next(next))
}

/// A lock, not a pid file: it can't be stale. Yet what a daemon was about to start when it was killed holds it for a
/// moment: it is waited for while nobody listens.
async fn lock(path: &Path, whose: &str, socket: &Path) -> Result<File, DaemonError> {
    let place = |error: std::io::Error| DaemonError::place(path.display().to_string(), error);
    let file = files::append(path).map_err(place)?;
    let given_up = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::Error(error)) => return Err(place(error)),
            Err(std::fs::TryLockError::WouldBlock) => {}
        }
        if Instant::now() >= given_up || UnixStream::connect(socket).await.is_ok() {
            return Err(DaemonError::Taken {
                what: whose.to_owned(),
                holder: Holder::read(path),
            });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Binds the socket; a stale one is probed before it is replaced.
async fn listen(socket: &Path, env: &Env) -> Result<UnixListener, DaemonError> {
    let place = |error: std::io::Error| DaemonError::place(socket.display().to_string(), error);
    check_socket_directory(socket.parent().unwrap_or(Path::new("/")), env)?;
    if let Ok(found) = socket.symlink_metadata() {
        if !found.file_type().is_socket() {
            let cause = format!("{} is no socket", socket.display());
            return Err(DaemonError::place("the socket", cause)
                .next("move it away, or choose another path for the socket"));
        }
        if UnixStream::connect(socket).await.is_ok() {
            return Err(DaemonError::Taken {
                what: format!("something that answers at {}", socket.display()),
                holder: None,
            });
        }
        std::fs::remove_file(socket).map_err(place)?;
    }
    let listener = UnixListener::bind(socket).map_err(place)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600)).map_err(place)?;
    Ok(listener)
}
