//! Questions to the rules. A rule reads real paths, and the file system can hang: the machine asks by an effect and continues. A
//! missing answer counts as *ask*.

use super::calls::OpenAsk;
use super::*;
use crate::core::model::Always;
use crate::core::policy::Dialogs;

/// The most open questions: more means a program in a loop. A person decides on the others.
pub(super) const MAX_OPEN: usize = 64;

/// What the machine knows about the rules without a question, and so without access to the file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownRules {
    /// What happens with dialogs that are not about a tool call.
    pub dialogs: Dialogs,
    /// The reason that Claude gets with a denial.
    pub deny_reason: Option<String>,
}

/// A question about one tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct RulesQuestion {
    pub id: u64,
    pub ask: Ask,
    pub wants: Wants,
}

/// The kind of answer that a question needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// The gate's answer to Claude Code.
    GateAnswer(Circumstances),
    /// The verdict on a call on the screen.
    Verdict,
    /// The narrow rule that `always` would add.
    RuleForAlways,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Opinion {
    Verdict(Verdict),
    /// The rules allow the call, and the gate stays silent: Claude Code checks the call too, with the same rules.
    Unsaid(Verdict),
    /// The rule, or the reason why none would help.
    RuleForAlways(Result<String, String>),
    /// The rules gave no answer, for this reason.
    None(String),
}

impl Opinion {
    /// A missing answer is *ask*.
    fn verdict(self) -> Verdict {
        match self {
            Opinion::Verdict(verdict) | Opinion::Unsaid(verdict) => verdict,
            Opinion::None(why) => no_verdict(why),
            Opinion::RuleForAlways(_) => no_verdict("the rules gave no verdict".to_owned()),
        }
    }

    fn always(self) -> Always {
        Always::from(match self {
            Opinion::RuleForAlways(found) => found,
            Opinion::None(why) => Err(why),
            Opinion::Verdict(_) | Opinion::Unsaid(_) => Err("the rules named no rule".to_owned()),
        })
    }
}

fn no_verdict(why: String) -> Verdict {
    Verdict::without_rule(Decision::Ask, why)
}

/// What a question is about.
#[derive(Debug)]
pub(super) enum JudgedSubject {
    /// A call at the gate, whose hook waits.
    Call(GateCall),
    /// A call that already waits for a person, after a change of the rules.
    OpenCall,
    /// The dialog on the screen.
    Dialog,
    /// What `always` would do with the dialog on the screen.
    Always,
}

#[derive(Debug)]
pub(super) struct GateCall {
    pub token: Token,
    pub id: Option<String>,
    /// The agent of Claude Code that made it.
    pub agent: Option<String>,
    /// Whether a person is asked in the permission mode of the call.
    pub asking: Asking,
    /// Whether the gate keeps silent about an *allow*, so that Claude Code checks the call too.
    pub is_unsaid: bool,
}

#[derive(Debug)]
struct Open {
    question: RulesQuestion,
    subject: JudgedSubject,
    due: Instant,
}

/// The questions without an answer.
#[derive(Debug, Default)]
pub(super) struct Judging {
    open: Vec<Open>,
    last: u64,
}

impl Judging {
    fn ask(
        &mut self,
        ask: Ask,
        wants: Wants,
        subject: JudgedSubject,
        due: Instant,
    ) -> RulesQuestion {
        self.last += 1;
        let question = RulesQuestion {
            id: self.last,
            ask,
            wants,
        };
        self.open.push(Open {
            question: question.clone(),
            subject,
            due,
        });
        question
    }

    pub fn is_full(&self) -> bool {
        self.open.len() >= MAX_OPEN
    }

    fn take(&mut self, id: u64) -> Option<Open> {
        let at = self.open.iter().position(|open| open.question.id == id)?;
        Some(self.open.remove(at))
    }

    fn take_late(&mut self, now: Instant) -> Vec<Open> {
        self.open.extract_if(.., |open| now >= open.due).collect()
    }

    /// Whether this question is already open.
    pub fn asks(&self, ask: &Ask, wants: Wants) -> bool {
        let is_it = |open: &Open| open.question.wants == wants && open.question.ask == *ask;
        self.open.iter().any(is_it)
    }

