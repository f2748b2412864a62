//! Logs and recordings that grow, and a disk that is full.

use super::shells::*;
use super::socket::write_many;
use crate::support::daemon::Daemon;
use crate::support::disk::SmallDisk;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::core::cast::{CastKind, Recording, event_line, header_line};
use missiond::core::claude::reading::{Dialog, Observer, Seen, State, replay};
use missiond::core::terminal::{At, Terminal};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// Writes some 20 MB with no pause, then says what it reads.
const FLOODS: &str = "stty -echo; read go; \
    awk 'BEGIN { for (i = 1; i <= 260000; i++) { print \"tick \" i; if (i % 2 == 0) \
    print \"and some more of it, so that it becomes a lot, a lot, a lot, a lot, a lot, a lot, a lot, a lot, a lot, a lot\" } }'; \
    while read -r line; do echo \"got $line\"; done";

#[test]
fn a_recording_is_rotated_under_a_flood_and_loses_nothing() {
    let mut daemon = shells(&["a"], FLOODS);
    daemon.wait_state("a", "idle");
    daemon.cmd(&["write", "a", "go\\r"]).expect(0);
    daemon.cmd(&["write", "a", "done\\r"]).expect(0);
    let done = daemon.spawn(&["wait", "a", "--output", "got done"]);
    done.end_within(Duration::from_secs(600)).expect(0);
    let recording = log_file(&daemon, "a.cast");
    let files = missiond::os::files::with_rotated(&recording).expect("recordings");
    let sizes: Vec<u64> = files
        .iter()
        .map(|file| file.metadata().expect("a file").len() >> 20)
        .collect();
    println!("the recordings have {sizes:?} MiB");
    assert!(
        sizes.len() > 1 && sizes.iter().all(|size| *size <= 20),
        "{sizes:?}"
    );
    let text = recorded(&daemon, "a");
    assert_eq!(unbroken_ticks(&text), 260_000);

    let before = daemon.cmd(&["screen", "a"]).expect(0).stdout;
    daemon.crash();
    let begun = std::time::Instant::now();
    daemon.again();
    daemon.wait_state("a", "idle");
    println!("taken up again in {:?}", begun.elapsed());
    assert_eq!(daemon.cmd(&["screen", "a"]).expect(0).stdout, before);
    daemon.cmd(&["write", "a", "more\\r"]).expect(0);
    until("more", || {
        recorded(&daemon, "a").contains("got more").then_some(())
    });
}

/// Where a recording ends in an input box or at a dialog, a snapshot of it reads the same.
#[test]
fn a_recording_that_begins_with_a_snapshot_reads_the_same() {
    let directory = Path::new("tests/recordings/2.1.325-120x40");
    let mut compared = 0;
    for entry in directory.read_dir().expect("recordings") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|ending| ending == "cast") {
            compared += compare(&path);
        }
    }
    assert!(compared > 40, "{compared} screens were compared");
}

/// Longer than any page has to stand before it means something.
const A_WHILE: Duration = Duration::from_secs(10);

fn compare(path: &Path) -> usize {
    let recording = Recording::read(BufReader::new(File::open(path).expect("a file")));
    let recording = recording.expect("a header");
    let (cols, rows) = (recording.header().cols, recording.header().rows);
    let mut terminal = Terminal::new(cols, rows);
    let mut observer = Observer::new();
    let mut compared = 0;
    for event in recording {
        let event = event.expect("a whole event");
        for frame in terminal.quiet(event.at) {
            observer.see(&frame);
        }
        let observed = observer.observed().clone();
        let is_drawing = terminal.is_drawing();
        let snapshot = terminal.snapshot();
        if let CastKind::Output(text) = event.what {
            for frame in terminal.feed(event.at, text.as_bytes()) {
                observer.see(&frame);
            }
        }
        // The screen itself says so: for a moment at its end a program shows nothing.
        let at_rest = matches!(observed.state, State::Idle | State::Confirming)
            && !matches!(observed.reading.seen, Seen::Starting | Seen::Unknown);
        if !at_rest || is_drawing {
            continue;
        }
        let snapshot = String::from_utf8(snapshot).expect("text");
        // A page of the start is a question only once it has stood for a while.
        let later = event_line(At::ZERO.saturating_add(A_WHILE), 'o', "");
        let text = header_line(cols, rows, 0, "") + &event_line(At::ZERO, 'o', &snapshot) + &later;
        let again = Recording::read(text.as_bytes()).expect("a header");
        let last = replay(again).last().expect("a state").expect("whole");
        let shown = path.display();
        assert_eq!(last.state, observed.state, "{shown} at {:?}", event.at);
        let read = |dialog: Option<Dialog>| dialog.map(|dialog| (dialog.text, dialog.options));
        let (last, live) = (read(last.dialog), read(observed.dialog));
        assert_eq!(last, live, "{shown} at {:?}", event.at);
        compared += 1;
    }
    compared
}

