//! Which conversation a start goes on with.

use super::scripts::{QUICK, claude, log_when, status_when};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{processes, until};
use serde_json::Value;
use std::fs;

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
    let daemon = daemon(&Setup::new().slot_with("heir", &claude(script, &keys)));
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
