//! Turns an intention (send this, pick that option, stop) into the bytes of key presses. Pure.

use crate::core::claude::reading::{Choice, Composer, Dialog, DialogKind, Digits};
use crate::core::text::diagnostic::nearest;
use crate::core::text::excerpt;
use unicode_normalization::UnicodeNormalization;

pub const ENTER: &[u8] = b"\r";
pub const ESC: &[u8] = b"\x1b";
pub const UP: &[u8] = b"\x1b[A";
pub const DOWN: &[u8] = b"\x1b[B";
/// Ctrl-C: clears a draft in the input box.
pub const CLEAR: &[u8] = INTERRUPT;
/// Ctrl-C, which a terminal turns into an interrupt of the foreground command.
pub const INTERRUPT: &[u8] = b"\x03";

/// The longest message that `send` accepts. Claude Code holds several copies of a paste in memory; for more text, send the name
/// of a file.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// Prefixes with a special meaning that the sender permits.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyMeaning {
    /// `!` runs a shell command.
    pub shell: bool,
    /// `/` runs a command of Claude Code.
    pub slash: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSendable {
    #[error("the message is empty")]
    Empty,
    #[error("the message has {0} bytes; the most is {MAX_MESSAGE}")]
    TooLong(usize),
    #[error("`{0}` would run a command of Claude Code")]
    Slash(String),
}

/// The text as it will be in the input box: no part of it acts as a key.
///
/// Line ends become LF; every other control character becomes its visible picture, so that an embedded end of a bracketed paste
/// is ordinary text. Letters are composed and invisible characters removed, as Claude Code itself does, but before the checks. A
/// leading `!` or `#` gets a space before it unless the sender means it. A space also follows a final `\`, after which Enter
/// would only break the line, and a final word for which Claude Code offers a menu, from which Enter would pick. That space is
/// not sent, except at the end of a long paste and by 2.0.
pub fn message(text: &str, meaning: KeyMeaning) -> Result<String, NotSendable> {
    if text.len() > MAX_MESSAGE {
        return Err(NotSendable::TooLong(text.len()));
    }
    let clean = visible(text);
    let clean = clean.trim_end();
    match clean.trim_start().chars().next() {
        None => return Err(NotSendable::Empty),
        Some('/') if !meaning.slash => return Err(NotSendable::Slash(first_word(clean))),
        _ => {}
    }
    let acts = match clean.chars().next() {
        Some('!') => !meaning.shell,
        Some('#') => true,
        _ => false,
    };
    let before = if acts { " " } else { "" };
    let after = match clean.ends_with('\\') || is_completed(clean) && !meaning.slash {
        true => " ",
        false => "",
    };
    Ok(format!("{before}{clean}{after}"))
}

/// Whether the last word may open a menu: of files (`@src`), commands (`/mod`) or emoji (`:smi`).
fn is_completed(text: &str) -> bool {
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    last.contains(['@', '/', ':'])
}

fn first_word(text: &str) -> String {
    text.split_whitespace()
        .next()
        .unwrap_or_default()
        .chars()
        .take(40)
        .collect()
}

