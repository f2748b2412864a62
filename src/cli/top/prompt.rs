//! The line in which a person writes. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What the line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPurpose {
    Filter,
    Command,
    Message,
    /// Why the answer is no; the id of the dialog.
    Reason(String),
    /// An answer in the person's own words; the id of the dialog.
    OwnAnswer(String),
}

/// What came of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    Goes,
    Done,
    Left,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub purpose: PromptPurpose,
    text: String,
}

impl Prompt {
    pub fn new(purpose: PromptPurpose) -> Prompt {
        let text = String::new();
        Prompt { purpose, text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_about_dialog(&self) -> bool {
        matches!(
            self.purpose,
            PromptPurpose::Reason(_) | PromptPurpose::OwnAnswer(_)
        )
    }

    /// What stands before the line.
    pub fn label(&self) -> &'static str {
        match self.purpose {
            PromptPurpose::Filter => "filter",
            PromptPurpose::Command => "missiond",
            PromptPurpose::Message => "message",
            PromptPurpose::Reason(_) => "no, because",
            PromptPurpose::OwnAnswer(_) => "answer",
        }
    }

    /// What Enter does.
    pub fn enter(&self) -> &'static str {
        match self.purpose {
            PromptPurpose::Filter => "keeps it",
            PromptPurpose::Command => "runs it",
            PromptPurpose::Message => "sends it",
            PromptPurpose::Reason(_) | PromptPurpose::OwnAnswer(_) => "answers",
        }
    }

    /// A message may have several lines; anything else is one.
    pub fn insert(&mut self, text: &str) {
        let lines = self.purpose == PromptPurpose::Message;
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let plain = text.chars().map(|c| match c {
            '\n' if lines => c,
            c if c.is_control() => ' ',
            c => c,
        });
        self.text.extend(plain);
    }

    pub fn key(&mut self, key: KeyEvent) -> Edit {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Edit::Left,
            KeyCode::Enter => return Edit::Done,
            KeyCode::Char('u') if control => self.text.clear(),
            KeyCode::Char('w') if control => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.truncate(kept);
            }
            KeyCode::Char(c) if !control => self.text.push(c),
            KeyCode::Backspace => drop(self.text.pop()),
            _ => {}
        }
        Edit::Goes
    }
}

/// The arguments of a command line: spaces part them, quotes keep them together.
pub fn arguments(line: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut current: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                current.get_or_insert_default();
            }
            (None, ' ') => arguments.extend(current.take()),
            (_, c) => current.get_or_insert_default().push(c),
        }
    }
    arguments.extend(current);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_spaces_in_an_argument() {
        let parted = arguments(r#"send coder  "run the tests" 'it''s' """#);
        assert_eq!(parted, ["send", "coder", "run the tests", "its", ""]);
    }

    #[test]
    fn a_message_keeps_its_lines_and_a_command_is_one() {
        for (purpose, kept) in [
            (PromptPurpose::Message, "a\nb [2J"),
            (PromptPurpose::Command, "a b [2J"),
        ] {
            let mut prompt = Prompt::new(purpose);
            prompt.insert("a\r\nb\u{1b}[2J");
            assert_eq!(prompt.text(), kept);
        }
    }

    #[test]
    fn the_last_word_can_be_taken_back() {
        let mut prompt = Prompt::new(PromptPurpose::Message);
        prompt.insert("run the tests ");
        let erase = KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(prompt.key(erase), Edit::Goes);
        assert_eq!(prompt.text(), "run the ");
    }
}
