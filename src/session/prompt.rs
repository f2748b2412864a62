//! The state of a shell, tracked by the marks that it prints. Pure.

use crate::core::terminal::{FoundMark, Mark, PromptMarks};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptPhase {
    /// No mark yet.
    Unseen,
    /// Between a command and the next prompt.
    Drawing,
    Ready,
    /// The shell waits for the rest of a command.
    Unfinished,
    /// A line was entered, and the shell has not reacted yet.
    Submitted,
    Running,
}

/// A command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finished {
    pub code: i32,
    /// The start and end of its output; `None` for a line that was not a command.
    pub output: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(super) struct ShellPrompt {
    marks: PromptMarks,
    phase: PromptPhase,
    /// The position at which the output of the running command began.
    began: Option<u64>,
    /// The position at which it ended, if the shell reports that before it draws the prompt.
    ended: Option<u64>,
    finished: Option<Finished>,
    /// The number of the last prompt.
    shown: Option<u64>,
}

impl ShellPrompt {
    pub fn new(token: &str) -> ShellPrompt {
        ShellPrompt {
            marks: PromptMarks::new(token),
            phase: PromptPhase::Unseen,
            began: None,
            ended: None,
            finished: None,
            shown: None,
        }
    }

    /// Processes the shell's output; positions count the bytes that were processed here.
    pub fn feed(&mut self, bytes: &[u8]) {
        for found in self.marks.scan(bytes) {
            self.take_mark(found);
        }
    }

    /// Adds this many bytes that came before everything processed so far: positions count from the first of them.
    pub fn move_on(&mut self, bytes: u64) {
        self.marks.move_on(bytes);
        let output = self.finished.iter_mut().flat_map(|done| &mut done.output);
        let ends = output.flat_map(|(from, to)| [from, to]);
        let places = [&mut self.began, &mut self.ended].into_iter().flatten();
        places.chain(ends).for_each(|place| *place += bytes);
    }

    fn take_mark(&mut self, found: FoundMark) {
        match found.mark {
            Mark::Ready if self.phase == PromptPhase::Drawing => self.phase = PromptPhase::Ready,
            Mark::Ready => {}
            Mark::Continues => self.phase = PromptPhase::Unfinished,
            Mark::Runs => {
                // Several lines that were typed as one are several commands: they count as one.
                self.began.get_or_insert(found.end);
                self.ended = None;
                self.phase = PromptPhase::Running;
            }
            // A repeated mark belongs to a prompt that is redrawn.
            Mark::OutputEnds => drop(self.ended.get_or_insert(found.start)),
            // A prompt that is only redrawn, as readline does for a line of several rows.
            Mark::Ended { prompt, .. } if self.shown.replace(prompt) == Some(prompt) => {}
            Mark::Ended { code, .. } => {
                let end = self.ended.take().unwrap_or(found.start);
                let output = self.began.take().map(|began| (began, end));
                self.finished = Some(Finished { code, output });
                self.phase = PromptPhase::Drawing;
            }
        }
    }

    /// Notes that a command was sent; the next event is its end.
    pub fn submit(&mut self) {
        self.phase = PromptPhase::Submitted;
        self.finished = None;
    }

    /// Notes bytes that were written to the shell: after an Enter it no longer waits for a command, although it has not
    /// reported that yet.
    pub fn written(&mut self, bytes: &[u8]) {
        if self.takes_lines() && matches!(bytes.last(), Some(b'\r' | b'\n')) {
            self.phase = PromptPhase::Submitted;
        }
    }

    pub fn is_seen(&self) -> bool {
        self.phase != PromptPhase::Unseen
    }

    pub fn is_ready(&self) -> bool {
        self.phase == PromptPhase::Ready
    }

    pub fn is_unfinished(&self) -> bool {
        self.phase == PromptPhase::Unfinished
    }

    /// Tells whether a line that is typed now is a command, or the rest of one.
    pub fn takes_lines(&self) -> bool {
        self.is_ready() || self.is_unfinished()
    }

    /// The submitted command, once the next prompt is there.
    pub fn finished(&self) -> Option<Finished> {
        self.finished.filter(|_| self.is_ready())
    }

