//! How the program of a slot ended last, until the next one runs.

use crate::core::model::ExitReport;
use chrono::{DateTime, Utc};

#[derive(Debug, Default)]
pub(super) struct LastEnd {
    report: Option<ExitReport>,
    /// When that was, if there was no daemon to hear of it. It is told once.
    at: Option<DateTime<Utc>>,
    /// What stood on the screen then.
    screen: String,
}

impl LastEnd {
    /// The program has ended; `at` is known if that was before this daemon.
    pub fn note(&mut self, report: ExitReport, at: Option<DateTime<Utc>>, screen: String) {
        *self = LastEnd {
            report: Some(report),
            at,
            screen,
        };
    }

    /// A session of an earlier daemon had ended so.
    pub fn recall(&mut self, report: ExitReport) {
        self.report = Some(report);
    }

    /// A program runs again. Its last screen is kept until a slot is given up, or another program ends.
    pub fn runs_again(&mut self) {
        self.report = None;
    }

    pub fn report(&self) -> Option<&ExitReport> {
        self.report.as_ref()
    }

    /// When it ended, for the one event that tells it.
    pub fn take_time(&mut self) -> Option<DateTime<Utc>> {
        self.at.take()
    }

    /// The last screen, for the one log entry that shows it; `None` if it was empty.
    pub fn take_screen(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.screen)).filter(|screen| !screen.is_empty())
    }
}

/// Lines of a program's last words from the first error on, and from the end.
const FROM_ERROR: usize = 3;
const FROM_END: usize = 4;

/// What a program said last, out of the lines at the end of its screen. Many programs write where they were in their own
/// code behind the error itself: those lines are left out.
pub(super) fn words_in(lines: &[String]) -> Option<String> {
    let is_place = |line: &&str| line.starts_with("at ") && line.contains([':', '(']);
    let lines = lines.iter().map(|line| line.trim());
    let words: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !is_place(line))
        .collect();
    let end = words.len().saturating_sub(FROM_END);
    let is_error = |line: &&str| line.to_ascii_lowercase().contains("error");
    let error = words[..end].iter().position(is_error);
    let from_error = error.map_or(end..end, |at| at..end.min(at + FROM_ERROR));
    let said = [&words[from_error], &words[end..]].concat();
    (!said.is_empty()).then(|| said.join(" / "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_itself_is_among_the_last_words() {
        let words = |text: &str| {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            words_in(&lines)
        };
        assert_eq!(words("\n \n"), None);
        assert_eq!(words("one\n\n two").as_deref(), Some("one / two"));
        let of_node = "node:internal/modules/cjs/loader:1225\n  const err = new Error(message);\n        ^\n\n\
            Error: Cannot find module '/x/cli.js'\n    at Function._load (node:internal/a:1:2)\n    at b:3:4 {\n  \
            code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.1.0";
        let said = words(of_node).unwrap();
        assert!(said.contains("Cannot find module '/x/cli.js'"), "{said}");
        assert!(said.ends_with("} / Node.js v20.1.0"), "{said}");
        assert!(!said.contains("_load"), "{said}");
        let long: String = (0..40).map(|n| format!("line {n}\n")).collect();
        let said = words(&long).unwrap();
        assert_eq!(said, "line 36 / line 37 / line 38 / line 39");
    }

    #[test]
    fn the_time_and_the_screen_are_told_once_and_the_report_stays_until_the_next_start() {
        let (mut last, at) = (LastEnd::default(), DateTime::UNIX_EPOCH);
        assert_eq!(last.take_screen(), None);
        last.note(ExitReport::UNKNOWN, Some(at), "Bye.".to_owned());
        assert_eq!(last.take_time(), Some(at));
        assert_eq!(last.take_time(), None);
        last.runs_again();
        assert_eq!(last.report(), None);
        assert_eq!(last.take_screen().as_deref(), Some("Bye."));
        assert_eq!(last.take_screen(), None);
    }
}
