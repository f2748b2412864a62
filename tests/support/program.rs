//! A missiond in an environment of its own. The examples use it too.

use std::path::Path;
use std::process::Command;

/// The program with an environment in which nothing of this machine is.
pub fn program_at(program: &Path, root: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", root.join("home"))
        .env("XDG_RUNTIME_DIR", root.join("run"))
        .env("XDG_STATE_HOME", root.join("state"))
        .env("XDG_DATA_HOME", root.join("data"))
        .env("XDG_CONFIG_HOME", root.join("home"))
        .env("MISSIOND_CONFIG", root.join("slots.toml"))
        .env("LANG", "C.UTF-8")
        .current_dir(root);
    command
}
