//! The text of slots.toml to a draft: everything that can be said without looking at the disk. Pure.

use super::keys::{Keys, uuid_key};
use super::{DaemonConfig, Kind, NotifyConfig, SessionsConfig, SlotConfig};
use crate::core::claude::reserved_flag;
use crate::core::settings::table::Table;
use crate::core::text::diagnostic::{Problem, Source};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A configuration whose directories and policies are yet to be looked for.
pub(crate) struct DraftConfig {
    pub daemon: DaemonConfig,
    pub notify: NotifyConfig,
    pub sessions: SessionsConfig,
    /// `policies` as it was written, for messages.
    pub policies_as_written: String,
    pub slots: Vec<DraftSlot>,
}

pub(crate) struct DraftSlot {
    pub slot: SlotConfig,
    pub cwd_span: Range<usize>,
    /// Where the role stands; a shell slot may have none.
    pub role_span: Option<Range<usize>>,
}

/// What relative paths and `~` stand for.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// The directory of the file, absolute.
    pub base: &'a Path,
    pub home: Option<&'a Path>,
}

/// A draft of what could be understood with every fault in it; it is of use only without. Where the file
/// is no TOML, the places alone: what seems to be missing then is mostly an echo.
pub(crate) fn parse(
    source: &Source,
    places: Places<'_>,
) -> Result<(DraftConfig, Vec<Problem>), Vec<Problem>> {
    let (root, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        return Err(errors.iter().map(|e| syntax_error(source, e)).collect());
    }
    let mut problems = Vec::new();
    let parser = Parser {
        source,
        places,
        problems: &mut problems,
    };
    let draft = parser.file(root.get_ref());
    Ok((draft, problems))
}

/// What the file says about its daemon; the slots in it may be as faulty as they like.
pub(crate) fn parse_daemon(
    source: &Source,
    places: Places<'_>,
) -> Result<DaemonConfig, Vec<Problem>> {
    let (root, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        return Err(errors.iter().map(|e| syntax_error(source, e)).collect());
    }
    let mut problems = Vec::new();
    let mut table = Table::new(source, root.get_ref(), "slots.toml", &mut problems);
    let empty = DeTable::new();
    let entries = sub_table(&mut table, "daemon").unwrap_or(&empty);
    let mut parser = Parser {
        source,
        places,
        problems: &mut problems,
    };
    let (daemon, _) = parser.daemon(entries);
    if problems.is_empty() {
        Ok(daemon)
    } else {
        Err(problems)
    }
}

pub(crate) fn syntax_error(source: &Source, error: &toml::de::Error) -> Problem {
    let at = error.span().unwrap_or_default();
    source.problem(at, "syntax error", error.message())
}

struct Parser<'a> {
    source: &'a Source,
    places: Places<'a>,
    problems: &'a mut Vec<Problem>,
}

/// A slot's table and the one of [defaults].
struct SlotTables<'t> {
    header: Range<usize>,
    own: &'t DeTable<'t>,
    defaults: &'t DeTable<'t>,
}

/// Keys that only Claude Code gives a meaning: a plain program has no conversation, and is never seen at work.
pub const FOR_CLAUDE: &[&str] = &[
    "mode",
    "gate",
    "project_settings",
    "resume",
    "session",
    "stall_after",
    "on_stall",
    "max_cost",
    "max_cost_per_day",
    "max_role_cost_per_day",
    "idle_stop",
    "version",
];

impl SlotTables<'_> {
    /// Whether a key is there, right or wrong.
    fn has(&self, key: &str) -> bool {
        self.own.contains_key(key) || self.defaults.contains_key(key)
    }
}

