//! Who else can tell what Claude Code is doing, and whether they say what the screen says. Pure.
//!
//! The screen decides what is shown and where keys go. But whatever can write to the terminal can draw a
//! screen, a dialog too; what Claude Code notes of itself elsewhere it can't. So the others confirm, and
//! where one of them can't be right if the screen is, that is a doubt.

use super::read::is_moving_title;
use super::{Dialog, DialogKind, Observed, State};
use serde_json::Value;
use std::fmt;

/// What a slot may be doing, as far as a witness can tell: any of the three that are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct May {
    pub rest: bool,
    pub work: bool,
    /// Wait for the answer to a tool call, a question or a plan.
    pub ask: bool,
}

impl May {
    const REST: May = May::of(true, false, false);
    const WORK: May = May::of(false, true, false);
    const ASK: May = May::of(false, false, true);
    /// The witness does not know.
    const ANY: May = May::of(true, true, true);

    const fn of(rest: bool, work: bool, ask: bool) -> May {
        May { rest, work, ask }
    }

    fn agrees_with(self, other: May) -> bool {
        self.rest && other.rest || self.work && other.work || self.ask && other.ask
    }

    fn words(self) -> &'static str {
        match self {
            May::REST => "at rest",
            May::WORK => "at work",
            May::ASK => "waiting for an answer",
            May { rest: false, .. } => "not at rest",
            May { work: false, .. } => "not at work",
            May { ask: false, .. } => "not asking for it",
            _ => "unknown",
        }
    }
}

/// One that can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    pub name: &'static str,
    pub may: May,
    /// What it says, for a person.
    pub says: String,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.may {
            May::ANY => write!(f, "{}", self.says),
            may => write!(f, "{} — {}", self.says, may.words()),
        }
    }
}

/// What the witnesses say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weighed {
    Agreement,
    Doubt { why: String },
}

/// Holds the first witness against each of the others. Where somebody knows of the dialog that is up, no other doubts it
/// for being at work: some versions let the title's sign turn meanwhile, and note that they are busy.
pub fn weigh(witnesses: &[Witness]) -> Weighed {
    let Some((first, others)) = witnesses.split_first() else {
        return Weighed::Agreement;
    };
    let asks = first.may == May::ASK && others.iter().any(|other| other.may == May::ASK);
    let against = others
        .iter()
        .filter(|other| !asks || other.may != May::WORK)
        .find(|other| !other.may.agrees_with(first.may));
    match against {
        None => Weighed::Agreement,
        Some(other) => Weighed::Doubt {
            why: format!(
                "the {} shows it {}, but the {} has it {} ({})",
                first.name,
                first.may.words(),
                other.name,
                other.may.words(),
                other.says
            ),
        },
    }
}

/// What the screen shows.
pub fn screen(observed: &Observed) -> Witness {
    let dialog = observed.dialog.as_ref().map(|dialog| dialog.kind);
    let may = match (observed.state, dialog) {
        (_, Some(DialogKind::Permission | DialogKind::Question | DialogKind::Plan)) => May::ASK,
        // A view may be opened at any time, and the first dialogs come before any record.
        (_, Some(DialogKind::Trust | DialogKind::ApiKey | DialogKind::Other)) => May::ANY,
        (State::Idle, None) if observed.reading.background > 0 => May::of(true, true, false),
        (State::Idle, None) => May::REST,
        (State::Thinking | State::Responding | State::ToolRunning, None) => May::WORK,
        (State::Starting | State::Confirming | State::Error | State::Exited, None) => May::ANY,
    };
    let says = observed.reading.because.join("; ");
    let name = "screen";
    Witness { name, may, says }
}

/// The title: its sign turns while Claude Code works, and stands still at rest and at a dialog.
pub fn title(title: &str) -> Witness {
    let may = match title {
        _ if is_moving_title(title) => May::WORK,
        _ if title.starts_with('✳') => May::of(true, false, true),
        _ => May::ANY,
    };
    let says = format!("{title:?}");
    let name = "title";
    Witness { name, may, says }
}