#[test]
fn a_full_disk_stops_no_slot_is_told_once_and_recovers() {
    // What is refused to the slot is an event of it, which goes to its log.
    let script = format!(
        "rm -f said; mkfifo said; exec 3<>said; \
         while read -r line <&3; do echo \"got $line\"; {} stop a >/dev/null 2>&1; done",
        env!("CARGO_BIN_EXE_missiond")
    );
    let mut daemon = shells(&["a"], &script);
    daemon.cmd(&["down", "--yes"]).expect(0);
    let Some(disk) = SmallDisk::mount(&daemon.root().join("logs"), "128k") else {
        return;
    };
    daemon.again();
    daemon.wait_state("a", "idle");
    // Past missiond, which takes no raw input while it can't write it down.
    let write = |daemon: &Daemon, text: &str| {
        let pipe = daemon.cwd("a").join("said");
        fs::write(pipe, format!("{text}\n")).expect("the program reads");
    };
    let events = daemon.spawn(&["events", "-f"]);
    until("the snapshot", || {
        events.printed().contains('\n').then_some(())
    });
    disk.fill();
    // Long enough that what is left of a page is used up.
    for number in 0..40 {
        disk.fill();
        write(&daemon, &format!("{}-{number}", "full".repeat(200)));
        let pressed = daemon.cmd(&["write", "a", "unread"]);
        assert!(matches!(pressed.code, 0 | 4), "{pressed}");
    }
    daemon
        .cmd(&["wait", "a", "--output", "full-39", "--timeout", "20s"])
        .expect(0);
    disk.free();
    write(&daemon, "free");
    daemon
        .cmd(&["wait", "a", "--output", "got free", "--timeout", "20s"])
        .expect(0);
    until("the audit to be written again", || {
        (daemon.cmd(&["write", "a", "unread"]).code == 0).then_some(())
    });
    until("the recording to go on", || {
        write(&daemon, "more");
        recorded(&daemon, "a").contains("got more").then_some(())
    });
    let once = [
        "the log can't be written",
        "the log goes on",
        "the recording can't be written",
        "the recording goes on",
    ];
    let audit = ["the audit can't be written", "the audit is written again"];
    // The shim, the log and the audit each find out and tell in their own time.
    until("all of it to be told", || {
        let told = events.printed();
        let is_told = |words: &&str| told.contains(*words);
        once.iter().chain(&audit).all(is_told).then_some(())
    });
    let told = events.kill();
    for once in once {
        assert_eq!(told.matches(once).count(), 1, "{once}");
    }
    until("the log to say it too", || {
        daemon.log("a").contains("the log goes on; ").then_some(())
    });
    let audit = daemon.logged("audit.jsonl");
    let verified =
        missiond::audit::verify(vec![audit.as_bytes()], &[]).expect("the audit can be read");
    verified.expect("the chain is whole");
    for line in daemon.logged("a.events.jsonl").lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("a whole event");
    }
    daemon.cmd(&["down", "--yes"]).expect(0);
}

