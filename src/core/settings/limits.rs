//! What the kernel holds the processes of a session or slot to: its resource limits, as `ulimit` sets them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits that can be set; one that is left out stays as the daemon has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Milliseconds of CPU time that each process may use, rounded up to a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Files that each process may have open at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Processes and threads of the user, all of them together, beyond which none can be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Bytes of the largest file that a process may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
}

/// Fewer, and no shell starts: it has its terminal and its libraries open.
pub const LEAST_FILES: u64 = 16;

impl Limits {
    pub fn is_empty(&self) -> bool {
        *self == Limits::default()
    }

    /// The stricter of both, limit by limit.
    pub fn and(self, other: Limits) -> Limits {
        let stricter = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Limits {
            cpu_ms: stricter(self.cpu_ms, other.cpu_ms),
            files: stricter(self.files, other.files),
            processes: stricter(self.processes, other.processes),
            file_size: stricter(self.file_size, other.file_size),
        }
    }

    /// Why these limits can't be set for a program of this user.
    pub fn fault(&self, is_root: bool) -> Option<String> {
        let zero = |value: Option<u64>| value == Some(0);
        match self {
            _ if zero(self.cpu_ms) => Some("the CPU time must be more than nothing".to_owned()),
            _ if self.files.is_some_and(|files| files < LEAST_FILES) => {
                Some(format!("the open files must be at least {LEAST_FILES}"))
            }
            _ if zero(self.processes) => Some("the processes must be at least 1".to_owned()),
            _ if zero(self.file_size) => Some("the file size must be more than nothing".to_owned()),
            _ if self.processes.is_some() && is_root => {
                Some("the kernel holds root to no number of processes".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(values: [Option<u64>; 4]) -> Limits {
        let [cpu_ms, files, processes, file_size] = values;
        Limits {
            cpu_ms,
            files,
            processes,
            file_size,
        }
    }

    #[test]
    fn the_stricter_of_two_holds() {
        let a = limits([Some(5), None, Some(7), None]);
        let b = limits([Some(9), Some(20), Some(3), None]);
        let both = limits([Some(5), Some(20), Some(3), None]);
        assert_eq!((a.and(b), b.and(a)), (both, both));
    }

    #[test]
    fn what_would_hold_nothing_or_everything_is_refused() {
        for wrong in [
            limits([Some(0), None, None, None]),
            limits([None, Some(LEAST_FILES - 1), None, None]),
            limits([None, None, Some(0), None]),
            limits([None, None, None, Some(0)]),
        ] {
            assert!(wrong.fault(false).is_some(), "{wrong:?}");
        }
        let good = limits([Some(1), Some(LEAST_FILES), Some(1), Some(1)]);
        assert_eq!(good.fault(false), None);
        assert!(good.fault(true).is_some_and(|why| why.contains("root")));
        assert_eq!(Limits::default().fault(true), None);
    }
}
