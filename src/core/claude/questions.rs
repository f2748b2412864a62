//! The questions of an AskUserQuestion call, as its hook has them, and whether the dialog on the screen shows one of them. A
//! process that writes to the terminal can paint other labels over the real ones; a key would then choose another answer than the
//! one on the screen.

use super::reading::{Choice, Dialog, is_shown};
use super::vocabulary::{BUTTONS, REVIEW, SKIP_INTERVIEW, TALK_INSTEAD};
use serde_json::Value;

/// The tool whose calls are questions.
pub const TOOL: &str = "AskUserQuestion";

/// Rows that Claude Code adds below the text field: to talk instead, and in plan mode to continue without answers.
const ADDED: [&str; 2] = [TALK_INSTEAD, SKIP_INTERVIEW];

#[derive(Debug)]
pub struct Question<'a> {
    pub text: &'a str,
    pub offers: Vec<Offer<'a>>,
    /// Whether several can be ticked; `None` if the call does not say.
    several: Option<bool>,
}

/// One of the answers that a question offers.
#[derive(Debug)]
pub struct Offer<'a> {
    pub label: &'a str,
    description: &'a str,
}

/// The questions in the input of a call; empty for a call of another tool.
pub fn of(input: &Value) -> Vec<Question<'_>> {
    fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
        value.and_then(Value::as_array).into_iter().flatten()
    }
    fn text<'a>(value: &'a Value, key: &str) -> &'a str {
        value.get(key).and_then(Value::as_str).unwrap_or_default()
    }
    let offer = |value| Offer {
        label: text(value, "label"),
        description: text(value, "description"),
    };
    let question = |value| Question {
        text: text(value, "question"),
        offers: list(value.get("options")).map(offer).collect(),
        several: value.get("multiSelect").and_then(Value::as_bool),
    };
    list(input.get("questions")).map(question).collect()
}

/// Whether a dialog shows one of the questions of a call, with its answers in order, or the review page.
pub fn shows_one(input: &Value, dialog: &Dialog) -> bool {
    let questions = of(input);
    is_review(dialog) && has_review(&questions)
        || questions
            .iter()
            .any(|question| question.is_shown_by(dialog))
}

/// Whether a review page follows. A single answer to a single question counts at once.
fn has_review(questions: &[Question]) -> bool {
    questions.len() > 1
        || questions
            .iter()
            .any(|question| question.several != Some(false))
}

fn is_review(dialog: &Dialog) -> bool {
    let in_order = |(choice, number): (&Choice, u32)| choice.number == Some(number);
    let labels = dialog.options.iter().map(|choice| choice.label.as_str());
    labels.eq(REVIEW.iter().copied()) && dialog.options.iter().zip(1..).all(in_order)
}

impl Question<'_> {
    fn is_shown_by(&self, dialog: &Dialog) -> bool {
        self.has_text(dialog)
            && self.has_order(dialog)
            && self.has_labels(dialog)
            && self.has_ticks(dialog)
    }

    /// Whether the answers can be ticked if several can be chosen, and only then: a key that sets a tick in one question
    /// answers another one at once.
    fn has_ticks(&self, dialog: &Dialog) -> bool {
        let is_offer = |choice: &&Choice| {
            choice
                .number
                .is_some_and(|n| n as usize <= self.offers.len())
        };
        let mut offers = dialog.options.iter().filter(is_offer);
        self.several
            .is_none_or(|several| offers.all(|choice| choice.checked.is_some() == several))
    }

    /// A screen that is too low shows the end of the text.
    fn has_text(&self, dialog: &Dialog) -> bool {
        let input = dialog.input.as_ref();
        let shown = input.and_then(|input| input.get("question")?.as_str());
        let (shown, whole) = (letters(shown.unwrap_or_default()), letters(self.text));
        match dialog.complete {
            true => shown == whole,
            false => whole.ends_with(&shown) || shown.ends_with(&whole),
        }
    }

    /// Whether the numbers count up, from one on if nothing is off the screen.
    fn has_order(&self, dialog: &Dialog) -> bool {
        let numbers: Vec<u32> = dialog.options.iter().filter_map(|c| c.number).collect();
        let count_up = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let whole = numbers.first() == Some(&1) && numbers.len() >= self.offers.len();
        count_up && (whole || !dialog.complete)
    }

    fn has_labels(&self, dialog: &Dialog) -> bool {
        let squeeze = self.squeeze();
        dialog.options.iter().all(|choice| match choice.number {
            None => BUTTONS.contains(&choice.label.as_str()) || choice.label == TALK_INSTEAD,
            Some(number) => match (number as usize).cmp(&(self.offers.len() + 1)) {
                std::cmp::Ordering::Less => {
                    let offer = (number as usize).checked_sub(1);
                    let offer = offer.and_then(|index| self.offers.get(index));
                    offer.is_some_and(|offer| offer.is_shown_as(choice, squeeze))
                }
                // The free line, with what somebody has written into it.
                std::cmp::Ordering::Equal => true,
                std::cmp::Ordering::Greater => ADDED.contains(&choice.label.as_str()),
            },
        })
    }

    /// How labels are compared: by their letters and digits, since not every version draws every sign; if that is not
    /// enough to tell them apart, by all signs.
    fn squeeze(&self) -> fn(&str) -> String {
        let mut labels: Vec<String> = self.offers.iter().map(|o| letters(o.label)).collect();
        labels.sort();
        labels.dedup();
        let distinct = labels.len() == self.offers.len() && !labels.iter().any(String::is_empty);
        if distinct { letters } else { signs }
    }
}

impl Offer<'_> {
    /// The whole label, and of the description as much as is shown. Where the label ends and the description begins can't
    /// always be seen.
    fn is_shown_as(&self, choice: &Choice, squeeze: fn(&str) -> String) -> bool {
        let description = choice.description.as_deref().unwrap_or_default();
        let shown = squeeze(&format!("{}{description}", choice.label));
        let shown = shown.trim_end_matches('…');
        let whole = squeeze(&format!("{}{}", self.label, self.description));
        shown.starts_with(&squeeze(self.label)) && whole.starts_with(shown)
    }
}

/// The letters and digits of a text; all its signs if it has none.
fn letters(text: &str) -> String {
    let found: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    match found.is_empty() {
        true => signs(text),
        false => found,
    }
}

fn signs(text: &str) -> String {
    text.chars().filter(is_shown).collect()
}

#[cfg(test)]
mod tests;
