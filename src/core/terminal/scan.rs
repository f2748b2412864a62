//! Looks through the program's output before the emulator sees it.
//!
//! The emulator is a terminal for a person at a desk: it trusts what it is told. A supervisor has to
//! survive what a hostile process prints. So this scanner, fed in chunks that may be split anywhere,
//! passes on whole sequences only, bounds each of them, leaves out what a screen reader has no use
//! for, and reports the three things that the emulator does not tell: where a marked frame begins and
//! ends, and that the program asked for the terminal's version.

use super::cluster::{Cluster, ClusterFit, ClusterPart};
use super::outdated::Erased;
use super::unseen::Unseen;
use std::ops::Range;

/// Longest control sequence that is passed on. Real ones stay below 50 bytes (two true colours).
const MAX_CSI: usize = 128;

/// Longest operating system command that is passed on; what follows is dropped up to its end. Titles
/// and colours, the only commands that are used, are far shorter.
const MAX_OSC: usize = 512;

/// A whole screen that is cleared or filled costs the emulator as much as drawing it does (0.4 ms in a debug build).
/// A program that draws writes more than this between two; where less came, the clearing is done the cheap way.
const COSTLY_EVERY: u64 = 1024;

/// Titles and colours: every other operating system command (clipboard, hyperlinks, notifications,
/// working directory) is of no use to a reader and is left out.
const OSC_ALLOWED: [&[u8]; 10] = [
    b"0", b"2", b"4", b"10", b"11", b"12", b"104", b"110", b"111", b"112",
];

/// What the scanner found, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScanPiece {
    /// For the emulator: this part of [`Scanned::bytes`].
    Bytes(Range<usize>),
    FrameBegin,
    /// A marked frame ends, in which the program erased this many rows.
    FrameEnd(usize),
    /// `CSI > q`, which the emulator's parser drops.
    AskVersion,
    /// The screen is empty, and what stood on it does not go into the scrollback.
    Wipe,
    /// Belongs to the character that was drawn last.
    Part(ClusterPart),
}

/// What came of a chunk. The scanner gets it back for the next one, so that its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub pieces: Vec<ScanPiece>,
    pub bytes: Vec<u8>,
}

/// Memory that is kept for the next chunk. A chunk of the shim has 16 KB.
const MAX_KEPT: usize = 64 << 10;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// Inside a character of this many bytes.
    Char(usize),
    Escape,
    EscapeIntermediate,
    Csi,
    Osc,
    /// A DCS, SOS, PM or APC string: left out up to its end.
    Ignored,
}

#[derive(Debug, Default)]
pub(super) struct Scanner {
    state: State,
    /// The bytes of the unfinished character or sequence, without its introducer.
    held: Vec<u8>,
    /// The last character, while more may be added to it.
    cluster: Cluster,
    out: Vec<u8>,
    /// How much of `out` is in `pieces`.
    flushed: usize,
    pieces: Vec<ScanPiece>,
    /// Bytes so far, and where the last costly sequence ended.
    scanned: u64,
    costly: Option<u64>,
    unseen: Unseen,
    /// Rows that were erased since the last frame.
    erased: Erased,
}

impl Scanner {
    pub(super) fn unseen(&self) -> &Unseen {
        &self.unseen
    }

    /// The screen gets this many rows.
    pub(super) fn resize(&mut self, rows: usize) {
        self.unseen.resize(rows);
    }

    /// The rows that were erased since the last frame.
    pub(super) fn take_erased(&mut self) -> usize {
        self.erased.take()
    }

    /// `cols` bounds repeat counts: a program that repeats a character beyond a row only burns time.
    pub(super) fn scan(&mut self, bytes: &[u8], cols: usize) -> Scanned {
        let mut rest = bytes;
        while let [byte, after @ ..] = rest {
            let run = match self.state {
                State::Ground => self.take_run(rest, cols),
                _ => 0,
            };
            match run {
                0 => {
                    self.scanned += 1;
                    self.step(*byte, cols);
                    rest = after;
                }
                run => rest = &rest[run..],
            }
        }
        self.flush();
        self.flushed = 0;
        Scanned {
            pieces: std::mem::take(&mut self.pieces),
            bytes: std::mem::take(&mut self.out),
        }
    }

    /// The pieces were used, and their memory can be used again.
    pub(super) fn take_back(&mut self, mut used: Scanned) {
        if used.bytes.capacity() <= MAX_KEPT && used.pieces.capacity() <= MAX_KEPT {
            used.pieces.clear();
            used.bytes.clear();
            (self.pieces, self.out) = (used.pieces, used.bytes);
        }
    }