/// 60 keys on a full disk: those that were pressed are in the audit, the others were refused, and that is in it too.
#[test]
fn no_key_is_pressed_without_a_record() {
    let script = "stty -echo; while read -r line; do echo \"$line\" >>pressed; done";
    let mut daemon = shells(&["a"], script);
    daemon.cmd(&["down", "--yes"]).expect(0);
    let Some(disk) = SmallDisk::mount(&daemon.root().join("logs"), "128k") else {
        return;
    };
    daemon.again();
    daemon.wait_state("a", "idle");
    let script = script.replace(">pressed", &format!(">{}/pressed", daemon.root().display()));
    let spawn = ["spawn", "--id", "b", "--", "/bin/sh", "-c", &script];
    daemon.cmd(&spawn).expect(0);
    let mut refused = 0;
    for number in 0..60 {
        disk.fill();
        let line = format!("{number}\\r");
        let pressed = match number % 3 {
            0 => daemon.cmd(&["write", "a", &line]),
            1 => daemon.cmd(&["keys", "a", "k", "enter"]),
            _ => daemon.cmd(&["type", "b", &number.to_string()]),
        };
        if pressed.code != 0 {
            let pressed = pressed.expect(4);
            assert!(
                pressed.stderr.contains("the audit can't be written"),
                "{pressed}"
            );
            assert!(pressed.stderr.contains("make room"), "{pressed}");
            refused += 1;
        }
    }
    assert!(refused > 0, "the disk is full");
    disk.free();
    let hole = until("the hole to be written down", || {
        let verified = daemon.json(&["audit", "verify"]);
        let holes = verified["holes"].as_array().expect("holes").clone();
        (holes.iter().any(|hole| hole["refused"] == refused)).then_some(verified)
    });
    assert_eq!(hole["lost"], 0, "{hole}");
    let told = daemon.cmd(&["audit", "verify"]).expect(0);
    assert!(told.stdout.contains("unbroken, with holes: 1"), "{told}");
    assert!(
        told.stderr
            .contains(&format!("{refused} deeds were refused")),
        "{told}"
    );
    daemon.cmd(&["write", "a", "last\\r"]).expect(0);
    let of = |directory: std::path::PathBuf| {
        fs::read_to_string(directory.join("pressed")).unwrap_or_default()
    };
    let pressed = until("the last line to be read", || {
        let pressed = of(daemon.cwd("a"));
        pressed.contains("last").then_some(pressed)
    });
    let pressed = pressed.lines().count() + of(daemon.root().to_owned()).lines().count();
    let keys = daemon
        .cmd(&["audit", "grep", "--what", "key", "--json"])
        .expect(0)
        .json_lines();
    assert_eq!(keys.len(), pressed, "{keys:?}");
    assert_eq!(pressed, 60 - refused + 1);
    for key in keys {
        let by = ["by", "via"].map(|field| key[field].as_str().expect("text"));
        assert!(
            matches!(by, ["person", "cli write" | "cli keys" | "cli type"]),
            "{key}"
        );
        assert!(key["uid"].is_u64() && key["pid"].is_u64(), "{key}");
    }
    daemon.cmd(&["down", "--yes"]).expect(0);
}

/// A start on a full disk says which disk, why, and what to do, as `doctor` does before.
#[test]
fn a_start_on_a_full_disk_names_the_disk_and_what_helps() {
    let daemon = shells(&["a"], "sleep 1000");
    daemon.cmd(&["down", "--yes"]).expect(0);
    for place in [daemon.logs(), daemon.root().join("state/missiond")] {
        let Some(disk) = SmallDisk::mount(&place, "256k") else {
            return;
        };
        let shown = place.display().to_string();
        disk.fill();
        for command in ["up", "run"] {
            let failed = daemon.cmd(&[command]).expect(1);
            let is_told = failed.stderr.contains(&shown) && failed.stderr.contains("make room on");
            assert!(is_told, "{command}: {failed}");
        }
        let doctor = daemon.cmd(&["doctor"]).expect(1);
        let full = format!("the disk of {shown}");
        assert!(
            doctor.stdout.contains(&full) && doctor.stdout.contains("is full"),
            "{doctor}"
        );
        drop(disk);
    }
}

