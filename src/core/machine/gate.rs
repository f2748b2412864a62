//! The events of Claude Code's hooks. PreToolUse is the gate: it has the tool's whole input, before any dialog. All other hooks
//! are evidence and never a reason to allow anything: a tool can call the hook program too.

use super::calls::{OpenAsk, Tampered, in_brackets};
use super::judging::GateCall;
use super::up::{Hands, Over};
use super::*;
use crate::core::claude::{HookWhat, gate_output, no_decision};
use crate::core::model::{NO_ANSWER, WaitingCall};
use crate::core::policy::gate::denied_if_not_asked;
use crate::core::text::{excerpt, secrets};
use std::path::PathBuf;

/// The trouble name for a call that is not the one that the gate has judged.
const TAMPERED: &str = "tampered";

impl Machine {
    pub(super) fn heard(&mut self, token: Token, event: HookEvent, now: Instant) {
        self.heard_mode(event.mode.as_deref());
        let HookEvent {
            what,
            cwd,
            agent,
            mode,
            ..
        } = event;
        let output = match what {
            HookWhat::SessionStart => {
                self.session_began();
                self.command_is_done();
                None
            }
            HookWhat::BeforeTool { tool, input, id } => {
                let call = GateCall {
                    token,
                    id,
                    agent,
                    asking: mode.as_deref().map_or(Asking::ByItself, Asking::in_mode),
                    is_unsaid: false,
                };
                return self.before_tool(call, self.call(tool, input, cwd), now);
            }
            HookWhat::AfterTool {
                tool,
                input,
                id,
                failure,
            } => {
                self.after_tool(self.call(tool, input, cwd), id.as_deref(), failure);
                None
            }
            HookWhat::PromptTaken => {
                self.prompt_taken(now);
                None
            }
            HookWhat::TurnOver { text, failure } => {
                self.turn_over(Over { text, failure });
                None
            }
            HookWhat::Cost(figure) => {
                self.costs(figure);
                None
            }
            HookWhat::Displayed { .. } | HookWhat::Other => None,
        };
        self.reply(token, Ok(Reply::Hook(output)));
    }

    fn session_began(&mut self) {
        if let Some(up) = self.up_mut() {
            up.gate.heard = true;
            up.gate.calls.close_turn();
            // From the conversation before `/clear`.
            up.errors.failure = None;
        }
    }

    /// A command such as `/clear` does not end a turn, but begins another session, or the same one with less context.
    fn command_is_done(&mut self) {
        let turn = self.up().and_then(|up| up.turn.as_ref());
        if turn.is_some_and(|turn| turn.slash) {
            let (text, failure) = (None, None);
            self.turn_is_over(Over { text, failure });
        }
    }

    /// A call as the hook reports it. `cwd` is the current directory of Claude Code's shell.
    fn call(&self, tool: String, input: Value, cwd: Option<PathBuf>) -> Ask {
        Ask {
            tool,
            input,
            cwd: self.running().cwd.clone(),
            at: cwd.filter(|cwd| *cwd != self.running().cwd),
            complete: true,
        }
    }

    fn before_tool(&mut self, call: GateCall, ask: Ask, now: Instant) {
        match self.note_judged(&ask, call.id.as_deref()) {
            Some(Tampered(why)) => {
                self.alarm(why.clone(), &ask);
                self.call_judged(call, ask, Verdict::without_rule(Decision::Deny, why), now);
            }
            None => self.judge_call(call, ask, now),
        }
    }

    /// Answers the hook. The verdict is already in the audit.
    pub(super) fn call_judged(&mut self, call: GateCall, ask: Ask, verdict: Verdict, now: Instant) {
        let verdict = self.known_only(verdict);
        let verdict = denied_if_not_asked(verdict, self.circumstances_of(&call).asking);
        let (told, output) = self.answer_of_gate(&ask, &verdict, &call);
        if let Some(up) = self.up_mut() {
            up.gate.calls.dialog_may_come(now);
        }
        let GateCall { token, agent, .. } = call;
        self.decided(ask, verdict, Decider::Gate { told, agent });
        self.reply(token, Ok(Reply::Hook(output)));
    }

    fn note_judged(&mut self, ask: &Ask, id: Option<&str>) -> Option<Tampered> {
        let calls = &mut self.up_mut()?.gate.calls;
        calls.judged(id, &ask.tool, &ask.input).err()
    }

