//! Takes a program's output apart into whole characters and sequences, byte for byte: put together again, the
//! pieces are what went in. Fed in chunks that may be split anywhere.

/// A control sequence that is longer is no longer looked at as one: real ones stay below 50 bytes.
const MAX_SEQUENCE: usize = 1024;

/// A piece of the output, with what it was on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePiece<'a> {
    pub kind: SequenceKind,
    pub raw: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceKind {
    /// Characters, and control characters among them.
    Text,
    /// ESC with what belongs to it.
    Escape,
    Csi,
    Osc,
    Dcs,
    /// APC, PM or SOS.
    OtherString,
    /// A part of something that is too long to be held; the last part of it says so.
    Part {
        last: bool,
    },
}

impl<'a> SequencePiece<'a> {
    /// What is between the introducer and the end: parameters, intermediates and the final byte of a control
    /// sequence, the text of a string.
    pub fn body(&self) -> &'a [u8] {
        let inner = self.raw.get(2..).unwrap_or_default();
        match self.kind {
            SequenceKind::Osc | SequenceKind::Dcs | SequenceKind::OtherString => {
                let end = inner
                    .strip_suffix(b"\x1b\\")
                    .or_else(|| inner.strip_suffix(b"\x07"));
                end.unwrap_or(inner)
            }
            SequenceKind::Csi => inner,
            SequenceKind::Text | SequenceKind::Escape | SequenceKind::Part { .. } => self.raw,
        }
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SequenceState {
    #[default]
    Ground,
    Escape,
    Csi,
    String(StringKind),
    /// An ESC inside a string: its end, if a backslash follows.
    StringEscape(StringKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringKind {
    Osc,
    Dcs,
    Other,
}

#[derive(Debug, Default)]
pub struct Sequences {
    state: SequenceState,
    /// The unfinished sequence from its ESC on.
    held: Vec<u8>,
    /// The beginning of the present sequence was given out already, since it is so long.
    parted: bool,
}

impl Sequences {
    /// Gives each piece that is complete to `each`, in order.
    pub fn split(&mut self, bytes: &[u8], mut each: impl FnMut(SequencePiece)) {
        let mut rest = bytes;
        while let [byte, after @ ..] = rest {
            let run = match self.state {
                SequenceState::Ground => rest.iter().take_while(|byte| **byte != 0x1b).count(),
                _ => 0,
            };
            if run > 0 {
                let (raw, after) = rest.split_at(run);
                each(piece(SequenceKind::Text, raw));
                rest = after;
                continue;
            }
            self.step(*byte, &mut each);
            rest = after;
        }
    }

    /// Whether the next bytes go on with something of which a part was given out.
    pub fn is_inside_long(&self) -> bool {
        self.parted
    }

    fn step(&mut self, byte: u8, each: &mut impl FnMut(SequencePiece)) {
        match (self.state, byte) {
            (SequenceState::String(kind), 0x1b) => {
                self.go_on(byte, SequenceState::StringEscape(kind), each)
            }
            (SequenceState::StringEscape(kind), b'\\') => self.end(byte, kind.into(), each),
            (SequenceState::StringEscape(_), _) => {
                // The string was broken off by the beginning of another sequence.
                self.held.pop();
                self.release(each);
                self.held.push(0x1b);
                self.state = SequenceState::Escape;
                self.step(byte, each);
            }
            (_, 0x1b) => {
                self.release(each);
                self.go_on(byte, SequenceState::Escape, each);
            }
            (SequenceState::Ground, _) => each(piece(SequenceKind::Text, &[byte])),
            (_, 0x18 | 0x1a) => {
                self.release(each);
                self.state = SequenceState::Ground;
                each(piece(SequenceKind::Text, &[byte]));
            }
            (SequenceState::Escape, _) => self.step_escape(byte, each),
            (SequenceState::Csi, 0x40..=0x7e) => self.end(byte, SequenceKind::Csi, each),
            (SequenceState::String(StringKind::Osc), 0x07) => {
                self.end(byte, SequenceKind::Osc, each)
            }
            (state, _) => self.go_on(byte, state, each),
        }
    }

    fn step_escape(&mut self, byte: u8, each: &mut impl FnMut(SequencePiece)) {
        let begins = self.held.len() == 1;
        match byte {
            b'[' if begins => self.go_on(byte, SequenceState::Csi, each),
            b']' if begins => self.go_on(byte, SequenceState::String(StringKind::Osc), each),
            b'P' if begins => self.go_on(byte, SequenceState::String(StringKind::Dcs), each),
            b'X' | b'^' | b'_' if begins => {
                self.go_on(byte, SequenceState::String(StringKind::Other), each)
            }
            0x30..=0x7e => self.end(byte, SequenceKind::Escape, each),
            _ => self.go_on(byte, SequenceState::Escape, each),
        }
    }

    fn go_on(&mut self, byte: u8, state: SequenceState, each: &mut impl FnMut(SequencePiece)) {
        self.state = state;
        self.held.push(byte);
        // An ESC stays, since what it means depends on what follows.
        if self.held.len() > MAX_SEQUENCE && byte != 0x1b {
            self.parted = true;
            each(piece(SequenceKind::Part { last: false }, &self.held));
            self.held.clear();
        }
    }

    fn end(&mut self, byte: u8, kind: SequenceKind, each: &mut impl FnMut(SequencePiece)) {
        self.held.push(byte);
        self.state = SequenceState::Ground;
        self.give(kind, each);
    }

    /// Gives out what is held of a sequence that was broken off.
    fn release(&mut self, each: &mut impl FnMut(SequencePiece)) {
        if !self.held.is_empty() || self.parted {
            self.give(SequenceKind::Text, each);
        }
    }

    fn give(&mut self, kind: SequenceKind, each: &mut impl FnMut(SequencePiece)) {
        let kind = match std::mem::take(&mut self.parted) {
            true => SequenceKind::Part { last: true },
            false => kind,
        };
        each(piece(kind, &self.held));
        self.held.clear();
    }
}

impl From<StringKind> for SequenceKind {
    fn from(kind: StringKind) -> SequenceKind {
        match kind {
            StringKind::Osc => SequenceKind::Osc,
            StringKind::Dcs => SequenceKind::Dcs,
            StringKind::Other => SequenceKind::OtherString,
        }
    }
}

fn piece(kind: SequenceKind, raw: &[u8]) -> SequencePiece<'_> {
    SequencePiece { kind, raw }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(bytes: &[u8]) -> Vec<(SequenceKind, Vec<u8>)> {
        let mut found = Vec::new();
        Sequences::default().split(bytes, |piece| {
            found.push((piece.kind, piece.body().to_vec()))
        });
        found
    }

    #[test]
    fn each_kind_is_told_with_its_body() {
        let stream =
            b"a\r\n\x1b[1;2m\x1b]0;t\x07\x1b]2;u\x1b\\\x1bP+q41\x1b\\\x1b_Gi=1\x1b\\\x1b7\x1b(0";
        let expected: [(SequenceKind, &[u8]); 8] = [
            (SequenceKind::Text, b"a\r\n"),
            (SequenceKind::Csi, b"1;2m"),
            (SequenceKind::Osc, b"0;t"),
            (SequenceKind::Osc, b"2;u"),
            (SequenceKind::Dcs, b"+q41"),
            (SequenceKind::OtherString, b"Gi=1"),
            (SequenceKind::Escape, b"\x1b7"),
            (SequenceKind::Escape, b"\x1b(0"),
        ];
        assert_eq!(
            kinds(stream),
            expected.map(|(kind, body)| (kind, body.to_vec()))
        );
    }

    #[test]
    fn a_long_string_is_given_out_in_parts_of_which_the_last_says_so() {
        let mut sequences = Sequences::default();
        let mut found = Vec::new();
        let long = [b"\x1b]52;c;".as_slice(), &[b'a'; 5000]].concat();
        sequences.split(&long, |piece| found.push(piece.kind));
        assert!(sequences.is_inside_long());
        assert!(
            found
                .iter()
                .all(|kind| *kind == SequenceKind::Part { last: false })
        );
        found.clear();
        sequences.split(b"\x1b\\x", |piece| found.push(piece.kind));
        assert_eq!(
            found,
            [SequenceKind::Part { last: true }, SequenceKind::Text]
        );
        assert!(!sequences.is_inside_long());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_doubled_or_changed(
            pieces in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..6),
                "\\x1b\\[[0-9;?]{0,4}[a-zA-Z]?".prop_map(String::into_bytes),
                "\\x1b[\\]PX^_][0-9a-z;?]{0,9}(\\x07|\\x1b\\\\|\\x1b)?".prop_map(String::into_bytes),
                Just(vec![b'x'; MAX_SEQUENCE]),
            ], 0..20),
            cut in 1usize..50,
        ) {
            let stream = pieces.concat();
            let mut sequences = Sequences::default();
            let mut out = Vec::new();
            for chunk in stream.chunks(cut) {
                sequences.split(chunk, |piece| out.extend_from_slice(piece.raw));
            }
            prop_assert!(stream.starts_with(&out));
            prop_assert!(stream.len() - out.len() <= MAX_SEQUENCE + 1);
            // CAN ends whatever is open.
            sequences.split(b"\x18", |piece| out.extend_from_slice(piece.raw));
            prop_assert_eq!(out, [stream.as_slice(), b"\x18"].concat());
        }
    }
}
