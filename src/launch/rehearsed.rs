//! The rehearsed programs, in `rehearsed.json` of the state directory, and the versions that need no rehearsal.

use crate::core::claude::Version;
use crate::os::files;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};

/// The versions for which every scene of the rehearsal has passed: read and driven, not only recorded.
pub const DRIVEN: &[Version] = &[
    Version::new(2, 0, 42),
    Version::new(2, 0, 60),
    Version::new(2, 0, 76),
    Version::new(2, 1, 0),
    Version::new(2, 1, 20),
    Version::new(2, 1, 50),
    Version::new(2, 1, 75),
    Version::new(2, 1, 100),
    Version::new(2, 1, 150),
    Version::new(2, 1, 181),
    Version::new(2, 1, 200),
    Version::new(2, 1, 220),
    Version::new(2, 1, 250),
    Version::new(2, 1, 300),
    Version::new(2, 1, 325),
];

/// How to rehearse this command, for a message to the user.
pub fn how_to(command: &[String]) -> String {
    format!("missiond doctor --rehearse --claude {}", command.join(" "))
}

const FILE: &str = "rehearsed.json";

/// The maximum of programs that are kept: years of updates. The oldest are dropped.
const MAX_REMEMBERED: usize = 64;

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rehearsed {
    #[serde(default)]
    rehearsals: Vec<Remembered>,
    /// Fields of a newer missiond are kept.
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// One program, and the result of its last rehearsal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    #[serde(flatten)]
    pub program: RehearsedProgram,
    pub at: String,
    /// Whether every scene passed that a key depends on.
    pub holds: bool,
    /// The scenes that failed.
    #[serde(default)]
    pub failed: Vec<String>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// What a rehearsal is valid for: exactly these files, read by exactly this missiond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RehearsedProgram {
    pub version: String,
    pub path: PathBuf,
    /// Its first arguments: for `node cli.js` the script is what is rehearsed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The last modification of any of the command's files.
    pub modified: String,
    pub missiond: String,
}

