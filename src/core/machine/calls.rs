//! The tool calls that the gate has judged: which of them wait for a person, which one the dialog on the screen asks about, and
//! whether the call that ran is the one that was judged.

mod fitting;
mod kept;

use super::waits::DIALOG_COMES;
use crate::core::claude::reading::{Dialog, DialogKind};
use crate::core::claude::{plans, questions};
use crate::core::policy::{Ask, Decision, Verdict};
use fitting::{Fit, fit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The most open tool calls of one turn; parallel calls are few.
const MAX_OPEN: usize = 64;

/// The most calls whose end is awaited. Denied calls have no end, so old ones are dropped.
const MAX_JUDGED: usize = 1024;

/// The characters of a mark, without any that look alike.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Long enough that nobody can guess a mark, short enough for one row of the screen.
const MARK_LENGTH: usize = 10;

/// Creates marks: random words that nobody can guess, not even from earlier ones.
#[derive(Debug)]
pub(super) struct Marks {
    seed: u64,
    given: u64,
}

impl Marks {
    pub fn new(seed: u64) -> Marks {
        Marks { seed, given: 0 }
    }

    pub fn next(&mut self) -> String {
        self.given += 1;
        let mut hash = Sha256::new_with_prefix(b"mark");
        hash.update(self.seed.to_le_bytes());
        hash.update(self.given.to_le_bytes());
        let letter = |byte: &u8| char::from(LETTERS[usize::from(byte % 32)]);
        hash.finalize()
            .iter()
            .take(MARK_LENGTH)
            .map(letter)
            .collect()
    }
}

/// A tool call that a dialog may be about: the gate left it to a person, or the gate allowed it and Claude Code may still ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenAsk {
    pub id: Option<String>,
    pub tool: String,
    pub input: Value,
    /// The directory of Claude Code's shell, if it is not the slot's: the screen shows paths relative to it.
    pub at: Option<PathBuf>,
    pub why: String,
    pub allowed: bool,
    /// The mark in the reason that Claude Code got, if it got one.
    pub mark: Option<String>,
    /// An agent of Claude Code made it; an agent may continue after the turn.
    pub by_agent: bool,
    /// A deciding key was pressed on its dialog, by a person or on their behalf.
    #[serde(default)]
    pub answered: bool,
    /// The verdict of the current rules, if they have changed since the call was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Verdict>,
}

impl OpenAsk {
    /// Whether the gate answered *ask* and nobody has answered the dialog yet.
    fn is_unanswered(&self) -> bool {
        self.mark.is_some() && !self.answered
    }

    /// Whether Claude Code shows it to a person whatever the gate answered, and nobody has answered it yet.
    fn is_question(&self) -> bool {
        let shown = self.tool == questions::TOOL || plans::TOOLS.contains(&self.tool.as_str());
        shown && !self.answered
    }

    /// Why a person is asked: the verdict of the current rules, also for a dialog that is older than they are.
    pub fn why_asked(&self) -> String {
        let (decision, why) = match &self.now {
            Some(now) => (now.decision, &now.why),
            None if self.allowed => (Decision::Allow, &self.why),
            None => (Decision::Ask, &self.why),
        };
        let older = |answer| {
            format!(
                "{why} since the rules have changed, but this dialog is older and waits for you: the rules would say {answer}"
            )
        };
        match decision {
            Decision::Allow if self.allowed => format!("Claude Code asks by itself, though {why}"),
            Decision::Allow => older("yes"),
            Decision::Deny => older("no"),
            Decision::Silent | Decision::Ask => why.clone(),
        }
    }
}

#[derive(Debug)]
struct Judged {
    id: String,
    tool: String,
    digest: [u8; 32],
    denied: bool,
}

/// What the gate knows about the call of a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The gate has not seen it.
    Not,
    /// It was allowed; most allowed calls run without a dialog.
    Allowed,
    /// It was left to a person.
    Waits,
}

/// A call that ran, or is about to, is not the one that was judged; with the reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tampered(pub String);

