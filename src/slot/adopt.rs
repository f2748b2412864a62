//! Taking up a program that runs already, and what it wrote before there was a connection.

use super::machine::{Input, NOBODY, Standing};
use super::session::CLEARED;
use super::task::{Slot, ready};
use crate::config::Kind;
use crate::control::protocol::What;
use crate::reading::Observer;
use crate::recording::{self, Recording};
use crate::shim::{Hello, LaunchError, ShimLink};
use crate::terminal::{Frame, Terminal};
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::Instant;
use tokio::sync::watch;

/// Whether what a program asked its terminal is still to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Questions {
    /// It has just begun, and nobody has answered yet.
    Open,
    /// They were asked long ago, and answered then.
    Answered,
}

impl Slot {
    /// At the start of the daemon: a shim that an earlier one left is taken up, else the slot stands as it stood
    /// when the earlier one was killed, and starts by itself where it is set to. Once the first is settled, `looked`
    /// says so.
    pub(super) async fn adopt(&mut self, looked: watch::Sender<bool>) {
        let standing = self.memory.standing.clone();
        let found = self.take_up_again().await;
        if !found {
            self.take_up_ended();
        }
        self.publish();
        looked.send_replace(true);
        if self.session.is_some() {
            // Its program is started once, by whoever made it.
            return;
        }
        match (found, standing) {
            // Its end was under way when the daemon was killed.
            (true, Some(Standing::Down { .. })) => self.input(Input::Stop(NOBODY)).await,
            (false, Some(Standing::Wanted)) => self.input(Input::Start(NOBODY)).await,
            (false, None) if self.running.autostart => self.input(Input::Start(NOBODY)).await,
            _ => {}
        }
    }

    /// Connects to the slot's shim and goes on from where the program is; false where there is none.
    pub(super) async fn take_up_again(&mut self) -> bool {
        let Ok(found) = self.find_shim().await else {
            return false;
        };
        for input in self.take_up(found).await {
            self.input(input).await;
        }
        true
    }

    pub(super) async fn find_shim(&mut self) -> Result<(ShimLink, Hello), LaunchError> {
        let socket = self.world.shim_socket(&self.running.name);
        let socket = socket.map_err(|error| LaunchError::Refused(error.to_string()))?;
        ShimLink::adopt(&socket).await
    }

    /// What the machine is to know of a program that runs already.
    pub(super) async fn take_up(&mut self, (link, hello): (ShimLink, Hello)) -> Vec<Input> {
        self.connected(link, &hello);
        let mut inputs = Vec::new();
        if !self.machine.is_up() {
            inputs.extend(self.found_running(&hello));
        }
        self.forget_raw(hello.last_input);
        inputs.extend(self.catch_up(&hello, Questions::Answered));
        // Whoever was attached to the daemon before is not attached to this one.
        self.fit();
        self.resend_raw();
        if let Some(report) = hello.exit {
            inputs.push(self.take_leave(report).await);
        }
        inputs
    }

    fn found_running(&mut self, hello: &Hello) -> impl Iterator<Item = Input> + use<> {
        let pid = hello.child_pid;
        self.tell(What::Adopted { pid });
        let continues = true;
        let started = Input::Started { pid, continues };
        let strange = self.memory.unrehearsed == Some(pid);
        let gated = self.memory.gated == Some(pid);
        let plain = self.running.kind == Kind::Shell;
        let more = [
            strange.then_some(Input::Unrehearsed),
            gated.then_some(Input::WasGated),
            plain.then(ready),
        ];
        std::iter::once(started).chain(more.into_iter().flatten())
    }

    /// Reads what the program wrote before this connection: from the recording, up to the byte from which the
    /// shim goes on. What comes of it is for the machine.
    pub(super) fn catch_up(&mut self, hello: &Hello, questions: Questions) -> Option<Input> {
        self.terminal = Terminal::new(hello.cols.into(), hello.rows.into());
        self.observer = Observer::new();
        self.audience.begin_anew(Instant::now());
        let is_ours = questions == Questions::Open || !self.output.is_new();
        let overflowed = self.output.has_overflowed();
        match self.replay_recording(&hello.recording, hello.recorded) {
            Ok(last) => {
                // What an earlier daemon has seen overflow, it has told.
                if is_ours && !overflowed && self.output.has_overflowed() {
                    self.tell_overflow();
                }
                let replies = self.terminal.take_replies();
                if questions == Questions::Open && !replies.is_empty() {
                    self.next_input(replies);
                }
                self.check_waiters();
                last.and_then(|_| self.news())
            }
            Err(error) => {
                let text =
                    format!("the recording can't be read, so the screen is unknown: {error}");
                self.warn(&text);
                None
            }
        }
    }

    /// The screen and the output of a program that is long gone.
    pub(super) fn replay_ended(&mut self) {
        let recording = self.paths.recording.clone();
        if let Err(error) = self.replay_recording(&recording, u64::MAX) {
            self.warn(&format!("the recording can't be read: {error}"));
        }
    }

    /// Feeds the recording of the present run to a fresh terminal; only its last frame matters to the machine.
    fn replay_recording(
        &mut self,
        path: &Path,
        length: u64,
    ) -> Result<Option<Frame>, recording::Broken> {
        let file = std::fs::File::open(path);
        let file = file.map_err(|source| recording::Broken::Read { line: 0, source })?;
        let recording = Recording::read(BufReader::new(file.take(length)))?;
        let header = recording.header();
        self.terminal = Terminal::new(header.cols, header.rows);
        let mut recording = recording.peekable();
        let first = recording.next();
        if let (Some(Ok(first)), Some(Ok(second))) = (&first, recording.peek())
            && second.is_continuation()
            && !self.output.is_new()
        {
            // After a rotation the screen is drawn again, which the program did not do.
            self.output.pass_over(first.at);
        }
        let mut last = None;
        for event in first.into_iter().chain(recording) {
            for frame in self.replay_event(event?) {
                self.observer.wait(frame.at);
                self.observer.see(&frame);
                last = Some(frame);
            }
        }
        Ok(last)
    }

    fn replay_event(&mut self, event: recording::Event) -> Vec<Frame> {
        match event.what {
            recording::What::Output(text) => {
                self.keep_output(event.at, text.as_bytes());
                let frames = self.terminal.feed(event.at, text.as_bytes());
                self.audience
                    .pass_on(text.as_bytes(), &self.terminal, Instant::now());
                frames
            }
            recording::What::Resize { cols, rows } => self.terminal.resize(event.at, cols, rows),
            recording::What::Marker(text) if text.starts_with("start ") => {
                let screen = self.terminal.screen();
                self.terminal = Terminal::new(screen.cols, screen.rows);
                self.observer = Observer::new();
                Vec::new()
            }
            recording::What::Marker(text) if text == CLEARED => {
                self.output.clear();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}
