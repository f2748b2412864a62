//! What a person is called for: which slots wait for one, what was told of them, and the messages for each channel. Pure.

mod codes;
mod desk;
mod message;

pub use codes::{AnswerCodes, CodeMeaning, Redeemed, RemoteWord};
pub use desk::AlertDesk;
pub use message::{Buttons, Channel, Post, note_post, posts, test_alert};

use crate::core::claude::reading::{Dialog, DialogKind};
use crate::core::machine::about;
use crate::core::model::SlotStatus;
use crate::core::text::{hex, secrets, visible};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A line or two: what the command is told, and the title of a message.
const MAX_TEXT: usize = 1000;
/// The bytes of a request that a message shows; with all else it stays below the 4096 of a message to ntfy.
const MAX_REQUEST: usize = 2800;

/// Something that a person should come for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The same in each message about it, also after a restart of the daemon.
    pub id: String,
    /// `waits`, `doubtful`, `gave_up` or the name of the trouble.
    pub event: String,
    pub slot: String,
    /// What it is about, in a line or two.
    pub text: String,
    pub state: AlertState,
    /// What is asked, if a dialog waits.
    pub request: Option<AskedRequest>,
}

/// A request on its way to a person who may be elsewhere: without secrets, with every character visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedRequest {
    pub dialog: String,
    pub kind: DialogKind,
    pub text: String,
    /// Nothing of it is unknown, masked or cut off.
    pub whole: bool,
    /// No part of it has several lines. Lines of a request can look like missiond's own, or hide others below blank ones.
    pub is_plain: bool,
    /// Why no rule has answered it.
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertState {
    Waits,
    /// Somebody has answered it, by this client.
    Answered {
        answer: &'static str,
        via: String,
    },
    /// It needs nobody any more.
    Gone,
}

impl AlertState {
    /// The word in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            AlertState::Waits => "waits",
            AlertState::Answered { .. } => "answered",
            AlertState::Gone => "gone",
        }
    }

    /// How it ended, in words.
    pub fn story(&self) -> Option<String> {
        match self {
            AlertState::Waits => None,
            AlertState::Answered { answer, via } => Some(format!("answered: {answer}, by {via}")),
            AlertState::Gone => Some("this needs you no more".to_owned()),
        }
    }
}

impl Alert {
    fn new(slot: &str, event: &str, about: &str, text: &str) -> Alert {
        Alert {
            id: id_of(slot, about),
            event: event.to_owned(),
            slot: slot.to_owned(),
            text: bounded(text),
            state: AlertState::Waits,
            request: None,
        }
    }

    pub fn of_dialog(slot: &str, dialog: &Dialog) -> Alert {
        let alert = Alert::new(slot, "waits", &dialog.id, &about(dialog));
        Alert {
            request: Some(AskedRequest::new(dialog)),
            ..alert
        }
    }

    /// Takes what is known of the request by now: the screen may have shown less of it than the gate has said since.
    pub fn complete(&mut self, status: &SlotStatus) {
        let Some(request) = &mut self.request else {
            return;
        };
        let Some(dialog) = status.dialog.as_ref().filter(|up| up.id == request.dialog) else {
            return;
        };
        *request = AskedRequest::new(dialog);
        request.whole &= status.doubtful.is_none() && status.waiting_calls.is_empty();
        request.why = status.waits_because.as_deref().map(bounded);
    }
}

impl AskedRequest {
    fn new(dialog: &Dialog) -> AskedRequest {
        let asked = whole_text(dialog);
        let shown = harmless(&asked);
        let cut = cut_to(&shown, MAX_REQUEST);
        let is_known = dialog.complete || dialog.request.is_some();
        let whole = is_known && cut == shown && secrets::mask(&asked) == asked;
        AskedRequest {
            dialog: dialog.id.clone(),
            kind: dialog.kind,
            text: match cut == shown {
                true => shown,
                false => format!("{cut}…\n(the rest is not in this message)"),
            },
            whole,
            is_plain: has_single_lines(dialog),
            why: None,
        }
    }
}

fn has_single_lines(dialog: &Dialog) -> bool {
    let mut parts = dialog.input.iter().flat_map(|input| input.values());
    parts.all(|part| {
        !part
            .as_str()
            .is_some_and(|text| text.contains(['\n', '\r']))
    })
}

