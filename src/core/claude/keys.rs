//! An intention (say this, pick that option, stop) as the bytes of key presses. Pure.

use crate::core::claude::reading::{Choice, Composer, Dialog, DialogKind, Digits};
use crate::core::text::diagnostic::nearest;
use crate::core::text::excerpt;
use unicode_normalization::UnicodeNormalization;

pub const ENTER: &[u8] = b"\r";
pub const ESC: &[u8] = b"\x1b";
pub const UP: &[u8] = b"\x1b[A";
pub const DOWN: &[u8] = b"\x1b[B";
/// Ctrl-C: empties an input box that holds a draft.
pub const CLEAR: &[u8] = INTERRUPT;
/// Ctrl-C, which a terminal turns into an interrupt of the command in front.
pub const INTERRUPT: &[u8] = b"\x03";

/// Longest message that `send` takes. Claude Code holds a paste in memory several times over; beyond this a
/// file and its name serve better.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// How a message may begin to be more than text.
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

/// The text as it will stand in the input box: nothing in it acts as a key.
///
/// Line ends become LF; every other control character becomes its visible picture, so that an embedded end of
/// a bracketed paste is text like any other. Letters are composed and invisible characters left out, as Claude
/// Code itself does, but before it looks at them. A leading `!` or `#` gets a space before it unless it is meant,
/// and so do a last `\`, behind it, where Enter would only break the line, and a last word for which Claude Code
/// offers a menu, where Enter would pick from it. That blank is not sent, but at the end of a long paste and by 2.0.
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

/// Whether the last word may open a menu: of files (`@src`), commands (`/mod`) or signs (`:smi`).
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

/// Marks that show nothing and can make a text read as another. The joiner inside emoji is none of them.
fn is_invisible(c: char) -> bool {
    // Those that Claude Code leaves out itself, and those that it takes and does not draw.
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

/// How a dialog is to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// The option at this index, whose label was checked.
    Option(usize),
    /// A tick at this index, or none.
    Tick(usize, bool),
    /// This text in the free line at this index.
    Text(usize, String),
    Esc,
}

impl Pick {
    /// What the person chose, in the dialog's own words.
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
    /// `yes`, `no`, `always`, or the label of an option; several labels with commas between them.
    Choice(String),
    /// Words of the person's own, for the free line of a question.
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

/// Finds what a word of its own meaning or a label picks in this dialog; by label, never by position. `always` has a
/// meaning only where permission is asked for: a rule is added for what was allowed. At a question, and at a dialog that is
/// not a known one, a yes is a whole label or nothing: there is no telling what a longer label agrees to.
pub fn pick(dialog: &Dialog, answer: &str) -> Result<Pick, NoPick> {
    let asks_permission = dialog.kind == DialogKind::Permission;
    let has_plain_yes = !matches!(dialog.kind, DialogKind::Question | DialogKind::Other);
    let none = || NoPick::None(answer.trim().to_owned());
    match Word::of(answer) {
        Some(Word::No) => return no(dialog, answer).ok_or_else(none),
        Some(Word::Yes) if has_plain_yes => plain_yes(dialog).ok_or_else(none),
        Some(Word::Always) if asks_permission => plain_yes(dialog).ok_or_else(none),
        _ => by_label(dialog, answer).map(Pick::Option),
    }
    .and_then(|pick| beside_field(dialog, pick))
    .map(|pick| match begins_with_word(pick.label(dialog), "no") {
        true if is_declined_by_esc(dialog) => Pick::Esc,
        _ => pick,
    })
}

/// A no declines. Only `n` may be the name of an answer to a question.
fn no(dialog: &Dialog, answer: &str) -> Option<Pick> {
    let is_question = dialog.kind == DialogKind::Question;
    let named = whole_label(dialog, answer)
        .filter(|index| is_question && !begins_with_word(&dialog.options[*index].label, "no"));
    let named = named.and_then(|index| beside_field(dialog, Pick::Option(index)).ok());
    named.or_else(|| refusal(dialog))
}

/// Somebody writes into an option: what they say there is theirs to end. Only the free line of a question, which stands
/// beside the answers and is none of them, is left for another row.
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

/// What a person's answer means, in order. In a question where several can be chosen a label ticks or unticks its
/// row, and labels with commas between them are ticked and submitted. A word that is no option picks nothing: a
/// person who mistyped a label must not answer with the mistyped word.
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

/// The option that a word was probably meant for: one letter of a short label is wrong, or a few of a long one. The
/// front of a label is enough, but not where the option allows more than it was asked for.
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
        // One wrong letter is half of it: the first one must be right.
        2 => nearest(word, whole.filter(|label| first(label) == first(word))),
        _ => nearest(word, whole).or_else(by_front),
    }
}

fn can_tick(dialog: &Dialog) -> bool {
    dialog.options.iter().any(|choice| choice.checked.is_some())
}

/// Whether an answer may name several rows. A label that is said whole is one row, whatever commas it has.
fn is_list(dialog: &Dialog, answer: &str) -> bool {
    can_tick(dialog) && answer.contains(',') && whole_label(dialog, answer).is_none()
}

/// Labels with commas between them. A label may have commas of its own, so an answer is read in every way in which it
/// is a list of labels; as whole ones if it can be. One that can be read in two ways is refused.
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

/// Why a list can't be read: the part that is nearly a label, else the first that is none.
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

