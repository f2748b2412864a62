use super::*;
use crate::core::claude::keys::{self, Answer};
use crate::core::machine::{Confirmation, Refusal, SUBMIT};
use crate::daemon::DaemonHandle;
use crate::os::local_time;
use crate::slot::once::{Active, Begun, Came, Confirming, OnceOutcome, OnceRecord};
use std::sync::Arc;

/// The time limit for a pressed key to show on the screen, also on a loaded machine.
const KEY_SHOWS: Duration = Duration::from_secs(10);

request! {
    /// Answers a dialog.
    Confirm = "confirm", ConfirmParams => ConfirmAnswer;
    access: PersonOnly;
    scope: Scope::Answer;
    names: Accepts::Slots("missiond session type ID …, missiond keys ID …");
}

async fn answer(call: Call<'_>, params: ConfirmParams) -> Result<ConfirmAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    answer_of(&params)?;
    // A daemon that was just started has not read the dialog yet.
    slot.has_looked().await;
    let record = asked_now(params, &slot.status());
    let (asked, told) = (record.request.dialog.clone(), slot.clone());
    let confirms = call.daemon().once().confirms.clone();
    let waiter = match confirms.begin_on_disk(record).await? {
        Begun::Ended(outcome) => return outcome.result(),
        Begun::UnderWay(waiter) => waiter,
        Begun::Yours(waiter, record) => {
            let on_its_way = ConfirmOnItsWay {
                daemon: call.daemon().clone(),
                slot,
                person: call.peer.person(),
                record: *record,
                active: waiter.active(),
            };
            tokio::spawn(on_its_way.run());
            waiter
        }
    };
    let outcome = waiter.outcome().await;
    outcome.map_err(|error| with_first_answer(error, asked, &told.status()))
}

/// The refusals that mean that an answer came too late. An answer whose own key was withheld is not among them.
const TOO_LATE: [Refusal; 4] = [
    Refusal::NoDialog,
    Refusal::OtherDialog,
    Refusal::HiddenDialog,
    Refusal::KeysUnderWay,
];

/// The first answer wins. The error of a later answer says who gave the first one, when and how, not only that the
/// dialog is gone.
fn with_first_answer(error: RpcError, asked: Option<String>, status: &SlotStatus) -> RpcError {
    let is_it = |first: &&AnsweredDialog| Some(&first.dialog) == asked.as_ref();
    let first = status.answered.as_ref().filter(is_it);
    let is_late = TOO_LATE
        .iter()
        .any(|late| error.refusal == Some(late.name()));
    let Some(first) = first.filter(|_| is_late) else {
        return error;
    };
    let at = local_time::clock(first.time);
    let by = first.via.as_ref().unwrap_or(&first.by);
    let (slot, why) = (&status.slot, &first.why);
    let message = format!("{slot} was answered before, at {at} by {by}: {why}");
    RpcError {
        next: None,
        ..RpcError { message, ..error }
    }
}

/// An answer and its dialog: the one that the request names, else the one that is up now.
fn asked_now(params: ConfirmParams, status: &SlotStatus) -> OnceRecord<Confirming> {
    let up = status.dialog.as_ref().map(|dialog| dialog.id.clone());
    let is_up = params.dialog.is_none() || params.dialog == up;
    let id = params.id.clone();
    let confirming = Confirming {
        dialog: params.dialog.clone().or(up),
        always: status.always.clone().filter(|_| is_up),
        chosen: None,
        asked: ConfirmParams { id: None, ..params },
    };
    let id = id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    OnceRecord::new(confirming.asked.slot.clone(), id, confirming)
}

/// An answer that this daemon carries out.
struct ConfirmOnItsWay {
    daemon: DaemonHandle,
    slot: SlotHandle,
    person: Person,
    record: OnceRecord<Confirming>,
    active: Arc<Active<Confirming>>,
}

impl ConfirmOnItsWay {
    async fn run(self) {
        let came = match self.record.entered_at {
            Some(_) => self.look_for().await,
            None => self.give().await,
        };
        let (slot, id) = (&self.record.slot, &self.record.id);
        let confirms = &self.daemon.once().confirms;
        confirms.settle_on_disk(slot, id, came).await;
    }

    async fn give(&self) -> Came<Confirming> {
        let Confirming { asked, dialog, .. } = &self.record.request;
        let answer = match answer_of(asked) {
            Ok(answer) => answer,
            Err(error) => return Came::Nothing(error),
        };
        let confirm = |token| {
            Input::Confirm(Confirmation {
                token,
                answer,
                dialog: dialog.clone(),
                reason: asked.reason.clone(),
                person: self.person.clone(),
                id: Some(self.record.id.clone()),
                anyway: asked.anyway,
                against_rule: asked.against_rule,
            })
        };
        let abandoned = self.active.abandoned.clone();
        match self.slot.ask_until(abandoned.cancelled(), confirm).await {
            Ok(Reply::Confirmed { dialog, chosen }) => self.given(dialog, chosen).await,
            Ok(_) => failed(RpcError::new(Fault::Failed, "the slot gave no answer")),
            Err(error) if error.fault == Fault::Refused || !self.is_entered() => {
                Came::Nothing(error)
            }
            Err(error) => failed(error),
        }
    }

