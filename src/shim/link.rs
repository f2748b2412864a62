//! The daemon's end of the connection to a shim. It has no thread and no task: the slot's task calls `next` in its `select!`,
//! which also sends what `send` could not write at once.

use super::process::{StartReport, VERB};
use super::wire::{self, Decoder, HeardMessage, WireError};
use super::{FromShim, Handle, Hello, PROTOCOL, ShimSpec, ToShim, handle};
use crate::os::disk_wait::DiskWait;
use crate::os::headroom;
use crate::os::process_stat::Stat;
use crate::os::socket::Address;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::UCred;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A start takes milliseconds; this leaves time for a heavily loaded machine.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// A living shim greets at once, however much its child writes.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);

/// A living shim listens at once after [`Handle::ring`]; this leaves time for a heavily loaded machine.
const SUMMON_PATIENCE: Duration = Duration::from_secs(5);

/// The time between two attempts.
const LOOK: Duration = Duration::from_millis(20);

/// A living shim reads at once; a stopped one must not delay a daemon that leaves.
const FLUSH_PATIENCE: Duration = Duration::from_secs(2);

/// How often a working daemon reports that, well within the time after which a shim considers it stuck.
const SAYS_EVERY: Duration = Duration::from_millis(500);

/// The most bytes for a shim that does not read, such as one that was stopped with SIGSTOP: two of the longest messages.
const MAX_UNSENT: usize = 2 * wire::MAX_PAYLOAD;

/// The longest report of a start: a reason that quotes a path, an argument or some output.
const MAX_REPORT: u64 = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Also if this daemon read too slowly: connect again, and catch up from the recording.
    #[error("the shim has closed the connection")]
    Closed,
    #[error("the connection to the shim failed: {0}")]
    Io(#[from] io::Error),
    /// An invalid message from the shim, or an own message that is too long and was not sent.
    #[error("a message between daemon and shim is wrong: {0}")]
    Wire(#[from] WireError),
    #[error("the shim does not read: {MAX_UNSENT} bytes wait for it")]
    Backlog,
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The shim's error; nothing was started.
    #[error("{0}")]
    Refused(String),
    /// A resource of the shim is missing at the moment; nothing was started.
    #[error("{0}")]
    NotNow(String),
    #[error("the shim {program} could not be started: {}", headroom::why_not_made(source), program = .program.display())]
    Spawn { program: PathBuf, source: io::Error },
    #[error("the shim ended without saying why ({0})")]
    Silent(std::process::ExitStatus),
    #[error("the shim did not answer within {0:?}")]
    Timeout(Duration),
    #[error("its program runs in a shim, pid {pid}, that lives and can't be reached: {}", why_unreached(*.pid))]
    Unreached { pid: u32 },
    #[error("whether its program runs can't be told: {0}")]
    Unclear(io::Error),
    #[error("no shim answers at {socket}: {source}", socket = .socket.display())]
    Connect { socket: PathBuf, source: io::Error },
    #[error(
        "the shim speaks version {theirs} of the protocol and this missiond version {PROTOCOL}: stop the slot with the missiond that started it"
    )]
    Protocol { theirs: u32 },
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// A connection to one shim.
#[derive(Debug)]
pub struct ShimLink {
    stream: UnixStream,
    decoder: Decoder,
    unsent: Vec<u8>,
    /// When the daemon last reported to the shim that it works.
    said: Instant,
}

impl ShimLink {
    /// Starts a shim with `program` (this binary) and connects to it.
    pub async fn launch(spec: &ShimSpec, program: &Path) -> Result<(ShimLink, Hello), LaunchError> {
        let started = timeout(START_PATIENCE, start(spec, program)).await;
        started.map_err(|_| LaunchError::Timeout(START_PATIENCE))??;
        Self::adopt(&spec.socket).await
    }

    /// Connects to a running shim, which closes its older connection.
    pub async fn adopt(socket: &Path) -> Result<(ShimLink, Hello), LaunchError> {
        let cant = |source| LaunchError::Connect {
            socket: socket.to_owned(),
            source,
        };
        let address = Address::of(socket).map_err(cant)?;
        let stream = UnixStream::connect(&address).await.map_err(cant)?;
        Self::greeted(stream).await
    }

