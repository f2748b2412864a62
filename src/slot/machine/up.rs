//! The facts of a running program.

use super::calls::Calls;
use super::doubt::{Dispute, MOMENT};
use super::held::Held;
use super::keyboard::{ByHand, Typing};
use super::modes::Modes;
use super::*;
use crate::control::protocol::Always;

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
    },
    /// Esc was pressed; the turn is not yet over.
    Interrupting {
        tokens: Vec<Token>,
        effect: &'static str,
        until: Instant,
    },
}

#[derive(Debug)]
pub(super) struct Choosing {
    pub asker: Asker,
    /// The dialog as it was when the answer was decided on.
    pub asked: Box<Dialog>,
    pub pick: crate::keys::Pick,
    /// What is picked in the same dialog after it.
    pub then: VecDeque<crate::keys::Pick>,
    /// Several answers are given at once: the page that shows them is confirmed as well.
    pub submits: bool,
    pub label: String,
    pub reason: String,
    /// Told to Claude as a message once the dialog is declined.
    pub then_say: Option<String>,
    /// A no to a tool call, which ends the turn with no Stop hook.
    pub declines: bool,
    /// The key that decides was pressed.
    pub decided: bool,
    /// The marked row and the rows when a key that does not decide was pressed last.
    pub moved_from: Option<(Option<usize>, Vec<Choice>)>,
    /// The text was written; it is not written again.
    pub pasted: bool,
    /// Arrow keys so far; more than twice round the menu means that it does not obey.
    pub moves: usize,
    /// When an arrow key that moved nothing counts as lost.
    pub again: Instant,
    pub until: Instant,
}

/// Who wants an option chosen, and is told what came of it.
#[derive(Debug)]
pub(super) enum Asker {
    Rule,
    Person {
        token: Token,
        uid: u32,
    },
    /// Those who interrupt: to them a no is as good as any other end.
    Interrupters(Vec<Token>),
}

impl Asker {
    pub fn tokens(&self) -> &[Token] {
        match self {
            Asker::Rule => &[],
            Asker::Person { token, .. } => std::slice::from_ref(token),
            Asker::Interrupters(tokens) => tokens,
        }
    }

