//! Answers to dialogs by rules.

use super::up::{Asker, ForPerson};
use super::*;
use crate::core::claude::keys::{self, Pick};
use crate::core::claude::{plans, questions};
use crate::core::settings::Gate;

impl Machine {
    /// A settled dialog that a rule decides is answered; any other waits for a person.
    pub(super) fn answer_by_rule(&mut self, now: Instant) {
        let Some(dialog) = self.dialog_for_rules(now) else {
            return;
        };
        match self.verdict_without_rules(&dialog) {
            Some(verdict) => self.settle_dialog(&dialog, verdict, now),
            None => self.judge_dialog(self.ask_of(&dialog), now),
        }
    }

    /// Handles the verdict of the rules on a dialog. It counts only if that dialog is still on the screen.
    pub(super) fn dialog_judged(&mut self, ask: &Ask, verdict: Verdict, now: Instant) {
        let Some(dialog) = self.dialog_for_rules(now) else {
            return;
        };
        if self.verdict_without_rules(&dialog).is_none() && self.ask_of(&dialog) == *ask {
            let verdict = self.allowed_by_screen(&dialog, verdict);
            self.settle_dialog(&dialog, verdict, now);
        }
    }

    /// Whether the rules are judging the current dialog, or can't judge it before they have finished other calls.
    pub(super) fn rules_look_at_dialog(&self) -> bool {
        let needs_rules = |dialog: &&Dialog| self.verdict_without_rules(dialog).is_none();
        let asked = |dialog: &Dialog| self.judging.asks(&self.ask_of(dialog), Wants::Verdict);
        let dialog = self.dialog().filter(needs_rules);
        dialog.is_some_and(|dialog| self.judging.is_full() || asked(dialog))
    }

    /// The dialog that rules may decide now. If the witnesses differ about it, a person decides.
    fn dialog_for_rules(&mut self, now: Instant) -> Option<Dialog> {
        let up = self.up()?;
        let busy = !up.hands_are_free() || !up.is_certain() || up.is_dialog_dealt_with();
        if busy || self.person_types() {
            return None;
        }
        let dialog = up.settled_dialog(now).cloned()?;
        let Some(dispute) = &up.dispute else {
            return Some(dialog);
        };
        if !dispute.may_pass() {
            let why = format!("doubtful: {}", dispute.why);
            self.leave_to_person(&dialog, why);
        }
        None
    }

    fn settle_dialog(&mut self, dialog: &Dialog, verdict: Verdict, now: Instant) {
        let answer = match verdict.decision {
            Decision::Allow => "yes",
            Decision::Deny => "no",
            // The dialog is up, so Claude Code's own rules have already left the call to a person.
            Decision::Silent | Decision::Ask => return self.leave_to_person(dialog, verdict.why),
        };
        match keys::pick(dialog, answer) {
            Ok(pick) => self.apply(dialog, pick, verdict, now),
            Err(error) => self.leave_to_person(dialog, format!("{}, but {error}", verdict.why)),
        }
    }

    fn apply(&mut self, dialog: &Dialog, pick: Pick, verdict: Verdict, now: Instant) {
        let reason = format!("policy: {}", verdict.why);
        let ask = self.ask_of(dialog);
        self.decided(ask, verdict, Decider::Policy);
        self.choose(Asker::Rule, dialog, vec![pick], reason, None, now);
        self.progress_hands(now);
    }

    fn leave_to_person(&mut self, dialog: &Dialog, why: String) {
        let id = dialog.id.clone();
        if let Some(up) = self.up_mut() {
            up.asks.for_person = Some(ForPerson {
                dialog: id,
                why,
                by_rules: true,
            });
        }
    }

