//! Whether two readings show one and the same dialog, drawn for two sizes of the terminal.

use super::Dialog;
use serde_json::{Map, Value};

/// Whether `now` may be the dialog `before`, drawn again for another size. Wrapping moves blanks and breaks labels, and a
/// low screen shows only the lower part; all else must be as it was.
pub(super) fn is_drawn_again(before: &Dialog, now: &Dialog) -> bool {
    // The title, which names the tool, may be off the screen.
    let tools = before.tool.as_ref().zip(now.tool.as_ref());
    if before.kind != now.kind || tools.is_some_and(|(before, now)| before != now) {
        return false;
    }
    let inputs = before.input.as_ref().zip(now.input.as_ref());
    before.tool == now.tool && inputs.is_some_and(|(before, now)| values(before) == values(now))
        || is_lower_part(&squeezed(&before.text), &squeezed(&now.text))
}

/// Whether one of the texts is the end of the other.
fn is_lower_part(one: &str, other: &str) -> bool {
    let shorter = one.len().min(other.len());
    shorter > 0 && (one.ends_with(other) || other.ends_with(one))
}

/// Whether `now` is the dialog `before`, cut or wrapped by a terminal that has another size: each of its rows is a part of
/// what was there, in the same order.
pub(super) fn is_cut(before: &Dialog, now: &Dialog) -> bool {
    let whole = squeezed(&before.text);
    let mut rest = whole.as_str();
    let mut follows = |row: &str| {
        let found = rest.find(row).map(|at| &rest[at + row.len()..]);
        rest = found.unwrap_or_default();
        found.is_some()
    };
    let rows: Vec<String> = now.text.lines().map(squeezed).collect();
    before.kind == now.kind
        && rows.iter().any(|row| !row.is_empty())
        && rows.iter().all(|row| follows(row))
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
    use crate::core::claude::reading::DialogKind;
    use serde_json::json;

    fn asks(command: &str, text: &str) -> Dialog {
        Dialog {
            tool: Some("Bash".to_owned()),
            input: json!({ "command": command }).as_object().cloned(),
            text: text.to_owned(),
            ..Dialog::new("", DialogKind::Permission)
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
            tool: Some("Edit".to_owned()),
            ..before.clone()
        };
        assert!(!is_drawn_again(&before, &other_tool));
    }

    #[test]
    fn a_terminal_cuts_and_wraps_rows_in_their_order() {
        let before = asks("", "Bash\n touch a && touch b\n❯ 1. Yes\n  2. No");
        for (rows, cut) in [
            ("Bash\n touch a\n❯ 1. Y\n  2. N", true),
            ("Bash\n touch a\n && touch b\n❯ 1. Yes", true),
            (" touch a && touch b\n  1. Yes\n❯ 2. No", true),
            ("Bash\n touch c\n❯ 1. Yes\n  2. No", false),
            ("Bash\n touch a\n❯ 1. No\n  2. Yes", false),
            (
                "Bash\n touch a && touch b && touch c\n❯ 1. Yes\n  2. No",
                false,
            ),
            ("", false),
        ] {
            assert_eq!(is_cut(&before, &asks("", rows)), cut, "{rows:?}");
        }
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

    /// The title, which names the tool, is off the screen too.
    #[test]
    fn a_dialog_without_its_title_may_be_the_same() {
        let before = asks("make a", "Bash command\n\n make a\n ❯ 1. Yes");
        let low = |tool: Option<&str>, text: &str| Dialog {
            tool: tool.map(str::to_owned),
            input: None,
            ..asks("", text)
        };
        assert!(is_drawn_again(&before, &low(None, "❯ 1. Yes")));
        assert!(is_drawn_again(&low(None, "❯ 1. Yes"), &before));
        assert!(!is_drawn_again(&before, &low(Some("Edit"), "❯ 1. Yes")));
        assert!(!is_drawn_again(&before, &low(None, "❯ 1. No")));
    }
}
