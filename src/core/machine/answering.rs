//! Dialogs: recognising them, answering them by rule or for a person, and stopping a turn.

use super::calls::Calls;
use super::several::labels_of;
use super::up::{Asker, Choosing, ForPerson, Hands, Steps};
use super::*;
use crate::core::claude::keys::{self, Answer, Pick, is_always};
use crate::core::model::Fault;
use crate::core::text::{excerpt, secrets};
use std::path::{Path, PathBuf};

/// Bytes of a person's reason that stand in the audit.
const MAX_REASON: usize = 500;
const STILL_UP: &str = "the key was pressed, but the dialog is still up";
const RESTLESS: &str = "the key was withheld: the dialog does not stand still";
const CHANGED: &str = "the key was withheld: the dialog went away or became another one before it";

impl Machine {
    /// Handles a complete frame.
    pub(super) fn saw(&mut self, sight: Observation, now: Instant) {
        let cwd = self.running().cwd.clone();
        let Some(up) = self.up_mut() else { return };
        up.hand_is_seen();
        let before = up.dialog().map(|dialog| dialog.id.clone());
        let request = up.dialog().and_then(|dialog| dialog.request.clone());
        let mut sight = sight;
        up.asks.shown = sight.dialog.clone();
        if let Some(dialog) = sight.dialog.as_mut() {
            up.asks.last_kind = Some(dialog.kind);
            fill_in(dialog, &up.gate.calls, &cwd);
        }
        let resized = up.is_redrawing();
        up.asks.identity.name(sight.dialog.as_mut(), resized);
        let is_whole = |dialog: Option<&Dialog>| dialog.is_some_and(|dialog| dialog.complete);
        let becomes_whole = !is_whole(up.dialog()) && is_whole(sight.dialog.as_ref());
        let relabelled = is_relabelled(up.dialog(), sight.dialog.as_ref());
        up.note_drawing(sight.dialog.as_ref(), &cwd, now);
        up.errors.of_the_past &=
            matches!(sight.state, State::Starting | State::Idle | State::Exited);
        if sight.state == State::Idle && up.reached_idle.is_none() {
            up.reached_idle = Some(now);
        }
        let appeared = sight
            .dialog
            .clone()
            .filter(|dialog| Some(&dialog.id) != before.as_ref());
        let gone = before.filter(|id| sight.dialog.as_ref().is_none_or(|dialog| dialog.id != *id));
        up.sight = Some(sight);
        up.forget_failure();
        up.forget_stall();
        up.asks.redrawn &= up.dialog().is_some();
        if gone.is_some() {
            up.asks.since = None;
            up.asks.for_person = None;
            up.gate.calls.dialog_may_come(now);
        }
        if appeared.is_some() || relabelled || becomes_whole && up.hands_are_free() {
            up.asks.since = Some(now);
        }
        if let Some(id) = gone {
            self.gone_by_hand(&id);
            self.tell(EventKind::DialogGone { id });
        }
        if let Some(dialog) = appeared {
            // The oldest versions do not name the call.
            let named = request.as_ref().is_some_and(|id| !id.is_empty());
            let changed = named && dialog.request == request;
            self.look_again(dialog.kind, changed, now);
            self.tell(EventKind::Dialog { dialog });
        }
        self.judge_always(now);
        self.saw_mode();
        self.check_error();
    }

    /// Makes the program draw its screen again before a person is alerted. A view that nobody has opened, a dialog about an
    /// unknown call, or one that has changed while it asks about the same call, may come from another process that writes to the
    /// terminal.
    fn look_again(&mut self, kind: DialogKind, changed: bool, now: Instant) {
        let unknown = kind == DialogKind::Other
            || self.gate_knows_dialog() == Some(Known::Not)
            || self.strange_options().is_some();
        let Some(up) = self.up_mut() else { return };
        let just_done = up.asks.redrawn_at.is_some_and(|at| now < at + REDRAW_PAUSE);
        let strange = unknown || changed;
        if !strange || up.asks.redrawn || just_done || up.typing.is_some() {
            return;
        }
        up.asks.redrawn = true;
        up.asks.redrawn_at = Some(now);
        up.asks.since = Some(now + REDRAWN);
        self.effects.push(Effect::Repaint);
    }