/// Control characters as pictures, line ends as LF.
fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.nfc()
        .filter(|c| !is_invisible(*c))
        .map(|c| match c {
            '\n' | '\t' => c,
            '\0'..='\x1f' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
            '\x7f' => '\u{2421}',
            '\u{80}'..='\u{9f}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Invisible marks that can make a text read as another. The joiner inside emoji is not one of them.
fn is_invisible(c: char) -> bool {
    // Those that Claude Code removes itself, and those that it accepts but does not draw.
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A bracketed paste. The text must come from [`message`].
pub fn paste(message: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + 12);
    bytes.extend_from_slice(b"\x1b[200~");
    bytes.extend_from_slice(message.as_bytes());
    bytes.extend_from_slice(b"\x1b[201~");
    bytes
}

/// How to answer a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// The option at this index, whose label was checked.
    Option(usize),
    /// Set or clear the tick at this index.
    Tick(usize, bool),
    /// This text in the text field at this index.
    Text(usize, String),
    Esc,
}

impl Pick {
    /// The person's choice, by the dialog's own label.
    pub fn label<'a>(&'a self, dialog: &'a Dialog) -> &'a str {
        match self {
            Pick::Esc => "Esc",
            Pick::Text(_, text) => text,
            Pick::Option(index) | Pick::Tick(index, _) => dialog
                .options
                .get(*index)
                .map_or("?", |choice| &choice.label),
        }
    }
}

/// A person's answer to a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// `yes`, `no`, `always`, or the label of an option; several labels separated by commas.
    Choice(String),
    /// Free text, for the text field of a question.
    Words(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPick {
    #[error("no option of this dialog means `{0}`")]
    None(String),
    #[error("`{0}` is the line for words of your own")]
    FreeLine(String),
    #[error("this dialog has no empty line for words of your own")]
    NoFreeLine,
    #[error("the text is empty")]
    NoText,
    #[error("`{0}` fits several options")]
    Ambiguous(String),
    #[error("the cursor stands in the text field of `{0}`, where a key would only be written")]
    Field(String),
}

/// Finds the option that a keyword or a label picks in this dialog; by label, never by position. `always` has a meaning only for
/// permission dialogs: it adds a rule for the allowed call. At a question or an unknown dialog, `yes` must be a whole label: a
/// longer label may agree to anything.
pub fn pick(dialog: &Dialog, answer: &str) -> Result<Pick, NoPick> {
    let asks_permission = dialog.kind == DialogKind::Permission;
    let has_plain_yes = !matches!(dialog.kind, DialogKind::Question | DialogKind::Other);
    let none = || NoPick::None(answer.trim().to_owned());
    match AnswerWord::of(answer) {
        Some(AnswerWord::No) => return no(dialog, answer).ok_or_else(none),
        Some(AnswerWord::Yes) if has_plain_yes => plain_yes(dialog).ok_or_else(none),
        Some(AnswerWord::Always) if asks_permission => plain_yes(dialog).ok_or_else(none),
        _ => by_label(dialog, answer).map(Pick::Option),
    }
    .and_then(|pick| beside_field(dialog, pick))
    .map(|pick| match begins_with_word(pick.label(dialog), "no") {
        true if is_declined_by_esc(dialog) => Pick::Esc,
        _ => pick,
    })
}

/// A no declines. Only `n` may be the label of an answer to a question.
fn no(dialog: &Dialog, answer: &str) -> Option<Pick> {
    let is_question = dialog.kind == DialogKind::Question;
    let named = whole_label(dialog, answer)
        .filter(|index| is_question && !begins_with_word(&dialog.options[*index].label, "no"));
    let named = named.and_then(|index| beside_field(dialog, Pick::Option(index)).ok());
    named.or_else(|| refusal(dialog))
}

/// If somebody writes into an option, missiond does not leave that field for them. Only the text field of a question, which is
/// separate from the answers, may be left for another row.
fn beside_field(dialog: &Dialog, pick: Pick) -> Result<Pick, NoPick> {
    let writes = dialog.digits == Digits::Write;
    let may_leave = dialog.kind == DialogKind::Question
        && dialog.selected.map(Pick::Option).as_ref() != Some(&pick);
    match dialog.selected {
        Some(field) if writes && !may_leave => {
            let field = Pick::Option(field);
            let label = field.label(dialog);
            Err(NoPick::Field(excerpt::head(label, 80).to_owned()))
        }
        _ => Ok(pick),
    }
}

/// The picks for a person's answer, in order. In a question with several choices a label ticks or unticks its row, and labels
/// separated by commas are ticked and submitted. An unknown word picks nothing: a mistyped label must not become the answer.
pub fn picks(dialog: &Dialog, answer: &Answer) -> Result<Vec<Pick>, NoPick> {
    let word = match answer {
        Answer::Words(text) => return own_words(dialog, text),
        Answer::Choice(word) => word,
    };
    if is_list(dialog, word) {
        return several(dialog, word);
    }
    match pick(dialog, word)? {
        Pick::Option(index) if empty_free_line(dialog) == Some(index) => {
            Err(NoPick::FreeLine(dialog.options[index].label.clone()))
        }
        Pick::Option(index) => Ok(vec![toggled(dialog, index)]),
        pick => Ok(vec![pick]),
    }
}

fn toggled(dialog: &Dialog, index: usize) -> Pick {
    match dialog.options[index].checked {
        Some(checked) => Pick::Tick(index, !checked),
        None => Pick::Option(index),
    }
}

/// The option that a word was probably meant for: one letter of a short label is wrong, or a few of a long one. The beginning of
/// a label is enough, unless the option allows more than the dialog asks for.
pub fn nearest_label<'a>(dialog: &'a Dialog, word: &str) -> Option<&'a str> {
    let word = word.trim();
    let length = word.chars().count();
    let free = empty_free_line(dialog);
    let labels = dialog.options.iter().enumerate();
    let labels: Vec<&str> = labels
        .filter(|(index, choice)| Some(*index) != free && !choice.label.eq_ignore_ascii_case(word))
        .map(|(_, choice)| choice.label.as_str())
        .collect();
    let front = |label: &'a str| match label.char_indices().nth(length) {
        Some((end, _)) => &label[..end],
        None => label,
    };
    let by_front = || {
        let narrow = labels.iter().filter(|label| !widens(label));
        let near = nearest(word, narrow.clone().map(|label| front(label)))?;
        narrow.copied().find(|label| front(label) == near)
    };
    let first = |text: &str| text.chars().flat_map(char::to_lowercase).next();
    let whole = labels.iter().copied();
    match length {
        0 | 1 => None,
        // One wrong letter is half of it, so the first one must be right.
        2 => nearest(word, whole.filter(|label| first(label) == first(word))),
        _ => nearest(word, whole).or_else(by_front),
    }
}

