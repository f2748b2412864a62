//! Sessions: what holds for all of them, and on which terms one of them lives.

use super::supervision::{TIMES, limits, size, time_or_off};
use crate::core::settings::limits::Limits;
use crate::core::settings::table::Table;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::Spanned;

/// `[sessions]` in slots.toml, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionsConfig {
    /// How many sessions of one owner may run at the same time.
    pub per_owner: u16,
    /// How many sessions may run at the same time in all.
    pub total: u16,
    /// How much output of each session is kept. The oldest is dropped first.
    #[serde(serialize_with = "size")]
    #[schemars(with = "String")]
    pub buffer: u64,
    /// A shell that waits at its prompt for this long is closed.
    #[serde(serialize_with = "time_or_off")]
    #[schemars(with = "String")]
    pub idle_close: Option<Duration>,
    /// For how long the output of an ended session is kept.
    #[serde(serialize_with = "time_or_off")]
    #[schemars(with = "String")]
    pub keep: Option<Duration>,
    /// Limits that the kernel enforces on each process of a session. A request can ask for stricter ones.
    #[serde(serialize_with = "limits", skip_serializing_if = "Limits::is_empty")]
    #[schemars(schema_with = "super::schema::limits")]
    pub limits: Limits,
}

impl Default for SessionsConfig {
    fn default() -> SessionsConfig {
        SessionsConfig {
            per_owner: 10,
            total: 64,
            buffer: 10_000_000,
            idle_close: Some(Duration::from_secs(5 * 60)),
            keep: Some(Duration::from_secs(60 * 60)),
            limits: Limits::default(),
        }
    }
}

/// Each costs a terminal, a process and its buffer.
pub(super) const COUNTS: RangeInclusive<u16> = 1..=1000;
/// Less is no output to speak of; more is a matter for a file.
const BUFFERS: RangeInclusive<u64> = 4 << 10..=1 << 30;

impl SessionsConfig {
    pub(super) fn read(table: &mut Table<'_, '_>) -> SessionsConfig {
        let default = SessionsConfig::default();
        SessionsConfig {
            per_owner: plain(table.number("per_owner", COUNTS)).unwrap_or(default.per_owner),
            total: plain(table.number("total", COUNTS)).unwrap_or(default.total),
            buffer: plain(table.size("buffer", BUFFERS)).unwrap_or(default.buffer),
            idle_close: plain(table.duration_or_off("idle_close", TIMES))
                .unwrap_or(default.idle_close),
            keep: plain(table.duration_or_off("keep", TIMES)).unwrap_or(default.keep),
            limits: plain(table.limits("limits")).unwrap_or(default.limits),
        }
    }
}

fn plain<T>(value: Option<Spanned<T>>) -> Option<T> {
    value.map(Spanned::into_inner)
}

/// What a session has beyond a slot of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTerms {
    /// `user`, or `orchestrator:<agent>` with more parts behind it.
    pub owner: String,
    /// It ends when this process does.
    pub owner_process: Option<OwnerProcess>,
    pub created_at: DateTime<Utc>,
    /// Its program is ended then.
    pub ends_at: Option<DateTime<Utc>>,
    pub idle_close: Option<Duration>,
    pub keep: Option<Duration>,
    /// Bytes of output that are kept.
    pub buffer: u64,
    /// It is ended when its processes hold more bytes than this.
    #[serde(default)]
    pub max_memory: Option<u64>,
    /// What the kernel holds each of its processes to.
    #[serde(default)]
    pub limits: Limits,
    /// It ends with the connection on which it was asked for.
    #[serde(default)]
    pub with_connection: bool,
    /// How its shell says where it stands.
    pub marks: Option<ShellMarks>,
    /// The program as it was asked for, without what makes the shell say so.
    pub command: Vec<String>,
}

/// A process, by its number and its start: a number alone may be another's by tomorrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerProcess {
    pub pid: u32,
    /// In clock ticks since the machine was started.
    pub started: u64,
}

/// The shell's prompts and commands are marked, with a word that nothing inside it knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellMarks {
    pub shell: Shell,
    pub token: String,
}

/// The shells that can be made to say where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shell {
    Bash,
    Zsh,
}
