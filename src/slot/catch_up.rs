//! What a program wrote before there was a connection to its shim, read from the recording: in bounded pieces, so that
//! the slot takes commands meanwhile. A recording of many megabytes takes seconds, and a program that floods its
//! terminal writes them in seconds.

use super::Slot;
use super::handle::{MAX_COMMANDS, SlotCommand};
use super::kind::ProgramKind;
use super::replay::{Fetched, RecordingReader, ReplayPiece, Replayed};
use super::requests::TerminalRequest;
use crate::core::cast::BrokenCast;
use crate::core::claude::reading::Observer;
use crate::core::machine::{Input, Refusal};
use crate::core::model::{ExitReport, RpcError, Trace};
use crate::shim::Hello;
use chrono::{DateTime, Utc};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long commands wait for a recording to be read: nearly all are read sooner, and then nobody sees a slot whose
/// screen is not known yet. A longer one is read on between commands.
const AT_FIRST: Duration = Duration::from_secs(1);

/// The same if there is more to read than [`LONG`]: a daemon that takes over a hundred slots answers meanwhile, and says which of
/// them it still reads.
const AT_FIRST_IF_LONG: Duration = Duration::from_millis(50);

/// Bytes of a recording that are read within moments, also on a machine that has other work.
const LONG: u64 = 512 << 10;

/// How long one look at the recording waits before the shim is told that it will be read on.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether what a program asked its terminal is still to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Questions {
    /// It has just begun, and nobody has answered yet.
    Open,
    /// They were asked long ago, and answered then.
    Answered,
}

/// The recording is being read. Until that is done, nothing is read from the shim, and no key is pressed.
pub(super) struct CatchingUp {
    reading: RecordingReader,
    questions: Questions,
    /// Whether this daemon has seen the program's output before, or is the first to see it.
    is_ours: bool,
    /// What the program has written in all, if the output is taken in from the beginning.
    written: Option<u64>,
    /// Whether the output had overflowed before.
    overflowed: bool,
    /// Whether the terminal shows nothing yet; after a broken connection it shows what stood there before.
    is_blank: bool,
    /// How and when the program has ended, where it has.
    exit: Option<FoundExit>,
    /// Commands that need to know the screen, in their order.
    postponed: VecDeque<SlotCommand>,
}

/// The end of a program, as its shim tells it.
struct FoundExit {
    report: ExitReport,
    at: Option<DateTime<Utc>>,
    /// It ended while there was no daemon.
    is_unseen: bool,
}

impl<K: ProgramKind> Slot<K> {
    /// Reads what the program wrote before this connection, up to the byte from which the shim goes on. What comes of
    /// it is for the machine; where there is much to read, the task goes on with it between commands.
    pub(super) async fn catch_up(&mut self, hello: &Hello, questions: Questions) -> Vec<Input> {
        let is_blank = !self.machine.has_program();
        if is_blank {
            self.screen.clear((hello.cols, hello.rows));
            self.own.observe_with(Observer::new());
        }
        let seen = (!is_blank).then(|| self.screen.terminal().last_change());
        self.link.knows_up_to(seen);
        self.screen.begin_anew();
        let is_ours = questions == Questions::Open || !self.screen.output().is_new();
        let overflowed = self.screen.output().has_overflowed();
        let exit = hello.exit.clone().map(|report| {
            let at = hello.ended_at.filter(|_| questions == Questions::Answered);
            let is_unseen = !is_ours;
            FoundExit {
                report,
                at,
                is_unseen,
            }
        });
        let checkpoint = match (hello.written, questions) {
            (Some(written), Questions::Answered) if is_blank && K::READS_SCREEN => {
                self.screen.go_on_from(written, &hello.checkpoints)
            }
            _ => None,
        };
        let from = checkpoint.as_ref().map_or(0, |kept| kept.from);
        let patience = match hello.recorded - from.min(hello.recorded) > LONG {
            true => AT_FIRST_IF_LONG,
            false => AT_FIRST,
        };
        let reading = RecordingReader::new(&hello.recording, hello.recorded, K::READS_SCREEN);
        // Places in the output are to be those that an earlier daemon has told.
        let is_new = self.screen.output().is_new() && !K::READS_SCREEN;
        let reading = self.with_earlier_output(reading);
        self.catching = Some(Box::new(CatchingUp {
            reading: reading.behind(checkpoint),
            written: hello.written.filter(|_| is_new),
            questions,
            is_ours,
            overflowed,
            is_blank,
            exit,
            postponed: VecDeque::new(),
        }));
        let enough = Instant::now() + patience;
        while self.catching.is_some() && Instant::now() < enough {
            let fetched = fetched(&mut self.catching).await;
            if let Some(inputs) = self.read_on(fetched).await {
                return inputs;
            }
        }
        Vec::new()
    }

    /// One turn of reading the recording, and what follows where it was the last.
    pub(super) async fn go_on_catching_up(&mut self, fetched: Option<Result<Fetched, BrokenCast>>) {
        let postponed = self
            .catching
            .as_mut()
            .map(|at| std::mem::take(&mut at.postponed));
        let postponed = postponed.unwrap_or_default();
        let Some(inputs) = self.read_on(fetched).await else {
            if let Some(catching) = &mut self.catching {
                catching.postponed = postponed;
            }
            return;
        };
        for input in inputs {
            self.input(input).await;
        }
        self.publish();
        let has_ended = self.machine.is_gone();
        for command in postponed {
            match command {
                SlotCommand::Machine { input, reply, .. } if has_ended && is_message(&input) => {
                    // Whoever asked is gone, or hears it.
                    let _ = reply.send(Err(ended_before()));
                }
                command => self.take(command).await,
            }
        }
    }

