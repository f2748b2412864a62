//! However it ends, the terminal is as it was, and the person knows why.

use super::person::{Person, gets_size, shell, shell_with};
use crate::support::until;
use rustix::process::{Pid, Signal, kill_process};

/// Everything that a full-screen program sets.
const UPPER: &str = "printf '\\033[?1049h\\033[?1000h\\033[?1006h\\033[?2004h\\033[?1004h\\033[?25l\\033[>1u\\033[2;5r\\033[36mup'\r";

#[track_caller]
fn full_screen(person: &Person) {
    person.sees("$");
    person.types(UPPER);
    until("the upper screen", || {
        person.is_on_alternate_screen().then_some(())
    });
}

/// What was set is taken back.
#[track_caller]
fn is_put_right(person: &Person) {
    let raw = person.raw();
    let text = String::from_utf8_lossy(&raw).into_owned();
    let at = |part: &str| text.rfind(part).unwrap_or_else(|| panic!("no {part:?}"));
    for (set, taken_back) in [
        ("\x1b[?1000h", "\x1b[?1000l"),
        ("\x1b[?1006h", "\x1b[?1006l"),
        ("\x1b[?2004h", "\x1b[?2004l"),
        ("\x1b[?1004h", "\x1b[?1004l"),
        ("\x1b[?25l", "\x1b[?25h"),
        ("\x1b[?1049h", "\x1b[?1049l"),
        ("\x1b[>1u", "\x1b[<99u"),
        ("\x1b[36m", "\x1b[m"),
        ("\x1b[2;5r", "\x1b[r"),
    ] {
        assert!(at(set) < at(taken_back), "{set:?}");
    }
}

#[test]
fn by_its_key() {
    let daemon = shell();
    let mut person = Person::attach(&daemon, &["sh"], (80, 24));
    full_screen(&person);
    let raw = person.raw();
    let said = String::from_utf8_lossy(&raw);
    assert!(said.starts_with("ctrl-q leaves sh"), "{said:?}");
    person.types(b"\x11");
    person.ends(0, "detached from sh");
    is_put_right(&person);
}

/// A slot that has left the config has its terminal for as long as its program runs.
#[test]
fn by_the_end_of_a_slot_that_was_removed() {
    let mut daemon = shell();
    daemon.crash();
    let config = std::fs::read_to_string(daemon.config()).expect("a config");
    let without = config.replace("name = \"sh\"", "name = \"other\"");
    assert_ne!(without, config);
    std::fs::write(daemon.config(), without).expect("it is written");
    daemon.again();
    assert_eq!(daemon.status("sh")["removed"], true);
    let mut person = Person::attach(&daemon, &["sh"], (80, 24));
    full_screen(&person);
    person.types("echo it-is-$((40+2))\r");
    person.sees("it-is-42");
    person.types(b"\x11");
    person.ends(0, "detached from sh");
    is_put_right(&person);
    let mut again = Person::attach(&daemon, &["sh"], (80, 24));
    again.sees("it-is-42");
    again.types("exit 3\r");
    again.ends(0, "sh exited (3)");
    until("it is no more", || {
        (daemon.cmd(&["status", "sh"]).code == 2).then_some(())
    });
    let mut late = Person::attach(&daemon, &["sh"], (80, 24));
    late.ends(2, "no slot or session `sh`");
}

#[test]
fn by_the_end_of_the_program() {
    let daemon = shell_with("restart = \"never\"");
    let mut person = Person::attach(&daemon, &["sh"], (80, 24));
    full_screen(&person);
    person.types("exit 3\r");
    person.ends(0, "sh exited (3)");
    is_put_right(&person);
    let mut late = Person::attach(&daemon, &["sh"], (80, 24));
    late.ends(4, "missiond start sh");
    late.sees("sh is not running");
}

