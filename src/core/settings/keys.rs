//! The keys of a slot, each read once: from [[slot]] or from [defaults].

use super::table::{NamedText, Table};
use super::{Gate, Kind, Restart};
use crate::core::claude::HOOKS_OFF;
use crate::core::settings::supervision::SupervisionKeys;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use toml::Spanned;
use uuid::Uuid;

/// Narrower and Claude Code's dialogs can't be read; wider and one screen costs megabytes.
pub(super) const COLS: RangeInclusive<u16> = 20..=1000;
pub(super) const ROWS: RangeInclusive<u16> = 10..=1000;

/// Claude Code's permission modes in its newest words; older versions say `default` for manual.
pub(super) const MODES: &[(&str, &str)] = &[
    ("manual", "manual"),
    ("acceptEdits", "acceptEdits"),
    ("plan", "plan"),
    ("auto", "auto"),
    ("dontAsk", "dontAsk"),
    ("bypassPermissions", "bypassPermissions"),
    ("default", "manual"),
];
/// The words for Claude Code's permission modes.
pub fn mode_words() -> Vec<&'static str> {
    MODES.iter().map(|(word, _)| *word).collect()
}

const KINDS: &[(&str, Kind)] = &[("claude", Kind::Claude), ("shell", Kind::Shell)];
const GATES: &[(&str, Gate)] = &[("hook", Gate::Hook), ("screen", Gate::Screen)];
const RESTARTS: &[(&str, Restart)] = &[
    ("always", Restart::Always),
    ("on-failure", Restart::OnFailure),
    ("never", Restart::Never),
];

/// The keys of a slot, as far as they are given.
#[derive(Default)]
pub(super) struct Keys {
    pub role: Option<Spanned<String>>,
    pub kind: Option<Spanned<Kind>>,
    pub cwd: Option<Spanned<String>>,
    pub command: Option<Spanned<Vec<Spanned<String>>>>,
    pub args: Option<Spanned<Vec<Spanned<String>>>>,
    pub env: BTreeMap<String, String>,
    pub env_clear: Option<Spanned<bool>>,
    pub env_pass: Option<Spanned<Vec<Spanned<String>>>>,
    pub cols: Option<Spanned<u16>>,
    pub rows: Option<Spanned<u16>>,
    pub mode: Option<Spanned<&'static str>>,
    pub gate: Option<Spanned<Gate>>,
    pub project_settings: Option<Spanned<bool>>,
    pub autostart: Option<Spanned<bool>>,
    pub restart: Option<Spanned<Restart>>,
    pub resume: Option<Spanned<bool>>,
    pub prompt: Option<Spanned<String>>,
    pub session: Option<Spanned<Uuid>>,
    pub supervision: SupervisionKeys,
}

impl Keys {
    pub fn read(table: &mut Table<'_, '_>) -> Keys {
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
            supervision: SupervisionKeys::read(table),
        }
    }

    /// These keys, and the defaults where one is not given; `env` is joined name by name.
    pub fn or(self, defaults: &Keys, session: Option<Spanned<Uuid>>) -> Keys {
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
            supervision: self.supervision.or(&defaults.supervision),
        }
    }
}

fn environment(table: &mut Table<'_, '_>) -> BTreeMap<String, String> {
    let pairs = table.map("env").unwrap_or_default();
    for (name, NamedText { name_span, value }) in &pairs {
        if name.is_empty() || name.contains(['=', '\0']) {
            let label = "the name of a variable is not empty and has no `=` and no NUL in it";
            table.fault(name_span.clone(), "bad variable name", label);
        }
        if HOOKS_OFF.contains(&name.as_str()) {
            let label = "with it Claude Code runs no hooks, on which the policy rests: remove it";
            table.fault(name_span.clone(), "variable that opens the gate", label);
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

pub(super) fn uuid_key(table: &mut Table<'_, '_>, key: &'static str) -> Option<Spanned<Uuid>> {
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
