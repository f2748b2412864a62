//! What a person types on the way to the program, and the one key in it that is meant for us. Pure.

use std::time::Duration;

/// How long the first of two presses waits for the second.
const TWICE: Duration = Duration::from_millis(300);
/// A terminal writes the whole of a key at once; a link may tear it. After this, an ESC was the Esc key.
const TORN: Duration = Duration::from_millis(30);
/// Longer than any key that a terminal tells: what is longer is none of ours.
const MAX_KEY: usize = 64;

const PASTE_BEGINS: &[u8] = b"200~";
const PASTE_ENDS: &[u8] = b"201~";

/// Ctrl with a letter or one of `@[\]^_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetachKey {
    /// The letter in lower case, or the sign.
    letter: u8,
}

impl DetachKey {
    /// The byte that a terminal sends for it in plain mode.
    fn control(self) -> u8 {
        self.letter.to_ascii_uppercase() & 0x1f
    }
}

impl std::str::FromStr for DetachKey {
    type Err = String;

    fn from_str(text: &str) -> Result<DetachKey, String> {
        let lower = text.to_ascii_lowercase();
        let letter = ["ctrl-", "ctrl+", "^"]
            .iter()
            .find_map(|prefix| lower.strip_prefix(prefix));
        match letter.map(str::as_bytes) {
            // The terminal sends these for Tab, Enter, Enter and Esc as well.
            Some([b'i' | b'j' | b'm' | b'[']) => {
                Err("a terminal can't tell it from Tab, Enter or Esc".to_owned())
            }
            Some([letter @ (b'a'..=b'z' | b'@' | b'\\' | b']' | b'^' | b'_')]) => {
                Ok(DetachKey { letter: *letter })
            }
            _ => Err(
                "it must be ctrl- and a letter, or one of @ \\ ] ^ _, such as ctrl-q".to_owned(),
            ),
        }
    }
}

impl std::fmt::Display for DetachKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ctrl-{}", char::from(self.letter))
    }
}

/// What comes of some typing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// For the program.
    pub send: Vec<u8>,
    pub detach: bool,
}

#[derive(Debug)]
pub struct KeyReader {
    key: DetachKey,
    /// The beginning of what may be a key of several bytes.
    held: Vec<u8>,
    in_paste: bool,
    /// It was pressed once.
    pressed: bool,
}

/// What a key is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttachKey {
    Detach,
    /// The detach key is let go, which the kitty protocol tells.
    Released,
    Other,
}

impl KeyReader {
    pub fn new(key: DetachKey) -> KeyReader {
        KeyReader {
            key,
            held: Vec::new(),
            in_paste: false,
            pressed: false,
        }
    }

    pub fn take(&mut self, bytes: &[u8]) -> Typed {
        let mut typed = Typed::default();
        for byte in bytes {
            self.held.push(*byte);
            if self.is_whole() {
                let key = std::mem::take(&mut self.held);
                self.press(key, &mut typed);
            }
            if typed.detach {
                break;
            }
        }
        typed
    }

    /// How long to wait for more before [`KeyReader::time_passed`].
    pub fn patience(&self) -> Option<Duration> {
        match (self.pressed, self.held.is_empty()) {
            (true, _) => Some(TWICE),
            (false, false) => Some(TORN),
            (false, true) => None,
        }
    }

    /// Nothing was typed for that long.
    pub fn time_passed(&mut self) -> Typed {
        Typed {
            detach: self.pressed,
            send: match self.pressed {
                true => Vec::new(),
                false => std::mem::take(&mut self.held),
            },
        }
    }

    /// Whether what is held is a key, as far as it matters here.
    fn is_whole(&self) -> bool {
        match self.held.as_slice() {
            [0x1b] | [0x1b, b'['] => false,
            // Esc pressed twice, or before another key: the second ESC may begin something.
            [0x1b, 0x1b] => true,
            [0x1b, b'[', params @ .., last] => {
                (0x40..=0x7e).contains(last) || params.len() >= MAX_KEY || *last < 0x20
            }
            _ => true,
        }
    }

