//! What those who look at a slot's terminal are shown.
//!
//! A terminal of the slot's own size gets the program's bytes as they are, after the screen was drawn from the grid
//! at exactly that byte. One of another size gets pictures of what fits. Either way nobody slows the slot: who does
//! not keep up misses what came in between, and is shown the screen as it is when there is room again.

use super::attach::Viewer;
use super::keyboard::Keyboard;
use crate::core::model::Ending;
use crate::core::terminal::{Passage, Passed, Picture, Terminal};
use std::time::{Duration, Instant};
use tokio_util::bytes::Bytes;

/// Between two pictures, and before one who fell behind is shown the screen again: as fast as an eye follows.
const PACE: Duration = Duration::from_millis(40);

/// A shim answers a resize within a millisecond or two; so long a drawing waits for it, rather than being made twice.
const RESIZE_TAKES: Duration = Duration::from_millis(100);

/// A program is not asked to draw on less than this; a terminal that is smaller gets pictures.
const SMALLEST: Size = (20, 5);

/// Bytes that wait for one terminal: what comes on top is left out, and the screen drawn anew when there is room.
const MAX_WAITING: usize = 1 << 20;

/// Columns and rows.
pub type Size = (u16, u16);

/// What a viewer's terminal shows.
#[derive(Debug)]
enum ViewerShows {
    /// Nothing that can be relied on.
    Nothing,
    /// The program's own bytes.
    Live {
        /// What is below the alternate screen was never drawn there.
        below_is_missing: bool,
        /// It joined in the middle of something that must not reach it.
        begins_later: bool,
    },
    Picture(Picture),
}

#[derive(Debug)]
struct SeatedViewer {
    id: u64,
    viewer: Viewer,
    shown: ViewerShows,
    /// When it is to be shown the screen.
    due: Option<Instant>,
    /// What stood on the person's terminal before has been moved out of the way.
    made_room: bool,
}

/// Everybody who looks at a slot.
#[derive(Debug, Default)]
pub(super) struct Audience {
    seated: Vec<SeatedViewer>,
    last_id: u64,
    passage: Passage,
    /// The size that the shim was asked for and has not reported yet.
    asked: Option<Size>,
    keyboard: Keyboard,
}

impl Audience {
    pub fn len(&self) -> usize {
        self.seated.len()
    }

    /// To be shown the screen at the next [`Audience::draw`].
    pub fn add(&mut self, viewer: Viewer) -> u64 {
        self.last_id += 1;
        self.seated.push(SeatedViewer {
            id: self.last_id,
            viewer,
            shown: ViewerShows::Nothing,
            due: Some(Instant::now()),
            made_room: false,
        });
        self.last_id
    }

    pub fn remove(&mut self, id: u64) -> Option<Viewer> {
        let at = self.seated.iter().position(|seated| seated.id == id)?;
        Some(self.seated.remove(at).viewer)
    }

    pub fn resize(&mut self, id: u64, size: Size, now: Instant) {
        if let Some(seated) = self.seated.iter_mut().find(|seated| seated.id == id) {
            seated.viewer.size = size;
            seated.forget(now);
        }
    }

    /// The viewer, if it may type.
    pub fn typist(&self, id: u64) -> Option<&Viewer> {
        let seated = self.seated.iter().find(|seated| seated.id == id)?;
        Some(&seated.viewer).filter(|viewer| !viewer.read_only)
    }

    pub fn keyboard(&self) -> &Keyboard {
        &self.keyboard
    }

    pub fn keyboard_mut(&mut self) -> &mut Keyboard {
        &mut self.keyboard
    }

    /// What fits into every terminal that may type; `None` where there is none.
    pub fn smallest(&self) -> Option<Size> {
        let typists = self.seated.iter().filter(|seated| !seated.viewer.read_only);
        let sizes = typists.map(|seated| seated.viewer.size);
        let (cols, rows) = sizes.reduce(|one, other| (one.0.min(other.0), one.1.min(other.1)))?;
        Some((cols.max(SMALLEST.0), rows.max(SMALLEST.1)))
    }

    /// The size that the terminal has, or is about to have.
    pub fn size(&self, terminal: &Terminal) -> Size {
        self.asked.unwrap_or_else(|| size_of(terminal))
    }

    /// Whether the shim has to be asked for this size; drawings wait for it then.
    pub fn is_to_ask(&mut self, wanted: Size, terminal: &Terminal) -> bool {
        if self.size(terminal) == wanted {
            return false;
        }
        self.asked = Some(wanted);
        let drawn_by = Instant::now() + RESIZE_TAKES;
        for seated in self.seated.iter_mut() {
            seated.due = seated.due.map(|due| due.max(drawn_by));
        }
        true
    }

    /// The terminal has another size, or was filled anew: everybody is shown it as it is.
    pub fn redraw(&mut self, now: Instant) {
        self.asked = None;
        self.seated.iter_mut().for_each(|seated| seated.forget(now));
    }

    /// What has been read so far is from before: another program begins, or the recording is read again.
    pub fn begin_anew(&mut self, now: Instant) {
        self.passage = Passage::default();
        self.redraw(now);
    }