impl Parser<'_> {
    fn file(mut self, root: &DeTable<'_>) -> DraftConfig {
        let empty = DeTable::new();
        let mut table = Table::new(self.source, root, "slots.toml", self.problems);
        let daemon = sub_table(&mut table, "daemon").unwrap_or(&empty);
        let notify = sub_table(&mut table, "notify").unwrap_or(&empty);
        let sessions = sub_table(&mut table, "sessions");
        let defaults = sub_table(&mut table, "defaults").unwrap_or(&empty);
        let slots = slot_tables(&mut table, sessions.is_some());
        table.finish();
        let (daemon, policies_as_written) = self.daemon(daemon);
        DraftConfig {
            daemon,
            notify: self.notify(notify),
            sessions: self.sessions(sessions.unwrap_or(&empty)),
            policies_as_written,
            slots: self.slots(defaults, slots),
        }
    }

    fn daemon(&mut self, entries: &DeTable<'_>) -> (DaemonConfig, String) {
        let mut table = Table::new(self.source, entries, "[daemon]", self.problems);
        let name = table.string("name");
        let logs = table.string("logs");
        let policies = table.string("policies");
        let socket = table.string("socket");
        let worktrees = table.string("worktrees");
        table.finish();
        let written = policies.as_ref().map(|path| path.get_ref().clone());
        let config = DaemonConfig {
            name: name
                .and_then(|name| self.name(&name))
                .unwrap_or_else(|| "missiond".into()),
            logs: self.path_or(logs, "logs"),
            policies: self.path_or(policies, "policies"),
            socket: socket.and_then(|path| self.path(&path)),
            worktrees: worktrees.and_then(|path| self.path(&path)),
        };
        (config, written.unwrap_or_else(|| "policies".into()))
    }

    fn notify(&mut self, entries: &DeTable<'_>) -> NotifyConfig {
        let mut table = Table::new(self.source, entries, "[notify]", self.problems);
        let command = table.strings("command");
        let config = NotifyConfig::read(&mut table);
        table.finish();
        self.check_words(command.iter().collect());
        // An empty list is a way to say that nobody is told.
        if let Some(command) = command.as_ref().filter(|words| !words.get_ref().is_empty()) {
            self.check_program(command, "notify-send");
        }
        NotifyConfig {
            command: plain(value(command)),
            ..config
        }
    }

    fn sessions(&mut self, entries: &DeTable<'_>) -> SessionsConfig {
        let mut table = Table::new(self.source, entries, "[sessions]", self.problems);
        let config = SessionsConfig::read(&mut table);
        table.finish();
        config
    }

    fn defaults(&mut self, entries: &DeTable<'_>) -> Keys {
        let mut table = Table::new(self.source, entries, "[defaults]", self.problems);
        for own in ["name", "session"] {
            if let Some(value) = table.entry(own) {
                let label = format!("each slot needs a {own} of its own: write it in [[slot]]");
                table.fault(value.span(), format!("`{own}` in [defaults]"), label);
            }
        }
        let keys = Keys::read(&mut table);
        table.finish();
        self.check_keys(&keys);
        keys
    }

    fn slots(
        &mut self,
        defaults: &DeTable<'_>,
        tables: Vec<(Range<usize>, &DeTable<'_>)>,
    ) -> Vec<DraftSlot> {
        let default_keys = self.defaults(defaults);
        let mut names = BTreeMap::new();
        let mut slots = Vec::new();
        for (header, own) in tables {
            let written = SlotTables {
                header,
                own,
                defaults,
            };
            slots.extend(self.slot(&written, &default_keys, &mut names));
        }
        slots
    }

    /// The slot, unless a key is missing or wrong without which there is nothing to look for.
    fn slot(
        &mut self,
        written: &SlotTables<'_>,
        defaults: &Keys,
        names: &mut BTreeMap<String, Range<usize>>,
    ) -> Option<DraftSlot> {
        let mut table = Table::new(self.source, written.own, "a slot", self.problems);
        let name = table.string("name");
        let own = Keys::read(&mut table);
        let session = uuid_key(&mut table, "session");
        table.finish();
        self.check_keys(&own);
        if let Some(name) = &name {
            self.note_name(names, name);
        }
        let name = name.map(Spanned::into_inner).unwrap_or_default();
        self.draft(written, name, own.or(defaults, session))
    }

    fn note_name(&mut self, names: &mut BTreeMap<String, Range<usize>>, written: &Spanned<String>) {
        let Some(name) = self.name(written) else {
            return;
        };
        if name == DAEMONS_OWN {
            let label = "the daemon's own log has this name: give the slot another one";
            return self.fault(written.span(), "reserved name", label);
        }
        if let Some(first) = names.get(&name) {
            let label = format!("`{name}` is taken: give this slot another name");
            let problem = self
                .source
                .problem(written.span(), "duplicate slot name", label);
            let problem = problem.with_also(first.clone(), "the first one is here");
            self.problems.push(problem);
        } else {
            names.insert(name, written.span());
        }
    }

    fn draft(&mut self, written: &SlotTables<'_>, name: String, keys: Keys) -> Option<DraftSlot> {
        let kind = value(keys.kind);
        self.check_present(written, kind);
        self.check_meaning(written, kind);
        let role_span = keys.role.as_ref().map(Spanned::span);
        let role = match keys.role {
            Some(role) => self.name(&role),
            // It has no policy; its role only groups it for `@role`.
            None => (kind == Kind::Shell).then(|| "shell".into()),
        };
        let command = keys.command.map_or_else(claude, Spanned::into_inner);
        let args = value(keys.args);
        let own = command.iter().enumerate().skip(1).filter(|(at, word)| {
            // A short flag in front of `claude` is one of a wrapper, such as `sh -c`.
            !is_short_flag(word.get_ref()) || command[..*at].iter().any(is_claude)
        });
        let own = own.map(|(_, word)| word);
        self.check_reserved(kind, own.chain(&args));
        let cwd = keys.cwd?;
        let slot = SlotConfig {
            name,
            role: role?,
            kind,
            cwd: self.path(&cwd)?,
            command: plain(command),
            args: plain(args),
            env: keys.env,
            env_clear: value(keys.env_clear),
            env_pass: plain(value(keys.env_pass)),
            cols: value_or(keys.cols, 120),
            rows: value_or(keys.rows, 40),
            mode: value_or(keys.mode, "manual").into(),
            gate: value(keys.gate),
            project_settings: value(keys.project_settings),
            autostart: value_or(keys.autostart, true),
            restart: value(keys.restart),
            resume: value_or(keys.resume, true),
            prompt: keys.prompt.map(Spanned::into_inner),
            session: keys.session.map(Spanned::into_inner),
            supervision: keys.supervision.filled_in(kind),
            worktree_of: None,
            terms: None,
            removed: false,
        };
        Some(DraftSlot {
            slot,
            cwd_span: cwd.span(),
            role_span,
        })
    }

    fn check_present(&mut self, written: &SlotTables<'_>, kind: Kind) {
        self.missing(written, kind, "name", "what commands call it");
        if kind == Kind::Claude {
            self.missing(written, kind, "role", "the name of its policy file");
        } else {
            self.missing(written, kind, "command", "the program that it runs");
        }
        self.missing(written, kind, "cwd", "the directory in which it works");
    }

    /// A key that would do nothing is no setting, but a mistake. In [defaults] it is for the other slots.
    fn check_meaning(&mut self, written: &SlotTables<'_>, kind: Kind) {
        if kind == Kind::Claude {
            return;
        }
        for (key, _) in written.own {
            let name: &str = key.get_ref();
            if FOR_CLAUDE.contains(&name) {
                let title = format!("`{name}` in a shell slot");
                let label = "it is for Claude Code and would do nothing here: remove it";
                self.fault(key.span(), &title, label);
            }
        }
    }

    /// Notes a key that is not there at all; one that is there and wrong was noted when it was read.
    fn missing(&mut self, written: &SlotTables<'_>, kind: Kind, key: &str, meaning: &str) {
        if written.has(key) {
            return;
        }
        let title = match kind {
            Kind::Claude => format!("slot without a {key}"),
            Kind::Shell => format!("shell slot without a {key}"),
        };
        let example = if key == "command" {
            "[\"…\"]"
        } else {
            "\"…\""
        };
        let label = format!("add: {key} = {example}, {meaning}");
        self.fault(written.header.clone(), &title, &label);
    }

    /// Faults that don't depend on the other keys of the slot.
    fn check_keys(&mut self, keys: &Keys) {
        if let Some(command) = &keys.command {
            self.check_program(command, "claude");
        }
        let lists = [&keys.command, &keys.args, &keys.env_pass];
        self.check_words(lists.into_iter().flatten().collect());
    }

    fn check_program(&mut self, command: &Spanned<Vec<Spanned<String>>>, example: &str) {
        let program = command.get_ref().first().map(|word| word.get_ref().trim());
        if program.is_none_or(str::is_empty) {
            let label = format!("name the program, such as [\"{example}\"]");
            self.fault(command.span(), "empty command", &label);
        }
    }

    fn check_words(&mut self, lists: Vec<&Spanned<Vec<Spanned<String>>>>) {
        for word in lists.into_iter().flat_map(Spanned::get_ref) {
            if word.get_ref().contains('\0') {
                let label = "no program can be given a NUL character";
                self.fault(word.span(), "NUL character", label);
            }
        }
    }

    fn check_reserved<'w>(&mut self, kind: Kind, words: impl Iterator<Item = &'w Spanned<String>>) {
        if kind == Kind::Shell {
            return;
        }
        for word in words {
            if let Some(instead) = reserved_flag(word.get_ref()) {
                self.fault(word.span(), "flag that missiond sets itself", instead);
            }
        }
    }

    /// The names of slots, roles and daemons become file names: nothing in them needs care anywhere.
    fn name(&mut self, name: &Spanned<String>) -> Option<String> {
        if is_name(name.get_ref()) {
            return Some(name.get_ref().clone());
        }
        let label = "1 to 64 of a-z, 0-9, `_` and `-`, beginning with a letter or digit";
        self.fault(name.span(), "bad name", label);
        None
    }

    fn path_or(&mut self, path: Option<Spanned<String>>, default: &str) -> PathBuf {
        path.and_then(|path| self.path(&path))
            .unwrap_or_else(|| self.places.base.join(default))
    }

    fn path(&mut self, path: &Spanned<String>) -> Option<PathBuf> {
        match resolve(path.get_ref(), self.places) {
            Ok(path) => Some(path),
            Err(why) => {
                self.fault(path.span(), "bad path", why);
                None
            }
        }
    }

    fn fault(&mut self, span: Range<usize>, title: &str, label: &str) {
        self.problems.push(self.source.problem(span, title, label));
    }
}

