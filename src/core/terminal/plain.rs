//! What a program printed line by line, as the text that a person would have read. Pure.
//!
//! It is for programs that write lines, also those that draw over a line that is not finished, such as a counter.
//! What a program draws on a whole screen of its own is left out: for that there is the screen.

/// Columns that a line is kept to; a program that moves further right only burns memory.
const MAX_COLUMNS: usize = 4096;

/// The text of `bytes`, which may begin and end anywhere. Where the cursor jumps to the right again and again, the text is not
/// much longer than `bytes`: from then on the jumps are left out.
pub fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut page = PlainPage {
        done: String::with_capacity(text.len()),
        blanks: text.len() + MAX_COLUMNS,
        ..PlainPage::default()
    };
    let mut rest = text.as_ref();
    while let Some(first) = rest.chars().next() {
        if let Some(behind) = page.whole_line(rest) {
            rest = behind;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        if first == '\x1b' {
            rest = page.escape(rest);
        } else {
            page.put(first);
        }
    }
    page.finish()
}

#[derive(Default)]
struct PlainPage {
    done: String,
    line: Vec<char>,
    column: usize,
    /// Blanks that jumps to the right may still add.
    blanks: usize,
    /// A full-screen program draws.
    elsewhere: bool,
}

impl PlainPage {
    /// Takes a line at once that begins on an empty one and has no control character in it but its end, as most have;
    /// returns what is left behind it.
    fn whole_line<'a>(&mut self, rest: &'a str) -> Option<&'a str> {
        if self.elsewhere || self.column > 0 || !self.line.is_empty() {
            return None;
        }
        let is_control = |byte: u8| !(0x20..=0x7e).contains(&byte);
        let end = rest.bytes().take(MAX_COLUMNS).position(is_control)?;
        let (line, behind) = rest.split_at(end);
        let behind = behind
            .strip_prefix("\r\n")
            .or_else(|| behind.strip_prefix('\n'))?;
        self.done.push_str(line.trim_end_matches(' '));
        self.done.push('\n');
        Some(behind)
    }

    fn put(&mut self, c: char) {
        match c {
            _ if self.elsewhere => {}
            '\n' => self.end_line(),
            '\r' => self.column = 0,
            '\x08' => self.column = self.column.saturating_sub(1),
            '\t' => self.move_to((self.column / 8 + 1) * 8),
            c if c.is_control() => {}
            c => self.draw(c),
        }
    }

    fn draw(&mut self, c: char) {
        if self.column < self.line.len() {
            self.line[self.column] = c;
        } else {
            let jump = (self.column - self.line.len()).min(self.blanks);
            self.blanks -= jump;
            self.column = self.line.len() + jump;
            self.line.resize(self.column, ' ');
            self.line.push(c);
        }
        self.move_to(self.column + 1);
        // No terminal is that wide: the rest is further text, which must not be lost.
        if self.column == MAX_COLUMNS {
            self.done.extend(self.line.drain(..));
            self.column = 0;
        }
    }

    fn move_to(&mut self, column: usize) {
        self.column = column.min(MAX_COLUMNS);
    }

    fn end_line(&mut self) {
        self.flush_line();
        self.done.push('\n');
        self.column = 0;
    }

    fn flush_line(&mut self) {
        let line: String = self.line.drain(..).collect();
        self.done.push_str(line.trim_end_matches(' '));
    }

    fn finish(mut self) -> String {
        let line: String = self.line.drain(..).collect();
        // A prompt that waits behind its blank is shown as it is.
        self.done.push_str(&line);
        self.done
    }

    /// What follows an ESC is done, and what is left comes back.
    fn escape<'a>(&mut self, rest: &'a str) -> &'a str {
        match rest.as_bytes().first() {
            Some(b'[') => self.control(&rest[1..]),
            Some(b']' | b'P' | b'X' | b'^' | b'_') => after_string(&rest[1..]),
            Some(0x20..=0x2f) => {
                let length = rest
                    .bytes()
                    .take_while(|b| (0x20..=0x2f).contains(b))
                    .count();
                rest.get(length + 1..).unwrap_or_default()
            }
            Some(0x30..=0x7e) => &rest[1..],
            _ => rest,
        }
    }

    fn control<'a>(&mut self, rest: &'a str) -> &'a str {
        let params = rest
            .bytes()
            .take_while(|b| (0x20..=0x3f).contains(b))
            .count();
        let (params, rest) = rest.split_at(params);
        let Some(last) = rest.chars().next() else {
            return rest;
        };
        self.apply(params, last);
        &rest[last.len_utf8()..]
    }

    fn apply(&mut self, params: &str, last: char) {
        let number = || params.parse::<usize>().unwrap_or(0);
        match last {
            'h' | 'l' if matches!(params, "?1049" | "?1047" | "?47") => {
                self.elsewhere = last == 'h'
            }
            _ if self.elsewhere => {}
            'C' => self.move_to(self.column.saturating_add(number().max(1))),
            'D' => self.column = self.column.saturating_sub(number().max(1)),
            'G' => self.move_to(number().max(1) - 1),
            'K' if number() == 0 => self.line.truncate(self.column),
            'K' if number() == 2 => self.line.clear(),
            'P' => {
                let from = self.column.min(self.line.len());
                let to = from.saturating_add(number().max(1)).min(self.line.len());
                self.line.drain(from..to);
            }
            _ => {}
        }
    }
}

