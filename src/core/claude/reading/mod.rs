//! What a screen means: the only place that knows what Claude Code looks like. Pure and total; what it
//! can't name is [`Seen::Unknown`], never a guess.

mod activity;
mod answer;
mod called;
mod composer;
mod dialog;
mod footer;
mod observer;
mod options;
mod page;
mod permission;
mod read;
mod replay;
mod same;
mod stream;
#[cfg(test)]
mod tests;
mod values;
pub mod witness;

pub use answer::answer_to;
#[cfg(test)]
pub(crate) use observer::PATIENCES;
pub use observer::{Observed, Observer};
pub use read::read;
pub use replay::{LAST_STANDS, StateChange, replay};
pub use stream::{Stream, being_written};

use super::vocabulary::TALK_INSTEAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The public state of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Starting,
    Idle,
    Thinking,
    Responding,
    ToolRunning,
    Confirming,
    Error,
    Exited,
}

impl State {
    pub const ALL: [State; 8] = [
        State::Starting,
        State::Idle,
        State::Thinking,
        State::Responding,
        State::ToolRunning,
        State::Confirming,
        State::Error,
        State::Exited,
    ];

    /// The word that users see and JSON has.
    pub fn name(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Idle => "idle",
            State::Thinking => "thinking",
            State::Responding => "responding",
            State::ToolRunning => "tool_running",
            State::Confirming => "confirming",
            State::Error => "error",
            State::Exited => "exited",
        }
    }
}

/// What one screen shows by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub seen: Seen,
    /// The input box, where one is drawn.
    pub composer: Option<Composer>,
    /// The permission mode that the footer names, in Claude Code's own word (`manual`, `auto`, `plan`, …).
    pub mode: Option<String>,
    /// An API error shown above a working input box.
    pub last_error: Option<String>,
    /// Background agents or shells that the footer counts.
    pub background: u32,
    /// What the lines around the input box say of the conversation.
    pub notices: Notices,
    /// Why it was read so, in words, for `missiond why`.
    pub because: Vec<String>,
}

impl Reading {
    /// Nothing on this screen counts, for this reason.
    fn make_unknown(&mut self, because: &str) {
        self.seen = Seen::Unknown;
        self.composer = None;
        self.because = vec![because.to_owned()];
    }
}

/// What Claude Code says of the conversation beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notices {
    /// Percent of the context that are left, where it says so.
    pub context_left: Option<u32>,
    /// The conversation is being made shorter.
    pub compacting: bool,
    pub login: Option<Login>,
}

/// What is wrong with the login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    Missing,
    Expired,
    Refused,
}

impl Login {
    pub fn name(self) -> &'static str {
        match self {
            Login::Missing => "missing",
            Login::Expired => "expired",
            Login::Refused => "refused",
        }
    }

    /// From a line of the footer, or an error that ended a turn or for which a request is tried again.
    pub fn read(text: &str) -> Option<Login> {
        let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
        match () {
            () if says(&[
                "Login expired",
                "token has expired",
                "token expired",
                "session expired",
            ]) =>
            {
                Some(Login::Expired)
            }
            () if says(&["Not logged in"]) => Some(Login::Missing),
            () if says(&["Invalid API key", "Please run /login", "API Error: 401"])
                || text.starts_with("401 ") =>
            {
                Some(Login::Refused)
            }
            () => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Nothing that is known: no key may be pressed here.
    Unknown,
    Starting,
    Idle,
    Thinking,
    Responding,
    ToolRunning,
    /// A dialog, menu or view that takes the keys.
    Dialog(Dialog),
    Exited,
}

/// The input box.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Composer {
    /// What a person or missiond has typed into it, wrapped rows joined; a placeholder hint is not a draft.
    pub draft: String,
    /// Whether a menu (slash commands, files) is open beside it: Enter would pick from the menu.
    pub menu: bool,
}

impl Composer {
    /// Whether a text that was pasted has arrived: it stands there, as far as a screen can show it, or
    /// the placeholder that Claude Code puts in the place of a long one.
    pub fn holds(&self, text: &str) -> bool {
        let shown: Vec<char> = self.draft.chars().filter(is_shown).collect();
        let sent: Vec<char> = text.chars().filter(is_shown).collect();
        if let Some(breaks) = pasted_line_breaks(&self.draft).filter(|_| shown != sent) {
            let end = text.trim_end_matches('\n');
            return [text, end]
                .iter()
                .any(|text| text.matches('\n').count() == breaks);
        }
        shown == sent || shown.len() >= ENOUGH_OF_A_TAIL && sent.ends_with(&shown)
    }
}

