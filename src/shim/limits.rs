//! Applies resource limits to a process.

use crate::core::settings::limits::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The time between SIGXCPU, which a program can handle, and SIGKILL.
const LAST_CPU_SECONDS: u64 = 5;

/// Applies the limits to this process and everything that it starts. A stricter existing limit stays.
pub(super) fn apply(limits: &Limits) -> Result<(), String> {
    let seconds = limits.cpu_ms.map(|ms| ms.div_ceil(1000));
    let kill = seconds.map(|seconds| seconds.saturating_add(LAST_CPU_SECONDS));
    set(Resource::Cpu, seconds, kill)?;
    set(Resource::Nofile, limits.files, limits.files)?;
    set(Resource::Nproc, limits.processes, limits.processes)?;
    set(Resource::Fsize, limits.file_size, limits.file_size)
}

fn set(resource: Resource, soft: Option<u64>, hard: Option<u64>) -> Result<(), String> {
    if soft.is_none() {
        return Ok(());
    }
    let own = getrlimit(resource).maximum;
    let at_most = |value: Option<u64>| value.into_iter().chain(own).min();
    let limit = Rlimit {
        current: at_most(soft),
        maximum: at_most(hard),
    };
    setrlimit(resource, limit).map_err(|error| format!("{resource:?} can't be limited: {error}"))
}
