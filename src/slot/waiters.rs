//! Whoever waits for a line of the output.

use super::handle::Answer;
use super::output::Output;
use crate::core::model::{Fault, RpcError};
use crate::core::terminal::plain;
use crate::core::text::secrets;
use regex::Regex;

/// Clients that may wait for output of one slot at once.
const MAX_WAITERS: usize = 64;

struct OutputWaiter {
    pattern: Regex,
    reply: Answer<String>,
    /// Up to where it has seen what was written.
    seen: u64,
}

/// Those who wait for output of one slot.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: Vec<OutputWaiter>,
}

impl Waiters {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// One that has seen the output up to `seen`.
    pub fn add(&mut self, pattern: Regex, reply: Answer<String>, seen: u64) {
        self.waiting.retain(|waiter| !waiter.reply.is_closed());
        if self.waiting.len() >= MAX_WAITERS {
            let text = format!("{MAX_WAITERS} clients wait for output of this slot already");
            let _ = reply.send(Err(RpcError::new(Fault::Refused, text)));
            return;
        }
        self.waiting.push(OutputWaiter {
            pattern,
            reply,
            seen,
        });
    }

    /// Answers those for whom one of these lines matches.
    pub fn look_at(&mut self, lines: &[String]) {
        self.satisfy(|waiter| waiter.matching(lines));
    }

    /// Answers those for whom a line matches that they have not seen yet.
    pub fn read_on(&mut self, output: &Output) {
        self.satisfy(|waiter| waiter.read_on(output));
    }

    fn satisfy(&mut self, mut found: impl FnMut(&mut OutputWaiter) -> Option<String>) {
        for mut waiter in std::mem::take(&mut self.waiting) {
            match found(&mut waiter) {
                // A client that went away needs no answer.
                Some(line) => drop(waiter.reply.send(Ok(line))),
                None => self.waiting.push(waiter),
            }
        }
    }

    /// Nothing more is written.
    pub fn disappoint(&mut self, slot: &str) {
        for waiter in self.waiting.drain(..) {
            let text = format!("{slot} has ended, and nothing that it wrote matches");
            let error =
                RpcError::new(Fault::Refused, text).next(format!("missiond session output {slot}"));
            let _ = waiter.reply.send(Err(error));
        }
    }
}

impl OutputWaiter {
    fn matching(&self, lines: &[String]) -> Option<String> {
        let at = lines.iter().position(|line| self.pattern.is_match(line))?;
        Some(secrets::mask_rows(lines).swap_remove(at))
    }

    /// All lines that it has not seen, the one that has not ended too, which is looked at again.
    fn read_on(&mut self, output: &Output) -> Option<String> {
        loop {
            let part = output.part(self.seen, u64::MAX);
            let lines: Vec<String> = plain(&part.bytes).lines().map(str::to_owned).collect();
            if let Some(line) = self.matching(&lines) {
                return Some(line);
            }
            let ended = part.bytes.iter().rposition(|byte| *byte == b'\n')?;
            self.seen = part.start + ended as u64 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::terminal::At;
    use tokio::sync::oneshot;

    #[test]
    fn no_line_is_missed_however_fast_it_goes_by() {
        let mut output = Output::new(1 << 20);
        output.push(At::from_millis(1), b"before\r\nhal");
        let (reply, _answer) = oneshot::channel();
        let mut waiter = OutputWaiter {
            pattern: Regex::new("^(before|half|4999|\\? )$").expect("a pattern"),
            reply,
            seen: 8,
        };
        assert_eq!(waiter.read_on(&output), None);
        output.push(At::from_millis(2), b"f\r\n");
        assert_eq!(waiter.read_on(&output).as_deref(), Some("half"));
        waiter.seen = output.end();
        let lines: String = (0..10_000).map(|n| format!("{n}\r\n")).collect();
        output.push(At::from_millis(3), lines.as_bytes());
        assert_eq!(waiter.read_on(&output).as_deref(), Some("4999"));
        waiter.seen = output.end();
        output.push(At::from_millis(4), b"? ");
        assert_eq!(
            waiter.read_on(&output).as_deref(),
            Some("? "),
            "a question has no end"
        );
    }
}