/// A low box scrolls, and shows the end of a long text only. The end comes last, so it proves the rest;
/// this many characters of it can't be there by chance.
const ENOUGH_OF_A_TAIL: usize = 100;

/// The number of line breaks that `[Pasted text #1 +7 lines]` stands for; `[Pasted text #1]` has none.
fn pasted_line_breaks(draft: &str) -> Option<usize> {
    let inner = draft.strip_prefix("[Pasted text #")?.strip_suffix(']')?;
    match inner.split_once(" +") {
        Some((_, lines)) => lines.strip_suffix(" lines")?.parse().ok(),
        None => inner.parse::<u32>().ok().map(|_| 0),
    }
}

/// Whether a character can be expected on the screen as it was written: blanks are moved by wrapping,
/// and what joins or styles the signs beside it may be left out.
pub fn is_shown(c: &char) -> bool {
    let joined = matches!(c, '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..);
    !c.is_whitespace() && !c.is_control() && !joined
}

/// A confirmation prompt, question, menu or view that holds the keyboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Dialog {
    /// Stable while the same dialog is up, different for the next one even if it looks the same.
    pub id: String,
    pub kind: DialogKind,
    pub tool: Option<String>,
    /// What the screen shows of the tool's input: `command`, `file_path`, `url`, `question`, …
    pub input: Option<Map<String, Value>>,
    /// What the person sees.
    pub text: String,
    pub options: Vec<Choice>,
    /// Index into `options` of the row that Enter would choose.
    pub selected: Option<usize>,
    /// False where the screen shows only a part of it.
    pub complete: bool,
    /// Its command stands in several rows. Between two of them a line may end or only be wrapped: where a comment
    /// ends is then not certain.
    #[serde(skip)]
    pub several_rows: bool,
    #[serde(skip)]
    pub digits: Digits,
    /// The tool call that it asks about, by Claude Code's own id, once that is certain; then `input` is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// What a digit key does in a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Digits {
    /// Picks the option of that number at once.
    #[default]
    Pick,
    /// Only moves the marked row: the choices have previews beside them.
    Move,
    /// Is written into the text field of the selected option, which has the cursor.
    Write,
}

impl Dialog {
    /// A dialog with no text and no choices, all of which is on the screen.
    pub fn new(id: &str, kind: DialogKind) -> Dialog {
        Dialog {
            id: id.to_owned(),
            kind,
            tool: None,
            input: None,
            text: String::new(),
            options: Vec::new(),
            selected: None,
            complete: true,
            several_rows: false,
            digits: Digits::default(),
            request: None,
        }
    }

    /// The index of the line into which an answer of one's own can be written: the last of a question's
    /// choices. Its label is what was written so far.
    pub fn free_line(&self) -> Option<usize> {
        let is_choice = |choice: &Choice| choice.number.is_some() && choice.label != TALK_INSTEAD;
        (self.kind == DialogKind::Question)
            .then(|| self.options.iter().rposition(is_choice))
            .flatten()
    }

    /// Whether the other dialog asks about the same call: what is written into an option changes how a dialog reads,
    /// and not what it asks. Where Claude Code has named both calls, the names decide.
    pub fn asks_the_same(&self, other: &Dialog) -> bool {
        fn name(dialog: &Dialog) -> Option<&str> {
            dialog.request.as_deref().filter(|id| !id.is_empty())
        }
        let of_a_call = matches!(self.kind, DialogKind::Permission | DialogKind::Plan);
        let shown = (&self.tool, &self.input) == (&other.tool, &other.input);
        let named = name(self).zip(name(other));
        of_a_call && self.kind == other.kind && named.map_or(shown, |(one, two)| one == two)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Choice {
    pub label: String,
    /// The digit key that picks it, where the screen shows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Ticked or not, in a dialog where several can be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialogKind {
    Permission,
    Question,
    Plan,
    Trust,
    ApiKey,
    Other,
}
