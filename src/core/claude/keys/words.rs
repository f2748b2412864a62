//! What a person's word means, and which label it names.

use super::NoPick;
use crate::core::claude::reading::{Choice, Dialog, DialogKind};

/// A word that has a meaning of its own. It never stands for the beginning of a longer label: `yes` is not short for
/// `Yes, and don't ask again`, nor `n` for `No backups, delete all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Yes,
    No,
    /// Yes, and a rule for the next call.
    Always,
}

impl Word {
    /// In any case, and with any punctuation behind it.
    pub(super) fn of(answer: &str) -> Option<Word> {
        match bare(answer).as_str() {
            "yes" | "y" => Some(Word::Yes),
            "no" | "n" => Some(Word::No),
            "always" => Some(Word::Always),
            _ => None,
        }
    }
}

fn bare(answer: &str) -> String {
    let answer = answer.trim_start().to_lowercase();
    let bare = answer.trim_end_matches(|c: char| !c.is_alphanumeric());
    bare.to_owned()
}

/// Whether a person's word asks for a rule beside the yes.
pub fn is_always(word: &str) -> bool {
    Word::of(word) == Some(Word::Always)
}

/// Whether a person's word declines whatever is asked.
pub fn is_no(word: &str) -> bool {
    Word::of(word) == Some(Word::No)
}

/// The option with this label and no other. Punctuation behind a word that has a meaning does not count.
pub(super) fn whole_label(dialog: &Dialog, wanted: &str) -> Option<usize> {
    let exact = wanted.trim().to_lowercase();
    let is = |wanted: &str| position(&dialog.options, |label| label.to_lowercase() == wanted);
    let word = || Word::of(wanted).and_then(|_| is(&bare(wanted)));
    is(&exact).or_else(word)
}

/// The option whose label this is, or whose label alone begins with these words.
pub(super) fn by_label(dialog: &Dialog, wanted: &str) -> Result<usize, NoPick> {
    let none = || NoPick::None(wanted.trim().to_owned());
    if let Some(index) = whole_label(dialog, wanted) {
        return Ok(index);
    }
    let words = wanted.trim().to_lowercase();
    if words.is_empty() || Word::of(&words).is_some() {
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

/// Whether an option can't be named by the beginning of its label: it may agree to more than is asked.
fn needs_whole(dialog: &Dialog, choice: &Choice) -> bool {
    let agrees = begins_with_word(&choice.label, "yes") || widens(&choice.label);
    dialog.kind != DialogKind::Question && agrees
}

/// A label in small letters, without the explanation that some versions put behind it.
fn clause(label: &str) -> String {
    let label = label.to_lowercase();
    let ends = [" · ", " ("]
        .into_iter()
        .filter_map(|mark| label.find(mark));
    let end = ends.min().unwrap_or(label.len());
    label[..end].to_owned()
}

/// Whether an option says more than yes to this one call. Such an option is chosen only by its own label.
pub fn widens(label: &str) -> bool {
    const MORE: [&str; 10] = [
        "don't ask",
        "don’t ask",
        "allow all",
        "auto mode",
        "auto-accept",
        "accept edits",
        "auto-approve",
        "bypass",
        "always",
        "this session",
    ];
    let label = label.to_lowercase();
    MORE.iter().any(|more| label.contains(more))
}

/// Whether a yes to a plan goes back to the mode that asks each time, and to nothing more:
/// `Yes, and switch to default (ask each time) for this session`.
pub(super) fn leaves_plan(label: &str) -> bool {
    const MODES: [&str; 2] = ["default (ask each time)", "manual (ask each time)"];
    let label = label.to_lowercase();
    let mode = label.strip_prefix("yes, and switch to ");
    let mode = mode.map(|mode| mode.trim_end_matches(" for this session"));
    mode.is_some_and(|mode| MODES.contains(&mode))
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
