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

/// What the hands are doing: at most one key sequence at a time.
#[derive(Debug)]
pub(super) enum Hands {
    Free,
    /// The text was pasted; Enter follows when it has stood in the input box for a moment.
    Pasting {
        message: Message,
        /// Since when it is seen there.
        seen: Option<Instant>,
        /// When the screen is drawn again.
        repaint: Option<Instant>,
        until: Instant,
    },
    /// Enter was pressed and the text is not yet gone from the input box.
    Submitting {
        message: Message,
        /// When Enter is pressed once more.
        again: Option<Instant>,
        until: Instant,
    },
    /// On the way to an option of a dialog.
    Choosing(Choosing),
    /// Our own draft, which an interrupt had put back, is being cleared.
    Clearing {
        until: Instant,
        /// It stood there still when a program that is not slow had cleared it.
        late: bool,
    },
    /// Esc was pressed; the turn is not yet over.
    Interrupting {
        wanted: Vec<Interruption>,
        effect: &'static str,
        until: Instant,
    },
}

#[derive(Debug)]
pub(super) struct Choosing {
    pub asker: Asker,
    /// The dialog as it was when the answer was decided on.
    pub asked: Box<Dialog>,
    pub pick: crate::core::claude::keys::Pick,
    /// What is picked in the same dialog after it.
    pub then: VecDeque<crate::core::claude::keys::Pick>,
    /// Several answers are given at once: the page that shows them is confirmed as well.
    pub submits: bool,
    pub label: String,
    pub reason: String,
    /// Told to Claude as a message once the dialog is declined.
    pub then_say: Option<String>,
    /// A no to a tool call, which ends the turn with no Stop hook.
    pub declines: bool,
    /// The dialog was not doubtful when this was chosen; else a person insisted.
    pub trusted: bool,
    /// The text was written; it is not written again.
    pub pasted: bool,
    pub steps: Steps,
}

/// How far the keys for one pick have come.
#[derive(Debug)]
pub(super) struct Steps {
    /// The key that decides was pressed.
    pub decided: bool,
    /// The marked row and the rows when a key that does not decide was pressed last.
    pub moved_from: Option<(Option<usize>, Vec<Choice>)>,
    /// Arrow keys so far; more than twice round the menu means that it does not obey.
    pub moves: usize,
    /// When an arrow key that moved nothing counts as lost.
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

/// Who wants an option chosen, and is told what came of it.
#[derive(Debug)]
pub(super) enum Asker {
    Rule,
    Person {
        token: Token,
        person: Person,
        /// The caller's id of the answer.
        id: Option<String>,
    },
    /// Those who interrupt: to them a no is as good as any other end.
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

    /// The person who wants it, if one does. Of those who interrupt it is the first.
    pub fn person(&self) -> Option<&Person> {
        match self {
            Asker::Rule => None,
            Asker::Person { person, .. } => Some(person),
            Asker::Interrupters(wanted) => wanted.first()?.by.person(),
        }
    }

    /// Whose verdict was written down before the first key. Of those who interrupt it is the first, if that is a person.
    pub fn decider(&self) -> Option<Decider> {
        match self {
            Asker::Rule => Some(Decider::Policy),
            Asker::Person { person, .. } => Some(Decider::Person(person.clone())),
            Asker::Interrupters(wanted) => wanted.first()?.by.decider(),
        }
    }
}

/// A message was taken, and its answer is not yet there.
#[derive(Debug)]
pub(super) struct Turn {
    pub token: Option<Token>,
    pub task: Option<String>,
    pub id: Option<String>,
    /// The message is a command of Claude Code.
    pub slash: bool,
    /// The message is for the model, which works on it: neither a command nor a shell line.
    pub is_prompt: bool,
    /// The screen has shown work on it.
    pub worked: bool,
    /// Since when the screen is idle and nothing else tells that the turn is over.
    pub unsure_since: Option<Instant>,
    pub began: Instant,
    pub over: Option<Over>,
    pub idle_since: Option<Instant>,
    pub looking: bool,
}

impl Turn {
    /// One that nobody waits for.
    pub fn new(began: Instant, slash: bool, is_prompt: bool) -> Turn {
        Turn {
            token: None,
            task: None,
            id: None,
            slash,
            is_prompt,
            worked: false,
            unsure_since: None,
            began,
            over: None,
            idle_since: None,
            looking: false,
        }
    }
}

/// Claude Code's own word that the turn is over.
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
    /// The rules have left it to a person, not a key that did not work: other rules may decide otherwise.
    pub by_rules: bool,
}

