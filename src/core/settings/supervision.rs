//! How a slot is looked after: when it is started again, what counts as a stall, what it may use.

use super::table::{Table, in_units};
use crate::core::claude::Version;
use crate::core::settings::limits::Limits;
use crate::core::text::dollars::Dollars;
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::Spanned;

/// The settings, defaults filled in. Times and sizes are written out as a person writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Supervision {
    /// The wait before the first restart; it doubles with each one.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    pub restart_delay: Duration,
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    pub restart_delay_max: Duration,
    /// A run that was healthy for this long forgets the failures before it.
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    pub restart_reset: Duration,
    /// So many failures within `restart_window`: give up.
    pub restart_tries: u16,
    #[serde(serialize_with = "time")]
    #[schemars(with = "String")]
    pub restart_window: Duration,
    pub on_limit: OnLimit,
    /// Busy for this long with no sign of life is a stall.
    #[serde(serialize_with = "time_or_off")]
    #[schemars(with = "String")]
    pub stall_after: Option<Duration>,
    pub on_stall: OnStall,
    /// Bytes that all processes of the slot may hold together.
    #[serde(serialize_with = "size_or_off")]
    #[schemars(with = "String")]
    pub max_memory: Option<u64>,
    /// What the kernel holds each of its processes to.
    #[serde(serialize_with = "limits", skip_serializing_if = "Limits::is_empty")]
    #[schemars(schema_with = "super::schema::limits")]
    pub limits: Limits,
    /// Turns until it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u16>,
    /// What it may cost until it is stopped, by Claude Code's own count.
    #[serde(serialize_with = "dollars_or_off")]
    #[schemars(schema_with = "super::schema::amount_or_off")]
    pub max_cost: Option<Dollars>,
    /// Idle for this long, it is stopped.
    #[serde(serialize_with = "time_or_off")]
    #[schemars(with = "String")]
    pub idle_stop: Option<Duration>,
    /// Each of its three logs (`.log`, `.events.jsonl`, `.cast`) is rotated at this size.
    #[serde(serialize_with = "size")]
    #[schemars(with = "String")]
    pub log_size: u64,
    /// So many files are kept of each log: with its size, the most that the slot's logs take of the disk.
    pub log_files: u16,
    /// A git worktree and a branch of its own, in place of `cwd`.
    pub worktree: bool,
    /// The only Claude Code that may be started.
    #[serde(serialize_with = "version", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub version: Option<Version>,
}

impl Default for Supervision {
    fn default() -> Supervision {
        Supervision {
            restart_delay: Duration::from_secs(1),
            restart_delay_max: Duration::from_secs(60),
            restart_reset: Duration::from_secs(5 * 60),
            restart_tries: 5,
            restart_window: Duration::from_secs(10 * 60),
            on_limit: OnLimit::default(),
            stall_after: Some(Duration::from_secs(10 * 60)),
            on_stall: OnStall::default(),
            max_memory: None,
            limits: Limits::default(),
            max_turns: None,
            max_cost: None,
            idle_stop: None,
            log_size: 16 << 20,
            log_files: 4,
            worktree: false,
            version: None,
        }
    }
}

