//! The real Claude Code, with a person at its keyboard.

use super::person::{Person, gets_size};
use crate::support::daemon::Daemon;
use crate::support::disk::SmallDisk;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};

#[test]
fn a_person_works_at_the_terminal_of_claude_code() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    daemon
        .endpoint
        .on("this is typed by hand", vec![Step::text("This was read.")]);
    let mut person = Person::attach(&daemon, &["coder"], (100, 30));
    gets_size(&daemon, "coder", (100, 30));
    person.sees("❯");
    person.types("this is typed by hand");
    person.sees("this is typed by hand");
    messages_wait(&daemon);
    person.types("\r");
    person.sees("This was read.");
    daemon.wait_state("coder", "idle");
    acting_keys_are_written_down(&daemon, &person);
    answered_by_hand(&daemon, &person);
    person.types(b"\x11");
    person.ends(0, "detached from coder");
    gets_size(&daemon, "coder", (120, 40));
    daemon.cmd(&["audit", "verify"]).expect(0);
}

/// A key that can't be written down reaches neither a dialog nor the input box, and the person is told so instead of left to wonder.
#[test]
fn keys_are_refused_on_a_full_disk() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    let Some(disk) = SmallDisk::mount(&daemon.logs(), "4m") else {
        return;
    };
    daemon.again();
    daemon.wait_state("coder", "idle");
    let pipe = daemon.cwd("coder").join("by-hand");
    let call = Step::tool(
        "Bash",
        json!({"command": format!("mkfifo {}", pipe.display())}),
    );
    daemon.endpoint.on("make the pipe", vec![call]);
    daemon.cmd(&["send", "coder", "make the pipe"]).expect(5);
    let dialog = daemon.wait_dialog("coder");
    // What is left of the audit's last page is used up by then.
    let refused = until("the audit to fail", || {
        disk.fill();
        let keys = daemon.cmd(&["keys", "coder", "up", "--into-dialog"]);
        (keys.code != 0).then_some(keys)
    });
    refused.expect(4);
    // A number, Shift+Tab, a letter, and a paste with a number in it.
    let paste = format!("{}1", "x".repeat(40));
    for keys in ["1", "\x1b[Z", "y", &paste] {
        let mut person = Person::attach(&daemon, &["coder"], (100, 30));
        person.sees("1. Yes");
        disk.fill();
        person.types(keys);
        person.ends(4, "the audit can't be written");
        assert_eq!(daemon.wait_dialog("coder")["id"], dialog["id"], "{keys}");
    }
    assert!(!pipe.exists());
    // A no is always possible. In the input box, too, nobody types what can't be written down.
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
    daemon.wait_state("coder", "idle");
    let mut person = Person::attach(&daemon, &["coder"], (100, 30));
    person.sees("❯");
    disk.fill();
    person.types("unwritten");
    person.ends(4, "the audit can't be written");
    let screen = daemon.cmd(&["screen", "coder"]).expect(0).stdout;
    assert!(!screen.contains("unwritten"), "{screen}");
    disk.free();
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
}

/// What is sent while somebody types is not typed in between.
fn messages_wait(daemon: &Daemon) {
    let doing = daemon.status("coder")["doing"].to_string();
    assert!(doing.contains("a person types"), "{doing}");
    let sent = daemon
        .cmd(&["send", "coder", "in between", "--timeout", "2s"])
        .expect(124);
    assert!(sent.stderr.contains("a person is typing"), "{sent}");
    let log = daemon.log("coder");
    assert!(
        log.contains("types: answers by rule and messages wait"),
        "{log}"
    );
}

/// What sends a message or stops a turn at the keyboard is in the audit with who pressed it, and nothing of what was typed.
fn acting_keys_are_written_down(daemon: &Daemon, person: &Person) {
    let steps = vec![Step::gate("later"), Step::text("It is done.")];
    daemon.endpoint.on("take your time", steps);
    person.types("take your time");
    person.sees("take your time");
    person.types("\r");
    daemon.wait_state("coder", "thinking,responding");
    person.types("\x1b");
    daemon.wait_state("coder", "idle");
    let audit = daemon.logged("audit.jsonl");
    let mut keys = Vec::new();
    for line in audit.lines() {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(entry["by"], "person", "{entry}");
        assert_eq!(entry["uid"], rustix::process::getuid().as_raw(), "{entry}");
        assert_eq!(entry["via"], "attach", "{entry}");
        assert!(entry["pid"].is_number(), "{entry}");
        keys.push(entry["key"].clone());
    }
    // They begin once more after a pause.
    assert_eq!(keys[0], "begins to type", "{audit}");
    keys.retain(|key| key != "begins to type");
    assert_eq!(keys, ["Enter", "Enter", "Esc"], "{audit}");
    // Claude Code puts the message back into its input box.
    person.types("\x15");
    assert!(
        !audit.contains("your time") && !audit.contains("by hand"),
        "{audit}"
    );
}

/// What is answered at the keyboard is written down as the answer of a person.
fn answered_by_hand(daemon: &Daemon, person: &Person) {
    let pipe = daemon.cwd("coder").join("by-hand");
    let call = Step::tool(
        "Bash",
        json!({"command": format!("mkfifo {}", pipe.display())}),
    );
    daemon
        .endpoint
        .on("make the pipe", vec![call, Step::text("It is made.")]);
    person.types("make the pipe");
    person.sees("make the pipe");
    person.types("\r");
    daemon.wait_dialog("coder");
    person.sees("1. Yes");
    assert!(!pipe.exists());
    until("the key to be taken", || {
        // Claude Code drops keys for a moment after it has drawn a dialog. Whoever sees it stand presses again.
        person.types("1");
        person.no_longer_sees("1. Yes").then_some(())
    });
    person.sees("It is made.");
    assert!(pipe.exists());
    let is_verdict = |entry: &Value| entry["what"] == "verdict" && entry["tool"] == "Bash";
    // The verdict is written once the dialog is seen to be gone, which the person may see before.
    let entries = until("the verdict of a person", || {
        let audit = daemon.logged("audit.jsonl");
        let entry = |line: &str| serde_json::from_str(line).ok();
        let entries: Vec<Value> = audit.lines().filter_map(entry).collect();
        let is_theirs = |entry: &Value| is_verdict(entry) && entry["by"] == "person";
        entries.iter().any(is_theirs).then_some(entries)
    });
    // That they type is written down before the first key, and each key at a dialog before it is pressed.
    let mut keys = entries
        .iter()
        .filter(|entry| entry["what"] == "key" && entry["by"] == "person");
    let begins = keys.next().expect("an entry");
    assert_eq!(begins["key"], "begins to type", "{begins}");
    let pressed = keys
        .find(|entry| entry["key"] == "1")
        .expect("the key is in the audit");
    assert_eq!(pressed["by"], "person", "{pressed}");
    assert!(pressed["pid"].is_number(), "{pressed}");
    let why = pressed["why"].as_str().expect("a reason");
    assert!(why.contains("a person at the keyboard"), "{pressed}");
    let verdicts: Vec<Value> = entries.into_iter().filter(is_verdict).collect();
    let his = verdicts.iter().find(|entry| entry["by"] == "person");
    let his = his.expect("it is there");
    assert_eq!(his["uid"], rustix::process::getuid().as_raw(), "{his}");
    assert_eq!(his["verdict"], "allow", "{his}");
    until("the log to say so", || {
        daemon
            .log("coder")
            .contains("a person at the keyboard chose Yes")
            .then_some(())
    });
}
