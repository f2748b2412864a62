//! `missiond shim`: from the daemon's call to a separate process.

use super::limits;
use super::listener::ShimListener;
use super::pty::Pty;
use super::recorder::Recorder;
use super::run::{Shim, ShimSignals};
use super::{Hello, ShimSpec, check};
use crate::core::settings::limits::Limits;
use crate::os::allocator;
use crate::os::cgroup;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGCHLD, SIGTERM, SIGUSR1};
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The subcommand of this binary that runs a shim.
pub const VERB: &str = "shim";

/// Its name in the process table, by which it is found.
pub(super) const COMM: &str = "missiond-shim";

/// Second argument of the process that stays.
pub(super) const DETACHED: &str = "--detached";

/// Second argument of the process that sets limits and then executes the program; the limits as JSON and the program's own
/// arguments follow.
const LIMITED: &str = "--limited";

/// The name of that process in the process table: the last part of [`OWN_PROGRAM`].
pub(super) const LIMITER: &str = "exe";

/// This binary, even if its file was replaced or removed meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The longest specification: a whole environment (the kernel accepts 2 MB) as JSON.
const MAX_SPEC: u64 = 8 << 20;

/// The report of the start to the daemon: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StartReport {
    Ok(Box<Hello>),
    Error(String),
    /// A resource is missing at the moment: a directory that was removed and is created again soon, a process, a pseudo-terminal,
    /// a program that is being replaced. The same start may succeed later.
    NotNow(String),
}

/// The entry point of `missiond shim`. The first process only starts the second one and ends, so that a shim is never the child
/// of a daemon: it does not matter which daemon started it.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(2).collect();
    if arguments.first().is_some_and(|first| first == LIMITED) {
        return become_limited(&arguments[1..]);
    }
    if arguments.first().is_none_or(|first| first != DETACHED) {
        return start_detached(&arguments);
    }
    match start() {
        Ok((shim, signals, group)) => {
            let code = serve(shim, &signals);
            group.as_deref().map(cgroup::leave);
            code
        }
        Err(failed) => {
            let _ = report(&failed);
            ExitCode::FAILURE
        }
    }
}

/// The arguments before those of a program with limits; empty if there are no limits.
pub(super) fn limiter(limits: &Limits) -> Vec<String> {
    if limits.is_empty() {
        return Vec::new();
    }
    // Four numbers always have a JSON form.
    let limits = serde_json::to_string(limits).unwrap_or_default();
    vec![OWN_PROGRAM.into(), VERB.into(), LIMITED.into(), limits]
}

/// Executes the program, with the limits set. An end by SIGABRT means that the program could not be executed.
fn become_limited(arguments: &[std::ffi::OsString]) -> ExitCode {
    let [limits, program, rest @ ..] = arguments else {
        return ExitCode::FAILURE;
    };
    let limits: Result<Limits, _> = serde_json::from_slice(limits.as_encoded_bytes());
    let set = limits.map_err(|fault| fault.to_string());
    let fault = match set.and_then(|limits| limits::apply(&limits)) {
        Ok(()) => Command::new(program).args(rest).exec().to_string(),
        Err(fault) => fault,
    };
    eprintln!("{fault}");
    std::process::abort()
}

fn start_detached(arguments: &[std::ffi::OsString]) -> ExitCode {
    let started = Command::new(OWN_PROGRAM)
        .arg0("missiond")
        .args([VERB, DETACHED])
        .args(arguments)
        // The child has its own environment.
        .env(allocator::VARIABLE, allocator::SHIM)
        .spawn();
    match started {
        Ok(_) => ExitCode::SUCCESS,
        Err(fault) => {
            let reason = format!("the shim could not start itself again: {fault}");
            let _ = report(&StartReport::NotNow(reason));
            ExitCode::FAILURE
        }
    }
}

/// Why nothing could be opened at this path.
fn at(path: &Path, reason: String) -> StartReport {
    match path.parent().is_some_and(Path::exists) {
        true => StartReport::Error(reason),
        false => StartReport::NotNow(reason),
    }
}

impl From<String> for StartReport {
    fn from(reason: String) -> StartReport {
        StartReport::Error(reason)
    }
}

fn start() -> Result<(Shim, ShimSignals, Option<PathBuf>), StartReport> {
    let spec = read_spec()?;
    detach()?;
    check::check(&spec)?;
    let signals = listen_to_signals()
        .map_err(|fault| format!("the shim can't listen to signals: {fault}"))?;
    let listener = ShimListener::open(&spec.socket).map_err(|reason| at(&spec.socket, reason))?;
    let recorder = Recorder::open(&spec.recording, (spec.cols, spec.rows), &spec.slot);
    let recorder = recorder.map_err(|fault| {
        let reason = format!("the recording {}: {fault}", spec.recording.display());
        match fault.kind() {
            // Its disk hangs, or the shim before this one still writes to it.
            ErrorKind::TimedOut | ErrorKind::WouldBlock => StartReport::NotNow(reason),
            _ => at(&spec.recording, reason),
        }
    })?;
    // Without the group, the processes of the slot are recognised as in a slot without one.
    let group = spec
        .cgroup
        .clone()
        .filter(|group| cgroup::enter(group).is_ok());
    let (pty, ended) = Pty::spawn(&spec)?;
    let mut shim = Shim::new(spec, listener, recorder, pty);
    if let Some(reaped) = ended {
        shim.has_ended(reaped);
    }
    Ok((shim, signals, group))
}

/// If the daemon does not get the report, the program would be an orphan: then everything is ended again.
fn serve(mut shim: Shim, signals: &ShimSignals) -> ExitCode {
    let heard = report(&StartReport::Ok(Box::new(shim.greeting(0)))).and_then(|()| leave_stdio());
    match heard {
        Ok(()) => shim.run(signals),
        Err(_) => shim.abandon(signals),
    }
    shim.leave();
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

/// Leaves the daemon's session and directory, and becomes the subreaper of all descendants.
fn detach() -> Result<(), String> {
    let cant = |what: &'static str| move |fault| format!("the shim {what}: {fault}");
    rustix::process::setsid().map_err(cant("can't begin a session"))?;
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(cant("can't adopt orphans"))?;
    std::env::set_current_dir("/").map_err(|fault| format!("the shim can't enter /: {fault}"))?;
    Ok(())
}

/// The name comes last: a daemon that finds a shim by its name may signal it.
fn listen_to_signals() -> io::Result<ShimSignals> {
    let signals = ShimSignals {
        child: listen_to(SIGCHLD)?,
        end: listen_to(SIGTERM)?,
        ring: listen_to(SIGUSR1)?,
    };
    std::fs::write("/proc/self/comm", COMM)?;
    Ok(signals)
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

/// Closes the pipes to the daemon; from here on it uses the socket.
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