/// Behind the end of a string, which is BEL or ST.
fn after_string(text: &str) -> &str {
    match text.find(['\x07', '\x1b']) {
        Some(at) if text.as_bytes()[at] == 0x07 => &text[at + 1..],
        Some(at) => text[at + 1..].strip_prefix('\\').unwrap_or(&text[at + 1..]),
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> String {
        plain(text.as_bytes())
    }

    #[test]
    fn colours_titles_and_line_ends_leave_text() {
        assert_eq!(read("\x1b[1;31merror\x1b[0m: no\r\n"), "error: no\n");
        assert_eq!(read("\x1b]0;title\x07a\x1b]133;C\x1b\\b\x1b(B"), "ab");
        assert_eq!(read("\x1b[?2004hyes/no? "), "yes/no? ");
    }

    #[test]
    fn a_line_that_is_drawn_over_is_read_once() {
        assert_eq!(read("10%\r20%\r100%\r\ndone"), "100%\ndone");
        assert_eq!(read("downloading\r\x1b[Kok\r\n"), "ok\n");
        assert_eq!(read("ab\x08c\r\n"), "ac\n");
        assert_eq!(read("a\tb"), "a       b");
    }

    #[test]
    fn a_screen_of_its_own_is_left_out() {
        assert_eq!(
            read("before\r\n\x1b[?1049h~\r\n~\x1b[?1049lafter"),
            "before\nafter"
        );
    }

    /// A line that is taken at once reads as one whose characters come one by one.
    #[test]
    fn plain_lines_are_taken_at_once() {
        let lines = "one  \r\ntwo\n\r\n  three \r\nlast ";
        let apart: String = lines.chars().map(|c| format!("\x1b[m{c}")).collect();
        assert_eq!(read(lines), "one\ntwo\n\n  three\nlast ");
        assert_eq!(read(lines), read(&apart));
    }

    #[test]
    fn a_long_line_is_kept_whole() {
        let long = "x".repeat(3 * MAX_COLUMNS + 5);
        assert_eq!(read(&long), long);
    }

    #[test]
    fn a_text_is_not_much_longer_than_what_was_written() {
        let jumps = "\x1b[4000Cx\r\n".repeat(1000);
        let text = read(&jumps);
        assert_eq!(text.matches('x').count(), 1000);
        assert!(
            text.len() < 3 * jumps.len() + 2 * MAX_COLUMNS,
            "{}",
            text.len()
        );
        assert!(text.starts_with(&" ".repeat(4000)));
    }

    proptest! {
        #[test]
        fn anything_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = plain(&bytes);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{:?}", text);
        }

        #[test]
        fn plain_text_stays(text in "[a-z ]{0,20}[a-z](\n[a-z ]{0,20}[a-z]){0,5}") {
            prop_assert_eq!(read(&text.replace('\n', "\r\n")), text);
        }
    }
}
