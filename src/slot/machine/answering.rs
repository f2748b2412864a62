//! Dialogs: seeing them, answering them by rule or for a person, and stopping a turn.

use super::calls::Calls;
use super::several::labels_of;
use super::up::{Asker, Choosing, ForPerson, Hands};
use super::*;
use crate::config::Gate;
use crate::control::protocol::Fault;
use crate::keys::{self, Answer, Pick, is_always};
use std::path::{Path, PathBuf};

const STILL_UP: &str = "the key was pressed, but the dialog is still up";

impl Machine {
    /// A whole frame was read.
    pub(super) fn saw(&mut self, sight: Sight, now: Instant) {
        let cwd = self.config.cwd.clone();
        let Some(up) = self.up_mut() else { return };
        up.hand_is_seen();
        let before = up.dialog().map(|dialog| dialog.id.clone());
        let request = up.dialog().and_then(|dialog| dialog.request.clone());
        let mut sight = sight;
        up.shown = sight.dialog.clone();
        if let Some(dialog) = sight.dialog.as_mut() {
            up.last_dialog = Some(dialog.kind);
            fill_in(dialog, &up.calls, &cwd);
        }
        let is_whole = |dialog: Option<&Dialog>| dialog.is_some_and(|dialog| dialog.complete);
        let becomes_whole = !is_whole(up.dialog()) && is_whole(sight.dialog.as_ref());
        up.shows_the_past &= matches!(sight.state, State::Starting | State::Idle | State::Exited);
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
        up.redrawn &= up.dialog().is_some();
        if gone.is_some() {
            up.dialog_since = None;
            up.for_person = None;
        }
        if appeared.is_some() || becomes_whole && up.hands_are_free() {
            up.dialog_since = Some(now);
        }
        if let Some(id) = gone {
            self.gone_by_hand(&id);
            self.tell(What::DialogGone { id });
        }
        if let Some(dialog) = appeared {
            // The oldest versions name no call.
            let named = request.as_ref().is_some_and(|id| !id.is_empty());
            let changed = named && dialog.request == request;
            self.look_again(dialog.kind, changed, now);
            self.tell(What::Dialog { dialog });
        }
        self.judge_always();
        self.saw_mode();
        self.check_error();
    }

    /// A view that nobody has opened, a dialog about a call that nobody has made, or one that has changed while it asks
    /// about the same call, may be what another process has written to the terminal: before a person is called the
    /// program draws its screen once more.
    fn look_again(&mut self, kind: DialogKind, changed: bool, now: Instant) {
        let unknown = kind == DialogKind::Other || self.gate_knows_dialog() == Some(Known::Not);
        let Some(up) = self.up_mut() else { return };
        let just_done = up.redrawn_at.is_some_and(|at| now < at + REDRAW_PAUSE);
        let strange = unknown || changed;
        if !strange || up.redrawn || just_done || up.typing.is_some() {
            return;
        }
        up.redrawn = true;
        up.redrawn_at = Some(now);
        up.dialog_since = Some(now + REDRAWN);
        self.effects.push(Effect::Repaint);
    }

