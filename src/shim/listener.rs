//! The listening socket for daemons, and the one current connection.

use super::process::COMM;
use super::wire::{self, Decoder};
use super::{FromShim, Hello, ToShim, handle};
use crate::core::terminal::At;
use crate::os::paths;
use crate::os::process_stat::Stat;
use crate::os::socket::Address;
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most bytes that wait for a slow daemon, in addition to the kernel's buffer (about 200 KB). It is a dozen of the largest
/// reads from the terminal, and small compared to a shim's memory; a daemon that is further behind reads the recording faster
/// than the socket.
const MAX_WAITING: usize = 256 << 10;

/// If more than this waits, the terminal is not read for a while: a program that writes faster than it is drawn is slowed down,
/// as by any terminal, and not cut off from its daemon.
const BEHIND: usize = 64 << 10;

/// A daemon that has read nothing and sent nothing for this long is stopped or stuck, and the program does not wait for it. The
/// kernel reports space in the socket only when three quarters of it have been read, which takes a busy daemon on a loaded
/// machine more than a second or two: so a working daemon also reports that it works ([`ToShim::Taking`]).
const TAKES_WITHIN: Duration = Duration::from_secs(5);

/// A buffer that grew for a burst is freed when it is larger than this.
const KEPT_CAPACITY: usize = 16 << 10;

/// How long a shim listens without a file after a daemon has signalled it. Such a daemon connects within moments.
const BELL: Duration = Duration::from_secs(10);

/// The listening socket; it is removed when this is dropped.
pub(super) struct ShimListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode: the socket of another shim at the same path does not count.
    own: Option<(u64, u64)>,
    /// A second socket without a file, and until when it is open.
    bell: Option<(UnixListener, Instant)>,
}

impl ShimListener {
    /// Opens the socket, and replaces one that nobody listens on any more.
    pub fn open(path: &Path) -> Result<Self, String> {
        check_directory(path)?;
        if let Err(fault) = remove_dead(path) {
            return Err(format!("the socket {} {fault}", path.display()));
        }
        // The socket takes its mode from the umask: this way it never had another one.
        let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
        let bound = Address::of(path).and_then(UnixListener::bind);
        rustix::process::umask(before);
        let listener = bound.and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let cant = |fault| format!("the socket {} can't be opened: {fault}", path.display());
        Ok(Self {
            listener: listener.map_err(cant)?,
            path: path.to_owned(),
            own: identity(path),
            bell: None,
        })
    }

    /// Creates the socket again if it is lost, with its directory.
    pub fn restore(&mut self) -> Result<(), String> {
        if self.is_there() {
            return Ok(());
        }
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        paths::ensure_private_dir(directory).map_err(|fault| fault.to_string())?;
        let mut again = Self::open(&self.path)?;
        again.bell = self.bell.take();
        *self = again;
        Ok(())
    }

    /// A daemon looks for this shim and does not find its socket.
    pub fn rung(&mut self) -> io::Result<()> {
        let listener = match self.bell.take() {
            Some((open, _)) => open,
            None => {
                let name = handle::bell(std::process::id());
                UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?
            }
        };
        listener.set_nonblocking(true)?;
        self.bell = Some((listener, Instant::now() + BELL));
        Ok(())
    }

    pub fn bell(&self) -> Option<&UnixListener> {
        self.bell.as_ref().map(|(listener, _)| listener)
    }

    /// Until when the second socket is open.
    pub fn bell_until(&self) -> Option<Instant> {
        self.bell.as_ref().map(|(_, until)| *until)
    }

    pub fn close_bell(&mut self) {
        self.bell = None;
    }

    /// Whether a daemon can find it.
    pub fn is_there(&self) -> bool {
        self.own.is_some() && identity(&self.path) == self.own
    }

    /// The next waiting daemon. A connection from anybody else is closed without a message.
    pub fn accept(&self) -> Option<ShimPeer> {
        let from_bell = || self.bell()?.accept().ok();
        let (stream, _) = self.listener.accept().ok().or_else(from_bell)?;
        let credentials = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        if credentials.uid != rustix::process::geteuid() {
            return None;
        }
        if is_in_a_slot(credentials.pid) || !is_alive(credentials.pid) {
            return None;
        }
        stream.set_nonblocking(true).ok()?;
        Some(ShimPeer {
            stream,
            decoder: Decoder::default(),
            waiting: Vec::new(),
            sent: 0,
            extra: 0,
            took: Instant::now(),
        })
    }
}

