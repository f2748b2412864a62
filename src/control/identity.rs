//! Which daemon a client means, and the check that the answering daemon is that one.

use crate::core::model::{Fault, Pong, RpcError};
use crate::core::text::quoting::quoted;
use crate::os::files::same_file;
use std::path::{Path, PathBuf};

/// The daemon that a client wants to talk to. A socket is not enough to tell: two configs with the same name share a
/// socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The daemon at the socket, with any config.
    #[default]
    AtSocket,
    /// The daemon that runs with this config file.
    Config(PathBuf),
    /// The daemon in this process.
    Process(u32),
}

impl Wanted {
    /// Refuses a daemon that is not the wanted one; the error names both.
    pub fn check(&self, socket: &Path, daemon: &Pong) -> Result<(), RpcError> {
        match self {
            Wanted::AtSocket => Ok(()),
            Wanted::Config(config) if same_file(config, &daemon.config) => Ok(()),
            Wanted::Config(config) => Err(other_config(config, socket, daemon)),
            Wanted::Process(pid) if *pid == daemon.pid => Ok(()),
            Wanted::Process(pid) => Err(other_process(*pid, socket, daemon)),
        }
    }
}

fn other_config(config: &Path, socket: &Path, daemon: &Pong) -> RpcError {
    let text = format!(
        "the daemon at {} runs with {}, not with {}",
        socket.display(),
        daemon.config.display(),
        config.display()
    );
    let words = |path: &Path| quoted(&path.display().to_string());
    let (socket, config) = (words(socket), words(config));
    RpcError::new(Fault::Refused, text).next(format!(
        "to talk to that daemon, name its socket: missiond status --socket {socket}\n\
         to run both, set another `name` under [daemon], then: missiond up -c {config}"
    ))
}

fn other_process(pid: u32, socket: &Path, daemon: &Pong) -> RpcError {
    let text = format!(
        "the daemon at {} is process {} with {}, not process {pid}",
        socket.display(),
        daemon.pid,
        daemon.config.display()
    );
    RpcError::new(Fault::Refused, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn daemon(config: &Path) -> Pong {
        Pong {
            name: "missiond".to_owned(),
            version: "0.1.0".to_owned(),
            pid: 7,
            config: config.to_owned(),
            logs: PathBuf::from("/logs"),
            socket: None,
            config_fault: None,
            lost: Vec::new(),
            health: Vec::new(),
            wider_policies: Vec::new(),
        }
    }

    #[test]
    fn a_config_is_one_file_by_whatever_path_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        std::fs::write(at("real/slots.toml"), "").unwrap();
        std::fs::write(at("real/other.toml"), "").unwrap();
        symlink(at("real"), at("linked")).unwrap();
        symlink("real/slots.toml", at("link.toml")).unwrap();
        let runs_with = daemon(&at("real/slots.toml"));
        let socket = Path::new("/run/m.sock");
        let check = |config: &str| Wanted::Config(at(config)).check(socket, &runs_with);
        for same in [
            "real/slots.toml",
            "linked/slots.toml",
            "link.toml",
            "real/../linked/./slots.toml",
        ] {
            assert_eq!(check(same), Ok(()), "{same}");
        }
        for other in ["real/other.toml", "linked/other.toml", "gone.toml"] {
            let refusal = check(other).unwrap_err();
            assert_eq!(refusal.fault, Fault::Refused);
            let named = [at(other), runs_with.config.clone(), socket.to_owned()];
            for path in named {
                let path = path.display().to_string();
                assert!(refusal.message.contains(&path), "{refusal:?}");
            }
        }
        // A config that was removed still names its daemon, also through a linked directory.
        std::fs::remove_file(at("real/slots.toml")).unwrap();
        assert_eq!(check("real/slots.toml"), Ok(()));
        assert_eq!(check("linked/slots.toml"), Ok(()));
        // A config that was moved does not: the daemon would read the old path.
        std::fs::write(at("moved.toml"), "").unwrap();
        assert!(check("moved.toml").is_err());
    }

    #[test]
    fn a_process_is_known_by_its_id() {
        let answers = daemon(Path::new("/a.toml"));
        let socket = Path::new("/run/m.sock");
        assert_eq!(Wanted::Process(7).check(socket, &answers), Ok(()));
        assert!(Wanted::Process(8).check(socket, &answers).is_err());
        assert_eq!(Wanted::AtSocket.check(socket, &answers), Ok(()));
    }
}