/// A state directory that a start would refuse is seen before.
#[test]
fn doctor_refuses_a_state_directory_that_others_can_write() {
    let daemon = shells(&["a"], "sleep 1000");
    daemon.cmd(&["down", "--yes"]).expect(0);
    let state = daemon.root().join("state/missiond/missiond");
    let is_refused = || {
        let doctor = daemon.cmd(&["doctor"]);
        assert!(doctor.stdout.contains("  state "), "{doctor}");
        let lines: Vec<&str> = doctor.stdout.lines().collect();
        lines.iter().any(|line| line.starts_with("fail  state"))
    };
    assert!(!is_refused());
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).expect("it is ours");
    assert!(is_refused(), "others can write it");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).expect("it is ours");
    assert!(!is_refused());
    let elsewhere = daemon.root().join("elsewhere");
    fs::rename(&state, &elsewhere).expect("it is ours");
    std::os::unix::fs::symlink(&elsewhere, &state).expect("a link");
    assert!(is_refused(), "a link may lead elsewhere tomorrow");
}

/// A stop that the next daemon would not know of is no success.
#[test]
fn a_stop_that_could_not_be_saved_says_so() {
    let mut daemon = shells(&["a"], "sleep 1000");
    daemon.cmd(&["down", "--yes"]).expect(0);
    let state = daemon.root().join("state/missiond/missiond");
    let Some(disk) = SmallDisk::mount(&state, "1m") else {
        return;
    };
    daemon.again();
    daemon.wait_state("a", "idle");
    disk.fill();
    let stopped = daemon.cmd(&["stop", "a"]).expect(1);
    assert!(stopped.stderr.contains("could not be saved"), "{stopped}");
    assert!(stopped.stderr.contains("make room"), "{stopped}");
    assert_eq!(daemon.status("a")["state"], "exited");
    disk.free();
    daemon.cmd(&["stop", "a"]).expect(0);
    daemon.crash();
    daemon.again();
    assert_eq!(daemon.status("a")["state"], "exited");
    daemon.cmd(&["down", "--yes"]).expect(0);
}

/// Neither a link in the place of a log nor a log that somebody removes stops the slot.
#[test]
fn a_log_that_is_a_link_is_not_followed_and_its_slot_runs() {
    let script = "stty -echo; while read -r line; do echo \"got $line\"; done";
    let mut daemon = shells(&["a"], script);
    daemon.cmd(&["down", "--yes"]).expect(0);
    let (log, elsewhere) = (log_file(&daemon, "a.log"), daemon.root().join("elsewhere"));
    fs::remove_file(&log).expect("a log");
    std::os::unix::fs::symlink(&elsewhere, &log).expect("a link");
    daemon.again();
    daemon.wait_state("a", "idle");
    assert!(!elsewhere.exists());
    let ran = daemon.cmd(&["logs", "a"]).expect(1);
    assert!(ran.stderr.contains("a.log is a symbolic link"), "{ran}");
    let told = fs::read_to_string(daemon.root().join("daemon.stderr")).expect("what it said");
    assert_eq!(told.matches("it is a symbolic link").count(), 1, "{told}");
    fs::remove_file(&log).expect("the link");
    write(&daemon, "one");
    let logged = || fs::read_to_string(&log).unwrap_or_default();
    until("the log to go on", || {
        logged().contains("the log goes on; ").then_some(())
    });
    fs::remove_file(&log).expect("a log");
    write(&daemon, "two");
    until("a log again", || logged().contains("input").then_some(()));
}

#[test]
fn the_log_directory_keeps_its_mode_and_is_no_link() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.cmd(&["down", "--yes"]).expect(0);
    let logs = daemon.logs();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&logs, open).expect("it is ours");
    daemon.again();
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&logs).expect("the logs"));
    assert_eq!(mode & 0o777, 0o755, "other things may lie in it");
    for file in fs::read_dir(&logs).expect("the logs").flatten() {
        let found = file.metadata().expect("a file of ours");
        let mode = std::os::unix::fs::MetadataExt::mode(&found);
        assert_eq!(mode & 0o077, 0, "{}", file.path().display());
    }
    daemon.cmd(&["down", "--yes"]).expect(0);
    let aside = daemon.root().join("aside");
    fs::rename(&logs, &aside).expect("it is ours");
    std::os::unix::fs::symlink(&aside, &logs).expect("a link");
    let told = daemon.cmd(&["up"]).expect(1).stderr;
    assert!(told.contains("symbolic link"), "{told}");
}

