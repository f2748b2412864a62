//! The screen of a slot's program: the terminal that draws it, the output that is kept, who looks at it and who waits for
//! a line of it. What has to be told to the shim or to people comes back as a value.

use super::attach::Viewer;
use super::audience::{Audience, Size};
use super::handle::Answer;
use super::keyboard::{Keyboard, Typist};
use super::output::{Output, OutputPart, Taken, WantedOutput};
use super::waiters::Waiters;
use crate::core::model::{Ending, Fault, RpcError};
use crate::core::settings::SlotConfig;
use crate::core::terminal::{At, Frame, Terminal};
use crate::shim::{Checkpoint, KeptScreen};
use regex::Regex;
use std::time::{Duration, Instant};

/// Terminals on one slot: more is a mistake in a script.
const MAX_VIEWERS: usize = 16;

/// A program that was given another size has heard of it and drawn its screen by now.
const DRAWN_SMALLER: Duration = Duration::from_millis(500);

/// Lines above the screen that count as well: what was written while somebody made up their mind to wait for it.
const ABOVE: usize = 200;

pub(crate) struct Screen {
    slot: String,
    terminal: Terminal,
    output: Output,
    viewers: Audience,
    waiters: Waiters,
    /// The program writes lines, of which none is missed. One that draws is read from its screen alone.
    writes_lines: bool,
    /// Lines of the terminal and above it in which a waiter may find what it waits for.
    lines_that_count: usize,
    /// When the program wrote last.
    wrote: Option<Instant>,
    /// When the terminal gets its own size again, which it lost to be drawn anew.
    fits_again: Option<Instant>,
}

/// What comes of a piece of output.
pub(crate) struct DrawnOutput {
    pub frames: Vec<Frame>,
    /// What the terminal answers to the program.
    pub replies: Vec<u8>,
    pub taken: Taken,
}

/// Who writes what is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The program that runs.
    Runs,
    /// The next program of the slot: none runs now.
    IsToStart,
    /// The program of a session, which has ended.
    HasEnded,
}

/// The size that a terminal is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeFit {
    /// The size that it gets back when nobody is attached any more, for the slot's memory.
    pub own: Option<Size>,
    /// The size that the shim is to be asked for.
    pub ask: Option<Size>,
}

impl Screen {
    /// `is_read`: the program draws, and is read from its screen.
    pub fn new(config: &SlotConfig, output: Output, is_read: bool) -> Screen {
        let mut screen = Screen {
            slot: config.name.clone(),
            terminal: Terminal::new(config.cols.into(), config.rows.into()),
            output,
            viewers: Audience::default(),
            waiters: Waiters::default(),
            writes_lines: false,
            lines_that_count: 0,
            wrote: None,
            fits_again: None,
        };
        screen.set_program(config, is_read);
        screen
    }

    /// The program on it has these settings.
    pub fn set_program(&mut self, config: &SlotConfig, is_read: bool) {
        self.writes_lines = !is_read;
        self.lines_that_count = usize::from(config.rows) + ABOVE;
    }

    pub fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    pub fn output(&self) -> &Output {
        &self.output
    }

    /// A connection to a program begins: nothing of it is drawn yet.
    pub fn clear(&mut self, (cols, rows): Size) {
        self.terminal = Terminal::new(cols.into(), rows.into());
    }

    /// What viewers were shown so far is from before: another program begins, or the recording is read again.
    pub fn begin_anew(&mut self) {
        self.viewers.begin_anew(Instant::now());
    }

    /// The program wrote this at `at`.
    pub fn feed(&mut self, at: At, bytes: &[u8]) -> DrawnOutput {
        self.wrote = Some(Instant::now());
        // As the recording has it, so that a replay draws the same.
        let text = String::from_utf8_lossy(bytes);
        let frames = self.terminal.feed(at, text.as_bytes());
        let taken = self.output.push(at, bytes);
        self.viewers
            .pass_on(text.as_bytes(), &self.terminal, Instant::now());
        self.draw();
        self.check_written();
        DrawnOutput {
            frames,
            replies: self.terminal.take_replies(),
            taken,
        }
    }

    /// When the program wrote last, if it has written anything to this daemon.
    pub fn wrote(&self) -> Option<Instant> {
        self.wrote
    }

    /// The program has ended, or another one begins.
    pub fn forget_activity(&mut self) {
        self.wrote = None;
    }

    /// The program wrote nothing until `at`.
    pub fn quiet(&mut self, at: At) -> Vec<Frame> {
        self.terminal.quiet(at)
    }

    /// Reads the whole screen once more; the frame, if it is another one than was read last.
    pub fn check_rows(&mut self) -> Option<Frame> {
        self.terminal.check_rows()
    }

