//! The scripted endpoint and the throw-away home, proven on the real Claude Code.

mod support;

use missiond::rehearsal::{Endpoint, Home, HomeOptions, Request, Step};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use support::claude_code::claude;
use support::pty::Pty;
use support::{PATIENCE, PINNED, until};
use tempfile::TempDir;

const SESSION: &str = "7a5dcc7a-3236-43d6-b810-059e3db202c9";
const READY: &str = "manual mode on";

struct Stage {
    endpoint: Endpoint,
    home: Home,
    cwd: TempDir,
    command: Vec<String>,
}

impl Stage {
    fn set() -> Option<Stage> {
        let command = claude(PINNED)?;
        let cwd = tempfile::tempdir().expect("a directory");
        let options = HomeOptions {
            trusted: vec![cwd.path().to_owned()],
            ask_about_key: false,
        };
        Some(Stage {
            endpoint: Endpoint::start().expect("a free port"),
            home: Home::create(&std::env::temp_dir(), &options).expect("a home"),
            cwd,
            command,
        })
    }

    fn start(&self) -> Pty {
        let arguments = ["--permission-mode", "manual", "--session-id", SESSION];
        let pty = Pty::claude(
            &self.command,
            &arguments,
            self.cwd.path(),
            &self.home,
            &self.endpoint,
        );
        pty.wait_for(READY);
        pty
    }

    /// The texts of the assistant in the transcript.
    fn answers(&self) -> Vec<String> {
        let path = self.home.transcript_path(self.cwd.path(), SESSION);
        lines(&path)
            .iter()
            .filter(|line| line["type"] == "assistant")
            .filter_map(|line| line["message"]["content"][0]["text"].as_str())
            .map(str::to_owned)
            .collect()
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn a_conversation_with_the_real_program() {
    let Some(stage) = Stage::set() else { return };
    let mut pty = stage.start();

    pty.say("hello there");
    let answer = "You said: hello there".to_owned();
    until("the answer in the transcript", || {
        stage.answers().contains(&answer).then_some(())
    });

    // Nothing comes until the gate opens: the program thinks. Then the text is streamed in two parts.
    stage.endpoint.on(
        "think",
        vec![
            Step::gate("thought"),
            Step::gated_text("half whole", 2, "said"),
        ],
    );
    pty.say("think");
    let request = stage.endpoint.wait_for_request(PATIENCE, |request| {
        request.is_turn() && request.prompt() == "think"
    });
    assert!(request.is_some());
    let mark = pty.mark();
    pty.wait_for_after(mark, "esc to interrupt");
    stage.endpoint.open("thought");
    stage.endpoint.open("said");
    until("the whole text in the transcript", || {
        let answers = stage.answers();
        answers.contains(&"half whole".to_owned()).then_some(())
    });

    let error = r#"JSON:[{"status":400,"error":"invalid_request_error","message":"scripted"}]"#;
    pty.say(error);
    pty.wait_for("API Error: 400 scripted");
    assert!(stage.endpoint.requests().iter().any(Request::is_turn));
}

#[test]
fn a_tool_call_asks_and_its_result_goes_on() {
    let Some(stage) = Stage::set() else { return };
    let made = stage.cwd.path().join("made");
    let command = format!("mkfifo {}", made.display());
    let call = Step::tool(
        "Bash",
        json!({"command": command, "description": "Make a pipe"}),
    );
    stage
        .endpoint
        .on("make", vec![call, Step::text("It is made.")]);
    let mut pty = stage.start();

    pty.say("make");
    pty.wait_for("Do you want to proceed?");
    assert!(!made.exists());
    // Claude Code drops keys that come right after a dialog is drawn.
    pty.press_until("1", || made.exists());
    until("the answer after the tool's result", || {
        let answers = stage.answers();
        answers.contains(&"It is made.".to_owned()).then_some(())
    });
    assert!(made.exists());
}