    fn press(&mut self, mut key: Vec<u8>, typed: &mut Typed) {
        if key == b"\x1b\x1b" {
            self.held = key.split_off(1);
        }
        let meaning = self.meaning(&key);
        self.follow_paste(&key);
        match (meaning, self.pressed) {
            (AttachKey::Detach, false) => self.pressed = true,
            (AttachKey::Released, true) => {}
            (AttachKey::Detach, true) => {
                self.pressed = false;
                typed.send.append(&mut key);
            }
            (AttachKey::Other, true) => typed.detach = true,
            (AttachKey::Other | AttachKey::Released, false) => typed.send.append(&mut key),
        }
    }

    fn follow_paste(&mut self, key: &[u8]) {
        match key.strip_prefix(b"\x1b[") {
            Some(PASTE_BEGINS) => self.in_paste = true,
            Some(PASTE_ENDS) => self.in_paste = false,
            _ => {}
        }
    }

    fn meaning(&self, key: &[u8]) -> AttachKey {
        match key {
            _ if self.in_paste => AttachKey::Other,
            [byte] if *byte == self.key.control() => AttachKey::Detach,
            [0x1b, b'[', body @ .., b'u'] => self.by_kitty(body),
            [0x1b, b'[', body @ .., b'~'] => self.by_modify_other_keys(body),
            _ => AttachKey::Other,
        }
    }

    /// `code:shifted:base;modifiers:event;text`. On a keyboard of another script, base is where the letter is.
    fn by_kitty(&self, body: &[u8]) -> AttachKey {
        let mut fields = body.split(|byte| *byte == b';');
        let codes: Vec<Option<u32>> = numbers(fields.next());
        let modifiers = numbers(fields.next());
        let is_letter = [codes.first(), codes.get(2)]
            .into_iter()
            .flatten()
            .any(|code| *code == Some(self.key.letter.into()));
        if !is_letter || !is_ctrl(modifiers.first().copied().flatten()) {
            return AttachKey::Other;
        }
        match modifiers.get(1).copied().flatten() {
            Some(3) => AttachKey::Released,
            _ => AttachKey::Detach,
        }
    }

    /// `27;modifiers;code`.
    fn by_modify_other_keys(&self, body: &[u8]) -> AttachKey {
        let fields: Vec<Option<u32>> = body
            .split(|byte| *byte == b';')
            .map(|field| numbers(Some(field)).first().copied().flatten())
            .collect();
        let letter = u32::from(self.key.letter);
        match fields.as_slice() {
            [Some(27), modifiers, Some(code)] if *code == letter && is_ctrl(*modifiers) => {
                AttachKey::Detach
            }
            _ => AttachKey::Other,
        }
    }
}

/// Ctrl and nothing else, whatever the locks are; modifiers are told as their sum and one more.
fn is_ctrl(modifiers: Option<u32>) -> bool {
    const CTRL: u32 = 4;
    const LOCKS: u32 = 64 | 128;
    modifiers.is_some_and(|sum| sum.saturating_sub(1) & !LOCKS == CTRL)
}