    pub fn resized(&mut self, at: At, (cols, rows): Size) -> Vec<Frame> {
        let frames = self.terminal.resize(at, cols.into(), rows.into());
        self.viewers.redraw(Instant::now());
        self.draw();
        frames
    }

    /// The program wrote this before there was a connection, and `terminal` has drawn it.
    pub fn replay(&mut self, at: At, text: &[u8], bytes: &[u8], terminal: &Terminal) -> Taken {
        self.viewers.pass_on(text, terminal, Instant::now());
        self.output.push(at, bytes)
    }

    /// The recording has been read, and comes to this. Returns what the terminal would answer to the program.
    pub fn replayed(&mut self, terminal: Terminal) -> Vec<u8> {
        self.terminal = terminal;
        self.viewers.redraw(Instant::now());
        self.terminal.take_replies()
    }

    /// What the next daemon can go on from. A program on its alternate screen has another one, of which nothing is known here.
    pub fn kept(&self, knows_alternate: bool) -> Option<KeptScreen> {
        let terminal = &self.terminal;
        if !terminal.is_whole() || terminal.is_alternate() && !knows_alternate {
            return None;
        }
        let (cols, rows) = terminal.size();
        Some(KeptScreen {
            seen: terminal.last_change(),
            cols: cols.try_into().ok()?,
            rows: rows.try_into().ok()?,
            screen: String::from_utf8(terminal.snapshot()).ok()?,
            output: self.output.mark(),
        })
    }

    /// The newest of these screens behind which all was written that is kept of the output; nothing that was written before
    /// has to be read.
    pub fn go_on_from(&mut self, written: u64, checkpoints: &[Checkpoint]) -> Option<Checkpoint> {
        let room = self.output.room();
        let is_enough = |kept: &&Checkpoint| written.saturating_sub(kept.written) >= room;
        let kept = checkpoints.iter().rev().find(is_enough)?;
        let seen = kept.screen.seen;
        self.output.can_go_on_from(seen).then(|| {
            self.output.go_on_from(seen, kept.screen.output);
            kept.clone()
        })
    }

    /// Another program begins at `at`, in a recording that is read.
    pub fn begin_run(&mut self, at: At) {
        self.output.begin_run(at);
    }

    /// A terminal was drawn anew at `at`, which the program did not do.
    pub fn pass_over(&mut self, at: At) {
        self.output.pass_over(at);
    }

    /// The program wrote this before the recording that is drawn was begun.
    pub fn keep_earlier(&mut self, at: At, bytes: &[u8]) -> Taken {
        self.output.push(at, bytes)
    }

    /// The program has written so much in all; what was not found again is no longer kept, and is returned.
    pub fn was_written(&mut self, total: u64) -> u64 {
        self.output.was_written(total)
    }

    pub fn read_output(&mut self, wanted: WantedOutput, finished: bool) -> OutputPart {
        self.output.wanted(wanted, finished)
    }

    pub fn clear_output(&mut self) {
        self.output.clear();
    }
}

/// Who looks at it.
impl Screen {
    pub fn viewers(&self) -> usize {
        self.viewers.len()
    }

    pub fn join(&mut self, viewer: Viewer) -> Result<u64, RpcError> {
        if self.viewers.len() >= MAX_VIEWERS {
            let text = format!("{MAX_VIEWERS} terminals are attached already");
            return Err(RpcError::new(Fault::Refused, text));
        }
        Ok(self.viewers.add(viewer))
    }

    /// A viewer leaves; also whether it had the keyboard.
    pub fn leave(&mut self, id: u64) -> Option<(Viewer, bool)> {
        let viewer = self.viewers.remove(id)?;
        let seat = Typist::Terminal(id);
        let typed_last = self.keyboard().is_held_by(&seat);
        self.keyboard_mut().release(&seat);
        Some((viewer, typed_last))
    }

    /// The viewer, if it may type.
    pub fn typist(&self, id: u64) -> Option<&Viewer> {
        self.viewers.typist(id)
    }

    pub fn keyboard(&self) -> &Keyboard {
        self.viewers.keyboard()
    }

    pub fn keyboard_mut(&mut self) -> &mut Keyboard {
        self.viewers.keyboard_mut()
    }

    pub fn viewer_resized(&mut self, id: u64, size: Size) {
        self.viewers.resize(id, size, Instant::now());
    }

    /// When a viewer is to be shown the screen.
    pub fn drawing_due(&self) -> Option<Instant> {
        self.viewers.due()
    }

    pub fn draw(&mut self) {
        self.viewers
            .draw(&self.terminal, &self.slot, Instant::now());
    }

