//! What several of the tests say.

use crate::support::daemon::Daemon;
use missiond::lab::rehearsal::{EndpointRequest, Step};
use serde_json::json;
use std::path::Path;

/// A call that makes a named pipe: nothing that Claude Code would allow by itself, and plain to see.
pub fn make_pipe(path: &Path) -> Step {
    let command = format!("mkfifo {}", path.display());
    let input = json!({"command": command, "description": "Make a pipe"});
    Step::tool("Bash", input)
}

/// Scripts `prompt`: make the pipe, then say `made`.
pub fn on_make_pipe(daemon: &Daemon, prompt: &str, path: &Path, made: &str) {
    let steps = vec![make_pipe(path), Step::text(made)];
    daemon.endpoint.on(prompt, steps);
}

/// What the model was asked, one text for each request of a turn, oldest first.
pub fn prompts(daemon: &Daemon) -> Vec<String> {
    let requests = daemon.endpoint.requests();
    let turns = requests.iter().filter(|request| request.is_turn());
    turns.map(EndpointRequest::prompt).collect()
}