impl Drop for ShimListener {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

impl AsFd for ShimListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// A process in this slot or another one is not a daemon: it would press keys. A daemon that was itself started in a slot has no
/// other shims above it than its own shims have.
fn is_in_a_slot(peer: Pid) -> bool {
    let own = rustix::process::getppid().map_or_else(BTreeSet::new, shims_above);
    // Twice, since a parent may end during the look-up, and leave its child to another.
    let above = [shims_above(peer), shims_above(peer)];
    above.iter().any(|above| !above.is_subset(&own))
}

/// The shims among a process and its ancestors.
fn shims_above(pid: Pid) -> BTreeSet<i32> {
    /// Deeper than any process tree.
    const DEEPEST: usize = 1024;
    let parent = |pid: &i32| Stat::of(pid)?.field(Stat::PARENT)?.parse().ok();
    let line = std::iter::successors(Some(pid.as_raw_nonzero().get()), parent);
    let is_shim = |pid: &i32| Stat::of(pid).is_some_and(|stat| stat.name == COMM);
    line.take_while(|pid| *pid > 0)
        .take(DEEPEST)
        .filter(is_shim)
        .collect()
}

/// A process that has ended since it connected may have passed its connection to anybody.
fn is_alive(pid: Pid) -> bool {
    let stat = Stat::of(pid.as_raw_nonzero());
    rustix::process::test_kill_process(pid).is_ok() && stat.is_none_or(|stat| !stat.has_ended())
}

/// Only the user may be able to reach the socket: the directory is theirs, and closed to others.
fn check_directory(socket: &Path) -> Result<(), String> {
    let directory = socket.parent().unwrap_or(Path::new("/"));
    let shown = directory.display();
    let metadata = std::fs::symlink_metadata(directory)
        .map_err(|fault| format!("the socket's directory {shown} can't be used: {fault}"))?;
    let own = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || metadata.uid() != own || metadata.mode() & 0o077 != 0 {
        return Err(format!(
            "the socket's directory {shown} must be a directory of your own that is closed to others"
        ));
    }
    Ok(())
}

fn remove_dead(path: &Path) -> Result<(), String> {
    match Address::of(path).and_then(UnixStream::connect) {
        Ok(_) => Err("is in use by another shim: the slot is still running".into()),
        Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(()),
        Err(fault) if fault.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|fault| format!("is dead and can't be removed: {fault}")),
        Err(fault) => Err(format!("can't be probed: {fault}")),
    }
}

/// The connection is unusable: closed, broken, invalid or too slow.
#[derive(Debug)]
pub(super) struct PeerGone;

/// A connected daemon.
pub(super) struct ShimPeer {
    stream: UnixStream,
    decoder: Decoder,
    waiting: Vec<u8>,
    /// Bytes at the beginning of `waiting` that are sent.
    sent: usize,
    /// What was handed over, until everything is sent.
    extra: usize,
    /// When it last read or sent something.
    took: Instant,
}

impl ShimPeer {
    pub fn greet(&mut self, hello: &Hello) -> Result<(), PeerGone> {
        wire::put_hello(&mut self.waiting, hello);
        self.flush()
    }

    pub fn report(&mut self, message: &FromShim) -> Result<(), PeerGone> {
        wire::put_report(&mut self.waiting, message);
        self.flush()
    }

    pub fn output(&mut self, at: At, bytes: &[u8]) -> Result<(), PeerGone> {
        wire::put_output(&mut self.waiting, at, bytes);
        self.flush()
    }

    /// What waits for the disk is handed over whole: only its recorder's queue bounds it.
    pub fn hand_over(&mut self, at: At, bytes: &[u8]) -> Result<(), PeerGone> {
        let before = self.waiting.len();
        wire::put_output(&mut self.waiting, at, bytes);
        self.extra += self.waiting.len() - before;
        self.flush()
    }

    pub fn has_waiting(&self) -> bool {
        self.sent < self.waiting.len()
    }

    /// Until when to wait for it, if it is behind.
    pub fn awaited_until(&self, now: Instant) -> Option<Instant> {
        let until = self.took + TAKES_WITHIN;
        (self.waiting.len() - self.sent > BEHIND && now < until).then_some(until)
    }

    /// Sends what the socket accepts now.
    pub fn flush(&mut self) -> Result<(), PeerGone> {
        while self.has_waiting() {
            match self.stream.write(&self.waiting[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.took = Instant::now();
                }
                Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => return self.check_bound(),
                Err(_) => return Err(PeerGone),
            }
        }
        self.waiting.clear();
        self.waiting.shrink_to(KEPT_CAPACITY);
        (self.sent, self.extra) = (0, 0);
        Ok(())
    }

    fn check_bound(&mut self) -> Result<(), PeerGone> {
        self.waiting.drain(..self.sent);
        self.sent = 0;
        if self.waiting.len() > MAX_WAITING + self.extra {
            return Err(PeerGone);
        }
        Ok(())
    }

    /// The daemon's messages, in order. `None` is a command that this shim doesn't know.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Vec<Option<ToShim>>, PeerGone> {
        let count = match self.stream.read(buffer) {
            Ok(0) => return Err(PeerGone),
            Ok(count) => count,
            Err(fault) if is_passing(&fault) => return Ok(Vec::new()),
            Err(_) => return Err(PeerGone),
        };
        self.took = Instant::now();
        self.decoder.push(&buffer[..count]);
        let mut commands = Vec::new();
        while let Some(frame) = self.decoder.next_frame().map_err(|_| PeerGone)? {
            commands.push(wire::command(frame).map_err(|_| PeerGone)?);
        }
        Ok(commands)
    }
}

impl AsFd for ShimPeer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn is_passing(fault: &io::Error) -> bool {
    matches!(fault.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
