//! The record of a session on the disk, for a later daemon: one file for each.

use crate::core::model::ExitReport;
use crate::core::settings::limits::Limits;
use crate::core::settings::{
    Gate, Kind, Restart, SessionTerms, SessionsConfig, SlotConfig, Supervision,
};
use crate::os::files;
use crate::slot::sessions_dir;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The role of all sessions: it has no policy, and `@session` names them all.
pub const ROLE: &str = "session";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub id: String,
    pub command: Vec<String>,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    /// Whether `env` is its whole environment.
    #[serde(default)]
    pub env_clear: bool,
    pub cols: u16,
    pub rows: u16,
    pub terms: SessionTerms,
    #[serde(default)]
    pub ended: Option<Ended>,
    /// Fields of a newer missiond are kept.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// How and when a session's program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub at: DateTime<Utc>,
    pub report: ExitReport,
    /// The reason, as a sentence.
    pub why: Option<String>,
    /// missiond ended it because its time limit was reached.
    #[serde(default)]
    pub timed_out: bool,
}

impl Ended {
    /// The end of a session whose program was never started.
    pub fn never_ran(why: &str) -> Ended {
        Ended {
            at: Utc::now(),
            report: ExitReport::UNKNOWN,
            why: Some(why.to_owned()),
            timed_out: false,
        }
    }
}

impl SessionRecord {
    pub fn load(path: &Path) -> io::Result<SessionRecord> {
        let text = files::read_text(path)?;
        serde_json::from_str(&text).map_err(io::Error::other)
    }

    /// How many sessions a daemon has left running, according to the records in its state directory.
    pub fn running_in(state: &Path) -> usize {
        let files = std::fs::read_dir(sessions_dir(state));
        let files = files.into_iter().flatten().flatten();
        let records = files.filter_map(|file| SessionRecord::load(&file.path()).ok());
        records.filter(|record| record.ended.is_none()).count()
    }

    /// A record for a session whose file can't be read: it may run, and must not be lost.
    pub fn unknown(id: &str) -> SessionRecord {
        SessionRecord {
            id: id.to_owned(),
            command: vec!["unknown".to_owned()],
            cwd: PathBuf::from("/"),
            env: BTreeMap::new(),
            env_clear: false,
            cols: 120,
            rows: 40,
            terms: SessionTerms {
                owner: "user".to_owned(),
                owner_process: None,
                created_at: Utc::now(),
                ends_at: None,
                idle_close: None,
                keep: SessionsConfig::default().keep,
                buffer: SessionsConfig::default().buffer,
                max_memory: None,
                limits: Limits::default(),
                with_connection: false,
                marks: None,
                command: vec!["unknown".to_owned()],
            },
            ended: None,
            unknown: Map::new(),
        }
    }

    /// The record of a session that runs as `slot`; `None` if that is not a session.
    pub fn of(slot: &SlotConfig) -> Option<SessionRecord> {
        Some(SessionRecord {
            id: slot.name.clone(),
            command: slot.command.clone(),
            cwd: slot.cwd.clone(),
            env: slot.env.clone(),
            env_clear: slot.env_clear,
            cols: slot.cols,
            rows: slot.rows,
            terms: slot.terms.clone()?,
            ended: None,
            unknown: Map::new(),
        })
    }

    pub fn save(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        files::save(path, &text)
    }

    /// The configuration of the session as a slot.
    pub fn slot(&self) -> SlotConfig {
        SlotConfig {
            role: ROLE.to_owned(),
            kind: Kind::Shell,
            command: self.command.clone(),
            env: self.env.clone(),
            env_clear: self.env_clear,
            cols: self.cols,
            rows: self.rows,
            mode: String::new(),
            gate: Gate::Screen,
            autostart: false,
            restart: Restart::Never,
            resume: false,
            supervision: Supervision {
                stall_after: None,
                max_memory: self.terms.max_memory,
                limits: self.terms.limits,
                ..Supervision::default()
            },
            terms: Some(self.terms.clone()),
            ..SlotConfig::usual(&self.id, &self.cwd)
        }
    }
}
