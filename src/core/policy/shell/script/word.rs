//! One word of a command, with its expansions.

use super::super::characters::{mixes_alphabets, seems_punctuation};
use super::super::words::{Word, ends_a_dollar, means_nothing, names_home};
use super::Reader;
use super::variables::Value;

/// A word, and what is known about it.
#[derive(Debug, Clone)]
pub struct Part {
    pub word: Word,
    /// What is known about an expansion in it whose value is unknown.
    pub unknown: Option<Unknown>,
    /// The program gets another text than the one written.
    pub substituted: bool,
    /// An expansion in it may become several words, or file names.
    splits: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Number,
    Text,
}

impl Part {
    pub fn is_known(&self) -> bool {
        self.unknown.is_none()
    }

    /// Whether the program gets exactly one word here.
    pub fn is_one_word(&self) -> bool {
        !self.splits && !self.word.globs
    }

    /// The value of a variable that is set to this: a shell neither splits it nor expands globs there.
    pub fn value(&self) -> Option<Value> {
        let has_tilde = self.word.text.starts_with('~') || self.word.text.contains(":~");
        match self.unknown {
            None if has_tilde => None,
            None => Some(Value::Known(self.word.text.clone())),
            Some(Unknown::Number) => Some(Value::Number),
            Some(Unknown::Text) => Some(Value::Text),
        }
    }

    /// The values that a loop's variable gets from this.
    pub fn values(&self) -> Option<Vec<Value>> {
        let text = &self.word.text;
        Some(vec![match self.unknown {
            None if self.word.globs && self.substituted => Value::Text,
            None if self.word.globs => Value::Glob(text.clone()),
            None if text.starts_with('~') => return None,
            None => Value::Known(text.clone()),
            Some(Unknown::Number) if text == NUMBER => Value::Number,
            Some(_) => Value::Text,
        }])
    }
}

/// A placeholder for unknown digits.
pub const NUMBER: &str = "0";

/// A word while it is read.
struct Draft {
    part: Part,
    start: usize,
    /// How many pieces it has.
    pieces: usize,
}

impl<'t> Reader<'t> {
    /// The value after `name=`.
    pub fn assignment(&mut self, name: &'t str) -> Option<(&'t str, Part)> {
        self.at += name.len() + 1;
        let part = match self.is_at_end_of_word() {
            true => Part {
                word: Word::default(),
                unknown: None,
                substituted: false,
                splits: false,
            },
            false => self.word()?,
        };
        Some((
            name,
            Part {
                splits: false,
                word: Word {
                    globs: false,
                    ..part.word
                },
                ..part
            },
        ))
    }

    /// The next word, or the words to which its braces expand.
    pub fn words(&mut self) -> Option<Vec<Part>> {
        let ends = |c: char| " \t\n;|&()<>".contains(c);
        let raw = self.rest().split(ends).next().unwrap_or_default();
        let Some(texts) = expand_braces(raw) else {
            return Some(vec![self.word()?]);
        };
        let part = |text: String| Part {
            word: Word {
                text,
                start: self.at,
                length: raw.len(),
                ..Word::default()
            },
            unknown: None,
            substituted: true,
            splits: false,
        };
        let parts = texts.into_iter().map(part).collect();
        self.at += raw.len();
        Some(parts)
    }

    pub fn word(&mut self) -> Option<Part> {
        let start = self.at;
        let mut draft = Draft {
            part: Part {
                word: Word {
                    start,
                    ..Word::default()
                },
                unknown: None,
                substituted: false,
                splits: false,
            },
            start,
            pieces: 0,
        };
        if self.rest().starts_with("<(") {
            self.process(&mut draft)?;
        } else {
            while self.piece(&mut draft)? {}
        }
        self.finish(draft)
    }

