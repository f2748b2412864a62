//! One word of a command: the text that the program gets, and whether that is certain.

use super::characters::{mixes_alphabets, seems_punctuation};
use std::borrow::Cow;
use tree_sitter::Node;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// The text that the program gets, without quotes; the word as written if that is uncertain.
    pub text: String,
    /// Its position in the whole command.
    pub start: usize,
    /// Its length there.
    pub length: usize,
    /// Whether the shell may replace it by file names.
    pub globs: bool,
    /// Whether any part of it is quoted or escaped.
    pub quoted: bool,
    /// Why the text that the program gets is uncertain.
    pub doubt: Option<&'static str>,
}

impl Word {
    /// Usable as the name of a program: plain ASCII, without a backslash or a quote in the middle.
    pub fn is_plain_name(&self) -> bool {
        self.doubt.is_none()
            && !self.globs
            && !self.quoted
            && !self.text.is_empty()
            && self.text.is_ascii()
    }

    /// The word in a form that a shell reads as the same: bare if that is safe, otherwise in single quotes.
    pub fn canonical(&self) -> Cow<'_, str> {
        let safe = |c: char| c.is_alphanumeric() || "-_./:=@%+,^~{}[]*?!#".contains(c);
        match !self.text.is_empty() && self.text.chars().all(safe) {
            true => Cow::Borrowed(&self.text),
            false => Cow::Owned(format!("'{}'", self.text.replace('\'', r"'\''"))),
        }
    }
}

pub fn read(node: Node<'_>, source: &str) -> Word {
    let raw = &source[node.byte_range()];
    // Fast path: most words have no special characters.
    if node.kind() == "word" && raw.bytes().all(means_nothing) && !raw.starts_with('=') {
        return Word {
            text: raw.to_owned(),
            start: node.start_byte(),
            length: raw.len(),
            ..Word::default()
        };
    }
    let mut reading = Reading {
        source,
        ..Reading::default()
    };
    reading.node(node);
    let doubt = reading.doubt.or_else(|| reading.doubt_of_shape());
    Word {
        start: node.start_byte(),
        length: raw.len(),
        globs: reading.shape.contains(['*', '?', '[']),
        quoted: reading.shape.contains(QUOTED) || reading.quoted,
        text: match doubt {
            Some(_) if reading.opaque => source[node.byte_range()].to_owned(),
            _ => reading.text,
        },
        doubt,
    }
}

pub const NOT_PLAIN: &str = "it has words that are not plain text";
pub const TILDE: &str = "it has a `~` that means a directory other than home";
pub const EXPANDS: &str = "it expands variables or commands";

/// Characters without a special meaning, anywhere in a word.
pub const fn means_nothing(byte: u8) -> bool {
    MEANS_NOTHING[byte as usize]
}

/// A look-up table, because every character of a command is tested.
const MEANS_NOTHING: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        let c = byte as u8;
        let mark = matches!(
            c,
            b'-' | b'_' | b'.' | b'/' | b':' | b'=' | b'@' | b'%' | b'+' | b','
        );
        table[byte] = c.is_ascii_alphanumeric() || mark;
        byte += 1;
    }
    table
};

/// Whether a `$` in double quotes is literal before this character, as in `"^a$|b$"`.
pub fn ends_a_dollar(next: char) -> bool {
    "|/.,;:%)]}=<>^~+".contains(next)
}

/// Marks every quoted character in the shape.
const QUOTED: char = '\u{1}';

#[derive(Default)]
struct Reading<'s> {
    source: &'s str,
    text: String,
    /// The text with quoted characters masked: the rest has its meaning to the shell.
    shape: String,
    quoted: bool,
    /// A part of it is known only at run time.
    opaque: bool,
    doubt: Option<&'static str>,
}