    /// Moves the key sequence that is under way, if there is one.
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
            Hands::Clearing { until } => self.progress_clearing(until, now),
            Hands::Interrupting {
                tokens,
                effect,
                until,
            } => {
                self.progress_interrupting(tokens, effect, until, now);
            }
        }
    }

    /// A settled dialog that a rule decides on is answered; any other waits for a person.
    pub(super) fn answer_by_rule(&mut self, now: Instant) {
        let Some(up) = self.up() else { return };
        if !up.hands_are_free() || !up.is_certain() || up.is_dialog_dealt_with() {
            return;
        }
        let Some(dialog) = up.settled_dialog(now).cloned() else {
            return;
        };
        match &up.dispute {
            Some(dispute) if dispute.told => {
                let why = format!("doubtful: {}", dispute.why);
                return self.leave_to_person(&dialog, why);
            }
            Some(_) => return,
            None => {}
        }
        let verdict = self.verdict_on(&dialog);
        let answer = match verdict.decision {
            Decision::Allow => "yes",
            Decision::Deny => "no",
            // The dialog is up: Claude Code's own rules have left it to a person.
            Decision::Silent | Decision::Ask => return self.leave_to_person(&dialog, verdict.why),
        };
        match keys::pick(&dialog, answer) {
            Ok(pick) => self.apply(&dialog, pick, verdict, now),
            Err(error) => self.leave_to_person(&dialog, format!("{}, but {error}", verdict.why)),
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
            up.for_person = Some(ForPerson {
                dialog: id,
                why,
                by_rules: true,
            });
        }
    }

    /// What the rules say of a dialog. Only a whole dialog is decided on, and the screen alone allows a tool
    /// only where the slot says so, and never on screens that were not rehearsed.
    fn verdict_on(&self, dialog: &Dialog) -> Verdict {
        let verdict = self.verdict_by_kind(dialog);
        let unrehearsed = self.up().is_some_and(|up| up.unrehearsed);
        match verdict.decision {
            Decision::Allow if unrehearsed => ask("this version of Claude Code was not rehearsed"),
            _ => verdict,
        }
    }

    fn verdict_by_kind(&self, dialog: &Dialog) -> Verdict {
        match dialog.kind {
            DialogKind::Permission => self.verdict_on_tool(dialog),
            DialogKind::Other => ask("this dialog is not a known one"),
            kind => {
                let decision = self.judge.dialog(kind);
                let why = format!("[dialogs] of role {}", self.config.role);
                let verdict = Verdict {
                    decision,
                    rule: None,
                    why,
                };
                if dialog.complete {
                    verdict
                } else {
                    ask("the dialog is not whole on the screen")
                }
            }
        }
    }

    fn verdict_on_tool(&self, dialog: &Dialog) -> Verdict {
        let Some(up) = self.up() else {
            return ask("the slot is not running");
        };
        if up.gated {
            return ask(&self.why_the_gate_asks(dialog));
        }
        let verdict = self.judge.decide(&self.ask_of(dialog));
        match verdict.decision {
            Decision::Allow if self.config.gate != Gate::Screen => {
                ask("the slot is ungated: the screen alone does not allow")
            }
            Decision::Allow if dialog.several_rows => {
                ask("the command takes several rows: the screen does not tell where a line ends")
            }
            _ => verdict,
        }
    }

    pub(super) fn ask_of(&self, dialog: &Dialog) -> Ask {
        Ask {
            tool: dialog
                .tool
                .clone()
                .unwrap_or_else(|| kind_name(dialog.kind).to_owned()),
            input: dialog.input.clone().map_or(Value::Null, Value::Object),
            cwd: self.config.cwd.clone(),
            at: self.place_of(dialog),
            complete: dialog.complete || dialog.request.is_some(),
        }
    }

    /// Where Claude Code's shell stood at the call that a dialog asks about, if not in the slot's directory.
    fn place_of(&self, dialog: &Dialog) -> Option<PathBuf> {
        if dialog.kind != DialogKind::Permission {
            return None;
        }
        let calls = &self.up()?.calls;
        calls.asked_by(dialog, &self.config.cwd)?.at.clone()
    }

    /// Why a person is asked where every call goes through the gate: it has decided on what could be decided,
    /// so no rule presses a key, and a dialog that somebody painted is answered by nobody.
    fn why_the_gate_asks(&self, dialog: &Dialog) -> String {
        let Some(up) = self.up() else {
            return String::new();
        };
        let several = match up.calls.count_open() {
            0 | 1 => String::new(),
            open => format!(" ({open} calls wait at once)"),
        };
        match up.calls.asked_by(dialog, &self.config.cwd) {
            Some(open) if open.allowed => {
                format!("Claude Code asks by itself, though {}{several}", open.why)
            }
            Some(open) => format!("{}{several}", open.why),
            None => format!("the gate has not seen this call{several}"),
        }
    }

    /// Written down, and told after that: the log knows of no verdict that the audit does not have.
    pub(super) fn decided(&mut self, ask: Ask, verdict: Verdict, decider: Decider) {
        let event = verdict_event(&ask, &verdict, &decider);
        self.effects
            .push(Effect::Audit(verdict, Box::new(ask), decider));
        self.tell(event);
    }

    /// A person's answer, to the dialog that he saw.
    pub(super) fn confirm(&mut self, confirmation: Confirmation, now: Instant) {
        let token = confirmation.token;
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
        let why = match self.distrust() {
            Some(doubt) => format!("a person chose {chosen}, though it is doubtful: {doubt}"),
            None => format!("a person chose {chosen}"),
        };
        let verdict = Verdict {
            decision,
            rule: None,
            why: why.clone(),
        };
        let uid = confirmation.uid;
        self.decided(ask, verdict, Decider::Person { uid });
        let asker = Asker::Person { token, uid };
        self.choose(asker, &dialog, picks, why, confirmation.reason, now);
        self.progress_hands(now);
    }

    fn may_confirm(&self, confirmation: &Confirmation) -> Result<(Dialog, Vec<Pick>), RpcError> {
        let name = &self.config.name;
        let refused = |text: String| RpcError::new(Fault::Refused, text);
        let Some(dialog) = self.dialog() else {
            let text = format!(
                "no dialog is up in {name}, which is {}",
                self.state().name()
            );
            return Err(refused(text).next("see which slots ask you: missiond pending"));
        };
        if confirmation
            .dialog
            .as_ref()
            .is_some_and(|id| *id != dialog.id)
        {
            let text = format!(
                "another dialog is up in {name}: {} ({})",
                up::about(dialog),
                dialog.id
            );
            return Err(refused(text).next("look again: missiond pending"));
        }
        if !self.up().is_some_and(up::Up::is_certain) {
            return Err(self.unknown_screen());
        }
        if !self.up().is_some_and(up::Up::hands_are_free) {
            return Err(refused(format!("keys are being pressed in {name} already")));
        }
        if let Some(why) = self.distrust() {
            let is = |meant: fn(&str) -> bool| matches!(&confirmation.answer, Answer::Choice(word) if meant(word));
            if is(keys::is_no) {
                // A no must always be possible. Esc is one wherever the options stand.
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

    pub(super) fn unknown_screen(&self) -> RpcError {
        let name = &self.config.name;
        let text = format!("the screen of {name} is not a known one, so no key is safe");
        RpcError::new(Fault::Refused, text).next(format!(
            "look at it: missiond screen {name}; press by hand: missiond keys {name} esc --into-dialog"
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
        let mut then = VecDeque::from(picks);
        let (Some(pick), Some(up)) = (then.pop_front(), self.up_mut()) else {
            return;
        };
        let is_no = is_no(std::slice::from_ref(&pick), dialog);
        let declines = dialog.kind == DialogKind::Permission && is_no;
        up.answered = Some(dialog.id.clone());
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
            decided: false,
            moved_from: None,
            pasted: false,
            moves: 0,
            again: now,
            until: now + KEY_WORKS,
        });
    }

    /// One step towards the option, on the dialog as it is read now.
    fn progress_choosing(&mut self, mut choosing: Choosing, now: Instant) {
        let Some(up) = self.up() else { return };
        let same = up
            .dialog()
            .filter(|dialog| dialog.id == choosing.asked.id)
            .cloned();
        let Some(dialog) = same else {
            return self.progress_changed(choosing, now);
        };
        let settled = up.is_certain() && up.settled_dialog(now).is_some();
        choosing.go_on(&dialog, now);
        if choosing.is_done(&dialog) {
            return self.ticked(choosing);
        }
        if now >= choosing.until {
            return self.not_chosen(&choosing, STILL_UP);
        }
        if settled && choosing.may_step(&dialog, now) {
            if choosing.moves > 2 * dialog.options.len() {
                return self.not_chosen(&choosing, "the menu does not follow the arrow keys");
            }
            let Some(step) = keys::step_towards(&dialog, &choosing.pick) else {
                return self.not_chosen(
                    &choosing,
                    "no row of the dialog is marked, so no key is safe",
                );
            };
            if choosing.stepped(&step, &dialog, now) {
                let purpose = match choosing.declines {
                    true => Purpose::Any,
                    false => Purpose::Approves,
                };
                self.press_for(purpose, &step.bytes, &step.name, &choosing.reason);
            }
        }
        if let Some(up) = self.up_mut() {
            up.hands = Hands::Choosing(choosing);
        }
    }

    /// The dialog is not there as it was. One about the same call in its place was not answered: the key has changed it,
    /// say by what it wrote into an option.
    fn progress_changed(&mut self, choosing: Choosing, now: Instant) {
        let asks = |dialog: &Dialog| dialog.asks_the_same(&choosing.asked);
        let stays = choosing.decided && self.dialog().is_some_and(asks);
        if stays && now >= choosing.until {
            return self.not_chosen(&choosing, STILL_UP);
        }
        match self.up_mut() {
            Some(up) if stays => up.hands = Hands::Choosing(choosing),
            _ => self.chosen(choosing),
        }
    }

    /// The dialog is gone, or another one has taken its place.
    pub(super) fn chosen(&mut self, choosing: Choosing) {
        if !choosing.decided {
            return self.not_chosen(&choosing, "the dialog went away before the key was pressed");
        }
        if choosing.declines {
            self.turn_is_over(up::Over::interrupted());
        }
        if let Some(review) = self.review_after(&choosing) {
            return self.submit_review(choosing, &review);
        }
        if let Some(text) = choosing.then_say {
            self.say_next("the reason", &text);
        }
        self.done(choosing.asker, choosing.asked.id, choosing.label);
    }

    /// Whoever wanted it is told that it is done.
    pub(super) fn done(&mut self, asker: Asker, dialog: String, chosen: String) {
        match asker {
            Asker::Rule => {}
            Asker::Person { token, .. } => {
                self.reply(token, Ok(Reply::Confirmed { dialog, chosen }));
            }
            Asker::Interrupters(tokens) => tokens
                .into_iter()
                .for_each(|token| self.reply(token, Ok(Reply::Interrupted("declined")))),
        }
    }

    /// No second key is tried: a person looks.
    pub(super) fn not_chosen(&mut self, choosing: &Choosing, why: &str) {
        self.take_verdict_back(choosing, why);
        if let Some(up) = self.up_mut() {
            let dialog = up.dialog().unwrap_or(&choosing.asked).id.clone();
            let why = why.to_owned();
            up.for_person = Some(ForPerson {
                dialog,
                why,
                by_rules: false,
            });
        }
        let fault = if choosing.decided {
            Fault::Failed
        } else {
            Fault::Refused
        };
        if choosing.asker.tokens().is_empty() {
            let text = why.to_owned();
            self.tell(What::Warning { text });
        }
        for token in choosing.asker.tokens() {
            let error = RpcError::new(fault, why).next("look at it: missiond pending");
            self.reply(*token, Err(error));
        }
    }

    /// A verdict is written down before its key is pressed. That it came to nothing is written down after it.
    pub(super) fn take_verdict_back(&mut self, choosing: &Choosing, why: &str) {
        if let Some(decider) = choosing.asker.decider() {
            let asked = self.ask_of(&choosing.asked);
            self.decided(asked, ask(&format!("not answered: {why}")), decider);
        }
    }
}

impl Choosing {
    /// Whether the next key is due: none was pressed yet, or the last one shows, or it was an arrow that was lost.
    /// An arrow decides nothing and may be pressed again; the key that decides is pressed once.
    fn may_step(&self, dialog: &Dialog, now: Instant) -> bool {
        let shows = self.moved_from.as_ref() != Some(&rows_of(dialog));
        let due = !self.decided && (self.moves == 0 || shows || now >= self.again);
        due || self.has_left_field(dialog)
    }

    /// Whether the first Esc has only left a field beside the choices, so that another one is due: no row was marked
    /// then, and one is now.
    fn has_left_field(&self, dialog: &Dialog) -> bool {
        let before = self.moved_from.as_ref().map(|(selected, _)| *selected);
        let left = before == Some(None) && dialog.selected.is_some();
        self.pick == Pick::Esc && self.moves == 1 && left
    }

    /// Notes the step, and says whether its key is to be pressed: a text is written once.
    fn stepped(&mut self, step: &keys::Step, dialog: &Dialog, now: Instant) -> bool {
        let is_arrow = step.bytes == keys::UP || step.bytes == keys::DOWN;
        let is_paste = step.name == keys::PASTE;
        self.moves += 1;
        self.moved_from = Some(rows_of(dialog));
        self.again = now
            + if is_arrow {
                ARROW_IS_LOST
            } else {
                2 * KEY_WORKS
            };
        if is_paste && self.pasted {
            return false;
        }
        self.pasted |= is_paste;
        self.decided = step.decides;
        self.until = now + KEY_WORKS;
        true
    }
}

/// What changes when a key that does not decide has worked.
fn rows_of(dialog: &Dialog) -> (Option<usize>, Vec<Choice>) {
    (dialog.selected, dialog.options.clone())
}

/// The hook has the whole input of the call that the dialog asks about; the screen may show a part.
fn fill_in(dialog: &mut Dialog, calls: &Calls, cwd: &Path) {
    if dialog.kind != DialogKind::Permission {
        return;
    }
    let Some(open) = calls.asked_by(dialog, cwd) else {
        return;
    };
    if let Value::Object(input) = &open.input {
        dialog.input = Some(input.clone());
    }
    dialog.tool = Some(open.tool.clone());
    dialog.request = Some(open.id.clone().unwrap_or_default());
}

/// Whether what was picked is the dialog's no, however it was said.
fn is_no(picks: &[Pick], dialog: &Dialog) -> bool {
    picks == [Pick::Esc] || keys::pick(dialog, "no").is_ok_and(|no| picks == [no])
}

fn ask(why: &str) -> Verdict {
    Verdict {
        decision: Decision::Ask,
        rule: None,
        why: why.to_owned(),
    }
}

pub(super) fn verdict_event(ask: &Ask, verdict: &Verdict, decider: &Decider) -> What {
    let agent = match decider {
        Decider::Gate { agent, .. } => agent.clone(),
        Decider::Policy | Decider::Person { .. } | Decider::Keys { .. } => None,
    };
    What::Verdict {
        tool: ask.tool.clone(),
        target: up::target_of(&ask.input).unwrap_or_default(),
        verdict: verdict.decision,
        rule: verdict.rule.clone(),
        why: verdict.why.clone(),
        by: decider.word().to_owned(),
        answer: decider.answer(),
        agent,
    }
}

fn kind_name(kind: DialogKind) -> &'static str {
    match kind {
        DialogKind::Permission => "permission",
        DialogKind::Question => "question",
        DialogKind::Plan => "plan",
        DialogKind::Trust => "trust",
        DialogKind::ApiKey => "api_key",
        DialogKind::Other => "other",
    }
}
