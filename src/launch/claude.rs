//! How Claude Code is started: its flags, and the settings file that makes it ask missiond.

use super::environment::SCREENS_AS_DRAWN;
use crate::core::claude::Version;
use crate::core::claude::hook::GATE_PATIENCE;
use crate::core::policy::SettingsRules;
use crate::core::settings::SlotConfig;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use uuid::Uuid;

/// The conversation that a start begins or resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStart {
    New(Uuid),
    Resume(Uuid),
}

impl SessionStart {
    pub fn id(self) -> Uuid {
        match self {
            SessionStart::New(id) | SessionStart::Resume(id) => id,
        }
    }
}

/// The first version with the name `manual`; earlier ones know only `default`.
const MANUAL_SINCE: Version = Version::new(2, 1, 200);

/// The arguments of the program. The user's own come last; none of them is one of missiond's, since
/// [`super::reserved_flag`] makes that a configuration error.
pub fn claude_args(
    slot: &SlotConfig,
    session: SessionStart,
    settings_file: &Path,
    version: Option<Version>,
) -> Vec<String> {
    let (flag, id) = match session {
        SessionStart::New(id) => ("--session-id", id),
        SessionStart::Resume(id) => ("--resume", id),
    };
    let mut args = vec![flag.to_owned(), id.to_string()];
    args.extend(["--permission-mode".into(), mode_word(&slot.mode, version)]);
    if !slot.project_settings {
        args.extend(["--setting-sources".into(), "user".into()]);
    }
    args.extend(["--settings".into(), settings_file.display().to_string()]);
    args.extend(slot.args.iter().cloned());
    args
}

/// A version's name for a permission mode.
pub fn mode_word(mode: &str, version: Option<Version>) -> String {
    let old = version.is_some_and(|version| version < MANUAL_SINCE);
    match mode {
        "manual" if old => "default".into(),
        mode => mode.into(),
    }
}

/// The gate: no dialog is up while it runs, and its refusal is final.
const GATE: &str = "PreToolUse";

/// The other hooks. Here a failing hook must not count as a refusal: it would swallow a message, or prevent the end of
/// a turn. Each has the first version that is known to accept it: an older version refuses all settings that name an
/// unknown hook.
const EVIDENCE: &[(&str, Version)] = &[
    ("SessionStart", ALWAYS),
    ("UserPromptSubmit", ALWAYS),
    ("PermissionRequest", Version::new(2, 0, 76)),
    ("PostToolUse", ALWAYS),
    ("PostToolUseFailure", Version::new(2, 1, 325)),
    ("Notification", ALWAYS),
    ("Stop", ALWAYS),
    ("StopFailure", Version::new(2, 1, 100)),
    ("SessionEnd", ALWAYS),
    ("MessageDisplay", Version::new(2, 1, 181)),
];

const ALWAYS: Version = Version::new(0, 0, 0);

/// Tells whether a version calls this hook.
pub fn calls_hook(version: Version, hook: &str) -> bool {
    let mut known = EVIDENCE.iter().filter(|(_, since)| version >= *since);
    hook == GATE || known.any(|(name, _)| *name == hook)
}
/// The first version with an auto mode to disable.
const AUTO_MODE_SINCE: Version = Version::new(2, 1, 100);

/// Twice the time after which the hook itself blocks the call: if Claude Code gave up first, only its settings would
/// decide.
const GATE_SECONDS: u64 = 2 * GATE_PATIENCE.as_secs();
const EVIDENCE_SECONDS: u64 = 10;

/// The first version whose rules accept a `*` anywhere; earlier ones know only a prefix, and refuse settings with any
/// other rule.
const WILDCARDS_SINCE: Version = Version::new(2, 1, 0);

/// The specifier of a rule on commands; `None` for any other rule.
fn command_of(rule: &str) -> Option<&str> {
    rule.strip_prefix("Bash(")?.strip_suffix(')')
}

/// A rule on commands in the syntax of an older version; `None` if that is impossible.
fn as_prefix(rule: &str) -> Option<String> {
    let Some(command) = command_of(rule) else {
        return Some(rule.to_owned());
    };
    let prefix = command
        .strip_suffix(":*")
        .or_else(|| command.strip_suffix(" *"));
    match prefix {
        Some(prefix) if !prefix.contains('*') => Some(format!("Bash({prefix}:*)")),
        None if !command.contains('*') => Some(rule.to_owned()),
        _ => None,
    }
}