    /// Continues the current key sequence, if there is one.
    pub(super) fn progress_hands(&mut self, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Free => {}
            Hands::Pasting {
                message,
                seen,
                repaint,
                until,
            } => self.progress_pasting(message, seen, repaint, until, now),
            Hands::Submitting {
                message,
                again,
                until,
            } => self.progress_submitting(message, again, until, now),
            Hands::Choosing(choosing) => self.progress_choosing(choosing, now),
            Hands::Clearing { until, late } => self.progress_clearing(until, late, now),
            Hands::Interrupting {
                wanted,
                effect,
                until,
            } => {
                self.progress_interrupting(wanted, effect, until, now);
            }
        }
    }

    pub(super) fn ask_of(&self, dialog: &Dialog) -> Ask {
        Ask {
            tool: dialog
                .tool
                .clone()
                .unwrap_or_else(|| kind_name(dialog.kind).to_owned()),
            input: dialog.input.clone().map_or(Value::Null, Value::Object),
            cwd: self.running().cwd.clone(),
            at: self.place_of(dialog),
            complete: dialog.complete || dialog.request.is_some(),
        }
    }

    /// The directory of Claude Code's shell at the call that a dialog asks about, if it is not the slot's directory.
    fn place_of(&self, dialog: &Dialog) -> Option<PathBuf> {
        if dialog.kind != DialogKind::Permission {
            return None;
        }
        let calls = &self.up()?.gate.calls;
        calls.asked_by(dialog, &self.running().cwd)?.at.clone()
    }

    /// Records a verdict: first in the audit, then in the log, so that the log has no verdict that the audit lacks.
    pub(super) fn decided(&mut self, ask: Ask, verdict: Verdict, decider: Decider) {
        let event = verdict_event(&ask, &verdict, &decider);
        self.effects
            .push(Effect::Audit(verdict, Box::new(ask), decider));
        self.tell(event);
    }

    /// A person's answer, to the dialog that they saw.
    pub(super) fn confirm(&mut self, confirmation: Confirmation, now: Instant) {
        let token = confirmation.token;
        if let Some(error) = self.hidden_dialog() {
            return self.reply(token, Err(error));
        }
        let (dialog, picks) = match self.may_confirm(&confirmation) {
            Ok(found) => found,
            Err(error) => return self.reply(token, Err(error)),
        };
        let ask = self.ask_of(&dialog);
        let decision = match is_no(&picks, &dialog) {
            true => Decision::Deny,
            false => Decision::Allow,
        };
        let chosen = labels_of(&picks, &dialog);
        let denied = self.denied_by_now(&dialog).cloned();
        let denied = denied.filter(|_| decision == Decision::Allow);
        if let Some(denied) = denied.as_ref().filter(|_| !confirmation.against_rule) {
            let error = advice::against_rule(&self.config.name, denied);
            return self.reply(token, Err(error));
        }
        let why = match self.distrust() {
            Some(doubt) => format!("a person chose {chosen}, though it is doubtful: {doubt}"),
            None => format!("a person chose {chosen}"),
        };
        let why = match &denied {
            Some(denied) => format!("{why}, against a rule: {}", denied.why),
            None => why,
        };
        let Confirmation {
            person, id, reason, ..
        } = confirmation;
        let verdict = Verdict {
            decision,
            rule: denied.and_then(|denied| denied.rule),
            why: with_reason(&why, reason.as_deref()),
        };
        self.decided(ask, verdict, Decider::Person(person.clone()));
        let asker = Asker::Person { token, person, id };
        self.choose(asker, &dialog, picks, why, reason, now);
        self.progress_hands(now);
    }

    fn may_confirm(&self, confirmation: &Confirmation) -> Result<(Dialog, Vec<Pick>), RpcError> {
        let name = &self.config.name;
        let Some(dialog) = self.dialog() else {
            let text = format!(
                "no dialog is up in {name}, which is {}",
                self.state().name()
            );
            return Err(Refusal::NoDialog
                .says(text)
                .next("see which slots ask you: missiond pending"));
        };
        if !self.is_meant(confirmation, dialog) {
            let text = format!(
                "another dialog is up in {name}: {} ({})",
                up::about(dialog),
                dialog.id
            );
            return Err(Refusal::OtherDialog
                .says(text)
                .next("look again: missiond pending"));
        }
        if !self.up().is_some_and(up::Up::is_certain) {
            return Err(self.unknown_screen());
        }
        if !self.up().is_some_and(up::Up::hands_are_free) {
            let text = format!("keys are being pressed in {name} already");
            return Err(Refusal::KeysUnderWay.says(text));
        }
        if let Some(why) = self.distrust() {
            let is = |meant: fn(&str) -> bool| matches!(&confirmation.answer, Answer::Choice(word) if meant(word));
            if is(keys::is_no) {
                // A no must always be possible. Esc declines whatever the options are.
                return Ok((dialog.clone(), vec![Pick::Esc]));
            }
            if !confirmation.anyway || is(is_always) {
                return Err(self.doubtful_dialog(&why));
            }
        }
        keys::picks(dialog, &confirmation.answer)
            .map(|picks| (dialog.clone(), picks))
            .map_err(|error| advice::not_picked(&error, &confirmation.answer, name, dialog))
    }

    /// Whether the dialog on the screen is the one that a person has named. A no applies to it whatever is painted over it.
    fn is_meant(&self, confirmation: &Confirmation, dialog: &Dialog) -> bool {
        let Some(id) = &confirmation.dialog else {
            return true;
        };
        let is_no = matches!(&confirmation.answer, Answer::Choice(word) if keys::is_no(word));
        *id == dialog.id || is_no && self.was_drawn_as(id)
    }

    /// Whether the current permission dialog or question was read under this id before.
    fn was_drawn_as(&self, id: &str) -> bool {
        self.up().is_some_and(|up| up.asks.drawings.include(id))
    }

    pub(super) fn unknown_screen(&self) -> RpcError {
        let name = &self.config.name;
        let text = format!("the screen of {name} is not a known one, so no key is safe");
        Refusal::UnknownScreen.says(text).next(format!(
            "look at it: missiond screen {name}; press the key that it asks for: missiond keys {name} KEY --into-dialog"
        ))
    }

    pub(super) fn choose(
        &mut self,
        asker: Asker,
        dialog: &Dialog,
        picks: Vec<Pick>,
        reason: String,
        then_say: Option<String>,
        now: Instant,
    ) {
        let label = labels_of(&picks, dialog);
        let submits = picks.len() > 1;
        let trusted = self.distrust().is_none();
        let mut then = VecDeque::from(picks);
        let (Some(pick), Some(up)) = (then.pop_front(), self.up_mut()) else {
            return;
        };
        let is_no = is_no(std::slice::from_ref(&pick), dialog);
        let declines = match dialog.kind {
            DialogKind::Permission => is_no,
            // `No` may be one of the answers to a question.
            DialogKind::Question | DialogKind::Trust => pick == Pick::Esc,
            _ => false,
        };
        up.asks.answered = Some(dialog.id.clone());
        up.hands = Hands::Choosing(Choosing {
            asker,
            asked: Box::new(dialog.clone()),
            pick,
            then,
            submits,
            label,
            reason,
            then_say,
            declines,
            trusted,
            pasted: false,
            steps: Steps::none(now + KEY_WORKS),
        });
    }

    /// One step towards the option, on the dialog as it is read now.
    fn progress_choosing(&mut self, mut choosing: Choosing, now: Instant) {
        let Some(up) = self.up() else { return };
        let id = &choosing.asked.id;
        let is_same =
            |dialog: &&Dialog| dialog.id == *id || choosing.declines && self.was_drawn_as(id);
        let same = up.dialog().filter(is_same).cloned();
        let Some(dialog) = same else {
            return self.progress_changed(choosing, now);
        };
        let settles_at = up.settles_at(choosing.declines);
        let settled = up.is_certain() && settles_at.is_some_and(|at| now >= at);
        choosing.go_on(&dialog, now);
        if choosing.is_done(&dialog) {
            return self.ticked(choosing);
        }
        if now >= choosing.steps.until {
            let (refusal, why) = match choosing.steps.decided {
                true => (Refusal::StillUp, STILL_UP),
                false => (Refusal::Restless, RESTLESS),
            };
            return self.not_chosen(&choosing, refusal, why);
        }
        if settled && choosing.may_step(&dialog, now) {
            if choosing.steps.moves > 2 * dialog.options.len() {
                let why = "the menu does not follow the arrow keys";
                return self.not_chosen(&choosing, Refusal::MenuStuck, why);
            }
            let Some(step) = keys::step_towards(&dialog, &choosing.pick) else {
                let why = "no row of the dialog is marked, so no key is safe";
                return self.not_chosen(&choosing, Refusal::NoRowMarked, why);
            };
            let doubt = self.distrust().filter(|_| choosing.trusted);
            if let Some(why) = doubt.filter(|_| !choosing.declines) {
                let why = format!("the key was withheld, since the dialog is doubtful now: {why}");
                return self.not_chosen(&choosing, Refusal::DoubtfulNow, &why);
            }
            if step.decides {
                self.note_answered(&choosing, true);
            }
            if choosing.stepped(&step, &dialog, now) {
                let purpose = match choosing.declines {
                    true => Purpose::Declines,
                    false => Purpose::Approves,
                };
                let person = choosing.asker.person();
                self.press_for(person, purpose, &step.bytes, &step.name, &choosing.reason);
            }
        }
        if let Some(up) = self.up_mut() {
            up.hands = Hands::Choosing(choosing);
        }
    }

    /// The dialog has changed. If the new one asks about the same call, it was not answered: the key has only changed it, for
    /// example by writing into an option.
    fn progress_changed(&mut self, choosing: Choosing, now: Instant) {
        let asks = |dialog: &Dialog| dialog.asks_the_same(&choosing.asked);
        let painted = self.was_drawn_as(&choosing.asked.id);
        let view = self.dialog().filter(|_| choosing.leaves_view());
        let view = view.filter(|dialog| dialog.kind == DialogKind::Other);
        let stays = painted || view.is_some() || self.dialog().is_some_and(asks);
        let stays = choosing.steps.decided && stays;
        if stays && now >= choosing.steps.until {
            let why = match view {
                Some(view) => format!("{STILL_UP}: {}", up::about(view)),
                None => STILL_UP.to_owned(),
            };
            return self.not_chosen(&choosing, Refusal::StillUp, &why);
        }
        match self.up_mut() {
            Some(up) if stays => up.hands = Hands::Choosing(choosing),
            _ => self.chosen(choosing),
        }
    }

    /// Records that the deciding key was pressed on the dialog of a call, or was not pressed after all.
    pub(super) fn note_answered(&mut self, choosing: &Choosing, answered: bool) {
        let cwd = self.running().cwd.clone();
        if let Some(up) = self.up_mut() {
            let calls = &mut up.gate.calls;
            calls.set_answered(&choosing.asked, &cwd, choosing.declines, answered);
        }
    }

    /// The dialog is gone, or another one has replaced it.
    pub(super) fn chosen(&mut self, choosing: Choosing) {
        if !choosing.steps.decided {
            return self.not_chosen(&choosing, Refusal::DialogChanged, CHANGED);
        }
        if choosing.declines {
            self.turn_is_over(up::Over::interrupted());
            self.call_declined(&choosing.asked);
        }
        self.has_also_answered(&choosing);
        if let Some(review) = self.review_after(&choosing) {
            return self.submit_review(choosing, &review);
        }
        if let Some(text) = choosing.then_say {
            self.say_next("the reason", &text);
        }
        self.done(choosing.asker, choosing.asked.id, choosing.label);
    }

    pub(super) fn call_declined(&mut self, dialog: &Dialog) {
        if let Some(up) = self.up_mut() {
            up.gate.calls.declined(dialog);
        }
    }

    /// Replies to whoever asked that it is done.
    pub(super) fn done(&mut self, asker: Asker, dialog: String, chosen: String) {
        match asker {
            Asker::Rule => {}
            Asker::Person { token, .. } => {
                self.reply(token, Ok(Reply::Confirmed { dialog, chosen }));
            }
            Asker::Interrupters(wanted) => wanted
                .into_iter()
                .for_each(|one| self.reply(one.token, Ok(Reply::Interrupted("declined")))),
        }
    }

    /// No second key is tried: a person must look.
    pub(super) fn not_chosen(&mut self, choosing: &Choosing, refusal: Refusal, why: &str) {
        let error = refusal.says(why).next("look at it: missiond pending");
        self.not_chosen_for(choosing, &error);
    }

    pub(super) fn not_chosen_for(&mut self, choosing: &Choosing, error: &RpcError) {
        let why = &error.message;
        self.take_verdict_back(choosing, why);
        self.may_be_taken_late(choosing);
        if let Some(up) = self.up_mut() {
            let dialog = up.dialog().unwrap_or(&choosing.asked).id.clone();
            let why = why.to_owned();
            up.asks.for_person = Some(ForPerson {
                dialog,
                why,
                by_rules: false,
            });
        }
        let fault = if choosing.steps.decided {
            Fault::Failed
        } else {
            Fault::Refused
        };
        if choosing.asker.tokens().is_empty() {
            let text = why.to_owned();
            self.tell(EventKind::Warning { text });
        }
        for token in choosing.asker.tokens() {
            let error = RpcError {
                fault,
                ..error.clone()
            };
            self.reply(token, Err(error));
        }
    }

    /// A verdict is recorded before its key is pressed. This records that it had no effect.
    pub(super) fn take_verdict_back(&mut self, choosing: &Choosing, why: &str) {
        if let Some(decider) = choosing.asker.decider() {
            let asked = self.ask_of(&choosing.asked);
            let so_far = if choosing.steps.decided {
                " so far"
            } else {
                ""
            };
            let why = format!("not answered{so_far}: {why}");
            self.decided(asked, Verdict::without_rule(Decision::Ask, why), decider);
        }
    }
}

