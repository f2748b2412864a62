//! Where to continue in an existing recording. Pure.

use crate::core::terminal::At;
use std::time::Duration;

/// The end of the complete part of a recording, and its time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resume {
    /// Bytes at the end of the file that are not a complete line: a write was torn.
    pub torn: usize,
    pub last: At,
}

/// Searches `tail`, the last bytes of a recording, from its end for a complete line. `None` if there is none; in a tail longer
/// than any line that means that this is not a recording.
pub(super) fn resume_at(tail: &[u8]) -> Option<Resume> {
    let mut end = tail.len();
    while let Some(newline) = tail[..end].iter().rposition(|&byte| byte == b'\n') {
        let start = tail[..newline]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |before| before + 1);
        if let Some(last) = time_of(&tail[start..newline]) {
            let torn = tail.len() - (newline + 1);
            return Some(Resume { torn, last });
        }
        end = start;
    }
    None
}

fn time_of(line: &[u8]) -> Option<At> {
    if line.starts_with(b"{") {
        let header: serde_json::Value = serde_json::from_slice(line).ok()?;
        return header.get("version").map(|_| At::ZERO);
    }
    let (seconds, _code, _data): (f64, String, String) = serde_json::from_slice(line).ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::cast::{event_line, header_line};

    #[test]
    fn a_recording_goes_on_after_its_last_whole_line() {
        let whole = format!(
            "{}{}",
            header_line(1, 1, 0, "t"),
            event_line(Duration::from_micros(3_141_592), 'o', "x")
        );
        let last = Duration::from_micros(3_141_592);
        let resume = |bytes: &str| resume_at(bytes.as_bytes());
        assert_eq!(resume(&whole), Some(Resume { torn: 0, last }));
        for torn in ["[3.2, \"o\", \"ab", "\0\0\0\n", "garbage\n[4"] {
            let expected = Some(Resume {
                torn: torn.len(),
                last,
            });
            assert_eq!(resume(&format!("{whole}{torn}")), expected, "{torn:?}");
        }
    }

    #[test]
    fn a_header_alone_is_time_zero_and_other_files_are_no_recordings() {
        let header = header_line(1, 1, 0, "t");
        let zero = Some(Resume {
            torn: 0,
            last: At::ZERO,
        });
        assert_eq!(resume_at(header.as_bytes()), zero);
        assert_eq!(resume_at(b"#!/bin/sh\nexit\n"), None);
        assert_eq!(resume_at(b""), None);
    }
}
