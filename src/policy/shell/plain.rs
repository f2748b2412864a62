//! The short way through a command of plain words, quotes, `&&`, `||`, `;`, `|` and line ends, which is what most
//! commands are. Whatever else is in it is left to the parser. What it takes it takes as the parser does: a test
//! holds the two together.

use super::Simple;
use super::words::{Word, means_nothing};

/// Words that begin something else than a simple command, or that the parser reads in a way of its own.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "select", "in", "function", "coproc", "declare", "typeset", "export", "readonly", "local",
    "unset", "unsetenv", "test",
];

/// The commands; `None` where the text has anything that needs the parser.
pub fn read(text: &str) -> Option<Vec<Simple>> {
    if !text.is_ascii() {
        return None;
    }
    let mut scan = Scan {
        text,
        bytes: text.as_bytes(),
        at: 0,
        words: Vec::new(),
        redirected: false,
        joined: false,
        commands: Vec::new(),
    };
    scan.whole()?;
    Some(scan.commands)
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// Of the command that has begun.
    words: Vec<Word>,
    /// It has a redirection, behind which no words are looked for.
    redirected: bool,
    /// An operator stands before it, so that there must be one.
    joined: bool,
    commands: Vec<Simple>,
}

impl Scan<'_> {
    fn whole(&mut self) -> Option<()> {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.end_of_line()?;
                }
                b'#' => self.comment()?,
                b';' => self.operator(1, false)?,
                b'&' if self.follows(b"&&") => self.operator(2, true)?,
                b'|' if self.follows(b"||") => self.operator(2, true)?,
                b'|' => self.operator(1, true)?,
                b'>' => self.redirection()?,
                _ => self.word()?,
            }
        }
        self.end_of_line()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn follows(&self, text: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(text)
    }

    /// A blank line is no command, but an operator wants one.
    fn end_of_line(&mut self) -> Option<()> {
        match self.words.is_empty() {
            true => (!self.joined).then_some(()),
            false => self.end_of_command(),
        }
    }

    fn end_of_command(&mut self) -> Option<()> {
        let words = std::mem::take(&mut self.words);
        let (first, last) = (words.first()?, words.last()?);
        let end = last.start + last.length;
        self.commands.push(Simple {
            text: self.text[first.start..end].to_owned(),
            start: first.start,
            words,
            guessed: false,
        });
        self.redirected = false;
        self.joined = false;
        Some(())
    }

    fn operator(&mut self, length: usize, joins: bool) -> Option<()> {
        self.end_of_command()?;
        self.at += length;
        self.joined = joins;
        // `;;`, `;&`, `|&` and the like are something else.
        (!matches!(self.peek(), Some(b';' | b'&' | b'|'))).then_some(())
    }

    /// Up to the end of the line, behind a finished command or on a line of its own.
    fn comment(&mut self) -> Option<()> {
        self.end_of_line()?;
        let rest = &self.bytes[self.at..];
        self.at += rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len());
        Some(())
    }

    /// `>/dev/null`, `2>/dev/null` and `2>&1`, behind all words of the command.
    fn redirection(&mut self) -> Option<()> {
        const HARMLESS: [&[u8]; 5] = [
            b">/dev/null",
            b"> /dev/null",
            b">>/dev/null",
            b">&1",
            b">&2",
        ];
        let taken = HARMLESS.iter().find(|known| self.follows(known))?.len();
        self.at += taken;
        self.redirected = true;
        let ends = matches!(self.peek(), None | Some(b' ' | b'\t' | b'\n' | b';' | b'|'));
        (ends && !self.words.is_empty()).then_some(())
    }

    fn word(&mut self) -> Option<()> {
        let start = self.at;
        if matches!(self.peek(), Some(b'1' | b'2')) && self.bytes.get(start + 1) == Some(&b'>') {
            self.at += 1;
            return self.redirection();
        }
        let mut word = Word {
            start,
            ..Word::default()
        };
        loop {
            match self.peek() {
                Some(byte) if means_nothing(byte) => self.bare(&mut word),
                Some(quote @ (b'\'' | b'"')) => self.quoted(quote, &mut word)?,
                None | Some(b' ' | b'\t' | b'\n' | b';' | b'|') => break,
                Some(b'&') if self.follows(b"&&") => break,
                Some(_) => return None,
            }
        }
        word.length = self.at - start;
        let fits = match self.words.is_empty() {
            true => is_program(&word),
            false => !word.text.starts_with('='),
        };
        self.words.push(word);
        (fits && !self.redirected).then_some(())
    }

    fn bare(&mut self, word: &mut Word) {
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|byte| !means_nothing(*byte))
            .unwrap_or(rest.len());
        word.text.push_str(&self.text[self.at..self.at + length]);
        self.at += length;
    }

    fn quoted(&mut self, quote: u8, word: &mut Word) -> Option<()> {
        let inside = self.at + 1;
        let length = self.bytes[inside..]
            .iter()
            .position(|byte| *byte == quote)?;
        let text = &self.text[inside..inside + length];
        if quote == b'"' && text.contains(['$', '`', '\\', '!']) {
            return None;
        }
        word.text.push_str(text);
        word.quoted = true;
        self.at = inside + length + 1;
        Some(())
    }
}

/// Whether a first word is the name of a program, and nothing that has a meaning to the shell.
fn is_program(word: &Word) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || "_./".contains(c);
    !word.quoted
        && word.text.starts_with(begins)
        && !word.text.contains(['=', '%', '@', ','])
        && !RESERVED.contains(&word.text.as_str())
}

#[cfg(test)]
mod tests;