/// The numbers of a field, between colons.
fn numbers(field: Option<&[u8]>) -> Vec<Option<u32>> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
    let parts = field.unwrap_or_default().split(|byte| *byte == b':');
    parts.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> KeyReader {
        KeyReader::new("ctrl-q".parse().unwrap())
    }

    /// Every encoding in which a terminal may tell ctrl-q.
    const PRESSES: [&[u8]; 8] = [
        b"\x11",
        b"\x1b[113;5u",
        b"\x1b[113;5:1u",
        b"\x1b[113;5:2u",
        b"\x1b[113::113;5:1u",
        b"\x1b[1097::113;5u",
        b"\x1b[113;69u",
        b"\x1b[27;5;113~",
    ];

    #[test]
    fn pressed_once_it_detaches_when_no_second_press_comes() {
        for press in PRESSES {
            let mut keys = keys();
            assert_eq!(keys.take(press), Typed::default(), "{press:?}");
            assert_eq!(keys.patience(), Some(TWICE));
            let typed = keys.time_passed();
            assert!(typed.detach && typed.send.is_empty(), "{press:?}");
        }
    }

    #[test]
    fn pressed_twice_it_is_sent_once() {
        for press in PRESSES {
            let mut keys = keys();
            let released = b"\x1b[113;5:3u";
            keys.take(press);
            assert_eq!(keys.take(released), Typed::default());
            assert_eq!(keys.take(press).send, press);
            assert_eq!(keys.patience(), None);
        }
        assert_eq!(keys().take(b"\x11\x11a").send, b"\x11a");
    }

    #[test]
    fn another_key_after_it_does_not_wait() {
        let typed = keys().take(b"ab\x11c");
        assert_eq!((typed.send.as_slice(), typed.detach), (&b"ab"[..], true));
    }

    #[test]
    fn what_is_not_the_key_is_sent_as_it_is() {
        let others: [&[u8]; 9] = [
            b"\x1b[113u",
            b"\x1b[113;6u",
            b"\x1b[113;5:3u",
            b"\x1b[119;5u",
            b"\x1b[27;6;113~",
            b"\x1b[1;5R",
            b"\x1b\x1b[A",
            b"\x1bq",
            "é漢\x1b[<35;10;10M".as_bytes(),
        ];
        for other in others {
            let typed = keys().take(other);
            assert_eq!((typed.send.as_slice(), typed.detach), (other, false));
        }
    }

    #[test]
    fn in_a_paste_it_is_text() {
        let paste = b"\x1b[200~a\x11\x1b[113;5ub\x11\x11\x1b[201~";
        for cut in 1..paste.len() {
            let mut keys = keys();
            let mut sent = Vec::new();
            for chunk in paste.chunks(cut) {
                let typed = keys.take(chunk);
                assert!(!typed.detach);
                sent.extend(typed.send);
            }
            assert_eq!(sent, paste, "{cut}");
            keys.take(b"\x11");
            assert!(keys.time_passed().detach);
        }
    }

    #[test]
    fn the_esc_key_is_sent_after_a_moment() {
        let mut keys = keys();
        assert_eq!(keys.take(b"\x1b"), Typed::default());
        assert_eq!(keys.patience(), Some(TORN));
        assert_eq!(keys.time_passed().send, b"\x1b");
        assert_eq!(keys.patience(), None);
    }

    #[test]
    fn only_keys_that_a_terminal_can_tell_are_taken() {
        for good in ["ctrl-q", "Ctrl-Q", "ctrl+]", "^\\", "ctrl-_"] {
            assert!(good.parse::<DetachKey>().is_ok(), "{good}");
        }
        for bad in [
            "", "q", "ctrl-", "ctrl-qq", "ctrl-é", "ctrl-m", "ctrl-[", "alt-q", "ctrl-1",
        ] {
            assert!(bad.parse::<DetachKey>().is_err(), "{bad}");
        }
        let key: DetachKey = "^]".parse().unwrap();
        assert_eq!((key.control(), key.to_string().as_str()), (0x1d, "ctrl-]"));
    }

    proptest! {
        /// Whatever is typed without the key arrives unchanged, however it is torn.
        #[test]
        fn nothing_is_lost(
            pieces in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>().prop_filter("not the key", |b| *b != 0x11), 0..8),
                "\\x1b\\[[0-9;:<?]{0,9}[a-zA-Z~]?".prop_map(String::into_bytes)
                    .prop_filter("not the key", |s| !s.windows(3).any(|w| w == b"113")),
            ], 0..20),
            cut in 1usize..20,
        ) {
            let stream = pieces.concat();
            let mut keys = keys();
            let mut sent = Vec::new();
            for chunk in stream.chunks(cut) {
                let typed = keys.take(chunk);
                prop_assert!(!typed.detach);
                sent.extend(typed.send);
            }
            sent.extend(keys.time_passed().send);
            prop_assert_eq!(sent, stream);
        }
    }
}
