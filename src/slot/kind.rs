//! What the task of a slot does for one kind of program and not for the other. What it does for both is in [`Slot`]; a kind
//! has the default here if there is nothing to do for it.

use super::Slot;
use super::context::SlotContext;
use super::conversation::KeptConversation;
use super::handle::Answer;
use super::lookups::ClaudeFiles;
use super::press::Looked;
use super::probe::{ProbedClaude, WantedClaude};
use super::requests::TypedCommand;
use super::start::NotStarted;
use super::witness::FileEvidence;
use super::writing::Writing;
use crate::core::claude::reading::Observer;
use crate::core::claude::reading::witness::Witness;
use crate::core::machine::{Input, Observation, Runs, Stroke};
use crate::core::model::{
    Conversation, Evidence, ExitReport, Fault, Person, RpcError, SessionStatus,
};
use crate::core::settings::{Kind, SlotConfig};
use crate::core::terminal::{At, Frame};
use crate::launch::SessionStart;
use crate::shim::Hello;
use chrono::{DateTime, Utc};
use std::future::{Future, ready};
use std::sync::Arc;
use uuid::Uuid;

/// What a program is started with, beside its command.
pub(crate) struct StartArguments {
    pub args: Vec<String>,
    pub session: Option<SessionStart>,
    /// What was found of the conversation that it goes on with.
    pub conversation: Option<KeptConversation>,
    /// Whether its screens were tried.
    pub known: bool,
}