    /// Whether no character and no sequence is half said.
    pub(super) fn is_at_rest(&self) -> bool {
        self.state == State::Ground
    }

    /// The character that was drawn last, while marks or parts of an emoji may still be added to it; else empty.
    pub(super) fn open_cluster(&self) -> &str {
        self.cluster.text()
    }

    /// Takes what comes next at once, if all of it is there: plain text, whole characters, or a whole control sequence, which
    /// is nearly all that a program writes. Returns how many bytes that is; what is 0 goes byte by byte.
    fn take_run(&mut self, bytes: &[u8], cols: usize) -> usize {
        match bytes {
            [0x20..=0x7e, ..] => self.take_plain(bytes),
            [0x1b, b'[', params @ ..] => self.take_csi(params, cols),
            [0x80..=0xff, ..] => self.take_characters(bytes),
            _ => 0,
        }
    }

    fn take_plain(&mut self, bytes: &[u8]) -> usize {
        let is_plain = |byte: &u8| (0x20..=0x7e).contains(byte);
        let run = bytes.iter().position(|byte| !is_plain(byte));
        let run = run.unwrap_or(bytes.len());
        self.out.extend_from_slice(&bytes[..run]);
        if let Some(last) = run.checked_sub(1) {
            self.cluster.begin(char::from(bytes[last]), 1);
        }
        self.scanned += run as u64;
        run
    }

    fn take_csi(&mut self, rest: &[u8], cols: usize) -> usize {
        let is_param = |byte: &u8| (0x20..=0x3f).contains(byte);
        match rest.iter().position(|byte| !is_param(byte)) {
            Some(end @ ..=MAX_CSI) if (0x40..=0x7e).contains(&rest[end]) => {
                self.cluster.end();
                let run = 2 + end + 1;
                self.scanned += run as u64;
                self.end_csi(&rest[..end], rest[end], cols);
                run
            }
            _ => 0,
        }
    }

    fn take_characters(&mut self, bytes: &[u8]) -> usize {
        let run = bytes.iter().position(|byte| *byte < 0x80);
        let bytes = &bytes[..run.unwrap_or(bytes.len())];
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        text.chars().for_each(|ch| self.add_char(ch));
        self.scanned += text.len() as u64;
        text.len()
    }

    fn step(&mut self, byte: u8, cols: usize) {
        match (self.state, byte) {
            (State::Char(need), _) => self.step_char(byte, need, cols),
            (State::Osc, 0x1b | 0x07) => self.end_osc(byte),
            (_, 0x1b) => self.enter(State::Escape),
            (State::Ground, _) => self.step_ground(byte),
            (_, 0x18 | 0x1a) => self.enter(State::Ground),
            (State::Escape, _) => self.step_escape(byte),
            (State::EscapeIntermediate, _) => self.step_escape_intermediate(byte),
            (State::Csi, _) => self.step_csi(byte, cols),
            (State::Osc, _) => self.hold(byte, MAX_OSC),
            (State::Ignored, _) => {}
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.held.clear();
        self.cluster.end();
    }

    fn hold(&mut self, byte: u8, limit: usize) {
        if self.held.len() < limit {
            self.held.push(byte);
        }
    }

    fn step_ground(&mut self, byte: u8) {
        match byte {
            0x00..=0x1f | 0x7f => {
                self.note_shift(byte);
                self.cluster.end();
                self.out.push(byte);
            }
            0x20..=0x7e => {
                self.cluster.begin(char::from(byte), 1);
                self.out.push(byte);
            }
            _ => {
                self.held.clear();
                self.held.push(byte);
                match byte {
                    0xc2..=0xdf => self.state = State::Char(2),
                    0xe0..=0xef => self.state = State::Char(3),
                    0xf0..=0xf4 => self.state = State::Char(4),
                    _ => self.end_char(),
                }
            }
        }
    }

    fn step_char(&mut self, byte: u8, need: usize, cols: usize) {
        if !(0x80..=0xbf).contains(&byte) {
            self.end_char();
            return self.step(byte, cols);
        }
        self.held.push(byte);
        if self.held.len() == need {
            self.end_char();
        }
    }

    /// Passes a finished or broken character on; the replacement character stands for a broken one.
    fn end_char(&mut self) {
        self.state = State::Ground;
        let ch = std::str::from_utf8(&self.held)
            .ok()
            .and_then(|s| s.chars().next())
            .unwrap_or('\u{fffd}');
        self.held.clear();
        self.add_char(ch);
    }

    fn add_char(&mut self, ch: char) {
        match self.cluster.add(ch) {
            ClusterFit::Plain => self
                .out
                .extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes()),
            ClusterFit::Part(part) => self.mark(ScanPiece::Part(part)),
            ClusterFit::Dropped => {}
        }
    }

