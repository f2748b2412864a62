//! What Claude Code's hooks say. PreToolUse is the gate: it has the tool's whole input, before any dialog.
//! Everything else is evidence, never a ground to allow anything: a tool can call the hook program too.

use super::calls::{OpenAsk, Tampered, in_brackets};
use super::modes::same_mode;
use super::up::{Hands, Over};
use super::*;
use crate::control::protocol::NO_ANSWER;
use crate::hook::{HookWhat, gate_output};
use std::path::PathBuf;

/// The trouble of a call that is not what the gate has judged.
const TAMPERED: &str = "tampered";

impl Machine {
    pub(super) fn heard(&mut self, token: Token, event: HookEvent, now: Instant) {
        self.heard_mode(event.mode.as_deref());
        let HookEvent {
            what, cwd, agent, ..
        } = event;
        let output = match what {
            HookWhat::SessionStart => {
                self.session_began();
                self.command_is_done();
                None
            }
            HookWhat::BeforeTool { tool, input, id } => {
                self.before_tool(self.call(tool, input, cwd), id, agent)
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
            up.gated = true;
            // Of the conversation before `/clear`.
            up.failure = None;
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

    /// An earlier daemon has heard the gate of the program that was taken up, and has judged calls of it.
    pub(super) fn was_gated(&mut self) {
        if let Some(up) = self.up_mut() {
            up.gated = true;
            up.calls.took_up();
        }
    }

    /// A call as the hook tells it. `cwd` is where Claude Code's shell stands by now.
    fn call(&self, tool: String, input: Value, cwd: Option<PathBuf>) -> Ask {
        Ask {
            tool,
            input,
            cwd: self.config.cwd.clone(),
            at: cwd.filter(|cwd| *cwd != self.config.cwd),
            complete: true,
        }
    }

    /// Decides on a tool call before it runs and before any dialog.
    fn before_tool(
        &mut self,
        ask: Ask,
        id: Option<String>,
        agent: Option<String>,
    ) -> Option<Value> {
        let mut verdict = self.judge.at_the_gate(&ask, self.circumstances());
        if let Some(Tampered(why)) = self.note_judged(&ask, id.as_deref()) {
            verdict = denied(&why);
            self.alarm(why, &ask);
        }
        let (told, output) = self.answer_of_gate(&ask, &verdict, id, agent.is_some());
        self.decided(ask, verdict, Decider::Gate { told, agent });
        output
    }

    fn note_judged(&mut self, ask: &Ask, id: Option<&str>) -> Option<Tampered> {
        let calls = &mut self.up_mut()?.calls;
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
    pub(super) fn circumstances(&self) -> Circumstances {
        Circumstances {
            manual: self.is_manual(),
            project_settings: self.project_has_a_say(),
        }
    }

    fn is_manual(&self) -> bool {
        let is_manual = |mode: &str| same_mode(mode, "manual");
        let mut seen = self.up().map(|up| up.modes.all()).into_iter().flatten();
        is_manual(&self.config.mode) && seen.all(is_manual)
    }

    /// Whether the program that runs has read the project's settings, whatever holds for its next start.
    fn project_has_a_say(&self) -> bool {
        self.up()
            .map_or(self.config.project_settings, |up| up.project_settings)
    }

    fn deny_text(&self, verdict: &Verdict) -> String {
        match self.judge.deny_reason() {
            Some(reason) => format!("Denied by policy: {}. {reason}", verdict.why),
            None => format!("Denied by policy: {}", verdict.why),
        }
    }

    fn open(&mut self, ask: OpenAsk) {
        if let Some(up) = self.up_mut() {
            up.calls.open(ask);
        }
    }

    /// Whether an agent of Claude Code waits for a person, also when the turn is over.
    pub fn agents_ask(&self) -> bool {
        self.up().is_some_and(|up| up.calls.agents_ask())
    }

    fn after_tool(&mut self, ask: Ask, id: Option<&str>) {
        let Some(up) = self.up_mut() else { return };
        if let Err(Tampered(why)) = up.calls.ran(id, &ask.tool, &ask.input) {
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
        up.calls.close_turn();
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Submitting { message, .. } => self.taken(message, now),
            hands => up.hands = hands,
        }
    }

    fn turn_over(&mut self, over: Over) {
        if let Some(up) = self.up_mut() {
            up.calls.close_turn();
        }
        self.turn_is_over(over);
    }
}

impl Decider {
    pub fn word(&self) -> &'static str {
        match self {
            Decider::Policy | Decider::Gate { .. } => "policy",
            Decider::Person { .. } | Decider::Keys { .. } => "person",
        }
    }

    /// What the hook answers, in a word, where it was asked.
    pub fn answer(&self) -> Option<String> {
        match self {
            Decider::Gate { told, .. } => Some(told.map_or(NO_ANSWER, Decision::word).to_owned()),
            Decider::Policy | Decider::Person { .. } | Decider::Keys { .. } => None,
        }
    }
}

fn denied(why: &str) -> Verdict {
    Verdict {
        decision: Decision::Deny,
        rule: None,
        why: why.to_owned(),
    }
}
