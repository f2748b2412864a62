//! A slot that is in the config no more, while its program runs: it is shown, can be stopped and attached to, and nothing
//! is answered for it by rule.

use super::rules::SlotRules;
use super::witness::process_start;
use crate::core::policy::{Ask, Decision, PermissionPolicy, RuleRef, Verdict};
use crate::core::settings::{Gate, Kind, Restart, SlotConfig, Supervision};
use crate::os::files;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Shown as the role of a slot of which nothing is known but that its program runs.
const UNKNOWN_ROLE: &str = "unknown";

/// Where Claude Code keeps its files; no other variable is needed to watch a program that runs.
const VARIABLES: [&str; 2] = ["HOME", "CLAUDE_CONFIG_DIR"];

/// The settings that a slot's program was started with, as far as they are needed to go on watching it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// The program that was started so; an older missiond did not write it down.
    #[serde(default)]
    pid: Option<u32>,
    /// When it was started.
    #[serde(default)]
    at: Option<DateTime<Utc>>,
    role: String,
    kind: Kind,
    cwd: PathBuf,
    command: Vec<String>,
    #[serde(default)]
    args: Vec<String>,
    cols: u16,
    rows: u16,
    mode: String,
    gate: Gate,
    project_settings: bool,
    #[serde(default)]
    worktree_of: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

