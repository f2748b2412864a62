//! The facts of a running program.

use super::calls::Calls;
use super::doubt::Dispute;
use super::drawings::Drawings;
use super::held::Held;
use super::identity::Identity;
use super::keyboard::{ByHand, Typing};
use super::late::Late;
use super::modes::Modes;
use super::own_text::OwnText;
use super::*;
use crate::core::claude::questions;
use crate::core::model::Always;

/// The current key sequence: at most one at a time.
#[derive(Debug)]
pub(super) enum Hands {
    Free,
    /// The text was pasted; Enter follows when it has been in the input box for a moment.
    Pasting {
        message: Message,
        /// Since when it is visible there.
        seen: Option<Instant>,
        /// When the screen is redrawn.
        repaint: Option<Instant>,
        until: Instant,
    },
    /// Enter was pressed and the text is still in the input box.
    Submitting {
        message: Message,
        /// When Enter is pressed again.
        again: Option<Instant>,
        until: Instant,
    },
    /// On the way to an option of a dialog.
    Choosing(Choosing),
    /// missiond's own draft, which an interrupt has put back, is being cleared.
    Clearing {
        until: Instant,
        /// It was still there when a normal program would have cleared it.
        late: bool,
    },
    /// Esc was pressed; the turn is not over yet.
    Interrupting {
        wanted: Vec<Interruption>,
        effect: &'static str,
        until: Instant,
    },
}

#[derive(Debug)]
pub(super) struct Choosing {
    pub asker: Asker,
    /// The dialog when the answer was decided.
    pub asked: Box<Dialog>,
    pub pick: crate::core::claude::keys::Pick,
    /// The further picks in the same dialog.
    pub then: VecDeque<crate::core::claude::keys::Pick>,
    /// Several answers are given at once: the review page is confirmed as well.
    pub submits: bool,
    pub label: String,
    pub reason: String,
    /// A message for Claude after the dialog is declined.
    pub then_say: Option<String>,
    /// A no to a tool call, which ends the turn without a Stop hook.
    pub declines: bool,
    /// The dialog was not in doubt when this was chosen; otherwise a person insisted.
    pub trusted: bool,
    /// The text was written; it is not written again.
    pub pasted: bool,
    pub steps: Steps,
}

/// The progress of the keys for one pick.
#[derive(Debug)]
pub(super) struct Steps {
    /// The deciding key was pressed.
    pub decided: bool,
    /// The marked row and all rows when the last key that does not decide was pressed.
    pub moved_from: Option<(Option<usize>, Vec<Choice>)>,
    /// Arrow keys so far; more than twice round the menu means that it does not respond.
    pub moves: usize,
    /// When an arrow key without effect counts as lost.
    pub again: Instant,
    pub until: Instant,
}

impl Steps {
    /// No key was pressed yet.
    pub fn none(until: Instant) -> Steps {
        Steps {
            decided: false,
            moved_from: None,
            moves: 0,
            again: until,
            until,
        }
    }
}

/// Who wants an option chosen, and gets the result.
#[derive(Debug)]
pub(super) enum Asker {
    Rule,
    Person {
        token: Token,
        person: Person,
        /// The caller's id of the answer.
        id: Option<String>,
    },
    /// The clients that interrupt: for them a no is as good as any other end.
    Interrupters(Vec<Interruption>),
}

impl Asker {
    pub fn tokens(&self) -> Vec<Token> {
        match self {
            Asker::Rule => Vec::new(),
            Asker::Person { token, .. } => vec![*token],
            Asker::Interrupters(wanted) => wanted.iter().map(|one| one.token).collect(),
        }
    }

    /// The person who wants it, if there is one; the first of several who interrupt.
    pub fn person(&self) -> Option<&Person> {
        match self {
            Asker::Rule => None,
            Asker::Person { person, .. } => Some(person),
            Asker::Interrupters(wanted) => wanted.first()?.by.person(),
        }
    }

    /// Whose verdict was recorded before the first key. For interrupts it is the first one, if that is a person.
    pub fn decider(&self) -> Option<Decider> {
        match self {
            Asker::Rule => Some(Decider::Policy),
            Asker::Person { person, .. } => Some(Decider::Person(person.clone())),
            Asker::Interrupters(wanted) => wanted.first()?.by.decider(),
        }
    }
}

/// A message was accepted, and its answer is not there yet.
#[derive(Debug)]
pub(super) struct OpenTurn {
    pub token: Option<Token>,
    pub task: Option<String>,
    pub id: Option<String>,
    /// The message is a command of Claude Code.
    pub slash: bool,
    /// The message is for the model: neither a command nor a shell line.
    pub is_prompt: bool,
    /// The screen has shown work on it.
    pub worked: bool,
    /// Since when the screen is idle without other evidence that the turn is over.
    pub unsure_since: Option<Instant>,
    pub began: Instant,
    pub over: Option<Over>,
    pub idle_since: Option<Instant>,
    pub looking: bool,
}

