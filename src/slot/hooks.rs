//! What the hooks of Claude Code say.

use super::Slot;
use super::claude::Claude;
use super::memory::Memory;
use crate::core::claude::{HookEvent, HookWhat};
use crate::core::machine::Input;
use crate::core::model::EventKind;
use crate::launch;
use std::path::{Component, Path};
use uuid::Uuid;

impl Slot<Claude> {
    /// `entered`: Claude Code has noted that it is in the conversation that the hook speaks of.
    pub(super) fn note_hook(&mut self, input: &Input, entered: bool) {
        let Input::Heard(_, event) = input else {
            return;
        };
        if matches!(event.what, HookWhat::Cost(_)) {
            return;
        }
        self.own.witnesses_mut().heard(&event.what);
        self.tell_displayed(&event.what);
        if !matches!(event.what, HookWhat::Displayed { .. }) {
            self.follow_session(event, entered);
        }
        if event.what == HookWhat::PromptTaken {
            self.memory.change_if(Memory::begin);
        }
        let pid = self.machine.pid();
        if event.what == HookWhat::SessionStart && self.memory.gated != pid {
            self.memory.change(|memory| memory.gated = pid);
        }
    }

    /// The conversation that a hook speaks of, if it is another than the present one: then it has to be looked up whether
    /// Claude Code is in it by now.
    pub(super) fn other_conversation(&self, input: &Input) -> Option<Uuid> {
        let Input::Heard(_, event) = input else {
            return None;
        };
        if matches!(event.what, HookWhat::Cost(_)) {
            return None;
        }
        let id = event.session_id.as_ref()?.parse().ok()?;
        let present = self.memory.session().map(|session| session.id);
        (present != Some(id)).then_some(id)
    }

    /// A hook of another conversation waits until it is known whether Claude Code is in that.
    pub(super) async fn look_up_hook(&mut self, input: Box<Input>, conversation: Uuid) {
        let look = self.look_whether_entered(conversation);
        if let Some(input) = self.lookups.of_hook(input, look) {
            self.take_input(*input, false).await;
        }
    }

    /// Takes a command for the machine; one that is a hook of another conversation only if that is this slot's.
    pub(super) async fn take_input(&mut self, input: Input, entered: bool) {
        if self.is_from_own_session(&input, entered).await {
            self.note_hook(&input, entered);
            self.input(input).await;
        }
    }

    /// `/clear` begins a new conversation under a new id, and a hook is how one hears of it. A late word of an earlier
    /// one leads nowhere.
    fn follow_session(&mut self, event: &HookEvent, entered: bool) {
        let Some(id) = event.session_id.as_ref().and_then(|id| id.parse().ok()) else {
            return;
        };
        let before = self.memory.session().map(|session| session.id);
        if before != Some(id) && !entered {
            return;
        }
        let transcript = event.transcript.clone();
        let transcript = transcript.filter(|path| self.is_transcript_of(id, path));
        if !self.memory.change_if(|memory| memory.enter(id, transcript)) {
            return;
        }
        self.hold(id);
        if before.is_some_and(|before| before != id) {
            self.tell(EventKind::Session {
                session_id: id.to_string(),
            });
        }
    }

    /// A tool can play the hook too: only a file where Claude Code keeps this conversation is read for it.
    fn is_transcript_of(&self, id: Uuid, path: &Path) -> bool {
        let own = launch::own_directory(&self.slot_environment());
        let plain = path.components().all(|part| part != Component::ParentDir);
        plain
            && path
                .file_stem()
                .is_some_and(|stem| stem == id.to_string().as_str())
            && own.is_some_and(|own| path.starts_with(own.join("projects")))
    }
}