    /// The position at which the output of the running command began.
    pub fn began(&self) -> Option<u64> {
        self.began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(said: &str) -> String {
        format!("\x1b]133;{said};missiond=t\x07")
    }

    /// The marks of the prompt with this number after a command.
    fn shown(prompt: u64, code: i32) -> String {
        let ended = mark(&format!("D;{code};{prompt}"));
        format!("{ended}{}$ {}", mark("A"), mark("B"))
    }

    fn fed(prompt: &mut ShellPrompt, text: &str) {
        prompt.feed(text.as_bytes());
    }

    #[test]
    fn what_came_before_moves_all_positions() {
        let text = format!("{}{}out\r\n{}", shown(1, 0), mark("C"), shown(2, 0));
        let (mut prompt, mut moved) = (ShellPrompt::new("t"), ShellPrompt::new("t"));
        for cut in [0, text.len() / 2, text.len()] {
            prompt = ShellPrompt::new("t");
            moved = ShellPrompt::new("t");
            prompt.feed(text.as_bytes());
            moved.feed(&text.as_bytes()[..cut]);
            moved.move_on(100);
            moved.feed(&text.as_bytes()[cut..]);
            let output = |prompt: &ShellPrompt| prompt.finished().and_then(|done| done.output);
            let (from, to) = output(&prompt).expect("a command");
            assert_eq!(output(&moved), Some((from + 100, to + 100)), "{cut}");
        }
        assert!(prompt.is_ready() && moved.is_ready());
    }

    fn ready() -> (ShellPrompt, usize) {
        let mut prompt = ShellPrompt::new("t");
        assert!(!prompt.is_seen());
        fed(&mut prompt, &shown(1, 0));
        assert!(prompt.is_ready());
        (prompt, shown(1, 0).len())
    }

    #[test]
    fn a_command_has_its_own_output_and_code() {
        let (mut prompt, before) = ready();
        prompt.submit();
        assert_eq!(prompt.finished(), None);
        let echo = format!("false\r\n{}", mark("C"));
        fed(&mut prompt, &format!("{echo}out\r\n"));
        assert!(!prompt.is_ready());
        fed(&mut prompt, &shown(2, 1));
        let from = (before + echo.len()) as u64;
        let output = Some((from, from + 5));
        assert_eq!(prompt.finished(), Some(Finished { code: 1, output }));
    }

    #[test]
    fn several_lines_typed_as_one_end_with_the_last() {
        let (mut prompt, before) = ready();
        prompt.submit();
        let (c, out) = (mark("C"), "a\r\n");
        fed(&mut prompt, &format!("{c}{out}{c}b\r\n{}", shown(2, 3)));
        let from = (before + c.len()) as u64;
        let to = from + (out.len() + c.len() + 3) as u64;
        let output = Some((from, to));
        assert_eq!(prompt.finished(), Some(Finished { code: 3, output }));
    }

    #[test]
    fn a_prompt_drawn_again_is_no_end_of_a_command() {
        let (mut prompt, _) = ready();
        fed(&mut prompt, &shown(1, 0));
        assert!(prompt.is_ready());
        prompt.submit();
        // Readline redraws it while it echoes several lines, or only its last row.
        fed(
            &mut prompt,
            &format!("{}a\r\n{}b\r\n", shown(1, 0), mark("B")),
        );
        assert!(!prompt.is_ready() && prompt.finished().is_none());
        fed(&mut prompt, &format!("{}out\r\n{}", mark("C"), shown(2, 7)));
        assert_eq!(prompt.finished().map(|finished| finished.code), Some(7));
    }

    #[test]
    fn an_empty_line_and_half_a_command() {
        let (mut prompt, _) = ready();
        prompt.submit();
        fed(&mut prompt, &format!("\r\n{}", shown(2, 4)));
        let nothing = Finished {
            code: 4,
            output: None,
        };
        assert_eq!(prompt.finished(), Some(nothing));
        prompt.submit();
        fed(&mut prompt, &format!("echo '\r\n{}> ", mark("P;k=c")));
        assert!(prompt.is_unfinished() && prompt.finished().is_none());
        prompt.submit();
        fed(
            &mut prompt,
            &format!("'\r\n{}\r\n{}", mark("C"), shown(3, 0)),
        );
        assert_eq!(prompt.finished().map(|finished| finished.code), Some(0));
    }

    #[test]
    fn what_is_entered_is_a_command_before_the_shell_says_so() {
        let (mut prompt, _) = ready();
        prompt.written(b"sleep 1");
        assert!(prompt.is_ready());
        prompt.written(b"\x1b[200~a\rb\x1b[201~");
        assert!(prompt.is_ready(), "a paste is no Enter");
        prompt.written(b"\r");
        assert!(!prompt.is_ready());
        fed(&mut prompt, &shown(2, 0));
        assert!(prompt.is_ready());
    }
}
