//! When a usage limit is reset, from the text on the screen: `resets 3pm`, `resets 3:45pm (Europe/Berlin)`, `resets at 3pm`,
//! `resets Aug 8`, `resets Aug 8, 2027, 3:45pm`. Texts of an account are in local time; those of an API key, `regain access on
//! 2026-12-01 at 00:00 UTC`, are in UTC. Pure.

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use regex::Regex;
use std::sync::LazyLock;
use std::time::Duration;

/// A time that has just passed is today's, not tomorrow's: clocks differ a little, and limits are reset late.
const JUST_PASSED: Duration = Duration::from_secs(5 * 60);

static RESETS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let date = r"(?:(?<month>[A-Z][a-z]{2}) (?<day>\d{1,2})(?:, (?<year>\d{4}))?,? ?)?";
    let time = r"(?:(?<hour>\d{1,2})(?::(?<minute>\d{2}))? ?(?<half>[ap])m)?";
    Regex::new(&format!(r"resets (?:at )?{date}{time}")).ok()
});

static REGAINS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"regain access on (\d{4}-\d{2}-\d{2} at \d{2}:\d{2}) UTC").ok());

/// How long from `now`, in the time zone of the screen, until the limit in `text` is reset; `None` if the text has no time.
pub fn limit_reset_in<Zone: TimeZone>(text: &str, now: DateTime<Zone>) -> Option<Duration> {
    let left = match regained(text) {
        Some(at) => at - now.naive_utc(),
        None => reset(text, now.naive_local())? - now.naive_local(),
    };
    Some(left.to_std().unwrap_or_default())
}

fn regained(text: &str) -> Option<NaiveDateTime> {
    let found = REGAINS.as_ref()?.captures(text)?;
    NaiveDateTime::parse_from_str(&found[1], "%Y-%m-%d at %H:%M").ok()
}

fn reset(text: &str, now: NaiveDateTime) -> Option<NaiveDateTime> {
    let found = RESETS.as_ref()?.captures(text)?;
    let part = |name: &str| found.name(name).map(|found| found.as_str());
    let time = match (part("hour"), part("half")) {
        (Some(hour), Some(half)) => Some(time_of(hour, part("minute"), half)?),
        _ => None,
    };
    match (part("month"), part("day"), time) {
        (Some(month), Some(day), time) => {
            let day = date_of(month, day, part("year"), now.date())?;
            Some(day.and_time(time.unwrap_or_default()))
        }
        (_, _, Some(time)) => next(time, now),
        _ => None,
    }
}

fn time_of(hour: &str, minute: Option<&str>, half: &str) -> Option<NaiveTime> {
    let hour: u32 = hour.parse().ok().filter(|hour| (1..=12).contains(hour))?;
    let minute = minute.map_or(Some(0), |minute| minute.parse().ok())?;
    let afternoon = if half == "p" { 12 } else { 0 };
    NaiveTime::from_hms_opt(hour % 12 + afternoon, minute, 0)
}

/// Without a year it is the next such day.
fn date_of(month: &str, day: &str, year: Option<&str>, today: NaiveDate) -> Option<NaiveDate> {
    let month = month.parse::<chrono::Month>().ok()?.number_from_month();
    let day = day.parse().ok()?;
    if let Some(year) = year {
        return NaiveDate::from_ymd_opt(year.parse().ok()?, month, day);
    }
    let this_year = NaiveDate::from_ymd_opt(today.year(), month, day)?;
    if this_year >= today {
        return Some(this_year);
    }
    NaiveDate::from_ymd_opt(today.year() + 1, month, day)
}

/// The next time at which a clock shows this.
fn next(time: NaiveTime, now: NaiveDateTime) -> Option<NaiveDateTime> {
    let today = now.date().and_time(time);
    let passed = (now - today).to_std().unwrap_or_default();
    if passed <= JUST_PASSED {
        return Some(today);
    }
    today.checked_add_days(Days::new(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_on_the_screen_is_waited_for() {
        let place = chrono::FixedOffset::east_opt(2 * 60 * 60).unwrap();
        let now = place.with_ymd_and_hms(2026, 8, 5, 14, 30, 0).unwrap();
        let minutes = |text: &str| limit_reset_in(text, now).map(|wait| wait.as_secs() / 60);
        for (text, expected) in [
            ("You've hit your session limit · resets 3pm", Some(30)),
            (
                "Usage limit reached · limit resets 3:45pm (Europe/Berlin)",
                Some(75),
            ),
            ("5-hour limit reached ∙ resets at 12am", Some(9 * 60 + 30)),
            ("resets 2:29pm", Some(0)),
            ("resets 2pm", Some(23 * 60 + 30)),
            ("resets 12pm", Some(21 * 60 + 30)),
            (
                "spend limit reached · resets Aug 8",
                Some((2 * 24 + 9) * 60 + 30),
            ),
            ("resets Aug 6, 3:45pm", Some(25 * 60 + 15)),
            ("resets Jan 1, 2027, 12am", Some((148 * 24 + 9) * 60 + 30)),
            (
                "You will regain access on 2026-08-05 at 13:00 UTC.",
                Some(30),
            ),
            (
                "You will regain access on 2026-08-05 at 12:00 UTC.",
                Some(0),
            ),
            ("You will regain access on 2026-13-05 at 12:00 UTC.", None),
            ("resets Feb 30", None),
            ("resets 13pm", None),
            ("You've hit your session limit", None),
            ("it resets soon", None),
        ] {
            assert_eq!(minutes(text), expected, "{text}");
        }
    }
}
