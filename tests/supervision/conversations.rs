//! Which conversation a start goes on with: a script in the place of Claude Code, and the real one.

use super::scripts::{QUICK, claude, log_when, status_when};
use crate::support::daemon::Daemon;
use crate::support::hung_file::HungFile;
use crate::support::setup::Setup;
use crate::support::{processes, until};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// Writes its arguments down; refuses to resume anything.
const FORGETFUL: &str = "echo \"$@\" >> starts\n\
    case \"$*\" in *--resume*) echo \"No conversation found with session ID: $2\"; exit 1;; esac\n\
    exec sleep 1000";

fn daemon(setup: &Setup) -> Daemon {
    Daemon::start_with(setup, &["true".to_owned()])
}

fn id(status: &Value) -> String {
    status["session_id"].as_str().unwrap_or_default().to_owned()
}

fn write_transcript(daemon: &Daemon, slot: &str, id: &str) {
    let transcript = daemon.transcript(slot, id);
    fs::create_dir_all(transcript.parent().expect("a directory")).expect("it can be made");
    fs::write(transcript, "{}\n").expect("it can be written");
}

fn starts(daemon: &Daemon, slot: &str) -> Vec<String> {
    let starts = fs::read_to_string(daemon.cwd(slot).join("starts")).unwrap_or_default();
    starts.lines().map(str::to_owned).collect()
}

/// Whether the daemon has a thread that does blocking work.
fn works_on_a_thread(daemon: &Daemon) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("the daemon runs");
    tasks.flatten().any(|task| {
        let name = fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.trim() == "missiond-work")
    })
}

/// The daemon can't open the transcript, as on a file system that does not answer.
#[test]
fn a_transcript_that_cannot_be_read_holds_up_only_who_asks_for_it() {
    let daemon = daemon(&Setup::new().slot_with("mute", &claude("exec sleep 1000", QUICK)));
    let runs = |status: &Value| status["pid"].is_u64();
    let status = status_when(&daemon, "mute", "its start", runs);
    let transcript = daemon.transcript("mute", &id(&status));
    fs::create_dir_all(transcript.parent().expect("a directory")).expect("it can be made");
    fs::write(&transcript, "").expect("it can be written");

    for asked in [["history", "mute"].as_slice(), &["search", "mute", "a"]] {
        let Some(hung) = HungFile::new(&transcript, daemon.pid()) else {
            return;
        };
        let waiting = daemon.spawn(asked);
        until("a thread that reads", || {
            works_on_a_thread(&daemon).then_some(())
        });
        daemon.cmd(&["screen", "mute"]).expect(0);
        daemon.cmd(&["interrupt", "mute"]).expect(0);
        drop(hung);
        waiting.end().expect(0);
    }
    daemon.cmd(&["stop", "mute"]).expect(0);
}

/// The daemon can open no file in its state directory, as on a disk that does not answer.
#[test]
fn settings_that_cannot_be_written_hold_up_only_their_slot() {
    let program = claude("exec sleep 1000", "");
    let setup = Setup::new().slot_with("one", &program);
    let daemon = daemon(&setup.slot_with("two", &program));
    let runs = |status: &Value| status["pid"].is_u64();
    for slot in ["one", "two"] {
        status_when(&daemon, slot, "its start", runs);
    }
    daemon.cmd(&["stop", "one"]).expect(0);
    let state = daemon.root().join("state/missiond/missiond");
    let Some(hung) = HungFile::new(&state, daemon.pid()) else {
        return;
    };
    let starting = daemon.spawn(&["start", "one"]);
    until("a thread that writes", || {
        works_on_a_thread(&daemon).then_some(())
    });
    // None of these would answer while the disk hangs, which it does for ever.
    let begun = Instant::now();
    daemon.cmd(&["status"]).expect(0);
    daemon.cmd(&["screen", "two"]).expect(0);
    daemon.cmd(&["interrupt", "two"]).expect(0);
    // Its own task answers too: it has not started yet.
    daemon.cmd(&["interrupt", "one"]).expect(4);
    assert!(begun.elapsed() < Duration::from_secs(30));
    log_when(&daemon, "one", "does not answer");
    drop(hung);
    drop(starting);
    daemon.cmd(&["start", "one"]).expect(0);
    status_when(&daemon, "one", "its start", runs);
    daemon.cmd(&["down", "--yes"]).expect(0);
}