    /// The answer to Claude Code. The reason of an *ask* carries a mark that identifies its dialog.
    fn answer_of_gate(
        &mut self,
        ask: &Ask,
        verdict: &Verdict,
        call: &GateCall,
    ) -> (Option<Decision>, Option<Value>) {
        let decision = verdict.decision;
        let mark = (decision == Decision::Ask).then(|| self.marks.next());
        if decision == Decision::Deny {
            if let Some(up) = self.up_mut() {
                up.gate.calls.denied(call.id.as_deref());
            }
        } else {
            self.open(OpenAsk {
                id: call.id.clone(),
                tool: ask.tool.clone(),
                input: ask.input.clone(),
                at: ask.at.clone(),
                why: verdict.why.clone(),
                allowed: decision == Decision::Allow,
                mark: mark.clone(),
                by_agent: call.agent.is_some(),
                answered: false,
                now: None,
            });
        }
        if decision == Decision::Allow && call.is_unsaid {
            return (None, Some(no_decision()));
        }
        let reason = match (decision, mark) {
            (Decision::Allow, _) => format!("missiond: {}", verdict.why),
            (Decision::Deny, _) => self.deny_text(verdict),
            (Decision::Silent, _) | (Decision::Ask, None) => return (None, None),
            (Decision::Ask, Some(mark)) => {
                format!("missiond {}: {}", in_brackets(&mark), verdict.why)
            }
        };
        (Some(decision), Some(gate_output(decision.word(), &reason)))
    }

    /// The settings of the running program that matter beside the policy.
    pub fn circumstances(&self) -> Circumstances {
        Circumstances {
            asking: self.asking(),
            project_settings: self.running().project_settings,
        }
    }

    /// The same for one call: an agent may run in another mode than the conversation.
    pub(super) fn circumstances_of(&self, call: &GateCall) -> Circumstances {
        let of_slot = self.circumstances();
        Circumstances {
            asking: of_slot.asking.max(call.asking),
            ..of_slot
        }
    }

    /// The least safe of the mode that it was started in and those that were seen.
    fn asking(&self) -> Asking {
        let seen = self.up().map(|up| up.modes.all()).into_iter().flatten();
        let configured = Asking::in_mode(&self.running().mode);
        seen.map(Asking::in_mode).fold(configured, Asking::max)
    }

    /// The reply to a hook if its verdict could not be written to the audit: it allows nothing.
    pub fn unallowed(&self, reply: Reply) -> Reply {
        let Reply::Hook(Some(_)) = reply else {
            return reply;
        };
        let verdict = Verdict::without_rule(Decision::Ask, "the audit can't be written");
        let verdict = denied_if_not_asked(verdict, self.circumstances().asking);
        let reason = format!("missiond: {}", verdict.why);
        Reply::Hook(Some(gate_output(verdict.decision.word(), &reason)))
    }

    fn deny_text(&self, verdict: &Verdict) -> String {
        match &self.rules.deny_reason {
            Some(reason) => format!("Denied by policy: {}. {reason}", verdict.why),
            None => format!("Denied by policy: {}", verdict.why),
        }
    }

    /// An earlier daemon has served the gate of the adopted program. `note` is its record of the open calls. The rules may have
    /// changed since.
    pub(super) fn was_gated(&mut self, note: Option<&str>, now: Instant) {
        if let Some(up) = self.up_mut() {
            up.gate.heard = true;
            up.gate.calls.take_up(note);
        }
        self.judge_open_calls(now);
    }

    /// How often the open calls of the running program have changed.
    pub fn changes_of_calls(&self) -> Option<u64> {
        self.up().map(|up| up.gate.calls.changes())
    }

    /// The open calls as a text of at most about `most` bytes, for a daemon that adopts the program.
    pub fn note_of_calls(&self, most: usize) -> Option<String> {
        self.up().map(|up| up.gate.calls.note(most))
    }

    fn open(&mut self, ask: OpenAsk) {
        if let Some(up) = self.up_mut() {
            up.gate.calls.open(ask);
        }
    }

    /// The call, in one line, that waits for a person while the screen shows an idle Claude Code.
    pub fn hidden_question(&self) -> Option<String> {
        let up = self.up().filter(|up| up.hides_question())?;
        let open = up.gate.calls.unanswered()?;
        Some(up::call_in_a_line(&open.tool, &open.input))
    }

    /// Why a waiting call can't be answered: the screen shows an idle Claude Code. The program redraws its screen, without a key,
    /// which brings back a dialog that was overwritten.
    pub(super) fn hidden_dialog(&mut self) -> Option<RpcError> {
        let call = self.hidden_question()?;
        self.effects.push(Effect::Repaint);
        let name = &self.config.name;
        let text = format!(
            "a call waits for you in {name}, and its screen does not show the dialog, so no key was pressed: {call}"
        );
        Some(Refusal::HiddenDialog.says(text).next(format!(
            "its screen is drawn again: answer when the dialog is back (missiond pending {name}); if it does not come back, \
             another process writes over it: missiond stop {name} ends the call"
        )))
    }