fn write(daemon: &Daemon, text: &str) {
    daemon.cmd(&["write", "a", &format!("{text}\\r")]).expect(0);
}

/// All lines of a log, oldest first, whatever file they are in by now.
fn in_files(daemon: &Daemon, name: &str) -> String {
    let files = missiond::os::files::with_rotated(&log_file(daemon, name)).expect("a log");
    let mut text = String::new();
    for mut file in files {
        file.read_to_string(&mut text).expect("text");
    }
    text
}

const KEYS: usize = 1500;

/// Both logs are rotated again and again while somebody follows them, and other files are dropped.
#[test]
fn rotation_loses_and_doubles_nothing_for_those_who_follow() {
    let capped = |slot: &str, files| {
        let keys = format!("kind = \"shell\"\nlog_size = \"64KiB\"\nlog_files = {files}\n");
        (slot.to_owned(), keys)
    };
    let setup = [capped("all", 100), capped("few", 2)]
        .iter()
        .fold(Setup::new(), |setup, (slot, keys)| {
            setup.slot_with(slot, keys)
        });
    let command = ["/bin/sh", "-c", "stty -echo; exec cat >/dev/null"].map(str::to_owned);
    let mut daemon = Daemon::start_with(&setup, &command);
    daemon.wait_state("all", "idle");
    let follow = |more: &[&str]| {
        let words = [&["logs", "all", "-f", "-n", "100000"], more].concat();
        let running = daemon.spawn(&words);
        until("a first line", || {
            running.printed().contains('\n').then_some(())
        });
        running
    };
    // As the files have it, so that both can be compared.
    let (log, json) = (follow(&["--raw"]), follow(&["--json"]));
    let stream = daemon.spawn(&["events", "-f", "all"]);
    until("the snapshot", || {
        stream.printed().contains('\n').then_some(())
    });
    for slot in ["all", "few"] {
        write_many(&daemon, slot, KEYS);
    }
    daemon.cmd(&["stop", "all"]).expect(0);
    let last = |printed: String| printed.contains("topped").then_some(printed);
    let (log, json) = (
        until("the last line", || last(log.printed())),
        until("the last event", || last(json.printed())),
    );
    assert_eq!(log, in_files(&daemon, "all.log"));
    assert_eq!(json, in_files(&daemon, "all.events.jsonl"));
    assert_eq!(
        log.lines().filter(|line| line.contains("  key  ")).count(),
        KEYS
    );
    let stream = until("the last event", || last(stream.printed()));
    for events in [&json, &stream] {
        let keys = events.matches("\"event\":\"key\"").count();
        assert_eq!(keys, KEYS);
    }
    let sizes = |name: &str| -> Vec<u64> {
        let files = missiond::os::files::with_rotated(&log_file(&daemon, name)).expect("a log");
        files
            .iter()
            .map(|file| file.metadata().expect("a file").len())
            .collect()
    };
    assert!(sizes("all.events.jsonl").len() > 3);
    for name in ["few.log", "few.events.jsonl"] {
        let sizes = sizes(name);
        assert!(
            sizes.len() == 2 && sizes.iter().all(|size| *size <= 64 << 10),
            "{sizes:?}"
        );
    }

    // A crash in the middle of a line.
    daemon.crash();
    for name in ["all.log", "all.events.jsonl"] {
        let mut file = File::options()
            .append(true)
            .open(log_file(&daemon, name))
            .expect("a log");
        std::io::Write::write_all(&mut file, b"{\"torn").expect("it can be written");
    }
    daemon.again();
    daemon.cmd(&["start", "all"]).expect(0);
    for name in ["all.log", "all.events.jsonl"] {
        let text = in_files(&daemon, name);
        assert!(!text.contains("torn") && text.ends_with('\n'), "{name}");
    }
    for line in in_files(&daemon, "all.events.jsonl").lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("a whole event");
    }
}
