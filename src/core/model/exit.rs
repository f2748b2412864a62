//! How a program ended.

use serde::{Deserialize, Serialize};

/// How a program ended, as its parent process learned it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl ExitReport {
    /// The exit of a program if nobody knows how it ended.
    pub const UNKNOWN: ExitReport = ExitReport {
        code: None,
        signal: None,
    };
}
