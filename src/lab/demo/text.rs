//! Text in rows. Pure.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Cuts the text to this width. Control characters are left out.
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

/// Wraps at spaces; a word that is too long is broken. Line breaks are kept. There is always at least one row.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    hanging(text, width, 0)
}

/// Like [`wrapped`], with every row but the first indented.
pub fn hanging(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut builder = RowBuilder {
        rows: Vec::new(),
        row: String::new(),
        width,
        indent,
    };
    for line in text.split('\n') {
        for (index, word) in line.split(' ').enumerate() {
            let word: String = word.chars().filter(|c| !c.is_control()).collect();
            if index > 0 && builder.row.width() + 1 + word.width() > builder.room() {
                builder.break_row();
            } else if index > 0 {
                builder.row.push(' ');
            }
            builder.put(&word);
        }
        builder.break_row();
    }
    builder.rows
}

struct RowBuilder {
    rows: Vec<String>,
    /// The current row, without its indent.
    row: String,
    width: usize,
    indent: usize,
}

impl RowBuilder {
    fn indent(&self) -> usize {
        if self.rows.is_empty() { 0 } else { self.indent }
    }

    fn room(&self) -> usize {
        self.width.saturating_sub(self.indent()).max(1)
    }

    fn break_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        let indent = if row.is_empty() { 0 } else { self.indent() };
        self.rows.push(format!("{:indent$}{row}", ""));
    }

    /// Adds a word to the row; a word that is longer than a row takes several rows.
    fn put(&mut self, word: &str) {
        let mut rest = word;
        while self.row.width() + rest.width() > self.room() {
            let head = clipped(rest, self.room());
            // A character that is wider than the row can't be shown at all.
            if head.is_empty() {
                return;
            }
            rest = &rest[head.len()..];
            self.row = head;
            self.break_row();
        }
        self.row.push_str(rest);
    }
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

    #[test]
    fn what_follows_the_first_row_hangs_below_it() {
        let rows = hanging("who says a lot\nand more", 10, 4);
        assert_eq!(rows, ["who says a", "    lot", "    and", "    more"]);
        assert_eq!(hanging("a\nb", usize::MAX, 4), ["a", "    b"]);
        assert_eq!(hanging("abcdefgh", 4, 2), ["abcd", "  ef", "  gh"]);
    }
}
