//! The real Claude Code under oversight.

use super::inside::{audit, refusals};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::lab::rehearsal::Step;
use serde_json::json;
use std::fs;

const POLICY: &str = "\
# What the coder may do, and why.
allow = [
  \"Bash(MISSIOND *)\",  # it may try
]

[dialogs]
plan = \"ask\"  # plans are for people
";

#[test]
fn claude_code_is_overseen() {
    let policy = POLICY.replace("MISSIOND", env!("CARGO_BIN_EXE_missiond"));
    let setup = Setup::new().slot("coder").policy("coder", &policy);
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    nobody_approves_himself(&daemon);
    always_adds_a_narrow_rule(&daemon);
    nothing_secret_is_written_down(&daemon);
    daemon.cmd(&["audit", "verify"]).expect(0);
}

/// Its own tool asks missiond for what only a person may do.
fn nobody_approves_himself(daemon: &Daemon) {
    let calls = ["confirm coder yes", "send coder hello", "status"];
    for (index, call) in calls.iter().enumerate() {
        let words = format!("try number {index}");
        let command = format!("{} {call}", env!("CARGO_BIN_EXE_missiond"));
        let tool = Step::tool("Bash", json!({ "command": command }));
        daemon
            .endpoint
            .on(&words, vec![tool, Step::text("I tried.")]);
        let answer = daemon.cmd(&["send", "coder", &words]).expect(0);
        assert_eq!(answer.text(), "I tried.");
    }
    let refused = refusals(daemon);
    let methods: Vec<_> = refused
        .iter()
        .map(|entry| &entry["input"]["method"])
        .collect();
    assert_eq!(methods, ["confirm", "send"], "{refused:?}");
    assert!(refused.iter().all(|entry| entry["slot"] == "coder"));
    let told = daemon.cmd(&["history", "coder"]).expect(0);
    assert_eq!(
        told.stdout.matches("nobody approves himself").count(),
        2,
        "{told}"
    );
    let gate = audit(daemon);
    let judged = gate
        .iter()
        .find(|entry| entry["tool"] == "Bash")
        .expect("a verdict");
    assert_eq!(judged["verdict"], "allow", "{judged}");
    assert_eq!(
        judged["answer"], "none",
        "Claude Code checks it too: {judged}"
    );
    assert_eq!(judged["rule"]["line"], 3, "{judged}");
    assert!(
        judged["session"].is_string() && judged["cwd"].is_string(),
        "{judged}"
    );
}

fn always_adds_a_narrow_rule(daemon: &Daemon) {
    let pipe = daemon.cwd("coder").join("pipe");
    let command = format!("mkfifo {}", pipe.display());
    let steps = || {
        let tool = Step::tool("Bash", json!({ "command": command.clone() }));
        vec![tool, Step::text("I did it.")]
    };
    daemon.endpoint.on("the first time", steps());
    daemon.cmd(&["send", "coder", "the first time"]).expect(5);
    let confirmed = daemon.json(&["confirm", "coder", "always"]);
    let rule = format!("Bash({command})");
    assert_eq!(confirmed["rule"], rule, "{confirmed}");
    daemon.wait_state("coder", "idle");
    assert!(pipe.exists());

    let file = daemon
        .config()
        .with_file_name("policies")
        .join("coder.toml");
    let text = fs::read_to_string(&file).expect("a policy");
    for kept in [
        "# What the coder may do, and why.",
        "# it may try",
        "# plans are for people",
    ] {
        assert!(text.contains(kept), "{kept} in {text}");
    }
    let shown = daemon.cmd(&["policy", "show", "coder"]).expect(0);
    assert!(
        shown
            .stdout
            .contains(&format!("{rule}  {}:4", file.display())),
        "{shown}"
    );

    daemon.endpoint.on("the second time", steps());
    let answer = daemon.cmd(&["send", "coder", "the second time"]).expect(0);
    assert_eq!(answer.text(), "I did it.");
    let suggested = daemon.cmd(&["policy", "suggest"]).expect(0);
    assert_eq!(suggested.text(), "", "the rule is there already");

    let entries = audit(daemon);
    let person = entries
        .iter()
        .find(|entry| entry["what"] == "verdict" && entry["by"] == "person")
        .expect("an entry");
    assert_eq!(
        person["uid"],
        rustix::process::getuid().as_raw(),
        "{person}"
    );
    assert_eq!(person["input"]["command"], command, "{person}");
}

/// A key that is longer than a row of the screen, in a message, a tool's input and its output.
fn nothing_secret_is_written_down(daemon: &Daemon) {
    let secret = "Kq7".repeat(50);
    let key = format!("sk-ant-api03-{secret}");
    let command = format!("mkfifo {}", daemon.cwd("coder").join(&key[..100]).display());
    let tool = Step::tool("Bash", json!({ "command": command }));
    let said = format!("I have used {key} for it.");
    let words = format!("keep this: {key}");
    daemon.endpoint.on(&words, vec![tool, Step::text(&said)]);
    daemon.cmd(&["send", "coder", &words]).expect(5);
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");

    // What stands before it is a letter, but one of an escape.
    let token = format!("ghp_{}", &secret[..36]);
    let command = format!("echo 'x\\n{token}'");
    let tool = Step::tool("Bash", json!({ "command": command }));
    let said = Step::text("I have used it again.");
    daemon.endpoint.on("keep the other", vec![tool, said]);
    daemon.cmd(&["send", "coder", "keep the other"]).expect(0);
    daemon.wait_state("coder", "idle");
    let judged = audit(daemon);
    let masked = json!({"command": "echo 'x\\n[masked]'"});
    assert!(judged.iter().any(|entry| entry["input"] == masked));

    let part = &secret[..24];
    let cast = daemon.logged("coder.cast");
    assert!(cast.contains(part), "the recording is the truth");
    let written = [
        daemon.log("coder"),
        daemon.logged("coder.events.jsonl"),
        daemon.logged("audit.jsonl"),
        daemon.cmd(&["history", "coder"]).expect(0).stdout,
        daemon
            .cmd(&["search", "coder", "used|Kq7|keep"])
            .expect(0)
            .stdout,
    ];
    for text in written {
        assert!(text.contains("[masked]"), "{text}");
        let at = text.find(part);
        assert_eq!(at.map(|at| &text[at.saturating_sub(200)..at + 24]), None);
    }
}