impl OpenTurn {
    /// The turn of this message; nobody waits for it.
    pub fn of(message: &Message, began: Instant) -> OpenTurn {
        OpenTurn {
            token: None,
            task: message.task.clone(),
            id: message.id.clone(),
            slash: message.slash,
            is_prompt: message.is_prompt(),
            worked: false,
            unsure_since: None,
            began,
            over: None,
            idle_since: None,
            looking: false,
        }
    }
}

/// Claude Code's own report that the turn is over.
#[derive(Debug, Clone)]
pub(super) struct Over {
    pub text: Option<String>,
    pub failure: Option<String>,
}

impl Over {
    pub fn interrupted() -> Over {
        Over {
            text: None,
            failure: Some(transcript::INTERRUPTED.to_owned()),
        }
    }
}

/// A dialog that waits for a person, and why.
#[derive(Debug)]
pub(super) struct ForPerson {
    pub dialog: String,
    pub why: String,
    /// The rules have left it to a person, and no key has failed: other rules may decide otherwise.
    pub by_rules: bool,
}

/// What is known about the current dialog, or the last one.
#[derive(Debug, Default)]
pub(super) struct DialogFacts {
    /// The dialog as the screen has it, without the gate's knowledge.
    pub shown: Option<Dialog>,
    pub identity: Identity,
    /// Since when it is unchanged.
    pub since: Option<Instant>,
    pub drawings: Drawings,
    pub for_person: Option<ForPerson>,
    /// What `always` would do with the call that it asks about.
    pub always: Option<(Ask, Always)>,
    /// The program has already redrawn its screen for the current view.
    pub redrawn: bool,
    pub redrawn_at: Option<Instant>,
    /// The last dialog that a rule or a person pressed keys on: once per dialog.
    pub answered: Option<String>,
    pub last_kind: Option<DialogKind>,
    pub by_hand: ByHand,
    /// Answers whose key was pressed without a visible effect.
    pub late: Late,
}

/// Errors that the program shows or that have ended a turn.
#[derive(Debug, Default)]
pub(super) struct Errors {
    /// It resumes a conversation and was not seen at work yet: the text on its screen may be old.
    pub of_the_past: bool,
    /// The API error that ended the last turn, from the transcript: the screen has another wording for some.
    pub failure: Option<String>,
    /// The error that was reported last.
    pub told: Option<String>,
    /// How long it has shown no sign of life, once that is too long.
    pub stalled: Option<Duration>,
}

/// The origin of the program.
#[derive(Debug)]
pub(super) struct Origin {
    pub pid: u32,
    /// The settings of its start.
    pub runs: Runs,
    /// It is unknown whether the screens of this program are read correctly.
    pub unrehearsed: bool,
}

/// The gate, and the calls that it has seen.
#[derive(Debug, Default)]
pub(super) struct GateFacts {
    /// SessionStart arrived: the gate works.
    pub heard: bool,
    pub calls: Calls,
}

#[derive(Debug)]
pub(super) struct Up {
    pub origin: Origin,
    pub reached_idle: Option<Instant>,
    pub sight: Option<Observation>,
    pub asks: DialogFacts,
    pub hands: Hands,
    /// People's answers that wait until the screen is redrawn.
    pub held: Vec<Held>,
    pub turn: Option<OpenTurn>,
    pub own_text: Option<OwnText>,
    /// The first message was queued.
    pub prompted: bool,
    pub gate: GateFacts,
    pub modes: Modes,
    pub errors: Errors,
    /// Since when it is idle.
    pub rests_since: Option<Instant>,
    /// The witnesses differ about what the program is doing.
    pub dispute: Option<Dispute>,
    /// A person types at its terminal.
    pub typing: Option<Typing>,
}

impl Up {
    pub fn new(pid: u32, continues: bool, runs: Runs) -> Up {
        Up {
            origin: Origin {
                pid,
                runs,
                unrehearsed: false,
            },
            reached_idle: None,
            sight: None,
            asks: DialogFacts::default(),
            hands: Hands::Free,
            held: Vec::new(),
            turn: None,
            own_text: None,
            prompted: continues,
            gate: GateFacts::default(),
            modes: Modes::default(),
            errors: Errors {
                of_the_past: continues,
                ..Errors::default()
            },
            rests_since: None,
            dispute: None,
            typing: None,
        }
    }

    pub fn state(&self) -> State {
        self.sight
            .as_ref()
            .map_or(State::Starting, |sight| sight.state)
    }

    pub fn dialog(&self) -> Option<&Dialog> {
        self.sight.as_ref().and_then(|sight| sight.dialog.as_ref())
    }

    pub fn composer(&self) -> Option<&Composer> {
        self.sight
            .as_ref()
            .and_then(|sight| sight.composer.as_ref())
    }

    /// The error above the input box.
    pub fn last_error(&self) -> Option<String> {
        let shown = self
            .sight
            .as_ref()
            .and_then(|sight| sight.last_error.as_ref());
        let failed = || {
            self.errors
                .failure
                .as_ref()
                .filter(|_| self.state() == State::Idle)
        };
        shown.or_else(failed).cloned()
    }

