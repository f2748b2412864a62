//! Commands that a client types into a session and waits for.

use super::prompt::Finished;
use super::{
    AwaitedCommand, FIRST_PROMPT, PlainProgram, REPLACED, SHOWN, ShellProgram, ShellPrompt,
    TypingStage,
};
use crate::core::model::ExitReport;
use crate::core::model::Person;
use crate::core::model::{Fault, RpcError};
use crate::os::process_stat::Stat;
use crate::slot::{Answer, Slot, TypedCommand};
use std::time::Instant;

impl Slot<PlainProgram> {
    /// Types a command once the shell is at its prompt, and replies when the next prompt is there.
    pub(super) async fn type_and_wait(
        &mut self,
        bytes: Vec<u8>,
        person: Person,
        reply: Answer<TypedCommand>,
    ) {
        self.note_replaced();
        match self.may_type() {
            Err(error) => drop(reply.send(Err(error))),
            Ok(()) => {
                let typing = AwaitedCommand {
                    stage: TypingStage::ShellPrompt(bytes, person),
                    began: Instant::now(),
                    reply,
                };
                if let Some(session) = &mut self.own_mut().session {
                    session.typing = Some(typing);
                }
                self.settle_typing().await;
            }
        }
    }

    fn may_type(&self) -> Result<(), RpcError> {
        let name = &self.settings().name;
        let Some(session) = self.own().session.as_ref().filter(|_| self.is_connected()) else {
            return Err(self.cant_tell_end());
        };
        let Some(prompt) = &session.prompt else {
            return Err(cant_tell(
                name,
                "it is not a bash or zsh that missiond started",
            ));
        };
        let unheard = session.typing.is_none() && !prompt.takes_lines();
        if let Some(why) = session
            .silenced
            .or_else(|| self.silence())
            .filter(|_| unheard)
        {
            return Err(cant_tell(name, why));
        }
        let is_busy = prompt.is_seen() && !prompt.takes_lines() && session.replaced.is_none();
        if session.typing.is_some() || is_busy {
            let text = format!("{name} is busy with another command; nothing was typed");
            return Err(
                RpcError::new(Fault::Refused, text).next(format!("missiond wait {name} --prompt"))
            );
        }
        Ok(())
    }

    /// Continues an awaited command, as far as the shell has progressed.
    pub(super) async fn settle_typing(&mut self) {
        let (end, pid) = (self.screen().output().end(), self.machine().pid());
        let Some(session) = &mut self.own_mut().session else {
            return;
        };
        let (Some(typing), Some(prompt)) = (&mut session.typing, &mut session.prompt) else {
            return;
        };
        if typing.reply.is_closed() {
            session.typing = None;
            return;
        }
        match &mut typing.stage {
            TypingStage::ShellPrompt(bytes, person) if prompt.takes_lines() => {
                let (bytes, person) = (std::mem::take(bytes), person.clone());
                typing.stage = TypingStage::Command(end);
                prompt.submit();
                // The program that runs the command. Another program would not report the end.
                session.program = pid.and_then(program_of);
                (session.replaced, session.silenced) = (None, None);
                if let Err(error) = self.write_down("a command", &person, bytes).await {
                    self.reply_typing(Err(error));
                }
            }
            TypingStage::ShellPrompt(..) if typing.began.elapsed() < FIRST_PROMPT => {
                self.settle_silence()
            }
            TypingStage::ShellPrompt(..) => self.fail_typing("it has not shown a prompt"),
            TypingStage::Command(_) => self.settle_command(),
        }
    }

    fn settle_command(&mut self) {
        let Some(prompt) = self
            .own()
            .session
            .as_ref()
            .and_then(|session| session.prompt.as_ref())
        else {
            return;
        };
        if let Some(Finished { code, output }) = prompt.finished() {
            let exit_code = Some(code);
            self.reply_typing(Ok(TypedCommand { exit_code, output }));
        } else if prompt.is_unfinished() {
            let name = &self.settings().name;
            let text = format!("{name} waits for the rest of the command");
            let error = RpcError::new(Fault::Refused, text).next(format!(
                "type the rest, or give it up: missiond keys {name} ctrl+c"
            ));
            self.reply_typing(Err(error));
        } else {
            self.note_replaced();
            self.settle_silence();
        }
    }

