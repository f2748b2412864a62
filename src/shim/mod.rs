//! One small process per slot that owns the PTY and outlives the daemon. The only module that names
//! portable-pty.
//!
//! The shim opens the PTY, spawns and reaps the child and its orphans, appends what it reads to the
//! recording, then passes it on; it writes what it is told once (each input has a number) and reports
//! the exit. It has no async runtime. The daemon's end of the connection is [`ShimLink`].

use crate::terminal::At;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything a shim needs to begin; given as JSON on its standard input, never in argv.
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
}

/// What a shim says when a daemon connects.
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
    /// Bytes of the recording file that are already written; what follows comes as `Output`.
    pub recorded: u64,
    /// The number of the last input that was written to the PTY, 0 for none.
    pub last_input: u64,
    /// Set when the child has ended.
    pub exit: Option<ExitReport>,
}

/// How the child ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// From the shim to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromShim {
    /// Text that the child wrote, as it stands in the recording at recorded time `at`.
    Output {
        at: At,
        bytes: Vec<u8>,
    },
    /// There was no output from the last `Output` until `at`.
    Quiet {
        at: At,
    },
    /// Input number `n` is written to the PTY.
    Written {
        n: u64,
    },
    Exited(ExitReport),
}

/// From the daemon to the shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToShim {
    /// Written to the PTY unless an input with this or a higher number was written before.
    Input {
        n: u64,
        bytes: Vec<u8>,
    },
    Resize {
        cols: u16,
        rows: u16,
    },
    /// To the child's whole process group.
    Signal {
        signal: i32,
    },
    /// TERM to the whole tree, then KILL after `grace_ms`; the shim reports the exit and ends itself.
    Stop {
        grace_ms: u64,
    },
    /// A marker in the recording, such as a state change.
    Mark {
        text: String,
    },
    /// The exit was received and noted; the shim may end.
    Dismiss,
}
