//! The real Claude Code, with a person at its keyboard.

use super::person::{Person, gets_size};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::rehearsal::Step;
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
    answered_by_hand(&daemon, &person);
    person.types(b"\x11");
    person.ends(0, "detached from coder");
    gets_size(&daemon, "coder", (120, 40));
    daemon.cmd(&["audit", "verify"]).expect(0);
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
    let audit = daemon.logged("audit.jsonl");
    let entries: Vec<Value> = audit
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    // The key is written down before it is pressed, with who pressed it.
    let pressed = entries
        .iter()
        .find(|entry| entry["what"] == "key" && entry["by"] == "person")
        .expect("the key is in the audit");
    assert_eq!(pressed["key"], "1", "{pressed}");
    assert!(pressed["pid"].is_number(), "{pressed}");
    let why = pressed["why"].as_str().expect("a reason");
    assert!(why.contains("at an attached terminal"), "{pressed}");
    let verdicts: Vec<Value> = entries
        .into_iter()
        .filter(|entry: &Value| entry["what"] == "verdict" && entry["tool"] == "Bash")
        .collect();
    let by: Vec<&Value> = verdicts.iter().map(|entry| &entry["by"]).collect();
    assert!(by.contains(&&json!("person")), "{verdicts:?}");
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