    /// The next piece of a word; false at its end.
    fn piece(&mut self, draft: &mut Draft) -> Option<bool> {
        let Some(byte) = self.peek() else {
            return Some(false);
        };
        let word = &mut draft.part.word;
        match byte {
            _ if means_nothing(byte) => {
                let rest = self.rest();
                let length = rest.bytes().position(|byte| !means_nothing(byte));
                let length = length.unwrap_or(rest.len());
                word.text.push_str(&rest[..length]);
                self.at += length;
            }
            b'*' | b'?' | b'[' | b']' => {
                word.globs |= byte != b']';
                self.literal(byte, word);
            }
            b'~' | b'^' | b'#' => self.literal(byte, word),
            b'!' if !self.rest().starts_with("!(") => self.literal(byte, word),
            b'{' => self.braces(word)?,
            b'\'' => self.single_quoted(word)?,
            b'"' => self.double_quoted(draft)?,
            b'\\' => {
                let escaped = self.text.as_bytes().get(self.at + 1)?;
                escaped.is_ascii_graphic().then_some(())?;
                word.text.push(char::from(*escaped));
                word.quoted = true;
                self.at += 2;
            }
            b'$' => {
                let value = self.expansion()?;
                self.put(value, false, draft)?;
            }
            b' ' | b'\t' | b'\n' | b';' | b'|' | b')' | b'<' | b'>' => return Some(false),
            b'&' => return Some(false),
            _ => return None,
        }
        Some(true)
    }

    fn literal(&mut self, byte: u8, word: &mut Word) {
        word.text.push(char::from(byte));
        self.at += 1;
    }

    /// `{}` and `stash@{0}`: a shell does not expand these.
    fn braces(&mut self, word: &mut Word) -> Option<()> {
        let inside = self.rest()[1..].split('}').next()?;
        let is_plain = inside.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let closed = self.rest().as_bytes().get(inside.len() + 1) == Some(&b'}');
        (is_plain && closed).then_some(())?;
        word.text.push_str(&self.rest()[..inside.len() + 2]);
        self.at += inside.len() + 2;
        Some(())
    }

    fn single_quoted(&mut self, word: &mut Word) -> Option<()> {
        let inside = &self.rest()[1..];
        let length = inside.find('\'')?;
        word.text.push_str(&inside[..length]);
        word.quoted = true;
        self.at += length + 2;
        Some(())
    }

    fn double_quoted(&mut self, draft: &mut Draft) -> Option<()> {
        self.at += 1;
        draft.part.word.quoted = true;
        loop {
            let rest = self.rest();
            let end = rest.find(['"', '$', '`', '\\', '!'])?;
            draft.part.word.text.push_str(&rest[..end]);
            self.at += end;
            let word = &mut draft.part.word;
            let next = self.rest().chars().nth(1);
            match (self.peek()?, next) {
                (b'"', _) => break,
                (b'!', _) => self.literal(b'!', word),
                (b'$', Some(next)) if next == '"' || ends_a_dollar(next) || next == ' ' => {
                    self.literal(b'$', word);
                }
                (b'$', _) => {
                    let value = self.expansion()?;
                    self.put(value, true, draft)?;
                }
                (b'\\', Some(next @ ('$' | '`' | '"' | '\\'))) => {
                    word.text.push(next);
                    self.at += 2;
                }
                (b'\\', Some(next)) if next.is_ascii_graphic() && next != '!' => {
                    self.literal(b'\\', word);
                }
                _ => return None,
            }
        }
        self.at += 1;
        Some(())
    }

    /// Puts the value of an expansion into a word.
    fn put(&mut self, value: Value, quoted: bool, draft: &mut Draft) -> Option<()> {
        let part = &mut draft.part;
        part.substituted = true;
        draft.pieces += 1;
        let is_first = part.word.text.is_empty() && draft.pieces == 1;
        match value {
            Value::Known(text) => {
                let is_plain = !text.is_empty() && text.bytes().all(means_nothing);
                let is_home = is_first && names_home(&text);
                (quoted || is_plain || is_home).then_some(())?;
                (is_first || !text.starts_with('~')).then_some(())?;
                part.word.text.push_str(&text);
            }
            Value::Number => {
                part.word.text.push_str(NUMBER);
                part.unknown.get_or_insert(Unknown::Number);
            }
            Value::Glob(text) if quoted && is_first && self.rest().starts_with('"') => {
                part.word.text.push_str(&text);
                part.word.globs = true;
            }
            Value::Glob(_) | Value::Text => {
                part.unknown = Some(Unknown::Text);
                part.splits |= !quoted;
            }
        }
        Some(())
    }

