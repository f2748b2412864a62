//! The messages between daemon and shim: frames `[kind: u8][length: u32 le][payload]`. Pure.
//!
//! Output and input are raw (a number, then bytes); everything else is JSON in which unknown fields are ignored, so that an old
//! shim and a new daemon understand each other.

use super::{FromShim, Hello, ToShim};
use crate::core::terminal::At;
use std::time::Duration;

const KIND_INPUT: u8 = 1;
const KIND_COMMAND: u8 = 2;
const KIND_HELLO: u8 = 16;
const KIND_OUTPUT: u8 = 17;
const KIND_REPORT: u8 = 18;

const HEAD: usize = 5;
const NUMBER: usize = 8;

/// The longest payload: a paste of 1 MB with room for its brackets and for escaping.
pub const MAX_PAYLOAD: usize = 2 << 20;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WireError {
    #[error("a frame of {0} bytes is longer than the limit of {MAX_PAYLOAD}")]
    TooLong(usize),
    #[error("a frame of kind {kind} is broken: {reason}")]
    Broken { kind: u8, reason: String },
}

/// One received frame; its meaning depends on the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub payload: Vec<u8>,
}

/// A message from a shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeardMessage {
    Hello(Hello),
    Message(FromShim),
    /// From a newer shim.
    Unknown,
}

/// Assembles frames from bytes that may be split anywhere.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Bytes at the beginning of the buffer that were already returned.
    used: usize,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.used);
        self.used = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame, if it is there. After an error the stream can't be read any further.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let rest = &self.buffer[self.used..];
        let Some((&[kind, a, b, c, d], body)) = rest.split_first_chunk::<HEAD>() else {
            self.forget_if_empty();
            return Ok(None);
        };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_PAYLOAD {
            return Err(WireError::TooLong(length));
        }
        let Some(payload) = body.get(..length) else {
            return Ok(None);
        };
        let payload = payload.to_vec();
        self.used += HEAD + length;
        Ok(Some(Frame { kind, payload }))
    }

    /// A long paste must not keep its memory for the rest of a long life.
    fn forget_if_empty(&mut self) {
        if self.used == self.buffer.len() {
            self.buffer = Vec::new();
            self.used = 0;
        }
    }
}

pub fn put_hello(out: &mut Vec<u8>, hello: &Hello) {
    put_json(out, KIND_HELLO, hello);
}

pub fn put_report(out: &mut Vec<u8>, message: &FromShim) {
    match message {
        FromShim::Output { at, bytes } => put_output(out, *at, bytes),
        report => put_json(out, KIND_REPORT, report),
    }
}

pub fn put_output(out: &mut Vec<u8>, at: At, bytes: &[u8]) {
    put_numbered(out, KIND_OUTPUT, micros_of(at), bytes);
}

pub fn put_command(out: &mut Vec<u8>, message: &ToShim) {
    match message {
        ToShim::Input { n, bytes } => put_numbered(out, KIND_INPUT, *n, bytes),
        command => put_json(out, KIND_COMMAND, command),
    }
}

/// The meaning of a frame for the daemon.
pub fn heard(frame: Frame) -> Result<HeardMessage, WireError> {
    match frame.kind {
        KIND_HELLO => from_json(&frame).map(HeardMessage::Hello),
        KIND_OUTPUT => {
            let (micros, bytes) = numbered(frame)?;
            let at = Duration::from_micros(micros);
            Ok(HeardMessage::Message(FromShim::Output { at, bytes }))
        }
        KIND_REPORT => Ok(known(&frame)?.map_or(HeardMessage::Unknown, HeardMessage::Message)),
        _ => Ok(HeardMessage::Unknown),
    }
}

/// The meaning of a frame for the shim; `None` for an unknown command of a newer daemon.
pub fn command(frame: Frame) -> Result<Option<ToShim>, WireError> {
    match frame.kind {
        KIND_INPUT => {
            let (n, bytes) = numbered(frame)?;
            Ok(Some(ToShim::Input { n, bytes }))
        }
        KIND_COMMAND => known(&frame),
        _ => Ok(None),
    }
}

/// Whole microseconds; enough for half a million years.
pub(super) fn micros_of(at: At) -> u64 {
    u64::try_from(at.as_micros()).unwrap_or(u64::MAX)
}

