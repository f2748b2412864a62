//! The tool calls that the gate has judged: which of them wait for a person, which of them the dialog on the
//! screen asks about, and whether what ran is what was judged.

mod fitting;
mod kept;

use crate::core::claude::questions;
use crate::core::claude::reading::{Dialog, DialogKind};
use crate::core::policy::{Ask, Decision, Verdict};
use fitting::{Fit, fit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Tool calls of one turn that may be asked about at once; parallel calls are a handful.
const MAX_OPEN: usize = 64;

/// Calls whose end is still to be heard of. Those that were denied have none, so old ones are forgotten.
const MAX_JUDGED: usize = 1024;

/// The characters of a mark: none that is taken for another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Long enough that nobody hits one by guessing, short enough to stay on one row of the screen.
const MARK_LENGTH: usize = 10;

/// Gives out marks: words that nobody can guess, also not from those before.
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

/// A tool call that a dialog may be about: the gate left it to a person, or allowed it, and Claude Code may still ask
/// by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenAsk {
    pub id: Option<String>,
    pub tool: String,
    pub input: Value,
    /// Where Claude Code's shell stood, if not in the slot's directory: paths are shown from there.
    pub at: Option<PathBuf>,
    pub why: String,
    pub allowed: bool,
    /// What stands in the reason that Claude Code was told, where it was told one.
    pub mark: Option<String>,
    /// An agent of Claude Code made it, which may go on when the turn is over.
    pub by_agent: bool,
    /// A key that decides was pressed on its dialog, by a person or for one.
    #[serde(default)]
    pub answered: bool,
    /// What the rules say of it by now, if they have changed since it was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Verdict>,
}

impl OpenAsk {
    /// Whether Claude Code was told to ask a person, and nobody has answered yet.
    fn is_unanswered(&self) -> bool {
        self.mark.is_some() && !self.answered
    }

    /// Why a person is asked: what the rules say, also of a dialog that is older than they are.
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
}

/// What the gate knows of the call that a dialog is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It has not come.
    Not,
    /// It was allowed: most of those run without a dialog.
    Allowed,
    /// It was left to a person.
    Waits,
}

/// What is wrong with a call that ran, or is about to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tampered(pub String);

/// The calls of one run of the program.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<OpenAsk>,
    /// How often `open` has changed.
    changes: u64,
    judged: VecDeque<Judged>,
    /// Others were judged before this daemon took the program up.
    missed: bool,
    /// One of those may still wait for a person.
    missed_may_wait: bool,
}

