//! How a slot is looked after: when it is started again, what counts as a stall, what it may use.

use super::table::{Table, in_units};
use crate::core::claude::Version;
use crate::core::settings::Kind;
use crate::core::settings::limits::Limits;
use crate::core::text::dollars::Dollars;
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Makes [`Supervision`] and its keys from one row for each key: what it means, its type, its default, how it is read.
macro_rules! keys {
    ($($(#[$about:meta])* $key:ident: $type:ty = $usual:expr, $read:ident($($range:expr)?);)+) => {
        /// The settings, defaults filled in. Times and sizes are written out as a person writes them.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
        pub struct Supervision {
            $($(#[$about])* pub $key: $type,)+
        }

        impl Default for Supervision {
            fn default() -> Supervision {
                Supervision { $($key: $usual,)+ }
            }
        }

        /// The keys as far as they are given.
        #[derive(Default, Clone)]
        pub(super) struct SupervisionKeys {
            $($key: Option<$type>,)+
        }

        impl SupervisionKeys {
            pub fn read(table: &mut Table<'_, '_>) -> SupervisionKeys {
                SupervisionKeys {
                    $($key: table.$read(stringify!($key) $(, $range)?).map(|given| given.into_inner().into()),)+
                }
            }

            pub fn or(self, defaults: &SupervisionKeys) -> SupervisionKeys {
                SupervisionKeys {
                    $($key: self.$key.or_else(|| defaults.$key.clone()),)+
                }
            }

            fn or_defaults(self) -> Supervision {
                Supervision {
                    $($key: self.$key.unwrap_or($usual),)+
                }
            }
        }
    };
}

keys! {
    /// The wait before the first restart. It doubles with each restart that follows.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    restart_delay: Duration = Duration::from_secs(1), duration(TIMES);
    /// The longest wait before a restart.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    restart_delay_max: Duration = Duration::from_secs(60), duration(TIMES);
    /// After a run that was healthy for this long, earlier failures no longer count.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    restart_reset: Duration = Duration::from_secs(5 * 60), duration(TIMES);
    /// After this number of failures within `restart_window`, missiond gives up until a person starts the slot.
    restart_tries: u16 = 5, number(TRIES);
    /// The time within which `restart_tries` counts failures.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    restart_window: Duration = Duration::from_secs(10 * 60), duration(TIMES);
    /// What happens when the account reaches its usage limit.
    on_limit: OnLimit = OnLimit::default(), word(ON_LIMIT);
    /// A slot that is busy for this long without a sign of life has stalled.
    #[serde(serialize_with = "time_or_off")]
    #[schemars(with = "String")]
    stall_after: Option<Duration> = Some(Duration::from_secs(10 * 60)), duration_or_off(TIMES);
    /// What happens to a slot that has stalled. Each stall is also an event.
    on_stall: OnStall = OnStall::default(), word(ON_STALL);
    /// The most memory that all processes of the slot may use together. Above it, the slot is restarted.
    #[serde(serialize_with = "size_or_off")]
    #[schemars(with = "String")]
    max_memory: Option<u64> = None, size_or_off();
    /// Limits that the kernel enforces on each process of the slot.
    #[serde(serialize_with = "limits", skip_serializing_if = "Limits::is_empty")]
    #[schemars(schema_with = "super::schema::limits")]
    limits: Limits = Limits::default(), limits();
    /// The slot is stopped after this number of turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_turns: Option<u16> = None, number(TURNS);
    /// The slot is stopped when it has cost this many dollars, as Claude Code counts them.
    #[serde(serialize_with = "dollars_or_off")]
    #[schemars(schema_with = "super::schema::amount_or_off")]
    max_cost: Option<Dollars> = None, dollars_or_off();
    /// When the slot has cost this many dollars on one day, its messages wait until the next day.
    #[serde(serialize_with = "dollars_or_off")]
    #[schemars(schema_with = "super::schema::amount_or_off")]
    max_cost_per_day: Option<Dollars> = None, dollars_or_off();
    /// When all slots of the role together have cost this many dollars on one day, the messages of this slot wait until the next
    /// day.
    #[serde(serialize_with = "dollars_or_off")]
    #[schemars(schema_with = "super::schema::amount_or_off")]
    max_role_cost_per_day: Option<Dollars> = None, dollars_or_off();
    /// The slot is stopped when it has been idle for this long.
    #[serde(serialize_with = "time_or_off")]
    #[schemars(with = "String")]
    idle_stop: Option<Duration> = None, duration_or_off(TIMES);
    /// The size at which each of the slot's three logs (`.log`, `.events.jsonl`, `.cast`) is rotated.
    #[serde(serialize_with = "size")]
    #[schemars(with = "String")]
    log_size: u64 = 16 << 20, size(LOG_SIZES);
    /// How many files of each log are kept.
    log_files: u16 = 4, number(LOG_FILES);
    /// The slot works in a git worktree with a branch of its own, made from the repository at `cwd`.
    worktree: bool = false, flag();
    /// The only version of Claude Code that the slot may start.
    #[serde(serialize_with = "version", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    version: Option<Version> = None, version();
}

/// What happens to a slot when the account reaches its usage limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnLimit {
    /// Messages wait until the limit ends, if Claude Code shows when.
    #[default]
    Wait,
    /// The slot is stopped.
    Stop,
}

/// What happens to a slot that has stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnStall {
    /// Nothing more.
    #[default]
    Report,
    /// Its turn is interrupted.
    Interrupt,
    /// Its program is restarted.
    Restart,
}

const ON_LIMIT: &[(&str, OnLimit)] = &[("wait", OnLimit::Wait), ("stop", OnLimit::Stop)];
const ON_STALL: &[(&str, OnStall)] = &[
    ("report", OnStall::Report),
    ("interrupt", OnStall::Interrupt),
    ("restart", OnStall::Restart),
];

/// Shorter is a busy loop; longer than a year was not meant.
pub(super) const TIMES: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(31_557_600);
pub(super) const TRIES: RangeInclusive<u16> = 1..=1000;
/// A screen must fit several times; a daemon that takes a slot up again reads one such file.
const LOG_SIZES: RangeInclusive<u64> = 64 << 10..=1 << 30;
/// The one that is written and at least one before it: rotation must not lose what was just said.
pub(super) const LOG_FILES: RangeInclusive<u16> = 2..=1000;
pub(super) const TURNS: RangeInclusive<u16> = 1..=u16::MAX;

impl Supervision {
    /// Whether Claude Code is asked what it costs.
    pub fn counts_cost(&self) -> bool {
        let limits = [
            self.max_cost,
            self.max_cost_per_day,
            self.max_role_cost_per_day,
        ];
        limits.iter().any(Option::is_some)
    }
}

impl SupervisionKeys {
    /// The settings for a program of this kind, with the default for each key that nobody wrote.
    pub fn filled_in(self, kind: Kind) -> Supervision {
        let filled = self.or_defaults();
        Supervision {
            idle_stop: filled.idle_stop.filter(|_| kind.shows_rest()),
            ..filled
        }
    }
}

fn time<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*time))
}