    /// Whose verdict was written down before the first key. An interrupt is no verdict.
    pub fn decider(&self) -> Option<Decider> {
        match self {
            Asker::Rule => Some(Decider::Policy),
            Asker::Person { uid, .. } => Some(Decider::Person { uid: *uid }),
            Asker::Interrupters(_) => None,
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
    pub began: Instant,
    pub over: Option<Over>,
    pub idle_since: Option<Instant>,
    pub looking: bool,
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

#[derive(Debug)]
pub(super) struct Up {
    pub pid: u32,
    pub reached_idle: Option<Instant>,
    pub sight: Option<Sight>,
    /// The dialog as the screen has it, without what the gate knows of it.
    pub shown: Option<Dialog>,
    pub hands: Hands,
    /// Answers of people that wait until the screen is drawn again.
    pub held: Vec<Held>,
    pub turn: Option<Turn>,
    /// The message that was typed last, by this daemon or by one that has died. It may stand in the input box:
    /// Enter was withheld, or an interrupt has put it back.
    pub last_message: Option<String>,
    /// The first message was queued.
    pub prompted: bool,
    /// SessionStart was heard: the gate holds.
    pub gated: bool,
    /// It was started with the project's own settings.
    pub project_settings: bool,
    /// Nobody knows whether the screens of this program read right.
    pub unrehearsed: bool,
    pub calls: Calls,
    pub dialog_since: Option<Instant>,
    pub for_person: Option<ForPerson>,
    /// What `always` would do with the call that the dialog asks about.
    pub always: Option<(Ask, Always)>,
    /// The program was made to draw its screen again for the view that is up.
    pub redrawn: bool,
    pub redrawn_at: Option<Instant>,
    /// The last dialog that keys were pressed on, by a rule or a person: once per dialog.
    pub answered: Option<String>,
    pub last_dialog: Option<DialogKind>,
    pub modes: Modes,
    /// It goes on with a conversation and was not yet seen at work: what its screen says may be old.
    pub shows_the_past: bool,
    /// The API error in which the last turn ended, as the transcript has it: the screen words some in its own way.
    pub failure: Option<String>,
    /// The error that was told last.
    pub told_error: Option<String>,
    /// For how long it has shown no sign of life, once that is too long.
    pub stalled: Option<Duration>,
    /// Since when it has had nothing to do.
    pub rests_since: Option<Instant>,
    /// Those who can tell what the program is doing differ.
    pub dispute: Option<Dispute>,
    /// A person types at its terminal.
    pub typing: Option<Typing>,
    pub by_hand: ByHand,
}

impl Up {
    pub fn new(pid: u32, continues: bool) -> Up {
        Up {
            pid,
            reached_idle: None,
            sight: None,
            shown: None,
            hands: Hands::Free,
            held: Vec::new(),
            turn: None,
            last_message: None,
            prompted: continues,
            gated: false,
            project_settings: false,
            unrehearsed: false,
            calls: Calls::default(),
            dialog_since: None,
            for_person: None,
            always: None,
            redrawn: false,
            redrawn_at: None,
            answered: None,
            last_dialog: None,
            modes: Modes::default(),
            shows_the_past: continues,
            failure: None,
            told_error: None,
            stalled: None,
            rests_since: None,
            dispute: None,
            typing: None,
            by_hand: ByHand::default(),
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
            self.failure
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
        self.reached_idle.is_none() && self.last_dialog == Some(DialogKind::Trust)
    }

    /// Whether the screen as it is now could be named.
    pub fn is_certain(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| sight.certain)
    }

    /// Whether the program has yet to draw its screen for another size.
    pub fn is_redrawing(&self) -> bool {
        self.sight.as_ref().is_some_and(|sight| sight.redrawing)
    }

    pub fn hands_are_free(&self) -> bool {
        matches!(self.hands, Hands::Free)
    }

    /// The dialog that is up, once it has stood still long enough to act on.
    pub fn settled_dialog(&self, now: Instant) -> Option<&Dialog> {
        let since = self.dialog_since?;
        (now.saturating_duration_since(since) >= SETTLED)
            .then(|| self.dialog())
            .flatten()
    }

    /// The next instant at which something changes by itself.
    pub fn deadline(&self) -> Option<Instant> {
        let hands = match &self.hands {
            Hands::Free => None,
            Hands::Submitting { again, until, .. } => {
                Some(again.map_or(*until, |at| at.min(*until)))
            }
            Hands::Pasting {
                seen,
                repaint,
                until,
                ..
            } => {
                let enter = seen.map(|seen| seen + PASTE_SETTLES);
                [enter, *repaint, Some(*until)].into_iter().flatten().min()
            }
            Hands::Clearing { until } | Hands::Interrupting { until, .. } => Some(*until),
            Hands::Choosing(choosing) => Some(choosing.until),
        };
        // On a screen that is not certain nothing is due, however long the dialog has stood.
        let since = self.dialog_since.filter(|_| self.is_certain());
        let settle = match (&self.hands, since) {
            (Hands::Free, Some(since)) if self.may_answer_soon() => Some(since + SETTLED),
            (Hands::Choosing(choosing), Some(since)) if choosing.moves == 0 => {
                Some(since + SETTLED)
            }
            (Hands::Choosing(choosing), Some(_)) if !choosing.decided => Some(choosing.again),
            _ => None,
        };
        let turn = self.turn.as_ref().filter(|turn| !turn.looking);
        let idle = turn
            .and_then(|turn| turn.idle_since)
            .map(|since| since + IDLE_IS_OVER);
        let dispute = self.dispute.as_ref().filter(|dispute| !dispute.told);
        let doubt = dispute.map(|dispute| dispute.since + MOMENT);
        let typing = self.typing.as_ref().map(|typing| typing.until);
        let held = self.held.iter().map(|held| held.until).min();
        [hands, settle, idle, doubt, typing, held]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether a rule may look at the dialog as soon as it has settled: nobody disputes it for the moment.
    fn may_answer_soon(&self) -> bool {
        let disputed = self.dispute.as_ref().is_some_and(|dispute| !dispute.told);
        !self.is_dialog_dealt_with() && !disputed && self.typing.is_none()
    }

    /// Keys were pressed on it, or a person was told of it.
    pub fn is_dialog_dealt_with(&self) -> bool {
        let id = self.dialog().map(|dialog| dialog.id.as_str());
        id == self.answered.as_deref() || id == self.for_person.as_ref().map(|p| p.dialog.as_str())
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
        if let Some(quiet_for) = self.stalled {
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
    let text = KEYS
        .iter()
        .find_map(|key| input.get(key).and_then(Value::as_str))?;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let rest = lines.count();
    Some(if rest == 0 {
        first
    } else {
        format!("{first} (+{rest} lines)")
    })
}
