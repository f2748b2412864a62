//! The paths of the configuration, sockets, locks and state. The environment is read once, by [`Env::of_process`], and
//! passed as a value.

use crate::core::text::hex;
use crate::core::text::quoting::quoted;
use crate::os::trusted_file::{Exposed, FileFault, Trusted, check_place};
use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// The parts of the process's environment that decide on paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    /// `$XDG_CONFIG_HOME` or `~/.config`; `None` if there is no home directory either.
    pub config_home: Option<PathBuf>,
    /// `$XDG_STATE_HOME` or `~/.local/state`.
    pub state_home: Option<PathBuf>,
    /// `$XDG_DATA_HOME` or `~/.local/share`.
    pub data_home: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR`, if it is a directory at the start: one that appears later does not move a socket.
    pub runtime_home: Option<PathBuf>,
    /// `$MISSIOND_CONFIG`.
    pub config: Option<PathBuf>,
    /// The socket that the user names, by flag or by `$MISSIOND_SOCKET`: a daemon that is started listens there,
    /// whatever its config says. Only the command line sets it.
    pub socket: Option<PathBuf>,
    pub cwd: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error("{}", no_config(.wanted, .here.as_deref()))]
    NoConfig {
        wanted: PathBuf,
        /// A slots.toml in the current directory, which is never used without a request.
        here: Option<PathBuf>,
    },
    #[error("no home directory is known: set $HOME, or $XDG_CONFIG_HOME and $XDG_STATE_HOME")]
    NoHome,
    #[error(
        "the socket's path has {} bytes and the system allows {MAX_SOCKET}: {}\n  \
         set `socket` in [daemon] to a shorter path, or $XDG_RUNTIME_DIR to a shorter directory",
        .0.as_os_str().len(), .0.display()
    )]
    SocketTooLong(PathBuf),
    #[error("{} can't be made: {source}", .dir.display())]
    CantMake { dir: PathBuf, source: io::Error },
    #[error("{} is a symbolic link: name the directory itself", .0.display())]
    Symlink(PathBuf),
    #[error("{} is not a directory: move it away, or name another", .0.display())]
    NotADirectory(PathBuf),
    #[error("{} belongs to user {owner}, not to you: name a directory of your own", .dir.display())]
    ForeignOwner { dir: PathBuf, owner: u32 },
    #[error("{} is open to other users (mode {mode:03o}): {fix}", .dir.display())]
    OpenToOthers {
        dir: PathBuf,
        mode: u32,
        fix: String,
    },
    #[error("{} is not safe: {exposed}\n  {fix}", .dir.display())]
    Replaceable {
        dir: PathBuf,
        exposed: Exposed,
        fix: String,
    },
}

fn no_config(wanted: &Path, here: Option<&Path>) -> String {
    let missing = format!("no configuration: there is no {}", wanted.display());
    match here {
        None => format!("{missing}\n  write a first one with: missiond init"),
        Some(here) => format!(
            "{missing}\n  {} is not used unasked, since a cloned repository must not bring its own approvals\n  \
             if it is yours: missiond up -c slots.toml",
            here.display()
        ),
    }
}

/// `sun_path` has 108 bytes on Linux, the last of them a NUL.
pub const MAX_SOCKET: usize = 107;

/// What to do about a parent directory that is not missiond's own: other programs may need it as it is.
const ELSEWHERE: &str =
    "name a directory that lies where only you can write, such as with $XDG_STATE_HOME";

const APP: &str = "missiond";

impl Env {
    /// Read once, at the start of the program.
    pub fn of_process() -> Env {
        let xdg = etcetera::base_strategy::Xdg::new().ok();
        let xdg = xdg.as_ref();
        Env {
            config_home: xdg.map(BaseStrategy::config_dir),
            state_home: xdg.and_then(BaseStrategy::state_dir),
            data_home: xdg.map(BaseStrategy::data_dir),
            runtime_home: xdg
                .and_then(BaseStrategy::runtime_dir)
                .filter(|dir| dir.is_dir()),
            config: std::env::var_os("MISSIOND_CONFIG")
                .filter(|value| !value.is_empty())
                .map(PathBuf::from),
            socket: None,
            cwd: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// `-c`, otherwise `$MISSIOND_CONFIG`, otherwise the one in the user's configuration directory; never one in the
    /// current directory.
    pub fn config_file(&self, given: Option<&Path>) -> Result<PathBuf, PathError> {
        if let Some(named) = given.or(self.config.as_deref()) {
            return Ok(named.to_owned());
        }
        let wanted = self.config_dir()?.join("slots.toml");
        if wanted.exists() {
            return Ok(wanted);
        }
        let here = self.cwd.join("slots.toml");
        let here = here.exists().then_some(here);
        Err(PathError::NoConfig { wanted, here })
    }

    /// The user's configuration directory.
    pub fn config_dir(&self) -> Result<PathBuf, PathError> {
        let home = self.config_home.as_ref().ok_or(PathError::NoHome)?;
        Ok(home.join(APP))
    }

    /// The directory of data that must survive a reboot.
    pub fn state_dir(&self) -> Result<PathBuf, PathError> {
        let home = self.state_home.as_ref().ok_or(PathError::NoHome)?;
        Ok(home.join(APP))
    }

    /// The directory of the data that slots work on.
    pub fn data_dir(&self) -> Result<PathBuf, PathError> {
        let home = self.data_home.as_ref().ok_or(PathError::NoHome)?;
        Ok(home.join(APP))
    }

    /// Tells whether a directory is missiond's own, and not one with other things of the user.
    fn owns(&self, dir: &Path) -> bool {
        let own = [
            self.config_dir(),
            self.state_dir(),
            self.data_dir(),
            self.runtime_dir(),
        ];
        let straight = |dir: &Path| !dir.components().any(|part| part == Component::ParentDir);
        let below = |own: &PathBuf| dir.is_absolute() && dir.starts_with(own);
        straight(dir) && own.iter().flatten().any(below)
    }

    /// The command that closes a directory to other users; `None` for a directory that is not missiond's own: other
    /// programs may need it as it is.
    pub fn close_to_others(&self, dir: &Path) -> Option<String> {
        self.change_mode("700", dir)
    }

    /// Like [`Env::close_to_others`], but others may still read it.
    pub fn close_to_writers(&self, dir: &Path) -> Option<String> {
        self.change_mode("go-w", dir)
    }

    fn change_mode(&self, mode: &str, dir: &Path) -> Option<String> {
        let shown = quoted(&dir.display().to_string());
        self.owns(dir).then(|| format!("chmod {mode} {shown}"))
    }

    /// The directory of sockets and locks: in the session's runtime directory, otherwise under the state directory.
    pub fn runtime_dir(&self) -> Result<PathBuf, PathError> {
        match &self.runtime_home {
            Some(dir) => Ok(dir.join(APP)),
            None => self.lasting_runtime_dir(),
        }
    }

    fn lasting_runtime_dir(&self) -> Result<PathBuf, PathError> {
        Ok(self.state_dir()?.join("run"))
    }

    /// The socket of a slot's shim. The names are hashed if the path would be too long; if the directory alone is too
    /// long, [`crate::os::socket::Address`] helps.
    pub fn shim_socket(&self, daemon: &str, slot: &str) -> Result<PathBuf, PathError> {
        let dir = self.runtime_dir()?.join("shims");
        // No name has a dot in it, so no two pairs share a file.
        let names = format!("{daemon}.{slot}");
        let hashed = || dir.join(format!("{}.sock", short_hash(&names)));
        Ok(fitting(dir.join(format!("{names}.sock"))).unwrap_or_else(|_| hashed()))
    }

    /// The slots of a daemon with a shim's socket, whether or not a shim listens; those with a hashed name are unknown.
    pub fn slots_with_shims(&self, daemon: &str) -> Vec<String> {
        let dir = self.runtime_dir().map(|dir| dir.join("shims")).ok();
        let entries = dir.and_then(|dir| fs::read_dir(dir).ok());
        let names = entries.into_iter().flatten().flatten();
        names
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let slot = name.strip_prefix(daemon)?.strip_prefix('.')?;
                Some(slot.strip_suffix(".sock")?.to_owned())
            })
            .collect()
    }

    /// The sockets of all daemons, whether or not they answer: also of one that was started without a runtime
    /// directory, such as from a cron job.
    pub fn all_sockets(&self) -> Vec<PathBuf> {
        let is_socket = |path: &PathBuf| {
            let found = fs::symlink_metadata(path);
            found.is_ok_and(|found| found.file_type().is_socket())
        };
        let dirs = [self.runtime_dir(), self.lasting_runtime_dir()];
        let dirs = dirs.into_iter().flatten().collect::<BTreeSet<_>>();
        let sockets = dirs.iter().flat_map(|dir| files_in(dir, "sock"));
        sockets
            .filter(is_socket)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// The locks of all daemons, whether or not they are held.
    pub fn all_locks(&self) -> Vec<PathBuf> {
        let dir = self.state_dir();
        dir.map_or_else(|_| Vec::new(), |dir| files_in(&dir, "lock"))
    }
}

fn files_in(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect()
}

/// Checks that the path fits into a socket address.
pub fn fitting(socket: PathBuf) -> Result<PathBuf, PathError> {
    match socket.as_os_str().as_bytes().len() {
        0..=MAX_SOCKET => Ok(socket),
        _ => Err(PathError::SocketTooLong(socket)),
    }
}

/// 64 bits: short enough for a path, and no collisions between the slots of one user.
fn short_hash(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..8])
}

/// Creates the directory if it is missing, and ensures that no other user can access it. Nothing is created in a place
/// where others could replace it.
pub fn ensure_private_dir(dir: &Path) -> Result<(), PathError> {
    if dir.symlink_metadata().is_err() {
        check_place_of(dir)?;
    }
    match DirBuilder::new().mode(0o700).recursive(true).create(dir) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            let dir = dir.to_owned();
            Err(PathError::CantMake { dir, source })
        }
        _ => check_private_dir(dir),
    }
}

/// Like [`ensure_private_dir`], without creating it: a missing directory is not an error if it can be created in a safe
/// place.
pub fn check_private_dir(dir: &Path) -> Result<(), PathError> {
    match fs::symlink_metadata(dir) {
        Ok(found) => check_private(dir, &found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => check_place_of(dir),
        Err(source) => {
            let dir = dir.to_owned();
            Err(PathError::CantMake { dir, source })
        }
    }
}

fn check_private(dir: &Path, found: &fs::Metadata) -> Result<(), PathError> {
    let dir = dir.to_owned();
    let mode = found.mode() & 0o777;
    if found.is_symlink() {
        return Err(PathError::Symlink(dir));
    }
    if !found.is_dir() {
        return Err(PathError::NotADirectory(dir));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        let owner = found.uid();
        return Err(PathError::ForeignOwner { dir, owner });
    }
    if mode & 0o077 != 0 {
        let fix = Env::of_process().close_to_others(&dir);
        let fix = fix.unwrap_or_else(|| "name a directory that is yours alone".to_owned());
        return Err(PathError::OpenToOthers { dir, mode, fix });
    }
    check_place_of(&dir)
}

fn check_place_of(dir: &Path) -> Result<(), PathError> {
    check_place(dir, &Trusted::of_process()).map_err(|exposed| {
        let fix = match &exposed {
            Exposed::Above {
                at,
                link: false,
                fault: FileFault::Writable(..),
            } => Env::of_process().close_to_writers(at),
            _ => None,
        };
        PathError::Replaceable {
            fix: fix.unwrap_or_else(|| ELSEWHERE.to_owned()),
            dir: dir.to_owned(),
            exposed,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    struct Place {
        dir: tempfile::TempDir,
        env: Env,
    }

    /// A user with a home directory.
    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("run")).unwrap();
        let env = Env {
            config_home: Some(at("config")),
            state_home: Some(at("state")),
            data_home: Some(at("data")),
            runtime_home: Some(at("run")),
            config: None,
            socket: None,
            cwd: at("project"),
        };
        Place { dir, env }
    }

    fn write(file: &Path) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }

    #[test]
    fn the_flag_wins_over_the_variable_and_that_over_the_users_own() {
        let mut place = place();
        let own = place.dir.path().join("config/missiond/slots.toml");
        write(&own);
        assert_eq!(place.env.config_file(None).unwrap(), own);
        place.env.config = Some("/variable.toml".into());
        let found = place.env.config_file(None).unwrap();
        assert_eq!(found, Path::new("/variable.toml"));
        let found = place.env.config_file(Some(Path::new("flag.toml"))).unwrap();
        assert_eq!(found, Path::new("flag.toml"));
    }

    #[test]
    fn the_one_in_the_current_directory_is_never_taken_unasked() {
        let place = place();
        let none = place.env.config_file(None).unwrap_err().to_string();
        assert!(none.contains("missiond init"), "{none}");
        write(&place.env.cwd.join("slots.toml"));
        let here = place.env.config_file(None).unwrap_err().to_string();
        assert!(here.contains("missiond up -c slots.toml"), "{here}");
        assert!(here.contains("config/missiond/slots.toml"), "{here}");
    }

    #[test]
    fn long_names_of_slots_are_hashed_into_a_path_that_fits() {
        let place = place();
        let short = place.env.shim_socket("m", "coder").unwrap();
        assert!(short.ends_with("shims/m.coder.sock"), "{}", short.display());
        let long = "s".repeat(64);
        let one = place.env.shim_socket(&long, &long).unwrap();
        let other = place.env.shim_socket(&long, "s").unwrap();
        assert!(one.as_os_str().len() <= MAX_SOCKET && one != other);
        UnixListener::bind(place.dir.path().join("x.sock")).unwrap();
    }

    #[test]
    fn a_private_directory_is_made_and_kept() {
        let place = place();
        let dir = place.dir.path().join("a/b");
        ensure_private_dir(&dir).unwrap();
        ensure_private_dir(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_that_others_could_reach_into_is_refused() {
        let place = place();
        let at = |name: &str| place.dir.path().join(name);
        let refusal = |dir: &Path| ensure_private_dir(dir).unwrap_err().to_string();
        fs::set_permissions(at("run"), Permissions::from_mode(0o755)).unwrap();
        let told = refusal(&at("run"));
        assert!(
            told.contains("yours alone") && !told.contains("chmod"),
            "{told}"
        );
        symlink(at("run"), at("link")).unwrap();
        assert!(refusal(&at("link")).contains("symbolic link"));
        fs::write(at("file"), "").unwrap();
        assert!(refusal(&at("file")).contains("not a directory"));
        assert!(refusal(&at("file/below")).contains("can't be made"));
    }

    #[test]
    fn a_directory_that_others_could_replace_is_refused() {
        let place = place();
        let at = |name: &str| place.dir.path().join(name);
        let mode = |name: &str, mode: u32| {
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        };
        for (name, its_mode, is_good) in [
            ("open", 0o777, false),
            ("sticky", 0o1777, true),
            ("closed", 0o755, true),
        ] {
            fs::create_dir(at(name)).unwrap();
            fs::create_dir(at(name).join("mine")).unwrap();
            mode(name, its_mode);
            symlink(at(name).join("mine"), at(&format!("{name}-link"))).unwrap();
            // Direct, deeper, and through a link to a parent directory.
            for dir in [
                at(name).join("state"),
                at(name).join("mine/a/b"),
                at(&format!("{name}-link")).join("state"),
            ] {
                let found = ensure_private_dir(&dir);
                assert_eq!(found.is_ok(), is_good, "{}: {found:?}", dir.display());
                if let Err(error) = found {
                    let told = error.to_string();
                    assert!(told.contains("$XDG_STATE_HOME"), "{told}");
                    assert!(!told.contains("chmod"), "{told}");
                }
            }
        }
    }

    /// What a fix may change, and what it must not touch.
    #[test]
    fn a_command_changes_no_directory_but_missionds_own() {
        let place = place();
        let at = |name: &str| place.dir.path().join(name);
        for own in [
            "config/missiond",
            "config/missiond/policies",
            "state/missiond",
            "state/missiond/fleet",
            "data/missiond/worktrees",
            "run/missiond",
            "run/missiond/shims",
        ] {
            let dir = at(own);
            let expected = format!("chmod 700 {}", dir.display());
            assert_eq!(place.env.close_to_others(&dir), Some(expected));
            let expected = format!("chmod go-w {}", dir.display());
            assert_eq!(place.env.close_to_writers(&dir), Some(expected));
        }
        let others = [
            "/",
            "/tmp",
            "/home",
            "/var/run",
            "/usr",
            ".",
            "",
            "logs",
            "missiond",
            "~/.config/missiond",
        ];
        let below = [
            "",
            "config",
            "state",
            "data",
            "run",
            "project",
            "project/missiond",
            "config/missiond2",
            "config/missiond/..",
            "config/missiond/../..",
            "state/missiond/../../project",
        ];
        let others = others.map(PathBuf::from).into_iter();
        for dir in others.chain(below.map(at)) {
            assert_eq!(place.env.close_to_others(&dir), None, "{}", dir.display());
            assert_eq!(place.env.close_to_writers(&dir), None, "{}", dir.display());
        }
    }

    #[test]
    fn sockets_of_daemons_are_listed_and_nothing_else() {
        let place = place();
        assert!(place.env.all_sockets().is_empty());
        let dir = place.env.runtime_dir().unwrap();
        fs::create_dir_all(dir.join("shims")).unwrap();
        fs::write(dir.join("a.sock"), "no socket").unwrap();
        let _b = UnixListener::bind(dir.join("b.sock")).unwrap();
        let _c = UnixListener::bind(dir.join("c.sock")).unwrap();
        let _other = UnixListener::bind(dir.join("other")).unwrap();
        assert_eq!(
            place.env.all_sockets(),
            [dir.join("b.sock"), dir.join("c.sock")]
        );
        let lasting = place.dir.path().join("state/missiond/run");
        fs::create_dir_all(&lasting).unwrap();
        let _d = UnixListener::bind(lasting.join("d.sock")).unwrap();
        assert!(place.env.all_sockets().contains(&lasting.join("d.sock")));
    }
}
