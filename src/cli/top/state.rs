//! What the dashboard knows, and what keys do to it. Pure: the time comes in, actions go out.

mod keys;

use super::draw::Drawn;
use super::lists::{Listed, Lists, Tab};
use super::prompt::Prompt;
use super::receipt::Receipts;
use crate::cli::table;
use crate::control::requests::ExplainAnswer;
use crate::core::claude::reading::{Dialog, State};
use crate::core::model::{ConfirmParams, Event, ScreenAnswer, SlotStatus};
use chrono::{DateTime, Utc};
use std::collections::VecDeque;
use std::time::Instant;

/// More than fit on a large screen.
const MAX_EVENTS: usize = 60;

/// What the loop has to do for the person.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Answer(ConfirmParams),
    /// The same answer to several asks, each by its id.
    AnswerAll(Vec<ConfirmParams>),
    Send {
        slot: String,
        text: String,
    },
    Interrupt(String),
    Start(String),
    Restart(String),
    Stop(String),
    Attach(String),
    /// Stops this program until it is continued, as Ctrl-Z does.
    Suspend,
    /// Runs a command of missiond on the bare terminal.
    Command(Vec<String>),
    Quit,
}

/// What the keys mean at present.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Mode {
    #[default]
    Table,
    /// The number of lines that are scrolled away.
    Help(usize),
    /// The whole request; the number of lines that are scrolled away.
    Whole(usize),
    /// The options of the ask have numbers.
    Options,
    /// The person sees the rule that `always` would add.
    Always,
    /// Several asks are the same: these slots and dialogs get one answer.
    Alike(Vec<(String, String)>),
    Prompt(Prompt),
    /// The ask that the person was about to answer has changed: keys do nothing until they have seen that.
    Gone,
}

/// Which slots the table shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Filter {
    #[default]
    All,
    Waits,
    Works,
    Idle,
    Down,
}

impl Filter {
    pub fn name(self) -> &'static str {
        match self {
            Filter::All => "all",
            Filter::Waits => "waits",
            Filter::Works => "works",
            Filter::Idle => "idle",
            Filter::Down => "down",
        }
    }

    fn next(self) -> Filter {
        match self {
            Filter::All => Filter::Waits,
            Filter::Waits => Filter::Works,
            Filter::Works => Filter::Idle,
            Filter::Idle => Filter::Down,
            Filter::Down => Filter::All,
        }
    }

    pub fn takes(self, status: &SlotStatus) -> bool {
        self == Filter::All || self == Filter::of(status)
    }

    /// The group of a slot.
    pub fn of(status: &SlotStatus) -> Filter {
        match status.state {
            _ if needs_person(status) => Filter::Waits,
            State::Confirming => Filter::Waits,
            State::Starting | State::Thinking | State::Responding | State::ToolRunning => {
                Filter::Works
            }
            State::Idle => Filter::Idle,
            State::Error | State::Exited => Filter::Down,
        }
    }
}

/// A person has something to answer there, whatever its screen shows.
pub fn needs_person(status: &SlotStatus) -> bool {
    status.dialog.is_some() || !status.waiting_calls.is_empty()
}

/// An ask, and the rule that `always` would add, which is known a moment later: each is explained anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskToExplain {
    pub slot: String,
    pub dialog: Option<String>,
    pub rule: Option<String>,
}

/// Whether the daemon can be heard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FeedState {
    /// The first answer is on its way.
    #[default]
    Connecting,
    Live,
    Lost(String),
}

#[derive(Debug, Default)]
pub struct Dashboard {
    slots: Vec<SlotStatus>,
    /// The name of the slot under the cursor.
    chosen: Option<String>,
    filter: Filter,
    needle: String,
    mode: Mode,
    /// The live terminal is shown in place of the ask.
    terminal: bool,
    link: FeedState,
    notice: String,
    /// What is wrong with the daemon or its config, with the next step.
    warnings: Vec<String>,
    /// The latest events, the newest last.
    events: VecDeque<String>,
    picture: Option<ScreenAnswer>,
    /// What speaks for and against the ask under the cursor, or one before it.
    explained: Option<ExplainAnswer>,
    /// The ask under the cursor, and since when it is there.
    card: Option<(String, String, Instant)>,
    /// The dialog whose end was on the screen.
    read_to_end: Option<String>,
    /// What a second press would do, and until when.
    armed: Option<(Action, Instant)>,
    /// Dialogs that were answered here and are not gone yet.
    answered: Vec<String>,
    receipts: Receipts,
    lists: Lists,
}

impl Dashboard {
    pub fn link(&self) -> &FeedState {
        &self.link
    }

    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    pub fn filter(&self) -> Filter {
        self.filter
    }

    pub fn needle(&self) -> &str {
        &self.needle
    }