#[test]
fn by_the_death_of_the_daemon() {
    let mut daemon = shell();
    let mut person = Person::attach(&daemon, &["sh"], (80, 24));
    full_screen(&person);
    daemon.crash();
    person.ends(3, "missiond attach sh");
    person.sees("the daemon went away; sh lives on");
    is_put_right(&person);
    daemon.again();
    gets_size(&daemon, "sh", (100, 30));
}

#[test]
fn by_a_daemon_that_leaves_its_slots() {
    let mut daemon = shell();
    let mut person = Person::attach(&daemon, &["sh"], (80, 24));
    full_screen(&person);
    daemon.cmd(&["down", "--keep"]).expect(0);
    person.ends(0, "the daemon ended; sh lives on");
    daemon.ended();
    daemon.again();
    gets_size(&daemon, "sh", (100, 30));
}

#[test]
fn by_a_signal() {
    let daemon = shell();
    let signals = [
        (Signal::TERM, "SIGTERM"),
        (Signal::INT, "SIGINT"),
        (Signal::HUP, "SIGHUP"),
        (Signal::QUIT, "SIGQUIT"),
    ];
    for (signal, name) in signals {
        let mut person = Person::attach(&daemon, &["sh"], (80, 24));
        full_screen(&person);
        let pid = Pid::from_raw(person.pid()).expect("a pid");
        kill_process(pid, signal).expect("it is a child");
        person.ends(1, &format!("detached from sh by {name}"));
        is_put_right(&person);
        daemon
            .cmd(&["write", "sh", r"printf '\\033[?1049l\\033[r'; clear\r"])
            .expect(0);
        until("the lower screen", || {
            let screen = daemon.cmd(&["screen", "sh"]).stdout;
            screen.starts_with('$').then_some(())
        });
    }
}

/// Whichever part of it fails, in the middle of what a full-screen program has set.
#[test]
fn by_a_panic() {
    let daemon = shell();
    for moment in ["key-read", "key-taken", "before-shown"] {
        let go = daemon.root().join(moment);
        let told = format!("{moment}:{}", go.display());
        let environment = [("MISSIOND_PAUSE", told.as_str())];
        let mut person = Person::run_with(&daemon, &["attach", "sh"], (80, 24), &environment);
        full_screen(&person);
        std::fs::write(&go, "").expect("a file");
        person.types("x");
        person.ends(1, &format!("told to at {moment}"));
        is_put_right(&person);
        gets_size(&daemon, "sh", (100, 30));
        daemon
            .cmd(&["write", "sh", r"\x15printf '\\033[?1049l\\033[r'; clear\r"])
            .expect(0);
        until("the lower screen", || {
            let screen = daemon.cmd(&["screen", "sh"]).stdout;
            screen.starts_with('$').then_some(())
        });
    }
}

#[test]
fn it_does_not_begin_where_it_cannot() {
    let daemon = shell();
    let none = daemon.cmd(&["attach", "sh"]).expect(2);
    assert!(none.stderr.contains("needs a terminal"), "{none}");
    let mut person = Person::attach(&daemon, &["nobody"], (80, 24));
    person.ends(2, "the slots are: sh");
    daemon.cmd(&["stop", "sh"]).expect(0);
    let mut person = Person::attach(&daemon, &["sh"], (80, 24));
    person.ends(4, "missiond start sh");
    let mut person = Person::run(&daemon, &["attach"], (80, 24));
    assert_eq!(person.ended(), 2);
}

/// Whoever is inside a slot would look at himself, and could approve what he asks.
#[test]
fn nobody_attaches_from_inside_a_slot() {
    let daemon = shell();
    let person = Person::attach(&daemon, &["sh"], (100, 30));
    person.sees("$");
    let program = env!("CARGO_BIN_EXE_missiond");
    person.types(format!("clear; {program} attach sh; echo code-$?\r"));
    person.sees("inside slot sh: nobody approves himself");
    person.sees("code-4");
    assert_eq!(daemon.status("sh")["attached"], 1);
}