fn can_tick(dialog: &Dialog) -> bool {
    dialog.options.iter().any(|choice| choice.checked.is_some())
}

/// Whether an answer may name several rows. A complete label is one row, even if it contains commas.
fn is_list(dialog: &Dialog, answer: &str) -> bool {
    can_tick(dialog) && answer.contains(',') && whole_label(dialog, answer).is_none()
}

/// Labels separated by commas. A label may contain commas, so an answer is read in every way in which it is a list of labels;
/// whole labels are preferred. An ambiguous answer is refused.
fn several(dialog: &Dialog, answer: &str) -> Result<Vec<Pick>, NoPick> {
    let can_be_ticked = |index: &usize| {
        empty_free_line(dialog) != Some(*index) && dialog.options[*index].checked.is_some()
    };
    let whole = |words: &str| whole_label(dialog, words).filter(can_be_ticked);
    let short = |words: &str| by_label(dialog, words).ok().filter(can_be_ticked);
    let parts: Vec<&str> = answer.split(',').collect();
    let commas = |choice: &Choice| choice.label.matches(',').count();
    let longest = 1 + dialog.options.iter().map(commas).max().unwrap_or_default();
    let read = match list::readings(&parts, longest, whole) {
        list::Readings::None => list::readings(&parts, longest, short),
        read => read,
    };
    match read {
        list::Readings::One(rows) if rows.len() == 1 => {
            beside_field(dialog, Pick::Option(rows[0]))?;
            Ok(vec![toggled(dialog, rows[0])])
        }
        list::Readings::One(rows) => {
            let button = button(dialog).ok_or_else(|| NoPick::None(answer.to_owned()))?;
            let ticks = rows.into_iter().map(|index| Pick::Tick(index, true));
            Ok(ticks.chain([button]).collect())
        }
        list::Readings::Many => Err(NoPick::Ambiguous(answer.trim().to_owned())),
        list::Readings::None => Err(wrong_part(dialog, &parts, longest)),
    }
}

/// Why a list can't be read: the part that is nearly a label, otherwise the first part that is not a label.
fn wrong_part(dialog: &Dialog, parts: &[&str], longest: usize) -> NoPick {
    let near = list::runs(parts, longest)
        .find(|words| by_label(dialog, words).is_err() && nearest_label(dialog, words).is_some());
    if let Some(words) = near {
        return NoPick::None(words);
    }
    let wrong = parts
        .iter()
        .find_map(|part| match by_label(dialog, part.trim()) {
            Ok(index) if empty_free_line(dialog) == Some(index) => {
                Some(NoPick::FreeLine(dialog.options[index].label.clone()))
            }
            Ok(index) if dialog.options[index].checked.is_some() => None,
            Ok(_) => Some(NoPick::None(part.trim().to_owned())),
            Err(error) => Some(error),
        });
    wrong.unwrap_or_else(|| NoPick::None(parts.join(",").trim().to_owned()))
}

/// The button that submits a question with several choices.
fn button(dialog: &Dialog) -> Option<Pick> {
    let mut choices = dialog.options.iter();
    choices
        .position(|choice| choice.number.is_none())
        .map(Pick::Option)
}