    fn step_escape(&mut self, byte: u8) {
        match byte {
            b'[' => self.enter(State::Csi),
            b']' => self.enter(State::Osc),
            b'P' | b'X' | b'^' | b'_' => self.enter(State::Ignored),
            0x20..=0x2f => {
                self.held.push(byte);
                self.state = State::EscapeIntermediate;
            }
            0x30..=0x7e => self.end_escape(byte),
            0x00..=0x1f => self.out.push(byte),
            _ => {}
        }
    }

    fn step_escape_intermediate(&mut self, byte: u8) {
        match byte {
            0x20..=0x2f => self.hold(byte, MAX_CSI),
            0x30..=0x7e => self.end_escape(byte),
            0x00..=0x1f => self.out.push(byte),
            _ => {}
        }
    }

    fn note_shift(&mut self, byte: u8) {
        const SHIFT_OUT: u8 = 0x0e;
        const SHIFT_IN: u8 = 0x0f;
        if matches!(byte, SHIFT_OUT | SHIFT_IN) {
            self.unseen.shifted = byte == SHIFT_OUT;
        }
    }

    /// Whether a costly sequence comes too soon after the one before.
    fn is_too_soon(&mut self) -> bool {
        let before = self.costly;
        let soon = before.is_some_and(|before| self.scanned - before < COSTLY_EVERY);
        self.costly = if soon { before } else { Some(self.scanned) };
        soon
    }

    fn end_escape(&mut self, last: u8) {
        if self.held.is_empty() && last == b'c' {
            self.unseen.reset();
            self.erased.whole_screen();
        }
        // A screen full of the letter E, for those who adjust a tube.
        if (self.held.as_slice(), last) == (b"#", b'8') && self.is_too_soon() {
            return self.enter(State::Ground);
        }
        self.out.push(0x1b);
        self.out.append(&mut self.held);
        self.out.push(last);
        self.state = State::Ground;
    }

    fn step_csi(&mut self, byte: u8, cols: usize) {
        match byte {
            0x00..=0x1f => self.out.push(byte),
            // One more than is passed on, so that a sequence that is too long can be told.
            0x20..=0x3f => self.hold(byte, MAX_CSI + 1),
            0x40..=0x7e => {
                self.state = State::Ground;
                let params = std::mem::take(&mut self.held);
                self.end_csi(&params, byte, cols);
            }
            _ => {}
        }
    }

    fn end_csi(&mut self, params: &[u8], last: u8, cols: usize) {
        if params.len() > MAX_CSI {
            return;
        }
        self.unseen.note(params, last);
        self.erased.note(params, last);
        match (params, last) {
            (b"?2026", b'h') => {
                self.erased.take();
                self.mark(ScanPiece::FrameBegin);
            }
            (b"?2026", b'l') => {
                let erased = self.erased.take();
                self.mark(ScanPiece::FrameEnd(erased));
            }
            (b">" | b">0", b'q') => self.mark(ScanPiece::AskVersion),
            (b"2", b'J') if self.is_too_soon() => self.mark(ScanPiece::Wipe),
            (count, b'b' | b'I' | b'Z') => self.pass_csi(&clamped(count, cols), last),
            (params, _) => self.pass_csi(params, last),
        }
    }

    fn pass_csi(&mut self, params: &[u8], last: u8) {
        self.out.extend_from_slice(b"\x1b[");
        self.out.extend_from_slice(params);
        self.out.push(last);
    }

    /// `end` is BEL, or the ESC of a string terminator, which begins a sequence of its own as well.
    fn end_osc(&mut self, end: u8) {
        let number = self.held.split(|b| *b == b';').next().unwrap_or_default();
        if OSC_ALLOWED.contains(&number) {
            self.out.extend_from_slice(b"\x1b]");
            self.out.append(&mut self.held);
            self.out
                .extend_from_slice(if end == 0x07 { b"\x07" } else { b"\x1b\\" });
        }
        self.enter(if end == 0x07 {
            State::Ground
        } else {
            State::Escape
        });
    }

    fn mark(&mut self, piece: ScanPiece) {
        self.flush();
        self.pieces.push(piece);
    }

    fn flush(&mut self) {
        if self.out.len() > self.flushed {
            let piece = self.flushed..self.out.len();
            self.flushed = piece.end;
            self.pieces.push(ScanPiece::Bytes(piece));
        }
    }
}

