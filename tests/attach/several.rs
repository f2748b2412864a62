//! Several terminals at once, and those that only watch.

use super::person::{Person, gets_size, shell, size_of};

#[test]
fn the_smallest_decides_and_a_larger_one_shows_it_whole() {
    let daemon = shell();
    let mut large = Person::attach(&daemon, &["sh"], (110, 35));
    gets_size(&daemon, "sh", (110, 35));
    large.sees("$");
    let mut small = Person::attach(&daemon, &["sh"], (70, 40));
    // The least of either direction.
    gets_size(&daemon, "sh", (70, 35));
    small.types("stty size\r");
    for person in [&large, &small] {
        person.sees("35 70");
        person.sees("sh: 70x35, ");
    }
    // Both type.
    large.types("echo from-large\r");
    small.sees("from-large");
    small.types(b"\x11");
    small.ends(0, "detached from sh");
    gets_size(&daemon, "sh", (110, 35));
    large.sees_that("no note", |rows| {
        !rows.iter().any(|row| row.contains("sh: "))
    });
    large.types(b"\x11");
    large.ends(0, "detached from sh");
    gets_size(&daemon, "sh", (100, 30));
}

#[test]
fn who_only_watches_changes_nothing() {
    let daemon = shell();
    daemon.cmd(&["write", "sh", "seq 60\\r"]).expect(0);
    let mut watcher = Person::attach(&daemon, &["sh", "--read-only"], (40, 10));
    watcher.sees("sh (read-only): 100x30, more than fits");
    // The lower part is what matters.
    watcher.sees("60");
    assert_eq!(size_of(&daemon, "sh"), (100, 30));
    watcher.types("echo never\r");
    daemon.cmd(&["write", "sh", "echo al''ways\\r"]).expect(0);
    watcher.sees("always");
    assert!(!watcher.screen().iter().any(|row| row.contains("never")));
    let log = daemon.log("sh");
    assert!(!log.contains("types"), "{log}");
    watcher.types(b"\x11");
    watcher.ends(0, "detached from sh");

    // Of the slot's own size it sees the very bytes.
    let same = Person::attach(&daemon, &["sh", "--read-only"], (100, 30));
    same.sees("always");
    assert!(!same.is_on_alternate_screen());
}

#[test]
fn a_few_lines_at_the_top_are_seen_in_a_smaller_terminal() {
    let daemon = shell();
    daemon.cmd(&["write", "sh", "clear; seq 4\\r"]).expect(0);
    for size in [(60, 20), (60, 10)] {
        let watcher = Person::attach(&daemon, &["sh", "--read-only"], size);
        watcher.sees_that("all lines from the first row on", |rows| {
            rows.starts_with(&["1", "2", "3", "4", "$"].map(str::to_owned))
        });
    }
}

#[test]
fn a_client_that_is_killed_gives_the_size_back() {
    let daemon = shell();
    let mut person = Person::attach(&daemon, &["sh"], (80, 24));
    gets_size(&daemon, "sh", (80, 24));
    crate::support::processes::kill(person.pid());
    gets_size(&daemon, "sh", (100, 30));
    let _ = &mut person;
}

#[test]
fn there_is_an_end_to_how_many() {
    let daemon = shell();
    let people: Vec<Person> = (0..16)
        .map(|_| Person::attach(&daemon, &["sh", "--read-only"], (80, 24)))
        .collect();
    people.iter().for_each(|person| person.sees("$"));
    let mut one_more = Person::attach(&daemon, &["sh"], (80, 24));
    one_more.ends(4, "16 terminals are attached already");
}