impl Calls {
    /// Notes what was judged. One id with two inputs: one of them is not Claude Code's.
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
        });
        Ok(())
    }

    /// A call has run: it waits for nobody any more, and it must be the one that was judged.
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

    /// The rules say this by now of a call that waits.
    pub fn judged_again(&mut self, ask: &Ask, verdict: &Verdict) {
        for open in &mut self.open {
            if open.tool == ask.tool && open.input == ask.input && open.at == ask.at {
                open.now = Some(verdict.clone());
                self.changes += 1;
            }
        }
    }

    /// The call of the conversation itself that waits for a person. While there is one, Claude Code shows its dialog, or
    /// that of another call: it is not at rest, whatever the screen shows.
    pub fn unanswered(&self) -> Option<&OpenAsk> {
        self.all_unanswered().next()
    }

    pub fn all_unanswered(&self) -> impl Iterator<Item = &OpenAsk> {
        let waits = |open: &&OpenAsk| open.is_unanswered() && !open.by_agent;
        self.open.iter().filter(waits)
    }

    /// A key that decides is pressed on this dialog, or was not pressed after all. If it can't be told which call the
    /// dialog asks about, this counts for all of them. A no to a call of the conversation itself ends the turn, and with
    /// it the calls beside it.
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

    /// Keys were pressed, or the turn was interrupted, so that any of the calls may be decided on.
    pub fn all_answered(&mut self) {
        for open in self.open.iter_mut().filter(|open| !open.answered) {
            open.answered = true;
            self.changes += 1;
        }
    }

    /// How many wait for a person.
    pub fn count_open(&self) -> usize {
        self.open.iter().filter(|open| !open.allowed).count()
    }

    /// The turn is over: nobody waits any more, but for agents in the background.
    pub fn close_turn(&mut self) {
        self.keep_open(|open| open.by_agent);
        self.changes += u64::from(self.missed_may_wait);
        self.missed_may_wait = false;
    }

    /// A call was declined at its dialog. Claude Code calls no hook for it, and an agent's call would wait for ever.
    pub fn declined(&mut self, dialog: &Dialog) {
        let request = dialog.request.as_deref().filter(|id| !id.is_empty());
        if let Some(id) = request {
            self.keep_open(|open| open.id.as_deref() != Some(id));
        }
    }

    pub fn agents_ask(&self) -> bool {
        self.open.iter().any(|open| open.by_agent)
    }

    /// The call that a dialog asks about: the one whose mark it shows, else the only one whose tool and target
    /// are those of the dialog.
    pub fn asked_by(&self, dialog: &Dialog, cwd: &Path) -> Option<&OpenAsk> {
        let fits = |open: &&OpenAsk| match fit(open, dialog, cwd) {
            Fit::Same => true,
            // Nothing speaks against it, and no other waits.
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

    /// Whether a dialog can be about a call that has come to the gate and has not run. `None` where the gate can't tell.
    pub fn knows(&self, dialog: &Dialog, cwd: &Path) -> Option<Known> {
        match dialog.kind {
            // They come before the session begins, and with it the gate.
            DialogKind::Trust | DialogKind::ApiKey => Some(Known::Not),
            _ if self.missed_may_wait => None,
            DialogKind::Permission => Some(self.knows_permission(dialog, cwd)),
            DialogKind::Question => Some(self.knows_question(dialog)),
            DialogKind::Plan => Some(self.knows_plan()),
            DialogKind::Other => None,
        }
    }

    /// The hook has the questions with all their labels. Whatever a rule says of the tool, Claude Code asks.
    fn knows_question(&self, dialog: &Dialog) -> Known {
        // A call that was kept over a restart of the daemon may be without its input.
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
            // What stands on a screen that is too low for it is not looked at closely: a person is shown the call.
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

    fn knows_plan(&self) -> Known {
        const TOOLS: [&str; 2] = ["ExitPlanMode", "EnterPlanMode"];
        match self
            .open
            .iter()
            .any(|open| TOOLS.contains(&open.tool.as_str()))
        {
            true => Known::Waits,
            false => Known::Not,
        }
    }

    /// The calls that a dialog may be about, those first that wait for a person.
    pub fn waiting(&self) -> Vec<&OpenAsk> {
        let mut waiting: Vec<&OpenAsk> = self.open.iter().collect();
        waiting.sort_by_key(|open| open.allowed);
        waiting
    }
}

/// A mark as the reason has it.
pub(super) fn in_brackets(mark: &str) -> String {
    format!("[{mark}]")
}

/// Whether a character belongs to the text, not to the way in which a screen sets it.
fn is_of_text(c: char) -> bool {
    !c.is_whitespace() && !('\u{2500}'..='\u{257f}').contains(&c)
}

fn digest(input: &Value) -> [u8; 32] {
    Sha256::digest(input.to_string()).into()
}

/// Whether this is the end of a plan as newer versions tell it: the plan stands in a file, Claude Code adds it to the input
/// that it shows to the gate, and leaves the model's own input, which is empty, when the call has run. 2.1.325 changes
/// the input of no other tool.
fn is_plan_taken(tool: &str, input: &Value) -> bool {
    tool == "ExitPlanMode" && input.as_object().is_some_and(serde_json::Map::is_empty)
}

/// The input as it came to the gate. A person's answers are put into the input of the tool that asked for them.
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
