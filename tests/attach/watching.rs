//! Tables that are drawn again each second.

use super::person::{Person, shell};
use crate::support::daemon::Daemon;

const CTRL_C: &str = "\x03";

fn spawn(daemon: &Daemon, id: &str) {
    let line = ["spawn", "-q", "--id", id, "--", "sleep", "1000"];
    daemon.cmd(&line).expect(0);
}

/// Each draws over itself what is new, and ends with Ctrl-C.
#[test]
fn status_and_sessions_go_on_showing_what_is_there() {
    let daemon = shell();
    let mut sessions = Person::run(&daemon, &["sessions", "--watch"], (120, 20));
    sessions.sees("no sessions; make one with: missiond session spawn");
    spawn(&daemon, "build");
    sessions.sees("build ");
    assert!(sessions.no_longer_sees("no sessions"));
    sessions.sees_that("the table once", |rows| {
        let count = |word: &str| rows.iter().filter(|row| row.contains(word)).count();
        rows[0].starts_with("ID") && count("COMMAND") == 1 && count("sleep 1000") == 1
    });
    spawn(&daemon, "other");
    sessions.sees_that("one more row", |rows| rows.len() == 3);
    for id in ["build", "other"] {
        daemon.cmd(&["close", id]).expect(0);
    }
    sessions.sees_that("no rows", |rows| {
        rows == ["no sessions; make one with: missiond session spawn"]
    });
    sessions.types(CTRL_C);
    assert_eq!(sessions.ended(), 0);

    let mut status = Person::run(&daemon, &["status", "--watch"], (120, 20));
    status.sees_that("the slot", |rows| {
        rows.iter().any(|row| row.starts_with("sh "))
    });
    daemon.cmd(&["stop", "sh"]).expect(0);
    status.sees("exited");
    status.types(CTRL_C);
    assert_eq!(status.ended(), 0);
}

/// The figures of the columns CPU and MEM in the row that begins so.
fn used(rows: &[String], begin: &str) -> Option<(u32, u32)> {
    let header = rows.first()?;
    assert!(header.find("CPU")? < header.find("MEM")?);
    let row = rows.iter().find(|row| row.starts_with(begin))?;
    let mut words = row.split_whitespace();
    let percent = words.find_map(|word| word.strip_suffix('%'))?;
    let megabytes = words.next()?.strip_suffix('M')?;
    Some((percent.parse().ok()?, megabytes.parse().ok()?))
}

#[test]
fn both_tables_show_the_processor_time_and_the_memory_in_use() {
    let daemon = shell();
    let busy = "while :; do :; done";
    let line = ["spawn", "-q", "--id", "busy", "--", "sh", "-c", busy];
    daemon.cmd(&line).expect(0);
    daemon.cmd(&["write", "sh", &format!("{busy}\r")]).expect(0);
    for (table, row) in [("sessions", "busy "), ("status", "sh ")] {
        let person = Person::run(&daemon, &[table, "--watch"], (160, 20));
        person.sees_that("what a busy program uses", |rows| {
            used(rows, row).is_some_and(|(percent, _)| percent > 0)
        });
    }
}
