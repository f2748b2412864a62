//! Settings that change while the real Claude Code runs: it keeps those that it was started with until it is restarted.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use chrono::{DateTime, Utc};
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A slot that may write in its own directory without a person, and a directory for it to move to.
fn coder() -> Option<(Daemon, PathBuf, PathBuf)> {
    let setup = Setup::new()
        .slot("coder")
        .slot_with("other", "autostart = false")
        .policy("coder", "allow = [\"Edit(**)\"]\n");
    let daemon = Daemon::start(&setup)?;
    daemon.wait_state("coder", "idle");
    let (old, new) = (daemon.cwd("coder"), daemon.cwd("other"));
    Some((daemon, old, new))
}

/// Writes another `cwd` for the slot into slots.toml.
fn move_slot(daemon: &Daemon, from: &Path, to: &Path) {
    let text = fs::read_to_string(daemon.config()).expect("a config");
    let cwd = |path: &Path| format!("cwd = {}", toml::Value::from(path.display().to_string()));
    // The first of the two slots.
    let moved = text.replacen(&cwd(from), &cwd(to), 1);
    assert_ne!(moved, text);
    fs::write(daemon.config(), moved).expect("a config");
}

/// Has Claude Code write this file: whether a rule allowed it. A person says no to what none allows.
fn may_write(daemon: &Daemon, file: &Path) -> bool {
    let prompt = format!("write {}", file.display());
    let write = Step::tool("Write", json!({"file_path": file, "content": "one\n"}));
    daemon
        .endpoint
        .on(&prompt, vec![write, Step::text("I wrote.")]);
    let sent = daemon.cmd(&["send", "coder", &prompt]);
    if sent.code == 5 {
        assert!(!file.exists(), "{sent}");
        daemon.cmd(&["confirm", "coder", "no"]).expect(0);
        daemon.wait_state("coder", "idle");
    }
    assert_eq!(file.exists(), sent.code == 0, "{sent}");
    file.exists()
}

/// Where the last call was judged.
fn judged_in(daemon: &Daemon) -> Value {
    let audit = daemon.logged("audit.jsonl");
    let entries = audit
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut writes = entries.filter(|entry| entry["tool"] == "Write");
    writes.next_back().expect("a verdict")["cwd"].clone()
}

/// The program runs in `old`, and its slot is in `new` by now.
#[track_caller]
fn is_judged_where_it_runs(daemon: &Daemon, old: &Path, new: &Path, file: &str) {
    let status = daemon.status("coder");
    let told = ["cwd", "changed", "new_settings"].map(|key| status[key].clone());
    assert_eq!(told, [json!(old), json!(true), json!(["cwd"])], "{status}");
    assert!(!may_write(daemon, &new.join(file)), "the new directory");
    assert_eq!(judged_in(daemon), json!(old));
    assert!(may_write(daemon, &old.join(file)), "its own directory");
}

#[test]
fn a_program_is_judged_where_it_runs_until_it_is_restarted() {
    let Some((mut daemon, old, new)) = coder() else {
        return;
    };
    let before = daemon.status("coder");

    daemon.crash();
    move_slot(&daemon, &old, &new);
    daemon.again();
    daemon.wait_state("coder", "idle");
    let after = daemon.status("coder");
    for key in ["pid", "started_at"] {
        assert!(!before[key].is_null());
        assert_eq!(after[key], before[key], "{key} of a program taken up");
    }
    is_judged_where_it_runs(&daemon, &old, &new, "down.txt");

    // As it was: nothing waits for the next start.
    move_slot(&daemon, &new, &old);
    daemon.cmd(&["reload"]).expect(0);
    let status = daemon.status("coder");
    assert_eq!(status["changed"], false, "{status}");
    assert_eq!(status["new_settings"], Value::Null, "{status}");

    move_slot(&daemon, &old, &new);
    daemon.cmd(&["reload"]).expect(0);
    is_judged_where_it_runs(&daemon, &old, &new, "reloaded.txt");

    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    let status = daemon.status("coder");
    assert_eq!(status["cwd"], json!(new), "{status}");
    assert_eq!(status["changed"], false, "{status}");
    assert!(may_write(&daemon, &new.join("restarted.txt")));
    assert!(!may_write(&daemon, &old.join("restarted.txt")));
    assert_eq!(judged_in(&daemon), json!(new));
}

/// Makes a plain program of the first slot.
fn make_plain(daemon: &Daemon) {
    let text = fs::read_to_string(daemon.config()).expect("a config");
    let mut config: toml::Table = text.parse().expect("TOML");
    let slot = config["slot"][0].as_table_mut().expect("a slot");
    slot.insert("kind".to_owned(), "shell".into());
    slot.insert("command".to_owned(), vec!["/bin/sh".to_owned()].into());
    fs::write(daemon.config(), config.to_string()).expect("it is written");
}

/// What tells a program that is taken for Claude Code from one that is not.
fn gate(daemon: &Daemon) -> Value {
    daemon.status("coder")["gate"].clone()
}

