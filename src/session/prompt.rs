//! Where a shell stands, by the marks that it sets. Pure.

use crate::core::terminal::{FoundMark, Mark, PromptMarks};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptPhase {
    /// It has not said anything yet.
    Unseen,
    /// Between a command and the next prompt.
    Drawing,
    Ready,
    /// It waits for the rest of a command.
    Unfinished,
    /// A line was entered, and the shell has not said yet what it makes of it.
    Submitted,
    Running,
}

/// A command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finished {
    pub code: i32,
    /// What it wrote: from here up to there. A line that was no command wrote nothing.
    pub output: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(super) struct ShellPrompt {
    marks: PromptMarks,
    phase: PromptPhase,
    /// Where the output of the command that runs began.
    began: Option<u64>,
    /// And where it ended, where the shell says so before it draws.
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

    /// The shell wrote this; places are counted in bytes that came this way.
    pub fn feed(&mut self, bytes: &[u8]) {
        for found in self.marks.scan(bytes) {
            self.heard(found);
        }
    }

    fn heard(&mut self, found: FoundMark) {
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
            // What is said again is of a prompt that is drawn.
            Mark::OutputEnds => drop(self.ended.get_or_insert(found.start)),
            // A prompt that is only drawn again, as a line of several rows makes readline do.
            Mark::Ended { prompt, .. } if self.shown.replace(prompt) == Some(prompt) => {}
            Mark::Ended { code, .. } => {
                let end = self.ended.take().unwrap_or(found.start);
                let output = self.began.take().map(|began| (began, end));
                self.finished = Some(Finished { code, output });
                self.phase = PromptPhase::Drawing;
            }
        }
    }

    /// A command is on its way, and what comes next is its end.
    pub fn submit(&mut self) {
        self.phase = PromptPhase::Submitted;
        self.finished = None;
    }

    /// Somebody wrote this to the shell: with an Enter it is no longer waiting for a command, although it has not
    /// said so yet.
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

    /// A line that is typed now is a command, or the rest of one.
    pub fn takes_lines(&self) -> bool {
        self.is_ready() || self.is_unfinished()
    }

    /// The command that was submitted, once the next prompt is there.
    pub fn finished(&self) -> Option<Finished> {
        self.finished.filter(|_| self.is_ready())
    }

    /// Where the output of the command that runs began.
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

    /// How the prompt of this number shows itself after a command.
    fn shown(prompt: u64, code: i32) -> String {
        let ended = mark(&format!("D;{code};{prompt}"));
        format!("{ended}{}$ {}", mark("A"), mark("B"))
    }

    fn fed(prompt: &mut ShellPrompt, text: &str) {
        prompt.feed(text.as_bytes());
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
        // Readline draws it again while it echoes several lines, or only its last row.
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
