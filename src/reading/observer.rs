//! Readings in a row: what one screen can't tell by itself.

use super::read::unknown_view;
use super::{Dialog, DialogKind, Notices, Reading, Seen, State, read};
use crate::hex;
use crate::terminal::{At, Frame};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// How long a screen may be unknown before it counts as a view of its own. Half-drawn screens, where
/// frames are not marked, last for some ten milliseconds.
const UNKNOWN_PATIENCE: Duration = Duration::from_millis(300);

/// What is known after a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub state: State,
    /// The dialog that is up, with its id.
    pub dialog: Option<Dialog>,
    /// What this frame showed; `Unknown` where it was passed over for the state.
    pub reading: Reading,
}

impl Observed {
    /// Whether the last frame says it all: nothing that was seen before it matters to what comes after.
    pub fn stands_alone(&self) -> bool {
        matches!(
            self.reading.seen,
            Seen::Idle | Seen::Thinking | Seen::Responding | Seen::ToolRunning
        )
    }
}

/// Sees one frame after the other. Used by the live slot and by replay, so that both tell the same.
#[derive(Debug)]
pub struct Observer {
    observed: Observed,
    /// Whether the program has been seen past its start.
    was_up: bool,
    /// What the screen will mean if it stays, and since when it has been there.
    unsure: Option<(At, IfItStays)>,
    /// What the open dialog says, by which the next frame's is recognised.
    dialog_says: Vec<u8>,
}

/// What a screen that stays for [`UNKNOWN_PATIENCE`] means.
#[derive(Debug)]
enum IfItStays {
    /// A view that is not known.
    View(Dialog),
    /// The program has ended, though it has left its title standing.
    End,
}

impl Default for Observer {
    fn default() -> Observer {
        Observer::new()
    }
}

impl Observer {
    pub fn new() -> Observer {
        let reading = Reading {
            seen: Seen::Starting,
            composer: None,
            mode: None,
            last_error: None,
            background: 0,
            notices: Notices::default(),
            because: vec!["nothing has been drawn yet".to_owned()],
        };
        let observed = Observed {
            state: State::Starting,
            dialog: None,
            reading,
        };
        Observer {
            observed,
            was_up: false,
            unsure: None,
            dialog_says: Vec::new(),
        }
    }

    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Takes the next frame in, after [`Observer::wait`] up to its time.
    pub fn see(&mut self, frame: &Frame) -> &Observed {
        self.wait(frame.at);
        let reading = read(&frame.screen);
        let state = self.next_state(&reading.seen, &frame.screen.title);
        self.was_up |= is_up(&reading);
        self.unsure = self.if_it_stays(&reading, state, frame);
        let dialog = match &reading.seen {
            Seen::Dialog(dialog) => Some(self.named(dialog.clone(), frame.at)),
            Seen::Unknown => self.observed.dialog.take(),
            // The view that a screen with nobody behind it was taken for stays.
            Seen::Starting if state == State::Confirming => self.observed.dialog.take(),
            _ => None,
        };
        self.observed = Observed {
            state,
            dialog,
            reading,
        };
        &self.observed
    }

    /// Recorded time has come to `at` with no further frame. A screen that is still not known by then is
    /// a view that takes the keys, and one that nobody listens behind is the last; returns since when, where that
    /// is news.
    pub fn wait(&mut self, at: At) -> Option<At> {
        let due = self.due().filter(|due| *due <= at)?;
        match self.unsure.take()?.1 {
            IfItStays::View(dialog) => {
                self.observed.dialog = Some(self.named(dialog, due));
                self.observed.state = State::Confirming;
            }
            IfItStays::End => self.observed.state = State::Exited,
        }
        Some(due)
    }

    /// Until when [`Observer::wait`] has something to tell.
    pub fn due(&self) -> Option<At> {
        self.unsure
            .as_ref()
            .map(|(since, _)| since.saturating_add(UNKNOWN_PATIENCE))
    }

    /// What the frame may show, with the time since when: the program has been up, and what it draws now is nothing
    /// known and has no input box, whoever listens (an editor, or nobody after a crash); or has one, and nobody listens.
    fn if_it_stays(
        &self,
        reading: &Reading,
        state: State,
        frame: &Frame,
    ) -> Option<(At, IfItStays)> {
        let may_be = match reading.seen {
            Seen::Unknown if reading.composer.is_some() => return None,
            Seen::Starting if state == State::Exited => return None,
            Seen::Unknown | Seen::Starting if self.observed.dialog.is_none() => {
                IfItStays::View(unknown_view(&frame.screen))
            }
            Seen::Exited if state != State::Exited => IfItStays::End,
            _ => return None,
        };
        let since = self.unsure.as_ref().map_or(frame.at, |(since, _)| *since);
        self.was_up.then_some((since, may_be))
    }

    /// The program has ended, as the shim or the recording tells.
    pub fn exited(&mut self) -> &Observed {
        self.observed.state = State::Exited;
        self.observed.dialog = None;
        self.observed.reading.seen = Seen::Exited;
        self.observed.reading.because = vec!["the program has ended".to_owned()];
        &self.observed
    }

    fn next_state(&self, seen: &Seen, title: &str) -> State {
        match seen {
            Seen::Idle => State::Idle,
            Seen::Thinking => State::Thinking,
            Seen::Responding => State::Responding,
            Seen::ToolRunning => State::ToolRunning,
            Seen::Dialog(_) => State::Confirming,
            Seen::Starting | Seen::Exited if !self.was_up => State::Starting,
            // A program that ends takes its title back too; one that changes views, or has called an
            // editor, does not.
            Seen::Starting | Seen::Exited if title.is_empty() => State::Exited,
            Seen::Starting | Seen::Exited => self.observed.state,
            // A screen in between: what it turns into will tell.
            Seen::Unknown => self.observed.state,
        }
    }

    /// Gives the dialog its id: the same while it is up, whatever is selected in it, and another one
    /// when it comes again.
    fn named(&mut self, mut dialog: Dialog, at: At) -> Dialog {
        let says = what_it_says(&dialog);
        let before = self
            .observed
            .dialog
            .take()
            .filter(|_| self.dialog_says == says);
        dialog.id = before.map_or_else(
            || format!("{:x}-{}", at.as_millis(), hex::encode(&says[..4])),
            |before| before.id,
        );
        self.dialog_says = says;
        dialog
    }
}

/// Whether a screen shows that the start is over. What is asked before, say whether a folder is trusted, is
/// taken off the screen, and then nothing is there for a while.
fn is_up(reading: &Reading) -> bool {
    let in_turn = |dialog: &Dialog| {
        use DialogKind::{Permission, Plan, Question};
        matches!(dialog.kind, Permission | Question | Plan)
    };
    // An input box that nobody listens behind yet is drawn by the oldest versions while they start.
    let listens = reading.composer.is_some() && reading.seen != Seen::Exited;
    listens || matches!(&reading.seen, Seen::Dialog(dialog) if in_turn(dialog))
}

/// A digest of everything in a dialog but the selection, the ticks and what is written into it.
fn what_it_says(dialog: &Dialog) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(format!(
        "{:?}\0{:?}\0{:?}",
        dialog.kind, dialog.tool, dialog.input
    ));
    let free = dialog.free_line();
    for (index, choice) in dialog.options.iter().enumerate() {
        let label = Some(&choice.label).filter(|_| free != Some(index));
        hash.update(format!("\0{label:?}"));
    }
    hash.finalize().to_vec()
}
