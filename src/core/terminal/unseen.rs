//! What a program has set and the emulator does not show: the margins, which it keeps to itself, and the protocols
//! for the keyboard, which it does not offer. A person's terminal is told of them nevertheless: the program has asked
//! for them, and it gets what it asked for.

use super::snapshot::put;

/// Flags that a program may put aside for each screen; terminals keep about as many.
const MAX_KEPT: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Unseen {
    rows: usize,
    /// First and last row, from 1, where they are not those of the screen.
    margins: Option<(usize, usize)>,
    alternate: bool,
    /// Flags of the kitty protocol on the main and on the alternate screen, the present ones last.
    flags: [Vec<u16>; 2],
    flags_were_used: bool,
    /// How xterm is to tell modified keys.
    other_keys: Option<u16>,
    other_keys_were_used: bool,
    /// The second character set is in use.
    pub shifted: bool,
}

impl Unseen {
    /// The screen has so many rows, and no margins.
    pub fn resize(&mut self, rows: usize) {
        self.rows = rows;
        self.margins = None;
    }

    pub fn reset(&mut self) {
        *self = Unseen {
            rows: self.rows,
            flags_were_used: self.flags_were_used,
            other_keys_were_used: self.other_keys_were_used,
            ..Unseen::default()
        };
    }

    /// A control sequence: what is before its last byte, and that.
    pub fn note(&mut self, params: &[u8], last: u8) {
        match (params, last) {
            (b"?1049", b'h' | b'l') => self.alternate = last == b'h',
            (b"?3", b'h' | b'l') => self.margins = None,
            ([b'>', flags @ ..], b'u') => self.push(number(flags, 0)),
            ([b'<', count @ ..], b'u') => self.pop(number(count, 1)),
            ([b'=', change @ ..], b'u') => self.change(change),
            ([b'>', b'4', level @ ..], b'm') => {
                self.other_keys_were_used = true;
                self.other_keys = level.strip_prefix(b";").map(|level| number(level, 0));
            }
            (margins, b'r')
                if margins
                    .iter()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b';')) =>
            {
                self.set_margins(margins);
            }
            _ => {}
        }
    }

    fn set_margins(&mut self, params: &[u8]) {
        let mut fields = params.split(|byte| *byte == b';');
        let mut next = |default: usize| match number(fields.next().unwrap_or_default(), 0) {
            0 => default,
            row => usize::from(row),
        };
        let (top, bottom) = (next(1), next(self.rows));
        if top < bottom {
            let all = (top, bottom.min(self.rows)) == (1, self.rows);
            // As they were given: margins below the screen are not the same as none.
            self.margins = (!all).then_some((top, bottom));
        }
    }

    fn kept(&mut self) -> &mut Vec<u16> {
        self.flags_were_used = true;
        &mut self.flags[usize::from(self.alternate)]
    }

    fn push(&mut self, flags: u16) {
        let kept = self.kept();
        if kept.len() == MAX_KEPT {
            kept.remove(0);
        }
        kept.push(flags);
    }

    fn pop(&mut self, count: u16) {
        let kept = self.kept();
        kept.truncate(kept.len().saturating_sub(count.into()));
    }

    /// Sets the present flags, or some of them, or takes some away.
    fn change(&mut self, change: &[u8]) {
        let mut fields = change.split(|byte| *byte == b';');
        let flags = number(fields.next().unwrap_or_default(), 0);
        let how = number(fields.next().unwrap_or_default(), 1);
        let kept = self.kept();
        if kept.is_empty() {
            kept.push(0);
        }
        if let Some(present) = kept.last_mut() {
            *present = match how {
                2 => *present | flags,
                3 => *present & !flags,
                _ => flags,
            };
        }
    }

    /// First and last row within which the program scrolls, from 1.
    pub fn margins(&self) -> Option<(usize, usize)> {
        self.margins
    }

    /// Makes a keyboard tell its keys as the program has asked for; nothing, where it never has.
    pub fn put_keyboard(&self, out: &mut String) {
        if self.flags_were_used {
            put(out, format_args!("\x1b[<{MAX_KEPT}u"));
            for flags in &self.flags[usize::from(self.alternate)] {
                put(out, format_args!("\x1b[>{flags}u"));
            }
        }
        match self.other_keys {
            Some(level) => put(out, format_args!("\x1b[>4;{level}m")),
            None if self.other_keys_were_used => out.push_str("\x1b[>4m"),
            None => {}
        }
    }
}

fn number(text: &[u8], default: u16) -> u16 {
    let text = std::str::from_utf8(text).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyboard(sequences: &[(&str, u8)]) -> String {
        let mut unseen = Unseen::default();
        for (params, last) in sequences {
            unseen.note(params.as_bytes(), *last);
        }
        let mut out = String::new();
        unseen.put_keyboard(&mut out);
        out
    }

    #[test]
    fn what_was_asked_of_the_keyboard_is_asked_again() {
        assert_eq!(keyboard(&[]), "");
        assert_eq!(
            keyboard(&[(">1", b'u'), (">5", b'u')]),
            "\x1b[<16u\x1b[>1u\x1b[>5u"
        );
        assert_eq!(keyboard(&[(">1", b'u'), ("<", b'u')]), "\x1b[<16u");
        assert_eq!(
            keyboard(&[("=5", b'u'), ("=2;2", b'u'), ("=1;3", b'u')]),
            "\x1b[<16u\x1b[>6u"
        );
        assert_eq!(keyboard(&[(">4;2", b'm')]), "\x1b[>4;2m");
        assert_eq!(keyboard(&[(">4;2", b'm'), (">4", b'm')]), "\x1b[>4m");
    }

    #[test]
    fn each_screen_has_its_own_flags_and_they_are_bounded() {
        let main = (">1", b'u');
        assert_eq!(keyboard(&[main, ("?1049", b'h')]), "\x1b[<16u");
        assert_eq!(
            keyboard(&[main, ("?1049", b'h'), ("?1049", b'l')]),
            "\x1b[<16u\x1b[>1u"
        );
        assert_eq!(keyboard(&[main; 1000]).matches('>').count(), MAX_KEPT);
    }

    #[test]
    fn margins_are_those_of_the_emulator() {
        let margins = |params: &str| {
            let mut unseen = Unseen::default();
            unseen.resize(24);
            unseen.note(params.as_bytes(), b'r');
            unseen.margins()
        };
        assert_eq!(margins("2;10"), Some((2, 10)));
        assert_eq!(margins("5"), Some((5, 24)));
        assert_eq!(margins("0;99"), None);
        assert_eq!(margins("9;3"), None);
        assert_eq!(margins("?7"), None);
    }
}
