//! Numbered inputs that wait for the PTY: each is written at most once, completely and in order. Pure.

use std::collections::VecDeque;

/// The most waiting bytes. The longest message is a paste of 1 MB; a child that leaves several of them unread does not read at
/// all, and the daemon should learn that instead of queueing more.
const MAX_WAITING: usize = 4 << 20;

/// The overhead of an entry, so that empty ones are bounded as well.
const ENTRY_COST: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputOffer {
    /// It waits, and will be acknowledged when it is written.
    Taken,
    /// It was written before: acknowledge it again.
    Written,
    /// Nothing of it was or will be written.
    Refused(String),
}

#[derive(Debug, Default)]
pub(super) struct Inputs {
    waiting: VecDeque<WaitingInput>,
    cost: usize,
    last_taken: u64,
}

#[derive(Debug)]
struct WaitingInput {
    n: u64,
    bytes: Vec<u8>,
    written: usize,
}

impl Inputs {
    /// The highest accepted number: it is written or will be.
    pub fn last_taken(&self) -> u64 {
        self.last_taken
    }

    pub fn offer(&mut self, n: u64, bytes: Vec<u8>) -> InputOffer {
        if n <= self.last_taken {
            let waits = self.waiting.iter().any(|input| input.n == n);
            return if waits {
                InputOffer::Taken
            } else {
                InputOffer::Written
            };
        }
        let cost = bytes.len() + ENTRY_COST;
        if self.cost + cost > MAX_WAITING {
            return InputOffer::Refused(format!(
                "the program has not read its last input: {} bytes wait, {} more would be over the limit of {MAX_WAITING}",
                self.cost,
                bytes.len()
            ));
        }
        self.cost += cost;
        self.last_taken = n;
        self.waiting.push_back(WaitingInput {
            n,
            bytes,
            written: 0,
        });
        InputOffer::Taken
    }

    /// What to write next, empty only for an input that is complete.
    pub fn front(&self) -> Option<&[u8]> {
        self.waiting
            .front()
            .map(|input| &input.bytes[input.written..])
    }

    /// `count` bytes of the front were written; returns the number of the input if that completes it.
    pub fn advance(&mut self, count: usize) -> Option<u64> {
        let input = self.waiting.front_mut()?;
        input.written += count;
        if input.written < input.bytes.len() {
            return None;
        }
        let input = self.waiting.pop_front()?;
        self.cost -= input.bytes.len() + ENTRY_COST;
        Some(input.n)
    }

    /// Nobody will read any more: returns the numbers of the inputs that were not written completely.
    pub fn abandon(&mut self) -> Vec<u64> {
        self.cost = 0;
        self.waiting.drain(..).map(|input| input.n).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_once() {
        let mut inputs = Inputs::default();
        assert_eq!(inputs.offer(1, b"abc".to_vec()), InputOffer::Taken);
        assert_eq!(inputs.offer(1, b"abc".to_vec()), InputOffer::Taken);
        assert_eq!(inputs.front(), Some(&b"abc"[..]));
        assert_eq!(inputs.advance(2), None);
        assert_eq!(inputs.front(), Some(&b"c"[..]));
        assert_eq!(inputs.advance(1), Some(1));
        assert_eq!(inputs.offer(1, b"abc".to_vec()), InputOffer::Written);
        assert_eq!(inputs.front(), None);
        assert_eq!(inputs.last_taken(), 1);
    }

    #[test]
    fn an_empty_input_is_complete_at_once() {
        let mut inputs = Inputs::default();
        inputs.offer(7, Vec::new());
        assert_eq!(inputs.front(), Some(&[][..]));
        assert_eq!(inputs.advance(0), Some(7));
    }

    #[test]
    fn too_much_is_refused_whole_and_its_number_stays_free() {
        let mut inputs = Inputs::default();
        assert_eq!(inputs.offer(1, vec![0; MAX_WAITING / 2]), InputOffer::Taken);
        assert!(matches!(
            inputs.offer(2, vec![0; MAX_WAITING / 2]),
            InputOffer::Refused(why) if why.contains("has not read")
        ));
        assert_eq!(inputs.last_taken(), 1);
        inputs.advance(MAX_WAITING / 2);
        assert_eq!(inputs.offer(2, vec![0; MAX_WAITING / 2]), InputOffer::Taken);
    }

    #[test]
    fn waiting_inputs_are_bounded_in_number() {
        let mut inputs = Inputs::default();
        let taken = (1..)
            .take_while(|&n| inputs.offer(n, Vec::new()) == InputOffer::Taken)
            .count();
        assert_eq!(taken, MAX_WAITING / ENTRY_COST);
        assert_eq!(inputs.abandon().len(), taken);
        assert_eq!(inputs.front(), None);
    }
}