/// What ends a question where several can be ticked.
fn button(dialog: &Dialog) -> Option<Pick> {
    let mut choices = dialog.options.iter();
    choices
        .position(|choice| choice.number.is_none())
        .map(Pick::Option)
}

/// The person's own words, written into the free line; where several can be chosen all is submitted then.
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

/// The free line of a question, if nobody has written into it yet.
pub fn empty_free_line(dialog: &Dialog) -> Option<usize> {
    let is_empty = |index: &usize| dialog.options[*index].label.starts_with("Type something");
    dialog.free_line().filter(is_empty)
}

/// The one option that says yes to this dialog and to nothing more. Where permission is asked for it is the first one:
/// a yes in another place was painted. Where a plan is shown, it may also be the only yes that there is, if what it switches
/// to is the mode that asks each time: no mode but plan mode itself allows less.
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

/// Whether the options of a permission dialog or of a plan stand in the order that every version has. Labels in another order
/// were painted, and a key would reach another option than the one that is read. Someone who writes into an option changes
/// its label.
pub fn in_known_order(dialog: &Dialog) -> bool {
    let of_call = matches!(dialog.kind, DialogKind::Permission | DialogKind::Plan);
    if !of_call || dialog.digits == Digits::Write || dialog.options.is_empty() {
        return true;
    }
    let says_yes = |choice: &Choice| begins_with_word(&choice.label, "yes");
    let yes = dialog.options.iter().take_while(|choice| says_yes(choice));
    let (yes, rest) = dialog.options.split_at(yes.count());
    let mut numbered = dialog.options.iter().zip(1..);
    // A screen that is too low may end before the no.
    numbered.all(|(choice, number)| choice.number == Some(number))
        && (rest.len() == 1 || rest.is_empty() && !dialog.complete)
        && match dialog.kind {
            DialogKind::Permission => asks_in_order(yes),
            _ => plan_in_order(yes),
        }
}

/// For a permission: a plain yes, then what allows more.
fn asks_in_order(yes: &[Choice]) -> bool {
    let says_more = |choice: &Choice| widens(&choice.label);
    yes.split_first()
        .is_some_and(|(first, more)| !says_more(first) && more.iter().all(says_more))
}

/// For a plan: what allows more, then the yes with which each edit is asked about; or one yes, which allows no more.
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

/// Esc, or an option that says no. Where permission is asked for, a plan shown or a folder to be trusted, it is Esc, whatever
/// the options seem to be: a process that writes to the terminal can paint a no over the yes. Elsewhere a bare `No` is an answer of its own, if
/// the dialog shows all that is asked and a key picks it at once.
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

/// Whether what was picked, by whomever, says no to the dialog.
pub fn declines(dialog: &Dialog, picked: &Pick) -> bool {
    let no = only(&dialog.options, |label| begins_with_word(label, "no"));
    *picked == Pick::Esc
        || pick(dialog, "no").as_ref() == Ok(picked)
        || is_declined_by_esc(dialog) && no.map(Pick::Option).as_ref() == Some(picked)
}

fn is_bare_no(choice: &Choice) -> bool {
    choice.label.eq_ignore_ascii_case("no") && choice.number.is_some()
}

/// The index of the option that fits, if exactly one does.
fn only(options: &[Choice], fits: impl Fn(&str) -> bool) -> Option<usize> {
    let mut found = options
        .iter()
        .enumerate()
        .filter(|(_, choice)| fits(&choice.label));
    let first = found.next()?;
    found.next().is_none().then_some(first.0)
}

/// The next key on the way to an option, and whether it is the one that decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStep {
    pub bytes: Vec<u8>,
    pub name: String,
    pub decides: bool,
}

/// A digit picks a numbered option at once. In an unnumbered menu, and where a digit does something else, the marked
/// row is moved one at a time, and Enter comes only when it is seen to stand on the wanted one.
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
    // On a line that can be ticked the digit ticks it, and does not go there.
    let goes_there = dialog.digits == Digits::Pick && (decides || choice.checked.is_none());
    if let Some(number) = choice.number.filter(|number| *number <= 9 && goes_there) {
        let digit = number.to_string();
        return Some(step(digit.as_bytes(), &digit, decides));
    }
    let selected = dialog.selected?;
    Some(match selected.cmp(&index) {
        // Enter would send off what stands in the field.
        std::cmp::Ordering::Equal if dialog.digits == Digits::Write => return None,
        std::cmp::Ordering::Equal => step(ENTER, "Enter", true),
        std::cmp::Ordering::Less => step(DOWN, "Down", false),
        std::cmp::Ordering::Greater => step(UP, "Up", false),
    })
}

/// The text goes into the line first; Enter comes when it is seen to stand there.
fn write_step(line: &Choice, text: &str) -> Option<KeyStep> {
    Some(match (is_written(line, text), line.checked) {
        (false, _) => step(&paste(text), PASTE, false),
        // Where several can be chosen the line only gets its tick, if writing has not set it.
        (true, Some(_)) => step(ENTER, "Enter", false),
        (true, None) => step(ENTER, "Enter", true),
    })
}

impl Pick {
    /// Whether it is seen to be done, in a dialog that stays up: a tick is there, and a text of its own with it.
    /// Anything else is done when the dialog is gone.
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

/// The name of the step that writes a text; it is never taken twice.
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
use words::{Word, begins_with_word, by_label, position, whole_label};
pub use words::{is_always, is_no, widens};
#[cfg(test)]
mod tests;
