//! What a program writes does nothing to the terminal of whoever reads it.

use super::person::Person;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;

/// Writes to the clipboard, a control character of the C1 set as UTF-8, and an override of the reading direction.
const HOSTILE: &str = "printf 'begin\\033]52;c;aGk=\\007\\302\\2332J\\342\\200\\256end\\n'";

fn acts(raw: &[u8]) -> Vec<&'static str> {
    let parts: [(&str, &[u8]); 3] = [
        ("OSC 52", b"\x1b]52"),
        ("C1", b"\xc2\x9b"),
        ("bidi", b"\xe2\x80\xae"),
    ];
    let has = |part: &[u8]| raw.windows(part.len()).any(|window| window == part);
    let found = parts.into_iter().filter(|(_, part)| has(part));
    found.map(|(name, _)| name).collect()
}

/// Every verb that prints what a program has written, on a terminal: nothing of it acts there, unless that is asked for.
#[test]
fn what_a_program_writes_is_harmless_on_a_terminal() {
    let setup = Setup::new()
        .slot_with("a", "kind = \"shell\"")
        .table("[sessions]");
    let script = format!("{HOSTILE}; exec sleep 1000");
    let daemon = Daemon::start_with(&setup, &["/bin/sh", "-c", &script].map(str::to_owned));
    daemon.wait_state("a", "idle");
    let once = format!("{HOSTILE}; exit 0");
    let spawn = ["spawn", "--id", "b", "--", "/bin/sh", "-c", &once];
    daemon.cmd(&spawn).expect(0);
    daemon.cmd(&["wait", "b", "--exit"]).expect(0);
    daemon
        .cmd(&["wait", "a", "--output", "begin", "--timeout", "50s"])
        .expect(0);
    daemon.cmd(&["write", "a", "unread"]).expect(0);
    let exec = ["exec", "--timeout", "50s", "--", "/bin/sh", "-c", &once];
    let cases: &[&[&str]] = &[
        &exec,
        &["follow", "b"],
        &["output", "b"],
        &["screen", "a"],
        &["screen", "a", "--ansi"],
        &["search", "a", "begin"],
        &["search", "b", "begin"],
        &["logs", "a"],
        &["logs", "b"],
        &["sessions"],
        &["info", "b"],
        &["status"],
        &["events"],
        &["audit", "tail"],
        &["follow", "b", "--json"],
        &["output", "b", "--json"],
    ];
    for case in cases {
        let mut person = Person::run(&daemon, case, (150, 30));
        person.ended();
        let prints = ["exec", "follow", "output", "screen", "search"].contains(&case[0]);
        let raw = until(&format!("all of {case:?} to be shown"), || {
            let raw = person.raw();
            let is_shown = !prints || raw.windows(3).any(|window| window == b"end");
            (is_shown && !raw.is_empty()).then_some(raw)
        });
        assert_eq!(acts(&raw), [""; 0], "{case:?}: {}", raw.escape_ascii());
    }
    let raw: &[&[&str]] = &[
        &[
            "exec",
            "--raw",
            "--timeout",
            "50s",
            "--",
            "/bin/sh",
            "-c",
            &once,
        ],
        &["follow", "b", "--raw"],
        &["output", "b", "--bytes"],
    ];
    for case in raw {
        let mut person = Person::run(&daemon, case, (150, 30));
        person.ended();
        until("all of it to be shown", || {
            (acts(&person.raw()) == ["OSC 52", "C1", "bidi"]).then_some(())
        });
    }
}
