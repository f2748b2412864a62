//! `missiond top`, with a person at its keyboard.

use super::person::{Person, gets_size, shell};
use crate::support::daemon::Daemon;
use crate::support::processes;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::Duration;

const SIZE: (u16, u16) = (80, 24);
/// A person needs longer than this to read an ask, and so the dashboard takes no answer before.
const READING: Duration = Duration::from_millis(2000);

#[test]
fn an_ask_of_claude_code_is_answered_in_the_dashboard() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let pipe = daemon.cwd("coder").join("from-the-dashboard");
    let command = format!("mkfifo {}", pipe.display());
    let call = Step::tool("Bash", json!({"command": command}));
    let steps = vec![call, Step::text("The pipe is there.")];
    daemon.endpoint.on("make the pipe", steps);
    let mut person = Person::run(&daemon, &["top"], SIZE);
    person.sees("1 idle");
    person.types("s");
    person.sees("message:");
    person.types("make the pipe\r");
    person.sees("coder asks");
    person.sees("mkfifo ");
    assert!(!pipe.exists());
    // A key that comes before the ask could be read does nothing; then it is pressed again, not too soon.
    until("the call to run", || {
        std::thread::sleep(READING);
        person.types("y");
        pipe.exists().then_some(())
    });
    person.sees("coder yes: decided, key 1, dialog gone, ran");
    person.sees("The pipe is there.");
    // Looking on has not changed the size of the slot.
    gets_size(&daemon, "coder", (120, 40));
    person.types("q");
    assert_eq!(person.ended(), 0);
    let audit = daemon.cmd(&["audit", "grep", "--verdict", "allow", "--json"]);
    let entries = audit.expect(0).json_lines().into_iter();
    let by_person: Vec<Value> = entries.filter(|entry| entry["by"] == "person").collect();
    assert_eq!(by_person.len(), 1, "{by_person:?}");
    let shown = by_person[0].to_string();
    assert!(shown.contains("cli top"), "{shown}");
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let daemon = shell();
    let signals = [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT];
    for end in [None].into_iter().chain(signals.map(Some)) {
        let mut person = Person::run(&daemon, &["top"], SIZE);
        person.sees("sh live");
        assert!(person.is_on_alternate_screen());
        let code = match end {
            None => {
                person.types("q");
                0
            }
            Some(signal) => {
                let pid = Pid::from_raw(person.pid()).expect("a pid");
                kill_process(pid, signal).expect("it runs");
                1
            }
        };
        assert_eq!(person.ended(), code, "{end:?}: {:?}", person.screen());
        assert!(!person.is_on_alternate_screen(), "{end:?}");
    }
}

#[test]
fn attach_comes_back_to_the_dashboard() {
    let daemon = shell();
    let mut person = Person::run(&daemon, &["top"], SIZE);
    person.sees("sh live");
    person.types("\r");
    person.sees_that("the shell alone", |rows| {
        let text = rows.join("\n");
        text.contains('$') && !text.contains("sh live")
    });
    person.types("echo $((40 + 2))\r");
    person.sees("42");
    person.types(b"\x11");
    person.sees("sh live");
    person.types("q");
    assert_eq!(person.ended(), 0);
}

/// Ctrl-C ends the log that is followed, and not the dashboard.
#[test]
fn a_command_that_is_ended_by_hand_comes_back_too() {
    let daemon = shell();
    let mut person = Person::run(&daemon, &["top"], SIZE);
    person.sees("sh live");
    person.types("L");
    person.sees("Ctrl-C ends it");
    until("the way back", || {
        person.types(b"\x03");
        let screen = person.screen().join("\n");
        screen.contains("press Enter").then_some(())
    });
    person.types("\r");
    person.sees("sh live");
    person.types("q");
    assert_eq!(person.ended(), 0);
}

#[test]
fn a_dashboard_that_was_stopped_goes_on_where_it_was() {
    let daemon = shell();
    let mut person = Person::run(&daemon, &["top"], SIZE);
    person.sees("sh live");
    person.types(b"\x1a");
    person.sees_that("the screen before", |rows| {
        !rows.join("\n").contains("sh live")
    });
    assert!(!person.is_on_alternate_screen());
    processes::go_on(person.pid());
    person.sees("sh live");
    person.types("q");
    assert_eq!(person.ended(), 0);
}

#[test]
fn a_daemon_that_goes_is_waited_for() {
    let mut daemon = shell();
    let mut person = Person::run(&daemon, &["top"], SIZE);
    person.sees("sh live");
    daemon.crash();
    person.sees("DAEMON AWAY");
    daemon.again();
    person.sees_that("the daemon is back", |rows| {
        rows.last().is_some_and(|row| row.starts_with(" live"))
    });
    person.types("q");
    assert_eq!(person.ended(), 0);
    assert!(!processes::all_of(daemon.root()).is_empty());
}

#[test]
fn sessions_are_a_tab_that_follows_what_happens() {
    let daemon = shell();
    let mut person = Person::run(&daemon, &["top"], SIZE);
    person.sees("sh live");
    person.types("\t");
    person.sees("no sessions");
    daemon.cmd(&["spawn", "--", "sleep", "600"]).expect(0);
    person.sees("sleep 600");
    person.types(b"\x1b");
    person.sees("sh live");
    person.types("q");
    assert_eq!(person.ended(), 0);
}

#[test]
fn it_draws_on_terminals_alone() {
    let daemon = shell();
    let refused = daemon.cmd(&["top"]).expect(2);
    assert!(
        refused.stderr.contains("the dashboard needs a terminal"),
        "{}",
        refused.stderr
    );
}