/// A decimal parameter, at most `limit`.
fn clamped(param: &[u8], limit: usize) -> Vec<u8> {
    let count = std::str::from_utf8(param)
        .ok()
        .and_then(|p| p.parse::<usize>().ok());
    match count {
        Some(count) => count.min(limit).to_string().into_bytes(),
        // Empty means 1; anything else (several numbers, one that overflows) has no meaning here.
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::terminal::cluster::MAX_PARTS;

    fn scan(bytes: &[u8]) -> Scanned {
        Scanner::default().scan(bytes, 80)
    }

    fn passed(bytes: &[u8]) -> Vec<u8> {
        scan(bytes).bytes
    }

    /// What is taken at once comes to the same as what comes byte by byte.
    #[test]
    fn where_a_chunk_ends_makes_no_difference() {
        let text = "a─\u{301}👩\u{200d}👧\x1b[31mé\x1b[2Jb\x1b[H\x1b[2J\x1b[3\x085mx\x1b[?2026hé\x1b[?2026l\x1b[>0q\x1b]0;t\x07z";
        let bytes = [text.as_bytes(), b"\xe2\x94x\xff\x1b[", &[b'1'; 200], b"my"].concat();
        let all = |chunks: &mut dyn Iterator<Item = &[u8]>| {
            let (mut scanner, mut out, mut others) = (Scanner::default(), Vec::new(), Vec::new());
            for chunk in chunks {
                let scanned = scanner.scan(chunk, 80);
                let is_other = |piece: &ScanPiece| !matches!(piece, ScanPiece::Bytes(_));
                out.extend_from_slice(&scanned.bytes);
                others.extend(scanned.pieces.into_iter().filter(is_other));
            }
            (out, others, scanner.scanned, scanner.costly)
        };
        let whole = all(&mut std::iter::once(&bytes[..]));
        for size in 1..9 {
            assert_eq!(all(&mut bytes.chunks(size)), whole, "chunks of {size}");
        }
    }

    #[test]
    fn frames_and_the_version_question_are_reported_in_order() {
        let scanned = scan(b"a\x1b[?2026hb\x1b[?2026l\x1b[>0q\x1b[>q");
        assert_eq!(scanned.bytes, b"ab");
        assert_eq!(
            scanned.pieces,
            [
                ScanPiece::Bytes(0..1),
                ScanPiece::FrameBegin,
                ScanPiece::Bytes(1..2),
                ScanPiece::FrameEnd(0),
                ScanPiece::AskVersion,
                ScanPiece::AskVersion
            ]
        );
    }

    #[test]
    fn repeats_are_clamped_to_a_row() {
        assert_eq!(passed(b"x\x1b[65535b"), b"x\x1b[80b");
        assert_eq!(passed(b"x\x1b[3b\x1b[b"), b"x\x1b[3b\x1b[b");
        assert_eq!(passed(b"x\x1b[99999999999999999999999b"), b"x\x1b[b");
    }

    #[test]
    fn titles_pass_cut_and_other_commands_are_left_out() {
        assert_eq!(passed(b"\x1b]0;hi\x07"), b"\x1b]0;hi\x07");
        assert_eq!(passed(b"\x1b]2;hi\x1b\\x"), b"\x1b]2;hi\x1b\\\x1b\\x");
        assert_eq!(passed(b"\x1b]52;c;aGk=\x07\x1b]8;;http://x\x07y"), b"y");
        let long = [b"\x1b]0;".as_slice(), &[b'a'; 5000], b"\x07b"].concat();
        assert_eq!(passed(&long).len(), 2 + MAX_OSC + 2);
    }

    #[test]
    fn device_strings_and_overlong_sequences_are_left_out() {
        assert_eq!(passed(b"\x1bPq#1\x1b\\a\x1b_x\x1b\\b"), b"\x1b\\a\x1b\\b");
        let long = [b"\x1b[".as_slice(), &[b'1'; MAX_CSI + 1], b"mz"].concat();
        assert_eq!(passed(&long), b"z");
    }

    #[test]
    fn marks_are_bounded_and_stick_only_to_the_character_before_them() {
        let many = format!("e{}", "\u{301}".repeat(1000));
        assert_eq!(passed(many.as_bytes()).len(), 1 + 2 * MAX_PARTS);
        assert_eq!(passed("e\u{8}\u{301}".as_bytes()), b"e\x08");
    }

    #[test]
    fn broken_utf8_becomes_a_replacement_character() {
        assert_eq!(passed(b"\xe2\x94x\xff"), "\u{fffd}x\u{fffd}".as_bytes());
    }

    #[test]
    fn an_endless_command_holds_a_bounded_buffer() {
        let mut scanner = Scanner::default();
        scanner.scan(b"\x1b]0;", 80);
        for _ in 0..100 {
            assert!(scanner.scan(&[b'a'; 65536], 80).pieces.is_empty());
        }
        assert!(scanner.held.len() <= MAX_OSC);
    }
}
