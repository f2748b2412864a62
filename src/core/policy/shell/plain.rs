//! The fast path for commands of words, quotes, globs, plain variables, `$(…)`, `&&`, `||`, `;`, `|` and line ends, which are
//! most commands. Everything else goes to the parser. A test proves that both read such commands alike.

use super::Simple;
use super::words::{EXPANDS, NOT_PLAIN, Word, ends_a_dollar, means_nothing, names_home};

/// Words that begin something other than a simple command, or that the parser treats specially.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "select", "in", "function", "coproc", "declare", "typeset", "export", "readonly", "local",
    "unset", "unsetenv", "test",
];

/// How many levels of nested commands are read here; the parser, which has no stack to overflow, reads deeper ones.
const DEEPEST: usize = 8;

/// The result.
pub struct Plain {
    pub commands: Vec<Simple>,
    /// Why it is uncertain what runs: the first word that is known only at run time.
    pub doubt: Option<&'static str>,
}

/// The commands; `None` if the text has anything that needs the parser.
pub fn read(text: &str) -> Option<Plain> {
    if !text.is_ascii() {
        return None;
    }
    let mut scan = Scan::new(text, 0, 0);
    scan.whole()?;
    let mut words = scan.commands.iter().flat_map(|command| &command.words);
    let doubt = words.find_map(|word| word.doubt);
    let commands = scan.commands;
    Some(Plain { commands, doubt })
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// The words of the current command.
    words: Vec<Word>,
    /// It has a redirection; no words may follow.
    redirected: bool,
    /// An operator comes before it, so a command must follow.
    joined: bool,
    /// The number of open `$(`.
    depth: usize,
    /// The commands that the words of the current command substitute: they come after it.
    within: Vec<Simple>,
    commands: Vec<Simple>,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str, at: usize, depth: usize) -> Scan<'t> {
        Scan {
            text,
            bytes: text.as_bytes(),
            at,
            words: Vec::new(),
            redirected: false,
            joined: false,
            depth,
            within: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Reads to the end, or to the bracket that ends a substitution.
    fn whole(&mut self) -> Option<()> {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b')' if self.depth > 0 => break,
                b'\n' => {
                    self.at += 1;
                    self.end_of_line()?;
                }
                b'#' if self.depth == 0 => self.comment()?,
                b';' => self.operator(1, false)?,
                b'&' if self.follows(b"&&") => self.operator(2, true)?,
                b'&' if self.follows(b"&>/dev/null") => {
                    self.at += 1;
                    self.redirection()?;
                }
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

    /// An empty line is not a command, but after an operator a command must follow.
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
        self.commands.append(&mut self.within);
        self.redirected = false;
        self.joined = false;
        Some(())
    }

    /// `$(…)`: every command in it is found; the text that it puts into the word is unknown.
    fn substitution(&mut self) -> Option<()> {
        if self.depth == DEEPEST || self.follows(b"$((") {
            return None;
        }
        let mut inner = Scan::new(self.text, self.at + 2, self.depth + 1);
        inner.whole()?;
        let ends = inner.peek() == Some(b')') && !inner.commands.is_empty();
        self.within.append(&mut inner.commands);
        self.at = inner.at + 1;
        ends.then_some(())
    }

    fn operator(&mut self, length: usize, joins: bool) -> Option<()> {
        self.end_of_command()?;
        self.at += length;
        self.joined = joins;
        // `;;`, `;&`, `|&` and the like mean something else.
        (!matches!(self.peek(), Some(b';' | b'&' | b'|'))).then_some(())
    }

    /// Reads to the end of the line, after a finished command or on its own line.
    fn comment(&mut self) -> Option<()> {
        self.end_of_line()?;
        let rest = &self.bytes[self.at..];
        self.at += rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len());
        Some(())
    }

    /// `>/dev/null`, `2>/dev/null` and `2>&1`, after all words of the command.
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
        let ends = match self.peek() {
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'|') => true,
            next => next == Some(b')') && self.depth > 0,
        };
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
        // The parser splits a word with quotes and backslashes into several.
        let (mut quotes, mut escapes) = (false, false);
        loop {
            quotes |= matches!(self.peek(), Some(b'\'' | b'"' | b'$'));
            escapes |= self.peek() == Some(b'\\');
            if quotes && escapes {
                return None;
            }
            match self.peek() {
                Some(byte) if means_nothing(byte) => self.bare(&mut word),
                Some(b'\'') => self.single_quoted(&mut word)?,
                Some(b'"') => self.double_quoted(&mut word)?,
                Some(byte @ (b'*' | b'?' | b'~' | b'^')) => self.special(byte, &mut word)?,
                Some(b'\\') => self.escaped(&mut word)?,
                Some(b'$') => {
                    self.expansion()?;
                    word.doubt.get_or_insert(NOT_PLAIN);
                }
                Some(b')') if self.depth > 0 => break,
                None | Some(b' ' | b'\t' | b'\n' | b';' | b'|') => break,
                Some(b'&') if self.follows(b"&&") => break,
                Some(_) => return None,
            }
        }
        word.length = self.at - start;
        if word.doubt.is_some() {
            self.text[start..self.at].clone_into(&mut word.text);
        }
        let fits = match self.words.is_empty() {
            true => is_program(&word),
            false => !word.text.starts_with('=') && !has_odd_tilde(&word),
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

    /// `*` and `?` are globs; `^` does not change a verdict, and `~` only if [`has_odd_tilde`] says so.
    fn special(&mut self, byte: u8, word: &mut Word) -> Option<()> {
        word.globs |= matches!(byte, b'*' | b'?');
        word.text.push(char::from(byte));
        self.at += 1;
        Some(())
    }

    fn escaped(&mut self, word: &mut Word) -> Option<()> {
        let byte = self
            .bytes
            .get(self.at + 1)
            .filter(|byte| byte.is_ascii_graphic())?;
        word.text.push(char::from(*byte));
        word.quoted = true;
        self.at += 2;
        Some(())
    }

    fn expansion(&mut self) -> Option<()> {
        match self.follows(b"$(") {
            true => self.substitution(),
            false => self.variable(),
        }
    }

    /// `$name` or `${name}` and nothing more: its value is unknown.
    fn variable(&mut self) -> Option<()> {
        let braced = self.follows(b"${");
        self.at += usize::from(braced);
        let rest = &self.bytes[self.at + 1..];
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = rest
            .iter()
            .position(|byte| !is_name(byte))
            .unwrap_or(rest.len());
        let closed = !braced || rest.get(length) == Some(&b'}');
        self.at += 1 + length + usize::from(braced);
        (closed && length > 0 && !rest[0].is_ascii_digit()).then_some(())
    }

    fn single_quoted(&mut self, word: &mut Word) -> Option<()> {
        let inside = self.at + 1;
        let length = self.bytes[inside..]
            .iter()
            .position(|byte| *byte == b'\'')?;
        word.text.push_str(&self.text[inside..inside + length]);
        word.quoted = true;
        self.at = inside + length + 1;
        Some(())
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        self.at += 1;
        word.quoted = true;
        loop {
            let rest = &self.text[self.at..];
            let end = rest.find(['"', '$', '`', '\\', '!'])?;
            word.text.push_str(&rest[..end]);
            self.at += end;
            let next = self.bytes.get(self.at + 1).map(|byte| char::from(*byte));
            match (self.bytes[self.at], next) {
                (b'"', _) => break,
                (b'$', Some(next)) if next == '"' || ends_a_dollar(next) => {
                    word.text.push('$');
                    self.at += 1;
                }
                (b'$', _) => {
                    self.expansion()?;
                    word.doubt.get_or_insert(EXPANDS);
                }
                (b'\\', Some(next @ ('$' | '`' | '"' | '\\'))) => {
                    word.text.push(next);
                    self.at += 2;
                }
                (b'\\', Some(next)) if next.is_ascii_graphic() && next != '!' => {
                    word.text.push('\\');
                    self.at += 1;
                }
                _ => return None,
            }
        }
        self.at += 1;
        Some(())
    }
}

/// Whether a `~` may mean another directory than home, or a literal `~`.
fn has_odd_tilde(word: &Word) -> bool {
    let text = word.text.as_str();
    text.starts_with('~') && (word.quoted || !names_home(text))
        || text.contains("=~")
        || text.contains('=') && text.contains(":~")
}

/// Whether a first word is the name of a program, without a special meaning to the shell.
fn is_program(word: &Word) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || "_./".contains(c);
    !word.quoted
        && !word.globs
        && word.doubt.is_none()
        && word.text.starts_with(begins)
        && !word.text.contains(['=', '%', '@', ',', '~', '^', ':'])
        && !RESERVED.contains(&word.text.as_str())
}

#[cfg(test)]
mod tests;
