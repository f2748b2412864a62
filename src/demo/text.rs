//! Text in rows. Pure.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// At most this wide. Whatever would act on the terminal is left out.
pub fn clipped(text: &str, width: usize) -> String {
    let mut taken = 0;
    text.chars()
        .filter(|c| !c.is_control())
        .take_while(|c| {
            taken += c.width().unwrap_or(0);
            taken <= width
        })
        .collect()
}

/// Wrapped at blanks, a long word wherever it has to be; a line break stays one. There is always a row.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        for (index, word) in line.split(' ').enumerate() {
            let word: String = word.chars().filter(|c| !c.is_control()).collect();
            if index > 0 && row.width() + 1 + word.width() > width {
                rows.push(std::mem::take(&mut row));
            } else if index > 0 {
                row.push(' ');
            }
            place(&mut rows, &mut row, &word, width);
        }
        rows.push(row);
    }
    rows
}

/// Puts a word into the last row; one that is longer than any row takes several.
fn place(rows: &mut Vec<String>, row: &mut String, word: &str, width: usize) {
    let mut rest = word;
    while row.width() + rest.width() > width {
        let head = clipped(rest, width);
        // A character that is wider than the row can't be shown at all.
        if head.is_empty() {
            return;
        }
        rest = &rest[head.len()..];
        rows.push(head);
    }
    row.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_and_narrow_rows_are_broken_somewhere() {
        assert_eq!(wrapped("abcdef gh", 4), ["abcd", "ef", "gh"]);
        assert_eq!(wrapped("漢", 1), [""]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("  a b", 4), ["  a", "b"]);
    }
}
