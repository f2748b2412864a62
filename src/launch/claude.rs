//! How Claude Code is started: its flags and the settings file that makes it ask missiond.

use super::environment::SCREENS_AS_DRAWN;
use crate::core::claude::Version;
use crate::core::settings::SlotConfig;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use uuid::Uuid;

/// The conversation that a start begins or goes on with.
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

/// The first version that says `manual`; the ones before know only `default`.
const MANUAL_SINCE: Version = Version::new(2, 1, 200);

/// What follows the program's name. The user's own come last; none of them is one of ours, since
/// [`super::reserved_flag`] makes that an error of the configuration.
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

/// The word that a version has for a permission mode.
pub fn mode_word(mode: &str, version: Option<Version>) -> String {
    let old = version.is_some_and(|version| version < MANUAL_SINCE);
    match mode {
        "manual" if old => "default".into(),
        mode => mode.into(),
    }
}

/// The gate: no dialog is up while it runs, and its refusal holds.
const GATE: &str = "PreToolUse";

/// What Claude Code tells missiond of besides. Here a failing hook must not count as a refusal: it would swallow
/// a message, or keep a turn from ending.
/// With the first version that is known to take each: an older one refuses settings that name a hook it does not
/// know, all of them.
const EVIDENCE: &[(&str, Version)] = &[
    ("SessionStart", ALWAYS),
    ("UserPromptSubmit", ALWAYS),
    ("PermissionRequest", Version::new(2, 0, 76)),
    ("PostToolUse", ALWAYS),
    ("Notification", ALWAYS),
    ("Stop", ALWAYS),
    ("StopFailure", Version::new(2, 1, 100)),
    ("SessionEnd", ALWAYS),
    ("MessageDisplay", Version::new(2, 1, 181)),
];

const ALWAYS: Version = Version::new(0, 0, 0);

/// Whether a version calls this hook of ours.
pub fn calls_hook(version: Version, hook: &str) -> bool {
    let mut known = EVIDENCE.iter().filter(|(_, since)| version >= *since);
    hook == GATE || known.any(|(name, _)| *name == hook)
}
/// There is an auto mode to be disabled.
const AUTO_MODE_SINCE: Version = Version::new(2, 1, 100);

/// Longer than the hook itself waits for a daemon that is away: where Claude Code gives up first, the call goes
/// on unjudged.
const GATE_SECONDS: u32 = 120;
const EVIDENCE_SECONDS: u32 = 10;

/// The first version whose rules take a `*` anywhere; the ones before know only a prefix, and refuse settings that
/// hold any other.
const WILDCARDS_SINCE: Version = Version::new(2, 1, 0);

/// A rule on commands as an older version writes it; `None` where it can't. The gate holds it all the same.
fn as_prefix(rule: &str) -> Option<String> {
    let Some(command) = rule
        .strip_prefix("Bash(")
        .and_then(|rest| rest.strip_suffix(')'))
    else {
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

fn hook(command: String, seconds: u32) -> Value {
    json!([{ "matcher": "*", "hooks": [{ "type": "command", "command": command, "timeout": seconds }] }])
}

/// A status line that hands its figures to missiond and then to the user's own, `own`, if there is one: what is
/// set by a flag takes the place of what the user has set.
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

/// The settings that a slot is started with. `hook_command` is a shell command; whatever way it fails at the
/// gate, even by not being there, counts as a refusal. A version that can't be told is taken for the newest.
pub fn settings_json(
    hook_command: &str,
    deny_rules: &[String],
    mode: &str,
    version: Option<Version>,
) -> Value {
    let has = |since: Version| version.is_none_or(|version| version >= since);
    let deny: Vec<String> = deny_rules
        .iter()
        .filter_map(|rule| {
            if has(WILDCARDS_SINCE) {
                Some(rule.clone())
            } else {
                as_prefix(rule)
            }
        })
        .collect();
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
        // A project could switch all hooks off; said here, that has no effect.
        "disableAllHooks": false,
        "permissions": { "deny": deny },
        // The user's own settings may set them otherwise.
        "env": SCREENS_AS_DRAWN.into_iter().collect::<BTreeMap<_, _>>(),
    });
    // A key press or a dialog's option must not take the slot into a mode in which nothing is asked.
    if mode != "auto" && has(AUTO_MODE_SINCE) {
        settings["disableAutoMode"] = json!("disable");
    }
    if mode != "bypassPermissions" {
        settings["permissions"]["disableBypassPermissionsMode"] = json!("disable");
    }
    settings
}
