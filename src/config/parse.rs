//! The text of slots.toml to a draft: everything that can be said without looking at the disk. Pure.

use super::table::{Named, Table};
use super::{DaemonConfig, Gate, Kind, Restart, SlotConfig};
use crate::diagnostic::{Problem, Source};
use crate::launch::reserved_flag;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use uuid::Uuid;

/// Narrower and Claude Code's dialogs can't be read; wider and one screen costs megabytes.
const COLS: RangeInclusive<u16> = 20..=1000;
const ROWS: RangeInclusive<u16> = 10..=1000;

/// Claude Code's permission modes in its newest words; older versions say `default` for manual.
const MODES: &[(&str, &str)] = &[
    ("manual", "manual"),
    ("acceptEdits", "acceptEdits"),
    ("plan", "plan"),
    ("auto", "auto"),
    ("dontAsk", "dontAsk"),
    ("bypassPermissions", "bypassPermissions"),
    ("default", "manual"),
];
const KINDS: &[(&str, Kind)] = &[("claude", Kind::Claude), ("shell", Kind::Shell)];
const GATES: &[(&str, Gate)] = &[("hook", Gate::Hook), ("screen", Gate::Screen)];
const RESTARTS: &[(&str, Restart)] = &[
    ("always", Restart::Always),
    ("on-failure", Restart::OnFailure),
    ("never", Restart::Never),
];

/// A configuration whose directories and policies are yet to be looked for.
pub(super) struct Draft {
    pub daemon: DaemonConfig,
    /// `policies` as it was written, for messages.
    pub policies_as_written: String,
    pub slots: Vec<DraftSlot>,
}

pub(super) struct DraftSlot {
    pub slot: SlotConfig,
    pub cwd_span: Range<usize>,
    /// Where the role stands; a shell slot may have none.
    pub role_span: Option<Range<usize>>,
}

/// What relative paths and `~` stand for.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    /// The directory of the file, absolute.
    pub base: &'a Path,
    pub home: Option<&'a Path>,
}

/// A draft of what could be understood with every fault in it; it is of use only without. Where the file
/// is no TOML, the places alone: what seems to be missing then is mostly an echo.
pub(super) fn parse(
    source: &Source,
    places: Places<'_>,
) -> Result<(Draft, Vec<Problem>), Vec<Problem>> {
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

fn syntax_error(source: &Source, error: &toml::de::Error) -> Problem {
    let at = error.span().unwrap_or_default();
    source.problem(at, "syntax error", error.message())
}

struct Parser<'a> {
    source: &'a Source,
    places: Places<'a>,
    problems: &'a mut Vec<Problem>,
}

/// The keys of a slot, as far as they are given.
#[derive(Default)]
struct Keys {
    role: Option<Spanned<String>>,
    kind: Option<Spanned<Kind>>,
    cwd: Option<Spanned<String>>,
    command: Option<Spanned<Vec<Spanned<String>>>>,
    args: Option<Spanned<Vec<Spanned<String>>>>,
    env: BTreeMap<String, String>,
    env_clear: Option<Spanned<bool>>,
    env_pass: Option<Spanned<Vec<Spanned<String>>>>,
    cols: Option<Spanned<u16>>,
    rows: Option<Spanned<u16>>,
    mode: Option<Spanned<&'static str>>,
    gate: Option<Spanned<Gate>>,
    project_settings: Option<Spanned<bool>>,
    autostart: Option<Spanned<bool>>,
    restart: Option<Spanned<Restart>>,
    resume: Option<Spanned<bool>>,
    prompt: Option<Spanned<String>>,
    session: Option<Spanned<Uuid>>,
}

