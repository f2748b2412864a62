//! The paths of a daemon, from its configuration and its environment.

use crate::core::settings::{DaemonConfig, SlotConfig};
use crate::os::paths::{Env, PathError, fitting};
use crate::os::worktree;
use std::path::{Path, PathBuf};

/// The name of the lock in the log directory.
pub const LOG_LOCK: &str = ".lock";

/// The log of a daemon in the background, in the log directory.
pub const LOG_FILE: &str = "missiond.log";

impl DaemonConfig {
    /// The directory of its slots' worktrees.
    pub fn worktrees_in(&self, env: &Env) -> Result<PathBuf, PathError> {
        match &self.worktrees {
            Some(named) => Ok(named.clone()),
            None => Ok(env.data_dir()?.join("worktrees")),
        }
    }

    /// The slot's settings; if it has a worktree, that is its directory.
    pub fn settled(&self, slot: &SlotConfig, worktrees: &Path) -> SlotConfig {
        let mut settled = slot.clone();
        if slot.supervision.worktree {
            let root = worktree::root(worktrees, &self.name, &slot.cwd, &slot.name);
            settled.cwd = worktree::cwd_in(&root, &slot.cwd);
            settled.worktree_of = Some(slot.cwd.clone());
        }
        settled
    }

    /// The socket that it listens on.
    pub fn socket_in(&self, env: &Env) -> Result<PathBuf, PathError> {
        let socket = match env.socket.as_ref().or(self.socket.as_ref()) {
            Some(socket) => socket.clone(),
            None => env.runtime_dir()?.join(format!("{}.sock", self.name)),
        };
        fitting(socket)
    }

    /// The lock that it holds while it lives, so that there is only one daemon of each name. The lock is in the state
    /// directory: the runtime directory may be removed, or be another one for the next daemon.
    pub fn lock_in(&self, env: &Env) -> Result<PathBuf, PathError> {
        Ok(env.state_dir()?.join(format!("{}.lock", self.name)))
    }

    /// The lock that it holds in its log directory: two writers would corrupt every log.
    pub fn log_lock(&self) -> PathBuf {
        self.logs.join(LOG_LOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::paths::MAX_SOCKET;

    fn daemon(name: &str) -> DaemonConfig {
        DaemonConfig {
            name: name.into(),
            logs: "/logs".into(),
            policies: "/policies".into(),
            socket: None,
            worktrees: None,
        }
    }

    #[test]
    fn sockets_lie_in_the_runtime_directory_else_under_the_state() {
        let at = |name: &str| PathBuf::from("/user").join(name);
        let mut env = Env {
            state_home: Some(at("state")),
            runtime_home: Some(at("run")),
            ..Env::default()
        };
        let socket = daemon("m").socket_in(&env).unwrap();
        assert_eq!(socket, at("run/missiond/m.sock"));
        let state = at("state/missiond/run/m.sock");
        env.runtime_home = None;
        assert_eq!(daemon("m").socket_in(&env).unwrap(), state);
        env.state_home = None;
        let error = daemon("m").socket_in(&env).unwrap_err().to_string();
        assert!(error.contains("$HOME"), "{error}");
    }

    #[test]
    fn a_socket_path_may_have_107_bytes_and_no_more() {
        let mut config = daemon("m");
        let longest = format!("/{}", "s".repeat(MAX_SOCKET - 1));
        config.socket = Some(longest.clone().into());
        assert!(config.socket_in(&Env::default()).is_ok());
        config.socket = Some(format!("{longest}s").into());
        let error = config.socket_in(&Env::default()).unwrap_err().to_string();
        assert!(
            error.contains("108 bytes") && error.contains("107"),
            "{error}"
        );
        assert!(error.contains("`socket` in [daemon]"), "{error}");
    }
}
