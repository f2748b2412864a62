//! How a command ends when it does not end well: whose fault, what next, and the exit code.

use crate::cli::{sanitise, steps};
use crate::control::client::CallError;
use crate::core::model::{Fault, RpcError};
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::io::Write;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub blame: Blame,
    pub message: String,
    /// What to do next.
    pub next: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    NoDaemon,
    /// Whoever read our output has seen enough (`| head`): no fault, and nobody to tell.
    ReaderGone,
    /// The person has waited long enough (Ctrl-C).
    Interrupted,
    /// The command that was run has failed: its exit code is ours, and it has said itself what is wrong.
    Command(u8),
    /// missiond has ended the command, which could not say so itself; the exit code is the command's.
    Ended(u8),
    #[serde(untagged)]
    Fault(Fault),
}

impl Blame {
    pub fn exit_code(self) -> u8 {
        match self {
            Blame::NoDaemon => 3,
            Blame::ReaderGone => 0,
            // As shells say it: 128 and the number of SIGINT.
            Blame::Interrupted => 130,
            Blame::Command(code) | Blame::Ended(code) => code,
            Blame::Fault(fault) => fault.exit_code(),
        }
    }
}

impl Failure {
    pub fn new(blame: Blame, message: impl Into<String>) -> Failure {
        Failure {
            blame,
            message: message.into(),
            next: None,
        }
    }

    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::new(Blame::Fault(Fault::Failed), message)
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Blame::Fault(Fault::Usage), message)
    }

    pub fn timed_out(message: impl Into<String>) -> Failure {
        Failure::new(Blame::Fault(Fault::TimedOut), message)
    }

    pub fn interrupted(what_goes_on: &str) -> Failure {
        let message = format!("no longer waiting; {what_goes_on}");
        Failure::new(Blame::Interrupted, message)
    }

    pub fn next(mut self, next: impl Into<String>) -> Failure {
        self.next = Some(next.into());
        self
    }

    /// With next steps that reach the same daemon.
    pub fn addressed(mut self, target: &str) -> Failure {
        self.next = self.next.map(|next| steps::addressed(&next, target));
        self
    }

    /// Tells the person, or the program, on stderr. Nothing more can be done where that fails.
    pub fn report(&self, json: bool) {
        if matches!(self.blame, Blame::ReaderGone | Blame::Command(_)) {
            return;
        }
        let mut stderr = anstream::stderr().lock();
        let _ = if json {
            writeln!(stderr, "{}", self.as_json())
        } else {
            write!(stderr, "{}", self.as_text())
        };
    }

    fn as_json(&self) -> String {
        let error = serde_json::json!({
            "error": { "fault": self.blame, "message": self.message, "next": self.next }
        });
        sanitise::json(&error.to_string())
    }

    /// The last failure that a missiond told in this text, colours apart, and how it is to be blamed.
    pub fn told_in(text: &str, blame: Blame) -> Option<Failure> {
        let begin = text.rfind("\nmissiond: ").map_or(0, |at| at + 1);
        let mut lines = text[begin..].lines();
        let message = lines.next()?.strip_prefix("missiond: ")?;
        let next: Vec<&str> = lines.map_while(|line| line.strip_prefix("  ")).collect();
        let failure = Failure::new(blame, message);
        Some(match next.is_empty() {
            true => failure,
            false => failure.next(next.join("\n")),
        })
    }

    fn as_text(&self) -> String {
        let name = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let message = sanitise::text(&self.message);
        let mut text = format!("{name}missiond:{name:#} {message}\n");
        for line in self.next.iter().flat_map(|next| next.lines()) {
            text += &format!("  {}\n", sanitise::text(line));
        }
        text
    }
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Failure {
        Failure {
            blame: Blame::Fault(error.fault),
            message: error.message,
            next: error.next,
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        match error {
            CallError::Rpc(error) => error.into(),
            CallError::NotRunning(_) => Failure::new(Blame::NoDaemon, error.to_string()),
            CallError::Silent(_) => Failure::timed_out(error.to_string())
                .next("see what it says: missiond.log in the log directory"),
            CallError::Protocol(message) | CallError::Lost(message) => Failure::failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_the_fault_and_the_next_step() {
        let failure = Failure::new(Blame::NoDaemon, "no daemon answers").next("missiond up");
        assert_eq!(
            failure.as_json(),
            r#"{"error":{"fault":"no_daemon","message":"no daemon answers","next":"missiond up"}}"#
        );
        let refused = Failure::from(RpcError::new(Fault::Refused, "busy"));
        assert!(refused.as_json().contains(r#""fault":"refused""#));
    }

    #[test]
    fn text_indents_each_line_of_the_next_step() {
        let failure = Failure::failed("it broke").next("one\ntwo");
        let plain = anstream::adapter::strip_str(&failure.as_text()).to_string();
        assert_eq!(plain, "missiond: it broke\n  one\n  two\n");
    }

    #[test]
    fn a_failure_is_found_again_in_what_was_told() {
        let failures = [
            Failure::failed("it broke").next("one\n  two"),
            Failure::failed("it broke"),
        ];
        for failure in failures {
            let told = format!("INFO missiond: no\nmissiond: before\n{}", failure.as_text());
            let told = anstream::adapter::strip_str(&told).to_string();
            assert_eq!(Failure::told_in(&told, failure.blame), Some(failure));
        }
        assert_eq!(Failure::told_in("INFO ready\n", Blame::NoDaemon), None);
    }

    #[test]
    fn a_message_cannot_drive_the_terminal() {
        let text = Failure::failed("bad \u{1b}]0;owned\u{7}").as_text();
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(plain, "missiond: bad \\x1b]0;owned\\x07\n");
    }
}
