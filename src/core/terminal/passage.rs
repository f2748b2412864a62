//! What of a program's output goes on to a person's terminal: all of it, byte for byte, but for the questions.
//!
//! The program asks its terminal, and that is the emulator, which answers whether somebody looks on or not. A
//! person's terminal that was asked too would answer a second time, and the program would take the answer for keys.
//! Only whole sequences are passed on, so that somebody who joins never begins in the middle of one.

use super::sequences::{SequenceKind, SequencePiece, Sequences};

#[derive(Debug, Default)]
pub struct Passage {
    sequences: Sequences,
}

/// What is passed on.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Passed {
    pub bytes: Vec<u8>,
    /// Where those begin who joined in the middle of something too long to be held; `None` where it goes on still.
    pub begins: Option<usize>,
}

impl Passage {
    pub fn pass(&mut self, output: &[u8]) -> Passed {
        let mut bytes = Vec::with_capacity(output.len());
        let mut begins = (!self.is_inside_long()).then_some(0);
        self.sequences.split(output, |piece| {
            if !is_question(&piece) {
                push(&mut bytes, &piece);
            }
            if piece.kind == (SequenceKind::Part { last: true }) {
                begins.get_or_insert(bytes.len());
            }
        });
        Passed { bytes, begins }
    }

    /// Whether somebody who joins now has to wait for the end of something.
    pub fn is_inside_long(&self) -> bool {
        self.sequences.is_inside_long()
    }
}

/// ENQ is a question as well, if an old one.
fn push(bytes: &mut Vec<u8>, piece: &SequencePiece) {
    const ENQ: u8 = 0x05;
    match piece.kind {
        SequenceKind::Text => bytes.extend(piece.raw.iter().filter(|byte| **byte != ENQ)),
        _ => bytes.extend_from_slice(piece.raw),
    }
}

fn is_question(piece: &SequencePiece) -> bool {
    match piece.kind {
        SequenceKind::Csi => asks_by_csi(piece.body()),
        SequenceKind::Osc => asks_by_osc(piece.body()),
        // Terminfo entries and settings.
        SequenceKind::Dcs => piece.body().starts_with(b"+q") || piece.body().starts_with(b"$q"),
        // Whether pictures can be shown.
        SequenceKind::OtherString => asks_for_pictures(piece.body()),
        // DECID.
        SequenceKind::Escape => piece.raw == b"\x1bZ",
        SequenceKind::Text | SequenceKind::Part { .. } => false,
    }
}

fn asks_by_csi(body: &[u8]) -> bool {
    let Some((last, params)) = body.split_last() else {
        return false;
    };
    let (first, before) = (params.first(), params.last());
    match last {
        // Device attributes; `?…c` is the Linux console's cursor.
        b'c' => first != Some(&b'?'),
        // Device status; `>…n` sets how keys are told.
        b'n' => first != Some(&b'>'),
        // Modes.
        b'p' => before == Some(&b'$'),
        // The terminal's version.
        b'q' => first == Some(&b'>'),
        // Kitty's keyboard flags; the table of colours.
        b'u' => first == Some(&b'?') || before == Some(&b'$'),
        // Settings of modified keys, and of graphics.
        b'm' | b'S' => first == Some(&b'?'),
        b'x' => matches!(params, b"" | b"0" | b"1"),
        b'y' => before == Some(&b'*'),
        b'w' => before == Some(&b'$'),
        // The window's place, size and title.
        b't' => {
            let number = params.split(|byte| *byte == b';').next();
            let asks: [&[u8]; 9] = [
                b"11", b"13", b"14", b"15", b"16", b"18", b"19", b"20", b"21",
            ];
            number.is_some_and(|number| asks.contains(&number))
        }
        _ => false,
    }
}

/// Colours, the clipboard and the like, asked for with a question mark; iTerm's own by name.
fn asks_by_osc(body: &[u8]) -> bool {
    let mut parts = body.split(|byte| *byte == b';');
    let number = parts.next();
    let mut named = false;
    for part in parts {
        if part == b"?" || part.ends_with(b"=?") {
            return true;
        }
        named |= part.starts_with(b"Report") || part.starts_with(b"Request");
    }
    named && number == Some(b"1337")
}

fn asks_for_pictures(body: &[u8]) -> bool {
    let control = body.split(|byte| *byte == b';').next().unwrap_or_default();
    let Some(keys) = control.strip_prefix(b"G") else {
        return false;
    };
    keys.split(|byte| *byte == b',').any(|key| key == b"a=q")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(bytes: &[u8]) -> Vec<u8> {
        Passage::default().pass(bytes).bytes
    }

    #[test]
    fn questions_are_left_out() {
        let questions: [&[u8]; 24] = [
            b"\x1b[c",
            b"\x1b[0c",
            b"\x1b[>c",
            b"\x1b[=0c",
            b"\x1b[5n",
            b"\x1b[6n",
            b"\x1b[?6n",
            b"\x1b[?996n",
            b"\x1b[?2026$p",
            b"\x1b[4$p",
            b"\x1b[>0q",
            b"\x1b[>q",
            b"\x1b[?u",
            b"\x1b[?4m",
            b"\x1b[14t",
            b"\x1b[18t",
            b"\x1b[x",
            b"\x1b]11;?\x07",
            b"\x1b]4;1;?\x1b\\",
            b"\x1b]52;c;?\x07",
            b"\x1bP+q544e\x1b\\",
            b"\x1bP$qm\x1b\\",
            b"\x1b_Gi=1,a=q;AAAA\x1b\\",
            b"\x1bZ",
        ];
        for question in questions {
            assert_eq!(
                passed(&[b"a", question, b"b"].concat()),
                b"ab",
                "{question:?}"
            );
        }
        assert_eq!(passed(b"a\x05b"), b"ab");
    }

    #[test]
    fn everything_else_passes_unchanged() {
        let stream = "\x1b[?1049h\x1b[>1u\x1b[<u\x1b[=1u\x1b[>4;2m\x1b[2 q\x1b[!p\x1b[u\x1b[1;2r\x1b[8;24;80t\
                      \x1b[22;0t\x1b]0;what?\x07\x1b]52;c;aGk=\x07\x1b]8;;http://x/?\x1b\\é漢👍\x1bP0;1q#0~-\x1b\\\
                      \x1b_Gf=100,a=T;AAAA\x1b\\\x1b[?17;0;64c\x1b[>1n\x1b[3S\x1b[1$x\x1b7\x1b8\x1bc";
        assert_eq!(passed(stream.as_bytes()), stream.as_bytes());
    }

    #[test]
    fn a_question_is_found_however_it_is_split() {
        let stream = b"a\x1b[?2026$pb\x1b]11;?\x1b\\c\x1b[31md";
        for cut in 1..stream.len() {
            let mut passage = Passage::default();
            let mut out = Vec::new();
            for chunk in stream.chunks(cut) {
                out.extend(passage.pass(chunk).bytes);
            }
            assert_eq!(out, b"abc\x1b[31md", "{cut}");
        }
    }

    #[test]
    fn who_joins_inside_a_long_string_begins_behind_it() {
        let mut passage = Passage::default();
        let long = [b"\x1bPq".as_slice(), &[b'~'; 5000]].concat();
        assert_eq!(passage.pass(&long).begins, Some(0));
        assert!(passage.is_inside_long());
        assert_eq!(passage.pass(&[b'~'; 5000]).begins, None);
        let end = passage.pass(b"~~\x1b\\after");
        assert!(end.bytes[end.begins.unwrap()..].eq(b"after"));
        assert!(!passage.is_inside_long());
    }
}