impl Reading<'_> {
    fn node(&mut self, node: Node<'_>) {
        let raw = &self.source[node.byte_range()];
        match node.kind() {
            "word" | "number" => self.bare(raw),
            "raw_string" => self.quote(raw.trim_matches('\'')),
            "string" => self.double_quoted(raw),
            "ansi_c_string" => self.ansi_c(raw),
            "concatenation" => self.concatenation(node),
            _ => {
                self.opaque = true;
                self.doubt.get_or_insert(NOT_PLAIN);
            }
        }
    }

    fn concatenation(&mut self, node: Node<'_>) {
        let mut end = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if child.start_byte() != end {
                self.doubt
                    .get_or_insert("the boundaries of its words are unclear");
            }
            end = child.end_byte();
            self.node(child);
        }
    }

    fn bare(&mut self, raw: &str) {
        let mut chars = raw.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => self.quote(chars.next().unwrap_or('\\').encode_utf8(&mut [0; 4])),
                _ => {
                    self.text.push(c);
                    self.shape.push(c);
                }
            }
        }
    }

    fn quote(&mut self, text: &str) {
        self.quoted = true;
        self.text.push_str(text);
        // An empty quote leaves a mark too: `~""/x` is not in the home directory.
        self.shape.push(QUOTED);
        self.shape.extend(text.chars().map(|_| QUOTED));
    }

    fn double_quoted(&mut self, raw: &str) {
        let inner = raw
            .strip_prefix('"')
            .and_then(|raw| raw.strip_suffix('"'))
            .unwrap_or(raw);
        self.quote("");
        let mut chars = inner.chars().peekable();
        while let Some(c) = chars.next() {
            let literal = match c {
                '\\' => chars
                    .next_if(|next| matches!(next, '$' | '`' | '"' | '\\'))
                    .unwrap_or('\\'),
                '$' if chars.peek().is_none_or(|next| ends_a_dollar(*next)) => c,
                '$' | '`' => {
                    self.opaque = true;
                    self.doubt.get_or_insert(EXPANDS);
                    c
                }
                _ => c,
            };
            self.quote(literal.encode_utf8(&mut [0; 4]));
        }
    }

    /// `$'…'` writes letters as numbers. It never counts as plain, but it is decoded, so that it hides nothing.
    fn ansi_c(&mut self, raw: &str) {
        self.doubt.get_or_insert("it has a word in `$'…'`");
        let inner = raw
            .strip_prefix("$'")
            .and_then(|raw| raw.strip_suffix('\''))
            .unwrap_or(raw);
        let decoded = ansi_c_text(inner);
        self.quote(&decoded);
    }

    fn doubt_of_shape(&self) -> Option<&'static str> {
        if self
            .shape
            .contains(['$', '`', '(', ')', '<', '>', ';', '|', '&', '"', '\''])
        {
            return Some(NOT_PLAIN);
        }
        if self.shape.starts_with('=') && !self.shape.bytes().all(|b| b == b'=') {
            return Some("a word begins with `=`, which some shells replace");
        }
        if expands_braces(&self.shape) {
            return Some("it expands braces");
        }
        if expands_tilde(&self.shape) {
            return Some(TILDE);
        }
        if self.shape.starts_with(QUOTED) && names_home(&self.text) {
            return Some("it quotes a `~`, which is a directory of that name");
        }
        if self.shape.contains(seems_punctuation) || self.text.starts_with(seems_punctuation) {
            return Some("it has a word with a character that looks like another");
        }
        if mixes_alphabets(&self.text) && !self.quoted {
            return Some("it has a word that mixes look-alike letters");
        }
        None
    }
}

/// Whether a `~` means a directory other than home: at the start of a word, and after `=` and `:` in a possible assignment.
fn expands_tilde(shape: &str) -> bool {
    let is_other = |text: &str| text.starts_with('~') && !names_home(text);
    let assigned = shape.split_once('=').map(|(_, value)| value);
    let mut values = assigned
        .into_iter()
        .flat_map(|value| value.split(['=', ':']));
    is_other(shape) || values.any(is_other)
}

/// Whether a text begins with a `~` that means the home directory, if it is not quoted.
pub fn names_home(text: &str) -> bool {
    let rest = text.strip_prefix('~');
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn expands_braces(shape: &str) -> bool {
    shape
        .split_once('{')
        .is_some_and(|(_, inside)| inside.contains(',') || inside.contains(".."))
}

fn ansi_c_text(inner: &str) -> String {
    let mut out = String::new();
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(escape) = chars.next() else { break };
        let (radix, most) = match escape {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 2),
            'n' | 't' | 'r' | 'a' | 'b' | 'e' | 'E' | 'f' | 'v' => {
                out.push(' ');
                continue;
            }
            other => {
                out.push(other);
                continue;
            }
        };
        let mut code = escape.to_digit(8).filter(|_| radix == 8).unwrap_or(0);
        for _ in 0..most {
            let Some(digit) = chars
                .next_if(|c| c.is_digit(radix))
                .and_then(|c| c.to_digit(radix))
            else {
                break;
            };
            code = code.wrapping_mul(radix).wrapping_add(digit);
        }
        out.push(char::from_u32(code).unwrap_or(' '));
    }
    out
}