/// A rule that asks about at least everything that this one restricts, for an older version that can't express it;
/// `None` if that would be every command.
fn asking_about_more(rule: &str) -> Option<String> {
    let before_star = command_of(rule)?.split('*').next()?;
    let (words, _) = before_star.rsplit_once(' ')?;
    Some(format!("Bash({words}:*)"))
}

/// The rules in the syntax of an older version. An `allow` rule that it can't express is left out. An `ask` or `deny`
/// rule is replaced by one that asks about more; if that is impossible, there are no `allow` rules on commands.
fn in_prefixes(rules: &SettingsRules) -> SettingsRules {
    let written = |rules: &[String]| -> Vec<String> {
        rules.iter().filter_map(|rule| as_prefix(rule)).collect()
    };
    let restricts = rules.ask.iter().chain(&rules.deny);
    let unwritten = restricts.filter(|rule| as_prefix(rule).is_none());
    let broader: Option<Vec<String>> = unwritten.map(|rule| asking_about_more(rule)).collect();
    let mut older = SettingsRules {
        allow: written(&rules.allow),
        ask: written(&rules.ask),
        deny: written(&rules.deny),
    };
    match broader {
        Some(broader) => older.ask.extend(broader),
        None => older
            .allow
            .retain(|rule| rule != "Bash" && command_of(rule).is_none()),
    }
    older
}

/// The rules in some settings.
pub fn rules_of(settings: &Value) -> SettingsRules {
    let list = |name: &str| -> Vec<String> {
        let rules = settings["permissions"][name].as_array();
        let texts = rules.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    SettingsRules {
        allow: list("allow"),
        ask: list("ask"),
        deny: list("deny"),
    }
}

fn hook(command: String, seconds: u64) -> Value {
    json!([{ "matcher": "*", "hooks": [{ "type": "command", "command": command, "timeout": seconds }] }])
}

/// A status line that passes its data to missiond and then to the user's own, `own`, if there is one: a setting from a
/// flag replaces the user's.
pub fn with_status_line(mut settings: Value, hook_command: &str, own: Option<Value>) -> Value {
    let figures = format!("{hook_command} --status-line");
    let shown = own.as_ref().and_then(|own| own["command"].as_str());
    let command = match shown {
        Some(shown) => format!("{figures} | {{\n{shown}\n}}"),
        None => format!("{figures} >/dev/null"),
    };
    let mut line = match own {
        Some(Value::Object(line)) => line,
        _ => serde_json::Map::new(),
    };
    line.insert("type".to_owned(), json!("command"));
    line.insert("command".to_owned(), json!(command));
    settings["statusLine"] = Value::Object(line);
    settings
}

/// The settings that a slot is started with. `hook_command` is a shell command; any failure of it at the gate, even if
/// it does not exist, counts as a refusal. An unknown version counts as the newest.
pub fn settings_json(
    hook_command: &str,
    rules: &SettingsRules,
    mode: &str,
    version: Option<Version>,
) -> Value {
    let has = |since: Version| version.is_none_or(|version| version >= since);
    let rules = match has(WILDCARDS_SINCE) {
        true => rules.clone(),
        false => in_prefixes(rules),
    };
    let gate = (
        GATE.to_owned(),
        hook(format!("{hook_command} || exit 2"), GATE_SECONDS),
    );
    let known = EVIDENCE.iter().filter(|(_, since)| has(*since));
    let evidence = known.map(|(event, _)| {
        let hook = hook(hook_command.to_owned(), EVIDENCE_SECONDS);
        ((*event).to_owned(), hook)
    });
    let hooks: serde_json::Map<String, Value> = evidence.chain([gate]).collect();
    let mut settings = json!({
        "hooks": hooks,
        // A project could switch all hooks off; with this it can't.
        "disableAllHooks": false,
        "permissions": { "allow": rules.allow, "ask": rules.ask, "deny": rules.deny },
        // The user's own settings may set other values.
        "env": SCREENS_AS_DRAWN.into_iter().collect::<BTreeMap<_, _>>(),
    });
    // A key press or a dialog's option must not switch the slot to a mode that asks nothing.
    if mode != "auto" && has(AUTO_MODE_SINCE) {
        settings["disableAutoMode"] = json!("disable");
    }
    if mode != "bypassPermissions" {
        settings["permissions"]["disableBypassPermissionsMode"] = json!("disable");
    }
    settings
}