/// Claude Code's record of the session, a file under its home that it rewrites at every change.
///
/// `began` is when the process began, in the kernel's own count: a record of an earlier process with the
/// same number says nothing.
pub fn record(json: &str, began: Option<&str>) -> Option<Witness> {
    let record: Value = serde_json::from_str(json).ok()?;
    let of_another = record["procStart"]
        .as_str()
        .zip(began)
        .is_some_and(|(noted, began)| noted != began);
    let status = record["status"].as_str().filter(|_| !of_another)?;
    let may = match status {
        // A shell in the background leaves the rest of it idle.
        "idle" | "shell" => May::REST,
        "busy" => May::WORK,
        "waiting" => May::ASK,
        _ => May::ANY,
    };
    let says = match record["waitingFor"].as_str() {
        Some(what) => format!("{status}: {what}"),
        None => status.to_owned(),
    };
    let name = "session record";
    Some(Witness { name, may, says })
}

/// The last hook. That a turn has ended is certain; that one goes on is not, since an interrupt calls no hook. An agent
/// in the background may still ask when the turn is over.
pub fn hook(ends_turn: bool, agents_ask: bool, says: String) -> Witness {
    let may = if ends_turn {
        May::of(true, true, agents_ask)
    } else {
        May::ANY
    };
    let name = "hook";
    Witness { name, may, says }
}

/// The gate, on a dialog about a call that it has left to a person.
pub fn gate_that_asked() -> Witness {
    of_gate(May::ASK, "the call was left to a person".to_owned())
}

/// The gate, on a screen at rest while a call waits for a person: its dialog has to be up, or that of another one.
pub fn gate_that_waits(call: &str) -> Witness {
    let says = format!("{call} was left to a person, and nobody has answered");
    of_gate(May::of(false, true, true), says)
}

/// The gate, on a dialog about a call that it has allowed: Claude Code may ask by itself, or the call may be running.
pub fn gate_that_allowed() -> Witness {
    of_gate(May::ANY, "the call was allowed".to_owned())
}

/// The gate, on a dialog about none of the calls that have come to it and have not run.
pub fn gate_without(waiting: &[String]) -> Witness {
    let says = match waiting {
        [] => "no call waits".to_owned(),
        waiting => format!("what waits is {}", waiting.join("; ")),
    };
    of_gate(NOT_THIS, says)
}

fn of_gate(may: May, says: String) -> Witness {
    let name = "gate";
    Witness { name, may, says }
}

/// Whatever it does, it does not wait for the answer to this.
const NOT_THIS: May = May::of(true, true, false);

/// The transcript, on a permission dialog: the calls without a result, by tool and input. A row of a real dialog may
/// be painted over, or all of it be painted. Of several calls it can't be told which one is asked about, and those of a
/// subagent stand elsewhere: both are for a person.
pub fn transcript(dialog: &Dialog, open: &[(&str, &Value)]) -> Option<Witness> {
    if dialog.kind != DialogKind::Permission {
        return None;
    }
    let shown = dialog.input.as_ref().and_then(|input| input.get("command"));
    let same = |(tool, input): &(&str, &Value)| {
        let command = shown.is_none_or(|shown| squeezed(shown) == squeezed(&input["command"]));
        dialog.tool.as_deref() == Some(*tool) && command
    };
    let may = match !open.is_empty() && open.iter().all(same) {
        true => May::ANY,
        false => NOT_THIS,
    };
    let tools: Vec<&str> = open.iter().map(|(tool, _)| *tool).collect();
    let says = format!("calls without a result: [{}]", tools.join(", "));
    let name = "transcript";
    Some(Witness { name, may, says })
}

