//! A slot in the sandbox that docs/security.md shows: Claude Code works in it, the gate holds, and what is
//! missiond's own is out of reach.

use super::inside::{executable, refusals};
use crate::support::claude_code::claude;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{PINNED, skip};
use missiond::lab::rehearsal::Step;
use serde_json::json;
use std::process::Command;

/// The script as the document has it.
fn script() -> String {
    let document = include_str!("../../docs/security.md");
    let (_, rest) = document.split_once("```sh\n#!/bin/sh\n").expect("a script");
    let (script, _) = rest.split_once("```").expect("its end");
    format!("#!/bin/sh\n{script}")
}

/// Bubblewrap needs namespaces, which not every machine gives.
fn has_bubblewrap() -> bool {
    let words = "--ro-bind / / --unshare-pid --proc /proc --dev /dev true";
    let tried = Command::new("bwrap").args(words.split(' ')).output();
    let works = tried.is_ok_and(|output| output.status.success());
    if !works {
        skip("bubblewrap is not there, or may not make a sandbox");
    }
    works
}

#[test]
fn claude_code_works_in_a_sandbox_and_missiond_is_out_of_reach() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = claude(PINNED).filter(|_| has_bubblewrap()) else {
        return;
    };
    let mut command = vec![executable(&directory, &script())];
    command.extend(program);
    let setup = Setup::new().slot("coder").policy(
        "coder",
        "allow = [\"Bash(mkfifo *)\", \"Bash(cat *)\", \"Bash(MISSIOND *)\"]"
            .replace("MISSIOND", env!("CARGO_BIN_EXE_missiond"))
            .as_str(),
    );
    let daemon = Daemon::start_with(&setup, &command);
    daemon.wait_state("coder", "idle");

    // Claude Code asks by itself about a file elsewhere (5), and a person says yes.
    let tell = |words: &str, command: &str, code: i32| {
        let tool = Step::tool("Bash", json!({ "command": command }));
        daemon
            .endpoint
            .on(words, vec![tool, Step::text("I tried.")]);
        daemon.cmd(&["send", "coder", words]).expect(code);
        if code == 5 {
            daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
            daemon.wait_state("coder", "idle");
        }
        let history = daemon
            .cmd(&["history", "coder", "-n", "2", "--json"])
            .expect(0);
        let lines = history.json_lines();
        assert_eq!(lines[1]["text"], "I tried.");
        lines[0]["text"].to_string()
    };
    let pipe = daemon.cwd("coder").join("pipe");
    tell("make it", &format!("mkfifo {}", pipe.display()), 0);
    assert!(pipe.exists(), "the rule allowed it through the hook");
    assert_eq!(daemon.status("coder")["gate"], "hook");

    let config = daemon.config();
    let said = tell("read it", &format!("cat {}", config.display()), 5);
    assert!(said.contains("No such file"), "{said}");
    let program = env!("CARGO_BIN_EXE_missiond");
    let said = tell("approve it", &format!("{program} confirm coder yes"), 0);
    assert!(said.contains("nobody approves himself"), "{said}");
    assert_eq!(refusals(&daemon).len(), 1);
    daemon.cmd(&["stop", "coder"]).expect(0);
}