/// The person's free text, written into the text field; a question with several choices is then submitted.
fn own_words(dialog: &Dialog, text: &str) -> Result<Vec<Pick>, NoPick> {
    let line = empty_free_line(dialog).ok_or(NoPick::NoFreeLine)?;
    let text = visible(text).replace(['\n', '\t'], " ").trim().to_owned();
    if text.is_empty() {
        return Err(NoPick::NoText);
    }
    let words = Pick::Text(line, text);
    Ok(match can_tick(dialog) {
        true => vec![words, button(dialog).ok_or(NoPick::NoFreeLine)?],
        false => vec![words],
    })
}

/// The text field of a question, if it is empty.
pub fn empty_free_line(dialog: &Dialog) -> Option<usize> {
    let is_empty = |index: &usize| dialog.options[*index].label.starts_with("Type something");
    dialog.free_line().filter(is_empty)
}

/// The one option that says yes to this dialog and to nothing more. In a permission dialog it is the first one: a yes in another
/// position was painted. For a plan it may also be the only yes, if it switches to the mode that asks each time: only plan mode
/// itself allows less.
fn plain_yes(dialog: &Dialog) -> Option<Pick> {
    let asks_permission = dialog.kind == DialogKind::Permission;
    let is_first = |index: &usize| *index == 0 && dialog.options[0].number == Some(1);
    let exact = position(&dialog.options, |label| label.eq_ignore_ascii_case("yes"));
    let says_no_more = |label: &str| begins_with_word(label, "yes") && !widens(label);
    exact
        .or_else(|| only(&dialog.options, says_no_more))
        .or_else(|| {
            let only_yes = only(&dialog.options, |label| begins_with_word(label, "yes"));
            only_yes.filter(|index| {
                dialog.kind == DialogKind::Plan && leaves_plan(&dialog.options[*index].label)
            })
        })
        .filter(|index| !asks_permission || is_first(index))
        .map(Pick::Option)
}

/// Whether the options of a permission dialog or of a plan are in the order that every version has. Labels in another order were
/// painted, and a key would reach another option than the one on the screen. Text that somebody writes into an option changes its
/// label.
pub fn in_known_order(dialog: &Dialog) -> bool {
    let of_call = matches!(dialog.kind, DialogKind::Permission | DialogKind::Plan);
    if !of_call || dialog.digits == Digits::Write || dialog.options.is_empty() {
        return true;
    }
    let says_yes = |choice: &Choice| begins_with_word(&choice.label, "yes");
    let yes = dialog.options.iter().take_while(|choice| says_yes(choice));
    let (yes, rest) = dialog.options.split_at(yes.count());
    let mut numbered = dialog.options.iter().zip(1..);
    // A screen with too few rows may end before the no.
    numbered.all(|(choice, number)| choice.number == Some(number))
        && (rest.len() == 1 || rest.is_empty() && !dialog.complete)
        && match dialog.kind {
            DialogKind::Permission => asks_in_order(yes),
            _ => plan_in_order(yes),
        }
}

/// For a permission: a plain yes, then options that allow more.
fn asks_in_order(yes: &[Choice]) -> bool {
    let says_more = |choice: &Choice| widens(&choice.label);
    yes.split_first()
        .is_some_and(|(first, more)| !says_more(first) && more.iter().all(says_more))
}

/// For a plan: options that allow more, then the yes that asks about each edit; or a single yes, which allows no more.
fn plan_in_order(yes: &[Choice]) -> bool {
    let says_more = |choice: &Choice| widens(&choice.label) && !leaves_plan(&choice.label);
    yes.split_last().is_some_and(|(last, more)| {
        let is_one_of_several = last.label.to_lowercase().contains("manually");
        !says_more(last) && more.iter().all(says_more) && is_one_of_several != more.is_empty()
    })
}

/// Whether every option that says no is pressed as Esc.
fn is_declined_by_esc(dialog: &Dialog) -> bool {
    matches!(dialog.kind, DialogKind::Permission | DialogKind::Trust)
}

/// Esc, or an option that says no. For a permission, a plan or the trust question it is always Esc, whatever the options seem to
/// be: a process that writes to the terminal can paint a no over the yes. In other dialogs a plain `No` is an answer, if the
/// dialog is complete and one key picks it.
fn refusal(dialog: &Dialog) -> Option<Pick> {
    let no = only(&dialog.options, |label| begins_with_word(label, "no"));
    match (no, dialog.kind) {
        (Some(index), DialogKind::ApiKey) => Some(Pick::Option(index)),
        (_, DialogKind::Permission | DialogKind::Plan | DialogKind::Trust) => Some(Pick::Esc),
        (Some(index), _)
            if dialog.complete
                && dialog.digits == Digits::Pick
                && is_bare_no(&dialog.options[index]) =>
        {
            Some(Pick::Option(index))
        }
        _ => Some(Pick::Esc),
    }
}

