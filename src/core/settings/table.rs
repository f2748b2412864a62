//! Reading a TOML table key by key: each fault is noted with its place and reading goes on, so that a
//! person sees all of them at once.

use crate::core::claude::Version;
use crate::core::settings::limits::Limits;
use crate::core::text::diagnostic::{Problem, Source, nearest, one_of};
use crate::core::text::dollars::{self, Dollars};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One table of the file, and the keys that were asked for: what is left over is unknown.
pub(crate) struct Table<'a, 'p> {
    source: &'a Source,
    entries: &'a DeTable<'a>,
    /// What the keys belong to, in words: "a slot".
    what: &'static str,
    asked: Vec<&'static str>,
    problems: &'p mut Vec<Problem>,
}

impl<'a, 'p> Table<'a, 'p> {
    pub fn new(
        source: &'a Source,
        entries: &'a DeTable<'a>,
        what: &'static str,
        problems: &'p mut Vec<Problem>,
    ) -> Table<'a, 'p> {
        Table {
            source,
            entries,
            what,
            asked: Vec::new(),
            problems,
        }
    }

    pub fn entry(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.push(key);
        self.entries.get(key)
    }

    /// Whether the key is there, right or wrong.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// A table below this one, read to its end; `read` also gets its place.
    pub fn table<T>(
        &mut self,
        key: &'static str,
        what: &'static str,
        read: impl FnOnce(&mut Table<'_, '_>, Range<usize>) -> Option<T>,
    ) -> Option<T> {
        let value = self.entry(key)?;
        let Some(entries) = value.get_ref().as_table() else {
            self.wrong_type(key, value, &format!("a table: write {what}"));
            return None;
        };
        let mut table = Table::new(self.source, entries, what, self.problems);
        let read = read(&mut table, value.span());
        table.finish();
        read
    }

    pub fn string(&mut self, key: &'static str) -> Option<Spanned<String>> {
        self.get(key, "a string in quotes", |value| {
            value.as_str().map(str::to_owned)
        })
    }

    pub fn flag(&mut self, key: &'static str) -> Option<Spanned<bool>> {
        self.get(key, "`true` or `false`", |value| value.as_bool())
    }