/// For settings that can be switched off.
pub(super) fn time_or_off<S: Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(&humantime::format_duration(*time)),
        None => serializer.serialize_str("off"),
    }
}

fn size_or_off<S: Serializer>(bytes: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match bytes {
        Some(bytes) => size(bytes, serializer),
        None => serializer.serialize_str("off"),
    }
}

/// As a person writes them.
pub(super) fn limits<S: Serializer>(limits: &Limits, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    if let Some(ms) = limits.cpu_ms {
        let time = humantime::format_duration(Duration::from_millis(ms));
        map.serialize_entry("cpu", &time.to_string())?;
    }
    for (key, number) in [("files", limits.files), ("processes", limits.processes)] {
        if let Some(number) = number {
            map.serialize_entry(key, &number)?;
        }
    }
    if let Some(bytes) = limits.file_size {
        map.serialize_entry("file_size", &in_units(bytes))?;
    }
    map.end()
}

fn dollars_or_off<S: Serializer>(
    dollars: &Option<Dollars>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match dollars {
        Some(dollars) => dollars.serialize(serializer),
        None => serializer.serialize_str("off"),
    }
}

pub(super) fn size<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&in_units(*bytes))
}

fn version<S: Serializer>(version: &Option<Version>, serializer: S) -> Result<S::Ok, S::Error> {
    match version {
        Some(version) => serializer.collect_str(version),
        None => serializer.serialize_none(),
    }
}