#[test]
fn a_program_is_taken_for_what_it_is_until_one_of_another_kind_is_started() {
    let Some((mut daemon, old, _)) = coder() else {
        return;
    };
    let of_claude = fs::read_to_string(daemon.config()).expect("a config");
    make_plain(&daemon);
    daemon.cmd(&["reload"]).expect(0);
    assert_eq!(gate(&daemon), "hook", "Claude Code runs");
    // The config has no policy for a plain program: a person is asked, at the dialog of Claude Code.
    assert!(!may_write(&daemon, &old.join("claude.txt")));

    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert_eq!(gate(&daemon), "none", "a shell runs");
    let typed = ["write", "coder", "touch plain.txt\\r"];
    daemon.cmd(&typed).expect(0);
    until("the file of the shell", || {
        old.join("plain.txt").exists().then_some(())
    });

    daemon.crash();
    fs::write(daemon.config(), &of_claude).expect("a config");
    daemon.again();
    daemon.wait_state("coder", "idle");
    assert_eq!(gate(&daemon), "none", "the shell is taken up as one");

    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(may_write(&daemon, &old.join("again.txt")));
    assert_eq!(gate(&daemon), "hook", "Claude Code runs again");
}

/// The state as an older missiond has left it.
fn forget_the_start(daemon: &Daemon) {
    let file = daemon.root().join("state/missiond/missiond/coder.json");
    let text = fs::read_to_string(&file).expect("a state");
    let mut state: Value = serde_json::from_str(&text).expect("JSON");
    let forgotten = state.as_object_mut().expect("a table").remove("launched");
    assert!(forgotten.is_some(), "{text}");
    fs::write(&file, state.to_string()).expect("it is written");
}

fn began(status: &Value) -> DateTime<Utc> {
    let began = status["started_at"].as_str().expect("it runs");
    began.parse().expect("a time")
}

#[test]
fn a_program_without_a_record_of_its_start_is_taken_up_and_nothing_is_guessed() {
    let Some((mut daemon, old, new)) = coder() else {
        return;
    };
    let before = daemon.status("coder");
    let pid = before["pid"].clone();

    // It stands where its slot says.
    daemon.crash();
    forget_the_start(&daemon);
    daemon.again();
    daemon.wait_state("coder", "idle");
    let status = daemon.status("coder");
    assert_eq!(status["pid"], pid);
    assert_eq!(status["gate"], "weak", "{status}");
    // The kernel says when it began, to the second below.
    assert!(began(&status) <= began(&before), "{status}");
    assert!(may_write(&daemon, &old.join("here.txt")));

    // Its slot says another place: nobody knows where it was started.
    daemon.crash();
    move_slot(&daemon, &old, &new);
    daemon.again();
    daemon.wait_state("coder", "idle");
    let status = daemon.status("coder");
    assert_eq!(status["pid"], pid);
    assert_eq!(status["changed"], true, "{status}");
    assert!(daemon.log("coder").contains("nobody knows which settings"));
    assert!(!may_write(&daemon, &old.join("there.txt")));
    assert!(!may_write(&daemon, &new.join("there.txt")));

    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(may_write(&daemon, &new.join("restarted.txt")));
}

/// An edit of the file gives a running program nothing, nor does a reload; the next start has the new role.
#[test]
fn a_program_is_judged_by_the_role_in_which_it_was_started() {
    let setup = Setup::new()
        .slot("coder")
        .slot_with("other", "autostart = false")
        .policy("other", "allow = [\"Edit(**)\"]\n");
    let Some(mut daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let cwd = daemon.cwd("coder");
    let text = fs::read_to_string(daemon.config()).expect("a config");
    let wider = text.replacen("role = \"coder\"", "role = \"other\"", 1);
    assert_ne!(wider, text);
    fs::write(daemon.config(), wider).expect("a config");
    until("it is reported", || {
        let status = daemon.status("coder");
        (status["changed"] == true).then_some(())
    });
    let is_waiting = |daemon: &Daemon| {
        let status = daemon.status("coder");
        let told = ["role", "changed", "new_settings"].map(|key| status[key].clone());
        assert_eq!(
            told,
            [json!("coder"), json!(true), json!(["role"])],
            "{status}"
        );
    };
    is_waiting(&daemon);
    assert!(!may_write(&daemon, &cwd.join("edited.txt")));
    daemon.cmd(&["reload"]).expect(0);
    is_waiting(&daemon);
    assert!(!may_write(&daemon, &cwd.join("reloaded.txt")));

    // No slot names the old role any more; the next daemon knows its policy all the same.
    daemon.crash();
    daemon.again();
    daemon.wait_state("coder", "idle");
    is_waiting(&daemon);
    assert!(!may_write(&daemon, &cwd.join("adopted.txt")));

    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    let status = daemon.status("coder");
    assert_eq!(
        (&status["role"], &status["changed"]),
        (&json!("other"), &json!(false))
    );
    assert!(may_write(&daemon, &cwd.join("restarted.txt")));
}