    /// Reads no more of the recording; returns the commands that waited for it.
    pub(super) fn give_up_catching_up(&mut self) -> VecDeque<SlotCommand> {
        let catching = self.catching.take();
        catching.map_or_else(VecDeque::new, |catching| catching.postponed)
    }

    /// Takes a command now, or keeps it until the screen is known.
    pub(super) async fn take(&mut self, command: SlotCommand) {
        match &mut self.catching {
            Some(catching) if catching.postpones(&command) => {
                catching.postponed.push_back(command);
            }
            _ => self.command(command).await,
        }
    }

    /// What the slot does while a recording is read, for a person.
    pub(super) fn catching_up(&self) -> Option<String> {
        let taking = "being taken over: what its program wrote is read";
        self.catching.as_ref().map(|_| taking.to_owned())
    }

    /// Whether there is room for another command.
    pub(super) fn takes_commands(&self) -> bool {
        let catching = self.catching.as_ref();
        catching.is_none_or(|catching| catching.postponed.len() < MAX_COMMANDS)
    }

    /// Draws one piece; what comes of the whole, where that was the last.
    async fn read_on(
        &mut self,
        fetched: Option<Result<Fetched, BrokenCast>>,
    ) -> Option<Vec<Input>> {
        let mut catching = self.catching.take()?;
        self.link.say_taking();
        let is_stopped = self.link.stop_due().is_some();
        let replayed = match fetched {
            _ if is_stopped => self.read_no_more(catching.reading),
            Some(Ok(fetched)) => match self.draw_piece(catching.reading, fetched) {
                ReplayPiece::Done(replayed) => Some(*replayed),
                ReplayPiece::More(reading) => {
                    catching.reading = *reading;
                    self.catching = Some(catching);
                    return None;
                }
            },
            Some(Err(error)) => {
                let text =
                    format!("the recording can't be read, so the screen is unknown: {error}");
                self.warn(&text);
                return Some(self.with_exit(None, catching.exit).await);
            }
            None => {
                self.catching = Some(catching);
                return None;
            }
        };
        let told = catching.is_ours && !catching.overflowed;
        if let Some(total) = catching.written {
            let lost = self.screen.was_written(total);
            self.own.has_lost(lost);
        }
        let seen = replayed.and_then(|all| self.caught_up(all, catching.questions, told));
        Some(self.with_exit(seen, catching.exit).await)
    }

    /// The shim was told to end the program, and its answer is read only behind the recording. A long recording would
    /// delay it until the shim counts as one that does not answer. In the state `Stopping` no key is pressed, so that
    /// nothing depends on the screen.
    fn read_no_more(&mut self, reading: RecordingReader) -> Option<Replayed> {
        self.warn(
            "it is stopped before all that it wrote was read: its screen and its output have a gap, its recording has none",
        );
        reading.cut_short()
    }

    /// `tells` is whether output that did not fit is news: what an earlier daemon has seen overflow, it has told.
    fn caught_up(
        &mut self,
        replayed: Replayed,
        questions: Questions,
        tells: bool,
    ) -> Option<Input> {
        self.own.observe_with(replayed.observer);
        let replies = self.screen.replayed(replayed.terminal);
        if tells && self.screen.output().has_overflowed() {
            self.tell_overflow();
        }
        if questions == Questions::Open && !replies.is_empty() {
            self.next_input(replies);
        }
        self.screen.check_waiters();
        replayed.has_read.then(|| self.own.news()).flatten()
    }

    async fn with_exit(&mut self, seen: Option<Input>, exit: Option<FoundExit>) -> Vec<Input> {
        let mut inputs: Vec<Input> = seen.into_iter().collect();
        if let Some(exit) = exit {
            inputs.push(self.take_leave(exit.report, exit.at).await);
            if exit.is_unseen {
                self.drop_unsent().await;
            }
        }
        inputs
    }
}

fn is_message(input: &Input) -> bool {
    matches!(input, Input::Send(_))
}

/// A message came while the recording was read, and its end is that of the program.
fn ended_before() -> RpcError {
    let why = "not sent: the program had ended";
    Refusal::Dropped.says(why).trace(Trace::Untouched)
}

/// The next piece of the recording, if it comes soon; never, if none is being read.
pub(super) async fn fetched(
    catching: &mut Option<Box<CatchingUp>>,
) -> Option<Result<Fetched, BrokenCast>> {
    match catching {
        Some(catching) => {
            let fetched = tokio::time::timeout(PATIENCE, catching.reading.fetched());
            fetched.await.ok()
        }
        None => std::future::pending().await,
    }
}

impl CatchingUp {
    /// Whether this command waits until the recording is read. An end never does.
    fn postpones(&self, command: &SlotCommand) -> bool {
        match command {
            SlotCommand::Machine { input, .. } => !matches!(**input, Input::Stop(_)),
            SlotCommand::Terminal(request) => !matches!(
                request,
                TerminalRequest::Leave(_) | TerminalRequest::Hurry | TerminalRequest::Signal { .. }
            ),
            SlotCommand::Screen { .. } => self.is_blank,
            SlotCommand::Note(_)
            | SlotCommand::Reconfigure { .. }
            | SlotCommand::Restore
            | SlotCommand::Shutdown { .. } => false,
            SlotCommand::Withdraw(_)
            | SlotCommand::Write { .. }
            | SlotCommand::View(_)
            | SlotCommand::Keyboard { .. }
            | SlotCommand::Search { .. }
            | SlotCommand::History { .. }
            | SlotCommand::TakeOver { .. }
            | SlotCommand::Why { .. }
            | SlotCommand::Asked { .. }
            | SlotCommand::AwaitOutput { .. } => true,
        }
    }
}
