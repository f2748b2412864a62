//! What is asked of a slot's terminal: its output, its size, signals, lines that are typed.

use super::Slot;
use super::handle::Answer;
use super::kind::ProgramKind;
use super::output::{OutputPart, WantedOutput};
use super::press::DecidedKey;
use crate::core::claude::keys;
use crate::core::machine::Purpose;
use crate::core::model::Person;
use crate::core::model::{Fault, RpcError};
use crate::shim::ToShim;
use std::time::Duration;

/// A command that was typed has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedCommand {
    pub exit_code: Option<i32>,
    /// What it wrote, by its place in the output.
    pub output: Option<(u64, u64)>,
}

/// The marker in the recording behind which the output was cleared.
pub(super) const CLEARED: &str = "output cleared";

#[derive(Debug)]
pub enum TerminalRequest {
    Output {
        wanted: WantedOutput,
        reply: Answer<OutputPart>,
    },
    /// Forgets the output that is kept.
    Clear { reply: Answer<()> },
    /// A line, with Enter behind it.
    Type {
        text: String,
        person: Person,
        reply: Answer<()>,
    },
    /// The same for a shell that says when it is done.
    TypeAndWait {
        text: String,
        person: Person,
        reply: Answer<TypedCommand>,
    },
    Resize {
        cols: u16,
        rows: u16,
        reply: Answer<()>,
    },
    /// To whatever runs in the foreground.
    Signal { signal: i32, reply: Answer<()> },
    /// The screen of a program that fills it; `None` for one that writes lines.
    FullScreen { reply: Answer<Option<Vec<String>>> },
    /// Its program is to be ended, for this reason.
    End(String),
    /// It is about to be closed, for this reason.
    Leave(String),
    /// It is being stopped, and is to be killed at once.
    Hurry,
}

impl<K: ProgramKind> Slot<K> {
    pub(super) async fn requested(&mut self, request: TerminalRequest) {
        match request {
            TerminalRequest::Output { wanted, reply } => {
                let finished = !self.link.is_open();
                let part = self.screen.read_output(wanted, finished);
                self.remember_read().await;
                drop(reply.send(Ok(part)));
            }
            TerminalRequest::Clear { reply } => {
                self.screen.clear_output();
                self.tell_shim(&ToShim::Mark {
                    text: CLEARED.to_owned(),
                });
                drop(reply.send(Ok(())));
            }
            TerminalRequest::Type {
                text,
                person,
                reply,
            } => drop(reply.send(self.type_line(&text, &person).await)),
            TerminalRequest::TypeAndWait {
                text,
                person,
                reply,
            } => match self.line(&text) {
                Ok(bytes) => K::type_and_wait(self, bytes, person, reply).await,
                Err(error) => drop(reply.send(Err(error))),
            },
            TerminalRequest::Resize { cols, rows, reply } => {
                drop(reply.send(self.resize((cols, rows))));
            }
            TerminalRequest::Signal { signal, reply } => {
                let foreground = true;
                drop(reply.send(self.order(&ToShim::Signal { signal, foreground })));
            }
            TerminalRequest::FullScreen { reply } => {
                let screen = self.screen.terminal().screen();
                let lines = || screen.lines.iter().map(|line| line.text.clone()).collect();
                drop(reply.send(Ok(screen.modes.alt_screen.then(lines))));
            }
            TerminalRequest::End(why) => K::end_for(self, why).await,
            TerminalRequest::Leave(why) => self.own.leaves(why),
            TerminalRequest::Hurry if self.link.is_open() => self.stop_tree(Duration::ZERO),
            // Its program has ended.
            TerminalRequest::Hurry => {}
        }
    }

    /// An agent goes on where it was when the daemon is started again: that is on the disk before it has the text.
    async fn remember_read(&mut self) {
        let read = self.screen.output().read_up_to();
        let read = read.and_then(|at| u64::try_from(at.as_micros()).ok());
        if read.is_some() && read != self.memory.read {
            self.memory.change(|memory| memory.read = read);
            while self.memory.is_saving() {
                let written = self.memory.written().await;
                self.memory_written(written);
            }
        }
    }

    /// Why nothing can be written to a program that may be started.
    pub(crate) fn not_started(&self) -> RpcError {
        let name = &self.program.settings().name;
        RpcError::new(Fault::Refused, format!("{name} is not running"))
            .next(format!("missiond start {name}"))
    }

    /// Why nobody can wait for the end of a command in a slot.
    pub(crate) fn cant_tell_end(&self) -> RpcError {
        if !self.link.is_open() {
            return K::not_running(self);
        }
        let name = &self.program.settings().name;
        let text = format!("{name} is a slot: when a command is done can't be told");
        RpcError::new(Fault::Refused, text)
    }

    fn order(&mut self, message: &ToShim) -> Result<(), RpcError> {
        if !self.link.is_open() {
            return Err(K::not_running(self));
        }
        self.tell_shim(message);
        Ok(())
    }

    async fn type_line(&mut self, text: &str, person: &Person) -> Result<(), RpcError> {
        let bytes = self.line(text)?;
        if !self.link.is_open() {
            return Err(K::not_running(self));
        }
        self.write_down("a line", person, bytes).await
    }

    /// The bytes of a line and its Enter. Where the program takes pastes, several lines are one, and a tab
    /// completes nothing.
    fn line(&self, text: &str) -> Result<Vec<u8>, RpcError> {
        if let Some(control) = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        {
            let text = format!("the text has the control character {control:?} in it");
            return Err(RpcError::new(Fault::Usage, text)
                .next("keys and raw bytes: missiond keys, missiond write"));
        }
        let mut bytes = match self.screen.terminal().modes_set().bracketed_paste
            && text.contains(['\n', '\t'])
        {
            true => keys::paste(text),
            false => text.replace('\n', "\r").into_bytes(),
        };
        bytes.extend_from_slice(keys::ENTER);
        Ok(bytes)
    }

    /// Writes a person's input once that is in the audit.
    pub(crate) async fn write_down(
        &mut self,
        what: &str,
        person: &Person,
        bytes: Vec<u8>,
    ) -> Result<(), RpcError> {
        let key = DecidedKey {
            name: format!("{what} of {} bytes", bytes.len()),
            reason: "a person writes to the terminal".to_owned(),
            bytes,
            purpose: Purpose::Types,
            person: Some(person.clone()),
            is_raw: true,
        };
        self.log
            .audited(key.record(&self.program.settings().name))
            .await?;
        let bytes = key.bytes.clone();
        if !self.press(key).await {
            let text = format!(
                "the shim of {} was not reached",
                self.program.settings().name
            );
            return Err(RpcError::new(Fault::Failed, text));
        }
        self.keep_raw(bytes);
        Ok(())
    }
}
