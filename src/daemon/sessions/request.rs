//! Turns a request for a session into its record. All errors in the request are found here.

use super::shell;
use crate::core::model::{Fault, RpcError, SpawnParams};
use crate::core::settings;
use crate::core::settings::limits::Limits;
use crate::core::settings::{DAEMONS_OWN, OwnerProcess, SessionTerms, SessionsConfig};
use crate::launch::{self, ProgramError};
use crate::session::SessionRecord;
use crate::session::running_process;
use crate::slot::SlotContext;
use chrono::{TimeDelta, Utc};
use serde_json::Map;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// The allowed sizes of a terminal. A smaller one is not usable, a larger one costs megabytes.
pub const SIZES: RangeInclusive<u16> = 2..=1000;
const COLS: u16 = 120;
const ROWS: u16 = 40;

/// The maximum bytes of an owner, which is in every answer about the session.
const MAX_OWNER: usize = 128;

/// The maximum bytes of an argument or variable. The kernel would refuse a longer one, with a less clear error.
const MAX_WORDS: usize = 128 * 1024;

/// The maximum timeout: a year. A longer one is a mistake.
const MAX_TIMEOUT: Duration = Duration::from_secs(31_557_600);

/// The record of the session, or the error in the request.
pub(super) fn record(
    params: SpawnParams,
    config: &SessionsConfig,
    context: &SlotContext,
) -> Result<SessionRecord, RpcError> {
    let run = &params.run;
    let id = id(params.id.clone())?;
    let created_at = Utc::now();
    let terms = SessionTerms {
        owner: owner(run.owner.clone())?,
        owner_process: owner_process(run.owner_pid)?,
        created_at,
        ends_at: run
            .timeout_ms
            .map(timeout)
            .transpose()?
            .map(|time| created_at + time),
        idle_close: config.idle_close,
        keep: config.keep,
        buffer: config.buffer,
        max_memory: max_memory(run.max_memory)?,
        limits: limits(run.limits, config)?,
        with_connection: run.with_connection,
        marks: None,
        command: Vec::new(),
    };
    check_words(&params)?;
    let mut record = SessionRecord {
        cwd: cwd(run.cwd.clone(), context)?,
        cols: size("cols", params.cols, COLS)?,
        rows: size("rows", params.rows, ROWS)?,
        id,
        command: Vec::new(),
        env: run.env.clone(),
        env_clear: run.env_clear,
        terms,
        ended: None,
        unknown: Map::new(),
    };
    shell::fill_in(&mut record, params, context)?;
    check_program(&record, context)?;
    Ok(record)
}

