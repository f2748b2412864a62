//! What Claude Code's hooks say. PreToolUse is the gate: it has the tool's whole input, before any dialog.
//! Everything else is evidence, never a ground to allow anything: a tool can call the hook program too.

use super::calls::{OpenAsk, Tampered, in_brackets};
use super::judging::GateCall;
use super::up::{Hands, Over};
use super::*;
use crate::core::claude::{HookWhat, gate_output};
use crate::core::model::{NO_ANSWER, WaitingCall};
use crate::core::policy::gate::denied_if_not_asked;
use std::path::PathBuf;

/// The trouble of a call that is not what the gate has judged.
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
                };
                return self.before_tool(call, self.call(tool, input, cwd), now);
            }
            HookWhat::AfterTool { tool, input, id } => {
                self.after_tool(self.call(tool, input, cwd), id.as_deref());
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
            // Of the conversation before `/clear`.
            up.errors.failure = None;
        }
    }

    /// A command such as `/clear` ends no turn, but begins another session, or the same with less in it.
    fn command_is_done(&mut self) {
        let turn = self.up().and_then(|up| up.turn.as_ref());
        if turn.is_some_and(|turn| turn.slash) {
            let (text, failure) = (None, None);
            self.turn_is_over(Over { text, failure });
        }
    }

    /// A call as the hook tells it. `cwd` is where Claude Code's shell stands by now.
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
                self.call_judged(call, ask, Verdict::without_rule(Decision::Deny, why));
            }
            None => self.judge_call(call, ask, now),
        }
    }

    /// Answers the hook. The verdict is in the audit by then.
    pub(super) fn call_judged(&mut self, call: GateCall, ask: Ask, verdict: Verdict) {
        let verdict = self.known_only(verdict);
        let verdict = denied_if_not_asked(verdict, self.circumstances_of(&call).asking);
        let GateCall {
            token, id, agent, ..
        } = call;
        let (told, output) = self.answer_of_gate(&ask, &verdict, id, agent.is_some());
        self.decided(ask, verdict, Decider::Gate { told, agent });
        self.reply(token, Ok(Reply::Hook(output)));
    }

    fn note_judged(&mut self, ask: &Ask, id: Option<&str>) -> Option<Tampered> {
        let calls = &mut self.up_mut()?.gate.calls;
        calls.judged(id, &ask.tool, &ask.input).err()
    }

    /// What Claude Code is told. What it is told to ask about carries a mark, by which its dialog is known.
    fn answer_of_gate(
        &mut self,
        ask: &Ask,
        verdict: &Verdict,
        id: Option<String>,
        by_agent: bool,
    ) -> (Option<Decision>, Option<Value>) {
        let decision = verdict.decision;
        let mark = (decision == Decision::Ask).then(|| self.marks.next());
        if decision != Decision::Deny {
            self.open(OpenAsk {
                id,
                tool: ask.tool.clone(),
                input: ask.input.clone(),
                at: ask.at.clone(),
                why: verdict.why.clone(),
                allowed: decision == Decision::Allow,
                mark: mark.clone(),
                by_agent,
                answered: false,
                now: None,
            });
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

    /// What the running program obeys beside the policy.
    pub fn circumstances(&self) -> Circumstances {
        Circumstances {
            asking: self.asking(),
            project_settings: self.running().project_settings,
        }
    }

    /// Those of one call: an agent may run in another mode than the conversation.
    pub(super) fn circumstances_of(&self, call: &GateCall) -> Circumstances {
        let of_slot = self.circumstances();
        Circumstances {
            asking: of_slot.asking.max(call.asking),
            ..of_slot
        }
    }

    /// The least safe of the modes that it was started in or was seen in.
    fn asking(&self) -> Asking {
        let seen = self.up().map(|up| up.modes.all()).into_iter().flatten();
        let configured = Asking::in_mode(&self.running().mode);
        seen.map(Asking::in_mode).fold(configured, Asking::max)
    }

    /// The reply to a hook if its verdict could not be written to the audit: nothing is allowed then.
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

    /// An earlier daemon has heard the gate of the program that was taken up. `note` is what it has left of the open
    /// calls. The rules may be others by now.
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

    /// The open calls as a text of at most about `most` bytes, for a daemon that takes the program up.
    pub fn note_of_calls(&self, most: usize) -> Option<String> {
        self.up().map(|up| up.gate.calls.note(most))
    }

    fn open(&mut self, ask: OpenAsk) {
        if let Some(up) = self.up_mut() {
            up.gate.calls.open(ask);
        }
    }

    /// The call, in a line, that waits for a person while the screen shows Claude Code at rest.
    pub fn hidden_question(&self) -> Option<String> {
        let up = self.up().filter(|up| up.hides_question())?;
        let open = up.gate.calls.unanswered()?;
        Some(up::call_in_a_line(&open.tool, &open.input))
    }

    /// Why a call that waits can't be answered: the screen shows Claude Code at rest. The program draws its screen again,
    /// with no key, which brings back a dialog that something was written over.
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

    /// The calls that have come to the gate and have not run, if the screen shows no dialog about one of them.
    pub fn calls_not_shown(&self) -> Vec<WaitingCall> {
        match self.up() {
            Some(up) if up.hides_question() => {
                up.gate.calls.all_unanswered().map(call_of).collect()
            }
            _ if self.gate_knows_dialog() == Some(Known::Not) => self.waiting_calls(),
            _ => Vec::new(),
        }
    }

    /// Whether an agent of Claude Code waits for a person, also when the turn is over.
    pub fn agents_ask(&self) -> bool {
        self.up().is_some_and(|up| up.gate.calls.agents_ask())
    }

    fn after_tool(&mut self, ask: Ask, id: Option<&str>) {
        self.has_run(&ask, id);
        let Some(up) = self.up_mut() else { return };
        if let Err(Tampered(why)) = up.gate.calls.ran(id, &ask.tool, &ask.input) {
            self.alarm(why, &ask);
        }
    }

    /// Something went past the gate, or somebody plays it: a person has to know at once.
    fn alarm(&mut self, why: String, ask: &Ask) {
        self.tell(What::Trouble {
            cause: TAMPERED.to_owned(),
            text: why.clone(),
        });
        self.effects.push(Effect::Alarm(why, Box::new(ask.clone())));
    }

    /// UserPromptSubmit: the message that was submitted last is taken, whatever the screen shows yet.
    fn prompt_taken(&mut self, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        up.gate.calls.close_turn();
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Submitting { message, .. } => self.taken(message, now),
            hands => up.hands = hands,
        }
    }

    fn turn_over(&mut self, over: Over) {
        if let Some(up) = self.up_mut() {
            up.gate.calls.close_turn();
        }
        self.turn_is_over(over);
    }
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

    /// What the hook answers, in a word, where it was asked.
    pub fn answer(&self) -> Option<String> {
        match self {
            Decider::Gate { told, .. } => Some(told.map_or(NO_ANSWER, Decision::word).to_owned()),
            Decider::Policy | Decider::Person(_) | Decider::Keys { .. } => None,
        }
    }
}