    /// The call at the gate that has no answer yet.
    pub fn call(&self) -> Option<&Ask> {
        let is_call = |open: &&Open| matches!(open.subject, JudgedSubject::Call(_));
        self.open
            .iter()
            .find(is_call)
            .map(|open| &open.question.ask)
    }

    /// Whether an agent made one of them.
    pub fn judges_agent(&self) -> bool {
        let by_agent = |open: &Open| matches!(&open.subject, JudgedSubject::Call(call) if call.agent.is_some());
        self.open.iter().any(by_agent)
    }

    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// When the next question times out.
    pub fn due(&self) -> Option<Instant> {
        self.open.iter().map(|open| open.due).min()
    }
}

impl Machine {
    /// Decides on a tool call before it runs and before any dialog: the hook waits for the answer.
    pub(super) fn judge_call(&mut self, call: GateCall, ask: Ask, now: Instant) {
        let wants = Wants::GateAnswer(self.circumstances_of(&call));
        match self.judging.is_full() {
            true => {
                let why = format!("{MAX_OPEN} calls wait for the rules already");
                self.call_judged(call, ask, no_verdict(why), now);
            }
            false => self.ask_rules(ask, wants, JudgedSubject::Call(call), now + JUDGING_TAKES),
        }
    }

    pub(super) fn judge_dialog(&mut self, ask: Ask, now: Instant) {
        self.ask_rules_once(ask, Wants::Verdict, JudgedSubject::Dialog, now);
    }

    /// Asks what `always` would do with the current dialog, unless that is known.
    pub(super) fn judge_always(&mut self, now: Instant) {
        let Some(dialog) = self.dialog() else {
            return;
        };
        let ask = self.ask_of(dialog);
        let is_call = dialog.kind == DialogKind::Permission;
        let known = self.up().and_then(|up| up.asks.always.as_ref());
        if known.is_some_and(|(known, _)| *known == ask) {
            return;
        }
        if is_call {
            return self.ask_rules_once(ask, Wants::RuleForAlways, JudgedSubject::Always, now);
        }
        let why = "no rule matches a dialog that is not a tool call".to_owned();
        self.always_found(ask, Always::from(Err(why)));
    }

    /// Applies new rules, and judges again the calls that wait for a person. This changes what is shown, never the answer that
    /// Claude Code already got: in a slot with a working gate a person answers the current dialog. In other slots the dialog is
    /// handled like one that has just settled.
    pub(super) fn take_rules(&mut self, rules: KnownRules, now: Instant) {
        self.rules = rules;
        for open in std::mem::take(&mut self.judging.open) {
            self.ask_again(open);
        }
        self.judge_open_calls(now);
        if let Some(up) = self.up_mut() {
            up.asks.always = None;
        }
        self.ask_person_again();
        self.judge_always(now);
    }

    /// Asks for the current verdict on the calls that a dialog may be about.
    pub(super) fn judge_open_calls(&mut self, now: Instant) {
        let wants = Wants::GateAnswer(self.circumstances());
        for ask in self.open_calls() {
            self.ask_rules_once(ask, wants, JudgedSubject::OpenCall, now);
        }
    }

    /// Handles an answer of the rules.
    pub(super) fn judged(&mut self, id: u64, opinion: Opinion, now: Instant) {
        let Some(open) = self.judging.take(id) else {
            return;
        };
        let Wants::GateAnswer(circumstances) = open.question.wants else {
            return self.act_on(open, opinion, now);
        };
        match circumstances == self.circumstances_for(&open.subject) {
            true => self.act_on(open, opinion, now),
            // The mode has changed, and a silent verdict means something else in it.
            false => self.ask_again(open),
        }
    }

    /// Gives up on rules that hang.
    pub(super) fn give_up_late_questions(&mut self, now: Instant) {
        for open in self.judging.take_late(now) {
            let limit = JUDGING_TAKES.as_secs();
            let why = format!("the rules gave no verdict within {limit} s: a path may hang");
            self.act_on(open, Opinion::None(why), now);
        }
    }

