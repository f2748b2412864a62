//! Parses bytes from the terminal into keys, in any split. Pure.

/// A key that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypedKey {
    /// A character, or a whole bracketed paste.
    Text(String),
    Enter,
    Esc,
    Up,
    Down,
    Backspace,
    /// Ctrl-C.
    Clear,
}

const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// The maximum bytes of a paste that is collected; a longer one comes in pieces.
const MAX_PENDING: usize = 8 * 1024 * 1024;

/// A parser that keeps incomplete sequences.
#[derive(Debug, Default)]
pub struct StandInTyped {
    pending: Vec<u8>,
}

impl StandInTyped {
    /// The keys that are complete now.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<TypedKey> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((used, key)) = first_key(&self.pending) {
            self.pending.drain(..used);
            keys.extend(key);
        }
        if self.pending.len() > MAX_PENDING {
            let text = std::mem::take(&mut self.pending);
            keys.push(TypedKey::Text(String::from_utf8_lossy(&text).into_owned()));
        }
        keys
    }

    /// Handles a pause in the input: a single Esc does not begin a sequence.
    pub fn silence(&mut self) -> Option<TypedKey> {
        (self.pending == b"\x1b").then(|| {
            self.pending.clear();
            TypedKey::Esc
        })
    }
}

/// The length of the first key and the key; `None` if it is incomplete. Bytes that are not a key are consumed.
fn first_key(bytes: &[u8]) -> Option<(usize, Option<TypedKey>)> {
    match *bytes.first()? {
        0x1b => escaped(bytes),
        b'\r' | b'\n' => Some((1, Some(TypedKey::Enter))),
        0x7f | 0x08 => Some((1, Some(TypedKey::Backspace))),
        0x03 => Some((1, Some(TypedKey::Clear))),
        0x00..0x20 => Some((1, None)),
        _ => character(bytes),
    }
}

fn escaped(bytes: &[u8]) -> Option<(usize, Option<TypedKey>)> {
    if bytes.starts_with(PASTE_BEGIN) {
        let text = &bytes[PASTE_BEGIN.len()..];
        let end = text
            .windows(PASTE_END.len())
            .position(|part| part == PASTE_END)?;
        let pasted = String::from_utf8_lossy(&text[..end]).into_owned();
        let used = PASTE_BEGIN.len() + end + PASTE_END.len();
        return Some((used, Some(TypedKey::Text(pasted))));
    }
    match bytes.get(1)? {
        b'[' | b'O' => {
            let last = bytes[2..]
                .iter()
                .position(|byte| (0x40..=0x7e).contains(byte))?;
            let key = match bytes[2 + last] {
                b'A' => Some(TypedKey::Up),
                b'B' => Some(TypedKey::Down),
                _ => None,
            };
            Some((last + 3, key))
        }
        _ => Some((1, Some(TypedKey::Esc))),
    }
}

fn character(bytes: &[u8]) -> Option<(usize, Option<TypedKey>)> {
    let length = match bytes[0] {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    let whole = bytes.get(..length)?;
    let text = std::str::from_utf8(whole).ok();
    Some((length, text.map(|text| TypedKey::Text(text.to_owned()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &[u8] = "a\x1b[200~two\nlines é\x1b[201~\r\x1b[A\x1b[B\x1b[I\x7f\x03é".as_bytes();

    fn expected() -> Vec<TypedKey> {
        let text = |text: &str| TypedKey::Text(text.to_owned());
        vec![
            text("a"),
            text("two\nlines é"),
            TypedKey::Enter,
            TypedKey::Up,
            TypedKey::Down,
            TypedKey::Backspace,
            TypedKey::Clear,
            text("é"),
        ]
    }

    #[test]
    fn keys_are_the_same_however_the_bytes_are_split() {
        assert_eq!(StandInTyped::default().feed(INPUT), expected());
        let mut typed = StandInTyped::default();
        let bytes = INPUT.chunks(1);
        let keys: Vec<TypedKey> = bytes.flat_map(|byte| typed.feed(byte)).collect();
        assert_eq!(keys, expected());
    }

    #[test]
    fn an_escape_is_one_only_after_silence() {
        let mut typed = StandInTyped::default();
        assert_eq!(typed.feed(b"\x1b"), []);
        assert_eq!(typed.silence(), Some(TypedKey::Esc));
        assert_eq!(typed.silence(), None);
        assert_eq!(typed.feed(b"\x1b[200~half"), []);
        assert_eq!(typed.silence(), None);
    }
}