    /// The messages that are being typed or worked on.
    pub fn unanswered(&self) -> usize {
        let typing = matches!(self.hands, Hands::Pasting { .. } | Hands::Submitting { .. });
        usize::from(typing) + usize::from(self.turn.is_some())
    }

    pub fn task(&self) -> Option<&str> {
        let typing = match &self.hands {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. } => {
                message.task.as_deref()
            }
            _ => None,
        };
        typing.or_else(|| self.turn.as_ref()?.task.as_deref())
    }

    /// It never got past the question whether to trust the folder.
    pub fn ended_at_trust(&self) -> bool {
        self.reached_idle.is_none() && self.asks.last_kind == Some(DialogKind::Trust)
    }

    /// Whether the current screen was recognised.
    pub fn is_certain(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| sight.certain)
    }

    /// Whether the program has not redrawn its screen for a new size yet.
    pub fn is_redrawing(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| sight.redrawing)
    }

    /// Whether the screen shows an idle program although a call waits for a person: its dialog may be painted over.
    pub fn hides_question(&self) -> bool {
        let rests = self.state() == State::Idle && self.dialog().is_none();
        rests && self.gate.calls.unanswered().is_some()
    }

    /// Whether other evidence contradicts an idle screen, so that nothing is typed there and it does not end a turn.
    pub fn is_disputed(&self) -> bool {
        self.dispute.is_some() || self.hides_question()
    }

    pub fn hands_are_free(&self) -> bool {
        matches!(self.hands, Hands::Free)
    }

    /// The current dialog, once it is stable long enough to act on.
    pub fn settled_dialog(&self, now: Instant) -> Option<&Dialog> {
        let since = self.asks.since?;
        (now.saturating_duration_since(since) >= SETTLED)
            .then(|| self.dialog())
            .flatten()
    }

    /// When a key may be pressed on the current dialog. Repeated painting does not delay a no.
    pub fn settles_at(&self, declines: bool) -> Option<Instant> {
        let settled = self.asks.since? + SETTLED;
        let Some(since) = self.asks.drawings.since().filter(|_| declines) else {
            return Some(settled);
        };
        let redrawn = self.asks.redrawn_at.map_or(since, |at| at + REDRAWN);
        Some(settled.min(since.max(redrawn) + SETTLED))
    }

    /// Whether a rule may judge the dialog as soon as it has settled: nothing contradicts it at the moment.
    pub fn may_answer_soon(&self) -> bool {
        let disputed = self.dispute.as_ref().is_some_and(Dispute::may_pass);
        !self.is_dialog_dealt_with() && !disputed && self.typing.is_none()
    }

    /// Keys were pressed on it, or a person was alerted.
    pub fn is_dialog_dealt_with(&self) -> bool {
        let id = self.dialog().map(|dialog| dialog.id.as_str());
        id == self.asks.answered.as_deref()
            || id == self.asks.for_person.as_ref().map(|p| p.dialog.as_str())
    }

    pub fn doing(&self) -> Option<String> {
        if let Some(Typing { uid, .. }) = &self.typing {
            let about = self.dialog().map(|dialog| format!("{}; ", about(dialog)));
            let about = about.unwrap_or_default();
            return Some(format!(
                "{about}a person types (uid {uid}); answers by rule and messages wait"
            ));
        }
        if let Some(dialog) = self.dialog() {
            return Some(about(dialog));
        }
        if let Some(quiet_for) = self.errors.stalled {
            return Some(limits::no_sign_of_life(quiet_for));
        }
        match &self.hands {
            Hands::Pasting { .. } | Hands::Submitting { .. } => Some("taking a message".to_owned()),
            Hands::Interrupting { .. } => Some("being interrupted".to_owned()),
            Hands::Choosing(_) | Hands::Clearing { .. } | Hands::Free => None,
        }
    }
}

/// A dialog in one line: the tool and its target, or its text.
pub fn about(dialog: &Dialog) -> String {
    let target = dialog
        .input
        .as_ref()
        .and_then(|input| target_of(&Value::Object(input.clone())));
    let first = || {
        dialog
            .text
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("a dialog")
    };
    match (&dialog.tool, target) {
        (Some(tool), Some(target)) => format!("{tool}: {target}"),
        (Some(tool), None) => tool.clone(),
        (None, Some(target)) => target,
        (None, None) => first().trim().to_owned(),
    }
}

/// A call in one line for a person: its tool and its target.
pub fn call_in_a_line(tool: &str, input: &Value) -> String {
    match target_of(input) {
        Some(target) => format!("{tool}: {target}"),
        None => tool.to_owned(),
    }
}

/// The target of a tool call, in one line.
pub fn target_of(input: &Value) -> Option<String> {
    const KEYS: [&str; 9] = [
        "command",
        "file_path",
        "notebook_path",
        "url",
        "question",
        "pattern",
        "path",
        "query",
        "description",
    ];
    let question = || Some(questions::of(input).first()?.text);
    let text = KEYS
        .iter()
        .find_map(|key| input.get(key).and_then(Value::as_str))
        .or_else(question)?;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let rest = lines.count();
    Some(if rest == 0 {
        first
    } else {
        format!("{first} (+{rest} lines)")
    })
}
