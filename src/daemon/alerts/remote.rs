//! Answers that a person gives by the buttons of an ntfy message: the codes behind the buttons, and the path from a
//! received code to `confirm`. Only a code that this daemon has issued leads to an answer.

use super::super::{RemoteAnswer, Slots};
use crate::audit::{Audit, Record};
use crate::core::alerts::{Alert, AnswerCodes, Buttons, CodeMeaning, Redeemed, RemoteWord};
use crate::core::claude::reading::DialogKind;
use crate::core::model::{ConfirmParams, EventKind};
use crate::core::settings::{NotifyConfig, NtfyConfig};
use crate::events::Bus;
use crate::os::random;
use crate::push::{Failing, Replies};
use chrono::Utc;
use serde_json::json;
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot, watch};

/// The name of this channel in the audit.
const VIA: &str = "ntfy";

/// The maximum of queued notes to the person.
const MAX_NOTES: usize = 16;

/// The receiver of answers, set once there is a server.
pub type Answers = Arc<OnceLock<mpsc::Sender<RemoteAnswer>>>;

/// The result of an answer, for the person who gave it.
#[derive(Debug)]
pub struct AnswerNote {
    pub slot: String,
    pub text: String,
}

#[derive(Debug)]
pub struct RemoteDesk {
    /// `None` if the kernel gives no random numbers: then there are no buttons.
    codes: Option<AnswerCodes>,
    replies: Option<Replies>,
    /// The settings for which `replies` was started.
    heard: Option<NtfyConfig>,
    answers: Answers,
    notes: mpsc::Sender<AnswerNote>,
    failing: watch::Sender<Failing>,
    audit: Audit,
    bus: Bus,
}

impl RemoteDesk {
    pub fn new(
        answers: Answers,
        failing: watch::Sender<Failing>,
        audit: Audit,
        bus: Bus,
    ) -> (RemoteDesk, mpsc::Receiver<AnswerNote>) {
        let (notes, received) = mpsc::channel(MAX_NOTES);
        let key = random::bytes();
        let desk = RemoteDesk {
            codes: key.ok().map(AnswerCodes::new),
            replies: None,
            heard: None,
            answers,
            notes,
            failing,
            audit,
            bus,
        };
        (desk, received)
    }

    /// Subscribes to the reply topic of these settings, and to no other.
    pub fn listen(&mut self, config: &NotifyConfig) {
        if self.heard == config.ntfy {
            return;
        }
        self.heard = config.ntfy.clone();
        let started = config.ntfy.as_ref();
        let started = started.map(|ntfy| Replies::start(ntfy, self.failing.clone()));
        self.replies = started
            .transpose()
            .map(Option::flatten)
            .unwrap_or_else(|error| {
                tracing::warn!("[notify] the replies of ntfy are not received: {error}");
                None
            });
    }

    /// The next text that was posted to the reply topic.
    pub async fn next(&mut self) -> String {
        let reply = match &mut self.replies {
            Some(replies) => replies.next().await,
            None => None,
        };
        match reply {
            Some(reply) => reply,
            None => std::future::pending().await,
        }
    }

    /// Issues codes for a dialog that can be answered with a yes or a no. A code for yes is issued only if the person
    /// sees the whole request in single lines, and if no program of this user can read the code.
    pub fn buttons(&mut self, config: &NotifyConfig, alert: &Alert) -> Buttons {
        let (Some(codes), Some(replies)) = (&mut self.codes, &self.replies) else {
            return Buttons::default();
        };
        let request = alert.request.as_ref();
        let asks = request.filter(|request| request.kind == DialogKind::Permission);
        let Some(request) = asks.filter(|_| self.answers.get().is_some()) else {
            return Buttons::default();
        };
        let may_allow = config.ntfy.as_ref().is_some_and(NtfyConfig::allows);
        let may_allow =
            may_allow && request.whole && request.is_plain && replies.topic_is_private();
        let now = Utc::now();
        Buttons {
            deny: codes.issue(alert, RemoteWord::No, now),
            allow: may_allow
                .then(|| codes.issue(alert, RemoteWord::Yes, now))
                .flatten(),
        }
    }

    /// Marks the codes of an alert whose cause is over.
    pub fn over(&mut self, alert: &Alert) {
        if let (Some(codes), Some(story)) = (&mut self.codes, alert.state.story()) {
            codes.over(&alert.id, &story);
        }
    }

    /// Redeems a received code. Any other text has no effect.
    pub fn hear(&mut self, text: &str, slots: &Slots) {
        let Some(codes) = &mut self.codes else { return };
        match codes.redeem(text, Utc::now()) {
            Redeemed::Answer(meaning) => self.answer(meaning, slots),
            Redeemed::Late { slot, story } => self.tell_late(slot, story),
            Redeemed::Nothing => {}
            Redeemed::Wrong(why) => {
                if let Some(text) = codes.wrong(why, Utc::now()) {
                    self.alarm(text);
                }
            }
        }
    }

    /// Gives the answer as a `confirm`, like any other person: it is refused if another dialog is up, and done once.
    fn answer(&self, meaning: CodeMeaning, slots: &Slots) {
        let Some(answers) = self.answers.get().cloned() else {
            return;
        };
        let status = slots.get(&meaning.slot).map(|slot| slot.status());
        let dialog = status.as_ref().and_then(|status| status.dialog.as_ref());
        let is_as_shown = dialog.zip(status.as_ref()).is_some_and(|(dialog, status)| {
            let mut now = Alert::of_dialog(&meaning.slot, dialog);
            now.complete(status);
            meaning.is_as_shown(&now)
        });
        if meaning.answer == RemoteWord::Yes && !is_as_shown {
            let story = "what it asks has changed; look at it".to_owned();
            return self.tell_late(meaning.slot, story);
        }
        let (reply, done) = oneshot::channel();
        let answer = meaning.answer.word();
        let params = ConfirmParams {
            slot: meaning.slot.clone(),
            answer: Some(answer.to_owned()),
            text: None,
            dialog: Some(meaning.dialog),
            reason: None,
            anyway: false,
            against_rule: false,
            id: Some(format!("{VIA}-{}-{answer}", meaning.alert)),
        };
        let notes = self.notes.clone();
        tokio::spawn(async move {
            let answer = RemoteAnswer {
                params,
                via: VIA,
                reply,
            };
            let refused = match answers.send(answer).await {
                Ok(()) => done.await.ok().and_then(Result::err),
                Err(_) => None,
            };
            if let Some(error) = refused {
                let (slot, text) = (meaning.slot, error.message);
                // If the daemon is ending, the note has no receiver.
                let _ = notes.send(AnswerNote { slot, text }).await;
            }
        });
    }

    fn tell_late(&self, slot: String, text: String) {
        if self.notes.try_send(AnswerNote { slot, text }).is_err() {
            tracing::warn!("[notify] too many answers from ntfy came too late");
        }
    }

    /// Records that a code came which this daemon never issued.
    fn alarm(&self, text: String) {
        tracing::warn!("alarm: {text}");
        let record = Record::alarm("", VIA, &json!({}), &text);
        self.bus.publish(None, EventKind::Warning { text });
        let audit = self.audit.clone();
        tokio::spawn(async move {
            if let Err(error) = audit.note(record).await {
                tracing::error!("the audit can't be written: {error}");
            }
        });
    }
}