fn sub_table<'a>(table: &mut Table<'a, '_>, key: &'static str) -> Option<&'a DeTable<'a>> {
    let value = table.entry(key)?;
    let entries = value.get_ref().as_table();
    if entries.is_none() {
        table.wrong_type(key, value, &format!("a table: write [{key}]"));
    }
    entries
}

/// A daemon for sessions alone needs none, where the file says that it is one: a file that is just being written is
/// empty for a moment, and must not end all slots.
fn slot_tables<'a>(
    table: &mut Table<'a, '_>,
    sessions_alone: bool,
) -> Vec<(Range<usize>, &'a DeTable<'a>)> {
    let Some(value) = table.entry("slot") else {
        if !sessions_alone {
            let label =
                "add one: [[slot]] with name, role and cwd; or [sessions], for sessions alone";
            table.fault(0..0, "no slot", label);
        }
        return Vec::new();
    };
    let Some(items) = value.get_ref().as_array() else {
        table.wrong_type("slot", value, "tables: write [[slot]], in double brackets");
        return Vec::new();
    };
    let mut tables = Vec::new();
    for item in items.iter() {
        match item.get_ref() {
            DeValue::Table(entries) => tables.push((item.span(), entries)),
            _ => table.wrong_type("slot", item, "tables: write [[slot]]"),
        }
    }
    tables
}

