//! Whether two readings show one and the same dialog, drawn for two sizes of the terminal.

use super::Dialog;
use serde_json::{Map, Value};

/// Whether `now` may be the dialog `before`, drawn again for another size. Wrapping moves blanks and breaks labels, and a
/// low screen shows only the lower part; all else must be as it was.
pub(super) fn is_drawn_again(before: &Dialog, now: &Dialog) -> bool {
    if (before.kind, &before.tool) != (now.kind, &now.tool) {
        return false;
    }
    match (&before.input, &now.input) {
        (Some(before), Some(now)) => values(before) == values(now),
        _ => {
            let (before, now) = (squeezed(&before.text), squeezed(&now.text));
            let (long, short) = match before.len() >= now.len() {
                true => (before, now),
                false => (now, before),
            };
            !short.is_empty() && long.ends_with(&short)
        }
    }
}

fn values(input: &Map<String, Value>) -> Vec<(&String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => squeezed(text),
        other => squeezed(&other.to_string()),
    };
    input
        .iter()
        .map(|(key, value)| (key, text(value)))
        .collect()
}

/// The text without blanks, frames and the marker, which stand elsewhere at another size.
fn squeezed(text: &str) -> String {
    let is_moved = |c: &char| c.is_whitespace() || "│❯─╌".contains(*c);
    text.chars().filter(|c| !is_moved(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::DialogKind;
    use serde_json::json;

    fn asks(command: &str, text: &str) -> Dialog {
        Dialog {
            id: String::new(),
            kind: DialogKind::Permission,
            tool: Some("Bash".to_owned()),
            input: json!({ "command": command }).as_object().cloned(),
            text: text.to_owned(),
            options: Vec::new(),
            selected: None,
            complete: true,
            several_rows: false,
            digits: Default::default(),
            request: None,
        }
    }

    #[test]
    fn blanks_may_move_and_nothing_else() {
        let before = asks("touch a b", "Bash\ntouch a b");
        assert!(is_drawn_again(
            &before,
            &asks("touch a\nb", "Bash\ntouch a\nb")
        ));
        assert!(!is_drawn_again(
            &before,
            &asks("touch a c", "Bash\ntouch a c")
        ));
        let other_tool = Dialog {
            tool: None,
            ..before.clone()
        };
        assert!(!is_drawn_again(&before, &other_tool));
    }

    #[test]
    fn a_low_screen_shows_the_lower_part() {
        let before = asks(
            "make a\nmake b",
            "Bash command\n\n make a\n make b\n ❯ 1. Yes",
        );
        let cut = |text: &str| Dialog {
            input: None,
            ..asks("", text)
        };
        assert!(is_drawn_again(&before, &cut(" make b\n❯ 1. Yes")));
        assert!(is_drawn_again(&cut(" make b\n❯ 1. Yes"), &before));
        assert!(!is_drawn_again(&before, &cut(" make c\n❯ 1. Yes")));
        assert!(!is_drawn_again(&before, &cut("")));
    }
}
