//! Readings in a row: what one screen can't tell by itself.

use super::read::{start_view, unknown_view};
use super::same::{is_cut, is_drawn_again};
use super::{Dialog, DialogKind, Notices, Reading, Seen, State, read};
use crate::core::terminal::{At, Frame};
use crate::core::text::hex;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// How long a screen may be unknown before it counts as a view of its own. Half-drawn screens, where
/// frames are not marked, last for some ten milliseconds.
const UNKNOWN_PATIENCE: Duration = Duration::from_millis(300);

/// How long a screen may be unknown while the program starts, before it counts as a question for a person. Half a second
/// passes between the first bytes and the first page; a loaded machine gets more.
const START_PATIENCE: Duration = Duration::from_secs(3);

/// How long the program gets to draw its screen for another size. One that has not by then is read as it stands, and
/// nothing on it counts as whole.
const REDRAW_PATIENCE: Duration = Duration::from_secs(1);

/// How long it gets if its screen, as it stands, is nothing known or a dialog that was not there before: on a loaded machine
/// a second is not enough, and an input box that was drawn for another size looks like a view.
const LATE_REDRAW: Duration = Duration::from_secs(10);

/// A program that gets several sizes in a row draws for one of them when it has the next one already, on a loaded machine
/// seconds later. What shows so soon after the first drawing for a size must stand for [`UNKNOWN_PATIENCE`], and a dialog in place of another one for
/// [`REDRAW_PATIENCE`].
const RESIZE_SETTLES: Duration = Duration::from_secs(1);

/// Each time after which the observer must hear that nothing was drawn.
#[cfg(test)]
pub(crate) const PATIENCES: [Duration; 4] = [
    UNKNOWN_PATIENCE,
    START_PATIENCE,
    REDRAW_PATIENCE,
    LATE_REDRAW,
];

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
    /// What the screen will mean if it stays.
    unsure: Option<Unsure>,
    /// What the open dialog says, by which the next frame's is recognised.
    dialog_says: Vec<u8>,
    /// Columns and rows of the screen that it was read from.
    dialog_size: Size,
    /// The open dialog before the terminal got another size, if it says something else since.
    dialog_before: Option<Box<Dialog>>,
    /// A frame that is not taken in yet, since the size has just changed.
    put_off: Option<PutOff>,
    /// The dialog that an unknown page of the start was taken for, by its id.
    asked_at_start: Option<String>,
}

#[derive(Debug)]
struct PutOff {
    /// When the first frame in a row was put off that the program has drawn for this size.
    since: Option<At>,
    /// When it is taken in, if nothing else comes.
    due: At,
    frame: Frame,
}

/// A screen that may be a view, a question or the end.
#[derive(Debug)]
struct Unsure {
    since: At,
    /// How long it has to stay.
    patience: Duration,
    means: IfItStays,
}

/// What a screen that stays means.
#[derive(Debug)]
enum IfItStays {
    /// A view that is not known.
    View(Box<Dialog>, Size),
    /// The program asks something before it is up.
    Question(Box<Dialog>, Size),
    /// The program has ended, though it has left its title standing.
    End,
}

impl IfItStays {
    /// Whether the next screen is the same page: a view may move, but a page of the start that offers no choices has to
    /// stand still.
    fn goes_on_as(&self, next: &IfItStays) -> bool {
        match (self, next) {
            (IfItStays::Question(one, _), IfItStays::Question(other, _)) => {
                let same_choices = what_it_says(one) == what_it_says(other);
                same_choices && (!one.options.is_empty() || one.text == other.text)
            }
            (IfItStays::Question(..), _) | (_, IfItStays::Question(..)) => false,
            _ => true,
        }
    }
}

/// Columns and rows.
type Size = (usize, usize);

/// How a screen was drawn from which a dialog was read.
#[derive(Debug, Clone, Copy)]
struct Shown {
    size: Size,
    /// The program has not drawn for this size yet.
    outdated: bool,
}

