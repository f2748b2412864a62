//! A dialog of the stand-in: its rows, and the effect of keys. Pure.

use super::page::rule;
use super::typed::TypedKey;
use crate::lab::demo::text::wrapped;
use serde_json::Value;

/// An open dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInAsk {
    about: About,
    choices: Vec<Choice>,
    selected: usize,
    /// The text in the last choice of a question.
    written: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum About {
    /// A tool call: a title, the action, and why it is asked about.
    Call {
        title: &'static str,
        what: String,
        why: Option<String>,
    },
    Question {
        header: String,
        text: String,
    },
    /// The folder that the stand-in would work in.
    Trust {
        folder: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    label: String,
    description: Option<String>,
}

impl Choice {
    fn plain(label: &str) -> Choice {
        Choice {
            label: label.to_owned(),
            description: None,
        }
    }
}

/// The answer to a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandInAnswer {
    Chosen(String),
    Cancelled,
}

pub const YES: &str = "Yes";
pub const TRUSTED: &str = "Yes, I trust this folder";
const FREE: &str = "Type something.";

impl StandInAsk {
    /// A dialog that asks for permission for a tool call.
    pub fn permission(title: &'static str, what: String, why: Option<String>) -> StandInAsk {
        StandInAsk {
            about: About::Call { title, what, why },
            choices: vec![Choice::plain(YES), Choice::plain("No")],
            selected: 0,
            written: String::new(),
        }
    }

    /// A dialog that asks whether a folder is trusted. The no is selected.
    pub fn trust(folder: String) -> StandInAsk {
        StandInAsk {
            about: About::Trust { folder },
            choices: vec![Choice::plain("No, exit"), Choice::plain(TRUSTED)],
            selected: 0,
            written: String::new(),
        }
    }

    /// The first question of an AskUserQuestion call; `None` if it has no question.
    pub fn question(input: &Value) -> Option<StandInAsk> {
        let question = input["questions"].get(0)?;
        let choice = |option: &Value| {
            Some(Choice {
                label: option["label"].as_str()?.to_owned(),
                description: option["description"].as_str().map(str::to_owned),
            })
        };
        let options = question["options"].as_array()?;
        let mut choices: Vec<Choice> = options.iter().filter_map(choice).collect();
        choices.push(Choice::plain(FREE));
        Some(StandInAsk {
            about: About::Question {
                header: question["header"].as_str().unwrap_or("Question").to_owned(),
                text: question["question"].as_str()?.to_owned(),
            },
            choices,
            selected: 0,
            written: String::new(),
        })
    }

    /// Applies a key: it moves the selection, writes text, or ends the dialog.
    pub fn press(&mut self, key: &TypedKey) -> Option<StandInAnswer> {
        match key {
            TypedKey::Esc | TypedKey::Clear => return Some(StandInAnswer::Cancelled),
            TypedKey::Up => self.selected = self.selected.saturating_sub(1),
            TypedKey::Down => self.selected = (self.selected + 1).min(self.choices.len() - 1),
            TypedKey::Backspace => drop(self.written.pop()),
            TypedKey::Enter => return self.chosen(),
            TypedKey::Text(text) if self.is_writing() => self.written.push_str(text),
            TypedKey::Text(text) => return self.digit(text),
        }
        None
    }

    fn is_numbered(&self) -> bool {
        !matches!(self.about, About::Trust { .. })
    }

    fn digit(&mut self, text: &str) -> Option<StandInAnswer> {
        if !self.is_numbered() {
            return None;
        }
        let number: usize = text.parse().ok()?;
        self.selected = number
            .checked_sub(1)
            .filter(|at| *at < self.choices.len())?;
        if self.is_writing() {
            None
        } else {
            self.chosen()
        }
    }

    fn is_writing(&self) -> bool {
        self.choices[self.selected].label == FREE
    }

    fn chosen(&self) -> Option<StandInAnswer> {
        match self.is_writing() {
            true if self.written.is_empty() => None,
            true => Some(StandInAnswer::Chosen(self.written.clone())),
            false => Some(StandInAnswer::Chosen(
                self.choices[self.selected].label.clone(),
            )),
        }
    }

    /// The rows, and the position of the cursor, which is on the mark.
    pub fn rows(&self, cols: usize) -> (Vec<String>, (usize, usize)) {
        let mut rows = vec![rule(cols)];
        let indent = match &self.about {
            About::Call { title, what, why } => {
                rows.extend([format!(" {title}"), "╌".repeat(cols)]);
                rows.extend(
                    wrapped(what, cols.saturating_sub(6))
                        .iter()
                        .map(|row| format!("   {row}")),
                );
                rows.push("╌".repeat(cols));
                let why = why
                    .iter()
                    .flat_map(|why| wrapped(why, cols.saturating_sub(4)));
                rows.extend(why.map(|row| format!(" {row}")));
                rows.extend([String::new(), " Do you want to proceed?".to_owned()]);
                1
            }
            About::Question { header, text } => {
                rows.extend([format!(" ☐ {header}"), String::new()]);
                rows.extend(wrapped(text, cols.saturating_sub(2)));
                rows.push(String::new());
                0
            }
            About::Trust { folder } => {
                rows.extend(
                    [" Accessing workspace:", "", &format!(" {folder}"), ""].map(str::to_owned),
                );
                let text = "Quick safety check: Is this a project you created or one you trust?";
                rows.extend(
                    wrapped(text, cols.saturating_sub(2))
                        .iter()
                        .map(|row| format!(" {row}")),
                );
                rows.push(String::new());
                1
            }
        };
        let mark_row = self.list(&mut rows, indent);
        rows.extend([String::new(), self.hint().to_owned()]);
        (rows, (mark_row, indent))
    }

