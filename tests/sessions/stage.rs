//! What the tests of sessions share.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{skip, until};
use missiond::control::client::{CallError, Client};
use missiond::control::requests::Method;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A daemon for sessions alone.
pub fn daemon() -> Daemon {
    daemon_with("")
}

/// The same with settings of `[sessions]`.
pub fn daemon_with(settings: &str) -> Daemon {
    let setup = Setup::new().table(&format!("[sessions]\n{settings}"));
    Daemon::start_with(&setup, &["/bin/sh".to_owned()])
}

/// Starts a session and gives the answer.
#[track_caller]
pub fn spawn(daemon: &Daemon, arguments: &[&str]) -> Value {
    let arguments = [&["--json", "spawn"], arguments].concat();
    daemon.cmd(&arguments).expect(0).json()
}

/// One that runs a script.
#[track_caller]
pub fn script(daemon: &Daemon, id: &str, script: &str) -> Value {
    spawn(daemon, &["--id", id, "--", "sh", "-c", script])
}

#[track_caller]
pub fn info(daemon: &Daemon, id: &str) -> Value {
    daemon.json(&["info", id])
}

#[track_caller]
pub fn ids(daemon: &Daemon) -> Vec<String> {
    let sessions = daemon.json(&["sessions"]);
    let sessions = sessions.as_array().expect("an array");
    let id = |session: &Value| session["id"].as_str().expect("an id").to_owned();
    sessions.iter().map(id).collect()
}

/// Types a command, waits for it, and gives what it wrote with its exit code.
#[track_caller]
pub fn typed(daemon: &Daemon, id: &str, text: &str) -> (String, i64) {
    let arguments = ["--json", "type", id, text, "--wait", "--timeout", "50s"];
    let output = daemon.cmd(&arguments);
    let answer = output.json();
    let text = answer["output"].as_str().expect("an output").to_owned();
    (text, answer["exit_code"].as_i64().expect("an exit code"))
}

#[track_caller]
pub fn wait_exit(daemon: &Daemon, id: &str) {
    daemon
        .cmd(&["wait", id, "--exit", "--timeout", "50s"])
        .expect(0);
}

#[track_caller]
pub fn wait_output(daemon: &Daemon, id: &str, pattern: &str) {
    daemon
        .cmd(&["wait", id, "--output", pattern, "--timeout", "50s"])
        .expect(0);
}

/// All output as plain text.
#[track_caller]
pub fn output(daemon: &Daemon, id: &str) -> String {
    daemon.cmd(&["output", id]).expect(0).stdout
}

/// What is kept of sessions beside the daemon's own files.
pub fn left_on_disk(daemon: &Daemon) -> Vec<PathBuf> {
    let state = daemon.root().join("state/missiond/missiond");
    let places = [
        daemon.logs(),
        state.join("sessions"),
        daemon.root().join("run/missiond/shims"),
    ];
    let entries = places
        .iter()
        .filter_map(|place| std::fs::read_dir(place).ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    let own = ["audit.jsonl", "missiond.log", ".lock"];
    let is_own = |path: &Path| own.iter().any(|own| path.ends_with(own));
    paths.filter(|path| !is_own(path)).collect()
}

/// Waits until nothing of any session is left, in the process table or on the disk.
#[track_caller]
pub fn nothing_left(daemon: &Daemon) {
    assert_eq!(ids(daemon), Vec::<String>::new());
    until("the end of all shims and their files", || {
        let processes = crate::support::processes::all_of(daemon.root());
        let others = processes.iter().filter(|pid| **pid != daemon.pid()).count();
        (others == 0 && left_on_disk(daemon).is_empty()).then_some(())
    });
}

pub fn is_in_process_table(pid: &Value) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// A request over the control socket.
pub fn call<M: Method>(daemon: &Daemon, params: M::Params) -> Result<M::Answer, CallError> {
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async { Client::connect(&socket).await?.call::<M>(params).await })
}

/// Whether a program is there; where it is not, that is listed.
pub fn has(program: &str) -> bool {
    let found = std::process::Command::new(program)
        .arg("--version")
        .stdin(std::process::Stdio::null())
        .output()
        .is_ok();
    if !found {
        skip(&format!(
            "{program} in a session is not tried (needs {program})"
        ));
    }
    found
}
