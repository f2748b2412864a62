//! Loads slots.toml from the disk, with the policies that it names, and checks its directories.

use super::{Config, RolePolicy};
use crate::core::policy::Policy;
use crate::core::settings::{DaemonConfig, HIDDEN_KEYS, Kind};
use crate::core::settings::{DraftConfig, DraftSlot, Places, parse, parse_daemon};
use crate::core::text::diagnostic::{ConfigError, Problem, Source, nearest};
use crate::os::files;
use crate::os::paths::Env;
use crate::os::trusted_file::{self, Exposed, Trusted};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum size of a file. It is far more than a person writes by hand; a longer file is something else.
pub(super) const MAX_MIB: u64 = 1;

/// The maximum of attempts to open a file that an editor replaces meanwhile. An editor replaces it once.
const MOST_TRIES: usize = 3;

/// Reads, checks and completes the configuration. `~` means the home directory of this process.
pub fn load(file: &Path) -> Result<Config, ConfigError> {
    load_at_home(file, std::env::home_dir().as_deref())
}

/// Like [`load`], with the home directory given.
pub fn load_at_home(file: &Path, home: Option<&Path>) -> Result<Config, ConfigError> {
    check(file, read_slots(file)?, home)
}

/// The configuration if the file does not exist yet: no slots, and defaults for everything else.
pub fn for_sessions_alone(file: &Path) -> Result<Config, ConfigError> {
    let source = Source::new(file, "[sessions]\n".to_owned());
    check(file, source, std::env::home_dir().as_deref())
}

fn check(file: &Path, source: Source, home: Option<&Path>) -> Result<Config, ConfigError> {
    let absolute = absolute(file);
    let base = base_of(&absolute);
    let (draft, mut problems) = parse(&source, Places { base, home })?;
    problems.extend(missing_directories(&source, &draft));
    let (policies, faults) = policies(&source, base, &draft);
    problems.extend(faults);
    if !problems.is_empty() {
        return Err(problems.into());
    }
    Ok(Config {
        file: absolute,
        daemon: draft.daemon,
        notify: draft.notify,
        sessions: draft.sessions,
        slots: draft.slots.into_iter().map(|draft| draft.slot).collect(),
        policies,
    })
}

/// The `[daemon]` part of a file, even if its slots have errors: so a running daemon can be reached while its
/// configuration is edited.
pub fn load_daemon(file: &Path) -> Result<DaemonConfig, ConfigError> {
    let source = read_slots(file)?;
    let (absolute, home) = (absolute(file), std::env::home_dir());
    let places = Places {
        base: base_of(&absolute),
        home: home.as_deref(),
    };
    Ok(parse_daemon(&source, places)?)
}

/// Reads slots.toml. Addresses and tokens in it are not shown in any problem.
fn read_slots(file: &Path) -> Result<Source, ConfigError> {
    let source = read_trusted(file).map_err(|problem| vec![*problem])?;
    Ok(source.hiding(HIDDEN_KEYS))
}

fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

/// The directory that relative paths in the file are relative to.
fn base_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

/// Reads a text file that a person wrote; the error is a problem to show.
pub fn read_source(file: &Path) -> Result<Source, Box<Problem>> {
    let opened = File::open(file).map_err(|error| Box::new(unreadable(file, &error)))?;
    source_of(file, opened)
}

/// Like [`read_source`], for a file that decides what is allowed: only this user and root may be able to write it.
fn read_trusted(file: &Path) -> Result<Source, Box<Problem>> {
    let trusted = Trusted::of_process();
    let mut tried = 1;
    loop {
        let opened = open_at_once(file).map_err(|error| Box::new(unreadable(file, &error)))?;
        match trusted_file::check(file, &opened, &trusted) {
            Ok(()) => return source_of(file, opened),
            // An editor has saved it in between.
            Err(Exposed::Replaced) if tried < MOST_TRIES => tried += 1,
            Err(exposed) => return Err(Box::new(exposed_problem(file, &exposed))),
        }
    }
}

/// Opens a file without blocking: a named pipe in its place must not stop the daemon until another process writes into
/// it.
fn open_at_once(file: &Path) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut options = File::options();
    options.read(true).custom_flags(nonblocking).open(file)
}

fn exposed_problem(file: &Path, exposed: &Exposed) -> Problem {
    let title = match exposed {
        Exposed::File(_) | Exposed::Above { .. } => "another user could change this file",
        Exposed::NotAFile | Exposed::Replaced | Exposed::Unknown(_) => "can't read this file",
    };
    let problem = Problem::of_file(file, title, exposed.to_string());
    match exposed.fix(file, &Env::of_process()) {
        Some(fix) => problem.with_help(fix),
        None => problem,
    }
}

fn source_of(file: &Path, opened: File) -> Result<Source, Box<Problem>> {
    let bytes =
        files::bounded(opened, MAX_MIB).map_err(|error| Box::new(unreadable(file, &error)))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(file, text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let span = at..at + char::REPLACEMENT_CHARACTER.len_utf8();
            let label = "this byte is not UTF-8: save the file as UTF-8";
            let problem = Source::new(file, text).problem(span, "not a text file", label);
            Err(Box::new(problem))
        }
    }
}