    /// The program has ended. A hook of it that still waits gets no *allow*.
    pub(super) fn drop_questions(&mut self, now: Instant) {
        for open in std::mem::take(&mut self.judging.open) {
            if let JudgedSubject::Call(call) = open.subject {
                let verdict = no_verdict("the program has ended".to_owned());
                self.call_judged(call, open.question.ask, verdict, now);
            }
        }
    }

    fn act_on(&mut self, open: Open, opinion: Opinion, now: Instant) {
        let ask = open.question.ask;
        match open.subject {
            JudgedSubject::Call(mut call) => {
                call.is_unsaid = matches!(opinion, Opinion::Unsaid(_));
                self.call_judged(call, ask, opinion.verdict(), now);
            }
            JudgedSubject::OpenCall => self.open_call_judged(&ask, &opinion.verdict()),
            JudgedSubject::Dialog => self.dialog_judged(&ask, opinion.verdict(), now),
            JudgedSubject::Always => self.always_found(ask, opinion.always()),
        }
    }

    fn ask_rules_once(&mut self, ask: Ask, wants: Wants, subject: JudgedSubject, now: Instant) {
        if !self.judging.is_full() && !self.judging.asks(&ask, wants) {
            self.ask_rules(ask, wants, subject, now + JUDGING_TAKES);
        }
    }

    fn ask_rules(&mut self, ask: Ask, wants: Wants, subject: JudgedSubject, due: Instant) {
        let question = self.judging.ask(ask, wants, subject, due);
        self.effects.push(Effect::Judge(Box::new(question)));
    }

    /// The rules or the mode have changed: an answer that is on its way no longer counts.
    fn ask_again(&mut self, open: Open) {
        let wants = match open.question.wants {
            Wants::GateAnswer(_) => Wants::GateAnswer(self.circumstances_for(&open.subject)),
            wants => wants,
        };
        self.ask_rules(open.question.ask, wants, open.subject, open.due);
    }

    fn circumstances_for(&self, subject: &JudgedSubject) -> Circumstances {
        match subject {
            JudgedSubject::Call(call) => self.circumstances_of(call),
            JudgedSubject::OpenCall | JudgedSubject::Dialog | JudgedSubject::Always => {
                self.circumstances()
            }
        }
    }

    /// The calls that wait for a person.
    fn open_calls(&self) -> Vec<Ask> {
        let calls = self.up().map(|up| up.gate.calls.waiting());
        let ask = |open: &OpenAsk| Ask {
            tool: open.tool.clone(),
            input: open.input.clone(),
            cwd: self.running().cwd.clone(),
            at: open.at.clone(),
            complete: true,
        };
        calls.into_iter().flatten().map(ask).collect()
    }

    fn open_call_judged(&mut self, ask: &Ask, verdict: &Verdict) {
        if let Some(up) = self.up_mut() {
            up.gate.calls.judged_again(ask, verdict);
        }
        self.ask_person_again();
    }

    /// Determines again why a person is asked about the current dialog.
    fn ask_person_again(&mut self) {
        if let Some(up) = self.up_mut()
            && up
                .asks
                .for_person
                .as_ref()
                .is_some_and(|waits| waits.by_rules)
        {
            up.asks.for_person = None;
        }
    }

    fn always_found(&mut self, ask: Ask, always: Always) {
        let is_up = |dialog: &Dialog| self.ask_of(dialog) == ask;
        if !self.dialog().is_some_and(is_up) {
            return;
        }
        if let Some(up) = self.up_mut() {
            up.asks.always = Some((ask, always));
        }
    }

    /// The call that waits for a person: the one that the dialog is about, else the first that waits at the gate.
    pub fn asked(&self) -> Option<Ask> {
        let on_screen = self.dialog().map(|dialog| self.ask_of(dialog));
        on_screen.or_else(|| self.open_calls().into_iter().next())
    }

    /// What `always` would do with the current dialog, once that is known.
    pub fn always(&self) -> Option<Always> {
        let up = self.up().filter(|up| up.dialog().is_some())?;
        up.asks.always.as_ref().map(|(_, always)| always.clone())
    }
}