    fn is_entered(&self) -> bool {
        let (slot, id) = (&self.record.slot, &self.record.id);
        self.daemon.once().confirms.is_entered(slot, id)
    }

    /// Checks whether the key took effect, for an answer whose key an earlier daemon was about to press. If the dialog
    /// is gone, the key was pressed. The key is never pressed again.
    async fn look_for(&self) -> Came<Confirming> {
        let Confirming { dialog, chosen, .. } = self.record.request.clone();
        let (dialog, chosen) = (dialog.unwrap_or_default(), chosen.unwrap_or_default());
        let mut status = self.slot.watch_status();
        let is_gone = |status: &SlotStatus| {
            let shown = status.dialog.as_ref();
            status.state != State::Starting && shown.is_none_or(|shown| shown.id != dialog)
        };
        let gone = tokio::time::timeout(KEY_SHOWS, status.wait_for(is_gone)).await;
        let now = gone.ok().and_then(|gone| Some(gone.ok()?.dialog.clone()));
        let Some(now) = now else {
            return failed(unclear(&self.record.slot, "the dialog is still up"));
        };
        let reviews = |shown: &crate::core::claude::reading::Dialog| {
            let mut options = shown.options.iter();
            options.any(|choice| choice.label == SUBMIT)
        };
        match now.is_some_and(|shown| reviews(&shown)) {
            true => failed(unclear(
                &self.record.slot,
                "the choice is not submitted yet",
            )),
            false => self.given(dialog, chosen).await,
        }
    }

    /// Completes an answered dialog. `always` adds its rule, also if an earlier daemon was killed before it could.
    async fn given(&self, dialog: String, chosen: String) -> Came<Confirming> {
        let asked = &self.record.request.asked;
        // A question may have an option with that label.
        let always =
            asked.answer.as_deref().is_some_and(keys::is_always) && !keys::is_always(&chosen);
        let added = match always {
            true => self.allow_always().await.map(Some),
            false => Ok(None),
        };
        match added {
            Ok(added) => Came::End(OnceOutcome::Answered(Box::new(ConfirmAnswer {
                slot: self.record.slot.clone(),
                id: Some(self.record.id.clone()),
                dialog,
                chosen,
                rule: added.as_ref().and_then(|added| added.rule.clone()),
                this_once: added.and_then(|added| added.why_not),
            }))),
            Err(error) => failed(error),
        }
    }

    /// Handles `always`, which is a yes to this call and a narrow rule for the next, if a rule would help.
    async fn allow_always(&self) -> Result<Always, RpcError> {
        let rule = match self.record.request.always.clone() {
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
        let status = self.slot.status();
        if status.removed {
            let why = format!("{} was removed from the config", status.slot);
            return Ok(Always::from(Err(why)));
        }
        let role = status.role;
        self.daemon
            .order(|reply| Order::AllowAlways { role, rule, reply })
            .await
    }
}

fn failed(error: RpcError) -> Came<Confirming> {
    Came::End(OnceOutcome::Failed(error))
}

/// The error for an answer whose daemon was killed: it is unknown whether the key was pressed.
fn unclear(slot: &str, why: &str) -> RpcError {
    let text = format!("the daemon was killed as it pressed the key, and {why}");
    RpcError::new(Fault::Failed, text).next(format!(
        "look at it: missiond pending\nthen answer it again, with another id: missiond confirm {slot} …"
    ))
}

/// Refuses a reason that does not come with a no. With any other answer it would be a separate message.
fn check_reason(params: &ConfirmParams) -> Result<(), RpcError> {
    let answer = params.answer.as_deref().unwrap_or_default();
    let first = answer.split(|c: char| !c.is_alphanumeric()).next();
    let is_no = keys::is_no(answer) || first.is_some_and(keys::is_no);
    if params.reason.is_none() || is_no {
        return Ok(());
    }
    let text = "a reason can be given only with a no; nothing was pressed";
    let next = format!(
        "answer without it, then send it as a message: missiond send {} '…'",
        params.slot
    );
    Err(RpcError::new(Fault::Usage, text).next(next))
}

fn answer_of(params: &ConfirmParams) -> Result<Answer, RpcError> {
    check_reason(params)?;
    match (params.answer.clone(), params.text.clone()) {
        (Some(choice), None) => Ok(Answer::Choice(choice)),
        (None, Some(words)) => Ok(Answer::Words(words)),
        _ => {
            let text = "give either `answer`, a choice of the dialog, or `text`, an answer in your own words";
            Err(RpcError::new(Fault::Usage, text))
        }
    }
}