impl Launched {
    /// Program `pid` was started with these settings.
    pub fn new(pid: u32, at: Option<DateTime<Utc>>, slot: &SlotConfig) -> Launched {
        let env = slot.env.iter();
        let env = env.filter(|(name, _)| VARIABLES.contains(&name.as_str()));
        Launched {
            pid: Some(pid),
            at,
            role: slot.role.clone(),
            kind: slot.kind,
            cwd: slot.cwd.clone(),
            command: slot.command.clone(),
            args: slot.args.clone(),
            cols: slot.cols,
            rows: slot.rows,
            mode: slot.mode.clone(),
            gate: slot.gate,
            project_settings: slot.project_settings,
            worktree_of: slot.worktree_of.clone(),
            env: env
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    /// What the memory of a slot says of it; nothing where that is gone or can't be read.
    pub fn load(memory: &Path) -> Option<Launched> {
        let text = files::read(memory).ok()?;
        let memory: serde_json::Value = serde_json::from_slice(&text).ok()?;
        serde_json::from_value(memory.get("launched")?.clone()).ok()
    }

    /// Whether this is the record of program `pid`, and not of an earlier one.
    pub fn is_of(&self, pid: u32) -> bool {
        self.pid == Some(pid)
    }

    /// The kind of the program, if it still runs by its number.
    pub fn kind_if_alive(&self) -> Option<Kind> {
        self.pid.and_then(process_start).map(|_| self.kind)
    }

    /// When the program was started.
    pub fn at(&self) -> Option<DateTime<Utc>> {
        self.at
    }

    /// The settings of the program that runs: what it was started with, and for the rest those of its slot.
    pub fn over(&self, slot: &SlotConfig) -> SlotConfig {
        let mut env = slot.env.clone();
        env.retain(|name, _| !VARIABLES.contains(&name.as_str()));
        env.extend(self.env.clone());
        SlotConfig {
            kind: self.kind,
            cwd: self.cwd.clone(),
            command: self.command.clone(),
            args: self.args.clone(),
            env,
            cols: self.cols,
            rows: self.rows,
            mode: self.mode.clone(),
            gate: self.gate,
            project_settings: self.project_settings,
            worktree_of: self.worktree_of.clone(),
            role: self.role.clone(),
            ..slot.clone()
        }
    }

    /// For a program of which nothing was kept. It is taken for Claude Code: its dialogs are shown to a person.
    fn unknown() -> Launched {
        Launched {
            pid: None,
            at: None,
            role: UNKNOWN_ROLE.to_owned(),
            kind: Kind::Claude,
            cwd: PathBuf::from("/"),
            command: vec![UNKNOWN_ROLE.to_owned()],
            args: Vec::new(),
            cols: 120,
            rows: 40,
            mode: "manual".to_owned(),
            gate: Gate::Hook,
            project_settings: false,
            worktree_of: None,
            env: BTreeMap::new(),
        }
    }

    /// The slot whose program this was; `None` where nothing is known of it.
    pub fn removed_slot(launched: Option<Launched>, name: &str) -> SlotConfig {
        let launched = launched.unwrap_or_else(Launched::unknown);
        removed(SlotConfig {
            role: launched.role,
            kind: launched.kind,
            command: launched.command,
            args: launched.args,
            env: launched.env,
            cols: launched.cols,
            rows: launched.rows,
            mode: launched.mode,
            gate: launched.gate,
            project_settings: launched.project_settings,
            worktree_of: launched.worktree_of,
            ..SlotConfig::usual(name, launched.cwd)
        })
    }
}

/// The settings of a slot that has left the config: its program is not started again, by nobody.
pub fn removed(slot: SlotConfig) -> SlotConfig {
    SlotConfig {
        autostart: false,
        restart: Restart::Never,
        supervision: Supervision {
            stall_after: None,
            ..slot.supervision
        },
        removed: true,
        ..slot
    }
}

/// Asks a person about everything: the config does not say which policy is meant for the program.
#[derive(Debug)]
pub struct AskEverything {
    config: PathBuf,
    /// Stands for the rule.
    rule: String,
    why: String,
}

impl AskEverything {
    /// For a slot that the config does not name.
    pub fn new(config: &Path) -> AskEverything {
        AskEverything {
            config: config.to_owned(),
            rule: "(the slot was removed)".to_owned(),
            why:
                "the slot was removed from the config, so no policy holds for it: a person is asked"
                    .to_owned(),
        }
    }

    /// For a program that runs in another role than its slot has by now.
    pub fn of_role(config: &Path, role: &str) -> AskEverything {
        AskEverything {
            config: config.to_owned(),
            rule: "(the role has changed)".to_owned(),
            why: format!(
                "its program was started in role {role}, whose policy is not known any more: a person is asked until it is restarted"
            ),
        }
    }
}

impl PermissionPolicy for AskEverything {
    fn decide(&self, _ask: &Ask) -> Verdict {
        Verdict {
            decision: Decision::Ask,
            // A verdict without a rule would leave the call to Claude Code's own settings.
            rule: Some(RuleRef {
                text: self.rule.clone(),
                file: self.config.clone(),
                line: 1,
            }),
            why: self.why.clone(),
        }
    }
}

impl SlotRules for AskEverything {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::machine::KnownRules;

    #[test]
    fn what_is_kept_of_a_slot_makes_a_slot_that_is_never_started() {
        let mut slot = SlotConfig::usual("coder", "/src");
        slot.env.insert("SECRET".into(), "x".into());
        slot.env.insert("HOME".into(), "/home/a".into());
        slot.restart = Restart::Always;
        let kept = serde_json::to_string(&Launched::new(7, None, &slot)).unwrap();
        assert!(!kept.contains("SECRET"), "{kept}");
        let launched: Launched = serde_json::from_str(&kept).unwrap();
        let found = Launched::removed_slot(Some(launched), "coder");
        assert!(found.removed && !found.autostart);
        assert_eq!(found.restart, Restart::Never);
        assert_eq!((&found.role, &found.cwd), (&slot.role, &slot.cwd));
        assert_eq!(found.env["HOME"], "/home/a");
        let unknown = Launched::removed_slot(None, "coder");
        assert!(unknown.removed && unknown.kind == Kind::Claude);
    }

    /// Of each setting that a program keeps: changed, it waits for the next start; as it was, nothing waits.
    #[test]
    fn a_program_that_runs_keeps_what_it_was_started_with() {
        let mut slot = SlotConfig::usual("coder", "/src");
        slot.env.insert("HOME".into(), "/home/a".into());
        let launched = Launched::new(7, None, &slot);
        assert!(launched.is_of(7) && !launched.is_of(8));
        assert_eq!(launched.over(&slot), slot);
        let changes: [fn(&mut SlotConfig); 10] = [
            |slot| slot.cwd = "/other".into(),
            |slot| slot.role = "other".into(),
            |slot| slot.mode = "bypassPermissions".into(),
            |slot| slot.gate = Gate::Screen,
            |slot| slot.project_settings = true,
            |slot| slot.cols += 1,
            |slot| slot.command.push("--more".into()),
            |slot| slot.args.push("--model".into()),
            |slot| drop(slot.env.remove("HOME")),
            |slot| drop(slot.env.insert("CLAUDE_CONFIG_DIR".into(), "/b".into())),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut changed = slot.clone();
            change(&mut changed);
            assert_eq!(launched.over(&changed), slot, "change {index}");
        }
    }

    #[test]
    fn nothing_is_decided_without_a_person() {
        let file = Path::new("/slots.toml");
        let judges = [
            AskEverything::new(file),
            AskEverything::of_role(file, "coder"),
        ];
        for (judge, (tool, input)) in judges.iter().zip([
            ("Read", serde_json::json!({"file_path": "/src/a"})),
            ("Bash", serde_json::json!({"command": "ls"})),
        ]) {
            let ask = Ask::whole(tool, input, "/src");
            let verdict = judge.decide(&ask);
            assert_eq!(verdict.decision, Decision::Ask);
            assert!(verdict.rule.is_some());
            assert!(!judge.only_reads_the_project(&ask));
            assert_eq!(judge.known(), KnownRules::default());
        }
    }
}