impl Choosing {
    /// Whether the next key is due: no key was pressed yet, the screen shows the effect of the last one, or an arrow key was
    /// lost. An arrow key decides nothing and may be pressed again; the deciding key is pressed once.
    fn may_step(&self, dialog: &Dialog, now: Instant) -> bool {
        let shows = self.steps.moved_from.as_ref() != Some(&rows_of(dialog));
        let due =
            !self.steps.decided && (self.steps.moves == 0 || shows || now >= self.steps.again);
        due || self.has_left_field(dialog)
    }

    /// Whether the first Esc has only left a text field, so that a second Esc is due: then no row was marked, and now one is.
    fn has_left_field(&self, dialog: &Dialog) -> bool {
        let before = self
            .steps
            .moved_from
            .as_ref()
            .map(|(selected, _)| *selected);
        let left = before == Some(None) && dialog.selected.is_some();
        self.pick == Pick::Esc && self.steps.moves == 1 && left
    }

    /// Records the step, and returns whether to press its key: a text is written only once.
    fn stepped(&mut self, step: &keys::KeyStep, dialog: &Dialog, now: Instant) -> bool {
        let is_arrow = step.bytes == keys::UP || step.bytes == keys::DOWN;
        let is_paste = step.name == keys::PASTE;
        self.steps.moves += 1;
        self.steps.moved_from = Some(rows_of(dialog));
        self.steps.again = now
            + if is_arrow {
                ARROW_IS_LOST
            } else {
                2 * KEY_WORKS
            };
        if is_paste && self.pasted {
            return false;
        }
        self.pasted |= is_paste;
        self.steps.decided = step.decides;
        self.steps.until = now + KEY_WORKS;
        true
    }
}