    /// Signals a living shim whose socket is missing, and connects to it: without a file if none can be created.
    pub async fn summon(shim: &Handle, socket: &Path) -> Result<(ShimLink, Hello), LaunchError> {
        shim.ring();
        let bell = format!("\0{}", handle::bell(shim.pid()));
        let given_up = Instant::now() + SUMMON_PATIENCE;
        loop {
            tokio::time::sleep(LOOK).await;
            match Self::adopt(socket).await {
                Err(LaunchError::Connect { .. }) => {}
                found => return found,
            }
            if let Ok(stream) = UnixStream::connect(&bell).await
                && is_of(&stream, shim.pid())
            {
                return Self::greeted(stream).await;
            }
            if !shim.runs() || Instant::now() >= given_up {
                return Err(LaunchError::Unreached { pid: shim.pid() });
            }
        }
    }

    async fn greeted(stream: UnixStream) -> Result<(ShimLink, Hello), LaunchError> {
        let mut link = Self {
            stream,
            decoder: Decoder::default(),
            unsent: Vec::new(),
            said: Instant::now(),
        };
        let hello = timeout(HELLO_PATIENCE, link.hello())
            .await
            .map_err(|_| LaunchError::Timeout(HELLO_PATIENCE))??;
        if hello.protocol != PROTOCOL {
            return Err(LaunchError::Protocol {
                theirs: hello.protocol,
            });
        }
        Ok((link, hello))
    }