/// What is known of the dialog that is up, or of the last one.
#[derive(Debug, Default)]
pub(super) struct DialogFacts {
    /// The dialog as the screen has it, without what the gate knows of it.
    pub shown: Option<Dialog>,
    pub identity: Identity,
    /// Since when it stands there unchanged.
    pub since: Option<Instant>,
    pub drawings: Drawings,
    pub for_person: Option<ForPerson>,
    /// What `always` would do with the call that it asks about.
    pub always: Option<(Ask, Always)>,
    /// The program was made to draw its screen again for the view that is up.
    pub redrawn: bool,
    pub redrawn_at: Option<Instant>,
    /// The last dialog that keys were pressed on, by a rule or a person: once per dialog.
    pub answered: Option<String>,
    pub last_kind: Option<DialogKind>,
    pub by_hand: ByHand,
    /// Answers whose key was pressed and was not seen to work.
    pub late: Late,
}

/// Errors that the program shows or has ended a turn with.
#[derive(Debug, Default)]
pub(super) struct Errors {
    /// It goes on with a conversation and was not yet seen at work: what its screen says may be old.
    pub of_the_past: bool,
    /// The API error in which the last turn ended, as the transcript has it: the screen words some in its own way.
    pub failure: Option<String>,
    /// The error that was told last.
    pub told: Option<String>,
    /// For how long it has shown no sign of life, once that is too long.
    pub stalled: Option<Duration>,
}

/// Where the program comes from.
#[derive(Debug)]
pub(super) struct Origin {
    pub pid: u32,
    /// What it was started with.
    pub runs: Runs,
    /// Nobody knows whether the screens of this program read right.
    pub unrehearsed: bool,
}

/// The gate, and the calls that have come to it.
#[derive(Debug, Default)]
pub(super) struct GateFacts {
    /// SessionStart was heard: the gate holds.
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
    /// Answers of people that wait until the screen is drawn again.
    pub held: Vec<Held>,
    pub turn: Option<Turn>,
    pub own_text: Option<OwnText>,
    /// The first message was queued.
    pub prompted: bool,
    pub gate: GateFacts,
    pub modes: Modes,
    pub errors: Errors,
    /// Since when it has had nothing to do.
    pub rests_since: Option<Instant>,
    /// Those who can tell what the program is doing differ.
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

    /// The error that stands above the input box.
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

    pub fn task(&self) -> Option<&str> {
        let typing = match &self.hands {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. } => {
                message.task.as_deref()
            }
            _ => None,
        };
        typing.or_else(|| self.turn.as_ref()?.task.as_deref())
    }

    /// It never got past the question whether the folder is trusted.
    pub fn ended_at_trust(&self) -> bool {
        self.reached_idle.is_none() && self.asks.last_kind == Some(DialogKind::Trust)
    }

    /// Whether the screen as it is now could be named.
    pub fn is_certain(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| sight.certain)
    }

    /// Whether the program has yet to draw its screen for another size.
    pub fn is_redrawing(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| sight.redrawing)
    }

    /// Whether the screen shows the program at rest although a call waits for a person: its dialog may be painted over.
    pub fn hides_question(&self) -> bool {
        let rests = self.state() == State::Idle && self.dialog().is_none();
        rests && self.gate.calls.unanswered().is_some()
    }

    /// Whether other evidence contradicts a screen at rest, so that nothing is typed there and no turn ends by it.
    pub fn is_disputed(&self) -> bool {
        self.dispute.is_some() || self.hides_question()
    }

    pub fn hands_are_free(&self) -> bool {
        matches!(self.hands, Hands::Free)
    }

    /// The dialog that is up, once it has stood still long enough to act on.
    pub fn settled_dialog(&self, now: Instant) -> Option<&Dialog> {
        let since = self.asks.since?;
        (now.saturating_duration_since(since) >= SETTLED)
            .then(|| self.dialog())
            .flatten()
    }

    /// When a key may be pressed on the dialog that is up. A no is not put off by what is painted over it again and again.
    pub fn settles_at(&self, declines: bool) -> Option<Instant> {
        let settled = self.asks.since? + SETTLED;
        let Some(since) = self.asks.drawings.since().filter(|_| declines) else {
            return Some(settled);
        };
        let redrawn = self.asks.redrawn_at.map_or(since, |at| at + REDRAWN);
        Some(settled.min(since.max(redrawn) + SETTLED))
    }

    /// Whether a rule may look at the dialog as soon as it has settled: nobody disputes it for the moment.
    pub fn may_answer_soon(&self) -> bool {
        let disputed = self.dispute.as_ref().is_some_and(Dispute::may_pass);
        !self.is_dialog_dealt_with() && !disputed && self.typing.is_none()
    }

    /// Keys were pressed on it, or a person was told of it.
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

/// A dialog in a line: the tool and its target, or its text.
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

/// A call for a person: its tool and what it is about.
pub fn call_in_a_line(tool: &str, input: &Value) -> String {
    match target_of(input) {
        Some(target) => format!("{tool}: {target}"),
        None => tool.to_owned(),
    }
}

/// What a tool call is about, in a line.
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