    /// The program wrote something, and `terminal` has drawn it.
    pub fn pass_on(&mut self, output: &[u8], terminal: &Terminal, now: Instant) {
        let Passed { bytes, begins } = self.passage.pass(output);
        let (bytes, size) = (Bytes::from(bytes), size_of(terminal));
        for seated in &mut self.seated {
            seated.pass_on((&bytes, begins), terminal, size, now);
        }
    }

    /// When somebody is to be shown the screen.
    pub fn due(&self) -> Option<Instant> {
        self.seated.iter().filter_map(|seated| seated.due).min()
    }

    pub fn draw(&mut self, terminal: &Terminal, slot: &str, now: Instant) {
        let inside = self.passage.is_inside_long();
        let due = |seated: &&mut SeatedViewer| seated.due.is_some_and(|due| due <= now);
        for seated in self.seated.iter_mut().filter(due) {
            seated.draw(terminal, slot, inside, now);
        }
    }

    /// Lets everybody go, with the last of the screen; returns whose terminals they were.
    pub fn dismiss(&mut self, terminal: &Terminal, slot: &str, ending: &Ending) -> Vec<u32> {
        let now = Instant::now();
        let late = self.seated.iter_mut().filter(|seated| seated.due.is_some());
        late.for_each(|seated| seated.draw(terminal, slot, false, now));
        let leave = |seated: SeatedViewer| {
            // Who has gone meanwhile need not be told.
            let _ = seated.viewer.end.send(ending.clone());
            seated.viewer.person.uid
        };
        self.seated.drain(..).map(leave).collect()
    }
}

impl SeatedViewer {
    fn forget(&mut self, now: Instant) {
        self.shown = ViewerShows::Nothing;
        self.due = Some(now);
    }

    /// `begins` is where one begins that joined in the middle of something.
    fn pass_on(
        &mut self,
        (bytes, begins): (&Bytes, Option<usize>),
        terminal: &Terminal,
        size: Size,
        now: Instant,
    ) {
        let ViewerShows::Live {
            below_is_missing,
            begins_later,
        } = &mut self.shown
        else {
            self.due = self.due.or(Some(now + PACE));
            return;
        };
        if size != self.viewer.size || *below_is_missing && !terminal.is_alternate() {
            return self.forget(now);
        }
        let from = match begins_later {
            true => begins.unwrap_or(bytes.len()),
            false => 0,
        };
        *begins_later &= begins.is_none();
        let bytes = bytes.slice(from..);
        if !bytes.is_empty() && !self.send(bytes) {
            self.forget(now + PACE);
        }
    }

    fn draw(&mut self, terminal: &Terminal, slot: &str, inside_long: bool, now: Instant) {
        self.due = None;
        // What it has not read yet is out of date: it is drawn for once that is gone.
        if self.viewer.feed.waiting() > MAX_WAITING / 2 {
            self.due = Some(now + PACE);
            return;
        }
        let bytes = if self.viewer.size == size_of(terminal) {
            let mut bytes = self.room(terminal);
            bytes.extend(terminal.snapshot());
            self.shown = ViewerShows::Live {
                below_is_missing: terminal.is_alternate(),
                begins_later: inside_long,
            };
            bytes
        } else {
            let (cols, rows) = self.viewer.size;
            let picture = terminal.picture(cols.into(), rows.into(), &self.note(terminal, slot));
            let before = match &self.shown {
                ViewerShows::Picture(before) => Some(before),
                _ => None,
            };
            let bytes = picture.since(before);
            self.shown = ViewerShows::Picture(picture);
            bytes
        };
        if !bytes.is_empty() && !self.send(bytes.into()) {
            self.forget(now + PACE);
        }
    }

    /// On the main screen the person's own lines are scrolled out of the way, once, rather than drawn over.
    fn room(&mut self, terminal: &Terminal) -> Vec<u8> {
        if terminal.is_alternate() || std::mem::replace(&mut self.made_room, true) {
            return Vec::new();
        }
        let rows = self.viewer.size.1;
        let lines = "\n".repeat(rows.into());
        format!("\x1b[?1049l\x1b[r\x1b[m\x1b[{rows};1H{lines}").into_bytes()
    }

    fn note(&self, terminal: &Terminal, slot: &str) -> String {
        let (cols, rows) = size_of(terminal);
        let (own_cols, own_rows) = self.viewer.size;
        let cut = own_cols < cols || own_rows <= rows;
        let why = match (cut, self.viewer.read_only) {
            (true, _) => ", more than fits here",
            (false, true) => "",
            (false, false) => ", the smallest terminal that is attached",
        };
        let watches = if self.viewer.read_only {
            " (read-only)"
        } else {
            ""
        };
        format!("{slot}{watches}: {cols}x{rows}{why}")
    }

    /// Whether there was room for it.
    fn send(&self, bytes: Bytes) -> bool {
        self.viewer.feed.try_send(bytes, MAX_WAITING).is_ok()
    }
}

fn size_of(terminal: &Terminal) -> Size {
    let (cols, rows) = terminal.size();
    let small = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    (small(cols), small(rows))
}
