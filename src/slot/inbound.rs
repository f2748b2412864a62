//! What comes to a slot: bytes of its program, and the end of it.

use super::Slot;
use super::health;
use super::kind::ProgramKind;
use super::last_end;
use super::memory_file::{Course, SaveNews};
use super::output::Taken;
use crate::audit::Record;
use crate::core::claude::reading::State;
use crate::core::claude::{HookEvent, HookWhat};
use crate::core::machine::{Input, KERNEL_KILLED, ProgramEnd};
use crate::core::model::ExitReport;
use crate::core::model::{Ending, EventKind, Fault, RpcError};
use crate::core::terminal::{At, Frame};
use crate::core::text::secrets;
use crate::os::files;
use crate::shim::{FromShim, LinkError, ToShim};
use chrono::{DateTime, Utc};
use std::io;
use uuid::Uuid;

/// What a message of the shim comes to.
#[derive(Debug)]
pub(super) enum ShimNews {
    /// The frames that are due, often none, and until when nothing came, where that is told.
    Frames(Vec<Frame>, Option<At>),
    /// The shim ends the program, and nobody here has told it to.
    Ends,
    Exited(ExitReport),
    Lost(LinkError),
}
/// Lines of the last screen that are logged: enough for any message, and no more than a screenful.
const LAST_SCREEN: usize = 20;

impl<K: ProgramKind> Slot<K> {
    pub(super) async fn hear_shim(&mut self, message: Result<FromShim, LinkError>) {
        match self.take_in(message) {
            ShimNews::Frames(frames, quiet) => K::take_frames(self, frames, quiet).await,
            ShimNews::Ends => self.input(Input::ShimEnds).await,
            ShimNews::Exited(report) => self.ended(report).await,
            ShimNews::Lost(error) => self.lost(error).await,
        }
    }

    /// Takes in what came with the last message, 16 KB at most. A program that writes many short lines has a message for
    /// each, and a whole turn of the task for each would cost more than to draw it.
    pub(super) async fn hear_received(&mut self) {
        while self.catching.is_none()
            && let Some(message) = self.link.received()
        {
            self.hear_shim(message).await;
        }
    }

    /// Brings a message of the shim to the terminal. What follows from it is for the caller.
    pub(super) fn take_in(&mut self, message: Result<FromShim, LinkError>) -> ShimNews {
        let (mut frames, mut quiet) = (Vec::new(), None);
        match message {
            Ok(FromShim::Output { at, .. } | FromShim::Resized { at, .. })
                if self.link.has_seen(at) =>
            {
                // A shim hands over what waits for its disk, also to a daemon that has it already.
            }
            Ok(FromShim::Output { at, bytes }) => {
                let drawn = self.screen.feed(at, &bytes);
                frames = drawn.frames;
                self.note_kept(&bytes, &drawn.taken);
                if drawn.taken == Taken::Overflow {
                    self.tell_overflow();
                }
                if !drawn.replies.is_empty() {
                    self.next_input(drawn.replies);
                }
                self.shown.pulse();
                self.has_written(bytes.len());
            }
            Ok(FromShim::Quiet { at }) => {
                quiet = Some(at);
                frames = self.screen.quiet(at);
                self.rotate_if_due();
            }
            Ok(FromShim::Resized { at, cols, rows }) => {
                frames = self.screen.resized(at, (cols, rows));
            }
            Ok(FromShim::Written { n }) => self.link.written(n),
            Ok(FromShim::Rotated { .. }) => self.rotated(),
            Ok(FromShim::NotRotated { reason }) => self.not_rotated(&reason),
            Ok(FromShim::Refused { n, reason }) => self.not_written(n, &reason),
            Ok(FromShim::Trouble { text }) => self.warn(&text),
            Ok(FromShim::RecordingHangs { hangs }) => {
                self.link.set_recording_hangs(hangs);
                self.publish();
            }
            Ok(FromShim::Ends) => return ShimNews::Ends,
            Ok(FromShim::Exited(report)) => return ShimNews::Exited(report),
            Err(error) => return ShimNews::Lost(error),
        }
        ShimNews::Frames(frames, quiet)
    }

    /// What the program wrote, live or from its recording, has been kept.
    pub(super) fn note_kept(&mut self, bytes: &[u8], taken: &Taken) {
        if *taken != Taken::Known {
            self.own.has_kept(bytes);
        }
    }

    pub(super) fn tell_overflow(&mut self) {
        let kept = self.screen.output().room();
        self.tell(EventKind::BufferOverflow { kept });
    }

    pub(super) async fn ended(&mut self, report: ExitReport) {
        let end = self.take_leave(report, None).await;
        self.input(end).await;
    }

