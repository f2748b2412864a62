//! Whoever waits for a line of the output.

use super::Slot;
use super::handle::Answer;
use super::output::Output;
use crate::core::model::{Fault, RpcError};
use crate::core::settings::Kind;
use crate::core::terminal::plain;
use crate::core::text::secrets;
use regex::Regex;

/// Clients that may wait for output of one slot at once.
const MAX_WAITERS: usize = 64;
/// Lines above the screen that count as well: what was written while somebody made up their mind to wait for it.
const ABOVE: usize = 200;

pub(super) struct Waiter {
    pattern: Regex,
    reply: Answer<String>,
    /// Up to where it has seen what was written.
    seen: u64,
}

impl Slot {
    pub(super) fn await_output(&mut self, pattern: Regex, reply: Answer<String>) {
        self.waiters.retain(|waiter| !waiter.reply.is_closed());
        if self.waiters.len() >= MAX_WAITERS {
            let text = format!("{MAX_WAITERS} clients wait for output of this slot already");
            let _ = reply.send(Err(RpcError::new(Fault::Refused, text)));
            return;
        }
        // All of what no more comes to; else only what may be meant, and not what was long before.
        let seen = match self.has_ended() {
            true => self.output.start(),
            false => self.output.last_lines(self.lines_that_count()),
        };
        self.waiters.push(Waiter {
            pattern,
            reply,
            seen,
        });
        self.check_waiters();
        self.disappoint_waiters();
    }

    /// Looks at the screen, and at what went over it too fast to be seen there.
    pub(super) fn check_waiters(&mut self) {
        self.check_written();
        if self.waiters.is_empty() {
            return;
        }
        let lines = self.terminal.lines(self.lines_that_count());
        self.satisfy(|waiter| waiter.matching(&lines));
    }

    /// A plain program writes lines, and none of them is missed; one that draws is read from its screen alone.
    pub(super) fn check_written(&mut self) {
        if self.waiters.is_empty() || self.running.kind != Kind::Shell {
            return;
        }
        let output = std::mem::replace(&mut self.output, Output::new(0));
        self.satisfy(|waiter| waiter.read_on(&output));
        self.output = output;
    }

    fn satisfy(&mut self, mut found: impl FnMut(&mut Waiter) -> Option<String>) {
        for mut waiter in std::mem::take(&mut self.waiters) {
            match found(&mut waiter) {
                // A client that went away needs no answer.
                Some(line) => drop(waiter.reply.send(Ok(line))),
                None => self.waiters.push(waiter),
            }
        }
    }

    /// A session that has ended writes no more.
    pub(super) fn disappoint_waiters(&mut self) {
        if !self.has_ended() {
            return;
        }
        let name = &self.running.name;
        for waiter in self.waiters.drain(..) {
            let text = format!("{name} has ended, and nothing that it wrote matches");
            let error = RpcError::new(Fault::Refused, text).next(format!("missiond output {name}"));
            let _ = waiter.reply.send(Err(error));
        }
    }

    fn has_ended(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.ended.is_some())
    }

    fn lines_that_count(&self) -> usize {
        usize::from(self.running.rows) + ABOVE
    }
}

impl Waiter {
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
        let mut waiter = Waiter {
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
