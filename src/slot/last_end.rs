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

#[cfg(test)]
mod tests {
    use super::*;

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