/// What changes when a key that does not decide has worked.
fn rows_of(dialog: &Dialog) -> (Option<usize>, Vec<Choice>) {
    (dialog.selected, dialog.options.clone())
}

/// Completes the dialog with the whole input of its call, which the hook has; the screen may show only a part.
fn fill_in(dialog: &mut Dialog, calls: &Calls, cwd: &Path) {
    if dialog.kind != DialogKind::Permission {
        return;
    }
    let Some(open) = calls.asked_by(dialog, cwd) else {
        return;
    };
    dialog.tool = Some(open.tool.clone());
    // An input that was too long to be kept for this daemon is unknown.
    if let Value::Object(input) = &open.input {
        dialog.input = Some(input.clone());
        dialog.request = Some(open.id.clone().unwrap_or_default());
    }
}

/// Whether the options of a permission dialog have other labels or numbers than before, so that it has to settle again.
fn is_relabelled(before: Option<&Dialog>, now: Option<&Dialog>) -> bool {
    let labels = |dialog: &Dialog| -> Vec<(Option<u32>, String)> {
        let options = dialog.options.iter();
        options.map(|o| (o.number, o.label.clone())).collect()
    };
    let asks_permission = |dialog: &&Dialog| dialog.kind == DialogKind::Permission;
    let both = before.zip(now.filter(asks_permission));
    both.is_some_and(|(before, now)| labels(before) != labels(now))
}