/// What a usage limit of the account does to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnLimit {
    /// Messages wait until the time at which the limit is lifted, where one is shown.
    #[default]
    Wait,
    Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnStall {
    #[default]
    Report,
    Interrupt,
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
const TRIES: RangeInclusive<u16> = 1..=1000;
/// A screen must fit several times; a daemon that takes a slot up again reads one such file.
const LOG_SIZES: RangeInclusive<u64> = 64 << 10..=1 << 30;
/// The one that is written and at least one before it: rotation must not lose what was just said.
const LOG_FILES: RangeInclusive<u16> = 2..=1000;
const TURNS: RangeInclusive<u16> = 1..=u16::MAX;

/// The keys as far as they are given.
#[derive(Default, Clone)]
pub(super) struct SupervisionKeys {
    restart_delay: Option<Spanned<Duration>>,
    restart_delay_max: Option<Spanned<Duration>>,
    restart_reset: Option<Spanned<Duration>>,
    restart_tries: Option<Spanned<u16>>,
    restart_window: Option<Spanned<Duration>>,
    on_limit: Option<Spanned<OnLimit>>,
    stall_after: Option<Spanned<Option<Duration>>>,
    on_stall: Option<Spanned<OnStall>>,
    max_memory: Option<Spanned<Option<u64>>>,
    limits: Option<Spanned<Limits>>,
    max_turns: Option<Spanned<u16>>,
    max_cost: Option<Spanned<Option<Dollars>>>,
    idle_stop: Option<Spanned<Option<Duration>>>,
    log_size: Option<Spanned<u64>>,
    log_files: Option<Spanned<u16>>,
    worktree: Option<Spanned<bool>>,
    version: Option<Spanned<Version>>,
}

impl SupervisionKeys {
    pub fn read(table: &mut Table<'_, '_>) -> SupervisionKeys {
        SupervisionKeys {
            restart_delay: table.duration("restart_delay", TIMES),
            restart_delay_max: table.duration("restart_delay_max", TIMES),
            restart_reset: table.duration("restart_reset", TIMES),
            restart_tries: table.number("restart_tries", TRIES),
            restart_window: table.duration("restart_window", TIMES),
            on_limit: table.word("on_limit", ON_LIMIT),
            stall_after: table.duration_or_off("stall_after", TIMES),
            on_stall: table.word("on_stall", ON_STALL),
            max_memory: table.size_or_off("max_memory"),
            limits: table.limits("limits"),
            max_turns: table.number("max_turns", TURNS),
            max_cost: table.dollars_or_off("max_cost"),
            idle_stop: table.duration_or_off("idle_stop", TIMES),
            log_size: table.size("log_size", LOG_SIZES),
            log_files: table.number("log_files", LOG_FILES),
            worktree: table.flag("worktree"),
            version: version_key(table),
        }
    }

    pub fn or(self, defaults: &SupervisionKeys) -> SupervisionKeys {
        let defaults = defaults.clone();
        SupervisionKeys {
            restart_delay: self.restart_delay.or(defaults.restart_delay),
            restart_delay_max: self.restart_delay_max.or(defaults.restart_delay_max),
            restart_reset: self.restart_reset.or(defaults.restart_reset),
            restart_tries: self.restart_tries.or(defaults.restart_tries),
            restart_window: self.restart_window.or(defaults.restart_window),
            on_limit: self.on_limit.or(defaults.on_limit),
            stall_after: self.stall_after.or(defaults.stall_after),
            on_stall: self.on_stall.or(defaults.on_stall),
            max_memory: self.max_memory.or(defaults.max_memory),
            limits: self.limits.or(defaults.limits),
            max_turns: self.max_turns.or(defaults.max_turns),
            max_cost: self.max_cost.or(defaults.max_cost),
            idle_stop: self.idle_stop.or(defaults.idle_stop),
            log_size: self.log_size.or(defaults.log_size),
            log_files: self.log_files.or(defaults.log_files),
            worktree: self.worktree.or(defaults.worktree),
            version: self.version.or(defaults.version),
        }
    }

    pub fn filled_in(self) -> Supervision {
        let usual = Supervision::default();
        Supervision {
            restart_delay: given(self.restart_delay, usual.restart_delay),
            restart_delay_max: given(self.restart_delay_max, usual.restart_delay_max),
            restart_reset: given(self.restart_reset, usual.restart_reset),
            restart_tries: given(self.restart_tries, usual.restart_tries),
            restart_window: given(self.restart_window, usual.restart_window),
            on_limit: given(self.on_limit, usual.on_limit),
            stall_after: given(self.stall_after, usual.stall_after),
            on_stall: given(self.on_stall, usual.on_stall),
            max_memory: given(self.max_memory, usual.max_memory),
            limits: given(self.limits, usual.limits),
            max_turns: self.max_turns.map(Spanned::into_inner),
            max_cost: given(self.max_cost, usual.max_cost),
            idle_stop: given(self.idle_stop, usual.idle_stop),
            log_size: given(self.log_size, usual.log_size),
            log_files: given(self.log_files, usual.log_files),
            worktree: given(self.worktree, usual.worktree),
            version: self.version.map(Spanned::into_inner),
        }
    }
}

fn given<T>(written: Option<Spanned<T>>, usual: T) -> T {
    written.map_or(usual, Spanned::into_inner)
}

fn version_key(table: &mut Table<'_, '_>) -> Option<Spanned<Version>> {
    let text = table.string("version")?;
    let version = Version::parse(text.get_ref());
    if version.is_none() {
        let label = "a version looks like 2.1.325, as `claude --version` says it";
        table.fault(text.span(), "bad version", label);
    }
    Some(Spanned::new(text.span(), version?))
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