    pub fn notice(&self) -> &str {
        &self.notice
    }

    /// The first of what is wrong with the daemon or its config.
    pub fn warning(&self) -> Option<&str> {
        self.warnings.first().map(String::as_str)
    }

    /// The latest events, the newest first.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.events.iter().rev().map(String::as_str)
    }

    pub fn slots(&self) -> &[SlotStatus] {
        &self.slots
    }

    /// The screen of the slot under the cursor.
    pub fn picture(&self) -> Option<&ScreenAnswer> {
        let chosen = self.chosen.as_deref();
        self.picture
            .as_ref()
            .filter(|picture| Some(picture.slot.as_str()) == chosen)
    }

    /// What speaks for and against the ask under the cursor, once the daemon has told.
    pub fn explained(&self) -> Option<&ExplainAnswer> {
        let wanted = self.ask_to_explain()?;
        let explained = self.explained.as_ref()?;
        let is_it = explained.slot == wanted.slot && explained.dialog == wanted.dialog;
        is_it.then_some(explained)
    }

    /// The ask that is to be explained: the one under the cursor.
    pub fn ask_to_explain(&self) -> Option<AskToExplain> {
        let status = self.current().filter(|status| needs_person(status))?;
        let always = status.always.as_ref();
        Some(AskToExplain {
            slot: status.slot.clone(),
            dialog: status.dialog.as_ref().map(|dialog| dialog.id.clone()),
            rule: always.and_then(|always| always.rule.clone()),
        })
    }

    pub fn shows_terminal(&self) -> bool {
        self.terminal
    }

    /// The rows of the table, in its order.
    pub fn rows(&self) -> Vec<&SlotStatus> {
        let named = |status: &&SlotStatus| {
            status.slot.contains(&self.needle) || status.role.contains(&self.needle)
        };
        let rows = self.slots.iter().filter(|status| self.filter.takes(status));
        rows.filter(named).collect()
    }

    /// The slot under the cursor.
    pub fn current(&self) -> Option<&SlotStatus> {
        let chosen = self.chosen.as_deref()?;
        self.slots.iter().find(|status| status.slot == chosen)
    }

    /// Its row in the table.
    pub fn cursor(&self) -> Option<usize> {
        let chosen = self.chosen.as_deref()?;
        self.rows().iter().position(|row| row.slot == chosen)
    }

    /// The slots that wait for a person, the longest first.
    pub fn waiting(&self) -> Vec<&SlotStatus> {
        let waits = |status: &&SlotStatus| Filter::of(status) == Filter::Waits;
        let mut waiting: Vec<&SlotStatus> = self.slots.iter().filter(waits).collect();
        waiting.sort_by_key(|status| status.since);
        waiting
    }

    /// Whether an answer was given here to the ask of this slot, and its dialog is not gone yet.
    pub fn is_answered(&self, dialog: &Dialog) -> bool {
        self.answered.contains(&dialog.id)
    }

    pub fn connected(&mut self) {
        self.link = FeedState::Live;
    }

    pub fn lost(&mut self, why: String) {
        self.link = FeedState::Lost(why);
        self.armed = None;
    }

    /// An answer was refused: the ask is open again.
    pub fn not_answered(&mut self, dialogs: &[String], why: String) {
        self.answered.retain(|id| !dialogs.contains(id));
        self.receipts.refused(dialogs, &why, Utc::now());
        self.say(why);
    }

    pub fn say(&mut self, text: impl Into<String>) {
        self.notice = text.into();
    }

    pub fn warn(&mut self, warnings: Vec<String>) {
        self.warnings = warnings;
    }

    pub fn happened(&mut self, event: String) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.say(event.clone());
        self.events.push_back(event);
    }

    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// The tab that needs more than the statuses.
    pub fn list_to_show(&self) -> Option<Tab> {
        Some(self.lists.tab()).filter(|tab| *tab != Tab::Slots)
    }

    pub fn listed(&mut self, listed: Listed) {
        self.lists.take(listed);
    }

    /// An event may be the effect of an answer that was given here.
    pub fn followed(&mut self, event: &Event) {
        self.receipts.note(event);
    }

    /// What has come of the answers that were given here, the newest first.
    pub fn receipts(&self, now: DateTime<Utc>) -> impl Iterator<Item = String> {
        self.receipts.lines(now)
    }

    pub fn shown(&mut self, picture: ScreenAnswer) {
        self.picture = Some(picture);
    }

    pub fn explain(&mut self, explained: ExplainAnswer) {
        self.explained = Some(explained);
    }

    /// Takes statuses in; `all` of them, or those that have changed.
    pub fn update(&mut self, statuses: Vec<SlotStatus>, all: bool, now: Instant) {
        match all {
            true => self.slots = statuses,
            false => {
                for status in statuses {
                    self.slots.retain(|known| known.slot != status.slot);
                    self.slots.push(status);
                }
            }
        }
        table::sort(&mut self.slots);
        self.slots.sort_by_key(|status| {
            let waits = Filter::of(status) == Filter::Waits;
            (!waits, waits.then_some(status.since))
        });
        let open = |id: &String| {
            let dialogs = self.slots.iter().filter_map(|slot| slot.dialog.as_ref());
            dialogs.into_iter().any(|dialog| dialog.id == *id)
        };
        let answered = std::mem::take(&mut self.answered);
        self.answered = answered.iter().filter(|id| open(id)).cloned().collect();
        if self.current().is_none() {
            self.chosen = self.rows().first().map(|row| row.slot.clone());
        }
        self.look(now);
    }

    /// Notes which ask stands under the cursor: a new one has to be read before it is answered.
    fn look(&mut self, now: Instant) {
        let seen = self.current().and_then(|status| {
            let dialog = status.dialog.as_ref()?;
            Some((status.slot.clone(), dialog.id.clone()))
        });
        let known = self.card.as_ref();
        let same = known.map(|(slot, id, _)| (slot, id)) == seen.as_ref().map(|(s, d)| (s, d));
        if same {
            return;
        }
        self.read_to_end = None;
        self.tell_who_answered();
        if self.asks_about_card() {
            self.mode = Mode::Gone;
            self.say("the ask has changed; nothing was answered. Esc goes on");
        }
        self.card = seen.map(|(slot, id)| (slot, id, now));
    }

    /// The ask under the cursor is gone or another one: somebody else may have answered it.
    fn tell_who_answered(&mut self) {
        let Some((slot, id, _)) = &self.card else {
            return;
        };
        let status = self.slots.iter().find(|status| status.slot == *slot);
        let answered = status.and_then(|status| status.answered.as_ref());
        if let Some(answered) = answered.filter(|answered| answered.dialog == *id) {
            self.receipts.gone(slot, answered, Utc::now());
        }
    }

    /// Whether the person is in the middle of an answer.
    fn asks_about_card(&self) -> bool {
        match &self.mode {
            Mode::Whole(_) | Mode::Options | Mode::Always | Mode::Alike(_) => true,
            Mode::Prompt(prompt) => prompt.is_about_dialog(),
            Mode::Table | Mode::Help(_) | Mode::Gone => false,
        }
    }

    /// Takes in what the drawing found out.
    pub fn drawn(&mut self, drawn: Drawn) {
        if drawn.end_is_shown {
            self.read_to_end = self.card.as_ref().map(|(_, id, _)| id.clone());
        }
        if let Mode::Whole(scrolled) | Mode::Help(scrolled) = &mut self.mode {
            *scrolled = (*scrolled).min(drawn.scrolled_at_most);
        }
    }

    fn is_read(&self, dialog: &Dialog) -> bool {
        self.read_to_end.as_deref() == Some(dialog.id.as_str())
    }

    /// A paste is text for a prompt; everywhere else it would be keys that nobody pressed.
    pub fn paste(&mut self, text: &str) {
        match &mut self.mode {
            Mode::Prompt(prompt) => prompt.insert(text),
            _ => self.say("a paste is ignored here: press s to write a message"),
        }
    }

    fn cycle(&mut self) {
        self.filter = self.filter.next();
        self.choose_first_if_hidden();
    }

    fn choose_first_if_hidden(&mut self) {
        if self.cursor().is_none() {
            self.chosen = self.rows().first().map(|row| row.slot.clone());
        }
    }

    fn step(&mut self, by: isize) {
        let rows = self.rows();
        let Some(last) = rows.len().checked_sub(1) else {
            return;
        };
        let at = self.cursor().unwrap_or(0);
        let to = at.saturating_add_signed(by).min(last);
        self.chosen = Some(rows[to].slot.clone());
    }

    /// Goes to the slot that has waited longest, behind the one under the cursor.
    fn next_waiting(&mut self) {
        let open = |status: &&SlotStatus| {
            let dialog = status.dialog.as_ref();
            dialog.is_none_or(|dialog| !self.is_answered(dialog))
        };
        let waiting: Vec<&SlotStatus> = self.waiting().into_iter().filter(open).collect();
        let chosen = self.chosen.as_deref();
        let at = waiting
            .iter()
            .position(|row| Some(row.slot.as_str()) == chosen);
        let next = waiting.get(at.map_or(0, |at| at + 1)).or(waiting.first());
        if let Some(next) = next.map(|next| next.slot.clone()) {
            self.lists.show_slots();
            self.filter = Filter::All;
            self.needle.clear();
            self.chosen = Some(next);
        }
    }
}
