//! The asciicast format: the shim writes v2, replay reads v2 and v3.
//!
//! The reader works line by line, so a recording of any length needs only the memory of one event.

use crate::core::terminal::At;
use crate::core::text::hex;
use serde_json::Value;
use std::io::{BufRead, Read};
use std::time::Duration;

/// The longest line that is read. The shim writes at most about 64 KB of output as one event; JSON escapes make that at most six
/// times as long.
const MAX_LINE: u64 = 4 * 1024 * 1024;

/// missiond's own event kind; see [`exact_line`].
const EXACT: &str = "b";

/// The first line of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub version: u64,
    pub cols: usize,
    pub rows: usize,
    /// When it began, in seconds since 1970, if the recording has it.
    pub timestamp: Option<u64>,
}

/// An event at a recorded time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastEvent {
    pub at: At,
    pub what: CastKind,
    /// The bytes that the program wrote, if they differ from the text of an output.
    pub exact: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CastKind {
    /// The program wrote this.
    Output(String),
    Resize {
        cols: usize,
        rows: usize,
    },
    Marker(String),
    /// The program ended. Written as the marker `exit CODE` or `exit signal N`, in v3 as an `x` event.
    Exit,
}

impl CastEvent {
    /// The program's output, byte for byte; empty if the event is not an output.
    pub fn written(&self) -> &[u8] {
        match (&self.exact, &self.what) {
            (Some(bytes), _) => bytes,
            (None, CastKind::Output(text)) => text.as_bytes(),
            (None, _) => &[],
        }
    }

    /// A rotation wrote the screen before this event; the program did not write that.
    pub fn is_continuation(&self) -> bool {
        matches!(&self.what, CastKind::Marker(text) if text.starts_with("continues "))
    }
}

/// Why a recording can't be read further.
#[derive(Debug, thiserror::Error)]
pub enum BrokenCast {
    #[error("line {line}: {why}")]
    Line { line: u64, why: String },
    #[error("line {line}: {source}")]
    Read { line: u64, source: std::io::Error },
}

/// A recording that is being read: an iterator over its events.
#[derive(Debug)]
pub struct Recording<R> {
    header: Header,
    input: R,
    line: u64,
    /// Bytes read so far.
    position: u64,
    /// The time of the last event, which v3 times are relative to.
    last: At,
    /// The exact bytes of the next output, with its time: bytes whose output was torn off do not belong to a later one.
    exact: Option<(At, Vec<u8>)>,
}

impl<R: BufRead> Recording<R> {
    /// Reads the header.
    pub fn read(mut input: R) -> Result<Recording<R>, BrokenCast> {
        let text = next_line(&mut input, 1)?.unwrap_or_default();
        let header =
            parse_header(text.trim_end()).map_err(|why| BrokenCast::Line { line: 1, why })?;
        Ok(Recording {
            header,
            input,
            line: 1,
            position: text.len() as u64,
            last: At::ZERO,
            exact: None,
        })
    }