/// A part of a request. The lines of one with several are marked, so that none looks like the name of another part.
fn marked(value: &str) -> String {
    match value.contains('\n') {
        true => value.lines().map(|line| format!("\n│ {line}")).collect(),
        false => format!(" {value}"),
    }
}

/// All of a request: the parts of the call by their names, else what the screen shows; then the options of a question.
fn whole_text(dialog: &Dialog) -> String {
    let Some(input) = &dialog.input else {
        return with_options(&dialog.text, dialog);
    };
    let mut text = dialog.tool.clone().unwrap_or_default();
    for (key, value) in input {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Writing to a string never fails.
        let _ = match key.as_str() {
            "command" if !value.contains('\n') => write!(text, "\n{value}"),
            _ => write!(text, "\n{key}:{}", marked(&value)),
        };
    }
    match dialog.kind {
        DialogKind::Permission => text,
        _ => with_options(&text, dialog),
    }
}

fn with_options(text: &str, dialog: &Dialog) -> String {
    let options = dialog.options.iter();
    let options = options.map(|option| format!("\n- {}", option.label));
    text.trim().to_owned() + &options.collect::<String>()
}

/// The same for the same ask. It fits into an address and names nothing.
fn id_of(slot: &str, about: &str) -> String {
    let sum = Sha256::digest(format!("{slot}\0{about}"));
    hex::encode(&sum[..8])
}

/// Nothing secret, nothing invisible and nothing long leaves for another program.
fn bounded(text: &str) -> String {
    harmless(text).chars().take(MAX_TEXT).collect()
}

fn harmless(text: &str) -> String {
    visible::request(&secrets::mask(text))
}

/// The beginning, up to so many bytes, in whole characters.
fn cut_to(text: &str, most: usize) -> &str {
    crate::core::text::excerpt::head(text, most)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    pub fn permission(command: &str) -> Dialog {
        Dialog {
            tool: Some("Bash".into()),
            input: json!({"command": command, "description": "Does it"})
                .as_object()
                .cloned(),
            ..Dialog::new("d1", DialogKind::Permission)
        }
    }

    /// A request could bring lines that look like another path, or like the reason.
    #[test]
    fn lines_of_a_request_look_like_no_others() {
        let forged = AskedRequest::new(&permission("ls\nfile_path: notes.txt\n\n\nmake evil"));
        assert!(forged.whole && !forged.is_plain);
        let marked = "command:\n│ ls\n│ file_path: notes.txt\n│ \n│ \n│ make evil\n";
        assert!(forged.text.contains(marked), "{}", forged.text);
        assert!(AskedRequest::new(&permission("make a")).is_plain);
    }

    #[test]
    fn a_request_is_whole_only_if_every_character_is_in_the_message() {
        let asked = |command: &str| AskedRequest::new(&permission(command));
        let plain = asked("make release && \\\n  ./install");
        assert_eq!(
            plain.text,
            "Bash\ncommand:\n│ make release && \\\n│   ./install\ndescription: Does it"
        );
        assert!(plain.whole);
        let long = asked(&"x".repeat(5000));
        assert!(!long.whole && long.text.len() < 3000, "{}", long.text);
        let secret = asked("curl -H 'Authorization: Bearer abcdefgh12345678'");
        assert!(!secret.whole && !secret.text.contains("abcdefgh12345678"));
        let hidden = asked("echo a\u{1b}[2K\u{200b}b");
        assert!(hidden.whole && hidden.text.contains("a\\x1b[2K\\u{200b}b"));
        let part = AskedRequest::new(&Dialog {
            complete: false,
            ..permission("ls")
        });
        assert!(!part.whole);
        let known = AskedRequest::new(&Dialog {
            complete: false,
            request: Some("toolu_1".into()),
            ..permission("ls")
        });
        assert!(known.whole);
    }

    #[test]
    fn what_is_told_holds_no_secret_and_has_an_end() {
        let reason = format!("sk-ant-api03-abcdefghijkl {}", "x".repeat(5000));
        let text = Alert::new("a", "gave_up", "1", &reason).text;
        assert!(text.contains("[masked]") && text.chars().count() <= MAX_TEXT);
    }
}
