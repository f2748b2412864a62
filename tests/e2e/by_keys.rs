//! Keys that are written at an open dialog of the real Claude Code.

use super::words::on_make_pipe;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use serde_json::{Value, json};

#[test]
fn keys_into_a_dialog_are_refused_or_a_verdict_of_a_person() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let pipe = daemon.cwd("coder").join("by-keys");
    on_make_pipe(&daemon, "make it", &pipe, "It is made.");
    daemon.cmd(&["send", "coder", "make it"]).expect(5);
    let dialog = daemon.wait_dialog("coder");
    let id = dialog["id"].as_str().expect("an id");
    nothing_reaches_it(&daemon, id);
    assert_eq!(daemon.status("coder")["dialog"], dialog);
    assert!(!pipe.exists(), "approved by keys that were refused");
    assert_eq!(by_people(&daemon), Vec::<Value>::new());

    until("the key to be taken", || {
        // Claude Code drops keys for a moment after it has drawn a dialog.
        daemon.cmd(&["write", "coder", "1", "--into-dialog"]);
        pipe.exists().then_some(())
    });
    let verdicts = by_people(&daemon);
    let verdict = &verdicts[0];
    assert_eq!(verdict["verdict"], "allow", "{verdict}");
    assert_eq!(verdict["tool"], "Bash", "{verdict}");
    let command = format!("mkfifo {}", pipe.display());
    assert_eq!(verdict["input"]["command"], command, "{verdict}");
    assert_eq!(verdict["key"], "1", "{verdict}");
    let uid = rustix::process::getuid().as_raw();
    assert_eq!(verdict["uid"], uid, "{verdict}");
    assert!(verdict["pid"].is_number(), "{verdict}");
    assert!(verdict["why"].to_string().contains(id), "{verdict}");
    let log = daemon.log("coder");
    assert!(log.contains("a person wrote keys into the dialog"), "{log}");
    daemon.wait_state("coder", "idle");
    // With no dialog there is nothing to say about it.
    daemon.cmd(&["keys", "coder", "x", "backspace"]).expect(0);
    daemon.cmd(&["audit", "verify"]).expect(0);
}

/// The ways in which a key could come to the dialog.
fn nothing_reaches_it(daemon: &Daemon, id: &str) {
    for words in [
        &["type", "coder", "1"][..],
        &["type", "coder", "1", "--quiet", "100ms"],
        &["write", "coder", "1"],
        &["write", "coder", "\\r"],
        &["keys", "coder", "enter"],
        &["keys", "coder", "y"],
        &["signal", "coder", "INT"],
    ] {
        let refused = daemon.cmd(words).expect(4);
        assert!(refused.stderr.contains("missiond "), "{words:?}: {refused}");
    }
    let refused = daemon.cmd(&["keys", "coder", "enter"]).expect(4);
    let names = |word: &str| refused.stderr.contains(word);
    assert!(names("missiond confirm coder") && names(id), "{refused}");
    assert!(names("--into-dialog"), "{refused}");
}

fn by_people(daemon: &Daemon) -> Vec<Value> {
    let audit = daemon.logged("audit.jsonl");
    let entries = audit
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let by_person = |entry: &Value| entry["what"] == "verdict" && entry["by"] == json!("person");
    entries.filter(by_person).collect()
}