    pub fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u16>,
    ) -> Option<Spanned<u16>> {
        let number = self.get(key, "a whole number", integer)?;
        let value = u16::try_from(*number.get_ref()).ok();
        let Some(value) = value.filter(|value| range.contains(value)) else {
            let (low, high) = range.into_inner();
            self.fault(
                number.span(),
                format!("`{key}` out of range"),
                format!("must be from {low} to {high}"),
            );
            return None;
        };
        Some(Spanned::new(number.span(), value))
    }

    /// A time as a person writes it, such as `90s` or `1h 30m`.
    pub fn duration(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Duration>,
    ) -> Option<Spanned<Duration>> {
        let text = self.string(key)?;
        let value = self.time(key, &text, range, "such as \"30s\", \"5m\" or \"1h 30m\"")?;
        Some(Spanned::new(text.span(), value))
    }

    /// The same, or `off`.
    pub fn duration_or_off(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Duration>,
    ) -> Option<Spanned<Option<Duration>>> {
        let text = self.string(key)?;
        let value = match text.get_ref().as_str() {
            "off" => None,
            _ => Some(self.time(key, &text, range, "such as \"30s\" or \"5m\", or \"off\"")?),
        };
        Some(Spanned::new(text.span(), value))
    }

    fn time(
        &mut self,
        key: &str,
        text: &Spanned<String>,
        range: RangeInclusive<Duration>,
        example: &str,
    ) -> Option<Duration> {
        match humantime::parse_duration(text.get_ref()) {
            Ok(time) if range.contains(&time) => Some(time),
            Ok(_) => {
                let (low, high) = range.into_inner();
                let shown = humantime::format_duration;
                let label = format!("must be from {} to {}", shown(low), shown(high));
                self.fault(text.span(), format!("`{key}` out of range"), label);
                None
            }
            Err(_) => {
                let label = format!("`{key}` takes a time, {example}");
                self.fault(text.span(), "bad time", label);
                None
            }
        }
    }

    /// A number of bytes such as `512MB` or `2GiB`, or `off`.
    pub fn size_or_off(&mut self, key: &'static str) -> Option<Spanned<Option<u64>>> {
        let text = self.string(key)?;
        if text.get_ref() == "off" {
            return Some(Spanned::new(text.span(), None));
        }
        let bytes = self.bytes(key, &text, ", or \"off\"")?;
        Some(Spanned::new(text.span(), Some(bytes)))
    }

    /// Resource limits, in a table of their own.
    pub fn limits(&mut self, key: &'static str) -> Option<Spanned<Limits>> {
        let value = self.entry(key)?;
        let Some(entries) = value.get_ref().as_table() else {
            let example = "a table, such as { cpu = \"10m\", files = 1024 }";
            self.wrong_type(key, value, example);
            return None;
        };
        let mut table = Table::new(self.source, entries, "`limits`", self.problems);
        let counts = 1..=u16::MAX;
        let number = |number: Option<Spanned<u16>>| number.map(|n| u64::from(n.into_inner()));
        let times = Duration::from_secs(1)..=Duration::from_secs(31_557_600);
        let cpu = table.duration("cpu", times).map(Spanned::into_inner);
        let limits = Limits {
            cpu_ms: cpu.and_then(|time| time.as_millis().try_into().ok()),
            files: number(table.number("files", counts.clone())),
            processes: number(table.number("processes", counts)),
            file_size: table
                .size("file_size", 1 << 10..=1 << 50)
                .map(Spanned::into_inner),
        };
        table.finish();
        if let Some(why) = limits.fault(false) {
            self.fault(value.span(), "limits that can't hold", why);
        }
        Some(Spanned::new(value.span(), limits))
    }

    /// A number of bytes in a range.
    pub fn size(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<Spanned<u64>> {
        let text = self.string(key)?;
        let bytes = self.bytes(key, &text, "")?;
        if !range.contains(&bytes) {
            let (low, high) = range.into_inner();
            let label = format!("must be from {} KiB to {} GiB", low >> 10, high >> 30);
            self.fault(text.span(), format!("`{key}` out of range"), label);
            return None;
        }
        Some(Spanned::new(text.span(), bytes))
    }

    fn bytes(&mut self, key: &str, text: &Spanned<String>, or: &str) -> Option<u64> {
        let bytes = bytes(text.get_ref());
        if bytes.is_none() {
            let label = format!("`{key}` takes a size, such as \"512MB\" or \"2GB\"{or}");
            self.fault(text.span(), "bad size", label);
        }
        bytes
    }

    /// An amount of US dollars, or `off`.
    pub fn dollars_or_off(&mut self, key: &'static str) -> Option<Spanned<Option<Dollars>>> {
        let value = self.entry(key)?;
        let amount = match value.get_ref() {
            DeValue::String(text) if text == "off" => {
                return Some(Spanned::new(value.span(), None));
            }
            DeValue::Integer(_) => integer(value.get_ref()).map(|whole| whole as f64),
            DeValue::Float(float) => float.as_str().parse().ok(),
            _ => None,
        };
        let Some(amount) = amount else {
            let expected = "an amount of US dollars, such as 2.50, or \"off\"";
            self.wrong_type(key, value, expected);
            return None;
        };
        let dollars = Dollars::from_f64(amount).filter(|_| dollars::LIMITS.contains(&amount));
        if dollars.is_none() {
            let (low, high) = dollars::LIMITS.into_inner();
            let label = format!("must be from {low} to {high}");
            self.fault(value.span(), format!("`{key}` out of range"), label);
        }
        dollars.map(|dollars| Spanned::new(value.span(), Some(dollars)))
    }

    pub fn version(&mut self, key: &'static str) -> Option<Spanned<Version>> {
        let text = self.string(key)?;
        let version = Version::parse(text.get_ref());
        if version.is_none() {
            let label = "a version looks like 2.1.325, as `claude --version` says it";
            self.fault(text.span(), "bad version", label);
        }
        Some(Spanned::new(text.span(), version?))
    }

    /// One of a few words.
    pub fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<Spanned<T>> {
        let word = self.string(key)?;
        let known = words.iter().find(|(name, _)| name == word.get_ref());
        if let Some((_, value)) = known {
            return Some(Spanned::new(word.span(), *value));
        }
        let names = || words.iter().map(|(name, _)| *name);
        let label = match nearest(word.get_ref(), names()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("must be {}", one_of(names())),
        };
        self.fault(word.span(), format!("unknown {key}"), label);
        None
    }

    /// A list of strings, or a single one for a list of one.
    pub fn string_or_strings(
        &mut self,
        key: &'static str,
    ) -> Option<Spanned<Vec<Spanned<String>>>> {
        if !matches!(self.entries.get(key)?.get_ref(), DeValue::String(_)) {
            return self.strings(key);
        }
        let one = self.string(key)?;
        Some(Spanned::new(one.span(), vec![one]))
    }

    pub fn strings(&mut self, key: &'static str) -> Option<Spanned<Vec<Spanned<String>>>> {
        let value = self.entry(key)?;
        let Some(array) = value.get_ref().as_array() else {
            let example = match value.get_ref() {
                DeValue::String(text) => {
                    let words: Vec<&str> = text.split_whitespace().collect();
                    format!("such as {words:?}")
                }
                _ => "such as [\"a\", \"b\"]".into(),
            };
            self.wrong_type(key, value, &format!("a list of strings, {example}"));
            return None;
        };
        let strings = array
            .iter()
            .filter_map(|item| self.item(key, item))
            .collect();
        Some(Spanned::new(value.span(), strings))
    }

    /// A table of strings, keys with their places.
    pub fn map(&mut self, key: &'static str) -> Option<BTreeMap<String, NamedText>> {
        let value = self.entry(key)?;
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(
                key,
                value,
                "a table of strings, such as { NAME = \"value\" }",
            );
            return None;
        };
        let pairs = table.iter().filter_map(|(name, value)| {
            let named = NamedText {
                name_span: name.span(),
                value: self.item(key, value)?.into_inner(),
            };
            Some((name.get_ref().to_string(), named))
        });
        Some(pairs.collect())
    }

    /// Every key that was never asked for is unknown.
    pub fn finish(self) {
        let mut unknown: Vec<_> = self
            .entries
            .keys()
            .filter(|key| !self.asked.contains(&key.get_ref().as_ref()))
            .collect();
        unknown.sort_by_key(|key| key.span().start);
        for key in unknown {
            let problem = |label| self.source.problem(key.span(), "unknown key", label);
            let meant = nearest(key.get_ref(), self.asked.iter().copied());
            self.problems.push(match meant {
                Some(meant) => problem(format!("did you mean `{meant}`?")),
                None => problem(format!("{} has no such key", self.what)).with_help(format!(
                    "{} takes {}",
                    self.what,
                    all_of(&self.asked)
                )),
            });
        }
    }

    pub fn fault(
        &mut self,
        span: Range<usize>,
        title: impl Into<String>,
        label: impl Into<String>,
    ) {
        self.problems.push(self.source.problem(span, title, label));
    }

    pub fn wrong_type(&mut self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) {
        let found = value.get_ref().type_str();
        let label = format!("`{key}` takes {expected}; this is of type {found}");
        self.fault(value.span(), "wrong type", label);
    }

    fn get<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(&DeValue<'_>) -> Option<T>,
    ) -> Option<Spanned<T>> {
        let value = self.entry(key)?;
        let converted = convert(value.get_ref());
        if converted.is_none() {
            self.wrong_type(key, value, expected);
        }
        Some(Spanned::new(value.span(), converted?))
    }

    fn item(&mut self, key: &str, item: &Spanned<DeValue<'_>>) -> Option<Spanned<String>> {
        let Some(text) = item.get_ref().as_str() else {
            let quoted = format!("strings: write \"{}\"", &self.source.text[item.span()]);
            let simple = !item.get_ref().is_array() && !item.get_ref().is_table();
            let expected = if simple { &quoted } else { "strings" };
            self.wrong_type(key, item, expected);
            return None;
        };
        Some(Spanned::new(item.span(), text.to_owned()))
    }
}