/// The calls of one run of the program.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<OpenAsk>,
    /// How often `open` has changed.
    changes: u64,
    judged: VecDeque<Judged>,
    /// An earlier daemon judged other calls before this daemon adopted the program.
    missed: bool,
    /// One of those may still wait for a person.
    missed_may_wait: bool,
    /// Until then Claude Code may draw a dialog that was not read yet: the gate has just let a call continue, or a dialog has
    /// just gone and another one may follow.
    dialog_comes_until: Option<Instant>,
}

impl Calls {
    /// Records a judged call. Two different inputs under one id mean that one of them is not from Claude Code.
    pub fn judged(&mut self, id: Option<&str>, tool: &str, input: &Value) -> Result<(), Tampered> {
        let Some(id) = id else { return Ok(()) };
        let digest = digest(input);
        if let Some(known) = self.judged.iter().find(|known| known.id == id) {
            return match known.digest == digest && known.tool == tool {
                true => Ok(()),
                false => Err(Tampered(format!(
                    "two different calls came to the gate as {id}: {} and {tool}",
                    known.tool
                ))),
            };
        }
        if self.judged.len() >= MAX_JUDGED {
            self.judged.pop_front();
            self.missed = true;
        }
        self.judged.push_back(Judged {
            id: id.to_owned(),
            tool: tool.to_owned(),
            digest,
            denied: false,
        });
        Ok(())
    }

    /// The gate has denied this call.
    pub fn denied(&mut self, id: Option<&str>) {
        let is_it = |known: &&mut Judged| Some(known.id.as_str()) == id;
        if let Some(known) = self.judged.iter_mut().find(is_it) {
            known.denied = true;
        }
    }

    /// A call has run: it no longer waits, and it must be the one that was judged.
    pub fn ran(&mut self, id: Option<&str>, tool: &str, input: &Value) -> Result<(), Tampered> {
        let Some(id) = id else { return Ok(()) };
        let is_it = |open: &OpenAsk| open.id.as_deref() == Some(id);
        let unanswered = self
            .open
            .iter()
            .any(|open| is_it(open) && open.is_unanswered());
        self.keep_open(|open| !is_it(open));
        let place = self.judged.iter().position(|known| known.id == id);
        match place.and_then(|at| self.judged.remove(at)) {
            Some(known) if known.tool != tool => Err(Tampered(format!(
                "{tool} ran as {id}, but {} was judged",
                known.tool
            ))),
            Some(_) if is_plan_taken(tool, input) => Ok(()),
            Some(known) if known.digest != digest(&as_asked(tool, input)) => Err(Tampered(
                format!("{tool} ran with another input than the one that was judged ({id})"),
            )),
            Some(known) if known.denied => Err(Tampered(format!(
                "{tool} ran, though the gate has denied it ({id})"
            ))),
            _ if unanswered => Err(Tampered(format!(
                "{tool} ran, and nobody has answered the question about it ({id})"
            ))),
            Some(_) => Ok(()),
            None if self.missed => Ok(()),
            None => Err(Tampered(format!(
                "{tool} ran, and the gate was never asked ({id})"
            ))),
        }
    }

    pub fn open(&mut self, ask: OpenAsk) {
        if self.open.len() >= MAX_OPEN {
            self.open.remove(0);
        }
        self.open.push(ask);
        self.changes += 1;
    }

    fn keep_open(&mut self, stays: impl Fn(&OpenAsk) -> bool) {
        let before = self.open.len();
        self.open.retain(stays);
        self.changes += u64::from(self.open.len() < before);
    }

    /// Records the verdict of new rules on a waiting call.
    pub fn judged_again(&mut self, ask: &Ask, verdict: &Verdict) {
        for open in &mut self.open {
            if open.tool == ask.tool && open.input == ask.input && open.at == ask.at {
                open.now = Some(verdict.clone());
                self.changes += 1;
            }
        }
    }

    /// The call of the conversation itself that waits for a person. While there is one, Claude Code shows its dialog or that of
    /// another call: it is not idle, whatever the screen shows.
    pub fn unanswered(&self) -> Option<&OpenAsk> {
        self.all_unanswered().next()
    }

    pub fn all_unanswered(&self) -> impl Iterator<Item = &OpenAsk> {
        let waits = |open: &&OpenAsk| open.is_unanswered() && !open.by_agent;
        self.open.iter().filter(waits)
    }

