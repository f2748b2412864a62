//! The program of a slot: what it runs with, what has to be known before it is started, and how it ended last.

use super::conversation_locks::ConversationLock;
use super::last_end::LastEnd;
use super::probe::{Probe, Probed};
use super::start::NotStarted;
use crate::core::settings::SlotConfig;
use chrono::{DateTime, Utc};
use std::sync::Arc;
use uuid::Uuid;

pub(super) struct SlotProgram {
    /// The settings that it was started with.
    settings: Arc<SlotConfig>,
    /// What has to be known before it is started, on its way.
    probe: Option<Probe>,
    /// Its start has to wait for the task to go on as that of its kind.
    waits_for_kind: bool,
    started_at: Option<DateTime<Utc>>,
    last_end: LastEnd,
    /// The conversation that it has open.
    conversation: Option<ConversationLock>,
}

impl SlotProgram {
    pub fn new(settings: Arc<SlotConfig>) -> SlotProgram {
        SlotProgram {
            settings,
            probe: None,
            waits_for_kind: false,
            started_at: None,
            last_end: LastEnd::default(),
            conversation: None,
        }
    }

    pub fn settings(&self) -> &Arc<SlotConfig> {
        &self.settings
    }

    pub fn runs_with(&mut self, settings: Arc<SlotConfig>) {
        self.settings = settings;
    }

    /// Begins to find out what has to be known.
    pub fn begin_probe(&mut self, probe: Probe) {
        self.probe = Some(probe);
    }

    /// It is of another kind than the one before: its start goes on when the task is one for that kind.
    pub fn wait_for_kind(&mut self) {
        self.waits_for_kind = true;
    }

    /// Whether its start is to go on now.
    pub fn goes_on_starting(&mut self) -> bool {
        std::mem::take(&mut self.waits_for_kind)
    }

    /// Cancels a start that has not come further than that.
    pub fn cancel_probe(&mut self) {
        (self.probe, self.waits_for_kind) = (None, false);
    }

    /// What was found out; never, if nothing has to be.
    pub async fn probed(&mut self) -> Result<Probed, NotStarted> {
        let Some(probe) = &mut self.probe else {
            return std::future::pending().await;
        };
        let probed = probe.await;
        self.probe = None;
        probed
    }

    pub fn started_at(&self) -> Option<DateTime<Utc>> {
        self.started_at
    }

    pub fn was_started(&mut self, at: DateTime<Utc>) {
        self.started_at = Some(at);
    }

    pub fn last_end(&self) -> &LastEnd {
        &self.last_end
    }

    pub fn last_end_mut(&mut self) -> &mut LastEnd {
        &mut self.last_end
    }

    /// It has this conversation open from now on, or none.
    pub fn hold(&mut self, conversation: Option<ConversationLock>) {
        self.conversation = conversation;
    }

    pub fn holds(&self, id: Uuid) -> bool {
        let conversation = self.conversation.as_ref();
        conversation.is_some_and(|lock| lock.is_for(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::machine::Cause;
    use crate::slot::ConversationLocks;
    use futures_util::FutureExt;

    fn program() -> SlotProgram {
        SlotProgram::new(Arc::new(SlotConfig::usual("coder", "/work")))
    }

    #[test]
    fn a_start_that_is_cancelled_is_never_heard_of() {
        let mut program = program();
        assert!(program.probed().now_or_never().is_none());
        let not_started = || async { Err(NotStarted::new(Cause::Failed, "no")) };
        program.begin_probe(Box::pin(not_started()));
        program.cancel_probe();
        assert!(program.probed().now_or_never().is_none());
        program.begin_probe(Box::pin(not_started()));
        assert!(program.probed().now_or_never().is_some());
        assert!(program.probed().now_or_never().is_none(), "it is told once");
    }

    #[test]
    fn it_has_one_conversation_open_at_a_time() {
        let (mut program, locks) = (program(), ConversationLocks::default());
        let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
        program.hold(locks.take(one, "coder").ok());
        assert!(program.holds(one) && !program.holds(other));
        program.hold(locks.take(other, "coder").ok());
        assert!(program.holds(other));
        assert!(locks.take(one, "b").is_ok(), "it was let go");
    }
}