/// A value of a map, and where its name stands.
pub(crate) struct NamedText {
    pub name_span: Range<usize>,
    pub value: String,
}

/// Too large for 64 bits is out of range like any other large number.
fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    Some(i64::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(i64::MAX))
}

/// Units of a thousand and of 1024 are told apart as everybody does.
const UNITS: [(&str, u64); 9] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("KB", 1_000),
    ("G", 1 << 30),
    ("M", 1 << 20),
];

/// What [`bytes`] reads.
pub(super) const SIZE: &str = "^[0-9]+ *([kKMG]B|[KMG]iB|[MG]|B)$";

/// A size as a person writes it: in the largest unit of which it is a whole number.
pub(super) fn in_units(bytes: u64) -> String {
    let whole = |(_, factor): &&(&str, u64)| bytes.is_multiple_of(*factor);
    let (unit, factor) = UNITS.iter().find(whole).unwrap_or(&("B", 1));
    format!("{}{unit}", bytes / factor)
}

/// A size such as `512MB`, in bytes.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .or_else(|| Some((text.strip_suffix('B')?, 1)))?;
    let number: u64 = number.trim().parse().ok()?;
    number.checked_mul(factor).filter(|bytes| *bytes > 0)
}

fn all_of(keys: &[&str]) -> String {
    one_of(keys.iter().copied()).replace(" or ", " and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_written_as_it_is_read() {
        let pattern = regex::Regex::new(SIZE).unwrap();
        for (text, size) in [
            ("10MB", 10_000_000),
            ("16MiB", 16 << 20),
            ("3GiB", 3 << 30),
            ("1001B", 1001),
            ("1kB", 1000),
        ] {
            assert_eq!(in_units(size), text);
            assert_eq!(bytes(text), Some(size));
            assert!(pattern.is_match(text), "{text}");
        }
        for text in ["10", "1 banana", "MB", "-1MB"] {
            assert!(!pattern.is_match(text) && bytes(text).is_none(), "{text}");
        }
    }
}
