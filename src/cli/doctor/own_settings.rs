//! What the user's own settings of Claude Code allow by themselves, and whether that counts in a slot.

use super::Finding;
use crate::config::Config;
use crate::core::policy::{Asking, Fallback};
use crate::core::settings::{DaemonConfig, Kind, SlotConfig};
use crate::launch::{environment, process_environment};
use crate::os::paths::Env;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Settings that an administrator puts on a machine; nobody else can change them.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// As many rules as a person reads.
const SHOWN: usize = 20;

/// The name of the check.
const CHECK: &str = "settings";

/// A line for the slots that fare alike.
pub fn findings(config: &Config, env: &Env) -> Vec<Finding> {
    let mut lines: Vec<(Vec<&str>, Result<String, String>)> = Vec::new();
    for slot in config.slots.iter().filter(|slot| slot.kind == Kind::Claude) {
        let Some(policy) = config.policies.get(&slot.role) else {
            continue;
        };
        let files = files_of(slot, env, &config.daemon);
        let said = said_of(slot, policy.policy.default, &files);
        match lines.iter_mut().find(|(_, other)| *other == said) {
            Some((slots, _)) => slots.push(&slot.name),
            None => lines.push((vec![&slot.name], said)),
        }
    }
    let finding = |(slots, said): (Vec<&str>, Result<String, String>)| {
        let slots = slots.join(", ");
        match said {
            Ok(text) => Finding::ok(CHECK, format!("{slots}: {text}")),
            Err(text) => Finding::warn(CHECK, format!("{slots}: {text}"))
                .fix("correct the file, or remove it: Claude Code can't read it either"),
        }
    };
    lines.into_iter().map(finding).collect()
}

/// The settings that Claude Code reads in a slot beside those that missiond gives it.
fn files_of(slot: &SlotConfig, env: &Env, daemon: &DaemonConfig) -> Vec<PathBuf> {
    let socket = daemon.socket_in(env).unwrap_or_default();
    let variables = environment(slot, &socket, process_environment());
    let value = |name: &str| {
        let mut found = variables.iter().filter(|(known, _)| known == name);
        found.next_back().map(|(_, value)| PathBuf::from(value))
    };
    let own = value("CLAUDE_CONFIG_DIR").or_else(|| Some(value("HOME")?.join(".claude")));
    let mut files = vec![PathBuf::from(MANAGED)];
    files.extend(own.map(|own| own.join("settings.json")));
    if slot.project_settings {
        let project = slot.cwd.join(".claude");
        files.extend(["settings.json", "settings.local.json"].map(|name| project.join(name)));
    }
    files
}

fn said_of(slot: &SlotConfig, default: Fallback, files: &[PathBuf]) -> Result<String, String> {
    let mut allowed = Vec::new();
    for file in files {
        let rules = allowed_by(file)?;
        if !rules.is_empty() {
            allowed.push(format!("{} allows {}", file.display(), listed(&rules)));
        }
    }
    if allowed.is_empty() {
        return Ok("Claude Code's own settings allow nothing by themselves".to_owned());
    }
    let allowed = allowed.join("; ");
    let asks = match default {
        _ if Asking::in_mode(&slot.mode) == Asking::NotEvenIfTold => {
            "in bypassPermissions the gate denies what no rule allows"
        }
        Fallback::Claude if slot.mode != "manual" => "outside manual mode the gate asks anyway",
        Fallback::Claude if slot.project_settings => {
            "with project_settings the gate asks anyway, except about what only reads the project"
        }
        Fallback::Claude => {
            return Ok(format!(
                "{allowed}; that runs unasked where no rule of the policy speaks (default = \"claude\")"
            ));
        }
        Fallback::Ask => "the gate asks anyway (default = \"ask\")",
        Fallback::Deny => "the gate denies anyway (default = \"deny\")",
    };
    Ok(format!("{allowed}; {asks}"))
}

fn listed(rules: &[String]) -> String {
    let mut text = rules[..rules.len().min(SHOWN)].join(", ");
    if rules.len() > SHOWN {
        text += &format!(" and {} more", rules.len() - SHOWN);
    }
    text
}

/// The rules under `permissions.allow`; none where there is no such file.
fn allowed_by(file: &Path) -> Result<Vec<String>, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
    };
    let settings: Value = serde_json::from_str(&text)
        .map_err(|error| format!("{} is no JSON: {error}", file.display()))?;
    let rules = settings["permissions"]["allow"].as_array();
    let rules = rules.into_iter().flatten().filter_map(Value::as_str);
    Ok(rules.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(default: Fallback, keys: impl Fn(&mut SlotConfig), settings: &str) -> String {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("settings.json");
        std::fs::write(&file, settings).expect("a file");
        let mut slot = SlotConfig::usual("a", "/w");
        keys(&mut slot);
        let files = [home.path().join("none.json"), file.clone()];
        let (Ok(said) | Err(said)) = said_of(&slot, default, &files);
        said.replace(&file.display().to_string(), "FILE")
    }

    #[test]
    fn what_the_users_settings_allow_is_listed_and_whether_it_counts() {
        let settings = r#"{"permissions": {"allow": ["Bash(make *)", "WebFetch"]}}"#;
        let as_is = |_: &mut SlotConfig| {};
        let allows = "FILE allows Bash(make *), WebFetch; ";
        for (default, end) in [
            (
                Fallback::Claude,
                "that runs unasked where no rule of the policy speaks (default = \"claude\")",
            ),
            (Fallback::Ask, "the gate asks anyway (default = \"ask\")"),
            (
                Fallback::Deny,
                "the gate denies anyway (default = \"deny\")",
            ),
        ] {
            assert_eq!(said(default, as_is, settings), format!("{allows}{end}"));
        }
        let auto = |slot: &mut SlotConfig| slot.mode = "auto".to_owned();
        let end = "outside manual mode the gate asks anyway";
        assert_eq!(
            said(Fallback::Claude, auto, settings),
            format!("{allows}{end}")
        );
        let bypass = |slot: &mut SlotConfig| slot.mode = "bypassPermissions".to_owned();
        let end = "in bypassPermissions the gate denies what no rule allows";
        for default in [Fallback::Claude, Fallback::Ask, Fallback::Deny] {
            assert_eq!(said(default, bypass, settings), format!("{allows}{end}"));
        }
        let weak = |slot: &mut SlotConfig| slot.project_settings = true;
        let shown = said(Fallback::Claude, weak, settings);
        assert!(
            shown.contains("with project_settings the gate asks anyway"),
            "{shown}"
        );
        let nothing = "Claude Code's own settings allow nothing by themselves";
        assert_eq!(said(Fallback::Claude, as_is, "{}"), nothing);
        assert!(said(Fallback::Claude, as_is, "{").starts_with("FILE is no JSON"));
    }
}