fn unreadable(file: &Path, error: &io::Error) -> Problem {
    let problem = Problem::of_file(file, "can't read this file", error.to_string());
    match error.kind() {
        io::ErrorKind::NotFound => {
            problem.with_help("`missiond init` writes a first one; `-c FILE` names another")
        }
        _ => problem,
    }
}

fn missing_directories(source: &Source, draft: &DraftConfig) -> Vec<Problem> {
    let missing = |slot| missing_cwd(source, slot);
    draft.slots.iter().filter_map(missing).collect()
}

type Policies = BTreeMap<String, RolePolicy>;

/// The policy of each role, and all problems in any of them.
fn policies(source: &Source, base: &Path, draft: &DraftConfig) -> (Policies, Vec<Problem>) {
    let roles = roles_with_a_policy(&draft.daemon.policies);
    let (mut policies, mut problems) = (Policies::new(), Vec::new());
    let asked = |slot: &&DraftSlot| slot.slot.kind == Kind::Claude;
    for slot in draft.slots.iter().filter(asked) {
        let role = &slot.slot.role;
        if let Some(missing) = missing_policy(source, draft, slot, &roles) {
            problems.push(missing);
        } else if !policies.contains_key(role) {
            match policy(source, base, draft, role) {
                Ok(policy) => drop(policies.insert(role.clone(), policy)),
                Err(faults) => problems.extend(faults),
            }
        }
    }
    (policies, problems)
}

/// The policy of a role; its rules may name paths relative to the configuration's directory.
fn policy(
    source: &Source,
    base: &Path,
    draft: &DraftConfig,
    role: &str,
) -> Result<RolePolicy, Vec<Problem>> {
    let shown = shown_policy(source, draft, role);
    let Source { text, .. } = read_trusted(&shown).map_err(|problem| vec![*problem])?;
    let policy = Policy::parse(&text, &draft.daemon.policy_file(role), base);
    let policy = policy.map_err(|faults| {
        let as_named = |fault| Problem {
            file: shown.clone(),
            ..fault
        };
        faults.into_iter().map(as_named).collect::<Vec<_>>()
    })?;
    Ok(RolePolicy {
        text,
        policy: Arc::new(policy),
    })
}

/// The policy's path, in the form in which the person named the configuration.
fn shown_policy(source: &Source, draft: &DraftConfig, role: &str) -> PathBuf {
    if draft.policies_as_written.starts_with('~') {
        return draft.daemon.policy_file(role);
    }
    let beside = source.file.with_file_name(&draft.policies_as_written);
    beside.join(format!("{role}.toml"))
}

fn missing_cwd(source: &Source, draft: &DraftSlot) -> Option<Problem> {
    let cwd = &draft.slot.cwd;
    let problem = |title, why: &str| {
        let label = format!("{}: {why}", cwd.display());
        Some(source.problem(draft.cwd_span.clone(), title, label))
    };
    match std::fs::metadata(cwd) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => problem(
            "not a directory",
            "this is a file; a slot works in a directory",
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            problem("missing directory", "there is no such directory")
                .map(|problem| problem.with_help("make it, or name another"))
        }
        Err(error) => problem("directory out of reach", &error.to_string()),
    }
}

fn missing_policy(
    source: &Source,
    draft: &DraftConfig,
    slot: &DraftSlot,
    roles: &[String],
) -> Option<Problem> {
    let role = &slot.slot.role;
    if draft.daemon.policy_file(role).is_file() {
        return None;
    }
    let span = slot.role_span.clone()?;
    let shown = Path::new(&draft.policies_as_written).join(format!("{role}.toml"));
    let label = format!("no {}", shown.display());
    let problem = match nearest(role, roles.iter().map(String::as_str)) {
        Some(meant) => source.problem(
            span,
            "unknown role",
            format!("{label}; did you mean `{meant}`?"),
        ),
        None => source
            .problem(span, "unknown role", label)
            .with_help(write_a_policy(&draft.daemon, roles)),
    };
    Some(problem)
}

fn write_a_policy(daemon: &DaemonConfig, roles: &[String]) -> String {
    let dir = daemon.policies.display();
    if roles.is_empty() {
        return format!("{dir} has no policies; `missiond init` writes some");
    }
    format!("write the policy, or choose from: {}", roles.join(", "))
}

/// The roles with a policy file, only for suggestions: a directory that can't be read has none.
fn roles_with_a_policy(policies: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(policies).into_iter().flatten().flatten();
    let mut roles: Vec<String> = entries.filter_map(|entry| role_of(&entry.path())).collect();
    roles.sort();
    roles
}

fn role_of(file: &Path) -> Option<String> {
    let is_toml = file.extension().is_some_and(|ending| ending == "toml");
    let stem = file.file_stem()?.to_str()?;
    is_toml.then(|| stem.to_owned())
}

impl DaemonConfig {
    /// The files that a daemon of this config reads and writes, as far as the config names them; `file` is the config
    /// itself.
    pub fn own_files(&self, file: &Path) -> [PathBuf; 3] {
        [file.to_owned(), self.policies.clone(), self.logs.clone()]
    }

    /// The path of a role's policy.
    pub fn policy_file(&self, role: &str) -> PathBuf {
        self.policies.join(format!("{role}.toml"))
    }
}
