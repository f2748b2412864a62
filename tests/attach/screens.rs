//! What a person sees, and that it is what the program shows.

use super::person::{Person, gets_size, shell};
use crate::support::daemon::Daemon;
use crate::support::until;
use missiond::core::cast::{CastKind, Recording};
use missiond::core::terminal::Terminal;

fn slot_screen(daemon: &Daemon) -> Vec<String> {
    let screen = daemon.json(&["screen", "sh"]);
    let lines = screen["lines"].as_array().expect("lines").iter();
    let mut rows: Vec<String> = lines
        .map(|line| line.as_str().expect("text").to_owned())
        .collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// Waits until both show the same.
#[track_caller]
fn agrees(person: &Person, daemon: &Daemon) {
    person.sees_that("what the slot shows", |rows| rows == slot_screen(daemon));
}

#[test]
fn the_screen_is_there_at_once_and_what_is_typed_arrives() {
    let daemon = shell();
    daemon.cmd(&["write", "sh", "echo one\\r"]).expect(0);
    daemon
        .cmd(&["wait", "sh", "--output", "^one$", "--timeout", "50s"])
        .expect(0);
    let mut person = Person::attach(&daemon, &["sh"], (80, 24));
    person.sees("$ echo one");
    person.types("stty size; printf '\\033[1;31mé漢\\033[m\\n'\r");
    person.sees("24 80");
    person.sees("é漢");
    agrees(&person, &daemon);
    assert_eq!(daemon.status("sh")["attached"], 1);
    person.resizes(70, 20);
    gets_size(&daemon, "sh", (70, 20));
    agrees(&person, &daemon);
    person.types(b"\x11");
    person.ends(0, "detached from sh");
    gets_size(&daemon, "sh", (100, 30));
    assert_eq!(daemon.status("sh")["attached"], 0);
    let log = daemon.log("sh");
    assert!(
        log.contains("attached  uid") && log.contains("detached  uid"),
        "{log}"
    );
    the_recording_has_the_sizes(&daemon);
}

/// A replay of the recording ends with the screen that is there.
fn the_recording_has_the_sizes(daemon: &Daemon) {
    let text = daemon.logged("sh.cast");
    let recording = Recording::read(text.as_bytes()).expect("a recording");
    let mut terminal = Terminal::new(recording.header().cols, recording.header().rows);
    let mut sizes = Vec::new();
    for event in recording {
        let event = event.expect("a good event");
        match event.what {
            CastKind::Output(text) => drop(terminal.feed(event.at, text.as_bytes())),
            CastKind::Resize { cols, rows } => {
                sizes.push((cols, rows));
                terminal.resize(event.at, cols, rows);
            }
            CastKind::Marker(_) | CastKind::Exit => {}
        }
    }
    assert_eq!(sizes, [(80, 24), (70, 20), (100, 30)]);
    let mut rows: Vec<String> = terminal
        .screen()
        .lines
        .into_iter()
        .map(|line| line.text.clone())
        .collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    assert_eq!(rows, slot_screen(daemon));
}

#[test]
fn a_daemon_that_comes_later_reads_what_the_first_one_read() {
    let mut daemon = shell();
    let person = Person::attach(&daemon, &["sh"], (60, 20));
    person.sees("$");
    let line = "seq 30; echo wrapped-$(seq -s - 40)";
    person.types(format!("{line}\r"));
    person.sees("38-39-40");
    let before = slot_screen(&daemon);
    daemon.crash();
    drop(person);
    daemon.again();
    // Nobody is attached any more.
    gets_size(&daemon, "sh", (100, 30));
    let person = Person::attach(&daemon, &["sh"], (60, 20));
    person.sees_that("the same screen", |rows| rows == before);
}

#[test]
fn who_joins_a_full_screen_program_sees_it_and_what_is_below_it() {
    let daemon = shell();
    let below = r"echo below; printf '\\033[?1049h\\033[2J\\033[3;5Habove'; read x; printf '\\033[?1049l'\r";
    daemon.cmd(&["write", "sh", below]).expect(0);
    daemon
        .cmd(&["wait", "sh", "--output", "above", "--timeout", "50s"])
        .expect(0);
    let mut person = Person::attach(&daemon, &["sh"], (100, 30));
    person.sees_that("the upper screen", |rows| rows == ["", "", "    above"]);
    assert!(person.is_on_alternate_screen());
    person.types("\r");
    person.sees("below");
    agrees(&person, &daemon);
    assert!(!person.is_on_alternate_screen());
    person.types(b"\x11");
    person.ends(0, "detached from sh");
}

/// Whenever somebody joins a stream, its end is the same: nothing is lost and nothing comes twice.
#[test]
fn whoever_joins_a_stream_ends_with_the_same_screen() {
    let daemon = shell();
    let flood = r"for i in $(seq 4000); do printf '\\033[3%dmline %d \\033[m漢字\\n' $((i % 8)) $i; done; printf 'the %s\\n' end\r";
    daemon.cmd(&["write", "sh", flood]).expect(0);
    let people: Vec<Person> = (0..6)
        .map(|_| Person::attach(&daemon, &["sh"], (100, 30)))
        .collect();
    for person in &people {
        person.sees("the end");
        agrees(person, &daemon);
    }
    let whole = people.iter().filter(|person| {
        let raw = person.raw();
        let text = String::from_utf8_lossy(&raw);
        (3000..=4000).all(|n| text.matches(&format!("line {n} ")).count() <= 2)
    });
    assert_eq!(whole.count(), people.len());
}

/// The program asks its terminal and hears one answer, however many look on.
#[test]
fn a_question_is_answered_once() {
    let daemon = shell();
    let mut people: Vec<Person> = (0..2)
        .map(|_| Person::attach(&daemon, &["sh"], (100, 30)))
        .collect();
    people.iter().for_each(|person| person.sees("$"));
    // Without echo from the first, since the answers may come before `read` turns it off.
    let ask = "stty -echo; printf '\\033[c\\033[6n\\033]11;?\\007'; IFS= read -rs -t 2 -n 200 -d '~' x; stty echo; printf '<%q>\\n' \"$x\"\r";
    people[0].types(ask);
    people[0].sees("<$'\\E[?6c\\E[");
    let screen = people[0].screen().join("");
    assert_eq!(screen.matches("[?6c").count(), 1, "{screen}");
    assert_eq!(screen.matches("rgb:").count(), 1, "{screen}");
    for person in &mut people {
        person.types(b"\x11");
        person.ends(0, "detached from sh");
    }
}

/// One who stops reading slows nobody, and sees the screen as it is when he goes on.
#[test]
fn who_falls_behind_is_shown_the_screen_again() {
    let daemon = shell();
    let person = Person::attach(&daemon, &["sh"], (100, 30));
    person.sees("$");
    let pid = rustix::process::Pid::from_raw(person.pid()).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("a child");
    // More than all buffers on the way hold.
    let flood = r"head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo over-$((40+2))\r";
    daemon.cmd(&["write", "sh", flood]).expect(0);
    until("the end of the flood", || {
        slot_screen(&daemon)
            .iter()
            .any(|row| row == "over-42")
            .then_some(())
    });
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("a child");
    person.sees("over-42");
    agrees(&person, &daemon);
}
