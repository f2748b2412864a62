//! What a person can do about a dialog that blocks a request, as commands to type.

use super::Refusal;
use crate::core::claude::keys::{self, Answer, NoPick};
use crate::core::claude::reading::{Dialog, DialogKind, Digits};
use crate::core::model::RpcError;
use crate::core::policy::Verdict;
use crate::core::text::quoting::quoted;

/// How to end the dialog, so that the refused request can be tried again.
pub(super) fn to_end(name: &str, dialog: &Dialog) -> String {
    let id = &dialog.id;
    let says_yes = keys::pick(dialog, "yes").is_ok();
    match dialog.kind {
        DialogKind::Trust if says_yes => {
            format!("if you trust what is in its folder: missiond confirm {name} yes --dialog {id}")
        }
        _ if says_yes => format!("answer it first: missiond confirm {name} yes|no --dialog {id}"),
        _ if dialog.digits == Digits::Write => leave_field(name),
        DialogKind::Other if dialog.options.is_empty() => {
            format!(
                "see what it is: missiond pending {name}; a view is left with Esc: missiond interrupt {name}"
            )
        }
        DialogKind::Other => format!(
            "answer it first: missiond pending {name}; or leave it with Esc: missiond interrupt {name}"
        ),
        _ => format!("answer it first: missiond confirm {name} LABEL|no --dialog {id}"),
    }
}

/// Why an answer matches no option, with the option that was probably meant, and what to do.
pub(super) fn not_picked(error: &NoPick, answer: &Answer, name: &str, dialog: &Dialog) -> RpcError {
    let mut text = error.to_string();
    if let NoPick::None(word) = error
        && let Some(label) = keys::nearest_label(dialog, word)
    {
        text += &format!("; did you mean `{label}`?");
    }
    Refusal::NoSuchOption
        .says(text)
        .next(after(error, answer, name, dialog))
}

fn after(error: &NoPick, answer: &Answer, name: &str, dialog: &Dialog) -> String {
    let own = |words: &str| {
        let (words, id) = (quoted(words), &dialog.id);
        format!("missiond confirm {name} --text {words} --dialog {id}")
    };
    match (error, answer) {
        (NoPick::Field(_), _) => leave_field(name),
        (NoPick::NoText, _) => "say something after --text".to_owned(),
        (NoPick::FreeLine(_), _) => format!("write into it: {}", own("your words")),
        (NoPick::None(word), _) if word.eq_ignore_ascii_case("esc") => {
            let id = &dialog.id;
            let options = options(dialog);
            format!("to leave it: missiond confirm {name} no --dialog {id}; {options}")
        }
        (NoPick::None(_), Answer::Choice(words)) if keys::empty_free_line(dialog).is_some() => {
            format!(
                "{}; to answer in your own words: {}",
                options(dialog),
                own(words)
            )
        }
        (NoPick::None(_) | NoPick::Ambiguous(_) | NoPick::NoFreeLine, _) => options(dialog),
    }
}

/// The options that can be named, as the dialog has them.
fn options(dialog: &Dialog) -> String {
    let free = keys::empty_free_line(dialog);
    let labels = dialog.options.iter().enumerate();
    let labels: Vec<String> = labels
        .filter(|(index, _)| Some(*index) != free)
        .map(|(_, choice)| format!("`{}`", choice.label))
        .collect();
    match labels.is_empty() {
        true => "it has no options; `no` leaves it".to_owned(),
        false => format!("the options are {}", labels.join(", ")),
    }
}

/// An arrow key leaves the field and keeps its text; Esc inside the field declines.
fn leave_field(name: &str) -> String {
    format!(
        "say no: missiond confirm {name} no; or leave the field and answer again: missiond keys {name} up --into-dialog"
    )
}

/// Why a yes against a rule is not pressed, and how to insist.
pub(super) fn against_rule(name: &str, denied: &Verdict) -> RpcError {
    let place = denied.rule.as_ref().map(|rule| {
        let file = rule.file.display();
        format!(" ({} in {file}:{})", rule.text, rule.line)
    });
    let place = place.unwrap_or_default();
    let text = format!(
        "a rule denies this call by now, so nothing was pressed: {}{place}",
        denied.why
    );
    Refusal::AgainstRule.says(text).next(format!(
        "decline it: missiond confirm {name} no; if you still want it: add --against-rule"
    ))
}
