//! What keys do to the dashboard.

use super::{Action, Dashboard, FeedState, Mode, Tab};
use crate::cli::top::card::is_whole;
use crate::cli::top::prompt::{Edit, Prompt, PromptPurpose, arguments};
use crate::core::claude::keys::empty_free_line;
use crate::core::claude::reading::{Dialog, DialogKind};
use crate::core::model::{ConfirmParams, SlotStatus};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::{Duration, Instant};

/// Keys that answer do nothing for this long after the ask under the cursor has changed: the finger was on its way to
/// another one.
const SETTLE: Duration = Duration::from_millis(1500);
/// A second press of the same key within this time confirms the first.
const CONFIRM_WITHIN: Duration = Duration::from_secs(2);

impl Dashboard {
    pub fn key(&mut self, key: KeyEvent, now: Instant) -> Option<Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return match self.mode {
                Mode::Table => Some(Action::Quit),
                _ => self.back(),
            };
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('z') {
            return Some(Action::Suspend);
        }
        if !matches!(key.code, KeyCode::Char('R' | 'X')) {
            self.armed = None;
        }
        let action = match self.mode.clone() {
            Mode::Table if self.list_to_show().is_some() => self.list_key(key, now),
            Mode::Table => self.table_key(key, now),
            Mode::Help(scrolled) => self.help_key(key, scrolled),
            Mode::Gone if key.code == KeyCode::Esc => self.back(),
            Mode::Gone => None,
            Mode::Whole(scrolled) => self.whole_key(key, scrolled, now),
            Mode::Options => self.option_key(key),
            Mode::Always => self.always_key(key, now),
            Mode::Alike(asks) => self.alike_key(key, &asks),
            Mode::Prompt(prompt) => self.prompt_key(prompt, key),
        };
        self.look(now);
        action
    }

    fn back(&mut self) -> Option<Action> {
        self.mode = Mode::Table;
        None
    }

    fn table_key(&mut self, key: KeyEvent, now: Instant) -> Option<Action> {
        self.notice.clear();
        match key.code {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Char('j') | KeyCode::Down => self.step(1),
            KeyCode::Char('k') | KeyCode::Up => self.step(-1),
            KeyCode::Char('g') | KeyCode::Home => self.step(isize::MIN),
            KeyCode::Char('G') | KeyCode::End => self.step(isize::MAX),
            KeyCode::Char('w') => self.next_waiting(),
            KeyCode::Tab => self.lists.turn(),
            KeyCode::Char('v') => self.terminal = !self.terminal,
            KeyCode::Char('f') => self.cycle(),
            KeyCode::Char('?') => self.mode = Mode::Help(0),
            KeyCode::Char('/') => self.open(PromptPurpose::Filter),
            KeyCode::Char(':') => self.open(PromptPurpose::Command),
            KeyCode::Esc => self.needle.clear(),
            _ => return self.slot_key(key, now),
        }
        None
    }

    /// Keys in the tabs of sessions and tasks; none of them answers anything.
    fn list_key(&mut self, key: KeyEvent, now: Instant) -> Option<Action> {
        self.notice.clear();
        let of_tasks = self.lists.tab() == Tab::Tasks;
        match key.code {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Char('j') | KeyCode::Down => self.lists.step(1),
            KeyCode::Char('k') | KeyCode::Up => self.lists.step(-1),
            KeyCode::Char('g') | KeyCode::Home => self.lists.step(isize::MIN),
            KeyCode::Char('G') | KeyCode::End => self.lists.step(isize::MAX),
            KeyCode::Char('w') => self.next_waiting(),
            KeyCode::Tab => self.lists.turn(),
            KeyCode::Esc => self.lists.show_slots(),
            KeyCode::Char('?') => self.mode = Mode::Help(0),
            KeyCode::Char(':') => self.open(PromptPurpose::Command),
            KeyCode::Enter | KeyCode::Char('L' | 'X') => {
                let Some(id) = self.lists.chosen() else {
                    self.say("the list is empty");
                    return None;
                };
                let command = |verb: &str| Action::Command(vec![verb.to_owned(), id.clone()]);
                return match (key.code, of_tasks) {
                    (KeyCode::Enter, false) => Some(Action::Attach(id)),
                    (KeyCode::Char('X'), false) => self.twice("X", "close", command("close"), now),
                    (KeyCode::Char('X'), true) => self.twice("X", "cancel", command("cancel"), now),
                    (_, false) => Some(command("output")),
                    (_, true) => Some(command("task")),
                };
            }
            _ => {}
        }
        None
    }

    /// Keys that concern the slot under the cursor.
    fn slot_key(&mut self, key: KeyEvent, now: Instant) -> Option<Action> {
        let Some(slot) = self.chosen.clone() else {
            self.say("no slot is chosen");
            return None;
        };
        match key.code {
            KeyCode::Enter => return Some(Action::Attach(slot)),
            KeyCode::Char('s') => self.open(PromptPurpose::Message),
            KeyCode::Char('i') => return Some(Action::Interrupt(slot)),
            KeyCode::Char('S') => return Some(Action::Start(slot)),
            KeyCode::Char('R') => return self.twice("R", "restart", Action::Restart(slot), now),
            KeyCode::Char('X') => return self.twice("X", "stop", Action::Stop(slot), now),
            KeyCode::Char('L') => return Some(Action::Command(log_of(slot))),
            _ => return self.answer_key(key, now),
        }
        None
    }

    /// Keys that answer the ask under the cursor.
    fn answer_key(&mut self, key: KeyEvent, now: Instant) -> Option<Action> {
        if !matches!(
            key.code,
            KeyCode::Char('y' | 'n' | 'N' | 'a' | 'A' | 'o' | 't' | 'e')
        ) {
            return None;
        }
        let dialog = self.current().and_then(|status| status.dialog.clone());
        let Some(dialog) = dialog else {
            self.say("this slot asks nothing");
            return None;
        };
        if key.code != KeyCode::Char('e') && self.is_too_soon(now) {
            return None;
        }
        match key.code {
            KeyCode::Char('e') => self.mode = Mode::Whole(0),
            KeyCode::Char('y') => return self.yes(&dialog),
            KeyCode::Char('n') => return self.answer("no", None),
            KeyCode::Char('N') => self.open(PromptPurpose::Reason(dialog.id)),
            KeyCode::Char('a') => self.ask_always(&dialog, now),
            KeyCode::Char('A') => self.ask_alike(&dialog),
            KeyCode::Char('o') if dialog.options.is_empty() => self.say("it has no options"),
            KeyCode::Char('o') => self.mode = Mode::Options,
            KeyCode::Char('t') => self.open(PromptPurpose::OwnAnswer(dialog.id)),
            _ => {}
        }
        None
    }

    /// Whether the ask has just come under the cursor. A key that repeats never gets past this: each one starts the time anew.
    fn is_too_soon(&mut self, now: Instant) -> bool {
        let Some((_, _, since)) = &mut self.card else {
            return false;
        };
        let too_soon = now.duration_since(*since) < SETTLE;
        if too_soon {
            *since = now;
            self.say("ignored: this ask has just come under the cursor");
        }
        too_soon
    }

    fn yes(&mut self, dialog: &Dialog) -> Option<Action> {
        if dialog.kind == DialogKind::Question {
            self.mode = Mode::Options;
            return None;
        }
        self.answer("yes", None)
    }

    /// Answers the ask under the cursor, if the person can have read it.
    fn answer(&mut self, answer: &str, reason: Option<String>) -> Option<Action> {
        let is_no = answer == "no";
        let refusal = self.why_not(is_no);
        if let Some(why) = refusal {
            self.say(why);
            return None;
        }
        let params = self.params(Some(answer.to_owned()), None, reason)?;
        self.given(&params);
        self.mode = Mode::Table;
        self.next_waiting();
        Some(Action::Answer(params))
    }

    fn params(
        &self,
        answer: Option<String>,
        text: Option<String>,
        reason: Option<String>,
    ) -> Option<ConfirmParams> {
        let status = self.current()?;
        Some(ConfirmParams {
            slot: status.slot.clone(),
            answer,
            text,
            dialog: Some(status.dialog.as_ref()?.id.clone()),
            reason,
            anyway: false,
            against_rule: false,
            id: None,
        })
    }

    /// Why the ask under the cursor can't be answered now.
    fn why_not(&self, is_no: bool) -> Option<String> {
        let status = self.current()?;
        let dialog = status.dialog.as_ref()?;
        if self.link != FeedState::Live {
            return Some("the daemon is away: nothing was answered".to_owned());
        }
        if self.is_answered(dialog) {
            return Some("it is answered already; its dialog is still up".to_owned());
        }
        if is_no {
            return None;
        }
        if status.doubtful.is_some() || !status.waiting_calls.is_empty() {
            return Some("doubtful: n says no; to look at it: Enter, then : why".to_owned());
        }
        if !is_whole(dialog) {
            return Some("only a part of it is on the screen: Enter attaches".to_owned());
        }
        let unread = !self.is_read(dialog);
        unread.then(|| "read it to its end first: e".to_owned())
    }

    fn ask_always(&mut self, dialog: &Dialog, now: Instant) {
        let always = self.current().and_then(|status| status.always.as_ref());
        let why_not = always.and_then(|always| always.why_not.clone());
        let offered = always.is_some_and(|always| always.rule.is_some());
        if dialog.kind != DialogKind::Permission || !offered {
            let why = why_not.unwrap_or_else(|| "no rule can be added for this ask".to_owned());
            return self.say(why);
        }
        match self.why_not(false) {
            Some(why) => self.say(why),
            None => {
                // A key that repeats does not confirm itself.
                if let Some((_, _, since)) = &mut self.card {
                    *since = now;
                }
                self.mode = Mode::Always;
            }
        }
    }

    fn always_key(&mut self, key: KeyEvent, now: Instant) -> Option<Action> {
        match key.code {
            KeyCode::Char('a' | 'y') if self.is_too_soon(now) => None,
            KeyCode::Char('a' | 'y') => self.answer("always", None),
            _ => self.back(),
        }
    }

    /// Finds the asks of other slots with the same role, tool and input.
    fn ask_alike(&mut self, dialog: &Dialog) {
        if let Some(why) = self.why_not(false) {
            return self.say(why);
        }
        let Some(role) = self.current().map(|status| status.role.clone()) else {
            return;
        };
        let is_plain =
            |status: &SlotStatus| status.doubtful.is_none() && status.waiting_calls.is_empty();
        let alike = self.slots.iter().filter_map(|status| {
            let other = status.dialog.as_ref()?;
            let same = other.tool == dialog.tool && other.input == dialog.input;
            let same = same && other.complete && dialog.complete && status.role == role;
            let open = same && is_plain(status) && !self.is_answered(other);
            open.then(|| (status.slot.clone(), other.id.clone()))
        });
        let alike: Vec<_> = alike.collect();
        match (dialog.kind, alike.len()) {
            (DialogKind::Permission, 2..) => self.mode = Mode::Alike(alike),
            _ => self.say("no other slot asks the same"),
        }
    }

    /// The answer goes to the listed dialogs, and to no other that has come meanwhile.
    fn alike_key(&mut self, key: KeyEvent, asks: &[(String, String)]) -> Option<Action> {
        self.mode = Mode::Table;
        let KeyCode::Char(answer @ ('y' | 'n')) = key.code else {
            return None;
        };
        let answer = if answer == 'y' { "yes" } else { "no" };
        let answer = |(slot, dialog): &(String, String)| ConfirmParams {
            slot: slot.clone(),
            answer: Some(answer.to_owned()),
            dialog: Some(dialog.clone()),
            ..ConfirmParams::default()
        };
        let answers: Vec<ConfirmParams> = asks.iter().map(answer).collect();
        answers.iter().for_each(|params| self.given(params));
        self.next_waiting();
        Some(Action::AnswerAll(answers))
    }

    /// An answer is on its way.
    fn given(&mut self, params: &ConfirmParams) {
        self.answered.extend(params.dialog.clone());
        let mut slots = self.slots.iter();
        let status = slots.find(|status| status.slot == params.slot);
        let dialog = status.and_then(|status| status.dialog.as_ref());
        if let Some(dialog) = dialog.filter(|dialog| Some(&dialog.id) == params.dialog.as_ref()) {
            let answer = params.answer.as_deref().unwrap_or("own words");
            self.receipts.given(&params.slot, dialog, answer);
        }
    }

    fn option_key(&mut self, key: KeyEvent) -> Option<Action> {
        let KeyCode::Char(digit @ '1'..='9') = key.code else {
            return self.back();
        };
        let index = digit as usize - '1' as usize;
        let dialog = self.current().and_then(|status| status.dialog.as_ref());
        let label = dialog.and_then(|dialog| Some(dialog.options.get(index)?.label.clone()));
        let Some(label) = label else {
            self.say(format!("there is no option {digit}"));
            return None;
        };
        let free = dialog.and_then(empty_free_line);
        if let (Some(dialog), true) = (dialog, free == Some(index)) {
            let purpose = PromptPurpose::OwnAnswer(dialog.id.clone());
            self.open(purpose);
            return None;
        }
        self.answer(&label, None)
    }

    fn help_key(&mut self, key: KeyEvent, scrolled: usize) -> Option<Action> {
        match key.code {
            KeyCode::Char('j') | KeyCode::Down => self.mode = Mode::Help(scrolled + 1),
            KeyCode::Char('k') | KeyCode::Up => self.mode = Mode::Help(scrolled.saturating_sub(1)),
            _ => self.mode = Mode::Table,
        }
        None
    }

    fn whole_key(&mut self, key: KeyEvent, scrolled: usize, now: Instant) -> Option<Action> {
        let page = 10;
        let scrolled = match key.code {
            KeyCode::Char('j') | KeyCode::Down => scrolled + 1,
            KeyCode::Char('k') | KeyCode::Up => scrolled.saturating_sub(1),
            KeyCode::Char(' ') | KeyCode::PageDown => scrolled + page,
            KeyCode::PageUp => scrolled.saturating_sub(page),
            KeyCode::Char('y' | 'n' | 'N' | 'a') => return self.answer_key(key, now),
            _ => return self.back(),
        };
        self.mode = Mode::Whole(scrolled);
        None
    }

    fn open(&mut self, purpose: PromptPurpose) {
        self.mode = Mode::Prompt(Prompt::new(purpose));
    }

    fn prompt_key(&mut self, mut prompt: Prompt, key: KeyEvent) -> Option<Action> {
        match prompt.key(key) {
            Edit::Goes => {
                if prompt.purpose == PromptPurpose::Filter {
                    prompt.text().clone_into(&mut self.needle);
                    self.choose_first_if_hidden();
                }
                self.mode = Mode::Prompt(prompt);
                None
            }
            Edit::Left => {
                if prompt.purpose == PromptPurpose::Filter {
                    self.needle.clear();
                }
                self.back()
            }
            Edit::Done => self.prompted(prompt),
        }
    }

    fn prompted(&mut self, prompt: Prompt) -> Option<Action> {
        self.mode = Mode::Table;
        let text = prompt.text().trim().to_owned();
        if text.is_empty() {
            return None;
        }
        let slot = self.chosen.clone();
        match prompt.purpose {
            PromptPurpose::Filter => None,
            PromptPurpose::Command if text == "top" => {
                self.say("this is missiond top");
                None
            }
            PromptPurpose::Command => Some(Action::Command(arguments(&text))),
            PromptPurpose::Message => slot.map(|slot| Action::Send { slot, text }),
            PromptPurpose::Reason(_) => self.answer("no", Some(text)),
            PromptPurpose::OwnAnswer(_) => {
                if let Some(why) = self.why_not(false) {
                    self.say(why);
                    return None;
                }
                let params = self.params(None, Some(text), None)?;
                self.given(&params);
                Some(Action::Answer(params))
            }
        }
    }

    /// The first press says what the second would do.
    fn twice(&mut self, key: &str, verb: &str, action: Action, now: Instant) -> Option<Action> {
        let armed = self.armed.take();
        let again = armed.is_some_and(|(first, until)| first == action && now < until);
        if again {
            return Some(action);
        }
        let what = match self.list_to_show() {
            Some(_) => self.lists.chosen(),
            None => self.chosen.clone(),
        };
        let what = what.unwrap_or_default();
        self.say(format!("press {key} again to {verb} {what}"));
        self.armed = Some((action, now + CONFIRM_WITHIN));
        None
    }
}

fn log_of(slot: String) -> Vec<String> {
    vec!["logs".to_owned(), slot, "-f".to_owned()]
}
