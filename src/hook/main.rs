//! `missiond hook --socket PATH --slot NAME`: passes what Claude Code says on to the daemon, and the daemon's
//! answer back. No async runtime: it runs before every tool call, and answers in milliseconds.

use crate::core::claude::hook::{DISPLAY, STATUS_LINE};
use crate::core::model::envelope::{Line, Request};
use crate::core::model::{Fault, HOOK, HookAnswer, HookParams, MAX_LINE, RpcError};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// While the daemon is away, a tool call waits this long; then it is blocked.
const GATE_PATIENCE: Duration = Duration::from_secs(60);
/// Everything else is evidence: it is not worth holding a turn up for.
const EVIDENCE_PATIENCE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(100);

/// Claude Code takes this exit code as: blocked.
const BLOCK: u8 = 2;

/// The verb by which the hook is called.
pub const VERB: &str = "hook";

#[derive(Debug, PartialEq, Eq)]
struct HookArguments {
    socket: PathBuf,
    slot: String,
    /// What comes in are the figures for a status line, which go on to the user's own.
    status_line: bool,
}

/// The whole program; `arguments` are those behind the verb.
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
    // What does not say which event it is may be a tool call.
    let event = payload
        .as_ref()
        .and_then(|payload| payload["hook_event_name"].as_str());
    let is_gate = event.is_none_or(|event| event == "PreToolUse");
    let outcome = match (arguments, payload) {
        (Some(arguments), Some(payload)) => pass_on(&arguments, payload, is_gate),
        (None, _) => Err("usage: missiond hook --socket PATH --slot NAME".to_owned()),
        (_, None) => Err("what came on standard input is not the JSON of a hook".to_owned()),
    };
    match outcome {
        Ok(answer) => print(answer),
        Err(reason) => {
            eprintln!("missiond: {reason}");
            // Exit 2 blocks a tool call. At other events it would swallow a message or keep a turn from
            // ending, so there a failure is only a failure.
            if is_gate {
                ExitCode::from(BLOCK)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Lines of an answer are told to a daemon that is there. The person at the screen waits for none that is not.
fn show(arguments: &HookArguments, payload: Value) -> ExitCode {
    let _ = pass_on_within(arguments, payload, Duration::ZERO);
    ExitCode::SUCCESS
}

/// The figures go on to the user's own status line first: it does not wait for the daemon, nor fail with it.
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
    let (mut socket, mut slot, mut status_line) = (None, None, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--socket" => socket = arguments.next().map(PathBuf::from),
            "--slot" => slot = arguments.next(),
            "--status-line" => status_line = true,
            _ => return None,
        }
    }
    Some(HookArguments {
        socket: socket?,
        slot: slot?,
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
        let refusal = match ask(&arguments.socket, &request, deadline) {
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

/// Why the daemon's line is no answer to the hook.
#[derive(Debug, PartialEq, Eq)]
enum HookRefusal {
    /// The daemon has no place for this client now: it may have one soon.
    Full(String),
    Final(String),
}

fn ask(socket: &Path, request: &str, deadline: Instant) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    let left = deadline
        .saturating_duration_since(Instant::now())
        .max(RETRY);
    stream.set_read_timeout(Some(left))?;
    stream.set_write_timeout(Some(left))?;
    let written = stream.write_all(format!("{request}\n").as_bytes());
    // A daemon that turns a client away says so and closes, perhaps before the request was written.
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE as u64)).read_line(&mut line)?;
    if line.ends_with('\n') {
        Ok(line)
    } else {
        written.and(Err(std::io::ErrorKind::UnexpectedEof.into()))
    }
}

fn understood(line: &str) -> Result<HookAnswer, HookRefusal> {
    let line: Line = serde_json::from_str(line)
        .map_err(|error| HookRefusal::Final(format!("the daemon's answer is no JSON: {error}")))?;
    match (line.result, line.error.map(RpcError::from)) {
        (Some(result), None) => answer(result).map_err(HookRefusal::Final),
        (_, Some(error)) if error.fault == Fault::Full => Err(HookRefusal::Full(error.message)),
        (_, Some(error)) => Err(HookRefusal::Final(error.message)),
        (None, None) => Err(HookRefusal::Final(
            "the daemon's answer is empty".to_owned(),
        )),
    }
}

/// Either no word on the call, said as such, or an object for Claude Code.
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
            status_line: false,
        };
        assert_eq!(parse(words("--socket /s --slot a")), Some(wanted));
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
