//! Text from a slot on its way to a person's terminal: shown, never obeyed. Pure.

use crate::core::terminal::sequences::{SequenceKind, SequencePiece, Sequences};
pub use crate::core::text::visible::request;
use crate::core::text::visible::{acts, escape};
use std::borrow::Cow;

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

/// Output of a program that comes in pieces, split anywhere. Colours, the return to the line's start and the erasing of a
/// line stay; every other sequence is left out, and every other control character becomes visible.
#[derive(Debug, Default)]
pub struct SanitisedStream {
    sequences: Sequences,
    /// The beginning of a character.
    unfinished: Vec<u8>,
}

impl SanitisedStream {
    pub fn pass(&mut self, bytes: &[u8]) -> String {
        let SanitisedStream {
            sequences,
            unfinished,
        } = self;
        let mut shown = String::with_capacity(bytes.len());
        sequences.split(bytes, |SequencePiece { kind, raw }| match kind {
            SequenceKind::Text => {
                unfinished.extend_from_slice(raw);
                let whole = whole_characters(unfinished);
                let text: Vec<u8> = unfinished.drain(..whole).collect();
                let keep = |c| matches!(c, '\n' | '\t' | '\r' | '\u{8}');
                shown.push_str(&replace(&String::from_utf8_lossy(&text), keep, escape));
            }
            SequenceKind::Csi if is_harmless(raw) => shown.push_str(&String::from_utf8_lossy(raw)),
            _ => {}
        });
        shown
    }
}

/// A colour, or the erasing of a line.
fn is_harmless(sequence: &[u8]) -> bool {
    let text = String::from_utf8_lossy(sequence);
    let erases = |text: &str| matches!(text, "\u{1b}[K" | "\u{1b}[0K" | "\u{1b}[1K" | "\u{1b}[2K");
    colour_length(&text) == Some(text.len()) || erases(&text)
}

/// The bytes before a character that is not complete yet.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.utf8_chunks().last();
    let invalid = tail.map_or(&[][..], |chunk| chunk.invalid());
    let begins = invalid.first().is_some_and(|first| *first >= 0xc2);
    let wanted = match invalid.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        _ => 4,
    };
    match begins && invalid.len() < wanted {
        true => bytes.len() - invalid.len(),
        false => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_request_is_invisible() {
        let hidden = "rm\u{a0}-r 1\u{200b}.2\u{ad}\u{3164};\u{2060}\u{feff}\u{200d}\u{e0041}\u{2028}\u{202e}";
        let shown = request(hidden);
        assert!(shown.is_ascii(), "{shown}");
        assert!(
            shown.starts_with(r"rm\xa0-r 1\u{200b}.2\xad\u{3164};"),
            "{shown}"
        );
        assert_eq!(request("e\u{301} é 字\n\tx"), "e\u{301} é 字\n\tx");
        let marks = request(&format!("a{}", "\u{301}".repeat(5)));
        assert_eq!(marks.matches(r"\u{301}").count(), 2, "{marks}");
    }
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

    #[test]
    fn a_stream_keeps_colours_and_lines_and_nothing_that_acts() {
        let pass = |text: &str| SanitisedStream::default().pass(text.as_bytes());
        assert_eq!(
            pass("\u{1b}[32mok\u{1b}[0m 9%\r10%\u{1b}[K\n"),
            "\u{1b}[32mok\u{1b}[0m 9%\r10%\u{1b}[K\n"
        );
        assert_eq!(
            pass("a\u{1b}]52;c;aGk=\u{7}b\u{1b}[2Jc\u{1b}Pq\u{1b}\\d"),
            "abcd"
        );
        assert_eq!(pass("\u{9b}2J\u{202e}\u{7}"), "\\x9b2J\\u{202e}\\x07");
    }

    proptest! {
        /// However it is cut, the same comes out, and nothing in it acts but colours and what moves in a line.
        #[test]
        fn a_stream_may_be_cut_anywhere(
            parts in prop::collection::vec(prop_oneof![
                any::<String>(),
                Just("\u{1b}]52;c;aGk=\u{7}".to_owned()),
                Just("\u{1b}[31m".to_owned()),
                Just("\u{1b}[2J\u{9b}é\u{202e}".to_owned()),
            ], 0..6),
            cut in 0usize..200,
        ) {
            let bytes = parts.concat().into_bytes();
            let whole = SanitisedStream::default().pass(&bytes);
            let mut stream = SanitisedStream::default();
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            let pieces = stream.pass(one) + &stream.pass(two);
            prop_assert_eq!(&pieces, &whole);
            let kept = regex::Regex::new("\u{1b}\\[[0-9;:]*[mK]").unwrap();
            let rest = kept.replace_all(&whole, "");
            let moves = |c| matches!(c, '\n' | '\t' | '\r' | '\u{8}');
            prop_assert!(!rest.contains(|c| acts(c) && !moves(c)), "{:?}", rest);
        }

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
