//! The files that a test's daemon reads: slots.toml, policies, working directories.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What is to be set up. Nothing is written before [`Daemon::start`](super::daemon::Daemon::start).
#[derive(Debug, Clone, Default)]
pub struct Setup {
    pub slots: Vec<SlotSetup>,
    pub policies: Vec<(String, String)>,
    /// More tables of slots.toml.
    pub tables: String,
}

#[derive(Debug, Clone)]
pub struct SlotSetup {
    pub name: String,
    pub role: String,
    /// More lines of its table.
    pub keys: String,
    /// Whether Claude Code was already told to trust its directory.
    pub trusted: bool,
}

impl Setup {
    pub fn new() -> Setup {
        Setup::default()
    }

    /// A slot whose role has its own name, in a directory of its own.
    pub fn slot(self, name: &str) -> Setup {
        self.slot_with(name, "")
    }

    pub fn slot_with(mut self, name: &str, keys: &str) -> Setup {
        self.slots.push(SlotSetup {
            name: name.to_owned(),
            role: name.to_owned(),
            keys: keys.to_owned(),
            trusted: true,
        });
        self
    }

    /// One of several slots of a role.
    pub fn slot_of(mut self, role: &str, name: &str) -> Setup {
        self = self.slot(name);
        if let Some(slot) = self.slots.last_mut() {
            slot.role = role.to_owned();
        }
        self
    }

    /// A slot whose directory Claude Code asks about.
    pub fn untrusted(mut self, name: &str, keys: &str) -> Setup {
        self = self.slot_with(name, keys);
        if let Some(slot) = self.slots.last_mut() {
            slot.trusted = false;
        }
        self
    }

    /// Another table of slots.toml.
    pub fn table(mut self, text: &str) -> Setup {
        self.tables = format!("{}\n{text}\n", self.tables);
        self
    }

    /// The policy of a role; roles without one get an empty file, which asks about everything.
    pub fn policy(mut self, role: &str, text: &str) -> Setup {
        self.policies.push((role.to_owned(), text.to_owned()));
        self
    }

    /// The files of policies/, by role.
    pub fn policy_files(&self) -> Vec<(String, String)> {
        let mut files = self.policies.clone();
        for slot in &self.slots {
            if !files.iter().any(|(role, _)| *role == slot.role) {
                files.push((slot.role.clone(), String::new()));
            }
        }
        files
    }

    /// The text of slots.toml.
    pub fn slots_toml(
        &self,
        root: &Path,
        command: &[String],
        environment: &[(String, String)],
    ) -> String {
        let environment: toml::Table = environment
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect();
        let command = toml::Value::from(command.to_vec());
        let environment = toml::Value::Table(environment);
        let mut text = format!(
            "[daemon]\nlogs = \"logs\"\npolicies = \"policies\"\n\n\
             [defaults]\ncommand = {command}\nenv = {environment}\n{}",
            self.tables
        );
        for slot in &self.slots {
            let cwd = toml::Value::from(cwd(root, &slot.name).to_string_lossy().into_owned());
            let SlotSetup {
                name, role, keys, ..
            } = slot;
            write!(
                text,
                "\n[[slot]]\nname = \"{name}\"\nrole = \"{role}\"\ncwd = {cwd}\n{keys}\n"
            )
            .expect("a String takes everything");
        }
        text
    }
}

/// The working directory of a slot.
pub fn cwd(root: &Path, slot: &str) -> PathBuf {
    root.join("work").join(slot)
}
