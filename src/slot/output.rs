//! What a program has written, as far back as there is room: bytes with their place in all that was ever written.
//! Pure.

use crate::core::terminal::At;
use crate::shim::OutputMark;
use std::collections::VecDeque;

/// For a slot of the configuration: what it says is in its screen and its transcript, and a program that draws
/// fills any buffer with the same picture. Sessions have a size of their own.
pub(super) const FOR_SLOTS: u64 = 1 << 20;

/// Bytes of output that are handed out at once. As JSON each may take six, two more in hexadecimal digits where not all
/// are text, and a line of the protocol has 8 MiB.
pub(super) const AT_ONCE: usize = 3 << 18;

#[derive(Debug)]
pub(crate) struct Output {
    kept: VecDeque<u8>,
    room: usize,
    /// All that was ever written, in bytes.
    end: u64,
    /// The recorded time of the last piece: what a broken connection has taken is looked for after it.
    seen: Option<At>,
    /// Newer output has pushed out older, and that was told.
    overflows: bool,
    /// Up to where an agent has read.
    read: u64,
    /// The pieces up to this time were read from an earlier daemon.
    read_before: Option<At>,
    /// Where the output of the last program begins; before it is that of programs that have ended.
    run: u64,
}

/// A part of the output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputPart {
    pub bytes: Vec<u8>,
    pub start: u64,
    /// All that there is by now.
    pub total: u64,
    /// Bytes that were asked for and are no longer there.
    pub dropped: u64,
}

impl OutputPart {
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// What of the output is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedOutput {
    /// From this byte up to that one, as much as fits into an answer.
    Range(u64, u64),
    /// The same, and all of it.
    Whole(u64, u64),
    LastLines(usize),
    /// What an agent has not read yet.
    Unread,
}

/// What comes of a piece of output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is there already.
    Known,
    New,
    /// It is new, and the first that has pushed out what was before.
    Overflow,
}

impl Output {
    pub fn new(room: u64) -> Output {
        Output {
            kept: VecDeque::new(),
            room: usize::try_from(room).unwrap_or(usize::MAX),
            end: 0,
            seen: None,
            overflows: false,
            read: 0,
            read_before: None,
            run: 0,
        }
    }

    /// Another program writes from `at` on. A recording that is read again says so again.
    pub fn begin_run(&mut self, at: At) {
        if self.seen.is_none_or(|seen| at >= seen) {
            self.run = self.end;
        }
    }

    /// From where on the output that is kept is of the last program.
    pub fn run(&self) -> u64 {
        self.run.max(self.start())
    }

    /// Where it is now, for a daemon that comes later.
    pub fn mark(&self) -> OutputMark {
        OutputMark {
            end: self.end,
            run: self.run,
            overflows: self.overflows,
        }
    }

    /// Whether the output up to `at` can be passed over by [`Output::go_on_from`]: either all of it was read, or nothing.
    pub fn can_go_on_from(&self, at: At) -> bool {
        self.is_new() && self.read_before.is_none_or(|read| at <= read)
    }

    /// Everything up to `at` was taken in by an earlier daemon, and what is to be kept was written behind it.
    pub fn go_on_from(&mut self, at: At, mark: OutputMark) {
        self.seen = Some(at);
        self.end = mark.end;
        self.run = mark.run;
        self.overflows = mark.overflows;
        if self.read_before.is_some() {
            self.read = self.end;
        }
    }

    /// All that was written has been taken in again, as far as it was found; in all it was so much. Places in it are again those
    /// that an earlier daemon has told. Returns how much was not found.
    pub fn was_written(&mut self, total: u64) -> u64 {
        let lost = total.saturating_sub(self.end);
        self.end += lost;
        self.overflows |= lost > 0;
        for place in [&mut self.read, &mut self.run] {
            *place += if *place > 0 { lost } else { 0 };
        }
        lost
    }

    /// Before what was written is taken in again: an agent has read all up to `at`.
    pub fn recall_read(&mut self, at: At) {
        self.read_before = Some(at);
    }

    /// When the last piece was written that an agent has read; `None` while it has not read all that there is.
    pub fn read_up_to(&self) -> Option<At> {
        self.seen.filter(|_| self.read == self.end)
    }

