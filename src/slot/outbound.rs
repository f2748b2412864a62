//! What goes out of a slot: keys, entries of the audit and the journal, replies.

use super::Slot;
use super::kind::ProgramKind;
use super::memory::KeptDraft;
use super::press::DecidedKey;
use crate::audit::Record;
use crate::core::claude::reading::State;
use crate::core::machine::{Decider, Deciding, Purpose, Refusal, Reply, Token};
use crate::core::model::{AnsweredDialog, EventKind, RpcError, Trace, dropped_messages};
use crate::core::policy::{Ask, Decision, Verdict};
use crate::shim::{LinkError, MAX_NOTE, ToShim};
use crate::slot::once::Stage;
use chrono::Utc;

/// For the open calls, with room for what is around them.
const NOTE: usize = MAX_NOTE - 1024;

impl<K: ProgramKind> Slot<K> {
    /// Whether what was decided may be done: without its entry in the audit nothing is allowed, by whomever.
    pub(super) async fn audit_verdict(
        &mut self,
        verdict: Verdict,
        ask: &Ask,
        decider: Decider,
    ) -> Result<(), RpcError> {
        let allows = verdict.decision == Decision::Allow;
        let answer = self.answer_of(&verdict, &decider);
        let record = self.verdict_record(verdict, ask, decider);
        match allows {
            true => self.log.audited(record).await?,
            false => self.log.noted(record).await,
        }
        if let Some(answer) = answer {
            self.shown.note_answer(answer);
        }
        Ok(())
    }

    /// The answer to the dialog, for others who are about to answer the same one; `None` if the verdict is about no dialog.
    fn answer_of(&self, verdict: &Verdict, decider: &Decider) -> Option<AnsweredDialog> {
        let via = match decider {
            Decider::Policy => None,
            Decider::Person(person) | Decider::Keys { person, .. } => Some(person.via.clone()),
            Decider::Gate { .. } => return None,
        };
        let dialog = self.machine.dialog().map(|dialog| dialog.id.clone());
        Some(AnsweredDialog {
            dialog: dialog.or_else(|| self.shown.dialog())?,
            time: Utc::now(),
            verdict: verdict.decision,
            by: decider.word().to_owned(),
            via,
            why: verdict.why.clone(),
        })
    }

    pub(super) fn verdict_record(&self, verdict: Verdict, ask: &Ask, decider: Decider) -> Record {
        let name = &self.program.settings().name;
        let mut record = Record::verdict(name, &ask.tool, &ask.input);
        record.call.cwd = Some(ask.cwd.clone());
        record.call.at.clone_from(&ask.at);
        record.call.partial = !ask.complete;
        Record {
            session: self.memory.session().map(|session| session.id.to_string()),
            verdict: Some(verdict.decision),
            rule: verdict.rule,
            why: verdict.why,
            ..decided_by(decider, record)
        }
    }

    /// Its entry is in the audit by now. Returns whether it is on its way to the program.
    pub(super) async fn press(&mut self, key: DecidedKey) -> bool {
        self.tell(EventKind::Key {
            key: key.name.clone(),
            reason: key.reason.clone(),
        });
        if key.purpose == Purpose::Submits {
            self.note_entered().await;
            K::begin_turn(self).await;
        }
        if key.purpose == Purpose::Types && !key.is_raw {
            self.keep_draft().await;
        }
        let Err(error) = self.link.press(&key.name, key.bytes) else {
            return true;
        };
        let why = format!("the shim was not reached: {error}");
        self.note_no_effect(&key.name, key.person.as_ref(), &why)
            .await;
        self.warn(&why);
        false
    }

    /// The shim has not written an input. If it was a key that the audit has, the audit has this too.
    pub(super) fn not_written(&mut self, number: u64, reason: &str) {
        self.warn(&format!("keys were not written: {reason}"));
        if let Some(key) = self.link.refused(number) {
            let why = format!("the key was not written: {reason}");
            let record = Record::no_effect(&self.program.settings().name, &key, &why);
            self.log.note_soon(record);
        }
    }

    /// The next input types a message or clears one: that is on the disk before, so that the next daemon knows it as ours.
    async fn keep_draft(&mut self) {
        let Some(own) = self.machine.own_text().cloned() else {
            return;
        };
        let number = self.link.next_number();
        self.memory.change(|memory| {
            let last = memory.draft.take();
            memory.draft = Some(KeptDraft::by_input(own, number, last));
        });
        while self.memory.is_saving() {
            let written = self.memory.written().await;
            self.memory_written(written);
        }
    }

    /// From now on the message counts as sent: that is on the disk before Enter is pressed.
    async fn note_entered(&mut self) {
        let Some(id) = self.machine.message_id().map(str::to_owned) else {
            return;
        };
        let (sends, slot) = (
            self.context.once.sends.clone(),
            self.program.settings().name.clone(),
        );
        let note = move || sends.entered(&slot, &id, |_| {});
        if let Err(error) = self.memory.disk().run(note).await.flatten() {
            self.warn(&format!(
                "that a message is sent can't be written down: {error}"
            ));
        }
    }

    /// The Enter that was noted was not written: the message may be sent again.
    pub(super) async fn note_not_entered(&mut self, id: String) {
        let (sends, slot) = (
            self.context.once.sends.clone(),
            self.program.settings().name.clone(),
        );
        let note = move || sends.not_entered(&slot, &id);
        if let Err(error) = self.memory.disk().run(note).await.flatten() {
            self.warn(&format!(
                "that a message was not sent can't be written down: {error}"
            ));
        }
    }