    /// Lets all viewers go; returns whose terminals they were.
    pub fn dismiss_viewers(&mut self, ending: &Ending) -> Vec<u32> {
        self.viewers.dismiss(&self.terminal, &self.slot, ending)
    }

    /// The size of the smallest terminal that is attached, or `own` if none is.
    pub fn fit(&mut self, own: Option<Size>) -> SizeFit {
        self.fits_again = None;
        let smallest = self.viewers.smallest();
        let Some(wanted) = smallest.or(own) else {
            return SizeFit { own, ask: None };
        };
        let kept = own.unwrap_or_else(|| self.viewers.size(&self.terminal));
        SizeFit {
            own: smallest.map(|_| kept),
            ask: self.ask(wanted),
        }
    }

    /// Has the program draw all of its screen: it does so when its terminal changes its size. A row less is
    /// enough, and no key is pressed for it.
    pub fn repaint(&mut self, own: Option<Size>) -> SizeFit {
        let (cols, rows) = self.viewers.size(&self.terminal);
        self.fits_again = Some(Instant::now() + DRAWN_SMALLER);
        SizeFit {
            own: own.or(Some((cols, rows))),
            ask: self.ask((cols, rows.saturating_sub(1).max(1))),
        }
    }

    pub fn fits_again(&self) -> Option<Instant> {
        self.fits_again
    }

    fn ask(&mut self, wanted: Size) -> Option<Size> {
        let asks = self.viewers.is_to_ask(wanted, &self.terminal);
        asks.then_some(wanted)
    }
}

/// Who waits for a line of it.
impl Screen {
    /// Replies when a line of the program matches, or of the next one if none runs; at once, and for the last time, if
    /// the program of a session has ended and none follows.
    pub fn await_output(&mut self, pattern: Regex, reply: Answer<String>, writer: Writer) {
        let seen = match writer {
            // Only what may be meant, and not what was long before.
            Writer::Runs => self.output.last_lines(self.lines_that_count),
            Writer::IsToStart => self.output.end(),
            Writer::HasEnded => self.output.start(),
        };
        self.waiters
            .add(pattern, reply, seen.max(self.output.run()));
        match writer {
            Writer::Runs => self.check_waiters(),
            // The screen is still that of the program before.
            Writer::IsToStart => {}
            Writer::HasEnded => {
                self.check_waiters();
                self.disappoint_waiters();
            }
        }
    }

    /// Looks at the screen, and at what went over it too fast to be seen there.
    pub fn check_waiters(&mut self) {
        self.check_written();
        if !self.waiters.is_empty() {
            self.waiters
                .look_at(&self.terminal.lines(self.lines_that_count));
        }
    }

    fn check_written(&mut self) {
        if self.writes_lines {
            self.waiters.read_on(&self.output);
        }
    }

