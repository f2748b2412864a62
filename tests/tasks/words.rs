//! What the tests of tasks say.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{PATIENCE, until};
use missiond::lab::rehearsal::Step;
use serde_json::Value;

/// Two slots of one role, idle.
pub fn two_coders() -> Option<Daemon> {
    let setup = Setup::new().slot_of("coder", "a").slot_of("coder", "b");
    let daemon = Daemon::start(&setup)?;
    for slot in ["a", "b"] {
        daemon.wait_state(slot, "idle");
    }
    Some(daemon)
}

pub fn submit(daemon: &Daemon, arguments: &[&str]) -> String {
    let arguments = [&["submit"], arguments].concat();
    daemon.cmd(&arguments).expect(0).text().to_owned()
}

pub fn task(daemon: &Daemon, id: &str) -> Value {
    daemon.json(&["task", id])
}

/// The task once it is in this state.
#[track_caller]
pub fn once(daemon: &Daemon, id: &str, state: &str) -> Value {
    until(&format!("task {id} to be {state}"), || {
        let task = task(daemon, id);
        let other_end = task["ended_at"].is_string() && task["state"] != state;
        assert!(!other_end, "it never was {state}: {task}");
        (task["state"] == state).then_some(task)
    })
}

/// Scripts an answer that waits until the gate with the name of the prompt is opened.
pub fn gated(daemon: &Daemon, prompt: &str) {
    let steps = vec![Step::gate(prompt), Step::text(format!("{prompt} done"))];
    daemon.endpoint.on(prompt, steps);
}

/// Waits until the model was asked this.
pub fn asked(daemon: &Daemon, prompt: &str) {
    let seen = daemon
        .endpoint
        .wait_for_request(PATIENCE, |request| request.prompt() == prompt);
    assert!(seen.is_some(), "the model was never asked {prompt:?}");
}

/// How often the model was asked this in a turn.
pub fn times_asked(daemon: &Daemon, prompt: &str) -> usize {
    let requests = daemon.endpoint.requests();
    let turns = requests.iter().filter(|request| request.is_turn());
    turns.filter(|request| request.prompt() == prompt).count()
}