impl Parser<'_> {
    fn file(mut self, root: &DeTable<'_>) -> Draft {
        let mut table = Table::new(self.source, root, "slots.toml", self.problems);
        let daemon = sub_table(&mut table, "daemon");
        let defaults = sub_table(&mut table, "defaults");
        let slots = slot_tables(&mut table);
        table.finish();
        let (daemon, policies_as_written) = self.daemon(daemon);
        let defaults = self.defaults(defaults);
        Draft {
            daemon,
            policies_as_written,
            slots: self.slots(&defaults, slots),
        }
    }

    fn daemon(&mut self, entries: Option<&DeTable<'_>>) -> (DaemonConfig, String) {
        let empty = DeTable::new();
        let entries = entries.unwrap_or(&empty);
        let mut table = Table::new(self.source, entries, "[daemon]", self.problems);
        let name = table.string("name");
        let logs = table.string("logs");
        let policies = table.string("policies");
        let socket = table.string("socket");
        table.finish();
        let name = name.and_then(|name| self.name(name)).map(|(name, _)| name);
        let written = policies.as_ref().map(|path| path.get_ref().clone());
        let config = DaemonConfig {
            name: name.unwrap_or_else(|| "missiond".into()),
            logs: self.path_or(logs, "logs"),
            policies: self.path_or(policies, "policies"),
            socket: socket.and_then(|path| self.path(&path)),
        };
        (config, written.unwrap_or_else(|| "policies".into()))
    }

    fn defaults(&mut self, entries: Option<&DeTable<'_>>) -> Keys {
        let Some(entries) = entries else {
            return Keys::default();
        };
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
        defaults: &Keys,
        tables: Vec<(Range<usize>, &DeTable<'_>)>,
    ) -> Vec<DraftSlot> {
        if tables.is_empty() {
            let fix = "add one: [[slot]] with name, role and cwd";
            self.fault(0..0, "no slot", fix);
        }
        let mut names: BTreeMap<String, Range<usize>> = BTreeMap::new();
        let mut slots = Vec::new();
        for (header, entries) in tables {
            let (name, draft) = self.slot(&header, entries, defaults);
            if let Some((name, span)) = name {
                self.note_name(&mut names, name, span);
            }
            slots.extend(draft);
        }
        slots
    }

    fn note_name(
        &mut self,
        names: &mut BTreeMap<String, Range<usize>>,
        name: String,
        span: Range<usize>,
    ) {
        if let Some(first) = names.get(&name) {
            let label = format!("`{name}` is taken: give this slot another name");
            let problem = self.source.problem(span, "duplicate slot name", label);
            let problem = problem.with_also(first.clone(), "the first one is here");
            self.problems.push(problem);
        } else {
            names.insert(name, span);
        }
    }

    /// The slot's name, even where the rest is wrong, and the slot if nothing is missing.
    fn slot(
        &mut self,
        header: &Range<usize>,
        entries: &DeTable<'_>,
        defaults: &Keys,
    ) -> (Option<(String, Range<usize>)>, Option<DraftSlot>) {
        let mut table = Table::new(self.source, entries, "a slot", self.problems);
        let name = table.string("name");
        let own = Keys::read(&mut table);
        let session = uuid_key(&mut table, "session");
        table.finish();
        self.check_keys(&own);
        let named = entries.contains_key("name");
        if !named {
            self.fault(header.clone(), "slot without a name", "add: name = \"…\"");
        }
        let name = name.and_then(|name| self.name(name));
        let keys = own.or(defaults, session);
        let draft = name
            .clone()
            .and_then(|(name, _)| self.draft(header, name, keys));
        (name, draft)
    }

    fn draft(&mut self, header: &Range<usize>, name: String, keys: Keys) -> Option<DraftSlot> {
        let kind = value(keys.kind);
        let role_span = keys.role.as_ref().map(Spanned::span);
        let role = self.role(header, kind, keys.role);
        let command = self.command(header, kind, keys.command);
        let Some(cwd) = keys.cwd else {
            let label = "add: cwd = \"…\", the directory in which it works";
            self.fault(header.clone(), "slot without a cwd", label);
            return None;
        };
        let args = strings(keys.args);
        self.check_reserved(kind, command.iter().skip(1).chain(&args));
        let slot = SlotConfig {
            name,
            role: role?,
            kind,
            cwd: self.path(&cwd)?,
            command: plain(command),
            args: plain(args),
            env: keys.env,
            env_clear: value(keys.env_clear),
            env_pass: plain(strings(keys.env_pass)),
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
        };
        Some(DraftSlot {
            slot,
            cwd_span: cwd.span(),
            role_span,
        })
    }

    fn role(
        &mut self,
        header: &Range<usize>,
        kind: Kind,
        role: Option<Spanned<String>>,
    ) -> Option<String> {
        match role {
            Some(role) => self.name(role).map(|(role, _)| role),
            // It has no policy, so its role only groups it for `@role`.
            None if kind == Kind::Shell => Some("shell".into()),
            None => {
                let label = "add: role = \"…\", the name of its policy file";
                self.fault(header.clone(), "slot without a role", label);
                None
            }
        }
    }

    fn command(
        &mut self,
        header: &Range<usize>,
        kind: Kind,
        command: Option<Spanned<Vec<Spanned<String>>>>,
    ) -> Vec<Spanned<String>> {
        match command {
            Some(command) => command.into_inner(),
            None if kind == Kind::Claude => vec![Spanned::new(header.clone(), "claude".into())],
            None => {
                let label = "add: command = [\"…\"], the program that a shell slot runs";
                self.fault(header.clone(), "slot without a command", label);
                Vec::new()
            }
        }
    }

    /// Faults that don't depend on the other keys of the slot.
    fn check_keys(&mut self, keys: &Keys) {
        if let Some(command) = &keys.command {
            let program = command.get_ref().first().map(|word| word.get_ref().trim());
            if program.is_none_or(str::is_empty) {
                let label = "name the program, such as [\"claude\"]";
                self.fault(command.span(), "empty command", label);
            }
        }
        let lists = [&keys.command, &keys.args, &keys.env_pass];
        for word in lists.into_iter().flatten().flat_map(Spanned::get_ref) {
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
    fn name(&mut self, name: Spanned<String>) -> Option<(String, Range<usize>)> {
        if is_name(name.get_ref()) {
            return Some((name.get_ref().clone(), name.span()));
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

impl Keys {
    fn read(table: &mut Table<'_, '_>) -> Keys {
        Keys {
            role: table.string("role"),
            kind: table.word("kind", KINDS),
            cwd: table.string("cwd"),
            command: table.strings("command"),
            args: table.strings("args"),
            env: environment(table),
            env_clear: table.flag("env_clear"),
            env_pass: table.strings("env_pass"),
            cols: table.number("cols", COLS),
            rows: table.number("rows", ROWS),
            mode: table.word("mode", MODES),
            gate: table.word("gate", GATES),
            project_settings: table.flag("project_settings"),
            autostart: table.flag("autostart"),
            restart: table.word("restart", RESTARTS),
            resume: table.flag("resume"),
            prompt: table.string("prompt"),
            session: None,
        }
    }

    /// These keys, and the defaults where one is not given; `env` is joined name by name.
    fn or(self, defaults: &Keys, session: Option<Spanned<Uuid>>) -> Keys {
        let mut env = defaults.env.clone();
        env.extend(self.env);
        Keys {
            role: self.role.or_else(|| defaults.role.clone()),
            kind: self.kind.or_else(|| defaults.kind.clone()),
            cwd: self.cwd.or_else(|| defaults.cwd.clone()),
            command: self.command.or_else(|| defaults.command.clone()),
            args: self.args.or_else(|| defaults.args.clone()),
            env,
            env_clear: self.env_clear.or_else(|| defaults.env_clear.clone()),
            env_pass: self.env_pass.or_else(|| defaults.env_pass.clone()),
            cols: self.cols.or_else(|| defaults.cols.clone()),
            rows: self.rows.or_else(|| defaults.rows.clone()),
            mode: self.mode.or_else(|| defaults.mode.clone()),
            gate: self.gate.or_else(|| defaults.gate.clone()),
            project_settings: self
                .project_settings
                .or_else(|| defaults.project_settings.clone()),
            autostart: self.autostart.or_else(|| defaults.autostart.clone()),
            restart: self.restart.or_else(|| defaults.restart.clone()),
            resume: self.resume.or_else(|| defaults.resume.clone()),
            prompt: self.prompt.or_else(|| defaults.prompt.clone()),
            session,
        }
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

fn slot_tables<'a>(table: &mut Table<'a, '_>) -> Vec<(Range<usize>, &'a DeTable<'a>)> {
    let Some(value) = table.entry("slot") else {
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

fn environment(table: &mut Table<'_, '_>) -> BTreeMap<String, String> {
    let pairs = table.map("env").unwrap_or_default();
    for (name, Named { name_span, value }) in &pairs {
        if name.is_empty() || name.contains(['=', '\0']) {
            let label = "the name of a variable is not empty and has no `=` and no NUL in it";
            table.fault(name_span.clone(), "bad variable name", label);
        }
        if value.contains('\0') {
            let label = "the value of this variable has a NUL in it";
            table.fault(name_span.clone(), "NUL character", label);
        }
    }
    pairs
        .into_iter()
        .map(|(name, named)| (name, named.value))
        .collect()
}

fn uuid_key(table: &mut Table<'_, '_>, key: &'static str) -> Option<Spanned<Uuid>> {
    let text = table.string(key)?;
    match Uuid::try_parse(text.get_ref()) {
        Ok(uuid) => Some(Spanned::new(text.span(), uuid)),
        Err(_) => {
            let label = "a conversation's id looks like 123e4567-e89b-42d3-a456-426614174000";
            table.fault(text.span(), "bad session id", label);
            None
        }
    }
}

/// `^[a-z0-9][a-z0-9_-]{0,63}$`
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 64
        && bytes.first().is_some_and(|first| plain(*first))
        && bytes.iter().all(|b| plain(*b) || matches!(b, b'_' | b'-'))
}

/// Absolute, with `~` for the home directory; relative paths begin at the file's directory.
fn resolve(path: &str, places: Places<'_>) -> Result<PathBuf, &'static str> {
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

fn strings(given: Option<Spanned<Vec<Spanned<String>>>>) -> Vec<Spanned<String>> {
    value(given)
}

fn plain(words: Vec<Spanned<String>>) -> Vec<String> {
    words.into_iter().map(Spanned::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: Places<'static> = Places {
        base: Path::new("/etc/app"),
        home: None,
    };

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
        let home = Places {
            home: Some(Path::new("/home/me")),
            ..PLACES
        };
        let resolved = |path| resolve(path, home).unwrap();
        assert_eq!(resolved("."), Path::new("/etc/app"));
        assert_eq!(resolved("a/./b/"), Path::new("/etc/app/a/b"));
        assert_eq!(resolved("../x"), Path::new("/etc/app/../x"));
        assert_eq!(resolved("~"), Path::new("/home/me"));
        assert_eq!(resolved("~//x"), Path::new("/home/me/x"));
        assert_eq!(resolved("/x"), Path::new("/x"));
        assert!(resolve("~bob/x", home).is_err());
        assert!(resolve("~/x", PLACES).is_err());
    }
}