fn put_numbered(out: &mut Vec<u8>, kind: u8, number: u64, bytes: &[u8]) {
    put_head(out, kind, NUMBER + bytes.len());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The types of this module always have a JSON form. If one did not, the other end would refuse the empty payload.
fn put_json<T: serde::Serialize>(out: &mut Vec<u8>, kind: u8, value: &T) {
    let json = serde_json::to_vec(value).unwrap_or_default();
    put_head(out, kind, json.len());
    out.extend_from_slice(&json);
}

/// The other end refuses a payload over the limit; saturating only prevents that its length looks small.
fn put_head(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn numbered(mut frame: Frame) -> Result<(u64, Vec<u8>), WireError> {
    let Some(number) = frame.payload.first_chunk::<NUMBER>() else {
        return Err(broken(&frame, "its number is missing"));
    };
    let number = u64::from_le_bytes(*number);
    frame.payload.drain(..NUMBER);
    Ok((number, frame.payload))
}

/// A JSON message known to this binary; `None` if its type is unknown.
fn known<T: serde::de::DeserializeOwned>(frame: &Frame) -> Result<Option<T>, WireError> {
    from_json::<T>(frame).map(Some).or_else(|fault| {
        let any: serde_json::Value = from_json(frame)?;
        let is_message = any.get("type").is_some_and(|name| name.is_string());
        if is_message { Ok(None) } else { Err(fault) }
    })
}

fn from_json<T: serde::de::DeserializeOwned>(frame: &Frame) -> Result<T, WireError> {
    serde_json::from_slice(&frame.payload).map_err(|fault| broken(frame, fault))
}

fn broken(frame: &Frame, reason: impl ToString) -> WireError {
    WireError::Broken {
        kind: frame.kind,
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::ExitReport;
    use crate::shim::PROTOCOL;
    use proptest::prelude::*;

    fn reports() -> impl Strategy<Value = FromShim> {
        let at = || any::<u32>().prop_map(|us| At::from_micros(us.into()));
        let bytes = prop::collection::vec(any::<u8>(), 0..200);
        prop_oneof![
            (at(), bytes).prop_map(|(at, bytes)| FromShim::Output { at, bytes }),
            at().prop_map(|at| FromShim::Quiet { at }),
            (at(), any::<(u16, u16)>()).prop_map(|(at, (cols, rows))| FromShim::Resized {
                at,
                cols,
                rows
            }),
            any::<u64>().prop_map(|n| FromShim::Written { n }),
            (any::<u64>(), ".*").prop_map(|(n, reason)| FromShim::Refused { n, reason }),
            ".*".prop_map(|text| FromShim::Trouble { text }),
            Just(FromShim::Ends),
            at().prop_map(|at| FromShim::Rotated { at }),
            ".*".prop_map(|reason| FromShim::NotRotated { reason }),
            (any::<Option<i32>>(), any::<Option<i32>>())
                .prop_map(|(code, signal)| FromShim::Exited(ExitReport { code, signal })),
        ]
    }

    fn commands() -> impl Strategy<Value = ToShim> {
        prop_oneof![
            (any::<u64>(), prop::collection::vec(any::<u8>(), 0..200))
                .prop_map(|(n, bytes)| ToShim::Input { n, bytes }),
            any::<(u16, u16)>().prop_map(|(cols, rows)| ToShim::Resize { cols, rows }),
            any::<(i32, bool)>()
                .prop_map(|(signal, foreground)| ToShim::Signal { signal, foreground }),
            any::<u64>().prop_map(|grace_ms| ToShim::Stop { grace_ms }),
            ".*".prop_map(|text| ToShim::Mark { text }),
            ".*".prop_map(|note| ToShim::Keep { note }),
            Just(ToShim::Taking),
            Just(ToShim::Dismiss),
        ]
    }

    fn frames_of(wire: &[u8], cut: usize) -> Vec<Frame> {
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        for chunk in wire.chunks(cut) {
            decoder.push(chunk);
            while let Some(frame) = decoder.next_frame().unwrap() {
                frames.push(frame);
            }
        }
        frames
    }

    proptest! {
        #[test]
        fn reports_survive_any_cut(sent in prop::collection::vec(reports(), 0..20), cut in 1usize..64) {
            let mut wire = Vec::new();
            sent.iter().for_each(|message| put_report(&mut wire, message));
            let got: Vec<_> = frames_of(&wire, cut).into_iter().map(|f| heard(f).unwrap()).collect();
            prop_assert_eq!(got, sent.into_iter().map(HeardMessage::Message).collect::<Vec<_>>());
        }

        #[test]
        fn commands_survive_any_cut(sent in prop::collection::vec(commands(), 0..20), cut in 1usize..64) {
            let mut wire = Vec::new();
            sent.iter().for_each(|message| put_command(&mut wire, message));
            let got: Vec<_> = frames_of(&wire, cut).into_iter().map(|f| command(f).unwrap()).collect();
            prop_assert_eq!(got, sent.into_iter().map(Some).collect::<Vec<_>>());
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            while let Ok(Some(frame)) = decoder.next_frame() {
                let _ = heard(frame.clone());
                let _ = command(frame);
            }
        }
    }

    fn json_frame(kind: u8, json: &str) -> Frame {
        let payload = json.as_bytes().to_vec();
        Frame { kind, payload }
    }

    #[test]
    fn a_newer_side_may_say_more() {
        let hello = format!(
            r#"{{"protocol":{PROTOCOL},"slot":"a","shim_pid":1,"child_pid":2,"cols":3,"rows":4,
            "recording":"/r","recorded":5,"last_input":6,"exit":null,"mood":"fine"}}"#
        );
        let Ok(HeardMessage::Hello(hello)) = heard(json_frame(KIND_HELLO, &hello)) else {
            panic!("an unknown field must be passed over");
        };
        assert_eq!((hello.protocol, hello.last_input), (PROTOCOL, 6));
        assert_eq!(hello.note, None, "an older shim keeps no note");
        let resize = json_frame(
            KIND_COMMAND,
            r#"{"type":"resize","cols":1,"rows":2,"px":3}"#,
        );
        assert_eq!(
            command(resize),
            Ok(Some(ToShim::Resize { cols: 1, rows: 2 }))
        );
        let sing = r#"{"type":"sing"}"#;
        assert_eq!(command(json_frame(KIND_COMMAND, sing)), Ok(None));
        assert_eq!(
            heard(json_frame(KIND_REPORT, sing)),
            Ok(HeardMessage::Unknown)
        );
        assert_eq!(heard(json_frame(99, "")), Ok(HeardMessage::Unknown));
        assert!(command(json_frame(KIND_COMMAND, "{")).is_err());
        assert!(command(json_frame(KIND_INPUT, "short")).is_err());
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_before_it_is_kept() {
        let mut decoder = Decoder::default();
        decoder.push(&[KIND_INPUT, 255, 255, 255, 255]);
        assert_eq!(
            decoder.next_frame(),
            Err(WireError::TooLong(u32::MAX as usize))
        );
    }
}
