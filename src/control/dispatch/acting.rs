//! Requests by which something happens to a slot.

use super::Dispatcher;
use super::sends::ToSend;
use super::session::done;
use crate::control::peer::Peer;
use crate::control::protocol::*;
use crate::daemon::Order;
use crate::keys;
use crate::keys::Answer;
use crate::sends::Record;
use crate::slot::machine::{Confirmation, Input, Message, Reply};
use crate::slot::{Command, SlotHandle, Writing};
use chrono::Utc;
use std::time::Duration;

impl Dispatcher {
    /// The same for several slots at once; one that fails does not hide the others.
    pub(super) async fn each(
        &self,
        select: Select,
        make: fn(u64) -> Input,
    ) -> Result<Vec<Done>, RpcError> {
        let names = self.names(&select)?;
        let slots: Vec<SlotHandle> = names
            .iter()
            .map(|name| self.slot(name))
            .collect::<Result<_, _>>()?;
        self.ask_each(slots, make).await
    }

    /// The same for what starts a program. A slot that is not in the config is never started: refused where it is
    /// named, passed over among all.
    pub(super) async fn each_of_config(
        &self,
        select: Select,
        make: fn(u64) -> Input,
    ) -> Result<Vec<Done>, RpcError> {
        let names = self.names(&select)?;
        let mut slots: Vec<SlotHandle> = names
            .iter()
            .map(|name| self.slot(name))
            .collect::<Result<_, _>>()?;
        if select.slots.is_empty() {
            slots.retain(|slot| !slot.status().removed);
        }
        let (removed, slots): (Vec<SlotHandle>, Vec<SlotHandle>) =
            slots.into_iter().partition(|slot| slot.status().removed);
        let mut done = self.ask_each(slots, make).await?;
        done.extend(removed.iter().map(|slot| {
            let status = slot.status();
            Done {
                error: Some(not_in_config(&status.slot)),
                slot: status.slot,
                state: status.state,
                already: false,
            }
        }));
        Ok(done)
    }

    async fn ask_each(
        &self,
        slots: Vec<SlotHandle>,
        make: fn(u64) -> Input,
    ) -> Result<Vec<Done>, RpcError> {
        let asked = slots.iter().map(|slot| slot.ask(make));
        let outcomes = futures_util::future::join_all(asked).await;
        let done = slots.iter().zip(outcomes).map(|(slot, outcome)| {
            let status = slot.status();
            Done {
                slot: status.slot,
                state: status.state,
                already: matches!(outcome, Ok(Reply::Already)),
                error: outcome.err(),
            }
        });
        Ok(done.collect())
    }

