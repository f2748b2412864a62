//! The marks by which a shell says where it stands (OSC 133), found in what it writes. Pure.
//!
//! Anything can print such a mark. Only those that carry the word which this shell alone was given count.

/// Longest mark that is looked at; ours have some sixty bytes.
const MAX_MARK: usize = 128;

/// What a shell says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The prompt is there: what is typed now is a command.
    Ready,
    /// More of a command is waited for.
    Continues,
    /// A command runs from here on.
    Runs,
    /// All that it wrote is written; what follows is drawn for the prompt.
    OutputEnds,
    /// It has ended with this code, before the prompt of this number.
    Ended { code: i32, prompt: u64 },
}

/// A mark, and where it is in what was given so far: its first byte and the one behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundMark {
    pub mark: Mark,
    pub start: u64,
    pub end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkState {
    Ground,
    Escape,
    /// Inside an operating system command.
    Command,
    /// The ESC of its end.
    CommandEscape,
}

/// Fed in pieces that may be cut anywhere.
#[derive(Debug)]
pub struct PromptMarks {
    token: String,
    state: MarkState,
    held: Vec<u8>,
    /// Bytes so far.
    at: u64,
    /// Where the sequence in hand began.
    begun: u64,
}

impl PromptMarks {
    pub fn new(token: &str) -> PromptMarks {
        PromptMarks {
            token: token.to_owned(),
            state: MarkState::Ground,
            held: Vec::new(),
            at: 0,
            begun: 0,
        }
    }

    /// So many bytes came before all that was given so far.
    pub fn move_on(&mut self, bytes: u64) {
        self.at += bytes;
        self.begun += bytes;
    }

    pub fn scan(&mut self, bytes: &[u8]) -> Vec<FoundMark> {
        let mut found = Vec::new();
        for byte in bytes {
            self.at += 1;
            if self.step(*byte)
                && let Some(mark) = meaning(&self.held, &self.token)
            {
                found.push(FoundMark {
                    mark,
                    start: self.begun,
                    end: self.at,
                });
            }
        }
        found
    }

    /// Whether a command is complete with this byte.
    fn step(&mut self, byte: u8) -> bool {
        let (next, complete) = match (self.state, byte) {
            (MarkState::Ground, 0x1b) => (MarkState::Escape, false),
            (MarkState::Ground, _) => (MarkState::Ground, false),
            (MarkState::Escape, b']') => (MarkState::Command, false),
            (MarkState::Command, 0x07) => (MarkState::Ground, true),
            (MarkState::Command, 0x1b) => (MarkState::CommandEscape, false),
            (MarkState::Command, 0x18 | 0x1a) => (MarkState::Ground, false),
            (MarkState::Command, _) => (MarkState::Command, false),
            (MarkState::CommandEscape, b'\\') => (MarkState::Ground, true),
            (MarkState::CommandEscape, b']') => (MarkState::Command, false),
            (MarkState::Escape | MarkState::CommandEscape, 0x1b) => (MarkState::Escape, false),
            (MarkState::Escape | MarkState::CommandEscape, _) => (MarkState::Ground, false),
        };
        match (self.state, next) {
            (MarkState::Ground | MarkState::Escape, MarkState::Escape)
            | (MarkState::CommandEscape, MarkState::Escape) => self.begun = self.at - 1,
            (MarkState::CommandEscape, MarkState::Command) => {
                self.begun = self.at - 2;
                self.held.clear();
            }
            (MarkState::Escape, MarkState::Command) => self.held.clear(),
            // One more than a mark may have, so that one that is too long can be told.
            (MarkState::Command, MarkState::Command) if self.held.len() <= MAX_MARK => {
                self.held.push(byte)
            }
            _ => {}
        }
        self.state = next;
        complete
    }
}

/// `133;D;0;7;missiond=<token>`: its letter, what belongs to it, and the word at the end.
fn meaning(command: &[u8], token: &str) -> Option<Mark> {
    if command.len() > MAX_MARK {
        return None;
    }
    let text = std::str::from_utf8(command).ok()?.strip_prefix("133;")?;
    let (said, word) = text.rsplit_once(";missiond=")?;
    if word != token {
        return None;
    }
    match said.split_once(';').unwrap_or((said, "")) {
        ("B", _) => Some(Mark::Ready),
        ("P", _) => Some(Mark::Continues),
        ("C", _) => Some(Mark::Runs),
        ("E", _) => Some(Mark::OutputEnds),
        ("D", rest) => {
            let (code, prompt) = rest.split_once(';')?;
            let (code, prompt) = (code.parse().ok()?, prompt.parse().ok()?);
            Some(Mark::Ended { code, prompt })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(text: &str) -> Vec<Mark> {
        let found = PromptMarks::new("t1").scan(text.as_bytes());
        found.into_iter().map(|found| found.mark).collect()
    }

    #[test]
    fn a_prompt_and_a_command() {
        let text = "\x1b]133;D;0;1;missiond=t1\x07\x1b]133;A;missiond=t1\x07$ \x1b]133;B;missiond=t1\x1b\\ls\r\n\
                    \x1b]133;C;missiond=t1\x07a b\r\n\x1b]133;D;130;2;missiond=t1\x07";
        let ended = |code, prompt| Ended { code, prompt };
        use Mark::*;
        assert_eq!(scan(text), [ended(0, 1), Ready, Runs, ended(130, 2)]);
    }

    #[test]
    fn what_others_print_counts_for_nothing() {
        for foreign in [
            "\x1b]133;D;0\x07",
            "\x1b]133;D;0;1;missiond=\x07",
            "\x1b]133;D;0;1;missiond=t2\x07",
            "\x1b]133;D;0;missiond=t1\x07",
            "\x1b]133;D;x;1;missiond=t1\x07",
            "\x1b]133;D;0;1;missiond=t1\x18\x07",
            "\x1b]0;133;D;0;1;missiond=t1\x07",
            "]133;D;0;1;missiond=t1\x07",
        ] {
            assert_eq!(scan(foreign), [], "{foreign:?}");
        }
        let long = format!("\x1b]133;A;{};missiond=t1\x07", "x".repeat(200));
        assert_eq!(scan(&long), []);
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(before in "[a-z\x1b\\]]{0,9}", cut in 1usize..7) {
            let text = format!("{before}\x1b]133;D;7;1;missiond=t1\x07rest");
            let whole = PromptMarks::new("t1").scan(text.as_bytes());
            let mut marks = PromptMarks::new("t1");
            let parts: Vec<FoundMark> = text.as_bytes().chunks(cut).flat_map(|part| marks.scan(part)).collect();
            prop_assert_eq!(&whole, &parts);
            for found in whole {
                let mark = &text[found.start as usize..found.end as usize];
                prop_assert!(mark.starts_with("\x1b]133") && mark.ends_with('\x07'), "{:?}", mark);
            }
        }
    }
}
