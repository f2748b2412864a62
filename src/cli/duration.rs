//! Durations as people type them.

use std::time::Duration;

/// `5m`, `500ms`, `1h 30m`; a number without a unit is seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}: 5 (seconds), 500ms, 5m or 1h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_seconds_and_units_are_taken() {
        for (text, expected) in [
            ("5", Some(5_000)),
            ("0", Some(0)),
            ("500ms", Some(500)),
            ("1m 30s", Some(90_000)),
            ("-5", None),
            ("5.5", None),
            ("5 x", None),
            ("", None),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(parse(text).ok(), expected, "{text:?}");
        }
    }
}
