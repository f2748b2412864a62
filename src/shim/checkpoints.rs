//! Screens that a shim keeps for its daemon: the next daemon replays the output after one of them, and not the whole recording.
//! They are never written to disk, and end with the program.

use super::{Checkpoint, KeptScreen};
use crate::core::terminal::At;
use std::collections::VecDeque;

/// The most checkpoints. They are 512 KiB of output apart, and the kept output of a slot (1 MiB) must begin after one of them.
const MAX_KEPT: usize = 4;

/// The most bytes of all screens together. JSON needs up to six bytes for one of them, and a greeting must fit into a frame with
/// the note. A screen of 120 x 40 has about 8 KB.
const MAX_BYTES: usize = 80 << 10;

/// The distance between two noted positions of the recording in bytes, and their number: a daemon is never further behind.
const PLACES_APART: u64 = 64 << 10;
const MAX_PLACES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    kept: VecDeque<Checkpoint>,
    places: VecDeque<RecordingPlace>,
    /// Bytes that the program wrote.
    written: u64,
}

/// A position in the recording: everything up to time `at` is before `position`.
#[derive(Debug)]
struct RecordingPlace {
    at: At,
    position: u64,
    written: u64,
}

impl Checkpoints {
    /// The program wrote this many bytes, and the recording has them before `position`, if that is known.
    pub fn wrote(&mut self, at: At, bytes: usize, position: Option<u64>) {
        self.written += bytes as u64;
        let Some(position) = position else { return };
        let last = self.places.back().map_or(0, |place| place.position);
        if position >= last + PLACES_APART {
            if self.places.len() == MAX_PLACES {
                self.places.pop_front();
            }
            let written = self.written;
            self.places.push_back(RecordingPlace {
                at,
                position,
                written,
            });
        }
    }

    /// Keeps a screen, if the position to read after it is known.
    pub fn keep(&mut self, screen: KeptScreen) {
        let later = self.places.partition_point(|place| place.at <= screen.seen);
        let Some(before) = later.checked_sub(1).and_then(|at| self.places.get(at)) else {
            return;
        };
        let written = self.places.get(later).map(|place| place.written);
        self.kept.push_back(Checkpoint {
            from: before.position,
            written: written.unwrap_or(self.written),
            screen,
        });
        let bytes = |kept: &Checkpoint| kept.screen.screen.len();
        while self.kept.len() > MAX_KEPT || self.kept.iter().map(bytes).sum::<usize>() > MAX_BYTES {
            self.kept.pop_front();
        }
    }

    /// The recording starts again, with its own screen.
    pub fn forget(&mut self) {
        self.kept.clear();
        self.places.clear();
    }

    /// Oldest first.
    pub fn kept(&self) -> Vec<Checkpoint> {
        self.kept.iter().cloned().collect()
    }

    pub fn written(&self) -> u64 {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> At {
        At::from_millis(ms)
    }

    fn screen(ms: u64, bytes: usize) -> KeptScreen {
        KeptScreen {
            seen: at(ms),
            screen: "x".repeat(bytes),
            ..KeptScreen::default()
        }
    }

    /// The output after a screen is at or after the position to read from, and no more output came since than reported.
    #[test]
    fn a_checkpoint_begins_before_what_follows_it() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.keep(screen(0, 1));
        assert_eq!(checkpoints.kept(), [], "nothing is known of the recording");
        for n in 1..=100 {
            // As JSON each piece has twice its length.
            checkpoints.wrote(at(n), 10_000, Some(n * 20_000));
        }
        checkpoints.keep(screen(50, 1));
        let kept = checkpoints.kept();
        let [kept] = &kept[..] else {
            panic!("{kept:?}");
        };
        assert!(kept.from <= 50 * 20_000 && kept.from > 40 * 20_000);
        assert!(kept.written >= 50 * 10_000 && kept.written < 60 * 10_000);
        checkpoints.keep(screen(100, 1));
        assert_eq!(checkpoints.kept()[1].written, checkpoints.written());
        checkpoints.forget();
        checkpoints.keep(screen(100, 1));
        assert_eq!(checkpoints.kept(), []);
    }

    #[test]
    fn few_are_kept_and_all_fit_into_a_greeting() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.wrote(at(1), 1, Some(PLACES_APART));
        for n in 1..=10 {
            checkpoints.keep(screen(n, 1000));
        }
        let seen = |checkpoints: &Checkpoints| -> Vec<At> {
            let kept = checkpoints.kept();
            kept.iter().map(|kept| kept.screen.seen).collect()
        };
        assert_eq!(seen(&checkpoints), [7, 8, 9, 10].map(at));
        checkpoints.keep(screen(11, MAX_BYTES - 1000));
        assert_eq!(seen(&checkpoints), [10, 11].map(at));
        checkpoints.keep(screen(12, MAX_BYTES + 1));
        assert_eq!(seen(&checkpoints), []);
    }
}