    /// Whoever asks what became of the message learns that it was dropped.
    pub(super) async fn note_dropped(&mut self, id: String, why: RpcError) {
        let (sends, slot) = (
            self.context.once.sends.clone(),
            self.program.settings().name.clone(),
        );
        let note = move || sends.dropped(&slot, &id, why);
        if let Err(error) = self.memory.disk().run(note).await.flatten() {
            self.warn(&format!(
                "that a message was dropped can't be written down: {error}"
            ));
        }
    }

    /// The program has ended while there was no daemon. What waited behind its turn is not taken into the next run, as if
    /// the daemon had seen the end.
    pub(super) async fn drop_unsent(&mut self) {
        let why = "its program ended while there was no daemon";
        let (sends, slot) = (
            self.context.once.sends.clone(),
            self.program.settings().name.clone(),
        );
        let error = Refusal::Dropped.says(format!("not sent: {why}"));
        let error = error.trace(Trace::Untouched);
        let drop = move || sends.drop_unsent(&slot, &error);
        let dropped = self.memory.disk().run(drop).await;
        match dropped.flatten() {
            Ok(ids) if ids.is_empty() => {}
            Ok(ids) => self.warn(&format!("{}: {why}", dropped_messages(ids.len(), &ids))),
            Err(error) => self.warn(&format!(
                "messages that wait for it can't be dropped: {error}"
            )),
        }
    }

    /// From now on a person's answer counts as given: that is on the disk before the key is pressed that decides.
    pub(super) async fn note_decided(&mut self) {
        let Some(Deciding { id, dialog, chosen }) = self.machine.deciding() else {
            return;
        };
        let (confirms, slot) = (
            self.context.once.confirms.clone(),
            self.program.settings().name.clone(),
        );
        let note = move || {
            confirms.entered(&slot, &id, |confirming| {
                confirming.dialog = Some(dialog);
                confirming.chosen = Some(chosen);
            })
        };
        // Unwritten, a repeated answer goes to the same dialog or to none.
        if let Err(error) = self.memory.disk().run(note).await.flatten() {
            self.warn(&format!(
                "that a dialog is answered can't be written down: {error}"
            ));
        }
    }

    /// Input of a person, until the shim has it.
    pub(super) fn keep_raw(&mut self, bytes: Vec<u8>) {
        self.own.was_written_to(&bytes);
        self.link.keep_last(bytes);
    }

    pub(super) fn resend_raw(&mut self) {
        let sent = self.link.resend();
        self.tell_unreached(sent);
    }

    pub(super) fn next_input(&mut self, bytes: Vec<u8>) {
        let sent = self.link.write(bytes);
        self.tell_unreached(sent);
    }

    /// The shim keeps the open calls for the daemon that comes after one that was killed.
    pub(super) fn keep_calls(&mut self) {
        let changes = self.machine.changes_of_calls();
        let Some(number) = changes.filter(|number| self.link.lacks_note(*number)) else {
            return;
        };
        if let Some(note) = self.machine.note_of_calls(NOTE) {
            let sent = self.link.keep(number, note);
            self.tell_unreached(sent);
        }
    }

    pub(super) fn tell_shim(&mut self, message: &ToShim) {
        let sent = self.link.send(message);
        self.tell_unreached(sent);
    }

    fn tell_unreached(&mut self, sent: Result<(), LinkError>) {
        if let Err(error) = sent {
            self.warn(&format!("the shim was not reached: {error}"));
        }
    }

    /// Replies; without its entry in the audit nothing is allowed.
    pub(super) fn reply_if_audited(
        &mut self,
        token: Token,
        reply: Result<Reply, RpcError>,
        audited: bool,
    ) {
        // Whoever is answered finds it in the status too, and the next daemon knows of it.
        self.publish();
        self.keep_calls();
        let reply = match (audited, reply) {
            (true, Ok(reply @ (Reply::Done | Reply::Already | Reply::Cut(_)))) => {
                self.keep_in_mind();
                let Some((_, reply)) = self.memory.hold(token, reply) else {
                    return;
                };
                reply
            }
            (true, reply) => reply,
            (false, reply) => reply.map(|reply| self.machine.unallowed(reply)),
        };
        self.clients.reply(token, reply);
    }

    pub(crate) fn tell(&mut self, what: EventKind) {
        if let EventKind::State { to, .. } = &what {
            self.enter_state(*to);
            self.tell_shim(&ToShim::Mark {
                text: to.name().to_owned(),
            });
        }
        if let (EventKind::Message { .. }, Some(id)) = (&what, self.machine.message_id()) {
            self.context
                .once
                .sends
                .reached(&self.program.settings().name, id, Stage::Taken);
        }
        // Who is told of an event finds it in the status too.
        self.publish();
        self.log.tell(what);
    }

    fn enter_state(&mut self, state: State) {
        if let Some(since) = self.shown.enter(state, self.memory.state) {
            self.memory.change(|memory| memory.state = Some(since));
        }
    }

    pub(crate) fn warn(&mut self, text: &str) {
        self.tell(EventKind::Warning {
            text: text.to_owned(),
        });
    }
}

fn decided_by(decider: Decider, mut record: Record) -> Record {
    record.actor.by = decider.word().to_owned();
    record.answer = decider.answer();
    match decider {
        Decider::Policy => record,
        Decider::Gate { agent, .. } => {
            record.call.agent = agent;
            record
        }
        Decider::Person(person) => record.by(&person),
        Decider::Keys { person, keys } => Record {
            key: Some(keys),
            ..record.by(&person)
        },
    }
}
