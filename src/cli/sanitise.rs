//! Text from a slot on its way to a person's terminal: shown, never obeyed. Pure.

use std::borrow::Cow;

/// Characters that a terminal acts on, or that reorder what a person reads.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(c: char, into: &mut String) {
    match u32::from(c) {
        code @ 0..=0xff => into.push_str(&format!("\\x{code:02x}")),
        code => into.push_str(&format!("\\u{{{code:x}}}")),
    }
}

fn replace(text: &str, keep: impl Fn(char) -> bool, escape: fn(char, &mut String)) -> Cow<'_, str> {
    let foreign = |c: char| acts(c) && !keep(c);
    if !text.contains(foreign) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if foreign(c) {
            escape(c, &mut shown);
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// Newlines and tabs stay, other control characters become visible: `\x1b`.
pub fn text(text: &str) -> Cow<'_, str> {
    replace(text, |c| matches!(c, '\n' | '\t'), escape)
}

/// For a table cell: runs of white space become one blank.
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    replace(&words.join(" "), |_| false, escape).into_owned()
}

/// JSON text stays the same JSON, but what a terminal could act on is written as `\uXXXX`.
pub fn json(text: &str) -> String {
    let keep = |c| c == '\n';
    replace(text, keep, |c, into| {
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            into.push_str(&format!("\\u{unit:04x}"));
        }
    })
    .into_owned()
}

/// Colours and weights (`ESC [ … m`) stay, every other control becomes visible.
pub fn keep_colours(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        shown.push_str(&text(&rest[..at]));
        let length = colour_length(&rest[at..]).unwrap_or_else(|| {
            escape('\u{1b}', &mut shown);
            0
        });
        shown.push_str(&rest[at..at + length]);
        rest = &rest[at + length.max(1)..];
    }
    shown.push_str(&text(rest));
    shown
}

/// The length of the colour sequence that this text begins with.
fn colour_length(text: &str) -> Option<usize> {
    let body = text.strip_prefix("\u{1b}[")?;
    let parameters = body
        .bytes()
        .take_while(|b| b.is_ascii_digit() || matches!(b, b';' | b':'))
        .count();
    (body.as_bytes().get(parameters) == Some(&b'm')).then_some(2 + parameters + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn controls_become_visible_and_layout_stays() {
        assert_eq!(text("a\tb\nc"), "a\tb\nc");
        assert_eq!(text("\u{1b}[2J\r\u{7f}\u{9b}"), "\\x1b[2J\\x0d\\x7f\\x9b");
        assert_eq!(text("safe\u{202e}txt.exe"), "safe\\u{202e}txt.exe");
        assert_eq!(one_line("a\n  b\u{1b}c"), "a b\\x1bc");
    }

    #[test]
    fn only_colours_survive() {
        assert_eq!(
            keep_colours("\u{1b}[1;38:5:3mhi\u{1b}[0m"),
            "\u{1b}[1;38:5:3mhi\u{1b}[0m"
        );
        assert_eq!(keep_colours("\u{1b}[2Jx\u{1b}"), "\\x1b[2Jx\\x1b");
        assert_eq!(keep_colours("\u{1b}]0;t\u{7}"), "\\x1b]0;t\\x07");
        assert_eq!(keep_colours("\u{1b}\u{1b}[m"), "\\x1b\u{1b}[m");
    }

    proptest! {
        #[test]
        fn json_keeps_its_value_and_holds_nothing_that_acts(words in any::<String>()) {
            let value = serde_json::Value::String(words);
            let safe = json(&value.to_string());
            prop_assert!(!safe.contains(acts));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        }

        #[test]
        fn no_text_acts(words in any::<String>()) {
            prop_assert!(!text(&words).contains(|c| acts(c) && c != '\n' && c != '\t'));
            prop_assert!(!one_line(&words).contains(acts));
        }
    }
}
