//! A slot for tests, as it comes out of a file that says little.

use super::{Gate, Kind, Restart, SlotConfig, Supervision};
use std::collections::BTreeMap;

impl SlotConfig {
    pub fn sample(name: &str, cwd: &str) -> SlotConfig {
        SlotConfig {
            name: name.into(),
            role: name.into(),
            kind: Kind::Claude,
            cwd: cwd.into(),
            command: vec!["claude".into()],
            args: Vec::new(),
            env: BTreeMap::new(),
            env_clear: false,
            env_pass: Vec::new(),
            cols: 120,
            rows: 40,
            mode: "manual".into(),
            gate: Gate::Hook,
            project_settings: false,
            autostart: true,
            restart: Restart::OnFailure,
            resume: true,
            prompt: None,
            session: None,
            supervision: Supervision::default(),
            worktree_of: None,
            terms: None,
            removed: false,
        }
    }
}