    /// Records that Claude Code may soon draw a dialog.
    pub fn dialog_may_come(&mut self, now: Instant) {
        self.dialog_comes_until = Some(now + DIALOG_COMES);
    }

    /// The time by which an expected dialog has appeared, or never will.
    pub fn dialog_comes_until(&self) -> Option<Instant> {
        self.dialog_comes_until
    }

    pub fn progress(&mut self, now: Instant) {
        self.dialog_comes_until = self.dialog_comes_until.filter(|until| now < *until);
    }

    /// The call whose dialog Claude Code may draw at any moment, so that a key that is written now may answer it. It draws a
    /// dialog, possibly late, for each call that the gate answered with *ask* and for each question; for any other call at once
    /// or never.
    pub fn may_be_asked(&self) -> Option<&OpenAsk> {
        let asks = |open: &&OpenAsk| open.is_unanswered() || open.is_question();
        let soon = || {
            self.open
                .first()
                .filter(|_| self.dialog_comes_until.is_some())
        };
        self.open.iter().find(asks).or_else(soon)
    }

    /// Whether the dialog of an agent may appear over an idle input box. The end of an agent may go unnoticed, so this holds only
    /// for a moment.
    pub fn agent_may_ask(&self) -> bool {
        let asks = |open: &OpenAsk| open.by_agent && open.is_unanswered();
        self.dialog_comes_until.is_some() && self.open.iter().any(asks)
    }

    /// Records that the deciding key is pressed on this dialog, or was not pressed after all. If it is unknown which call the
    /// dialog asks about, this counts for all of them. A no to a call of the conversation itself ends the turn and its other
    /// calls.
    pub fn set_answered(&mut self, dialog: &Dialog, cwd: &Path, is_no: bool, answered: bool) {
        let call = self.asked_by(dialog, cwd).cloned();
        let concerns = |open: &OpenAsk| match &call {
            Some(call) => open == call || is_no && !call.by_agent && !open.by_agent,
            None => true,
        };
        for open in self.open.iter_mut().filter(|open| concerns(open)) {
            open.answered = answered;
        }
        self.changes += 1;
    }

    /// Keys were pressed, or the turn was interrupted, so any of the calls may be decided.
    pub fn all_answered(&mut self) {
        for open in self.open.iter_mut().filter(|open| !open.answered) {
            open.answered = true;
            self.changes += 1;
        }
    }

    /// How many calls wait for a person.
    pub fn count_open(&self) -> usize {
        self.open.iter().filter(|open| !open.allowed).count()
    }

    /// The turn is over: no call waits any more, except those of background agents.
    pub fn close_turn(&mut self) {
        self.keep_open(|open| open.by_agent);
        self.changes += u64::from(self.missed_may_wait);
        self.missed_may_wait = false;
    }

    /// A call was declined at its dialog. Claude Code calls no hook for that, and an agent's call would wait for ever.
    pub fn declined(&mut self, dialog: &Dialog) {
        let request = dialog.request.as_deref().filter(|id| !id.is_empty());
        if let Some(id) = request {
            self.keep_open(|open| open.id.as_deref() != Some(id));
        }
    }

    pub fn agents_ask(&self) -> bool {
        self.open.iter().any(|open| open.by_agent)
    }

    /// The call that a dialog asks about: the one whose mark it shows, otherwise the only one with the tool and the target of the
    /// dialog.
    pub fn asked_by(&self, dialog: &Dialog, cwd: &Path) -> Option<&OpenAsk> {
        let fits = |open: &&OpenAsk| match fit(open, dialog, cwd) {
            Fit::Same => true,
            // Nothing contradicts it, and no other call waits.
            Fit::Possible => !open.allowed && self.count_open() == 1,
            Fit::Other => false,
        };
        self.marked(dialog).or_else(|| {
            let mut fitting = self.open.iter().filter(fits);
            fitting.next().filter(|_| fitting.next().is_none())
        })
    }

    /// The call whose mark a dialog shows.
    fn marked(&self, dialog: &Dialog) -> Option<&OpenAsk> {
        let shown: String = dialog.text.chars().filter(|c| is_of_text(*c)).collect();
        self.open.iter().find(|open| {
            let mark = open.mark.as_ref();
            mark.is_some_and(|mark| shown.contains(&in_brackets(mark)))
        })
    }

