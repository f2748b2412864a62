//! An intention (say this, pick that option, stop) as the bytes of key presses. Pure.

use crate::reading::{Choice, Composer, Dialog, DialogKind};
use unicode_normalization::UnicodeNormalization;

pub const ENTER: &[u8] = b"\r";
pub const ESC: &[u8] = b"\x1b";
pub const UP: &[u8] = b"\x1b[A";
pub const DOWN: &[u8] = b"\x1b[B";
/// Ctrl-C: empties an input box that holds a draft.
pub const CLEAR: &[u8] = b"\x03";

/// Longest message that `send` takes. Claude Code holds a paste in memory several times over; beyond this a
/// file and its name serve better.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// How a message may begin to be more than text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meaning {
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
pub fn message(text: &str, meaning: Meaning) -> Result<String, NotSendable> {
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
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPick {
    #[error("no option of this dialog means `{0}`")]
    None(String),
    #[error("`{0}` fits several options")]
    Ambiguous(String),
}

/// Finds what `yes`, `no` or a label means in this dialog; by label, never by position.
pub fn pick(dialog: &Dialog, answer: &str) -> Result<Pick, NoPick> {
    match answer.to_lowercase().as_str() {
        "yes" | "always" => plain_yes(dialog).ok_or_else(|| NoPick::None(answer.to_owned())),
        "no" => refusal(dialog).ok_or_else(|| NoPick::None(answer.to_owned())),
        "esc" => Ok(Pick::Esc),
        _ => by_label(dialog, answer),
    }
}

/// What a person's answer means, in order. In a question where several can be chosen a label ticks or unticks its
/// row, and labels with commas between them are ticked and submitted; an answer that is no label is written into
/// the free line.
pub fn picks(dialog: &Dialog, answer: &str) -> Result<Vec<Pick>, NoPick> {
    match pick(dialog, answer) {
        Ok(Pick::Option(index)) => Ok(vec![match dialog.options[index].checked {
            Some(checked) => Pick::Tick(index, !checked),
            None => Pick::Option(index),
        }]),
        Ok(pick) => Ok(vec![pick]),
        Err(NoPick::None(_)) if can_tick(dialog) => several(dialog, answer),
        Err(NoPick::None(none)) => free_text(dialog, answer)
            .map(|pick| vec![pick])
            .ok_or(NoPick::None(none)),
        Err(error) => Err(error),
    }
}

fn can_tick(dialog: &Dialog) -> bool {
    dialog.options.iter().any(|choice| choice.checked.is_some())
}

fn several(dialog: &Dialog, answer: &str) -> Result<Vec<Pick>, NoPick> {
    let tick = |label: &str| match by_label(dialog, label)? {
        Pick::Option(index) if dialog.options[index].checked.is_some() => {
            Ok(Pick::Tick(index, true))
        }
        _ => Err(NoPick::None(label.to_owned())),
    };
    let ticks: Result<Vec<Pick>, NoPick> = answer.split(',').map(str::trim).map(tick).collect();
    let button = dialog
        .options
        .iter()
        .position(|choice| choice.number.is_none());
    let button = button.ok_or_else(|| NoPick::None(answer.to_owned()))?;
    ticks.map(|ticks| ticks.into_iter().chain([Pick::Option(button)]).collect())
}

/// The text as it goes into the free line of a question, which nobody has written into yet.
fn free_text(dialog: &Dialog, text: &str) -> Option<Pick> {
    let index = dialog.free_line()?;
    let empty = dialog.options[index].label.starts_with("Type something");
    let text = visible(text).replace(['\n', '\t'], " ").trim().to_owned();
    (empty && !text.is_empty()).then_some(Pick::Text(index, text))
}

/// The one option that says yes to this dialog and to nothing more.
fn plain_yes(dialog: &Dialog) -> Option<Pick> {
    let exact = position(&dialog.options, |label| label.eq_ignore_ascii_case("yes"));
    exact
        .or_else(|| {
            only(&dialog.options, |label| {
                begins_with_word(label, "yes") && !widens(label)
            })
        })
        .map(Pick::Option)
}

/// Esc, or an option that says no. A bare `No` is preferred where a key picks it at once: should the dialog be
/// gone when the key arrives, a digit is a character in a draft, while Esc would stop a turn. Where the dialog does
/// not show all that is asked, somebody may have painted over it, and its numbers are not to be trusted: Esc says no
/// whatever stands where.
fn refusal(dialog: &Dialog) -> Option<Pick> {
    let no = only(&dialog.options, |label| begins_with_word(label, "no"));
    match (no, dialog.kind) {
        (Some(index), DialogKind::Trust | DialogKind::ApiKey) => Some(Pick::Option(index)),
        (Some(index), _) if dialog.complete && is_bare_no(&dialog.options[index]) => {
            Some(Pick::Option(index))
        }
        (_, DialogKind::Trust) => None,
        _ => Some(Pick::Esc),
    }
}

fn is_bare_no(choice: &Choice) -> bool {
    choice.label.eq_ignore_ascii_case("no") && choice.number.is_some()
}

fn by_label(dialog: &Dialog, wanted: &str) -> Result<Pick, NoPick> {
    let wanted_lower = wanted.trim().to_lowercase();
    if let Some(index) = position(&dialog.options, |label| {
        label.to_lowercase() == wanted_lower
    }) {
        return Ok(Pick::Option(index));
    }
    let fits = |choice: &&Choice| choice.label.to_lowercase().starts_with(&wanted_lower);
    match dialog.options.iter().filter(fits).count() {
        0 => Err(NoPick::None(wanted.to_owned())),
        1 => Ok(Pick::Option(
            dialog
                .options
                .iter()
                .position(|c| fits(&c))
                .unwrap_or_default(),
        )),
        _ => Err(NoPick::Ambiguous(wanted.to_owned())),
    }
}

/// Whether an option says more than yes to this one call. Such an option is chosen only by its own label.
pub fn widens(label: &str) -> bool {
    const MORE: [&str; 9] = [
        "don't ask",
        "don’t ask",
        "allow all",
        "auto mode",
        "auto-accept",
        "accept edits",
        "auto-approve",
        "bypass",
        "always",
    ];
    let label = label.to_lowercase();
    MORE.iter().any(|more| label.contains(more))
}

fn begins_with_word(label: &str, word: &str) -> bool {
    let label = label.to_lowercase();
    label
        .strip_prefix(word)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn position(options: &[Choice], fits: impl Fn(&str) -> bool) -> Option<usize> {
    options.iter().position(|choice| fits(&choice.label))
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
pub struct Step {
    pub bytes: Vec<u8>,
    pub name: String,
    pub decides: bool,
}

/// A digit picks a numbered option at once. In an unnumbered menu the marked row is moved one at a time, and
/// Enter comes only when it is seen to stand on the wanted one.
pub fn step_towards(dialog: &Dialog, pick: &Pick) -> Option<Step> {
    let (index, decides) = match pick {
        Pick::Esc => return Some(step(ESC, "Esc", true)),
        Pick::Text(index, text) if dialog.selected == Some(*index) => {
            return write_step(dialog.options.get(*index)?, text);
        }
        Pick::Text(index, _) => (*index, false),
        Pick::Option(index) | Pick::Tick(index, _) => (*index, true),
    };
    let choice = dialog.options.get(index)?;
    if let Some(number) = choice.number.filter(|number| *number <= 9) {
        let digit = number.to_string();
        return Some(step(digit.as_bytes(), &digit, decides));
    }
    let selected = dialog.selected?;
    Some(match selected.cmp(&index) {
        std::cmp::Ordering::Equal => step(ENTER, "Enter", true),
        std::cmp::Ordering::Less => step(DOWN, "Down", false),
        std::cmp::Ordering::Greater => step(UP, "Up", false),
    })
}

/// The text goes into the line first; Enter comes when it is seen to stand there.
fn write_step(line: &Choice, text: &str) -> Option<Step> {
    let written = Composer {
        draft: line.label.clone(),
        menu: false,
    };
    Some(match written.holds(text) {
        true => step(ENTER, "Enter", true),
        false => step(&paste(text), PASTE, false),
    })
}

/// The name of the step that writes a text; it is never taken twice.
pub const PASTE: &str = "paste";

fn step(bytes: &[u8], name: &str, decides: bool) -> Step {
    Step {
        bytes: bytes.to_vec(),
        name: name.to_owned(),
        decides,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(kind: DialogKind, labels: &[&str], numbered: bool) -> Dialog {
        let options = labels.iter().enumerate().map(|(index, label)| Choice {
            label: (*label).to_owned(),
            number: numbered.then_some(index as u32 + 1),
            description: None,
            checked: None,
        });
        Dialog {
            id: "d1".into(),
            kind,
            tool: None,
            input: None,
            text: String::new(),
            options: options.collect(),
            selected: Some(0),
            complete: true,
            several_rows: false,
            request: None,
        }
    }

    const BASH: [&str; 4] = [
        "Yes",
        "Yes, and don't ask again for rm commands in /p",
        "Yes, and switch to auto mode · auto mode handles these prompts for you",
        "No",
    ];

    #[test]
    fn yes_is_the_plain_yes_and_no_is_the_option_that_says_no() {
        let bash = dialog(DialogKind::Permission, &BASH, true);
        assert_eq!(pick(&bash, "yes"), Ok(Pick::Option(0)));
        assert_eq!(pick(&bash, "no"), Ok(Pick::Option(3)));
        assert_eq!(pick(&bash, "always"), Ok(Pick::Option(0)));
    }

    #[test]
    fn the_order_of_the_options_does_not_matter() {
        let turned: Vec<&str> = BASH.iter().rev().copied().collect();
        let bash = dialog(DialogKind::Permission, &turned, true);
        assert_eq!(pick(&bash, "yes"), Ok(Pick::Option(3)));
        assert_eq!(pick(&bash, "no"), Ok(Pick::Option(0)));
    }

    #[test]
    fn a_no_to_a_dialog_that_is_not_whole_trusts_no_number() {
        let painted = Dialog {
            complete: false,
            ..dialog(DialogKind::Permission, &["No", "Yes"], true)
        };
        assert_eq!(pick(&painted, "no"), Ok(Pick::Esc));
    }

    #[test]
    fn a_no_that_opens_a_text_field_is_left_for_esc() {
        let labels = [
            "Yes",
            "Yes, and don't ask again for h",
            "No, and tell Claude what to do differently (esc)",
        ];
        assert_eq!(
            pick(&dialog(DialogKind::Permission, &labels, true), "no"),
            Ok(Pick::Esc)
        );
        let older = [
            "Yes",
            "Yes, allow all edits during this session",
            "Type here to tell Claude what to do differently",
        ];
        assert_eq!(
            pick(&dialog(DialogKind::Permission, &older, true), "no"),
            Ok(Pick::Esc)
        );
    }

    #[test]
    fn trust_is_answered_by_label_whatever_the_default_is() {
        let new = dialog(
            DialogKind::Trust,
            &["No, exit", "Yes, I trust this folder"],
            false,
        );
        assert_eq!(pick(&new, "yes"), Ok(Pick::Option(1)));
        assert_eq!(pick(&new, "no"), Ok(Pick::Option(0)));
        assert_eq!(
            step_towards(&new, &Pick::Option(1)).map(|s| (s.name, s.decides)),
            Some(("Down".into(), false))
        );
        let mut moved = new.clone();
        moved.selected = Some(1);
        assert_eq!(
            step_towards(&moved, &Pick::Option(1)).map(|s| (s.name, s.decides)),
            Some(("Enter".into(), true))
        );
    }

    #[test]
    fn yes_is_refused_where_every_yes_says_more() {
        let labels = [
            "Yes, and auto-accept edits",
            "Yes, and bypass permissions",
            "No",
        ];
        let plan = dialog(DialogKind::Plan, &labels, true);
        assert_eq!(pick(&plan, "yes"), Err(NoPick::None("yes".into())));
        assert_eq!(
            pick(&plan, "Yes, and auto-accept edits"),
            Ok(Pick::Option(0))
        );
    }

    #[test]
    fn yes_to_a_plan_is_the_one_that_keeps_asking() {
        let labels = [
            "Yes, and auto-accept edits",
            "Yes, and manually approve edits",
            "Type here to tell Claude what to change",
        ];
        assert_eq!(
            pick(&dialog(DialogKind::Plan, &labels, true), "yes"),
            Ok(Pick::Option(1))
        );
    }

    #[test]
    fn a_label_may_be_shortened_while_it_is_clear() {
        let ask = dialog(DialogKind::Question, &["Red", "Blue", "Reddish"], true);
        assert_eq!(pick(&ask, "blue"), Ok(Pick::Option(1)));
        assert_eq!(pick(&ask, "red"), Ok(Pick::Option(0)));
        assert_eq!(pick(&ask, "redd"), Ok(Pick::Option(2)));
        assert_eq!(pick(&ask, "re"), Err(NoPick::Ambiguous("re".into())));
        assert_eq!(pick(&ask, "green"), Err(NoPick::None("green".into())));
    }

    #[test]
    fn nothing_in_a_message_acts_as_a_key() {
        let hostile = "a\x1b[201~\r!touch x\r\x03\x04\u{9b}\0";
        let text = message(hostile, Meaning::default()).unwrap();
        assert_eq!(
            text,
            "a\u{241b}[201~\n!touch x\n\u{2403}\u{2404}\u{fffd}\u{2400}"
        );
        let bytes = paste(&text);
        assert_eq!(bytes.iter().filter(|b| **b == 0x1b).count(), 2);
    }

    #[test]
    fn a_text_is_as_claude_code_would_make_it() {
        let text = message(
            "e\u{301} a\u{200b}b\u{202e}c 👩\u{200d}🚀 \\\n\n",
            Meaning::default(),
        )
        .unwrap();
        assert_eq!(text, "\u{e9} abc 👩\u{200d}🚀 \\ ");
    }

    #[test]
    fn a_beginning_that_acts_is_made_text_or_refused() {
        assert_eq!(message("!ls", Meaning::default()).unwrap(), " !ls");
        for completed in ["look at @src", "use /mod", "well :smi"] {
            let sent = message(completed, Meaning::default()).unwrap();
            assert_eq!(sent, format!("{completed} "));
        }
        assert_eq!(
            message(
                "!ls",
                Meaning {
                    shell: true,
                    slash: false
                }
            )
            .unwrap(),
            "!ls"
        );
        assert_eq!(
            message("/exit now", Meaning::default()),
            Err(NotSendable::Slash("/exit".into()))
        );
        assert_eq!(
            message(
                "/clear",
                Meaning {
                    shell: false,
                    slash: true
                }
            )
            .unwrap(),
            "/clear"
        );
        assert_eq!(
            message(" \n\t", Meaning::default()),
            Err(NotSendable::Empty)
        );
    }

    fn toppings() -> Dialog {
        let labels = [
            "Cheese",
            "Ham",
            "Type something",
            "Submit",
            "Chat about this",
        ];
        let mut dialog = dialog(DialogKind::Question, &labels, true);
        for (index, checked) in [false, true, false].into_iter().enumerate() {
            dialog.options[index].checked = Some(checked);
        }
        dialog.options[3].number = None;
        dialog.options[4].number = Some(4);
        dialog
    }

    #[test]
    fn a_label_ticks_and_several_are_submitted() {
        let dialog = toppings();
        assert_eq!(picks(&dialog, "cheese"), Ok(vec![Pick::Tick(0, true)]));
        assert_eq!(picks(&dialog, "Ham"), Ok(vec![Pick::Tick(1, false)]));
        assert_eq!(picks(&dialog, "Submit"), Ok(vec![Pick::Option(3)]));
        let both = [Pick::Tick(0, true), Pick::Tick(1, true), Pick::Option(3)];
        assert_eq!(picks(&dialog, "Cheese, Ham"), Ok(both.to_vec()));
        let none = Err(NoPick::None("Olives".into()));
        assert_eq!(picks(&dialog, "Cheese,Olives"), none);
        let digit = step_towards(&dialog, &Pick::Tick(1, false)).unwrap();
        assert_eq!((digit.name.as_str(), digit.decides), ("2", true));
    }

    #[test]
    fn an_answer_that_is_no_label_is_written_and_seen_before_enter() {
        let labels = ["Small", "Large", "Type something.", "Chat about this"];
        let mut dialog = dialog(DialogKind::Question, &labels, true);
        let pick = Pick::Text(2, "a medium one".into());
        assert_eq!(picks(&dialog, "a medium\none "), Ok(vec![pick.clone()]));
        let step = |dialog: &Dialog| {
            let step = step_towards(dialog, &pick).unwrap();
            (step.name, step.decides)
        };
        assert_eq!(step(&dialog), ("3".into(), false));
        dialog.selected = Some(2);
        assert_eq!(step(&dialog), ("paste".into(), false));
        dialog.options[2].label = "a medium one".into();
        assert_eq!(step(&dialog), ("Enter".into(), true));
        dialog.kind = DialogKind::Permission;
        assert_eq!(picks(&dialog, "text"), Err(NoPick::None("text".into())));
    }
}