/// Whether the picked option says no to the dialog.
pub fn declines(dialog: &Dialog, picked: &Pick) -> bool {
    let no = only(&dialog.options, |label| begins_with_word(label, "no"));
    *picked == Pick::Esc
        || pick(dialog, "no").as_ref() == Ok(picked)
        || is_declined_by_esc(dialog) && no.map(Pick::Option).as_ref() == Some(picked)
}

fn is_bare_no(choice: &Choice) -> bool {
    choice.label.eq_ignore_ascii_case("no") && choice.number.is_some()
}

/// The index of the option that matches, if exactly one does.
fn only(options: &[Choice], fits: impl Fn(&str) -> bool) -> Option<usize> {
    let mut found = options
        .iter()
        .enumerate()
        .filter(|(_, choice)| fits(&choice.label));
    let first = found.next()?;
    found.next().is_none().then_some(first.0)
}

/// The next key on the way to an option, and whether it decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStep {
    pub bytes: Vec<u8>,
    pub name: String,
    pub decides: bool,
}

/// A digit picks a numbered option at once. In an unnumbered menu, or if a digit does something else, the marked row is moved
/// step by step, and Enter follows only when the wanted row is marked on the screen.
pub fn step_towards(dialog: &Dialog, pick: &Pick) -> Option<KeyStep> {
    let (index, decides) = match pick {
        Pick::Esc => return Some(step(ESC, "Esc", true)),
        Pick::Text(index, text) if dialog.selected == Some(*index) => {
            return write_step(dialog.options.get(*index)?, text);
        }
        Pick::Text(index, _) => (*index, false),
        Pick::Option(index) | Pick::Tick(index, _) => (*index, true),
    };
    let choice = dialog.options.get(index)?;
    // On a row with a tick box the digit sets the tick and does not move there.
    let goes_there = dialog.digits == Digits::Pick && (decides || choice.checked.is_none());
    if let Some(number) = choice.number.filter(|number| *number <= 9 && goes_there) {
        let digit = number.to_string();
        return Some(step(digit.as_bytes(), &digit, decides));
    }
    let selected = dialog.selected?;
    Some(match selected.cmp(&index) {
        // Enter would submit the text in the field.
        std::cmp::Ordering::Equal if dialog.digits == Digits::Write => return None,
        std::cmp::Ordering::Equal => step(ENTER, "Enter", true),
        std::cmp::Ordering::Less => step(DOWN, "Down", false),
        std::cmp::Ordering::Greater => step(UP, "Up", false),
    })
}

/// The text goes into the field first; Enter follows when the text is visible there.
fn write_step(line: &Choice, text: &str) -> Option<KeyStep> {
    Some(match (is_written(line, text), line.checked) {
        (false, _) => step(&paste(text), PASTE, false),
        // In a question with several choices Enter only sets the tick of the row, if writing has not set it.
        (true, Some(_)) => step(ENTER, "Enter", false),
        (true, None) => step(ENTER, "Enter", true),
    })
}

impl Pick {
    /// Whether the screen shows the effect in a dialog that stays up: the tick is set, and the text is there. Any other pick is
    /// done when the dialog is gone.
    pub fn is_done(&self, dialog: &Dialog) -> bool {
        let choice = |index: &usize| dialog.options.get(*index);
        match self {
            Pick::Tick(index, wanted) => {
                choice(index).is_some_and(|choice| choice.checked == Some(*wanted))
            }
            Pick::Text(index, text) => choice(index)
                .is_some_and(|choice| choice.checked == Some(true) && is_written(choice, text)),
            Pick::Option(_) | Pick::Esc => false,
        }
    }
}

fn is_written(line: &Choice, text: &str) -> bool {
    let draft = line.label.clone();
    Composer { draft, menu: false }.holds(text)
}

/// The name of the step that writes a text; it is never done twice.
pub const PASTE: &str = "paste";

fn step(bytes: &[u8], name: &str, decides: bool) -> KeyStep {
    KeyStep {
        bytes: bytes.to_vec(),
        name: name.to_owned(),
        decides,
    }
}

mod list;
mod words;
use words::leaves_plan;
use words::{AnswerWord, begins_with_word, by_label, position, whole_label};
pub use words::{is_always, is_no, widens};
#[cfg(test)]
mod tests;