    /// The program wrote this at `at`; pieces come in the order of their times.
    pub fn push(&mut self, at: At, bytes: &[u8]) -> Taken {
        if self.seen.is_some_and(|seen| at <= seen) {
            return Taken::Known;
        }
        self.seen = Some(at);
        self.end += bytes.len() as u64;
        if self.read_before.is_some_and(|read| at <= read) {
            self.read = self.end;
        }
        let room = self.room_for(bytes.len());
        let excess = (self.kept.len() + bytes.len()).saturating_sub(room);
        let of_kept = excess.min(self.kept.len());
        self.kept.drain(..of_kept);
        self.kept.extend(&bytes[excess - of_kept..]);
        if excess == 0 {
            return Taken::New;
        }
        match std::mem::replace(&mut self.overflows, true) {
            true => Taken::New,
            false => Taken::Overflow,
        }
    }

    /// How much can be kept. Where the system gives no memory to grow by, what there is must do.
    fn room_for(&mut self, coming: usize) -> usize {
        let (held, wanted) = (self.kept.capacity(), self.kept.len() + coming);
        if wanted <= held || held >= self.room {
            return held.min(self.room);
        }
        // Twice as much each time, and never more than can be kept.
        let grown = wanted.max(2 * held).min(self.room);
        match self.kept.try_reserve_exact(grown - self.kept.len()) {
            Ok(()) => self.kept.capacity().min(self.room),
            Err(_) => self.kept.capacity().min(self.room),
        }
    }

    /// A terminal was drawn anew at `at`, which the program did not do.
    pub fn pass_over(&mut self, at: At) {
        self.seen = self.seen.max(Some(at));
    }

    pub fn is_new(&self) -> bool {
        self.seen.is_none()
    }

    pub fn has_overflowed(&self) -> bool {
        self.overflows
    }

    /// Forgets what is kept; its place in the whole stays.
    pub fn clear(&mut self) {
        self.kept = VecDeque::new();
        self.overflows = false;
    }

    pub fn room(&self) -> u64 {
        self.room as u64
    }

