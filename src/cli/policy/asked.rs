//! What was asked so far, from the audit.

use crate::audit::{self, AuditEntry, RecordKind};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::follow::unreadable;
use crate::core::machine::target_of;
use crate::core::policy::{Ask, Decision};
use crate::os::files;
use chrono::{DateTime, Utc};
use std::collections::HashMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A tool call that was decided on, and how often.
#[derive(Debug)]
pub struct Asked {
    pub slot: String,
    pub ask: Ask,
    pub count: usize,
    /// What was decided the last time, and when.
    pub decision: Decision,
    pub last: DateTime<Utc>,
    /// A secret in it is masked: what is judged here is not quite what was judged then.
    pub is_masked: bool,
}

impl Asked {
    /// The call in a line.
    pub fn shown(&self) -> String {
        match target_of(&self.ask.input) {
            Some(target) => format!("{}: {target}", self.ask.tool),
            None => self.ask.tool.clone(),
        }
    }
}

/// The distinct calls that `by` (`policy` or `person`) decided on, in the order in which they first came.
pub async fn calls(
    context: &Context,
    from: Option<PathBuf>,
    by: &str,
) -> Result<Vec<Asked>, Failure> {
    let file = crate::cli::audit::file(context, from).await?;
    let broken = |error| unreadable(&file, &error);
    let files = files::with_rotated(&file).map_err(broken)?;
    let inputs = files.into_iter().map(BufReader::new);
    let mut asked = Distinct::default();
    for entry in inputs.flat_map(audit::entries) {
        let entry = entry.map_err(broken)?;
        if entry.record.by == by {
            asked.add(entry);
        }
    }
    Ok(asked.calls)
}

#[derive(Debug, Default)]
struct Distinct {
    calls: Vec<Asked>,
    places: HashMap<(String, String, String, Option<PathBuf>), usize>,
}

impl Distinct {
    fn add(&mut self, entry: AuditEntry) {
        let AuditEntry { time, record, .. } = entry;
        let is_masked = record.is_masked();
        let (RecordKind::Verdict, Some(tool), Some(decision), false) =
            (record.what, record.tool, record.verdict, record.partial)
        else {
            return;
        };
        // A dialog that is no tool call has no input.
        if !record.input.is_object() {
            return;
        }
        let key = (
            record.slot.clone(),
            tool.clone(),
            record.input.to_string(),
            record.cwd.clone(),
        );
        let place = *self.places.entry(key).or_insert(self.calls.len());
        if let Some(known) = self.calls.get_mut(place) {
            known.count += 1;
            (known.decision, known.last) = (decision, time);
            return;
        }
        self.calls.push(Asked {
            slot: record.slot,
            ask: Ask {
                tool,
                input: record.input,
                cwd: record.cwd.unwrap_or_else(|| Path::new("/").to_owned()),
                at: record.at,
                complete: true,
            },
            count: 1,
            decision,
            last: time,
            is_masked,
        });
    }
}