    /// The calls that the gate has seen and that have not run, if the screen shows no dialog about one of them.
    pub fn calls_not_shown(&self) -> Vec<WaitingCall> {
        match self.up() {
            Some(up) if up.hides_question() => {
                up.gate.calls.all_unanswered().map(call_of).collect()
            }
            _ if self.gate_knows_dialog() == Some(Known::Not) => self.waiting_calls(),
            _ => Vec::new(),
        }
    }

    pub(super) fn progress_calls(&mut self, now: Instant) {
        if let Some(up) = self.up_mut() {
            up.gate.calls.progress(now);
        }
    }

    /// The call, in one line, whose dialog Claude Code may draw at any moment: it is at the gate, or was answered there.
    pub(super) fn dialog_to_come(&self) -> Option<String> {
        let judged = self.judging.call().map(|ask| (&ask.tool, &ask.input));
        let answered = || {
            let open = self.up()?.gate.calls.may_be_asked()?;
            Some((&open.tool, &open.input))
        };
        let (tool, input) = judged.or_else(answered)?;
        Some(up::call_in_a_line(tool, input))
    }

    /// Whether the dialog of an agent may appear at any moment, also over an idle input box.
    pub(super) fn agent_may_ask(&self) -> bool {
        let answered = |up: &up::Up| up.gate.calls.agent_may_ask();
        self.judging.judges_agent() || self.up().is_some_and(answered)
    }

    /// Whether an Enter for the input box may reach a dialog that the screen does not show.
    pub(super) fn may_meet_dialog(&self) -> bool {
        self.agent_may_ask() || self.up().is_some_and(up::Up::is_disputed)
    }

    /// Whether an agent of Claude Code waits for a person, also after the turn.
    pub fn agents_ask(&self) -> bool {
        self.up().is_some_and(|up| up.gate.calls.agents_ask())
    }

    fn after_tool(&mut self, ask: Ask, id: Option<&str>, failure: Option<String>) {
        self.has_run(&ask, id);
        self.tell(EventKind::Ran {
            tool: ask.tool.clone(),
            target: up::target_of(&ask.input).unwrap_or_default(),
            call: id.map(str::to_owned),
            error: failure.map(|text| first_line(&text)),
        });
        let Some(up) = self.up_mut() else { return };
        if let Err(Tampered(why)) = up.gate.calls.ran(id, &ask.tool, &ask.input) {
            self.alarm(why, &ask);
        }
    }

    /// A call went past the gate, or another program imitates the gate: a person must know at once.
    fn alarm(&mut self, why: String, ask: &Ask) {
        self.tell(EventKind::Trouble {
            cause: TAMPERED.to_owned(),
            text: why.clone(),
        });
        self.effects.push(Effect::Alarm(why, Box::new(ask.clone())));
    }

    /// UserPromptSubmit: Claude Code has accepted the last submitted message, whatever the screen shows.
    fn prompt_taken(&mut self, now: Instant) {
        self.past.works();
        let Some(up) = self.up_mut() else { return };
        up.gate.calls.close_turn();
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Submitting { message, .. } => self.taken(message, now),
            hands => up.hands = hands,
        }
    }

    fn turn_over(&mut self, over: Over) {
        self.past.works();
        if let Some(up) = self.up_mut() {
            up.gate.calls.close_turn();
        }
        self.turn_is_over(over);
    }
}

/// Bytes of a failure that an event has; the rest is in the transcript.
const MAX_FAILURE: usize = 200;

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = excerpt::head(line.unwrap_or("it failed").trim(), MAX_FAILURE);
    secrets::mask(line)
}

pub(super) fn call_of(open: &OpenAsk) -> WaitingCall {
    WaitingCall {
        tool: open.tool.clone(),
        input: open.input.clone(),
    }
}

impl Decider {
    pub fn word(&self) -> &'static str {
        match self {
            Decider::Policy | Decider::Gate { .. } => "policy",
            Decider::Person(_) | Decider::Keys { .. } => "person",
        }
    }

    /// The hook's answer as one word, if the call was asked about.
    pub fn answer(&self) -> Option<String> {
        match self {
            Decider::Gate { told, .. } => Some(told.map_or(NO_ANSWER, Decision::word).to_owned()),
            Decider::Policy | Decider::Person(_) | Decider::Keys { .. } => None,
        }
    }
}