/// Tells whether `owner` is `prefix`, or continues it after a colon.
pub fn is_of_owner(owner: &str, prefix: &str) -> bool {
    let rest = owner.strip_prefix(prefix.trim_end_matches(':'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

pub(super) fn wrong(text: impl Into<String>) -> RpcError {
    RpcError::new(Fault::Usage, text)
}

fn id(given: Option<String>) -> Result<String, RpcError> {
    let Some(id) = given else {
        return Ok(uuid::Uuid::new_v4().to_string());
    };
    if id.is_empty() {
        return Err(wrong("the id is empty").next("leave it out for one that is made up"));
    }
    if !settings::is_name(&id) || id == DAEMONS_OWN {
        let text = format!("`{id}` can't be the id of a session");
        return Err(wrong(text).next(
            "1 to 64 of a-z, 0-9, `_` and `-`, beginning with a letter or digit, and not `missiond`",
        ));
    }
    Ok(id)
}

fn owner(given: Option<String>) -> Result<String, RpcError> {
    let owner = given.unwrap_or_else(|| "user".to_owned());
    let plain = |c: char| c.is_alphanumeric() || "._-@/+".contains(c);
    let is_part = |part: &str| !part.is_empty() && part.chars().all(plain);
    match owner.as_str() {
        "" => Err(wrong("the owner is empty").next("leave it out for `user`")),
        long if long.len() > MAX_OWNER => {
            Err(wrong(format!("the owner has more than {MAX_OWNER} bytes")))
        }
        parts if parts.split(':').all(is_part) => Ok(owner),
        _ => Err(wrong(format!("`{owner}` can't be an owner"))
            .next("such as `user` or `orchestrator:planner:worker-1`")),
    }
}

fn owner_process(pid: Option<u32>) -> Result<Option<OwnerProcess>, RpcError> {
    let Some(pid) = pid else {
        return Ok(None);
    };
    let running = running_process(pid);
    running
        .map(Some)
        .ok_or_else(|| wrong(format!("there is no process {pid} to be the owner")))
}

/// The minimum of a memory limit: no program starts with less.
const LEAST_MEMORY: u64 = 1_000_000;

fn max_memory(bytes: Option<u64>) -> Result<Option<u64>, RpcError> {
    match bytes {
        Some(bytes) if bytes < LEAST_MEMORY => Err(wrong("the memory must be at least 1 MB")),
        bytes => Ok(bytes),
    }
}

/// The requested limits, bounded by those of the config.
fn limits(asked: Limits, config: &SessionsConfig) -> Result<Limits, RpcError> {
    let limits = asked.and(config.limits);
    let fault = limits.fault(rustix::process::geteuid().is_root());
    fault.map_or(Ok(limits), |why| Err(wrong(why)))
}

fn timeout(ms: u64) -> Result<TimeDelta, RpcError> {
    let time = Duration::from_millis(ms);
    if time.is_zero() || time > MAX_TIMEOUT {
        return Err(wrong(
            "the timeout must be more than 0 ms and at most a year",
        ));
    }
    TimeDelta::from_std(time).map_err(|error| wrong(error.to_string()))
}

fn size(what: &str, given: Option<u16>, default: u16) -> Result<u16, RpcError> {
    let size = given.unwrap_or(default);
    if SIZES.contains(&size) {
        return Ok(size);
    }
    let (low, high) = (SIZES.start(), SIZES.end());
    Err(wrong(format!("{what} must be from {low} to {high}")))
}

fn check_words(params: &SpawnParams) -> Result<(), RpcError> {
    let variables = params
        .run
        .env
        .iter()
        .flat_map(|(name, value)| [name, value]);
    let line = params.line.iter();
    let words = params.command.iter().chain(&params.run.shell).chain(line);
    let words = words.chain(variables);
    for word in words {
        if word.contains('\0') {
            return Err(wrong("a NUL character can't be given to a program"));
        }
        if word.len() > MAX_WORDS {
            return Err(wrong(format!("a word of more than {MAX_WORDS} bytes")));
        }
    }
    if let Some(name) = params
        .run
        .env
        .keys()
        .find(|name| name.is_empty() || name.contains('='))
    {
        return Err(wrong(format!("`{name}` can't be the name of a variable")));
    }
    Ok(())
}

fn cwd(given: Option<PathBuf>, context: &SlotContext) -> Result<PathBuf, RpcError> {
    let home = || context.variable("HOME").map(PathBuf::from);
    let cwd = given.or_else(home).unwrap_or_else(|| PathBuf::from("/"));
    if !cwd.is_absolute() {
        let text = format!("the directory {} is not absolute", cwd.display());
        return Err(wrong(text));
    }
    launch::check_cwd(&cwd).map_err(|error| match error {
        ProgramError::NoCwd(cwd) => wrong(format!("there is no directory {}", cwd.display())),
        ProgramError::CwdIsFile(cwd) => wrong(format!("{} is not a directory", cwd.display())),
        ProgramError::CwdOutOfReach { cwd, why } => wrong(format!(
            "the directory {} can't be used: {why}",
            cwd.display()
        )),
        other => wrong(other.to_string()),
    })?;
    Ok(cwd)
}

/// Checks that the program can be executed, before any file of the session is made.
fn check_program(record: &SessionRecord, context: &SlotContext) -> Result<(), RpcError> {
    let slot = record.slot();
    let env = launch::environment(&slot, &context.socket, context.environment.iter().cloned());
    let path = env
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.as_str());
    let found = launch::resolve_program(&record.command[0], path, &record.cwd);
    found.map(drop).map_err(|error| match error {
        ProgramError::NotInPath { program, path } => wrong(format!(
            "there is no program `{program}` in the PATH ({path})"
        )),
        ProgramError::Missing(file) => wrong(format!("there is no program {}", file.display())),
        ProgramError::Directory(file) => {
            wrong(format!("{} is a directory, not a program", file.display()))
        }
        ProgramError::NotExecutable(file) => wrong(format!("{} can't be executed", file.display())),
        other => wrong(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_parts_and_none_is_empty() {
        for good in ["user", "orchestrator:a", "orchestrator:a:b", "me@host"] {
            assert_eq!(owner(Some(good.into())).unwrap(), good);
        }
        assert_eq!(owner(None).unwrap(), "user");
        let long = "x".repeat(200);
        for bad in ["", ":", "a:", ":a", "a::b", "a b", "a\n", "a\x1b", &long] {
            assert_eq!(
                owner(Some(bad.into())).unwrap_err().fault,
                Fault::Usage,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn an_id_is_a_name_or_made_up() {
        assert_eq!(id(Some("build-1".into())).unwrap(), "build-1");
        assert!(uuid::Uuid::try_parse(&id(None).unwrap()).is_ok());
        for bad in ["", "missiond", "A", "../x", "a b"] {
            assert!(id(Some(bad.into())).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_owner_is_found_by_whole_parts() {
        assert!(is_of_owner("orchestrator:a", "orchestrator:a"));
        assert!(is_of_owner("orchestrator:a:b", "orchestrator:a"));
        assert!(is_of_owner("orchestrator:a", "orchestrator:"));
        assert!(!is_of_owner("orchestrator:ab", "orchestrator:a"));
        assert!(!is_of_owner("user", "orchestrator"));
    }
}
