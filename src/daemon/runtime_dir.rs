//! The daemon's paths in the file system: its directories, its locks and its socket.

use super::places::Restored;
use super::{DaemonError, Holder, service};
use crate::audit;
use crate::config::{self, Config};
use crate::os::daemon_lock::is_daemon;
use crate::os::files;
use crate::os::paths::{self, Env};
use crate::os::trusted_file::Trusted;
use rustix::fs::{Access, access};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::net::{UnixListener, UnixStream};

/// How long to wait for a lock. Between fork and exec a process has the locks of its parent: a moment, or a little more
/// on a loaded machine.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

/// The directories, locks and socket of a running daemon; dropping it frees them.
#[derive(Debug)]
pub struct RuntimeDir {
    socket: PathBuf,
    runtime: PathBuf,
    env: Env,
    listener: Option<UnixListener>,
    /// Device and inode of the socket file. The socket of a newer daemon or of the service manager is not ours to
    /// remove.
    own: Option<(u64, u64)>,
    holder: Holder,
    /// One daemon per name and per log directory. The kernel releases the locks when the process ends.
    locks: [Lock; 2],
}

/// A file that this daemon has locked.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    file: File,
}

const LOG_DIRECTORY: &str = "the log directory";

impl RuntimeDir {
    pub async fn open(config: &Config, env: &Env) -> Result<RuntimeDir, DaemonError> {
        let logs = &config.daemon.logs;
        log_directory(logs, env)?;
        let socket = config
            .daemon
            .socket_in(env)
            .map_err(|error| DaemonError::place("the socket", error))?;
        let runtime = env
            .runtime_dir()
            .map_err(|error| DaemonError::place("the runtime directory", error))?;
        private("the runtime directory", &runtime)?;
        private("the shims' directory", &runtime.join("shims"))?;
        let name_lock = config
            .daemon
            .lock_in(env)
            .map_err(|error| DaemonError::place("the lock", error))?;
        let named = format!("a daemon named {}", config.daemon.name);
        private(
            "the state directory",
            name_lock.parent().unwrap_or(Path::new("/")),
        )?;
        let by_name = lock(name_lock, &named, &socket).await?;
        let logging = format!("a daemon that logs to {}", logs.display());
        let by_logs = lock(config.daemon.log_lock(), &logging, &socket).await?;
        let holder = Holder::this_process(&socket, &config.file);
        for lock in [&by_name, &by_logs] {
            let written = holder.write(&lock.file);
            written.map_err(|error| DaemonError::file(&lock.path, &error))?;
        }
        let (listener, own) = match service::passed_listener(&socket)? {
            Some(passed) => (passed, None),
            None => (listen(&socket, env).await?, identity(&socket)),
        };
        Ok(RuntimeDir {
            socket,
            runtime,
            env: env.clone(),
            listener: Some(listener),
            own,
            holder,
            locks: [by_name, by_logs],
        })
    }

    /// Makes the log directory again if it is missing, with the checks of a start.
    pub fn log_directory(&self, directory: &Path) -> Result<(), DaemonError> {
        log_directory(directory, &self.env)
    }

    /// The directory of the sockets.
    pub fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// Takes lost locks again and makes a lost socket again, once their directories exist.
    pub async fn restore(&mut self, restored: &mut Restored) {
        for lock in &mut self.locks {
            if let Err(error) = lock.restore(&self.holder) {
                let shown = lock.path.display();
                restored.is_missing(format_args!("the lock {shown}"), &error);
            }
        }
        let found = identity(&self.socket);
        if found.is_some() && (self.own.is_none() || found == self.own) {
            return;
        }
        let shown = self.socket.display();
        if let Some(other_listener) = self.other_listener().await {
            // If it can't be removed, the error of `listen` says so.
            let _ = std::fs::remove_file(&self.socket);
            restored.made.push(format!(
                "process {other_listener} listened at {shown} in place of this daemon, and received what clients sent meanwhile"
            ));
        }
        match listen(&self.socket, &self.env).await {
            Ok(listener) => {
                self.own = identity(&self.socket);
                restored.listener = Some(listener);
                restored.is_made(format_args!("the socket {shown}"));
            }
            Err(error) => restored.is_missing(format_args!("the socket {shown}"), &error),
        }
    }

    /// The process that listens in place of this daemon and is not a daemon: most likely a process in a slot.
    async fn other_listener(&self) -> Option<u32> {
        let stream = UnixStream::connect(&self.socket).await.ok()?;
        let pid = u32::try_from(stream.peer_cred().ok()?.pid()?).ok()?;
        let is_known = is_daemon(&self.env, std::process::id());
        (is_known && !is_daemon(&self.env, pid)).then_some(pid)
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The listener; only the first call returns it.
    pub fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }
}