    /// The verdict on a dialog that needs no look at the file system; `None` if the rules must judge it.
    fn verdict_without_rules(&self, dialog: &Dialog) -> Option<Verdict> {
        let verdict = match dialog.kind {
            DialogKind::Permission => self
                .is_gated()
                .then(|| ask(&self.why_the_gate_asks(dialog))),
            DialogKind::Other => Some(ask("this dialog is not a known one")),
            _ if !dialog.complete => Some(ask("the dialog is not whole on the screen")),
            _ if self.is_out_of_place(dialog) => {
                let why = self.why_its_call_is_asked(dialog);
                let strange = "Claude Code does not ask this now, by what the gate knows";
                Some(ask(why.as_deref().unwrap_or(strange)))
            }
            kind => {
                let why = format!("[dialogs] of role {}", self.config.role);
                Some(Verdict::without_rule(
                    self.rules.dialogs.decision(kind),
                    why,
                ))
            }
        };
        verdict.map(|verdict| self.rehearsed_only(verdict))
    }

    /// Whether a dialog that is not about a permission appears when Claude Code would not show it. It may be painted over the
    /// dialog of a call, so no rule answers it.
    fn is_out_of_place(&self, dialog: &Dialog) -> bool {
        let Some(up) = self.up() else { return true };
        let is_first_page = matches!(dialog.kind, DialogKind::Trust | DialogKind::ApiKey);
        let late = is_first_page && up.reached_idle.is_some();
        late || self.gate_knows_dialog() == Some(Known::Not) || up.gate.calls.unanswered().is_some()
    }

    /// Why the gate has left the call of this plan or question to a person, if no other call waits for one.
    fn why_its_call_is_asked(&self, dialog: &Dialog) -> Option<String> {
        let is_of_kind = |tool: &str| match dialog.kind {
            DialogKind::Plan => plans::TOOLS.contains(&tool),
            DialogKind::Question => tool == questions::TOOL,
            _ => false,
        };
        let mut waiting = self.up()?.gate.calls.all_unanswered();
        let open = waiting.next().filter(|open| is_of_kind(&open.tool))?;
        let is_its = self.gate_knows_dialog() == Some(Known::Waits) && waiting.next().is_none();
        is_its.then(|| open.why_asked())
    }

    /// Without the gate, the screen allows a tool only if the slot's settings permit that.
    fn allowed_by_screen(&self, dialog: &Dialog, verdict: Verdict) -> Verdict {
        self.rehearsed_only(match verdict.decision {
            Decision::Allow if self.running().gate != Gate::Screen => {
                ask("the slot is ungated: the screen alone does not allow")
            }
            Decision::Allow if dialog.several_rows => {
                ask("the command takes several rows: the screen does not tell where a line ends")
            }
            _ => verdict,
        })
    }

    /// Screens of a version without a rehearsal allow nothing.
    fn rehearsed_only(&self, verdict: Verdict) -> Verdict {
        let unrehearsed = self.up().is_some_and(|up| up.origin.unrehearsed);
        let verdict = self.known_only(verdict);
        match verdict.decision {
            Decision::Allow if unrehearsed => ask("this version of Claude Code was not rehearsed"),
            _ => verdict,
        }
    }

    /// The verdict of rules newer than the dialog that denies the call of the dialog.
    pub(super) fn denied_by_now(&self, dialog: &Dialog) -> Option<&Verdict> {
        let calls = &self.up()?.gate.calls;
        let now = calls.asked_by(dialog, &self.running().cwd)?.now.as_ref();
        now.filter(|now| now.decision == Decision::Deny)
    }

    /// Why a person is asked in a slot where every call goes through the gate. The gate has already decided what rules can
    /// decide, so no rule presses a key, and nobody answers a painted dialog by mistake.
    fn why_the_gate_asks(&self, dialog: &Dialog) -> String {
        let Some(up) = self.up() else {
            return String::new();
        };
        let several = match up.gate.calls.count_open() {
            0 | 1 => String::new(),
            open => format!(" ({open} calls wait at once)"),
        };
        match up.gate.calls.asked_by(dialog, &self.running().cwd) {
            Some(open) => format!("{}{several}", open.why_asked()),
            None => format!("the gate has not seen this call{several}"),
        }
    }
}

fn ask(why: &str) -> Verdict {
    Verdict::without_rule(Decision::Ask, why)
}
