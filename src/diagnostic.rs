//! Faults in files that people write: what is wrong, where, and what would be right.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// One fault in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: PathBuf,
    /// The whole text of the file, for showing the line.
    pub text: Arc<str>,
    /// Byte offsets into `text`; empty at 0 where the fault is the file itself.
    pub span: Range<usize>,
    /// What is wrong, such as "unknown role".
    pub title: String,
    /// Under the caret: what is offending and what would be right.
    pub label: String,
    /// A next step, where there is one.
    pub help: Option<String>,
}

impl Problem {
    /// The line number (from 1) at which the span begins.
    pub fn line(&self) -> usize {
        let end = self.span.start.min(self.text.len());
        self.text.as_bytes()[..end]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1
    }
}