/// Both begin in the same moment, before either can be seen to have it.
#[test]
fn of_two_slots_with_one_conversation_only_one_runs() {
    let program = claude("exec sleep 1000", "");
    let setup = Setup::new()
        .slot_with("one", &program)
        .slot_with("two", &program);
    let mut daemon = daemon(&setup);
    let runs = |status: &Value| status["pid"].is_u64();
    status_when(&daemon, "one", "its start", runs);
    status_when(&daemon, "two", "its start", runs);
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    let state = daemon.root().join("state/missiond/missiond");
    fs::copy(state.join("one.json"), state.join("two.json")).expect("a memory");
    daemon.again();
    let both = until("both to have settled", || {
        let both = ["one", "two"].map(|slot| daemon.status(slot));
        let settled = |status: &Value| status["pid"].is_u64() || status["state"] == "error";
        both.iter().all(settled).then_some(both)
    });
    let [running, refused] = match both {
        [one, two] if one["pid"].is_u64() => [one, two],
        [one, two] => [two, one],
    };
    let (name, other) = (&running["slot"], &refused["slot"]);
    let why = refused["last_error"].as_str().unwrap_or_default();
    let holder = name.as_str().expect("a name");
    assert!(
        why.contains(&format!("its conversation is open in slot {holder}")),
        "{refused}"
    );
    assert_eq!(id(&running), id(&refused));
    // Once it is free, the other can have it.
    daemon.cmd(&["stop", holder]).expect(0);
    let other = other.as_str().expect("a name");
    daemon.cmd(&["start", other]).expect(0);
    status_when(&daemon, other, "its start", runs);
}

#[test]
fn a_conversation_that_is_gone_leads_to_one_fresh_one() {
    let daemon = daemon(&Setup::new().slot_with("amnesic", &claude(FORGETFUL, QUICK)));
    let runs = |status: &Value| status["pid"].is_u64();
    let first = status_when(&daemon, "amnesic", "its first start", runs);
    write_transcript(&daemon, "amnesic", &id(&first));
    processes::kill(first["pid"].as_i64().expect("a pid") as i32);
    let log = log_when(&daemon, "amnesic", "is gone; a new one is begun");
    assert!(log.contains("unknown conversation: exit 1"), "{log}");
    let third = until("the fresh one", || {
        let starts = starts(&daemon, "amnesic");
        let status = daemon.status("amnesic");
        (starts.len() == 3 && status["pid"].is_u64()).then_some(status)
    });
    assert_eq!(third["restarts"], 2, "{third}");
    assert_ne!(id(&third), id(&first));
    let starts = starts(&daemon, "amnesic");
    assert!(
        starts[1].contains(&format!("--resume {}", id(&first))),
        "{starts:?}"
    );
    assert!(
        starts[2].contains(&format!("--session-id {}", id(&third))),
        "{starts:?}"
    );
}

#[test]
fn a_conversation_is_taken_over_by_its_id() {
    let id = "123e4567-e89b-42d3-a456-426614174000";
    let keys = format!("session = \"{id}\"\nautostart = false");
    let script = "echo \"$@\" >> starts; exec sleep 1000";
    let other = "123e4567-e89b-42d3-a456-426614174001";
    let mistaken = format!("session = \"{other}\"");
    let setup = Setup::new()
        .slot_with("heir", &claude(script, &keys))
        .slot_with("mistaken", &claude(script, &mistaken));
    let daemon = daemon(&setup);
    log_when(
        &daemon,
        "mistaken",
        &format!("there is no conversation {other}"),
    );
    write_transcript(&daemon, "heir", id);
    daemon.cmd(&["start", "heir"]).expect(0);
    let starts = until("its start", || {
        Some(starts(&daemon, "heir")).filter(|starts| !starts.is_empty())
    });
    assert!(
        starts[0].starts_with(&format!("--resume {id} ")),
        "{starts:?}"
    );
    assert_eq!(daemon.status("heir")["session_id"], id);
}

/// The screen shows what was said before.
fn shows(daemon: &Daemon, words: &str) {
    daemon
        .cmd(&["wait", "coder", "--output", words, "--timeout", "50s"])
        .expect(0);
}

