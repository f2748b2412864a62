//! What goes out of a slot: keys, entries of the audit and the journal, replies.

use super::answer::{self, Place};
use super::journal::News;
use super::machine::{Decider, Purpose, Reply, Token};
use super::memory::Since;
use super::press::Key;
use super::task::Slot;
use crate::audit::Record;
use crate::control::protocol::{RpcError, What};
use crate::policy::{Ask, Decision, Verdict};
use crate::reading::State;
use crate::sends::Stage;
use crate::shim::ToShim;
use chrono::Utc;

/// Raw inputs that are kept until they are written: more than a person has on the way at once.
const MAX_RAW: usize = 64;

impl Slot {
    /// Whether what was decided may be done: without its entry in the audit nothing is allowed, by whomever.
    pub(super) async fn audit_verdict(
        &mut self,
        verdict: Verdict,
        ask: &Ask,
        decider: Decider,
    ) -> bool {
        let allows = verdict.decision == Decision::Allow;
        let record = self.verdict_record(verdict, ask, decider);
        self.audited(record).await || !allows
    }

    pub(super) fn verdict_record(&self, verdict: Verdict, ask: &Ask, decider: Decider) -> Record {
        Record {
            session: self.memory.session().map(|session| session.id.to_string()),
            verdict: Some(verdict.decision),
            rule: verdict.rule,
            why: verdict.why,
            cwd: Some(ask.cwd.clone()),
            at: ask.at.clone(),
            partial: !ask.complete,
            ..decided_by(
                decider,
                Record::verdict(&self.running.name, &ask.tool, &ask.input),
            )
        }
    }

    pub(super) async fn audited(&mut self, record: Record) -> bool {
        let written = self.world.audit.write(record).await;
        let failed_before = std::mem::replace(&mut self.audit_fails, written.is_err());
        match &written {
            Err(error) if !failed_before => {
                self.warn(&format!("the audit can't be written: {error}"));
            }
            Ok(_) if failed_before => self.warn("the audit is written again"),
            _ => {}
        }
        written.is_ok()
    }

    /// Its entry is in the audit by now.
    pub(super) fn press(&mut self, key: Key) {
        self.tell(What::Key {
            key: key.name,
            reason: key.reason,
        });
        if key.purpose == Purpose::Submits {
            self.note_entered();
            self.turn_began = self.transcript().map(|path| Place::end_of(&path));
        }
        self.next_input(key.bytes);
    }

    /// From now on the message counts as sent: that is on the disk before Enter is pressed.
    fn note_entered(&mut self) {
        let Some(id) = self.machine.message_id() else {
            return;
        };
        if let Err(error) = self.world.sends.entered(&self.running.name, id) {
            self.warn(&format!(
                "that a message is sent can't be written down: {error}"
            ));
        }
    }

    /// Input of a person, until the shim has it.
    pub(super) fn keep_raw(&mut self, bytes: Vec<u8>) {
        if let Some(session) = &mut self.session {
            session.was_written_to(&bytes);
        }
        if self.raw.len() >= MAX_RAW {
            self.raw.pop_front();
        }
        self.raw.push_back((self.last_input, bytes));
    }

    /// Everything up to this number is written, or never will be.
    pub(super) fn forget_raw(&mut self, n: u64) {
        self.raw.retain(|(number, _)| *number > n);
    }

    /// A connection that broke may have taken a person's input along. Its number sees to it that it is written
    /// once. A key of the machine is not sent again: it was decided on by a screen that may be gone.
    pub(super) fn resend_raw(&mut self) {
        for (n, bytes) in self.raw.clone() {
            self.last_input = self.last_input.max(n);
            self.tell_shim(&ToShim::Input { n, bytes });
        }
    }

    pub(super) fn next_input(&mut self, bytes: Vec<u8>) {
        self.last_input += 1;
        self.tell_shim(&ToShim::Input {
            n: self.last_input,
            bytes,
        });
    }

    pub(super) fn tell_shim(&mut self, message: &ToShim) {
        let Some(link) = self.link.as_mut() else {
            return;
        };
        if let Err(error) = link.send(message) {
            self.warn(&format!("the shim was not reached: {error}"));
        }
    }

    pub(super) fn find_answer(&mut self) {
        let place = self.answer_place();
        let on_screen = crate::reading::last_answer(&self.terminal.screen());
        let failed = self.machine.turn_failed();
        self.searching = Some(Box::pin(answer::find(place, on_screen, failed)));
    }

    /// Where the turn began; `/clear` may have begun another file since.
    pub(super) fn answer_place(&mut self) -> Option<Place> {
        let began = self.turn_began.take();
        match (self.transcript(), began) {
            (Some(now), Some(began)) if began.transcript == now => Some(began),
            (Some(now), _) => Some(Place {
                transcript: now,
                offset: 0,
            }),
            (None, began) => began,
        }
    }

    pub(super) fn reply(&mut self, token: Token, reply: Result<Reply, RpcError>) {
        if let Some(waiting) = self.replies.remove(&token) {
            // A client that went away needs no answer.
            let _ = waiting.send(reply);
        }
    }

    pub(super) fn tell(&mut self, what: What) {
        if let What::State { to, .. } = &what {
            self.enter_state(*to);
            self.tell_shim(&ToShim::Mark {
                text: to.name().to_owned(),
            });
        }
        if let (What::Message { .. }, Some(id)) = (&what, self.machine.message_id()) {
            self.world
                .sends
                .reached(&self.running.name, id, Stage::Taken);
        }
        // Who is told of an event finds it in the status too.
        self.publish();
        let event = self.world.bus.publish(Some(&self.running.name), what);
        match self.journal.note(&event) {
            None => {}
            Some(News::Failing(error)) => {
                let log = self.paths.log.display();
                let text = format!("the log can't be written ({log}): {error}");
                tracing::error!(slot = %self.running.name, "{text}");
                self.world
                    .bus
                    .publish(Some(&self.running.name), What::Warning { text });
            }
            Some(News::Recovered { lost }) => self.warn(&format!(
                "the log goes on; {lost} events are missing from it"
            )),
        }
    }

    /// From when on it is in this state: a daemon that takes it up in the same state goes on counting.
    fn enter_state(&mut self, state: State) {
        if self.recalls_state && state == State::Starting {
            self.since = Utc::now();
            return;
        }
        let taken_up = std::mem::replace(&mut self.recalls_state, false);
        let before = self.memory.state.filter(|before| before.state == state);
        let recalled = before.filter(|_| taken_up);
        self.since = recalled.map_or_else(Utc::now, |before| before.since);
        self.memory.state = Some(Since {
            state,
            since: self.since,
        });
        self.save_memory();
    }

    pub(super) fn warn(&mut self, text: &str) {
        self.tell(What::Warning {
            text: text.to_owned(),
        });
    }
}

fn decided_by(decider: Decider, record: Record) -> Record {
    let record = Record {
        by: decider.word().to_owned(),
        answer: decider.answer(),
        ..record
    };
    match decider {
        Decider::Policy => record,
        Decider::Gate { agent, .. } => Record { agent, ..record },
        Decider::Person { uid } => Record {
            uid: Some(uid),
            ..record
        },
        Decider::Keys { uid, pid, keys } => Record {
            uid: Some(uid),
            pid,
            key: Some(keys),
            ..record
        },
    }
}