    /// Adds the choices; returns the row of the mark.
    fn list(&self, rows: &mut Vec<String>, indent: usize) -> usize {
        let mut mark_row = rows.len();
        for (index, choice) in self.choices.iter().enumerate() {
            let marked = index == self.selected;
            if marked {
                mark_row = rows.len();
            }
            let mark = if marked { '❯' } else { ' ' };
            let written = choice.label == FREE && !self.written.is_empty();
            let label = if written {
                &self.written
            } else {
                &choice.label
            };
            let number = match self.is_numbered() {
                true => format!("{}. ", index + 1),
                false => String::new(),
            };
            let row = format!("{}{mark} {number}{label}", " ".repeat(indent));
            let below = " ".repeat(indent + 5);
            rows.push(row);
            rows.extend(
                choice
                    .description
                    .iter()
                    .map(|text| format!("{below}{text}")),
            );
        }
        mark_row
    }

    fn hint(&self) -> &'static str {
        match self.about {
            About::Call { .. } => " Esc to cancel",
            About::Trust { .. } => " Enter to confirm · Esc to cancel",
            About::Question { .. } => "Enter to select · ↑/↓ to navigate · Esc to cancel",
        }
    }

    /// The text for Claude Code's session record while this is open.
    pub fn waiting_for(&self) -> String {
        match &self.about {
            About::Call { title, .. } => format!("approve {title}"),
            About::Question { .. } | About::Trust { .. } => "an answer".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::{Bottom, draw};
    use super::super::tty;
    use super::*;
    use crate::core::claude::reading::{self, DialogKind, Seen, read};
    use crate::core::terminal::{At, Terminal};
    use serde_json::json;

    /// The dialog as the reader reads it.
    fn read_as(asked: &StandInAsk) -> reading::Dialog {
        let (cols, rows) = (80, 24);
        let drawn = draw(cols, rows, &[], Bottom::Dialog(asked));
        let mut terminal = Terminal::new(cols, rows);
        terminal.feed(At::ZERO, tty::BEGIN.as_bytes());
        terminal.feed(At::ZERO, tty::frame(&drawn, "✳ stand-in").as_bytes());
        match read(&terminal.screen()).seen {
            Seen::Dialog(dialog) => dialog,
            other => panic!("no dialog but {other:?}"),
        }
    }

    fn question() -> StandInAsk {
        let option = |label: &str| json!({"label": label, "description": "what it means"});
        let input = json!({"questions": [{
            "question": "How thorough?", "header": "Depth", "options": [option("Quick"), option("Full")],
        }]});
        StandInAsk::question(&input).expect("a question")
    }

    fn text(text: &str) -> TypedKey {
        TypedKey::Text(text.to_owned())
    }

    #[test]
    fn a_permission_dialog_is_read_whole() {
        let command = format!("./publish.sh {}", "v1.2.3 ".repeat(20).trim_end());
        let why = Some("a rule says so".to_owned());
        let dialog = read_as(&StandInAsk::permission(
            "Bash command",
            command.clone(),
            why,
        ));
        assert_eq!(dialog.kind, DialogKind::Permission);
        assert_eq!(dialog.tool.as_deref(), Some("Bash"));
        assert_eq!(dialog.input.expect("input")["command"], json!(command));
        assert_eq!(dialog.selected, Some(0));
        assert!(dialog.complete);
    }

    #[test]
    fn the_question_about_trust_is_read_as_one() {
        let mut asked = StandInAsk::trust("/home/me/src/app".to_owned());
        let dialog = read_as(&asked);
        assert_eq!(dialog.kind, DialogKind::Trust);
        let labels: Vec<&str> = dialog.options.iter().map(|o| o.label.as_str()).collect();
        assert_eq!(labels, ["No, exit", TRUSTED]);
        assert_eq!(dialog.selected, Some(0));
        assert!(dialog.complete);
        assert_eq!(asked.press(&text("2")), None, "it has no numbers");
        asked.press(&TypedKey::Down);
        let chosen = StandInAnswer::Chosen(TRUSTED.to_owned());
        assert_eq!(asked.press(&TypedKey::Enter), Some(chosen));
    }

    #[test]
    fn a_question_is_read_with_its_choices() {
        let mut asked = question();
        asked.press(&TypedKey::Down);
        let dialog = read_as(&asked);
        assert_eq!(dialog.kind, DialogKind::Question);
        let labels: Vec<&str> = dialog.options.iter().map(|o| o.label.as_str()).collect();
        assert_eq!(labels, ["Quick", "Full", FREE]);
        assert_eq!(dialog.selected, Some(1));
        assert!(dialog.complete);
    }

    #[test]
    fn a_digit_picks_at_once_and_esc_cancels() {
        let chosen = |label: &str| Some(StandInAnswer::Chosen(label.to_owned()));
        assert_eq!(question().press(&text("2")), chosen("Full"));
        assert_eq!(question().press(&text("9")), None);
        assert_eq!(question().press(&TypedKey::Enter), chosen("Quick"));
        assert_eq!(
            question().press(&TypedKey::Esc),
            Some(StandInAnswer::Cancelled)
        );
    }

    #[test]
    fn an_answer_of_ones_own_is_written_into_the_last_line() {
        let mut asked = question();
        for key in [text("3"), text("as you like"), TypedKey::Backspace] {
            assert_eq!(asked.press(&key), None);
        }
        let written = StandInAnswer::Chosen("as you lik".to_owned());
        assert_eq!(asked.press(&TypedKey::Enter), Some(written));
    }
}