/// Whether the picked option is the dialog's no, in any form.
fn is_no(picks: &[Pick], dialog: &Dialog) -> bool {
    matches!(picks, [pick] if keys::declines(dialog, pick))
}

/// A person's reason stands in the audit too, so that the next one who is asked the same can read it.
fn with_reason(why: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => {
            let reason = secrets::mask(excerpt::head(reason.trim(), MAX_REASON));
            format!("{why}, with the reason: {reason}")
        }
        None => why.to_owned(),
    }
}

pub fn verdict_event(ask: &Ask, verdict: &Verdict, decider: &Decider) -> EventKind {
    let agent = match decider {
        Decider::Gate { agent, .. } => agent.clone(),
        Decider::Policy | Decider::Person(_) | Decider::Keys { .. } => None,
    };
    EventKind::Verdict {
        tool: ask.tool.clone(),
        target: up::target_of(&ask.input).unwrap_or_default(),
        verdict: verdict.decision,
        rule: verdict.rule.clone(),
        why: verdict.why.clone(),
        by: decider.word().to_owned(),
        via: match decider {
            Decider::Person(person) | Decider::Keys { person, .. } => Some(person.via.clone()),
            Decider::Policy | Decider::Gate { .. } => None,
        },
        answer: decider.answer(),
        agent,
    }
}

/// The name of a dialog in the place of a tool, in the audit and in events.
pub fn kind_name(kind: DialogKind) -> &'static str {
    match kind {
        DialogKind::Permission => "permission",
        DialogKind::Question => "question",
        DialogKind::Plan => "plan",
        DialogKind::Trust => "trust",
        DialogKind::ApiKey => "api_key",
        DialogKind::Other => "other",
    }
}
