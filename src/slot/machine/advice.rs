//! What a person can do about a dialog that is in his way, as the commands to type.

use crate::keys::{self, NoPick};
use crate::reading::{Dialog, DialogKind, Digits};

/// How the dialog is ended, so that what was refused can be tried again.
pub(super) fn to_end(name: &str, dialog: &Dialog) -> String {
    let id = &dialog.id;
    let says_yes = keys::pick(dialog, "yes").is_ok();
    match dialog.kind {
        _ if says_yes => format!("answer it first: missiond confirm {name} yes|no --dialog {id}"),
        _ if dialog.digits == Digits::Write => leave_field(name),
        DialogKind::Other => format!("leave it first, with Esc: missiond interrupt {name}"),
        _ => format!("answer it first: missiond confirm {name} LABEL|no --dialog {id}"),
    }
}

/// What to do after an answer that could not be picked.
pub(super) fn after(error: &NoPick, name: &str, dialog: &Dialog) -> String {
    match error {
        NoPick::Field(_) => leave_field(name),
        NoPick::None(_) | NoPick::Ambiguous(_) => {
            let labels = dialog
                .options
                .iter()
                .map(|choice| format!("`{}`", choice.label));
            format!("the options are {}", labels.collect::<Vec<_>>().join(", "))
        }
    }
}

/// An arrow leaves the field with what stands in it; Esc declines from within.
fn leave_field(name: &str) -> String {
    format!(
        "say no: missiond confirm {name} no; or leave the field and answer again: missiond keys {name} up"
    )
}
