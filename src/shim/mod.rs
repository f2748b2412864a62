//! One small process per slot that owns the PTY and outlives the daemon. The only module that names portable-pty.
//!
//! The shim opens the PTY, spawns and reaps the child and its orphans, appends the output to the recording, then passes it on. It
//! writes each input once (each has a number) and reports the exit. It has no async runtime. The daemon's end of the connection
//! is [`ShimLink`].
//!
//! A daemon that connects reads the recording up to [`Hello::recorded`]; later output arrives as [`FromShim::Output`], with the
//! recorded times, which only ever grow. A daemon that reads too slowly is disconnected: it connects again and finds what it
//! missed in the recording, after the time it last saw.

mod cast;
mod check;
mod checkpoints;
mod clock;
mod handle;
mod inputs;
mod limits;
mod link;
mod listener;
mod process;
mod pty;
mod recorder;
mod recording_file;
mod run;
mod snapshot;
mod text;
mod tree;
pub mod wire;
mod writer;

pub use check::check_program;
pub use handle::Handle;
pub use link::{LaunchError, LinkError, ShimLink};
pub use process::{VERB, main};

use crate::core::model::ExitReport;
use crate::core::settings::limits::Limits;
use crate::core::terminal::At;
use crate::os::log_file::Cap;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Version of the protocol between daemon and shim. It grows when a message changes its meaning; new fields and messages alone
/// don't need that, since both sides ignore what they don't know.
pub const PROTOCOL: u32 = 2;

/// The longest note that a shim keeps. JSON needs up to six bytes for one of them, and a greeting must fit into a frame.
pub const MAX_NOTE: usize = 256 << 10;

/// Everything that a shim needs to begin; passed as JSON on its standard input, never in argv.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimSpec {
    pub slot: String,
    /// The program, resolved to an absolute path, and its arguments.
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The child's whole environment.
    pub env: Vec<(String, String)>,
    pub cols: u16,
    pub rows: u16,
    /// The asciicast file to append to.
    pub recording: PathBuf,
    /// The unix socket to listen on.
    pub socket: PathBuf,
    /// The kernel's limits for the child and its descendants.
    #[serde(default)]
    pub limits: Limits,
    /// The control group of the child and its descendants, if the slot has its own.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
    #[serde(default)]
    pub keeper: ShimKeeper,
    /// How much of the recording is kept while no daemon manages it.
    #[serde(default)]
    pub cap: Option<Cap>,
}

/// The daemon that a shim belongs to. The shim has both paths in its arguments, where a daemon that has lost its files can find
/// them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimKeeper {
    /// The daemon's state directory.
    pub home: PathBuf,
    pub config: PathBuf,
}

/// A shim's greeting when a daemon connects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of this protocol.
    pub protocol: u32,
    pub slot: String,
    pub shim_pid: u32,
    pub child_pid: u32,
    pub cols: u16,
    pub rows: u16,
    pub recording: PathBuf,
    /// Bytes of the recording file that are already written; later output comes as `Output`, also what waits for the disk.
    pub recorded: u64,
    /// The number of the last input that the shim has taken, 0 for none: it is written to the PTY, or
    /// will be as soon as the child reads. The next input has a higher number.
    pub last_input: u64,
    /// Set when the child has ended.
    pub exit: Option<ExitReport>,
    /// When that was. An older shim does not say.
    #[serde(default)]
    pub ended_at: Option<DateTime<Utc>>,
    /// What a daemon has had it keep last; empty if nothing. An older shim keeps nothing.
    #[serde(default)]
    pub note: Option<String>,
    /// Bytes that the program has written. An older shim does not say, and keeps no screens.
    #[serde(default)]
    pub written: Option<u64>,
    /// The screens that a daemon has had it keep, oldest first.
    #[serde(default)]
    pub checkpoints: Vec<Checkpoint>,
}