    /// The program has ended, and writes no more.
    pub fn disappoint_waiters(&mut self) {
        self.waiters.disappoint(&self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::Person;
    use crate::os::outbox::Budget;
    use tokio::sync::oneshot::{self, error::TryRecvError};

    fn screen(is_read: bool) -> Screen {
        let config = SlotConfig::usual("coder", "/work");
        Screen::new(&config, Output::new(1 << 10), is_read)
    }

    fn viewer(size: Size) -> Viewer {
        Viewer {
            size,
            read_only: false,
            person: Person {
                uid: 1000,
                pid: None,
                via: "a test".to_owned(),
            },
            feed: Budget::default().queue().0,
            end: oneshot::channel().0,
        }
    }

    fn waits(screen: &mut Screen, pattern: &str, writer: Writer) -> Waiting {
        let (reply, answer) = oneshot::channel();
        let pattern = Regex::new(pattern).expect("a pattern");
        screen.await_output(pattern, reply, writer);
        answer
    }

    type Waiting = oneshot::Receiver<Result<String, RpcError>>;

    #[test]
    fn a_terminal_gets_its_own_size_back_when_nobody_is_attached() {
        let mut screen = screen(true);
        let unchanged = SizeFit {
            own: None,
            ask: None,
        };
        assert_eq!(screen.fit(None), unchanged);
        let id = screen.join(viewer((80, 24))).expect("there is room");
        let smaller = SizeFit {
            own: Some((120, 40)),
            ask: Some((80, 24)),
        };
        assert_eq!(screen.fit(None), smaller);
        let asked = SizeFit {
            ask: None,
            ..smaller
        };
        assert_eq!(screen.fit(smaller.own), asked, "it is asked for once");
        screen.resized(At::from_millis(1), (80, 24));
        let person = viewer((80, 24)).person;
        let keyboard = screen.keyboard_mut();
        keyboard.take(Typist::Terminal(id), &person, Instant::now());
        let (_, typed_last) = screen.leave(id).expect("it is there");
        assert!(typed_last);
        let own = SizeFit {
            own: None,
            ask: Some((120, 40)),
        };
        assert_eq!(screen.fit(smaller.own), own);
    }

    #[test]
    fn a_row_less_for_a_moment_makes_a_program_draw() {
        let mut screen = screen(true);
        let less = SizeFit {
            own: Some((120, 40)),
            ask: Some((120, 39)),
        };
        assert_eq!(screen.repaint(None), less);
        assert!(screen.fits_again().is_some());
        let own = SizeFit {
            own: None,
            ask: Some((120, 40)),
        };
        assert_eq!(screen.fit(less.own), own);
        assert_eq!(screen.fits_again(), None);
    }

    #[test]
    fn only_so_many_terminals_are_attached() {
        let mut screen = screen(true);
        for _ in 0..MAX_VIEWERS {
            screen.join(viewer((80, 24))).expect("there is room");
        }
        assert!(screen.join(viewer((80, 24))).is_err());
        let ending = Ending::DaemonEnds;
        assert_eq!(screen.dismiss_viewers(&ending).len(), MAX_VIEWERS);
        assert_eq!(screen.viewers(), 0);
    }

    #[test]
    fn a_question_to_the_terminal_has_an_answer() {
        let mut screen = screen(true);
        let drawn = screen.feed(At::from_millis(1), b"ab\x1b[6n");
        assert_eq!(drawn.replies, b"\x1b[1;3R");
        assert_eq!(drawn.taken, Taken::New);
    }

    #[test]
    fn no_line_of_a_plain_program_is_missed_and_a_drawn_one_is_read_from_the_screen() {
        let gone = b"done\r\n\x1b[H\x1b[2J\x1b[3J";
        let mut plain = screen(false);
        let mut found = waits(&mut plain, "^done", Writer::Runs);
        plain.feed(At::from_millis(1), gone);
        assert_eq!(
            found.try_recv().expect("an answer").expect("a line"),
            "done"
        );
        let mut drawn = screen(true);
        let mut found = waits(&mut drawn, "^done$", Writer::Runs);
        drawn.feed(At::from_millis(1), gone);
        drawn.check_waiters();
        assert_eq!(found.try_recv(), Err(TryRecvError::Empty));
        drawn.feed(At::from_millis(2), b"done");
        drawn.check_waiters();
        assert_eq!(
            found.try_recv().expect("an answer").expect("a line"),
            "done"
        );
    }

    #[test]
    fn who_waits_for_a_program_that_has_ended_is_answered_at_once() {
        let mut screen = screen(false);
        screen.feed(At::from_millis(1), b"one\r\n");
        let mut found = waits(&mut screen, "one", Writer::HasEnded);
        assert!(matches!(found.try_recv(), Ok(Ok(_))));
        let mut none = waits(&mut screen, "two", Writer::HasEnded);
        assert!(matches!(none.try_recv(), Ok(Err(_))));
    }

    /// What a program that has ended wrote is not what somebody waits for now, whatever of it is kept or drawn.
    #[test]
    fn only_the_program_that_runs_is_waited_for() {
        for is_read in [false, true] {
            let mut screen = screen(is_read);
            screen.clear((120, 40));
            screen.begin_run(At::from_millis(1));
            screen.feed(At::from_millis(2), b"ready\r\n");
            let mut runs = waits(&mut screen, "ready", Writer::Runs);
            assert!(matches!(runs.try_recv(), Ok(Ok(_))), "{is_read}");

            // It has ended, and its screen still stands there.
            let mut down = waits(&mut screen, "ready", Writer::IsToStart);
            assert_eq!(down.try_recv(), Err(TryRecvError::Empty), "{is_read}");

            // The recording is read from its beginning at each start.
            screen.clear((120, 40));
            screen.begin_run(At::from_millis(1));
            screen.begin_run(At::from_millis(3));
            let mut early = waits(&mut screen, "ready", Writer::Runs);
            screen.check_waiters();
            for waiting in [&mut down, &mut early] {
                assert_eq!(waiting.try_recv(), Err(TryRecvError::Empty), "{is_read}");
            }
            screen.feed(At::from_millis(4), b"soon\r\nready\r\n");
            screen.check_waiters();
            for waiting in [&mut down, &mut early] {
                assert!(matches!(waiting.try_recv(), Ok(Ok(_))), "{is_read}");
            }

            // A broken connection: the same program goes on, and what it wrote counts.
            screen.begin_run(At::from_millis(1));
            screen.begin_run(At::from_millis(3));
            let mut late = waits(&mut screen, "soon", Writer::Runs);
            assert!(matches!(late.try_recv(), Ok(Ok(_))), "{is_read}");
        }
    }
}