impl RehearsedProgram {
    /// `command` is the program, with its full path, and its first arguments.
    pub fn new(version: Version, command: &[String]) -> io::Result<RehearsedProgram> {
        let (path, args) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let path = Path::new(path).canonicalize()?;
        let changed = |file: &Path| file.metadata().and_then(|file| file.modified());
        let files = args.iter().map(Path::new).filter(|arg| arg.is_file());
        let modified = files.flat_map(changed).fold(changed(&path)?, Ord::max);
        let modified: DateTime<Utc> = modified.into();
        Ok(RehearsedProgram {
            version: version.to_string(),
            path,
            args: args.to_vec(),
            modified: modified.to_rfc3339_opts(SecondsFormat::Micros, true),
            missiond: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}

/// What is known about a program's screens.
#[derive(Debug, Clone, PartialEq)]
pub enum Acquaintance {
    /// missiond was rehearsed with its version.
    Driven,
    Rehearsed(Remembered),
    /// A rehearsal failed.
    Failed(Remembered),
    Stranger,
}

impl Acquaintance {
    /// Tells whether the screen alone may be a reason to allow something.
    pub fn is_known(&self) -> bool {
        matches!(self, Acquaintance::Driven | Acquaintance::Rehearsed(_))
    }
}

/// What is known about the program of this command; `state` is missiond's state directory.
pub fn acquaintance(state: &Path, version: Version, command: &[String]) -> Acquaintance {
    let last = RehearsedProgram::new(version, command)
        .ok()
        .and_then(|program| load(state).ok()?.last(&program));
    match last {
        // A failed rehearsal here counts more than one of the same version on another machine.
        Some(last) if !last.holds => Acquaintance::Failed(last),
        _ if DRIVEN.contains(&version) => Acquaintance::Driven,
        Some(last) => Acquaintance::Rehearsed(last),
        None => Acquaintance::Stranger,
    }
}

/// Adds a rehearsal to the file: whether every scene passed that a key depends on, and the failed scenes. A file that
/// can't be parsed is not overwritten.
pub fn remember(
    state: &Path,
    program: RehearsedProgram,
    holds: bool,
    failed: Vec<String>,
) -> io::Result<()> {
    let mut rehearsed = load(state)?;
    rehearsed.add(Remembered {
        program,
        at: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
        holds,
        failed,
        unknown: Map::new(),
    });
    let text = serde_json::to_string_pretty(&rehearsed).map_err(io::Error::other)?;
    files::save(&state.join(FILE), &format!("{text}\n"))
}

fn load(state: &Path) -> io::Result<Rehearsed> {
    let file = state.join(FILE);
    match files::read_text(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Rehearsed::default()),
        Err(error) => Err(error),
        Ok(text) => serde_json::from_str(&text).map_err(|error| {
            io::Error::other(format!("{} can't be read: {error}", file.display()))
        }),
    }
}

impl Rehearsed {
    fn last(mut self, program: &RehearsedProgram) -> Option<Remembered> {
        let found = self
            .rehearsals
            .iter()
            .rposition(|known| known.program == *program)?;
        Some(self.rehearsals.swap_remove(found))
    }

    /// The newest rehearsal of a program replaces the previous one.
    fn add(&mut self, new: Remembered) {
        self.rehearsals.retain(|known| known.program != new.program);
        self.rehearsals.push(new);
        let surplus = self.rehearsals.len().saturating_sub(MAX_REMEMBERED);
        self.rehearsals.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    const NEW: Version = Version::new(9, 1, 2);

    fn program(dir: &Path) -> [String; 1] {
        let path = dir.join("claude");
        fs::write(&path, "one").expect("a file");
        [path.display().to_string()]
    }

    /// Simulates a replacement a minute from now.
    fn replace(path: &str) {
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        let file = fs::File::options().write(true).open(path).expect("a file");
        file.set_modified(later).expect("a new time");
    }

    #[test]
    fn what_was_driven_has_recordings_too() {
        let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
        let folders = fs::read_dir(recordings).expect("recordings");
        let there: BTreeSet<Version> = folders
            .flatten()
            .filter_map(|folder| Version::parse(folder.file_name().to_str()?))
            .collect();
        assert!(there.is_superset(&DRIVEN.iter().copied().collect()));
    }

    #[test]
    fn a_program_is_known_once_it_was_rehearsed_and_until_it_changes() {
        let dir = tempfile::tempdir().expect("a directory");
        let (state, path) = (dir.path(), program(dir.path()));
        assert_eq!(acquaintance(state, NEW, &path), Acquaintance::Stranger);
        let this = RehearsedProgram::new(NEW, &path).expect("a program");
        remember(state, this, true, vec!["idle".to_owned()]).expect("it can be written");
        assert!(acquaintance(state, NEW, &path).is_known());
        assert!(!acquaintance(state, Version::new(9, 1, 3), &path).is_known());
        replace(&path[0]);
        assert_eq!(acquaintance(state, NEW, &path), Acquaintance::Stranger);
    }

    #[test]
    fn a_script_is_known_by_itself_and_not_by_what_runs_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let (state, [script]) = (dir.path(), program(dir.path()));
        let command = ["/bin/sh".to_owned(), script.clone()];
        let this = RehearsedProgram::new(NEW, &command).expect("a program");
        remember(state, this, true, Vec::new()).expect("it can be written");
        assert!(acquaintance(state, NEW, &command).is_known());
        assert!(!acquaintance(state, NEW, &command[..1]).is_known());
        replace(&script);
        assert!(!acquaintance(state, NEW, &command).is_known());
    }

    #[test]
    fn a_rehearsal_that_failed_outweighs_the_list() {
        let dir = tempfile::tempdir().expect("a directory");
        let (state, path) = (dir.path(), program(dir.path()));
        let version = DRIVEN[0];
        assert!(acquaintance(state, version, &path).is_known());
        let this = RehearsedProgram::new(version, &path).expect("a program");
        remember(state, this.clone(), false, Vec::new()).expect("it can be written");
        assert!(matches!(
            acquaintance(state, version, &path),
            Acquaintance::Failed(_)
        ));
        remember(state, this, true, Vec::new()).expect("it can be written");
        assert!(acquaintance(state, version, &path).is_known());
    }

    #[test]
    fn what_a_newer_missiond_wrote_is_kept_and_a_broken_file_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let (state, path) = (dir.path(), program(dir.path()));
        let file = state.join(FILE);
        let newer = r#"{"later": 1, "rehearsals": [{"version": "1.0.0", "path": "/p", "modified": "m",
            "missiond": "0", "at": "t", "holds": true, "how": "well"}]}"#;
        fs::write(&file, newer).expect("a file");
        let this = RehearsedProgram::new(NEW, &path).expect("a program");
        remember(state, this.clone(), false, Vec::new()).expect("it can be written");
        let text = fs::read_to_string(&file).expect("a file");
        assert!(text.contains("later") && text.contains("well"), "{text}");
        fs::write(&file, "{").expect("a file");
        assert!(remember(state, this, false, Vec::new()).is_err());
        assert_eq!(fs::read_to_string(&file).expect("a file"), "{");
    }
}