    pub(super) async fn adopt(&self, params: AdoptParams) -> Result<AdoptAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        if slot.status().removed {
            return Err(not_in_config(&params.slot));
        }
        let session = params.session_id;
        let id = session.to_string();
        let others = self.statuses(&None).into_iter();
        let mut others = others.filter(|other| other.slot != params.slot);
        if let Some(other) = others.find(|other| other.session_id.as_ref() == Some(&id)) {
            let text = format!("{id} is the conversation of slot {}", other.slot);
            return Err(RpcError::new(Fault::Refused, text));
        }
        let restarts = slot
            .request(|reply| Command::TakeOver { session, reply })
            .await?;
        if restarts {
            slot.ask(Input::Restart).await?;
        } else if params.start {
            slot.ask(Input::Start).await?;
        }
        Ok(AdoptAnswer {
            slot: params.slot,
            session_id: session,
            running: slot.status().pid.is_some(),
        })
    }

    pub(super) async fn send(&self, params: SendParams) -> Result<SendAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let name = params.slot.clone();
        if slot.status().kind != "claude" {
            let text = format!("{name} is a plain program, not Claude Code");
            return Err(
                RpcError::new(Fault::Refused, text).next(format!("missiond write {name} …"))
            );
        }
        let meaning = keys::Meaning {
            shell: params.shell,
            slash: params.slash,
        };
        let text = keys::message(&params.text, meaning).map_err(|error| not_sendable(&error))?;
        let message = Message {
            token: None,
            slash: params.slash && text.starts_with('/'),
            // Its end is waited for in any case, so that its answer is known.
            wait: true,
            task: None,
            id: params.id.or_else(|| Some(uuid::Uuid::new_v4().to_string())),
            text,
        };
        let record = Record {
            slot: name,
            id: message.id.clone().unwrap_or_default(),
            text: params.text,
            plain: !params.shell && !params.slash,
            unattended: !params.wait,
            queued_at: Utc::now(),
            entered_at: None,
            outcome: None,
        };
        let limit = params.timeout_ms.map(Duration::from_millis);
        self.send_once(ToSend {
            record,
            message,
            slot,
            limit,
        })
        .await
    }

    pub(super) async fn confirm(
        &self,
        params: ConfirmParams,
        uid: u32,
    ) -> Result<ConfirmAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let before = slot.status();
        let answer = answer_of(params.answer, params.text)?;
        let always = matches!(&answer, Answer::Choice(word) if keys::is_always(word));
        let ConfirmParams {
            dialog,
            reason,
            anyway,
            ..
        } = params;
        let reply = slot
            .ask(|token| {
                Input::Confirm(Confirmation {
                    token,
                    answer,
                    dialog,
                    reason,
                    uid,
                    anyway,
                })
            })
            .await?;
        let Reply::Confirmed { dialog, chosen } = reply else {
            return Err(RpcError::new(Fault::Failed, "the slot gave no answer"));
        };
        let added = match always {
            true => Some(self.allow_always(&before, &dialog).await?),
            false => None,
        };
        let (rule, this_once) =
            added.map_or((None, None), |Always { rule, why_not }| (rule, why_not));
        Ok(ConfirmAnswer {
            slot: before.slot,
            dialog,
            chosen,
            rule,
            this_once,
        })
    }

    /// `always`: yes to this one, and a narrow rule for the next, where one would help. `status` was taken before the
    /// answer to `dialog`.
    async fn allow_always(&self, status: &SlotStatus, dialog: &str) -> Result<Always, RpcError> {
        let is_it = status.dialog.as_ref().is_some_and(|seen| seen.id == dialog);
        let rule = match status.always.clone().filter(|_| is_it) {
            Some(Always {
                rule: Some(rule), ..
            }) => rule,
            Some(always) => return Ok(always),
            None => {
                return Ok(Always::from(
                    Err("the dialog was not judged yet".to_owned()),
                ));
            }
        };
        if status.removed {
            let why = format!("{} was removed from the config", status.slot);
            return Ok(Always::from(Err(why)));
        }
        let role = status.role.clone();
        self.daemon
            .order(|reply| Order::AllowAlways { role, rule, reply })
            .await
    }

    pub(super) async fn interrupt(&self, one: OneSlot) -> Result<InterruptAnswer, RpcError> {
        match self.slot(&one.slot)?.ask(Input::Interrupt).await? {
            Reply::Interrupted(effect) => Ok(InterruptAnswer {
                slot: one.slot,
                effect: effect.to_owned(),
            }),
            _ => Err(RpcError::new(Fault::Failed, "the slot gave no answer")),
        }
    }

    pub(super) async fn write(&self, params: WriteParams, peer: &Peer) -> Result<Done, RpcError> {
        let slot = self.slot(&params.slot)?;
        let writing = Writing {
            into_dialog: params.into_dialog,
            ..Writing::raw(params.bytes, peer)
        };
        write(&slot, writing).await?;
        Ok(done(&slot))
    }
}

pub(super) async fn write(slot: &SlotHandle, writing: Writing) -> Result<(), RpcError> {
    slot.request(|reply| Command::Write { writing, reply })
        .await
}

fn not_in_config(slot: &str) -> RpcError {
    let text = format!("{slot} was removed from the config: its program is not started again");
    RpcError::new(Fault::Refused, text).next(format!(
        "put it back into the config, then: missiond reload\nor end its program: missiond stop {slot}"
    ))
}

pub(super) fn not_sendable(error: &keys::NotSendable) -> RpcError {
    match error {
        keys::NotSendable::Slash(_) => RpcError::new(Fault::Refused, error.to_string())
            .next("add --slash if it is meant, or begin the message with a word"),
        _ => RpcError::new(Fault::Usage, error.to_string()),
    }
}

/// A choice or words of one's own: one of them, and not both.
fn answer_of(choice: Option<String>, words: Option<String>) -> Result<Answer, RpcError> {
    match (choice, words) {
        (Some(choice), None) => Ok(Answer::Choice(choice)),
        (None, Some(words)) => Ok(Answer::Words(words)),
        _ => {
            let text = "an answer is either `answer`, a choice of the dialog, or `text`, words of your own";
            Err(RpcError::new(Fault::Usage, text))
        }
    }
}