    /// Continues with another input, which begins with the line at byte `position` of a v2 recording.
    pub fn go_on_at<S: BufRead>(self, input: S, position: u64) -> Recording<S> {
        Recording {
            header: self.header,
            input,
            line: 0,
            position,
            last: At::ZERO,
            exact: None,
        }
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The number of bytes read; approximate if some of them are not text.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next event; unknown kinds of lines are skipped.
    fn next_event(&mut self) -> Result<Option<CastEvent>, BrokenCast> {
        loop {
            self.line += 1;
            let Some(text) = next_line(&mut self.input, self.line)? else {
                return Ok(None);
            };
            self.position += text.len() as u64;
            let whole = text.ends_with('\n');
            match self.parse_event(text.trim_end()) {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                // The writer was stopped in the middle of its last line.
                Err(_) if !whole => return Ok(None),
                Err(why) => {
                    return Err(BrokenCast::Line {
                        line: self.line,
                        why,
                    });
                }
            }
        }
    }

    fn parse_event(&mut self, text: &str) -> Result<Option<CastEvent>, String> {
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        let (seconds, code, data): (f64, String, Value) = serde_json::from_str(text)
            .map_err(|e| format!("expected an event such as [1.5, \"o\", \"text\"]: {e}"))?;
        let time =
            Duration::try_from_secs_f64(seconds).map_err(|e| format!("the time {seconds}: {e}"))?;
        let at = if self.header.version == 3 {
            self.last.saturating_add(time)
        } else {
            time
        };
        self.last = at;
        if code == EXACT {
            self.exact = data.as_str().and_then(hex::decode).map(|exact| (at, exact));
            return Ok(None);
        }
        let exact = self.exact.take_if(|_| code == "o");
        let exact = exact
            .filter(|(then, _)| *then == at)
            .map(|(_, exact)| exact);
        Ok(parse_what(&code, &data)?.map(|what| CastEvent { at, what, exact }))
    }
}

impl<R: BufRead> Iterator for Recording<R> {
    type Item = Result<CastEvent, BrokenCast>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

impl CastKind {
    /// Whether this is the shim's marker for the start of a program.
    pub fn begins_a_run(&self) -> bool {
        matches!(self, CastKind::Marker(text) if text.starts_with("start "))
    }
}

fn next_line(input: &mut impl BufRead, line: u64) -> Result<Option<String>, BrokenCast> {
    let mut bytes = Vec::new();
    let read = input.take(MAX_LINE).read_until(b'\n', &mut bytes);
    match read.map_err(|source| BrokenCast::Read { line, source })? {
        0 => Ok(None),
        n if n as u64 == MAX_LINE => Err(BrokenCast::Line {
            line,
            why: format!("longer than {MAX_LINE} bytes"),
        }),
        _ => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
    }
}

fn parse_header(text: &str) -> Result<Header, String> {
    let header: Value = serde_json::from_str(text)
        .map_err(|e| format!("not the header of an asciicast recording: {e}"))?;
    let version = header["version"].as_u64().unwrap_or(0);
    let (cols, rows) = match version {
        2 => (&header["width"], &header["height"]),
        3 => (&header["term"]["cols"], &header["term"]["rows"]),
        _ => return Err("not an asciicast recording of version 2 or 3".to_owned()),
    };
    let size = |value: &Value| {
        value
            .as_u64()
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| *n > 0)
    };
    match (size(cols), size(rows)) {
        (Some(cols), Some(rows)) => Ok(Header {
            version,
            cols,
            rows,
            timestamp: header["timestamp"].as_u64(),
        }),
        _ => Err("the header has no terminal size".to_owned()),
    }
}

fn parse_what(code: &str, data: &Value) -> Result<Option<CastKind>, String> {
    let text = || {
        data.as_str()
            .ok_or_else(|| format!("the data of a {code:?} event must be a string"))
    };
    Ok(match code {
        "o" => Some(CastKind::Output(text()?.to_owned())),
        "r" => Some(parse_size(text()?)?),
        "m" => Some(parse_marker(text()?)),
        "x" => Some(CastKind::Exit),
        _ => None,
    })
}

fn parse_size(text: &str) -> Result<CastKind, String> {
    let size = text
        .split_once('x')
        .and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
    let (cols, rows) = size.ok_or_else(|| format!("the size {text:?} is not like 120x40"))?;
    Ok(CastKind::Resize { cols, rows })
}

fn parse_marker(text: &str) -> CastKind {
    let ended = text.strip_prefix("exit ").is_some_and(|how| {
        how.strip_prefix("signal ")
            .unwrap_or(how)
            .parse::<i32>()
            .is_ok()
    });
    if ended {
        CastKind::Exit
    } else {
        CastKind::Marker(text.to_owned())
    }
}

/// The header line of a new v2 recording.
pub fn header_line(cols: usize, rows: usize, unix_timestamp: u64, title: &str) -> String {
    // Formatted by hand, because a torn line is recognised by its beginning.
    format!(
        "{{\"version\": 2, \"width\": {cols}, \"height\": {rows}, \"timestamp\": {unix_timestamp}, \"title\": {}}}\n",
        Value::from(title)
    )
}

/// The line before an output that is not valid UTF-8: its bytes. Players skip unknown events.
pub fn exact_line(at: At, bytes: &[u8]) -> String {
    event_line(at, 'b', &hex::encode(bytes))
}

/// An event line of a v2 recording; `code` is `o`, `r`, `m` or another of the format's letters.
pub fn event_line(at: At, code: char, data: &str) -> String {
    let (seconds, micros) = (at.as_secs(), at.subsec_micros());
    format!(
        "[{seconds}.{micros:06}, \"{code}\", {}]\n",
        Value::from(data)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<Result<CastEvent, String>> {
        let recording = Recording::read(text.as_bytes()).expect("a header");
        recording
            .map(|event| event.map_err(|e| e.to_string()))
            .collect()
    }

    fn output(at: u64, text: &str) -> CastEvent {
        CastEvent {
            at: Duration::from_millis(at),
            what: CastKind::Output(text.to_owned()),
            exact: None,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut text = header_line(120, 40, 1_700_000_000, "a \"slot\"");
        text += &event_line(Duration::from_micros(1_000_250), 'o', "\u{1b}[1m❯\r\n");
        text += &event_line(Duration::from_secs(2), 'r', "80x24");
        text += &event_line(Duration::from_secs(3), 'm', "note");
        text += &event_line(Duration::from_secs(4), 'm', "exit signal 9");
        let mut recording = Recording::read(text.as_bytes()).expect("a header");
        let header = Header {
            version: 2,
            cols: 120,
            rows: 40,
            timestamp: Some(1_700_000_000),
        };
        assert_eq!(recording.header(), &header);
        let first = recording.next().expect("an event").expect("a good event");
        assert_eq!(first.at, Duration::from_micros(1_000_250));
        assert_eq!(first.what, CastKind::Output("\u{1b}[1m❯\r\n".to_owned()));
        let rest: Vec<CastKind> = recording
            .map(|event| event.expect("a good event").what)
            .collect();
        let note = CastKind::Marker("note".to_owned());
        assert_eq!(
            rest,
            [
                CastKind::Resize { cols: 80, rows: 24 },
                note,
                CastKind::Exit
            ]
        );
    }

    #[test]
    fn version_3_counts_from_the_event_before() {
        let text = "{\"version\":3,\"term\":{\"cols\":80,\"rows\":24}}\n# note\n[0.5,\"o\",\"a\"]\n[0.25,\"i\",\"key\"]\n[0.25,\"o\",\"b\"]\n[0.1,\"x\",\"0\"]\n";
        let exit = CastEvent {
            at: Duration::from_millis(1100),
            what: CastKind::Exit,
            exact: None,
        };
        assert_eq!(
            events(text),
            [Ok(output(500, "a")), Ok(output(1000, "b")), Ok(exit)]
        );
    }

    #[test]
    fn bytes_that_are_no_text_come_back_with_their_own_output() {
        let (first, second) = (Duration::from_secs(1), Duration::from_secs(2));
        let header = header_line(80, 24, 0, "");
        let exact = exact_line(first, b"a\xff");
        let text = event_line(first, 'o', "a\u{fffd}") + &event_line(second, 'o', "b");
        let found = events(&format!("{header}{exact}{text}"));
        let written: Vec<&[u8]> = found.iter().flatten().map(CastEvent::written).collect();
        assert_eq!(written, [&b"a\xff"[..], b"b"]);
        // The output of these bytes was torn off, and another one follows.
        let torn = format!("{header}{exact}{}", event_line(second, 'o', "b"));
        assert_eq!(events(&torn), [Ok(output(2000, "b"))]);
        let garbage = format!("{header}{}", event_line(first, 'b', "xyz"));
        assert_eq!(events(&garbage), []);
    }

    #[test]
    fn a_broken_line_is_named_and_a_torn_last_line_is_dropped() {
        let header = header_line(80, 24, 0, "");
        let broken = events(&format!("{header}[1.0, \"o\", \"a\"]\n[1.0, \"o\"\n"));
        assert!(
            broken[1].as_ref().is_err_and(|e| e.starts_with("line 3: ")),
            "{broken:?}"
        );
        assert_eq!(
            events(&format!("{header}[1.0, \"o\", \"a\"]\n[1.5, \"o\", \"b")),
            [Ok(output(1000, "a"))]
        );
        assert!(events(&format!("{header}[-1.0, \"o\", \"a\"]\n"))[0].is_err());
        assert!(events(&format!("{header}[1.0, \"r\", \"80\"]\n"))[0].is_err());
    }

    #[test]
    fn a_file_that_is_no_recording_is_told_so() {
        for text in [
            "",
            "hello\n",
            "{\"version\": 1}\n",
            "{\"version\": 2}\n",
            "[1,2]\n",
        ] {
            let error = Recording::read(text.as_bytes())
                .expect_err("no header")
                .to_string();
            assert!(error.starts_with("line 1: "), "{error}");
        }
    }
}
