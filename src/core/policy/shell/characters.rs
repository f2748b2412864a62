//! Characters that make a command look like another one.

/// Why the characters of a command can't be trusted; `None` if they can.
pub fn doubt(text: &str) -> Option<String> {
    if let Some(c) = text
        .chars()
        .find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
    {
        return Some(format!(
            "it has a control character (U+{:04X})",
            u32::from(c)
        ));
    }
    if !text.is_ascii()
        && let Some(c) = text.chars().find(|c| is_deceptive(*c))
    {
        return Some(format!(
            "it has a character that can't be seen or looks like another (U+{:04X})",
            u32::from(c)
        ));
    }
    None
}

/// Whether a backslash joins two lines.
pub fn continues_a_line(text: &str) -> bool {
    text.contains("\\\n")
}

/// Spaces that a shell does not treat as spaces, invisible characters, marks that reorder text, and look-alikes of plain letters.
fn is_deceptive(c: char) -> bool {
    let blank = c.is_whitespace() && !matches!(c, ' ' | '\t' | '\n');
    let invisible = matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffd}' | '\u{e0000}'..='\u{e0fff}');
    let look_alike = matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}');
    blank || invisible || look_alike
}

/// Look-alikes of dashes, dots and slashes: fine in the prose of a quoted message, deceptive as an option or a path.
pub fn seems_punctuation(c: char) -> bool {
    matches!(
        c,
        '\u{2010}'
            ..='\u{2015}'
                | '\u{2043}'
                | '\u{2212}'
                | '\u{02d7}'
                | '\u{fe58}'
                | '\u{fe63}'
                | '\u{2024}'
                | '\u{2044}'
                | '\u{2215}'
                | '\u{29f8}'
    )
}

/// Whether Latin letters are mixed with letters of a look-alike alphabet.
pub fn mixes_alphabets(word: &str) -> bool {
    word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(is_of_a_similar_alphabet)
}

fn is_of_a_similar_alphabet(c: char) -> bool {
    matches!(c, '\u{0370}'..='\u{03ff}' | '\u{0400}'..='\u{052f}' | '\u{0530}'..='\u{058f}' | '\u{13a0}'..='\u{13ff}' | '\u{1c80}'..='\u{1c8f}' | '\u{2c80}'..='\u{2cff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_of_any_language_is_fine() {
        for text in [
            "git commit -m \"größer, 更好, лучше\"",
            "ls\n\tls",
            "echo 'naïve ✓'",
        ] {
            assert_eq!(doubt(text), None, "{text}");
        }
    }

    #[test]
    fn what_deceives_the_eye_is_not() {
        for text in [
            "ls\rrm x",
            "git\u{a0}push",
            "gi\u{200b}t",
            "ls \u{1b}[2J",
            "a\u{7f}",
            "a\u{85}b",
            "\u{202e}sl",
            "ｇit",
        ] {
            assert!(doubt(text).is_some(), "{text:?}");
        }
        assert!(seems_punctuation('\u{2013}'));
        assert!(mixes_alphabets("gіt"));
        assert!(!mixes_alphabets("файл"));
    }
}