    fn settle_silence(&mut self) {
        if let Some(why) = self.silence() {
            if let Some(session) = &mut self.own_mut().session {
                session.silenced = Some(why);
            }
            self.fail_typing(why);
        }
    }

    /// Why the shell will not report the end of a command, if it will not.
    fn silence(&self) -> Option<&'static str> {
        let (session, pid) = (self.own().session.as_ref()?, self.machine().pid()?);
        if session.replaced.is_some_and(|at| at.elapsed() >= REPLACED) {
            return Some("its shell has become another program");
        }
        // Shells enable bracketed paste while they edit a line and nothing else runs.
        let edits = self.screen().terminal().modes_set().bracketed_paste
            && session.active.elapsed() >= SHOWN;
        (edits && waits_in_foreground(pid)).then_some("its shell shows a prompt without the marks")
    }

    /// Records which program shows the first prompt: after an `exec` it is another one.
    pub(super) fn know_shell(&mut self) {
        let session = self.own().session.as_ref();
        let is_unknown = session.is_some_and(|session| {
            let prompt = session.prompt.as_ref();
            session.program.is_none() && prompt.is_some_and(ShellPrompt::is_ready)
        });
        if is_unknown {
            let program = self.machine().pid().and_then(program_of);
            if let Some(session) = &mut self.own_mut().session {
                session.program = program;
            }
        }
    }

    /// Notes an `exec`, after which no shell is left to report the end of a command.
    fn note_replaced(&mut self) {
        let now = self.machine().pid().and_then(program_of);
        let Some(session) = &mut self.own_mut().session else {
            return;
        };
        if now.is_some() && session.program.is_some() && session.program != now {
            session.replaced.get_or_insert_with(Instant::now);
        }
    }

    pub(super) fn end_typing(&mut self, report: &ExitReport) {
        let Some(session) = &mut self.own_mut().session else {
            return;
        };
        let Some(typing) = session.typing.take() else {
            return;
        };
        let answer = match typing.stage {
            TypingStage::ShellPrompt(..) => Err(RpcError::new(
                Fault::Failed,
                "it ended before its prompt came; nothing was typed",
            )),
            TypingStage::Command(from) => {
                let began = session.prompt.as_ref().and_then(ShellPrompt::began);
                Ok(TypedCommand {
                    exit_code: exit_code(report),
                    output: Some((began.unwrap_or(from), self.screen().output().end())),
                })
            }
        };
        let _ = typing.reply.send(answer);
    }

    fn fail_typing(&mut self, why: &str) {
        let error = cant_tell(&self.settings().name, why);
        self.reply_typing(Err(error));
    }

    fn reply_typing(&mut self, answer: Result<TypedCommand, RpcError>) {
        let typing = self
            .own_mut()
            .session
            .as_mut()
            .and_then(|session| session.typing.take());
        if let Some(typing) = typing {
            // A client that went away needs no answer.
            let _ = typing.reply.send(answer);
        }
    }
}

/// The exit code as shells report it: 128 plus the number for a signal.
fn exit_code(report: &ExitReport) -> Option<i32> {
    report.code.or(report.signal.map(|signal| 128 + signal))
}

fn cant_tell(name: &str, why: &str) -> RpcError {
    let text = format!("it is unknown when a command of {name} is done: {why}");
    RpcError::new(Fault::Refused, text).next(format!(
        "wait for silence instead: missiond session type {name} … --quiet 500ms\n\
         or for its prompt: missiond session type {name} … --until-prompt REGEX"
    ))
}

fn program_of(pid: u32) -> Option<ShellProgram> {
    Some(ShellProgram {
        file: std::fs::read_link(format!("/proc/{pid}/exe")).ok()?,
        words: std::fs::read(format!("/proc/{pid}/cmdline")).ok()?,
    })
}

/// Tells whether it waits for something, and is in the terminal's foreground process group.
fn waits_in_foreground(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| {
        stat.field(Stat::STATE) == Some("S")
            && stat.field(Stat::GROUP) == stat.field(Stat::FOREGROUND)
    })
}
