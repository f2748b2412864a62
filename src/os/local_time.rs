//! Times as people read them: the clock where they are, with the date only on another day.

use chrono::{DateTime, Local, TimeZone, Utc};
use std::borrow::Cow;
use std::fmt::Display;

/// `02:01:10`, or `2026-01-31 02:01:10` if it was not today.
pub fn clock(time: DateTime<Utc>) -> String {
    written(&time.with_timezone(&Local), &Local::now())
}

/// The line of a log with its time, which it begins with, as a person reads it.
pub fn in_line(line: &str) -> Cow<'_, str> {
    let word = line.split(' ').next().unwrap_or_default();
    match DateTime::parse_from_rfc3339(word) {
        Ok(time) => format!("{}{}", clock(time.to_utc()), &line[word.len()..]).into(),
        Err(_) => line.into(),
    }
}

fn written<Z: TimeZone>(time: &DateTime<Z>, now: &DateTime<Z>) -> String
where
    Z::Offset: Display,
{
    let is_today = time.date_naive() == now.date_naive();
    let format = if is_today { "%H:%M:%S" } else { "%F %T" };
    time.format(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_there_on_another_day_alone() {
        let now: DateTime<Utc> = "2026-01-02T00:30:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-01-02T00:29:59.999Z", "00:29:59"),
            ("2026-01-02T23:00:00Z", "23:00:00"),
            ("2026-01-01T23:59:59Z", "2026-01-01 23:59:59"),
            ("2025-01-02T00:30:00Z", "2025-01-02 00:30:00"),
        ] {
            assert_eq!(written(&time.parse().unwrap(), &now), expected);
        }
    }

    #[test]
    fn only_a_time_that_a_line_begins_with_is_changed() {
        let time = "2026-01-01T10:00:00.000+00:00";
        let line = format!("{time}  state idle, since {time}");
        let local = clock(DateTime::parse_from_rfc3339(time).unwrap().to_utc());
        assert_eq!(in_line(&line), format!("{local}  state idle, since {time}"));
        for same in ["", "  second line", "one two", "2026"] {
            assert_eq!(in_line(same), same);
        }
    }
}