#[test]
fn the_real_program_goes_on_with_an_adopted_conversation() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "the word is plum"]).expect(0);
    let plum = id(&daemon.status("coder"));
    daemon
        .cmd(&["send", "coder", "--slash", "--no-wait", "/clear"])
        .expect(0);
    until("another conversation", || {
        (id(&daemon.status("coder")) != plum).then_some(())
    });
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "the word is pear"]).expect(0);
    let pear = id(&daemon.status("coder"));
    assert_ne!(pear, plum);

    let unknown = "123e4567-e89b-42d3-a456-426614174000";
    let refused = daemon.cmd(&["adopt", "coder", unknown]).expect(2);
    assert!(refused.stderr.contains("no conversation"), "{refused}");
    // What can be adopted is named, and a slip is found.
    let way = format!("missiond adopt coder {plum}");
    assert!(refused.stderr.contains(&way), "{refused}");
    let last = if plum.ends_with('0') { "1" } else { "0" };
    let slip = format!("{}{last}", &plum[..plum.len() - 1]);
    let refused = daemon.cmd(&["adopt", "coder", &slip]).expect(2);
    let meant = format!("did you mean: {way}");
    assert!(refused.stderr.contains(&meant), "{refused}");
    daemon.cmd(&["adopt", "coder", "plum"]).expect(2);

    // Another Claude Code has it open; here it is only noted so, with a process that lives.
    let record = daemon.home().join(".claude/sessions/1.json");
    let noted = serde_json::json!({"pid": std::process::id(), "sessionId": plum});
    fs::write(&record, noted.to_string()).expect("it can be written");
    let refused = daemon.cmd(&["adopt", "coder", &plum]).expect(4);
    assert!(refused.stderr.contains("another Claude Code"), "{refused}");
    fs::remove_file(&record).expect("it was written");

    // An idle slot is started again with it.
    let adopted = daemon.json(&["adopt", "coder", &plum]);
    assert_eq!(adopted["running"], true, "{adopted}");
    daemon.wait_state("coder", "idle");
    assert_eq!(id(&daemon.status("coder")), plum);
    shows(&daemon, "You said: the word is plum");

    // One that is stopped takes it up when it is started.
    daemon.cmd(&["stop", "coder"]).expect(0);
    let adopted = daemon.json(&["adopt", "coder", &pear]);
    assert_eq!(adopted["running"], false, "{adopted}");
    daemon.cmd(&["start", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    shows(&daemon, "You said: the word is pear");
    assert_eq!(id(&daemon.status("coder")), pear);
    let answer = daemon.cmd(&["send", "coder", "hello"]).expect(0);
    assert_eq!(answer.text(), "You said: hello");
}

/// What was said can't be gone on with, and nobody may think that it is.
#[test]
fn a_transcript_that_was_removed_leads_to_a_fresh_conversation() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let unsaid = id(&daemon.status("coder"));
    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert_eq!(id(&daemon.status("coder")), unsaid, "nothing was said yet");
    daemon.cmd(&["send", "coder", "hello"]).expect(0);
    daemon.cmd(&["stop", "coder"]).expect(0);
    fs::remove_file(daemon.transcript("coder", &unsaid)).expect("a transcript");
    daemon.cmd(&["start", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert_ne!(id(&daemon.status("coder")), unsaid);
    let log = daemon.log("coder");
    let told = format!("conversation {unsaid} is gone; a new one is begun");
    assert_eq!(log.matches(&told).count(), 1, "{log}");
}

#[test]
fn the_real_program_takes_over_the_conversation_that_the_config_names() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "the word is plum"]).expect(0);
    let plum = id(&daemon.status("coder"));
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    // To the daemon it is a conversation like any other of the same directory.
    let memory = daemon.root().join("state/missiond/missiond/coder.json");
    fs::remove_file(memory).expect("its memory");
    let config = fs::read_to_string(daemon.config()).expect("a config");
    let named = format!("name = \"coder\"\nsession = \"{plum}\"");
    fs::write(daemon.config(), config.replace("name = \"coder\"", &named)).expect("a config");
    daemon.again();
    daemon.wait_state("coder", "idle");
    assert_eq!(id(&daemon.status("coder")), plum);
    shows(&daemon, "You said: the word is plum");
}
