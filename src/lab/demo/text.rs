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
    hanging(text, width, 0)
}

/// The same, with every row but the first indented.
pub fn hanging(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut paper = Paper {
        rows: Vec::new(),
        row: String::new(),
        width,
        indent,
    };
    for line in text.split('\n') {
        for (index, word) in line.split(' ').enumerate() {
            let word: String = word.chars().filter(|c| !c.is_control()).collect();
            if index > 0 && paper.row.width() + 1 + word.width() > paper.room() {
                paper.break_row();
            } else if index > 0 {
                paper.row.push(' ');
            }
            paper.put(&word);
        }
        paper.break_row();
    }
    paper.rows
}

struct Paper {
    rows: Vec<String>,
    /// The one that is being written, without its indent.
    row: String,
    width: usize,
    indent: usize,
}

impl Paper {
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

    /// Puts a word into the row; one that is longer than any row takes several.
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