/// Without the blanks, which are moved where a row is wrapped.
fn squeezed(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default();
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claude::reading::{Observer, Seen};

    fn on_screen(state: State, dialog: Option<DialogKind>) -> Witness {
        let mut observed = Observer::new().observed().clone();
        observed.state = state;
        observed.reading.seen = Seen::Unknown;
        observed.dialog = dialog.map(a_dialog);
        screen(&observed)
    }

    fn a_dialog(kind: DialogKind) -> Dialog {
        Dialog::new("d", kind)
    }

    #[test]
    fn a_dialog_about_another_call_than_the_one_that_waits_is_doubtful() {
        let asked = || on_screen(State::Confirming, Some(DialogKind::Permission));
        let input = |command: &str| serde_json::json!({ "command": command });
        let dialog = Dialog {
            tool: Some("Bash".to_owned()),
            input: input("rm -rf p").as_object().cloned(),
            ..a_dialog(DialogKind::Permission)
        };
        let (shown, other) = (input("rm  -rf p"), input("touch p"));
        let heard = |open: &[(&str, &Value)]| transcript(&dialog, open).expect("a witness");
        assert!(!doubt(&[asked(), heard(&[("Bash", &shown)])]));
        assert!(doubt(&[asked(), heard(&[("Bash", &other)])]));
        assert!(doubt(&[asked(), heard(&[("Write", &shown)])]));
        assert!(doubt(&[
            asked(),
            heard(&[("Bash", &other), ("Bash", &shown)])
        ]));
        assert!(doubt(&[asked(), heard(&[])]), "nobody has asked");
    }

    fn noted(status: &str) -> Witness {
        record(
            &format!(r#"{{"status": "{status}", "procStart": "7"}}"#),
            Some("7"),
        )
        .expect("a witness")
    }

    fn doubt(witnesses: &[Witness]) -> bool {
        weigh(witnesses) != Weighed::Agreement
    }

    #[test]
    fn a_dialog_that_claude_code_knows_nothing_of_is_doubtful() {
        let asked = || on_screen(State::Confirming, Some(DialogKind::Permission));
        assert!(!doubt(&[asked(), noted("waiting"), title("✳ Claude Code")]));
        assert!(doubt(&[asked(), noted("idle")]));
        assert!(doubt(&[asked(), noted("busy")]));
        assert!(doubt(&[asked(), title("◐ Claude Code")]));
        assert!(doubt(&[asked(), hook(true, false, String::new())]));
        assert!(!doubt(&[asked(), hook(true, true, String::new())]));
        assert!(!doubt(&[asked(), hook(false, false, String::new())]));
    }

    #[test]
    fn a_dialog_that_never_came_to_the_gate_is_doubtful() {
        let asked = || on_screen(State::Confirming, Some(DialogKind::Permission));
        let other = ["Bash: make".to_owned()];
        assert!(!doubt(&[asked(), gate_that_asked()]));
        assert!(doubt(&[asked(), gate_without(&other)]));
        assert!(doubt(&[asked(), gate_without(&[]), noted("waiting")]));
    }

    #[test]
    fn being_at_work_is_no_doubt_where_somebody_knows_of_the_dialog() {
        let asked = || on_screen(State::Confirming, Some(DialogKind::Permission));
        let turns = || title("◐ Claude Code");
        assert!(!doubt(&[
            asked(),
            gate_that_asked(),
            turns(),
            noted("busy")
        ]));
        assert!(!doubt(&[asked(), turns(), noted("waiting")]));
        assert!(doubt(&[asked(), gate_that_asked(), turns(), noted("idle")]));
        assert!(doubt(&[asked(), gate_that_allowed(), noted("busy")]));
        let idle = on_screen(State::Idle, None);
        assert!(doubt(&[idle, turns(), noted("idle")]));
    }

    #[test]
    fn an_input_box_while_claude_code_waits_is_doubtful() {
        assert!(doubt(&[on_screen(State::Idle, None), noted("waiting")]));
        assert!(!doubt(&[on_screen(State::Idle, None), noted("shell")]));
        assert!(doubt(&[on_screen(State::Thinking, None), noted("idle")]));
    }

    #[test]
    fn a_view_may_be_open_at_any_time() {
        let menu = || on_screen(State::Confirming, Some(DialogKind::Other));
        for status in ["idle", "busy", "waiting", "something new"] {
            assert!(!doubt(&[menu(), noted(status)]), "{status}");
        }
    }

    #[test]
    fn a_doubt_names_both_sides() {
        let screen = on_screen(State::Confirming, Some(DialogKind::Plan));
        let Weighed::Doubt { why } = weigh(&[screen, noted("idle")]) else {
            panic!("no doubt");
        };
        assert_eq!(
            why,
            "the screen shows it waiting for an answer, but the session record has it at rest (idle)"
        );
    }

    #[test]
    fn the_record_of_another_process_says_nothing() {
        let json = r#"{"status": "idle", "procStart": "7"}"#;
        assert_eq!(record(json, Some("8")), None);
        assert!(record(json, None).is_some());
        assert_eq!(record("{}", None), None);
        assert_eq!(record("half a li", None), None);
    }
}