/// A kind of program, with what is known of the one that runs.
pub(crate) trait ProgramKind: Sized + Send + 'static {
    const KIND: Kind;
    /// Whether its screen is read. Else each line that it writes counts for those who wait for one.
    const READS_SCREEN: bool;
    /// What comes of it with nothing new on its screen.
    type News: Send;

    fn new(context: &SlotContext, config: &SlotConfig) -> Self;

    /// The next news; `knows` is whether its recording has been read.
    fn next(&mut self, knows: bool) -> impl Future<Output = Self::News> + Send;
    fn take_news(slot: &mut Slot<Self>, news: Self::News) -> impl Future<Output = ()> + Send;

    /// It has drawn these, and then written nothing until `quiet`.
    fn take_frames(
        slot: &mut Slot<Self>,
        frames: Vec<Frame>,
        quiet: Option<At>,
    ) -> impl Future<Output = ()> + Send;

    /// What it wrote, live or from its recording, has been kept.
    fn has_kept(&mut self, _bytes: &[u8]) {}

    /// It wrote so many bytes before all that has been kept of it so far.
    fn has_lost(&mut self, _bytes: u64) {}

    /// A person has written this to it.
    fn was_written_to(&mut self, _bytes: &[u8]) {}

    /// It has ended, or another one begins.
    fn forget(&mut self) {}

    /// What the machine was told last of the screen.
    fn last_seen(&self) -> Option<&Observation> {
        None
    }

    /// Another observer has read the screen from the recording, or nobody has.
    fn observe_with(&mut self, _observer: Observer) {}

    /// What was observed, if it is news to the machine.
    fn news(&mut self) -> Option<Input> {
        None
    }

    /// All that has come from the program is taken in, just before a key.
    fn look_again(_slot: &mut Slot<Self>) -> impl Future<Output = Looked> + Send {
        ready(Looked::Still(None))
    }

    /// Asks everyone who can tell something beside the screen.
    fn ask_witnesses(_slot: &mut Slot<Self>) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Whether they are being asked: what must rest on what they say waits.
    fn asks_witnesses(&self) -> bool {
        false
    }

    fn witness_all(_slot: &Slot<Self>, _files: &FileEvidence) -> Vec<Witness> {
        Vec::new()
    }

    fn tell_why(slot: &mut Slot<Self>, reply: Answer<Vec<Evidence>>) {
        let evidence = slot.evidence(&Ok(FileEvidence::default()));
        drop(reply.send(Ok(evidence)));
    }

    /// Files of it were looked at.
    fn looked_up(_slot: &mut Slot<Self>, _found: ClaudeFiles) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Takes a command for the machine.
    fn take_input(slot: &mut Slot<Self>, input: Box<Input>) -> impl Future<Output = ()> + Send {
        async move {
            if slot.is_from_own_session(&input, false).await {
                slot.input(*input).await;
            }
        }
    }

    /// Raw input of a person.
    fn write(
        slot: &mut Slot<Self>,
        writing: Writing,
    ) -> impl Future<Output = Result<(), RpcError>> + Send {
        slot.write_plainly(writing)
    }

    /// A person types at an attached terminal, and not at a dialog.
    fn note_acting_key(
        _slot: &mut Slot<Self>,
        _strokes: &[Stroke],
        _bytes: &[u8],
        _person: &Person,
    ) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Enter is about to be pressed, which begins a turn.
    fn begin_turn(_slot: &mut Slot<Self>) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Looks for the answer of the turn that has just ended; returns it if it is known at once.
    fn find_answer(slot: &mut Slot<Self>) -> Option<Input>;

    /// What has to be known before its next start, if it is Claude Code.
    fn wanted(_slot: &Slot<Self>) -> Option<WantedClaude> {
        None
    }

    fn arguments(
        slot: &mut Slot<Self>,
        _command: &[String],
        _probed: Option<ProbedClaude>,
    ) -> Result<StartArguments, NotStarted> {
        Ok(StartArguments {
            args: slot.program.settings().args.clone(),
            session: None,
            conversation: None,
            known: true,
        })
    }

    /// What the machine sees at its start, if its screen is not read.
    fn first_sight() -> Option<Input> {
        None
    }

    /// Whether its program is started once, by whoever made the slot.
    fn starts_once(&self) -> bool {
        false
    }

    /// No shim answers at the start of the daemon: ends what a dead one left. Whether a living one was taken up after all.
    fn take_up_left(slot: &mut Slot<Self>) -> impl Future<Output = bool> + Send {
        slot.take_up_left()
    }

    /// What the program `pid` was started with, if there is no record of that.
    fn without_record(pid: u32, settings: Arc<SlotConfig>) -> impl Future<Output = Runs> + Send;

    /// A program of this kind was found running: what the machine is to know of it.
    fn found_running(
        slot: &mut Slot<Self>,
        hello: &Hello,
    ) -> impl Future<Output = Vec<Input>> + Send;

    fn gate(slot: &Slot<Self>) -> &'static str;

    fn conversation(_slot: &Slot<Self>) -> Conversation {
        Conversation::default()
    }

    fn take_over(slot: &mut Slot<Self>, _id: Uuid, reply: Answer<bool>) {
        let name = &slot.program.settings().name;
        let text = format!("{name} is a plain program, which has no conversation");
        drop(reply.send(Err(RpcError::new(Fault::Refused, text))));
    }

    fn session_status(&self, _size: (usize, usize)) -> Option<SessionStatus> {
        None
    }

    /// Whether it has ended for good.
    fn has_ended(&self) -> bool {
        false
    }

    /// Why nothing can be written to it.
    fn not_running(slot: &Slot<Self>) -> RpcError {
        slot.not_started()
    }

    /// Types a command once the shell is at its prompt, and replies when it is there again.
    fn type_and_wait(
        slot: &mut Slot<Self>,
        _bytes: Vec<u8>,
        _person: Person,
        reply: Answer<TypedCommand>,
    ) -> impl Future<Output = ()> + Send {
        drop(reply.send(Err(slot.cant_tell_end())));
        ready(())
    }

    /// Somebody outside has a reason to end it.
    fn end_for(_slot: &mut Slot<Self>, _why: String) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// It is about to be closed, for this reason.
    fn leaves(&mut self, _why: String) {}

    /// The program has ended.
    fn note_end(_slot: &mut Slot<Self>, _report: &ExitReport, _at: DateTime<Utc>) {}

    /// Writes down again what is kept of it beside the memory.
    fn save_record(_slot: &mut Slot<Self>) -> impl Future<Output = ()> + Send {
        ready(())
    }
}