    /// The next message. Cancel-safe: nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<FromShim, LinkError> {
        loop {
            if let HeardMessage::Message(message) = self.hear().await? {
                return Ok(message);
            }
        }
    }

    /// The next message if it was already received with the last read; nothing is read for it.
    pub fn received(&mut self) -> Option<Result<FromShim, LinkError>> {
        loop {
            let heard = match self.decoder.next_frame() {
                Ok(Some(frame)) => wire::heard(frame),
                Ok(None) => return None,
                Err(fault) => return Some(Err(fault.into())),
            };
            match heard {
                Ok(HeardMessage::Message(message)) => return Some(Ok(message)),
                Ok(HeardMessage::Hello(_) | HeardMessage::Unknown) => {}
                Err(fault) => return Some(Err(fault.into())),
            }
        }
    }

    /// Sends a message, or keeps it until the shim reads; [`next`](Self::next) sends it then. It never waits, so that a slow shim
    /// can't delay its slot.
    pub fn send(&mut self, message: &ToShim) -> Result<(), LinkError> {
        let before = self.unsent.len();
        if before > MAX_UNSENT {
            return Err(LinkError::Backlog);
        }
        wire::put_command(&mut self.unsent, message);
        let length = self.unsent.len() - before;
        if length > wire::MAX_PAYLOAD {
            self.unsent.truncate(before);
            return Err(WireError::TooLong(length).into());
        }
        self.write_some()
    }

    /// Reports to the shim that the daemon still works on its messages, if it has not done so for a while.
    pub fn say_taking(&mut self) -> Result<(), LinkError> {
        if self.said.elapsed() < SAYS_EVERY {
            return Ok(());
        }
        self.said = Instant::now();
        self.send(&ToShim::Taking)
    }

    /// Waits for a short time until the shim has everything, before the daemon leaves.
    pub async fn flush(&mut self) -> Result<(), LinkError> {
        let flushed = timeout(FLUSH_PATIENCE, self.flush_all()).await;
        flushed.unwrap_or(Err(LinkError::Backlog))
    }

    async fn flush_all(&mut self) -> Result<(), LinkError> {
        while !self.unsent.is_empty() {
            self.stream.writable().await?;
            self.write_some()?;
        }
        Ok(())
    }

    async fn hello(&mut self) -> Result<Hello, LinkError> {
        loop {
            if let HeardMessage::Hello(hello) = self.hear().await? {
                return Ok(hello);
            }
        }
    }

    async fn hear(&mut self) -> Result<HeardMessage, LinkError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(wire::heard(frame)?);
            }
            let interest = match self.unsent.is_empty() {
                true => Interest::READABLE,
                false => Interest::READABLE | Interest::WRITABLE,
            };
            let ready = self.stream.ready(interest).await?;
            if ready.is_writable() && !self.unsent.is_empty() {
                self.write_some()?;
            }
            if ready.is_readable() {
                self.read_some()?;
            }
        }
    }

    fn read_some(&mut self) -> Result<(), LinkError> {
        let mut buffer = [0; 16 << 10];
        match self.stream.try_read(&mut buffer) {
            Ok(0) => Err(LinkError::Closed),
            Ok(count) => {
                self.decoder.push(&buffer[..count]);
                self.say_taking()
            }
            Err(fault) if fault.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(fault) if fault.kind() == ErrorKind::ConnectionReset => Err(LinkError::Closed),
            Err(fault) => Err(fault.into()),
        }
    }

    /// An end that was already read from the other side is reported by `next`, after everything before it.
    fn write_some(&mut self) -> Result<(), LinkError> {
        while !self.unsent.is_empty() {
            match self.stream.try_write(&self.unsent) {
                Ok(count) => {
                    self.unsent.drain(..count);
                }
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(fault) if fault.kind() == ErrorKind::BrokenPipe => {
                    self.unsent.clear();
                    return Ok(());
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(())
    }
}

/// Why a living shim does not answer, as far as the kernel tells.
fn why_unreached(pid: u32) -> String {
    if Stat::of(pid).is_some_and(|stat| stat.is_stopped()) {
        return "it was stopped by a signal, and SIGCONT lets it go on".to_owned();
    }
    let waits = DiskWait::all(pid);
    match waits.iter().find_map(DiskWait::path) {
        Some(path) => format!("it waits for the file system of {}", path.display()),
        None => "it may run in another network namespace".to_owned(),
    }
}

/// Whether this process of this user listens at the other end.
fn is_of(stream: &UnixStream, pid: u32) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let listens = |peer: UCred| peer.uid() == own && peer.pid() == Some(pid.cast_signed());
    stream.peer_cred().is_ok_and(listens)
}

/// Starts the shim and waits for its report.
async fn start(spec: &ShimSpec, program: &Path) -> Result<(), LaunchError> {
    let spawn_error = |source| LaunchError::Spawn {
        program: program.to_owned(),
        source,
    };
    let mut child = command(spec, program).spawn().map_err(spawn_error)?;
    let report = exchange(&mut child, spec).await.map_err(spawn_error)?;
    // The started process has handed over to the one that stays; this leaves no zombie.
    let ended = child.wait().await.map_err(spawn_error)?;
    match serde_json::from_slice(&report) {
        Ok(StartReport::Ok(_)) => Ok(()),
        Ok(StartReport::Error(reason)) => Err(LaunchError::Refused(reason)),
        Ok(StartReport::NotNow(reason)) => Err(LaunchError::NotNow(reason)),
        Err(_) => Err(LaunchError::Silent(ended)),
    }
}

/// Nothing of the daemon's environment, directory or terminal is inherited.
fn command(spec: &ShimSpec, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args([VERB, &spec.slot])
        .args([&spec.keeper.home, &spec.keeper.config])
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

async fn exchange(child: &mut Child, spec: &ShimSpec) -> io::Result<Vec<u8>> {
    if let Some(mut stdin) = child.stdin.take() {
        let mut line = serde_json::to_vec(spec)?;
        line.push(b'\n');
        // A shim that ends before it has read all this reports why.
        let _ = stdin.write_all(&line).await;
    }
    let mut report = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // Only its line: a shim whose disk hangs has reported that, and can't end before the disk answers.
        let mut stdout = BufReader::new(stdout.take(MAX_REPORT));
        stdout.read_until(b'\n', &mut report).await?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stopped_shim_is_said_to_need_a_signal() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let pid = child.id();
        let says_signal = || why_unreached(pid).contains("SIGCONT");
        assert!(!says_signal());
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
        let how = rustix::process::WaitOptions::UNTRACED;
        rustix::process::waitpid(Some(process), how).unwrap();
        assert!(says_signal());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
