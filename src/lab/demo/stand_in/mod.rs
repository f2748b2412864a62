//! A small terminal program that draws the same kind of screens as Claude Code, with a script instead of the model.
//! missiond reads and answers it like Claude Code: the stand-in calls the hooks, and writes the transcript and the
//! session record to the paths that Claude Code uses. It really runs its commands.
//!
//! `typed`, `asked` and `page` are pure; `tty`, `session` and `tools` touch the terminal, the files and the processes.

mod agent;
mod asked;
mod page;
mod session;
mod tools;
mod tty;
mod typed;

use super::scenario;
use crate::lab::rehearsal::ModelScript;
use agent::Agent;
use session::{StandInSession, StandInStart};
use std::io;
use std::process::ExitCode;
use tty::Tty;
use uuid::Uuid;

/// The subcommand that starts it.
pub const VERB: &str = "stand-in";

/// The version of Claude Code whose screens it draws.
const VERSION: &str = "2.1.325 (a stand-in for Claude Code)";

/// Runs the stand-in; `arguments` are those after the subcommand.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let arguments: Vec<String> = arguments.collect();
    if arguments.iter().any(|word| word == "--version") {
        println!("{VERSION}");
        return ExitCode::SUCCESS;
    }
    match start(&arguments).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        // The terminal is gone: that is the normal end.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("missiond stand-in: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Parses the flags of Claude Code that matter here; others are ignored.
fn start(arguments: &[String]) -> io::Result<StandInStart> {
    let value = |flag: &str| {
        let at = arguments.iter().position(|word| word == flag)?;
        arguments.get(at + 1)
    };
    let named = value("--session-id");
    let resumed = value("--resume");
    let id = match resumed.or(named) {
        Some(text) => Uuid::try_parse(text).map_err(io::Error::other)?,
        None => Uuid::new_v4(),
    };
    Ok(StandInStart {
        id,
        resumed: resumed.is_some(),
        mode: value("--permission-mode").map_or("manual".to_owned(), String::clone),
        settings: value("--settings").map(Into::into),
    })
}

fn run(start: StandInStart) -> io::Result<()> {
    let session = StandInSession::open(start)?;
    let mut script = ModelScript::default();
    for scene in scenario::scenes(session.cwd()) {
        script.set(scene.message, scene.steps);
    }
    let tty = Tty::open().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("it draws on a terminal, and here is none ({error})"),
        )
    })?;
    Agent::new(tty, session, script).converse()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(line: &str) -> io::Result<StandInStart> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        start(&words)
    }

    #[test]
    fn it_is_started_as_claude_code_is() {
        let id = Uuid::nil();
        let new = started(&format!(
            "--session-id {id} --permission-mode plan --settings /s"
        ));
        let expected = StandInStart {
            id,
            resumed: false,
            mode: "plan".to_owned(),
            settings: Some("/s".into()),
        };
        assert_eq!(new.expect("good flags"), expected);
        assert!(started(&format!("--resume {id} --model opus")).is_ok_and(|start| start.resumed));
        assert!(started("--resume nonsense").is_err());
    }
}
