//! The recording is rotated before it grows without end. The shim does it, with a snapshot of the screen from
//! here, so that each file can be replayed alone and a daemon that comes later reads the newest one only.

use super::Slot;
use super::journal::cap_of;
use super::kind::ProgramKind;
use super::lookups::LookedUp;
use crate::core::claude::reading::State;
use crate::os::files;
use crate::os::log_file::Cap;
use crate::shim::{Hello, ToShim};
use std::path::PathBuf;

/// A program that never pauses is looked after as often as it has written this much.
const LOOK_EVERY: usize = 1 << 20;

/// Output between two screens that the shim keeps for the next daemon. What is kept of the output of a slot has to lie behind
/// one of them.
const CHECKPOINT_EVERY: usize = 512 << 10;

/// How often one rotation is asked for. The shim refuses when there is newer output than the snapshot shows, and
/// then reads no more for a moment, so that the second snapshot is mostly right.
const MAX_ATTEMPTS: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Rotation {
    /// The file that the shim writes.
    pub recording: PathBuf,
    /// Output since the file's length was looked at.
    unlooked: usize,
    /// The file is being looked at.
    looking: bool,
    /// How often the rotation that is under way was asked for; 0 when there is none.
    attempts: u32,
    /// Output since the shim was given a screen to keep; `None` for an older shim, which keeps none.
    unkept: Option<usize>,
}

impl Rotation {
    /// For a shim that was just connected to.
    pub fn of(hello: &Hello) -> Rotation {
        Rotation {
            recording: hello.recording.clone(),
            unkept: hello.written.map(|_| 0),
            ..Rotation::default()
        }
    }
}

impl<K: ProgramKind> Slot<K> {
    pub(super) fn has_written(&mut self, bytes: usize) {
        self.link.rotation().unlooked += bytes;
        self.keep_screen(bytes);
        if self.link.rotation().unlooked >= LOOK_EVERY {
            self.rotate_if_due();
        }
    }

    /// Has the shim keep the screen now and then, so that the next daemon need not draw all that was ever written. A program
    /// whose output is all kept is read from the beginning anyway.
    fn keep_screen(&mut self, bytes: usize) {
        let Some(unkept) = &mut self.link.rotation().unkept else {
            return;
        };
        *unkept += bytes;
        if *unkept < CHECKPOINT_EVERY || !K::READS_SCREEN {
            return;
        }
        let knows_alternate = self.own.last_seen().is_some_and(|seen| {
            use State::{Idle, Responding, Thinking, ToolRunning};
            matches!(seen.state, Idle | Responding | Thinking | ToolRunning)
        });
        if let Some(screen) = self.screen.kept(knows_alternate) {
            self.tell_shim(&ToShim::Checkpoint(screen));
            self.link.rotation().unkept = Some(0);
        }
    }

    /// At best when the program is quiet.
    pub(super) fn rotate_if_due(&mut self) {
        self.link.rotation().unlooked = 0;
        if std::mem::replace(&mut self.link.rotation().looking, true) {
            return;
        }
        let recording = self.link.rotation().recording.clone();
        self.lookups.of_recording(
            move || std::fs::metadata(&recording).map(|file| file.len()),
            |length| LookedUp::RecordingLength(length.flatten().ok()),
        );
    }

    /// The recording was looked at.
    pub(super) fn rotate_if_long(&mut self, length: Option<u64>) {
        self.link.rotation().looking = false;
        let sizes = length.unwrap_or(0) / self.cap().bytes;
        // A snapshot is a screen that was drawn at once: it can't say that this one is not drawn for its size yet.
        let drawn = !self.screen.terminal().is_outdated() || sizes >= 4;
        if sizes > 0 && drawn && self.link.rotation().attempts == 0 && self.may_rotate(sizes) {
            self.ask_for_rotation();
        }
    }

    /// A dialog's id says when it came up, which a snapshot can't; and what a program is at is best read from
    /// what led to it. So an idle moment is waited for, though not for ever: `sizes` is how many times its size
    /// the recording has.
    fn may_rotate(&self, sizes: u64) -> bool {
        match self.machine.state() {
            State::Idle => true,
            State::Confirming => sizes >= 4,
            _ => sizes >= 2,
        }
    }

    fn cap(&self) -> Cap {
        cap_of(&self.program.settings().supervision)
    }

    fn ask_for_rotation(&mut self) {
        self.link.rotation().attempts += 1;
        let (recording, files) = (self.link.rotation().recording.clone(), self.cap().files);
        self.lookups.of_recording(
            // If this fails the oldest file is overwritten, which keeps the total.
            move || drop(files::make_room(&recording, files)),
            |_| LookedUp::RoomMade,
        );
    }

    pub(super) fn send_rotation(&mut self) {
        let recording = &self.link.rotation().recording;
        let message = ToShim::Rotate {
            to: files::rotated(recording, 1),
            seen: self.screen.terminal().last_change(),
            snapshot: String::from_utf8_lossy(&self.screen.terminal().snapshot()).into_owned(),
        };
        self.tell_shim(&message);
    }

    pub(super) fn rotated(&mut self) {
        self.link.rotation().attempts = 0;
    }

    pub(super) fn not_rotated(&mut self, reason: &str) {
        if self.link.rotation().attempts < MAX_ATTEMPTS {
            return self.ask_for_rotation();
        }
        tracing::debug!(slot = %self.program.settings().name, "not rotated: {reason}");
        self.link.rotation().attempts = 0;
    }
}
