//! A plain shell as a slot, in which the test runs commands as a tool of Claude Code would.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A daemon with two slots, `one` and `two`, in each of which a shell waits for commands.
pub fn shells() -> Daemon {
    let setup = Setup::new()
        .slot_with("one", "kind = \"shell\"")
        .slot_with("two", "kind = \"shell\"");
    let daemon = Daemon::start_with(&setup, &["/bin/sh".to_owned()]);
    for slot in ["one", "two"] {
        daemon.wait_state(slot, "idle");
    }
    daemon
}

/// A program of the test's own; where it is.
pub fn executable(directory: &TempDir, script: &str) -> String {
    let file = directory.path().join("program");
    fs::write(&file, script).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("our own file");
    file.display().to_string()
}

/// How a command ended that was run inside a slot.
#[derive(Debug)]
pub struct Ended {
    pub code: String,
    pub output: String,
}

/// Runs `missiond …` inside a slot; `before` is put in front of it, such as `setsid`.
pub fn missiond_in(daemon: &Daemon, slot: &str, before: &str, arguments: &str) -> Ended {
    let program = env!("CARGO_BIN_EXE_missiond");
    run_in(daemon, slot, &format!("{before} {program} {arguments}"))
}

/// Runs a command inside a slot and waits for its end.
pub fn run_in(daemon: &Daemon, slot: &str, command: &str) -> Ended {
    let cwd = daemon.cwd(slot);
    let (output, code) = (cwd.join("output"), cwd.join("code"));
    let _ = fs::remove_file(&code);
    // The code comes last and in one step, so that whoever sees it sees the whole output.
    let line =
        format!("( {command} ) >output 2>&1 </dev/null; echo $? >code.new; mv code.new code\n");
    daemon.cmd(&["write", slot, &line]).expect(0);
    let code = until(command, || fs::read_to_string(&code).ok());
    Ended {
        code: code.trim().to_owned(),
        output: fs::read_to_string(&output).unwrap_or_default(),
    }
}

/// The entries of the audit.
pub fn audit(daemon: &Daemon) -> Vec<Value> {
    let text = daemon.logged("audit.jsonl");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("an entry"))
        .collect()
}

/// The refusals among them.
pub fn refusals(daemon: &Daemon) -> Vec<Value> {
    let mut entries = audit(daemon);
    entries.retain(|entry| entry["what"] == "refused");
    entries
}