/// A screen that a daemon has drawn, for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptScreen {
    /// The recorded time of the last change that it shows.
    #[serde(with = "micros")]
    pub seen: At,
    pub cols: u16,
    pub rows: u16,
    /// What draws it on a fresh terminal.
    pub screen: String,
    /// Where the output was then.
    pub output: OutputMark,
}

/// A place in the output of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputMark {
    /// All that was ever written, in bytes.
    pub end: u64,
    /// Where the output of the program that runs begins.
    pub run: u64,
    /// Whether newer output had pushed out older.
    pub overflows: bool,
}

/// A screen that is kept, with its place in the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The byte of the recording at which a line begins, and behind which all lies that came after the screen.
    pub from: u64,
    /// No more than so many bytes had been written by then.
    pub written: u64,
    #[serde(flatten)]
    pub screen: KeptScreen,
}

/// From the shim to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromShim {
    /// What the child wrote, byte for byte, as it stands in the recording at recorded time `at`; no character of it
    /// is cut.
    #[serde(skip)]
    Output { at: At, bytes: Vec<u8> },
    /// There was no output from the last `Output` until `at`.
    Quiet {
        #[serde(with = "micros")]
        at: At,
    },
    /// The terminal has this size from `at` on, as the recording says. Whoever keeps a screen follows
    /// this and not its own wish, so that a replay sees the same bytes at the same size.
    Resized {
        #[serde(with = "micros")]
        at: At,
        cols: u16,
        rows: u16,
    },
    /// Input number `n` is written to the PTY.
    Written { n: u64 },
    /// Nothing more of input number `n` will be written; an input that is sent again takes a new number.
    Refused { n: u64, reason: String },
    /// The recording was rotated; it goes on in a new file with times after `at`.
    Rotated {
        #[serde(with = "micros")]
        at: At,
    },
    /// The recording goes on in the old file.
    NotRotated { reason: String },
    /// Something that a person should know and that stops nothing, such as a full disk; told once.
    Trouble { text: String },
    /// Whether the disk of the recording does not answer. An older shim does not say.
    RecordingHangs { hangs: bool },
    /// Somebody other than the daemon told the shim to end, so it ends the program; that may take seconds.
    Ends,
    /// The child and all its descendants have ended, and all that they wrote was passed on.
    Exited(ExitReport),
}

/// From the daemon to the shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToShim {
    /// Written to the PTY unless an input with this or a higher number was taken before.
    #[serde(skip)]
    Input {
        n: u64,
        bytes: Vec<u8>,
    },
    Resize {
        cols: u16,
        rows: u16,
    },
    /// To the process group in the foreground of the terminal, else to the child's own; each whole.
    Signal {
        signal: i32,
        #[serde(default)]
        foreground: bool,
    },
    /// TERM to the whole tree, then KILL after `grace_ms`; the shim reports the exit.
    Stop {
        grace_ms: u64,
    },
    /// A marker in the recording, such as a state change.
    Mark {
        text: String,
    },
    /// Moves the recording to `to` and begins a new file with `snapshot`, the bytes that draw the screen
    /// as it was after the output or resize at `seen`. Refused when something newer has come, which would
    /// be missing from the snapshot: ask again when the slot is quiet.
    Rotate {
        to: PathBuf,
        #[serde(with = "micros")]
        seen: At,
        snapshot: String,
    },
    /// Keep this for the next daemon, in place of what was kept before; at most [`MAX_NOTE`] bytes. It is never written
    /// to a disk, and ends with the program.
    Keep {
        note: String,
    },
    /// Keep this screen for the next daemon. Sent only to a shim that says how much was written.
    Checkpoint(KeptScreen),
    /// Somebody removed the socket or the recording: the shim makes them again.
    Restore,
    /// The daemon is alive and works on what it was sent. While it says so, a program that writes faster than the
    /// daemon reads is held back, and the connection stays.
    Taking,
    /// The exit was received and noted; the shim may end.
    Dismiss,
}

/// Recorded time in whole microseconds, as precise as the recording.
mod micros {
    use super::{At, Duration};
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(at: &At, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(super::wire::micros_of(*at))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<At, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}
