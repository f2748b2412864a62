//! `missiond shim`: from the daemon's call to a process of its own.

use super::door::Door;
use super::pty::Pty;
use super::recorder::Recorder;
use super::run::{Shim, Signals};
use super::{Hello, ShimSpec, check};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGCHLD, SIGTERM};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The verb under which this binary is a shim.
pub const VERB: &str = "shim";

/// As which it is in the process table.
pub(super) const COMM: &str = "missiond-shim";

/// Second argument of the process that stays.
const DETACHED: &str = "--detached";

/// Settings of glibc's allocator, which otherwise keeps what a burst or a long paste has needed: a shim
/// lives for days and should be small again after it. Larger pieces are mapped and unmapped on their own.
/// Other C libraries pass over them, and the child has an environment of its own.
const SMALL_HEAP: [(&str, &str); 3] = [
    ("MALLOC_MMAP_THRESHOLD_", "65536"),
    ("MALLOC_TRIM_THRESHOLD_", "65536"),
    ("MALLOC_TOP_PAD_", "16384"),
];

/// The longest specification: a whole environment (the kernel takes 2 MB of it) as JSON.
const MAX_SPEC: u64 = 8 << 20;

/// What the daemon hears of the start: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StartReport {
    Ok(Hello),
    Error(String),
}

/// The entry point of `missiond shim`. The first process only starts the second one and ends, so that a
/// shim is never the child of a daemon: which daemon started it makes no difference.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(2).collect();
    if arguments.first().is_none_or(|first| first != DETACHED) {
        return start_detached(&arguments);
    }
    match start() {
        Ok((shim, signals)) => serve(shim, &signals),
        Err(reason) => {
            let _ = report(&StartReport::Error(reason));
            ExitCode::FAILURE
        }
    }
}

/// The same binary again, even if its file was replaced or removed in the meantime.
fn start_detached(arguments: &[std::ffi::OsString]) -> ExitCode {
    let started = Command::new("/proc/self/exe")
        .arg0("missiond")
        .args([VERB, DETACHED])
        .args(arguments)
        .envs(SMALL_HEAP)
        .spawn();
    match started {
        Ok(_) => ExitCode::SUCCESS,
        Err(fault) => {
            let reason = format!("the shim could not start itself again: {fault}");
            let _ = report(&StartReport::Error(reason));
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(Shim, Signals), String> {
    let spec = read_spec()?;
    detach()?;
    check::check(&spec)?;
    let signals = listen_to_signals()
        .map_err(|fault| format!("the shim can't listen to signals: {fault}"))?;
    let door = Door::open(&spec.socket)?;
    let recorder = Recorder::open(&spec.recording, spec.cols, spec.rows, &spec.slot)
        .map_err(|fault| format!("the recording {}: {fault}", spec.recording.display()))?;
    let (pty, ended) = Pty::spawn(&spec)?;
    let mut shim = Shim::new(spec, door, recorder, pty);
    if let Some(reaped) = ended {
        shim.has_ended(reaped);
    }
    Ok((shim, signals))
}

/// A start that the daemon doesn't hear of would be a stray: then everything is ended again.
fn serve(mut shim: Shim, signals: &Signals) -> ExitCode {
    let heard = report(&StartReport::Ok(shim.hello())).and_then(|()| leave_stdio());
    match heard {
        Ok(()) => shim.run(signals),
        Err(_) => shim.abandon(signals),
    }
    ExitCode::SUCCESS
}

fn read_spec() -> Result<ShimSpec, String> {
    let mut text = String::new();
    io::stdin()
        .lock()
        .take(MAX_SPEC)
        .read_line(&mut text)
        .map_err(|fault| format!("the specification can't be read: {fault}"))?;
    serde_json::from_str(&text).map_err(|fault| {
        format!(
            "the specification on standard input is wrong: {fault} (this command is missiond's own)"
        )
    })
}

/// Out of the daemon's session and directory, and into the place of a parent for all orphans below.
fn detach() -> Result<(), String> {
    let cant = |what: &'static str| move |fault| format!("the shim {what}: {fault}");
    rustix::process::setsid().map_err(cant("can't begin a session"))?;
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(cant("can't adopt orphans"))?;
    std::env::set_current_dir("/").map_err(|fault| format!("the shim can't enter /: {fault}"))?;
    // For ps and top, which would show `exe`. Nothing depends on it.
    let _ = std::fs::write("/proc/self/comm", COMM);
    Ok(())
}

fn listen_to_signals() -> io::Result<Signals> {
    Ok(Signals {
        child: listen_to(SIGCHLD)?,
        end: listen_to(SIGTERM)?,
    })
}

fn listen_to(signal: i32) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, writer)?;
    Ok(reader)
}

fn report(report: &StartReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

/// Closes the pipes to the daemon; from here on it comes through the socket.
fn leave_stdio() -> io::Result<()> {
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}