    /// `<(…)`: the output of its commands is read as a file.
    fn process(&mut self, draft: &mut Draft) -> Option<()> {
        self.at += 2;
        self.depth += 1;
        (self.depth <= super::DEEPEST && self.waiting.is_empty()).then_some(())?;
        self.list(&[])?;
        self.depth -= 1;
        self.takes(")").then_some(())?;
        (self.is_at_end_of_word() && self.waiting.is_empty()).then_some(())?;
        "/dev/stdin".clone_into(&mut draft.part.word.text);
        draft.part.substituted = true;
        Some(())
    }

    fn finish(&self, draft: Draft) -> Option<Part> {
        let mut part = draft.part;
        let written = &self.text[draft.start..self.at];
        part.word.length = written.len();
        (!written.is_empty()).then_some(())?;
        let text = part.word.text.as_str();
        let from_glob = part.substituted && part.word.globs;
        // If the variable of a loop is a glob, it must be the whole word.
        (!from_glob || draft.pieces == 1 && written.ends_with('"')).then_some(())?;
        let looks_plain = !text.starts_with(seems_punctuation)
            && (part.word.quoted || !mixes_alphabets(text) && text.is_ascii());
        let assigns = text.contains("=~") || text.contains('=') && text.contains(":~");
        let is_tilde = text.starts_with('~') && !means_home(written, text);
        // `3> a` and `{name}> a` are not words.
        let is_descriptor = matches!(self.peek(), Some(b'<' | b'>'))
            && (text.bytes().all(|byte| byte.is_ascii_digit()) || text.starts_with('{'));
        (looks_plain && !is_descriptor && !assigns && !is_tilde && !written.starts_with('='))
            .then_some(())?;
        if part.unknown == Some(Unknown::Text) {
            written.clone_into(&mut part.word.text);
            part.word.globs = false;
        }
        Some(part)
    }
}

/// The most words that braces expand to here.
const MOST_WORDS: usize = 32;

/// The words of `a{b,c}d` and `a{1..5}d`, if everything else in it is plain.
fn expand_braces(raw: &str) -> Option<Vec<String>> {
    let (before, rest) = raw.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    let is_plain = |text: &str| text.bytes().all(|byte| means_nothing(byte) && byte != b'=');
    let is_number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits && (1..=4).contains(&text.len()) && (text == "0" || !text.starts_with('0'))
    };
    (is_plain(before) && is_plain(after)).then_some(())?;
    let texts: Vec<String> = match inside.split_once("..") {
        Some((first, last)) if is_number(first) && is_number(last) => {
            let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
            (first <= last && last - first < MOST_WORDS).then_some(())?;
            (first..=last).map(|number| number.to_string()).collect()
        }
        None if inside.contains(',') => {
            let each = || inside.split(',');
            let is_one = |text: &str| !text.is_empty() && is_plain(text);
            (each().all(is_one) && each().count() <= MOST_WORDS).then_some(())?;
            each().map(str::to_owned).collect()
        }
        _ => return None,
    };
    let whole = |text: &String| format!("{before}{text}{after}");
    Some(texts.iter().map(whole).collect())
}

/// Whether a leading `~` means home: it is not quoted, or it is `$HOME`.
fn means_home(written: &str, text: &str) -> bool {
    let inside = written.strip_prefix('"').unwrap_or(written);
    let by_name = inside.starts_with("$HOME") || inside.starts_with("${HOME}");
    let is_bare =
        written.starts_with('~') && matches!(written.as_bytes().get(1), None | Some(b'/'));
    names_home(text) && (by_name || is_bare)
}
