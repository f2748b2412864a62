//! Programs for slots, as lines of slots.toml.

use crate::support::daemon::Daemon;
use crate::support::until;
use serde_json::Value;

/// A plain program: a shell script.
pub fn shell(script: &str, more: &str) -> String {
    let command = toml::Value::from(vec!["sh", "-c", script]);
    format!("kind = \"shell\"\ncommand = {command}\n{more}")
}

/// A shell script in place of Claude Code; it answers `--version` by itself. (`-c` alone is a flag of Claude Code
/// that no slot may have.)
pub fn claude(script: &str, more: &str) -> String {
    let script =
        format!("case \"$*\" in *--version*) echo '2.1.325 (Claude Code)'; exit;; esac\n{script}");
    let command = toml::Value::from(vec!["sh", "-fc", &script, "claude"]);
    format!("command = {command}\n{more}")
}

/// Quick restarts, few of them.
pub const QUICK: &str = "restart_delay = \"10ms\"\nrestart_delay_max = \"20ms\"\n";

/// Waits until the status of a slot is as wanted.
#[track_caller]
pub fn status_when(daemon: &Daemon, slot: &str, what: &str, wanted: fn(&Value) -> bool) -> Value {
    until(&format!("{slot}: {what}"), || {
        Some(daemon.status(slot)).filter(wanted)
    })
}

#[track_caller]
pub fn log_when(daemon: &Daemon, slot: &str, words: &str) -> String {
    until(&format!("{words:?} in the log of {slot}"), || {
        Some(daemon.log(slot)).filter(|log| log.contains(words))
    })
}
