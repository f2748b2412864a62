//! Taking up a program that runs already, and what it wrote before there was a connection.

use super::machine::{Input, NOBODY, Standing};
use super::session::CLEARED;
use super::task::{Slot, ready};
use crate::config::Kind;
use crate::control::protocol::What;
use crate::reading::Observer;
use crate::recording::{self, Recording};
use crate::shim::{Hello, ShimLink};
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
    /// when the earlier one was killed, and starts by itself where it is set to. Once the first is settled, `looked` says so.
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
        let Ok(socket) = self.world.shim_socket(&self.running.name) else {
            return false;
        };
        let Ok((link, hello)) = ShimLink::adopt(&socket).await else {
            return false;
        };
        self.connected(link, &hello);
        if !self.machine.is_up() {
            self.found_running(&hello).await;
        }
        self.forget_raw(hello.last_input);
        if let Some(news) = self.catch_up(&hello, Questions::Answered) {
            self.input(news).await;
        }
        // Whoever was attached to the daemon before is not attached to this one.
        self.fit();
        self.resend_raw();
        if let Some(report) = hello.exit {
            self.ended(report).await;
        }
        true
    }

    async fn found_running(&mut self, hello: &Hello) {
        let pid = hello.child_pid;
        self.tell(What::Adopted { pid });
        let continues = true;
        self.input(Input::Started { pid, continues }).await;
        if self.memory.unrehearsed == Some(pid) {
            self.input(Input::Unrehearsed).await;
        }
        if self.memory.gated == Some(pid) {
            self.input(Input::WasGated).await;
        }
        if self.running.kind == Kind::Shell {
            self.input(ready()).await;
        }
    }

    /// Reads what the program wrote before this connection: from the recording, up to the byte from which the
    /// shim goes on. What comes of it is for the machine.
    pub(super) fn catch_up(&mut self, hello: &Hello, questions: Questions) -> Option<Input> {
        self.terminal = Terminal::new(hello.cols.into(), hello.rows.into());
        self.observer = Observer::new();
        self.audience.begin_anew(Instant::now());
        match self.replay_recording(&hello.recording, hello.recorded) {
            Ok(last) => {
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