    /// The program is gone: its shim may go too, and what is known of the end is kept. Where it ended while there was
    /// no daemon, its shim says when.
    pub(super) async fn take_leave(
        &mut self,
        report: ExitReport,
        at: Option<DateTime<Utc>>,
    ) -> Input {
        self.dismiss_viewers(&Ending::Exited {
            code: report.code,
            signal: report.signal,
        });
        self.program.hold(None);
        if let Some(shim) = self.link.dismiss().await {
            self.context.shims.ended(shim);
        }
        let kernel = self.kernel_killed().then(|| KERNEL_KILLED.to_owned());
        let said = self.last_words().into_iter().chain(kernel);
        let said = said.reduce(|words, more| format!("{words} / {more}"));
        let screen = self.lower_screen();
        self.program.last_end_mut().note(report.clone(), at, screen);
        self.forget_program();
        K::note_end(self, &report, at.unwrap_or_else(Utc::now));
        K::save_record(self).await;
        let limit_reset = said.as_deref().and_then(health::limit_reset);
        Input::Ended(ProgramEnd {
            report,
            said,
            limit_reset,
        })
    }

    /// The program has ended, or another one begins.
    pub(super) fn forget_program(&mut self) {
        self.own.forget();
        self.screen.forget_activity();
    }

    /// Where a slot is given up, its last screen stands below the reason.
    pub(super) fn tell_with_screen(&mut self, mut what: EventKind) {
        if let EventKind::Exit { ended_at, .. } = &mut what {
            *ended_at = self.program.last_end_mut().take_time();
        }
        let gave_up = matches!(what, EventKind::GaveUp { .. });
        self.tell(what);
        if gave_up && let Some(screen) = self.program.last_end_mut().take_screen() {
            self.warn(&format!("its last screen was:\n{screen}"));
        }
    }

    /// The lower part of the screen, for the log of a slot that is given up.
    fn lower_screen(&self) -> String {
        let lines = self.screen.terminal().lines(LAST_SCREEN);
        lines.join("\n").trim().to_owned()
    }

    /// What a program that failed to start said last.
    pub(super) fn last_words(&self) -> Option<String> {
        if self
            .own
            .last_seen()
            .is_some_and(|sight| sight.state != State::Starting && sight.state != State::Exited)
        {
            return None;
        }
        let lines = self.screen.terminal().whole_lines(LAST_SCREEN);
        last_end::words_in(&secrets::mask_rows(&lines))
    }

    /// Why a hook's word counts for nothing: it speaks of a conversation that this slot does not have. That a new one
    /// has begun is not believed because a hook says so: a tool can play the hook.
    fn stranger(&self, event: &HookEvent, entered: bool) -> Option<String> {
        // A figure allows nothing, and after `/clear` it may come before the start of the new one is told.
        if matches!(event.what, HookWhat::Cost(_)) {
            return None;
        }
        let id = event.session_id.as_deref().unwrap_or("none");
        let is_own = |id: Uuid| self.memory.knows(id) || entered;
        (!id.parse().is_ok_and(is_own))
            .then(|| format!("a hook spoke of the session {id}, which this slot does not have"))
    }

    /// Whether this input may go on to the machine; a hook that may not is refused and written down.
    pub(super) async fn is_from_own_session(&mut self, input: &Input, entered: bool) -> bool {
        let Input::Heard(token, event) = input else {
            return true;
        };
        let Some(why) = self.stranger(event, entered) else {
            return true;
        };
        let record = Record::stranger(&self.program.settings().name, event, &why);
        self.log.noted(record).await;
        self.warn(&format!("refused: {why}"));
        self.clients
            .reply(*token, Err(RpcError::new(Fault::Refused, why)));
        false
    }

    /// What a daemon must know that comes after one that was killed.
    pub(super) fn keep_in_mind(&mut self) {
        self.forget_ended_turn();
        self.note_cost();
        let draft = self.memory.draft.as_ref();
        // A program that nobody reaches may still run.
        let typed = match self.machine.is_up() {
            true => self.machine.own_text(),
            false => draft.map(|draft| &draft.own),
        };
        self.memory.follow(Course {
            typed: typed.cloned(),
            past: self.machine.past(),
            standing: self.machine.desired_state(),
            held_until: self.machine.held_until().and_then(health::by_the_clock),
        });
    }

    /// Somebody removed files of the slot: they are written again from what is known, and the shim does the same.
    pub(super) async fn restore(&mut self) {
        self.memory.save();
        K::save_record(self).await;
        self.restore_settings().await;
        self.tell_shim(&ToShim::Restore);
    }

    async fn restore_settings(&mut self) {
        let file = self.context.settings_file(&self.program.settings().name);
        let Some(text) = self.memory.settings.clone() else {
            return;
        };
        let shown = file.display().to_string();
        let restore = move || match file.exists() {
            true => Ok(()),
            false => files::save(&file, &text),
        };
        if let Err(error) = self.memory.disk().run(restore).await.flatten() {
            self.warn(&format!("{shown} can't be written: {error}"));
        }
    }

    /// The memory was written, or could not be.
    pub(super) fn memory_written(&mut self, written: io::Result<()>) {
        let (news, settled) = self.memory.settle(written);
        if let Some(SaveNews::Failing(text) | SaveNews::Recovered(text)) = news {
            self.warn(&text);
        }
        for (token, reply) in settled {
            self.clients.reply(token, reply);
        }
    }
}