impl Shown {
    fn in_frame(frame: &Frame) -> Shown {
        Shown {
            size: (frame.screen.cols, frame.screen.rows),
            outdated: frame.outdated,
        }
    }

    fn whole(size: Size) -> Shown {
        let outdated = false;
        Shown { size, outdated }
    }
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
            dialog_size: (0, 0),
            dialog_before: None,
            put_off: None,
            asked_at_start: None,
        }
    }

    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Whether the program has yet to draw for another size of the terminal, or what it has drawn must stand first.
    pub fn awaits_drawing(&self) -> bool {
        self.put_off.is_some()
    }

    /// Takes the next frame in, after [`Observer::wait`] up to its time.
    pub fn see(&mut self, frame: &Frame) -> &Observed {
        self.wait(frame.at);
        match self.put_off(frame) {
            Some(put_off) => self.pass_over(put_off),
            None => self.take(frame),
        }
        &self.observed
    }

    /// Whether a frame has to wait, since the size of the terminal has just changed: the program has not drawn for it
    /// yet, or what it has drawn differs from what was there before.
    fn put_off(&self, frame: &Frame) -> Option<PutOff> {
        let resized = frame.resized?;
        let (since, due) = if frame.outdated {
            let patience = match self.read(frame).seen {
                Seen::Unknown => LATE_REDRAW,
                Seen::Dialog(dialog) if self.is_other_dialog(&dialog, frame) => LATE_REDRAW,
                _ => REDRAW_PATIENCE,
            };
            (None, resized.saturating_add(patience))
        } else {
            let redrawn = frame.redrawn.unwrap_or(resized);
            let settled = redrawn.saturating_add(RESIZE_SETTLES);
            let before = self.put_off.as_ref().and_then(|before| before.since);
            let since = before.unwrap_or(frame.at);
            let seen = self.read(frame).seen;
            let stands = match (&seen, &self.observed.dialog) {
                (Seen::Dialog(_), Some(_)) => REDRAW_PATIENCE,
                _ => UNKNOWN_PATIENCE,
            };
            let is_news = since < settled && self.is_news(&seen, frame);
            is_news.then_some((Some(since), since.saturating_add(stands)))?
        };
        (frame.at < due).then(|| PutOff {
            since,
            due,
            frame: frame.clone(),
        })
    }

    /// Whether what was read from a frame is another state or another dialog than the one that is known.
    fn is_news(&self, seen: &Seen, frame: &Frame) -> bool {
        match seen {
            Seen::Unknown => false,
            Seen::Dialog(dialog) => self.is_other_dialog(dialog, frame),
            seen => self.next_state(seen, &frame.screen.title) != self.observed.state,
        }
    }

    /// Whether the dialog on a frame is not the one that is up.
    fn is_other_dialog(&self, dialog: &Dialog, frame: &Frame) -> bool {
        let known = self.observed.dialog.as_ref();
        known.is_none_or(|known| {
            self.compare(known, dialog, Shown::in_frame(frame)) == Compared::Other
        })
    }

    /// The state and the dialog stay what they were, but no key may be pressed, and nothing is whole.
    fn pass_over(&mut self, put_off: PutOff) {
        let because = match put_off.frame.outdated {
            true => "the terminal has another size, for which the program has not drawn yet",
            false => "the terminal has another size, and what is drawn for it must stand first",
        };
        self.unsure = None;
        self.put_off = Some(put_off);
        self.observed.reading.make_unknown(because);
        if let Some(dialog) = &mut self.observed.dialog {
            dialog.complete = false;
        }
    }

    fn take(&mut self, frame: &Frame) {
        self.put_off = None;
        let mut reading = self.read(frame);
        if let Seen::Dialog(dialog) = &mut reading.seen {
            dialog.complete &= !frame.outdated;
        }
        let mut state = self.next_state(&reading.seen, &frame.screen.title);
        self.was_up |= is_up(&reading);
        self.unsure = self.if_it_stays(&reading, state, frame);
        let seen = Shown::in_frame(frame);
        let dialog = match &reading.seen {
            Seen::Dialog(dialog) => Some(self.named(dialog.clone(), seen, frame.at)),
            // A page before the first input box that is another one than the last.
            Seen::Unknown | Seen::Starting if self.has_left_question(frame) => {
                state = State::Starting;
                None
            }
            Seen::Unknown => self.observed.dialog.take(),
            // The view that a screen with nobody behind it was taken for stays.
            Seen::Starting if state == State::Confirming => self.observed.dialog.take(),
            _ => None,
        };
        if let (Seen::Dialog(read), Some(dialog)) = (&mut reading.seen, &dialog) {
            read.complete = dialog.complete;
        }
        self.observed = Observed {
            state,
            dialog,
            reading,
        };
    }

    /// Recorded time has come to `at` with no further frame. A screen that is still not known by then is
    /// a view that takes the keys, and one that nobody listens behind is the last; returns since when, where that
    /// is news.
    pub fn wait(&mut self, at: At) -> Option<At> {
        let due = self.due().filter(|due| *due <= at)?;
        if let Some(put_off) = self.put_off.take() {
            self.take(&put_off.frame);
            return Some(due);
        }
        match self.unsure.take()?.means {
            IfItStays::View(dialog, size) => {
                self.observed.dialog = Some(self.named(*dialog, Shown::whole(size), due));
                self.observed.state = State::Confirming;
            }
            IfItStays::Question(dialog, size) => self.ask_at_start(*dialog, size, due),
            IfItStays::End => self.observed.state = State::Exited,
        }
        Some(due)
    }

    /// Until when [`Observer::wait`] has something to tell.
    fn due(&self) -> Option<At> {
        let put_off = self.put_off.as_ref().map(|put_off| put_off.due);
        let unsure = |unsure: &Unsure| unsure.since.saturating_add(unsure.patience);
        put_off.or_else(|| self.unsure.as_ref().map(unsure))
    }

    /// A page that the program shows before it is up and that nobody knows is a question for a person. A menu takes the
    /// keys that choose from it; of any other page nothing is known.
    fn ask_at_start(&mut self, dialog: Dialog, size: Size, at: At) {
        if !dialog.options.is_empty() {
            self.observed.reading.seen = Seen::Dialog(dialog.clone());
            self.observed.reading.because =
                vec!["a page with choices that stays, before the first input box".to_owned()];
        }
        let dialog = self.named(dialog, Shown::whole(size), at);
        self.asked_at_start = Some(dialog.id.clone());
        self.observed.dialog = Some(dialog);
        self.observed.state = State::Confirming;
    }

    /// The dialog that an unknown page of the start was taken for, while it is up.
    fn question_of_start(&self) -> Option<&Dialog> {
        let dialog = self.observed.dialog.as_ref()?;
        (self.asked_at_start.as_ref() == Some(&dialog.id)).then_some(dialog)
    }

    /// The reading of a frame. A page that has become a question stays one while it offers the same, and what the
    /// terminal alone has made of a screen is no news.
    fn read(&self, frame: &Frame) -> Reading {
        let mut reading = read(&frame.screen);
        let is_unknown = matches!(reading.seen, Seen::Unknown | Seen::Starting);
        let question = self.question_of_start();
        let asks = question.is_some_and(|dialog| !dialog.options.is_empty());
        if is_unknown && asks {
            let view = start_view(&frame.screen);
            if what_it_says(&view) == self.dialog_says {
                reading.seen = Seen::Dialog(view);
            }
        }
        if frame.is_as_resized() && self.is_news(&reading.seen, frame) {
            reading
                .make_unknown("the program has drawn nothing since the terminal has another size");
        }
        reading
    }

    /// What the frame may show, with the time since when: the program has been up, and what it draws now is nothing
    /// known and has no input box, whoever listens (an editor, or nobody after a crash); or has one, and nobody listens.
    fn if_it_stays(&self, reading: &Reading, state: State, frame: &Frame) -> Option<Unsure> {
        let size = (frame.screen.cols, frame.screen.rows);
        let view = || Box::new(unknown_view(&frame.screen));
        let is_blank = frame.screen.lines.iter().all(|line| line.text.is_empty());
        let (patience, means) = match reading.seen {
            Seen::Unknown if reading.composer.is_some() => return None,
            Seen::Starting if state == State::Exited => return None,
            Seen::Unknown | Seen::Starting if !self.was_up => {
                let question = IfItStays::Question(Box::new(start_view(&frame.screen)), size);
                (START_PATIENCE, (!is_blank).then_some(question)?)
            }
            // Between two pages there may be nothing for a while.
            Seen::Unknown | Seen::Starting if self.observed.dialog.is_none() => {
                let patience = if is_blank {
                    START_PATIENCE
                } else {
                    UNKNOWN_PATIENCE
                };
                (patience, IfItStays::View(view(), size))
            }
            Seen::Exited if self.was_up && state != State::Exited => {
                (UNKNOWN_PATIENCE, IfItStays::End)
            }
            _ => return None,
        };
        let before = self
            .unsure
            .as_ref()
            .filter(|before| before.means.goes_on_as(&means));
        Some(Unsure {
            since: before.map_or(frame.at, |before| before.since),
            patience,
            means,
        })
    }

    /// Whether the page on which something was asked has given way to another one.
    fn has_left_question(&self, frame: &Frame) -> bool {
        let differs = |asked: &Dialog| asked.text != start_view(&frame.screen).text;
        self.question_of_start()
            .is_some_and(|asked| !asked.options.is_empty() || differs(asked))
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

    /// Gives the dialog its id: the same while it is up, whatever is selected in it, and another one when it comes again.
    /// One that the terminal has cut stays what it was before, and is not whole.
    fn named(&mut self, mut dialog: Dialog, seen: Shown, at: At) -> Dialog {
        let says = what_it_says(&dialog);
        let before = self.observed.dialog.take();
        let compared = before
            .as_ref()
            .map(|before| self.compare(before, &dialog, seen));
        self.dialog_before = self.unaltered(before.as_ref(), &dialog, compared, seen);
        dialog.complete &= self.dialog_before.is_none();
        dialog.id = match (before, compared) {
            (Some(before), Some(Compared::Cut)) => {
                let as_many = before.options.len() == dialog.options.len();
                return Dialog {
                    complete: false,
                    selected: dialog.selected.filter(|_| as_many),
                    ..before
                };
            }
            (Some(before), Some(Compared::Same)) => before.id,
            _ => format!("{:x}-{}", at.as_millis(), hex::encode(&says[..4])),
        };
        self.dialog_says = says;
        self.dialog_size = seen.size;
        dialog
    }

    /// What the dialog `now` was before the terminal got another size, if it says something else since. A new call does not
    /// come with a resize: some versions draw the old one wrongly, and nothing of it is whole until it is gone or drawn as before.
    fn unaltered(
        &mut self,
        before: Option<&Dialog>,
        now: &Dialog,
        compared: Option<Compared>,
        seen: Shown,
    ) -> Option<Box<Dialog>> {
        let before = before.filter(|before| before.kind == now.kind)?;
        let by_size = self.dialog_size != seen.size && compared == Some(Compared::Other);
        let known = self.dialog_before.take();
        let known = known.or_else(|| by_size.then(|| Box::new(before.clone())));
        known.filter(|known| !is_drawn_again(known, now))
    }

    /// What the dialog `now` is to the one that was up `before`.
    fn compare(&self, before: &Dialog, now: &Dialog, seen: Shown) -> Compared {
        let other_size = self.dialog_size != seen.size;
        match () {
            () if self.dialog_says == what_it_says(now) => Compared::Same,
            () if other_size && seen.outdated && is_cut(before, now) => Compared::Cut,
            () if other_size && is_drawn_again(before, now) => Compared::Same,
            () => Compared::Other,
        }
    }
}

/// A dialog on the screen, compared with the one that was up before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// It says the same, or was drawn again for another size.
    Same,
    /// It is the same, cut or wrapped by a terminal of another size: less is known from it than before.
    Cut,
    Other,
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
