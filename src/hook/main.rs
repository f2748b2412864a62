//! `missiond hook --socket PATH --slot NAME --lock PATH`: passes Claude Code's hook events to the daemon, and the
//! daemon's answer back. No async runtime: it runs before every tool call, and answers in milliseconds.

use crate::core::claude::hook::{DISPLAY, GATE_PATIENCE, STATUS_LINE};
use crate::core::model::envelope::{Line, Request};
use crate::core::model::{Fault, HOOK, HookAnswer, HookParams, MAX_LINE, RpcError};
use crate::os::daemon_lock::{self, Holder};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The timeout for all events but the gate. They are evidence, which must not delay a turn.
const EVIDENCE_PATIENCE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(100);

/// The exit code that makes Claude Code block the call.
const BLOCK: u8 = 2;

/// The subcommand that Claude Code calls.
pub const VERB: &str = "hook";

#[derive(Debug, PartialEq, Eq)]
struct HookArguments {
    socket: PathBuf,
    slot: String,
    /// The lock of the daemon that must answer; `None` in a slot that an older missiond has started.
    lock: Option<PathBuf>,
    /// Whether the input is the data for a status line, which is passed on to the user's own status line.
    status_line: bool,
}

/// Runs the hook; `arguments` are those after the subcommand.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let arguments = parse(arguments);
    let mut text = String::new();
    let read = std::io::stdin()
        .take(MAX_LINE as u64)
        .read_to_string(&mut text);
    let payload = read
        .ok()
        .and_then(|_| serde_json::from_str::<Value>(&text).ok());
    let displayed = payload
        .as_ref()
        .is_some_and(|payload| payload["hook_event_name"] == DISPLAY);
    if let (true, Some(arguments), Some(payload)) = (displayed, &arguments, &payload) {
        return show(arguments, payload.clone());
    }
    if let Some(arguments) = arguments.as_ref().filter(|all| all.status_line) {
        return pass_through(arguments, &text, payload);
    }
    // Input without an event name may be a tool call.
    let event = payload
        .as_ref()
        .and_then(|payload| payload["hook_event_name"].as_str());
    let is_gate = event.is_none_or(|event| event == "PreToolUse");
    let outcome = match (arguments, payload) {
        (Some(arguments), Some(payload)) => pass_on(&arguments, payload, is_gate),
        (None, _) => Err("usage: missiond hook --socket PATH --slot NAME --lock PATH".to_owned()),
        (_, None) => Err("the standard input is not the JSON of a hook".to_owned()),
    };
    match outcome {
        Ok(answer) => print(answer),
        Err(reason) => {
            eprintln!("missiond: {reason}");
            // Exit 2 blocks a tool call. At other events it would swallow a message or prevent the end of a turn, so
            // there a failure is only a failure.
            if is_gate {
                ExitCode::from(BLOCK)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Sends lines of an answer to the daemon if it runs. If it does not, the person at the screen does not have to wait.
fn show(arguments: &HookArguments, payload: Value) -> ExitCode {
    let _ = pass_on_within(arguments, payload, Duration::ZERO);
    ExitCode::SUCCESS
}

/// Runs the user's own status line first: it neither waits for the daemon nor fails with it.
fn pass_through(arguments: &HookArguments, text: &str, payload: Option<Value>) -> ExitCode {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Some(Value::Object(mut figures)) = payload {
        figures.insert("hook_event_name".to_owned(), STATUS_LINE.into());
        let _ = pass_on(arguments, Value::Object(figures), false);
    }
    ExitCode::SUCCESS
}

fn print(answer: HookAnswer) -> ExitCode {
    let Some(output) = answer.output else {
        return ExitCode::SUCCESS;
    };
    match writeln!(std::io::stdout(), "{output}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(BLOCK),
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<HookArguments> {
    let (mut socket, mut slot, mut lock, mut status_line) = (None, None, None, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--socket" => socket = arguments.next().map(PathBuf::from),
            "--slot" => slot = arguments.next(),
            "--lock" => lock = arguments.next().map(PathBuf::from),
            "--status-line" => status_line = true,
            _ => return None,
        }
    }
    Some(HookArguments {
        socket: socket?,
        slot: slot?,
        lock,
        status_line,
    })
}

fn pass_on(arguments: &HookArguments, payload: Value, is_gate: bool) -> Result<HookAnswer, String> {
    let patience = if is_gate {
        GATE_PATIENCE
    } else {
        EVIDENCE_PATIENCE
    };
    pass_on_within(arguments, payload, patience)
}

fn pass_on_within(
    arguments: &HookArguments,
    payload: Value,
    patience: Duration,
) -> Result<HookAnswer, String> {
    let deadline = Instant::now() + patience;
    let params = HookParams {
        slot: arguments.slot.clone(),
        payload,
    };
    let params = serde_json::to_value(params).map_err(|error| error.to_string())?;
    let request =
        serde_json::to_string(&Request::new(1, HOOK, params)).map_err(|error| error.to_string())?;
    loop {
        let refusal = match ask(arguments, &request, deadline) {
            Ok(line) => match understood(&line) {
                Err(HookRefusal::Full(text)) => text,
                Err(HookRefusal::Final(text)) => return Err(text),
                Ok(answer) => return Ok(answer),
            },
            Err(error) => {
                let place = arguments.socket.display();
                format!("the daemon at {place} does not answer: {error}")
            }
        };
        if Instant::now() + RETRY >= deadline {
            return Err(refusal);
        }
        std::thread::sleep(RETRY);
    }
}

/// Why the daemon's line is not an answer to the hook.
#[derive(Debug, PartialEq, Eq)]
enum HookRefusal {
    /// The daemon is full now.
    Full(String),
    Final(String),
}

fn ask(arguments: &HookArguments, request: &str, deadline: Instant) -> std::io::Result<String> {
    let mut stream = connect(arguments)?;
    let left = deadline
        .saturating_duration_since(Instant::now())
        .max(RETRY);
    stream.set_read_timeout(Some(left))?;
    stream.set_write_timeout(Some(left))?;
    let written = stream.write_all(format!("{request}\n").as_bytes());
    // A daemon that refuses a client sends the reason and closes, perhaps before the request was written.
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE as u64)).read_line(&mut line)?;
    if line.ends_with('\n') {
        Ok(line)
    } else {
        written.and(Err(std::io::ErrorKind::UnexpectedEof.into()))
    }
}

fn connect(arguments: &HookArguments) -> std::io::Result<UnixStream> {
    let lock = arguments.lock.as_deref();
    match (UnixStream::connect(&arguments.socket), lock) {
        (Ok(stream), Some(lock)) => check_listener(&stream, lock).map(|()| stream),
        (Err(error), Some(lock)) => moved(lock).ok_or(error),
        (connected, None) => connected,
    }
}

/// A connection to the daemon if it listens elsewhere now: it was started again with another runtime directory. Any
/// process of the user can write a path into the lock, so the process that listens there must hold the lock itself.
fn moved(lock: &Path) -> Option<UnixStream> {
    let holder = Holder::read(lock)?;
    let stream = UnixStream::connect(holder.socket).ok()?;
    let listener = rustix::net::sockopt::socket_peercred(&stream).ok()?.pid;
    let listener = listener.as_raw_nonzero().get().cast_unsigned();
    daemon_lock::is_held_by(lock, listener).then_some(stream)
}

/// Only the daemon may answer a hook: a process in a slot may have put its own socket in place of the daemon's.
fn check_listener(stream: &UnixStream, lock: &Path) -> std::io::Result<()> {
    // In a sandbox with a PID namespace the kernel does not report it.
    let Ok(listener) = rustix::net::sockopt::socket_peercred(stream) else {
        return Ok(());
    };
    let listener = listener.pid.as_raw_nonzero().get().cast_unsigned();
    match daemon_lock::other_owner(lock, listener) {
        None => Ok(()),
        Some(daemon) => Err(std::io::Error::other(format!(
            "process {listener} listens there in place of the daemon, pid {daemon}"
        ))),
    }
}

fn understood(line: &str) -> Result<HookAnswer, HookRefusal> {
    let line: Line = serde_json::from_str(line)
        .map_err(|error| HookRefusal::Final(format!("the daemon's answer is not JSON: {error}")))?;
    match (line.result, line.error.map(RpcError::from)) {
        (Some(result), None) => answer(result).map_err(HookRefusal::Final),
        (_, Some(error)) if error.fault == Fault::Full => Err(HookRefusal::Full(error.message)),
        (_, Some(error)) => Err(HookRefusal::Final(error.message)),
        (None, None) => Err(HookRefusal::Final(
            "the daemon's answer is empty".to_owned(),
        )),
    }
}

/// Parses the answer: either an explicit `null`, or an object for Claude Code.
fn answer(result: Value) -> Result<HookAnswer, String> {
    match result.get("output") {
        Some(Value::Null | Value::Object(_)) => {
            serde_json::from_value(result).map_err(|error| error.to_string())
        }
        _ => Err("the daemon's answer is not one to a hook".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> impl Iterator<Item = String> {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter()
    }

    #[test]
    fn both_arguments_are_needed_and_no_others() {
        let wanted = HookArguments {
            socket: "/s".into(),
            slot: "a".into(),
            lock: Some("/l".into()),
            status_line: false,
        };
        assert_eq!(parse(words("--socket /s --slot a --lock /l")), Some(wanted));
        assert_eq!(parse(words("--socket /s")), None);
        assert_eq!(parse(words("--socket /s --slot a --more")), None);
    }

    #[test]
    fn a_daemon_that_is_full_is_asked_again() {
        let full = RpcError::new(Fault::Full, "turned away");
        let line = Line::answer(Value::Null, Err(full.into()));
        let line = serde_json::to_string(&line).unwrap();
        assert_eq!(
            understood(&line),
            Err(HookRefusal::Full("turned away".to_owned()))
        );
    }

    #[test]
    fn garbage_and_errors_of_the_daemon_are_no_answer() {
        assert!(understood("garbage").is_err());
        assert!(understood(r#"{"jsonrpc":"2.0","id":1}"#).is_err());
        for result in ["7", "[1]", "{}", r#"{"output":7}"#, r#"{"output":"allow"}"#] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            assert!(understood(&line).is_err(), "{result}");
        }
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no such slot"}}"#;
        assert_eq!(
            understood(error),
            Err(HookRefusal::Final("no such slot".to_owned()))
        );
        let answer = understood(r#"{"jsonrpc":"2.0","id":1,"result":{"output":null}}"#);
        assert_eq!(answer, Ok(HookAnswer { output: None }));
    }
}
