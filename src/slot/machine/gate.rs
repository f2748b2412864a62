//! What Claude Code's hooks say. PreToolUse is the gate: it has the tool's whole input, before any dialog.
//! Everything else is evidence, never a ground to allow anything: a tool can call the hook program too.

use super::answering::verdict_event;
use super::up::{Hands, OpenAsk, Over};
use super::*;
use crate::hook::{HookWhat, gate_output};

/// Tool calls of one turn that wait for a person at once; parallel calls are a handful.
const MAX_ASKS: usize = 64;

impl Machine {
    pub(super) fn heard(&mut self, token: Token, event: HookEvent, now: Instant) {
        let output = match event.what {
            HookWhat::SessionStart => {
                self.gate_holds();
                None
            }
            HookWhat::BeforeTool { tool, input, id } => self.before_tool(tool, input, id),
            HookWhat::AfterTool { id } => {
                self.close_ask(id.as_deref());
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

    fn gate_holds(&mut self) {
        if let Some(up) = self.up_mut() {
            up.gated = true;
        }
    }

    /// Decides on a tool call before it runs and before any dialog.
    fn before_tool(&mut self, tool: String, input: Value, id: Option<String>) -> Option<Value> {
        let ask = Ask {
            tool,
            input,
            cwd: self.config.cwd.clone(),
            complete: true,
        };
        let verdict = self.judge.decide(&ask);
        self.tell(verdict_event(&ask, &verdict, "policy"));
        let output = self.gate_output(&verdict);
        let told = output.is_some().then_some(verdict.decision);
        if verdict.decision == Decision::Ask {
            self.open_ask(&ask, &verdict, id);
        }
        self.effects
            .push(Effect::Audit(verdict, Box::new(ask), Decider::Gate(told)));
        output
    }

    /// Where no rule speaks, Claude Code's own flow holds in manual mode: it does not ask about reading the
    /// project. In every other mode it might not ask at all, so it is told to.
    fn gate_output(&self, verdict: &Verdict) -> Option<Value> {
        let manual = matches!(self.config.mode.as_str(), "manual" | "default");
        let (decision, reason) = match verdict.decision {
            Decision::Allow => ("allow", format!("missiond: {}", verdict.why)),
            Decision::Ask if verdict.rule.is_none() && manual => return None,
            Decision::Ask => ("ask", format!("missiond: {}", verdict.why)),
            Decision::Deny => ("deny", self.deny_text(verdict)),
        };
        Some(gate_output(decision, &reason))
    }

    fn deny_text(&self, verdict: &Verdict) -> String {
        match self.judge.deny_reason() {
            Some(reason) => format!("Denied by policy: {}. {reason}", verdict.why),
            None => format!("Denied by policy: {}", verdict.why),
        }
    }

    fn open_ask(&mut self, ask: &Ask, verdict: &Verdict, id: Option<String>) {
        let Some(up) = self.up_mut() else { return };
        if up.asks.len() >= MAX_ASKS {
            up.asks.remove(0);
        }
        let (tool, input, why) = (ask.tool.clone(), ask.input.clone(), verdict.why.clone());
        up.asks.push(OpenAsk {
            id,
            tool,
            input,
            why,
        });
    }

    fn close_ask(&mut self, id: Option<&str>) {
        if let Some(up) = self.up_mut() {
            up.asks.retain(|open| open.id.as_deref() != id);
        }
    }

    /// UserPromptSubmit: the message that was submitted last is taken, whatever the screen shows yet.
    fn prompt_taken(&mut self, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        up.asks.clear();
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Submitting { message, .. } => self.taken(message, now),
            hands => up.hands = hands,
        }
    }

    fn turn_over(&mut self, over: Over) {
        if let Some(up) = self.up_mut() {
            up.asks.clear();
        }
        self.turn_is_over(over);
    }
}
