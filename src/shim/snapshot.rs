//! The screen that a recording ends with.

use super::recording_file::RecordingFile;
use crate::core::cast::{BrokenCast, CastKind, Recording};
use crate::core::terminal::Terminal;
use std::io::BufReader;

/// The bytes that draw the last screen of a recording.
pub(super) fn snapshot_of(file: &RecordingFile) -> Result<String, BrokenCast> {
    let reader = file
        .reader()
        .map_err(|source| BrokenCast::Read { line: 0, source })?;
    let recording = Recording::read(BufReader::new(reader))?;
    let mut terminal = Terminal::new(recording.header().cols, recording.header().rows);
    for event in recording {
        let event = event?;
        match &event.what {
            CastKind::Output(text) => terminal.skim(event.at, text.as_bytes()),
            CastKind::Resize { cols, rows } => drop(terminal.resize(event.at, *cols, *rows)),
            marker if marker.begins_a_run() => {
                let (cols, rows) = terminal.size();
                terminal = Terminal::new(cols, rows);
            }
            _ => {}
        }
    }
    Ok(String::from_utf8_lossy(&terminal.snapshot()).into_owned())
}
