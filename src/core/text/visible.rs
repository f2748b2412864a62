//! Characters that can't be seen, or that act on what shows them, made visible. Pure.

use unicode_normalization::char::is_combining_mark;

/// Characters that a terminal acts on, or that reorder what a person reads.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes a character by its number.
pub fn escape(c: char, into: &mut String) {
    match u32::from(c) {
        code @ 0..=0xff => into.push_str(&format!("\\x{code:02x}")),
        code => into.push_str(&format!("\\u{{{code:x}}}")),
    }
}

/// A request that a person decides on: what can't be seen, or looks like a space and is none, becomes visible too.
pub fn request(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        marks = if is_combining_mark(c) { marks + 1 } else { 0 };
        let plain = matches!(c, '\n' | '\t') || !(acts(c) || hides(c) || marks > MAX_MARKS);
        match plain {
            true => shown.push(c),
            false => escape(c, &mut shown),
        }
    }
    shown
}

/// No script puts more marks on one letter.
const MAX_MARKS: usize = 3;

/// Whether a character has no shape of its own, or that of a space.
fn hides(c: char) -> bool {
    let looks_like_space = c.is_whitespace() && !matches!(c, ' ' | '\n' | '\t');
    looks_like_space
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