    pub fn start(&self) -> u64 {
        self.end - self.kept.len() as u64
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn wanted(&mut self, wanted: WantedOutput, finished: bool) -> OutputPart {
        match wanted {
            WantedOutput::Range(from, to) => self.part(from, to),
            WantedOutput::Whole(from, to) => self.whole(from, to),
            WantedOutput::LastLines(lines) => self.part(self.last_lines(lines), u64::MAX),
            WantedOutput::Unread => self.read_on(finished),
        }
    }

    /// From `from` on, up to `to` and to what fits into one answer, never ending inside a character.
    pub fn part(&self, from: u64, to: u64) -> OutputPart {
        self.at_most(AT_ONCE, from, to)
    }

    /// The same with all that is kept of it, for those who make it shorter before they hand it on: taken at once, so
    /// that what comes meanwhile can't push its end out.
    pub fn whole(&self, from: u64, to: u64) -> OutputPart {
        self.at_most(usize::MAX, from, to)
    }

    fn at_most(&self, most: usize, from: u64, to: u64) -> OutputPart {
        let start = from.clamp(self.start(), self.end);
        let skip = (start - self.start()) as usize;
        let wanted = usize::try_from(to.saturating_sub(start)).unwrap_or(usize::MAX);
        let length = wanted.min(most).min(self.kept.len() - skip);
        let length = self.whole_characters(skip, length);
        OutputPart {
            bytes: self.copy(skip, length),
            start,
            total: self.end,
            dropped: start.saturating_sub(from),
        }
    }

    /// As two pieces of memory, since byte for byte the slot would stand still over a large one.
    fn copy(&self, skip: usize, length: usize) -> Vec<u8> {
        let (first, second) = self.kept.as_slices();
        let cut = |place: usize| (place.min(first.len()), place.saturating_sub(first.len()));
        let (from, to) = (cut(skip), cut(skip + length));
        [&first[from.0..to.0], &second[from.1..to.1]].concat()
    }

    /// All that has come since an agent last looked; `finished` where no more will come. A control sequence whose end
    /// is still to come waits for it.
    pub fn read_on(&mut self, finished: bool) -> OutputPart {
        let mut part = self.whole(self.read, u64::MAX);
        if !finished {
            part.bytes.truncate(whole_sequences(&part.bytes));
        }
        self.read = part.end();
        part
    }

    /// Where the last `lines` lines begin.
    pub fn last_lines(&self, lines: usize) -> u64 {
        // The end of the last line does not begin another one.
        let ends = self.kept.iter().enumerate().rev().skip(1);
        let mut before = ends.filter(|(_, byte)| **byte == b'\n');
        match lines.checked_sub(1).and_then(|index| before.nth(index)) {
            Some((index, _)) => self.start() + index as u64 + 1,
            None if lines == 0 => self.end,
            None => self.start(),
        }
    }

    /// The most bytes up to `length` after `skip` that cut no character; what is no UTF-8 may be cut anywhere.
    fn whole_characters(&self, skip: usize, length: usize) -> usize {
        if skip + length >= self.kept.len() {
            return length;
        }
        let continues = |index: usize| self.kept[index] & 0xc0 == 0x80;
        let back = (0..4.min(length)).find(|back| !continues(skip + length - back));
        length - back.unwrap_or(0)
    }
}

/// Longest sequence that is waited for; what is longer is none.
const MAX_SEQUENCE: usize = 512;

/// The length of `bytes` without a control sequence at the end that is not complete.
fn whole_sequences(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(MAX_SEQUENCE);
    let Some(escape) = bytes[tail..].iter().rposition(|byte| *byte == 0x1b) else {
        return bytes.len();
    };
    let escape = tail + escape;
    match is_complete(&bytes[escape + 1..]) {
        true => bytes.len(),
        false => escape,
    }
}

/// Whether what follows an ESC is a whole sequence.
fn is_complete(rest: &[u8]) -> bool {
    match rest {
        [] => false,
        [b'[', params @ ..] => params.iter().any(|byte| (0x40..=0x7e).contains(byte)),
        [b']' | b'P' | b'X' | b'^' | b'_', text @ ..] => text.contains(&0x07),
        [0x20..=0x2f, more @ ..] => more.iter().any(|byte| (0x30..=0x7e).contains(byte)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> At {
        At::from_millis(ms)
    }

    fn written(room: u64, pieces: &[&str]) -> Output {
        let mut output = Output::new(room);
        for (n, piece) in pieces.iter().enumerate() {
            output.push(at(n as u64), piece.as_bytes());
        }
        output
    }

    #[test]
    fn the_oldest_goes_first_and_is_told_once() {
        let mut output = Output::new(4);
        assert_eq!(output.push(at(1), b"abc"), Taken::New);
        assert_eq!(output.push(at(2), b"de"), Taken::Overflow);
        assert_eq!(output.push(at(3), b"f"), Taken::New);
        assert_eq!((output.start(), output.end()), (2, 6));
        let part = output.part(0, u64::MAX);
        assert_eq!(
            (part.bytes.as_slice(), part.start, part.dropped),
            (&b"cdef"[..], 2, 2)
        );
        output.push(at(4), b"longer than all");
        assert_eq!(output.part(0, u64::MAX).bytes, b" all");
        output.clear();
        assert_eq!(output.part(0, u64::MAX).dropped, 21);
        assert_eq!(output.push(at(5), b"ghijk"), Taken::Overflow);
    }

    #[test]
    fn output_that_goes_on_from_a_mark_is_the_same() {
        for read in [None, Some(at(3)), Some(at(9))] {
            let fresh = || {
                let mut output = Output::new(6);
                read.into_iter().for_each(|read| output.recall_read(read));
                output
            };
            let pieces = ["one", "two", "three", "four", "five"];
            let times = (1..).map(at).zip(pieces);
            let (mut whole, mut mark) = (fresh(), None);
            whole.begin_run(at(0));
            for (at, piece) in times.clone() {
                whole.push(at, piece.as_bytes());
                mark.get_or_insert((at, whole.mark()));
            }
            let (seen, mark) = mark.expect("a piece");
            let mut later = fresh();
            assert!(later.can_go_on_from(seen));
            later.go_on_from(seen, mark);
            for (at, piece) in times {
                later.push(at, piece.as_bytes());
            }
            assert_eq!(format!("{later:?}"), format!("{whole:?}"));
            assert!(!later.can_go_on_from(seen));
        }
        let mut half_read = Output::new(6);
        half_read.recall_read(at(1));
        assert!(!half_read.can_go_on_from(at(2)));
    }

    #[test]
    fn what_is_known_is_not_taken_twice() {
        let mut output = written(100, &["a", "b"]);
        assert_eq!(output.push(at(1), b"b"), Taken::Known);
        assert_eq!(output.push(at(2), b"c"), Taken::New);
        output.pass_over(at(5));
        assert_eq!(output.push(at(5), b"drawn"), Taken::Known);
        assert_eq!(output.part(0, u64::MAX).bytes, b"abc");
    }

    #[test]
    fn what_was_not_found_again_is_no_longer_kept() {
        let mut output = written(100, &["one\n", "two\n"]);
        output.read_on(false);
        output.was_written(50);
        let part = output.part(0, u64::MAX);
        assert_eq!((part.start, part.dropped, part.total), (42, 42, 50));
        assert_eq!(part.bytes, b"one\ntwo\n");
        assert_eq!(output.read_on(false).bytes, b"", "all of it was read");
        output.push(at(9), b"three");
        output.was_written(10);
        let part = output.read_on(false);
        assert_eq!((part.bytes.as_slice(), part.start), (&b"three"[..], 50));
    }

    #[test]
    fn lines_are_counted_from_the_end() {
        let output = written(100, &["one\r\ntwo\r\n", "three\r\n"]);
        let last = |lines| output.part(output.last_lines(lines), u64::MAX).bytes;
        assert_eq!(last(1), b"three\r\n");
        assert_eq!(last(2), b"two\r\nthree\r\n");
        assert_eq!(last(9), b"one\r\ntwo\r\nthree\r\n");
        assert_eq!(last(0), b"");
        let unended = written(100, &["one\ntwo"]);
        assert_eq!(unended.part(unended.last_lines(1), u64::MAX).bytes, b"two");
    }

    #[test]
    fn an_agent_reads_each_byte_once_and_no_half_sequence() {
        let mut output = written(100, &["a\x1b[3"]);
        assert_eq!(output.read_on(false).bytes, b"a");
        output.push(at(7), b"1mb\x1b]0;t");
        assert_eq!(output.read_on(false).bytes, b"\x1b[31mb");
        assert_eq!(output.read_on(false).bytes, b"");
        assert_eq!(output.read_on(true).bytes, b"\x1b]0;t");
    }

    #[test]
    fn an_agent_gets_all_that_came_however_much() {
        let mut output = Output::new(4 * AT_ONCE as u64);
        // So that the buffer begins in the middle of its memory.
        output.push(at(1), &vec![b'.'; 3 * AT_ONCE]);
        output.push(at(2), &vec![b'a'; 2 * AT_ONCE]);
        output.push(at(3), b"the end");
        assert_eq!(output.part(0, u64::MAX).bytes.len(), AT_ONCE);
        let part = output.read_on(false);
        let lost = AT_ONCE as u64 + 7;
        assert_eq!((part.start, part.dropped), (lost, lost));
        assert_eq!(part.bytes.len(), 4 * AT_ONCE);
        assert!(part.bytes.starts_with(b"..") && part.bytes.ends_with(b"aathe end"));
        assert_eq!(output.read_on(false).bytes, b"");
    }

    #[test]
    fn an_agent_reads_on_from_a_later_daemon() {
        let mut output = written(100, &["a", "b"]);
        assert_eq!(output.read_up_to(), None);
        output.read_on(false);
        let read = output.read_up_to().unwrap();
        output.push(at(5), b"c\x1b[");
        output.read_on(false);
        assert_eq!(
            output.read_up_to(),
            None,
            "half a sequence is still to be read"
        );
        let mut again = Output::new(100);
        again.recall_read(read);
        for (ms, text) in [(0, "a"), (1, "b"), (5, "c")] {
            again.push(at(ms), text.as_bytes());
        }
        assert_eq!(again.read_on(false).bytes, b"c");
    }

    proptest! {
        #[test]
        fn parts_join_to_the_whole_and_cut_no_character(text in "[a-zé🦀\n]{0,60}", cut in 1u64..9) {
            let output = written(1000, &[&text]);
            let (mut from, mut joined) = (0, Vec::new());
            while from < output.end() {
                let part = output.part(from, from + cut.max(4));
                prop_assert!(std::str::from_utf8(&part.bytes).is_ok());
                prop_assert!(!part.bytes.is_empty());
                from = part.end();
                joined.extend(part.bytes);
            }
            prop_assert_eq!(joined, text.into_bytes());
        }
    }
}