    /// Whether a dialog can be about a call that the gate has seen and that has not run. `None` if the gate can't know.
    pub fn knows(&self, dialog: &Dialog, cwd: &Path) -> Option<Known> {
        match dialog.kind {
            // They appear before the session begins, and so before the gate.
            DialogKind::Trust | DialogKind::ApiKey => Some(Known::Not),
            _ if self.missed_may_wait => None,
            DialogKind::Permission => Some(self.knows_permission(dialog, cwd)),
            DialogKind::Question => Some(self.knows_question(dialog)),
            DialogKind::Plan => Some(self.knows_plan(dialog)),
            DialogKind::Other => None,
        }
    }

    /// The hook has the questions with all their labels. Claude Code asks them whatever the rules say.
    fn knows_question(&self, dialog: &Dialog) -> Known {
        // A call that was kept over a restart of the daemon may lack its input.
        let asks =
            |open: &OpenAsk| open.input.is_null() || questions::shows_one(&open.input, dialog);
        let mut calls = self.open.iter().filter(|open| open.tool == questions::TOOL);
        match calls.any(asks) {
            true => Known::Waits,
            false => Known::Not,
        }
    }

    fn knows_permission(&self, dialog: &Dialog, cwd: &Path) -> Known {
        let may_be = |open: &&OpenAsk| fit(open, dialog, cwd) != Fit::Other;
        let mut calls = match self.marked(dialog) {
            // A screen with too few rows is not compared in detail: the person sees the call itself.
            Some(open) => vec![open]
                .into_iter()
                .filter(|open| !dialog.complete || may_be(open))
                .collect(),
            None => self.open.iter().filter(may_be).collect::<Vec<_>>(),
        };
        calls.sort_by_key(|open| open.allowed);
        match calls.first() {
            None => Known::Not,
            Some(open) if open.allowed => Known::Allowed,
            Some(_) => Known::Waits,
        }
    }

    /// The hook has the plan with its whole text.
    fn knows_plan(&self, dialog: &Dialog) -> Known {
        let shown = |open: &OpenAsk| {
            let mark = open.mark.as_deref().map(in_brackets).unwrap_or_default();
            let reason = format!("missiond {mark}: {}", open.why);
            open.input.is_null() || plans::is_shown_by(&open.input, &reason, dialog)
        };
        let is_plan = |open: &&OpenAsk| plans::TOOLS.contains(&open.tool.as_str());
        match self.open.iter().filter(is_plan).any(shown) {
            true => Known::Waits,
            false => Known::Not,
        }
    }

    /// The calls that a dialog may be about; those that wait for a person come first.
    pub fn waiting(&self) -> Vec<&OpenAsk> {
        let mut waiting: Vec<&OpenAsk> = self.open.iter().collect();
        waiting.sort_by_key(|open| open.allowed);
        waiting
    }
}

/// A mark as it appears in the reason.
pub(super) fn in_brackets(mark: &str) -> String {
    format!("[{mark}]")
}

/// Whether a character belongs to the text, and not to the layout of the screen.
fn is_of_text(c: char) -> bool {
    !c.is_whitespace() && !('\u{2500}'..='\u{257f}').contains(&c)
}

fn digest(input: &Value) -> [u8; 32] {
    Sha256::digest(input.to_string()).into()
}

/// Whether this is the end of a plan in newer versions: the plan is in a file, Claude Code adds it to the input that the gate
/// gets, and reports the model's own input, which is empty, after the call. 2.1.325 changes the input of no other tool.
fn is_plan_taken(tool: &str, input: &Value) -> bool {
    tool == "ExitPlanMode" && input.as_object().is_some_and(serde_json::Map::is_empty)
}

/// The input as the gate got it. Claude Code adds a person's answers to the input of the tool that asked for them.
fn as_asked(tool: &str, input: &Value) -> Value {
    let mut input = input.clone();
    if tool == questions::TOOL
        && let Value::Object(keys) = &mut input
    {
        keys.remove("answers");
        keys.remove("annotations");
    }
    input
}

#[cfg(test)]
mod tests;
