//! The meaning of a person's word, and the label that it names.

use super::NoPick;
use crate::core::claude::reading::{Choice, Dialog, DialogKind};
use crate::core::claude::vocabulary::{ASKING_MODES, WIDENS};

/// A keyword. It never abbreviates a longer label: `yes` is not short for `Yes, and don't ask again`, nor `n` for `No backups,
/// delete all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerWord {
    Yes,
    No,
    /// Yes, and a rule for the next call.
    Always,
}

impl AnswerWord {
    /// In upper or lower case, with or without punctuation at the end.
    pub(super) fn of(answer: &str) -> Option<AnswerWord> {
        match bare(answer).as_str() {
            "yes" | "y" => Some(AnswerWord::Yes),
            "no" | "n" => Some(AnswerWord::No),
            "always" => Some(AnswerWord::Always),
            _ => None,
        }
    }
}

fn bare(answer: &str) -> String {
    let answer = answer.trim_start().to_lowercase();
    let bare = answer.trim_end_matches(|c: char| !c.is_alphanumeric());
    bare.to_owned()
}

/// Whether a person's word asks for a rule in addition to the yes.
pub fn is_always(word: &str) -> bool {
    AnswerWord::of(word) == Some(AnswerWord::Always)
}

/// Whether a person's word declines any dialog.
pub fn is_no(word: &str) -> bool {
    AnswerWord::of(word) == Some(AnswerWord::No)
}

/// The only option with this label. Punctuation at the end of a keyword does not count.
pub(super) fn whole_label(dialog: &Dialog, wanted: &str) -> Option<usize> {
    let exact = wanted.trim().to_lowercase();
    let is = |wanted: &str| position(&dialog.options, |label| label.to_lowercase() == wanted);
    let word = || AnswerWord::of(wanted).and_then(|_| is(&bare(wanted)));
    is(&exact).or_else(word)
}

/// The option with this label, or the only one whose label begins with these words.
pub(super) fn by_label(dialog: &Dialog, wanted: &str) -> Result<usize, NoPick> {
    let none = || NoPick::None(wanted.trim().to_owned());
    if let Some(index) = whole_label(dialog, wanted) {
        return Ok(index);
    }
    let words = wanted.trim().to_lowercase();
    if words.is_empty() || AnswerWord::of(&words).is_some() {
        return Err(none());
    }
    let options = dialog.options.iter().enumerate();
    let mut begun = options.filter(|(_, choice)| begins_with_word(&choice.label, &words));
    let Some((index, choice)) = begun.next() else {
        return Err(none());
    };
    match begun.next() {
        Some(_) => Err(NoPick::Ambiguous(wanted.trim().to_owned())),
        None if needs_whole(dialog, choice) && clause(&choice.label) != words => Err(none()),
        None => Ok(index),
    }
}

/// Whether an option needs its whole label: it may agree to more than the dialog asks.
fn needs_whole(dialog: &Dialog, choice: &Choice) -> bool {
    let agrees = begins_with_word(&choice.label, "yes") || widens(&choice.label);
    dialog.kind != DialogKind::Question && agrees
}

/// A label in lower case, without the explanation that some versions add.
fn clause(label: &str) -> String {
    let label = label.to_lowercase();
    let ends = [" · ", " ("]
        .into_iter()
        .filter_map(|mark| label.find(mark));
    let end = ends.min().unwrap_or(label.len());
    label[..end].to_owned()
}

/// Whether an option says more than yes to this one call. Such an option needs its own label.
pub fn widens(label: &str) -> bool {
    let label = label.to_lowercase();
    WIDENS.iter().any(|more| label.contains(more))
}

/// Whether a yes to a plan only switches to the mode that asks each time: `Yes, and switch to default (ask each time) for this
/// session`.
pub(super) fn leaves_plan(label: &str) -> bool {
    let label = label.to_lowercase();
    let mode = label.strip_prefix("yes, and switch to ");
    let mode = mode.map(|mode| mode.trim_end_matches(" for this session"));
    mode.is_some_and(|mode| ASKING_MODES.contains(&mode))
}

/// Whether a label begins with these whole words.
pub(super) fn begins_with_word(label: &str, word: &str) -> bool {
    let label = label.to_lowercase();
    label
        .strip_prefix(word)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

pub(super) fn position(options: &[Choice], fits: impl Fn(&str) -> bool) -> Option<usize> {
    options.iter().position(|choice| fits(&choice.label))
}