impl Lock {
    /// Locks the file again if it was removed: a removed file excludes no other daemon.
    fn restore(&mut self, holder: &Holder) -> io::Result<()> {
        if files::identity(&self.file).ok() == identity(&self.path) {
            return Ok(());
        }
        let file = files::append(&self.path)?;
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::Error(error) => error,
            std::fs::TryLockError::WouldBlock => io::Error::other("another daemon has taken it"),
        })?;
        self.file = file;
        holder.write(&self.file)
    }
}

impl Drop for RuntimeDir {
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

/// Makes the log directory for this user alone if it is missing. An existing directory keeps its mode, since other
/// files may be in it; the files that the daemon writes there are closed to others.
fn log_directory(directory: &Path, env: &Env) -> Result<(), DaemonError> {
    check_log_directory(directory, env, &[])?;
    match directory.exists() {
        true => Ok(()),
        false => private(LOG_DIRECTORY, directory),
    }
}

/// Checks that a daemon can log there, and that its starter can write the files in `more`, without making anything. A
/// directory that others could write is refused: its files may be theirs.
pub(crate) fn check_log_directory(
    directory: &Path,
    env: &Env,
    more: &[&str],
) -> Result<(), DaemonError> {
    let checked = match std::fs::symlink_metadata(directory) {
        Ok(found) => no_link(LOG_DIRECTORY, directory, &found)
            .and_then(|()| ours_to_write(LOG_DIRECTORY, "logs", directory, &found, env))
            .and_then(|()| check_log_files(directory, more)),
        Err(_) => check_maker(directory),
    };
    checked.map_err(|error| match error {
        DaemonError::Place { next: None, .. } => {
            error.next("set `logs` in [daemon] to a directory that you can write")
        }
        other => other,
    })
}

/// Checks that the daemon can append to each file that every start opens.
fn check_log_files(directory: &Path, more: &[&str]) -> Result<(), DaemonError> {
    let place = |cause: String| DaemonError::place(LOG_DIRECTORY, cause);
    writable(directory).map_err(place)?;
    for name in [config::LOG_LOCK, audit::FILE].iter().chain(more) {
        let file = directory.join(name);
        let Ok(found) = std::fs::symlink_metadata(&file) else {
            continue;
        };
        let shown = file.display();
        if !found.is_file() {
            return Err(place(format!("{shown} is not a file")).next("move it away"));
        }
        let may = access(&file, Access::READ_OK | Access::WRITE_OK);
        may.map_err(|error| place(format!("{shown}: {error}")))?;
    }
    Ok(())
}

/// Checks whether a missing directory can be made.
fn check_maker(directory: &Path) -> Result<(), DaemonError> {
    let mut above = directory.ancestors().skip(1);
    let there = above.find(|above| above.symlink_metadata().is_ok());
    let there = there.unwrap_or(Path::new("/"));
    let shown = directory.display();
    let cant =
        |why: String| DaemonError::place(LOG_DIRECTORY, format!("can't make {shown}: {why}"));
    match there.is_dir() {
        true => writable(there).map_err(cant),
        false => Err(cant(format!("{} is not a directory", there.display()))),
    }
}

fn writable(directory: &Path) -> Result<(), String> {
    let may = access(directory, Access::WRITE_OK | Access::EXEC_OK);
    may.map_err(|error| format!("{}: {error}", directory.display()))
}

/// Checks the directory of the socket: another user who could write it could put their own socket in its place.
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
    let cause = format!("{shown} is a symbolic link, which may lead elsewhere later");
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

/// Takes a lock. A lock, unlike a pid file, can't be stale. But a program that a daemon was about to start when it was
/// killed holds the lock for a moment, so this waits as long as no daemon listens.
async fn lock(path: PathBuf, whose: &str, socket: &Path) -> Result<Lock, DaemonError> {
    let place = |error: std::io::Error| DaemonError::file(&path, &error);
    let file = files::append(&path).map_err(place)?;
    let given_up = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock { path, file }),
            Err(std::fs::TryLockError::Error(error)) => return Err(place(error)),
            Err(std::fs::TryLockError::WouldBlock) => {}
        }
        if Instant::now() >= given_up || UnixStream::connect(socket).await.is_ok() {
            return Err(DaemonError::Taken {
                what: whose.to_owned(),
                holder: Holder::read(&path),
            });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Binds the socket; a stale one is probed before it is replaced.
async fn listen(socket: &Path, env: &Env) -> Result<UnixListener, DaemonError> {
    let place = |error: std::io::Error| DaemonError::file(socket, &error);
    check_socket_directory(socket.parent().unwrap_or(Path::new("/")), env)?;
    if let Ok(found) = socket.symlink_metadata() {
        if !found.file_type().is_socket() {
            let cause = format!("{} is not a socket", socket.display());
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
