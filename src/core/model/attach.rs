//! The live terminal of a slot. `attach` is answered like any request; after that the connection carries frames instead of lines.
//! Each frame has a length of four bytes (big-endian), a kind and its content.

use super::RpcError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most bytes of one frame, in both directions: many screens. Longer output is sent as several frames.
pub const MAX_FRAME: usize = 64 << 10;

const KIND_BYTES: u8 = 1;
const KIND_JSON: u8 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachAnswer {
    pub slot: String,
    pub pid: Option<u32>,
}

/// A frame from the person's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromViewer {
    /// Typed bytes.
    Keys(Vec<u8>),
    /// The terminal has this size now, and wants a redraw.
    Resize { cols: u16, rows: u16 },
}

/// A frame to the person's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToViewer {
    /// Bytes to write to the terminal unchanged.
    Output(Vec<u8>),
    /// The last frame.
    End(Ending),
}

/// Why the view ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Ending {
    /// The program ended.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The daemon ends and leaves the program in its shim.
    DaemonEnds,
    /// The slot was removed from the config.
    Removed,
    /// The typed keys were refused, and not pressed.
    Refused(RpcError),
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a frame of an attached terminal is broken: {0}")]
pub struct BrokenFrame(String);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Size {
    cols: u16,
    rows: u16,
}

impl FromViewer {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            FromViewer::Keys(bytes) => frame(KIND_BYTES, bytes),
            FromViewer::Resize { cols, rows } => json_frame(&Size {
                cols: *cols,
                rows: *rows,
            }),
        }
    }

    pub fn decode(frame: &[u8]) -> Result<FromViewer, BrokenFrame> {
        match taken_apart(frame)? {
            (KIND_BYTES, bytes) => Ok(FromViewer::Keys(bytes.to_vec())),
            (_, json) => {
                let Size { cols, rows } = from_json(json)?;
                Ok(FromViewer::Resize { cols, rows })
            }
        }
    }
}

impl ToViewer {
    /// One frame, or several for a long output.
    pub fn encode(&self) -> Vec<Vec<u8>> {
        match self {
            ToViewer::Output(bytes) => bytes
                .chunks(MAX_FRAME - 1)
                .map(|part| frame(KIND_BYTES, part))
                .collect(),
            ToViewer::End(ending) => vec![json_frame(ending)],
        }
    }

    pub fn decode(frame: &[u8]) -> Result<ToViewer, BrokenFrame> {
        match taken_apart(frame)? {
            (KIND_BYTES, bytes) => Ok(ToViewer::Output(bytes.to_vec())),
            (_, json) => from_json(json).map(ToViewer::End),
        }
    }
}

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind], content].concat()
}

/// These types always have a JSON form.
fn json_frame(value: &impl Serialize) -> Vec<u8> {
    frame(KIND_JSON, &serde_json::to_vec(value).unwrap_or_default())
}

fn taken_apart(frame: &[u8]) -> Result<(u8, &[u8]), BrokenFrame> {
    match frame {
        [kind @ (KIND_BYTES | KIND_JSON), content @ ..] => Ok((*kind, content)),
        [kind, ..] => Err(BrokenFrame(format!("kind {kind} is unknown"))),
        [] => Err(BrokenFrame("it is empty".to_owned())),
    }
}

fn from_json<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T, BrokenFrame> {
    serde_json::from_slice(json).map_err(|error| BrokenFrame(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_say_what_was_meant() {
        let sent = [
            FromViewer::Keys(b"\x1b[A\xff".to_vec()),
            FromViewer::Resize { cols: 80, rows: 24 },
        ];
        for message in sent {
            assert_eq!(FromViewer::decode(&message.encode()), Ok(message));
        }
        let long = vec![b'x'; 3 * MAX_FRAME];
        let frames = ToViewer::Output(long.clone()).encode();
        assert!(frames.iter().all(|frame| frame.len() <= MAX_FRAME));
        let got = frames.iter().map(|frame| ToViewer::decode(frame));
        let got: Vec<u8> = got
            .flat_map(|message| match message {
                Ok(ToViewer::Output(bytes)) => bytes,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(got, long);
        let end = ToViewer::End(Ending::Exited {
            code: Some(1),
            signal: None,
        });
        assert_eq!(ToViewer::decode(&end.encode()[0]), Ok(end));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for broken in [
            &b""[..],
            b"\x09x",
            b"\x02",
            b"\x02{}",
            b"\x02{\"why\":\"magic\"}",
        ] {
            assert!(
                FromViewer::decode(broken).is_err() || broken == b"",
                "{broken:?}"
            );
            assert!(ToViewer::decode(broken).is_err(), "{broken:?}");
        }
    }
}