/// `<slot>.log` must not be the log of the daemon itself.
pub const DAEMONS_OWN: &str = "missiond";

/// `^[a-z0-9][a-z0-9_-]{0,63}$`
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 64
        && bytes.first().is_some_and(|first| plain(*first))
        && bytes.iter().all(|b| plain(*b) || matches!(b, b'_' | b'-'))
}

/// Absolute, with `~` for the home directory; relative paths begin at the file's directory.
pub(crate) fn resolve(path: &str, places: Places<'_>) -> Result<PathBuf, &'static str> {
    if path.is_empty() {
        return Err("an empty path; `.` is the directory of this file");
    }
    if path.contains('\0') {
        return Err("a path can't have a NUL in it");
    }
    let joined = match path.strip_prefix('~') {
        None => places.base.join(path),
        Some(rest) => {
            let rest = match rest.strip_prefix('/') {
                Some(rest) => rest.trim_start_matches('/'),
                None if rest.is_empty() => "",
                None => return Err("only `~` and `~/…` stand for a home directory: write it out"),
            };
            let home = places.home.ok_or("`~` needs $HOME to be set")?;
            home.join(rest)
        }
    };
    // Iterating drops `.` and doubled slashes; `..` stays, since a symlink may stand before it.
    Ok(joined.components().collect())
}

fn value<T: Default>(given: Option<Spanned<T>>) -> T {
    given.map(Spanned::into_inner).unwrap_or_default()
}

fn value_or<T>(given: Option<Spanned<T>>, default: T) -> T {
    given.map_or(default, Spanned::into_inner)
}

/// The command of a slot that names none.
fn claude() -> Vec<Spanned<String>> {
    vec![Spanned::new(0..0, "claude".into())]
}

/// Whether a word of a command names Claude Code.
fn is_claude(word: &Spanned<String>) -> bool {
    let name = Path::new(word.get_ref()).file_name();
    name.is_some_and(|name| name == "claude")
}

fn is_short_flag(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}

fn plain(words: Vec<Spanned<String>>) -> Vec<String> {
    words.into_iter().map(Spanned::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(home: Option<&Path>) -> Places<'_> {
        let base = Path::new("/etc/app");
        Places { base, home }
    }

    #[test]
    fn names_are_safe_as_file_names() {
        for good in ["a", "0", "coder-1", "a_b"] {
            assert!(is_name(good), "{good}");
        }
        let long = "a".repeat(65);
        for bad in ["", "-a", "_a", "A", "../x", "a/b", "a.b", "é", "a\0", &long] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn paths_begin_at_the_file_and_home() {
        let home = places(Some(Path::new("/home/me")));
        let resolved = |path| resolve(path, home).unwrap();
        assert_eq!(resolved("."), Path::new("/etc/app"));
        assert_eq!(resolved("a/./b/"), Path::new("/etc/app/a/b"));
        assert_eq!(resolved("../x"), Path::new("/etc/app/../x"));
        assert_eq!(resolved("~"), Path::new("/home/me"));
        assert_eq!(resolved("~//x"), Path::new("/home/me/x"));
        assert_eq!(resolved("/x"), Path::new("/x"));
        assert!(resolve("~bob/x", home).is_err());
        assert!(resolve("~/x", places(None)).is_err());
    }
}
