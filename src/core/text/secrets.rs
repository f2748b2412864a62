//! Masks secrets for logs: API keys, tokens, passwords in addresses, private keys. Pure.
//!
//! A text is masked as a whole, never in pieces. A secret that a terminal or a program has wrapped at the right margin is found
//! too: if a row ends in the middle of a word, the next row may continue it.

use regex::{Captures, Regex};
use serde_json::Value;
use std::ops::Range;
use std::sync::LazyLock;

/// The replacement for a secret.
pub const MASK: &str = "[masked]";

/// Where a secret may begin: at a word, or after an escaped character (`\n`, `\x0a`, `\u000a`, `\012`, `%0A`) or a colour
/// sequence, whose last letter does not belong to a word.
const EDGE: &str =
    r"(?:\b|\\[a-zA-Z]|\\[xu]\{?[0-9A-Fa-f]{2,6}\}?|\\[0-7]{1,3}|%[0-9A-Fa-f]{2}|\[[0-9;]*m)";

/// Secrets with a known form. Each begins at an edge, and the whole match is secret.
const TOKENS: &[&str] = &[
    r"sk-[A-Za-z0-9_-]{20,}",
    r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}",
    r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"(?:xox[abeprs]|xoxo|xapp)-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"(?:npm|hf)_[A-Za-z0-9]{20,}",
    r"pypi-[A-Za-z0-9_-]{16,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?:do[opr]_v1_|shp(?:at|ca|pa|ss)_)[A-Fa-f0-9]{20,}",
    r"dp\.(?:pt|ct|sa|scim|audit|st(?:\.[a-z0-9_-]{2,35})?)\.[A-Za-z0-9]{24,}",
    r"hv[sbr]\.[A-Za-z0-9_-]{24,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
    r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
];

/// Secrets with a known prefix, which begins at an edge; group `s` is the secret.
const BEHIND: &[&str] = &[
    r"https://hooks\.slack\.com/services/(?<s>[A-Za-z0-9/]{20,})",
    // A Telegram bot: its number and exactly this many characters, also in the URL that it calls.
    r"(?:bot)?[0-9]{8,10}:(?<s>[A-Za-z0-9_-]{35})(?:[^A-Za-z0-9_-]|\z)",
    r"[a-z][a-z0-9+.-]*://[^\s/:@]*:(?<s>[^\s/]+)@",
    r"(?i:authorization\\?[\x22']?\s*:\s*\\?[\x22']?(?:bearer|basic|token)\s+(?<s>[A-Za-z0-9._~+/=-]{8,}))",
    r"(?i:bearer\s+(?<s>[A-Za-z0-9._~+/=-]{20,}))",
];

/// Secrets that begin anywhere; group `s` is the secret, if it is not the whole match.
const ANYWHERE: &[&str] = &[
    r"sk-ant-[A-Za-z0-9_-]{8,}",
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    // A name that indicates a secret, and the assigned value.
    r"(?ix) (?:api[_-]?key | access[_-]?key | account[_-]?key | private[_-]?key | secret | token | passw(?:or)?d)
        (?:[_-][a-z0-9_-]+)? \\?[\x22']? \s*[=:]\s* \\?[\x22']? (?<s>[^\s\x22'\\$<>{}]{8,})",
    // Passwords are short, and an option may come before its value.
    r"(?i)passw(?:or)?d\\?[\x22']?=\\?[\x22']?(?<s>[^\s\x22'\\$<>{}&]{4,})",
    r"(?i)(?:\s|\\[nrt])--?(?:password|passwd|token|secret|api-key)\s+[\x22']?(?<s>[^\s\x22'\\$<>{}-][^\s\x22'\\$<>{}]{5,})",
    r"(?:\s|\\[nrt])(?:-u|--user)[ =][\x22']?[^\s:\x22']+:(?<s>[^\s\x22'$]*[A-Za-z][^\s\x22'$]{4,})",
];

static KINDS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    // A test proves that each of them compiles.
    let compiled = patterns().map(|pattern| Regex::new(&pattern));
    compiled.filter_map(Result::ok).collect()
});

fn patterns() -> impl Iterator<Item = String> {
    let tokens = TOKENS.iter().map(|token| format!("{EDGE}(?<s>{token})"));
    let behind = BEHIND.iter().map(|place| format!("{EDGE}{place}"));
    let anywhere = ANYWHERE.iter().map(|&pattern| pattern.to_owned());
    tokens.chain(behind).chain(anywhere)
}

/// A text that every secret contains or follows. This search is ten times as fast as the search for secrets; most texts have no
/// match, and so no secret.
const SIGN: &str = r"sk[-_]|rk_|gh[pousr]_|github_pat_|glpat-|xox|xapp-|A[KS]IA|AIza|ya29\.|npm_|hf_|pypi-|SG\.|do[opr]_v1_|shp|dp\.|hv[sbr]\.|AGE-SECRET|eyJ|hooks\.slack|[0-9]{8}:|://|-----BEGIN|-u|(?i:authorization|bearer|key|secret|token|passw)";

static SIGNS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SIGN).ok());

/// The text with every secret masked.
pub fn mask(text: &str) -> String {
    match has_sign(text) {
        true => replaced(text, |_| MASK.to_owned()),
        false => text.to_owned(),
    }
}

/// The same for the rows of a screen; the number of rows stays the same.
pub fn mask_rows(rows: &[String]) -> Vec<String> {
    let masked = mask_lines(rows.join("\n"));
    let masked = masked.split('\n').take(rows.len());
    masked.map(str::to_owned).collect()
}

/// The same for a text of any length, without a copy if there is no secret; the number of lines stays the same.
pub fn mask_lines(text: String) -> String {
    match has_sign(&text) {
        true => replaced(&text, |secret| {
            let breaks = secret.matches('\n').count();
            format!("{MASK}{}", "\n".repeat(breaks))
        }),
        false => text,
    }
}

/// Whether there is a sign of a secret. A sign may be wrapped, so the search ignores the characters that a line break may add.
fn has_sign(text: &str) -> bool {
    let mut unwrapped = String::with_capacity(text.len());
    let kept = text.split([' ', '\t', '│', '┃', '|', '\n']);
    kept.for_each(|part| unwrapped.push_str(part));
    SIGNS
        .as_ref()
        .is_none_or(|signs| signs.is_match(&unwrapped))
}

fn replaced(text: &str, mark: impl Fn(&str) -> String) -> String {
    replaced_at(text, secrets_in(text), mark)
}

fn replaced_at(text: &str, secrets: Vec<Range<usize>>, mark: impl Fn(&str) -> String) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for secret in secrets {
        masked.push_str(&text[end..secret.start]);
        masked.push_str(&mark(&text[secret.clone()]));
        end = secret.end;
    }
    masked.push_str(&text[end..]);
    masked
}

/// The positions of the secrets, in order, without overlap.
fn secrets_in(text: &str) -> Vec<Range<usize>> {
    let mut found = matches_in(text);
    // A row may have ended in the middle of a word, or between words.
    for unwrapped in ["", " "]
        .iter()
        .filter_map(|glue| Unwrapped::new(text, glue))
    {
        let inside = matches_in(&unwrapped.text);
        found.extend(inside.iter().map(|range| unwrapped.in_original(range)));
    }
    merged(found)
}

/// The ranges in order, without overlap.
fn merged(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in found {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

fn matches_in(text: &str) -> Vec<Range<usize>> {
    let secret = |found: Captures| {
        let secret = found.name("s").or_else(|| found.get(0));
        secret.map(|secret| secret.range())
    };
    KINDS
        .iter()
        .flat_map(|kind| kind.captures_iter(text).filter_map(secret))
        .collect()
}

/// A text without the line breaks at which it may have been wrapped.
struct Unwrapped {
    text: String,
    /// For each removed break: its position in this text, and how many bytes were removed up to it.
    breaks: Vec<(usize, usize)>,
}

/// A break between two words or inside one, with the margin and the frame around it.
static BREAK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[^\s│┃|](?<b>[ \t]*[│┃|]?[ \t]*\n[ \t]*[│┃|]?[ \t]*)[^\s│┃|]").ok()
});

/// A shorter row was not wrapped: no terminal is that narrow.
const NARROWEST: usize = 30;

impl Unwrapped {
    /// `None` if nothing can have been wrapped.
    fn new(text: &str, glue: &str) -> Option<Unwrapped> {
        let pattern = BREAK.as_ref()?;
        let mut unwrapped = Unwrapped {
            text: String::with_capacity(text.len()),
            breaks: Vec::new(),
        };
        let (mut end, mut at) = (0, 0);
        while let Some(found) = pattern
            .captures_at(text, at)
            .and_then(|found| found.name("b"))
        {
            // The character after a break may also come before the next one.
            at = found.end();
            let row = text[..found.start()].rfind('\n').map_or(0, |at| at + 1);
            if text[row..found.start()].chars().count() < NARROWEST {
                continue;
            }
            unwrapped.text.push_str(&text[end..found.start()]);
            unwrapped.text.push_str(glue);
            end = found.end();
            unwrapped
                .breaks
                .push((unwrapped.text.len(), end - unwrapped.text.len()));
        }
        unwrapped.text.push_str(&text[end..]);
        (!unwrapped.breaks.is_empty()).then_some(unwrapped)
    }

    /// A range of this text in the original. A break at either end is excluded.
    fn in_original(&self, range: &Range<usize>) -> Range<usize> {
        let shift = |breaks: &mut dyn Iterator<Item = &(usize, usize)>| {
            breaks.last().map_or(0, |(_, taken)| *taken)
        };
        let before_start = shift(&mut self.breaks.iter().filter(|(at, _)| *at <= range.start));
        let before_end = shift(&mut self.breaks.iter().filter(|(at, _)| *at < range.end));
        range.start + before_start..range.end + before_end
    }
}

/// A JSON value with the secrets in its strings masked, and with all values whose names indicate a secret.
pub fn mask_json(value: &Value) -> Value {
    json_masked(value, &mask)
}

/// The same for the input of a call. No terminal has wrapped it: a secret ends with its line, and the next line stays.
pub fn mask_input(value: &Value) -> Value {
    let unwrapped = |text: &str| replaced_at(text, merged(matches_in(text)), |_| MASK.to_owned());
    json_masked(value, &unwrapped)
}

fn json_masked(value: &Value, mask: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(mask(text)),
        Value::Array(items) => items.iter().map(|item| json_masked(item, mask)).collect(),
        Value::Object(fields) => {
            let masked = fields.iter().map(|(key, value)| match value {
                Value::String(_) if is_secret_name(key) => (key.clone(), MASK.into()),
                value => (key.clone(), json_masked(value, mask)),
            });
            Value::Object(masked.collect())
        }
        other => other.clone(),
    }
}

/// The value of a variable or a setting, with secrets masked; masked as a whole if the name indicates a secret.
pub fn mask_named(name: &str, value: &str) -> String {
    const ENDINGS: &[&str] = &[
        "key",
        "token",
        "pat",
        "pin",
        "cookie",
        "credentials",
        "auth",
        "pass",
        "pgpass",
    ];
    const PARTS: &[&str] = &["password", "passwd", "passphrase", "secret"];
    let name = name.to_ascii_lowercase();
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let is_secret = is_secret_name(&name)
        || ENDINGS.contains(&last)
        || PARTS.iter().any(|part| name.contains(part));
    match is_secret && !value.is_empty() {
        true => MASK.to_owned(),
        false => mask(value),
    }
}

fn is_secret_name(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "apikey",
        "accesskey",
        "privatekey",
        "secretkey",
        "secret",
        "token",
        "accesstoken",
        "refreshtoken",
        "password",
        "passwd",
        "authorization",
    ];
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    NAMES.contains(&plain.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_name_that_says_so_masks_the_whole_value() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GH_TOKEN",
            "db.password",
            "AWS_SECRET_ACCESS_KEY",
            "apiKey",
            "MYPASSWORD",
            "GITHUB_PAT",
            "COOKIE",
            "--password",
            "--api-key",
            "NPM_AUTH",
            "PGPASS",
            "SMTP_PASS",
        ] {
            assert_eq!(mask_named(name, "plain words"), MASK, "{name}");
        }
        for name in [
            "KEYBOARD",
            "EDITOR",
            "TOKENIZERS_PARALLELISM",
            "name",
            "PATH",
        ] {
            assert_eq!(mask_named(name, "plain words"), "plain words", "{name}");
        }
        let inside = mask_named("args", "use sk-ant-api03-abcdefghijkl");
        assert!(!inside.contains("abcdefghijkl"), "{inside}");
    }

    #[test]
    fn a_secret_in_an_input_ends_with_its_line() {
        let token = format!("ghp_{}", "a1".repeat(18));
        let input = json!({"command": format!("touch w?token={token}\nmake evil"), "token": "x"});
        let masked = mask_input(&input);
        assert_eq!(
            masked["command"],
            format!("touch w?token={MASK}\nmake evil"),
            "{masked}"
        );
        assert_eq!(masked["token"], MASK);
    }

    #[test]
    fn every_kind_compiles() {
        assert_eq!(KINDS.len(), patterns().count());
        assert!(BREAK.is_some());
    }

    /// A text, and the part of it that must be masked.
    const SECRETS: &[(&str, &str)] = &[
        ("key sk-ant-api03-abcdefgh12345678 end", "abcdefgh12345678"),
        (
            "sk-proj-0123456789abcdefghij0123456789",
            "0123456789abcdefghij",
        ),
        ("stripe sk_live_51H0abcdefghijkl", "51H0abcdefghijkl"),
        (
            "ghp_0123456789abcdefghijABCDEFGHIJ0123",
            "0123456789abcdefghij",
        ),
        (
            "github_pat_11ABCDEFG0123456789_abcdefghijkl",
            "0123456789_abcdefghijkl",
        ),
        ("glpat-abcdefghij0123456789", "abcdefghij0123456789"),
        ("xoxb-123456789012-abcdefghijkl", "abcdefghijkl"),
        (
            "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXX",
            "XXXXXXXXXXXX",
        ),
        ("AKIAABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNOP"),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "wJalrXUtnFEMI",
        ),
        (
            "AIzaSyA0123456789abcdefghijklmnopqrstuv",
            "0123456789abcdefghij",
        ),
        (
            "npm_0123456789abcdefghijABCDEFGHIJ0123",
            "0123456789abcdefghij",
        ),
        (
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abcdefghijk",
            "eyJzdWIiOiIxMjM0NSJ9",
        ),
        ("pypi-AgEIcHlwaS5vcmcCJDAxMjM0", "AgEIcHlwaS5vcmcCJDAxMjM0"),
        (
            "SG.0123456789abcdefghij.ABCDEFGHIJ0123456789",
            "ABCDEFGHIJ0123456789",
        ),
        ("hf_0123456789abcdefghijABCDEFGHIJ", "0123456789abcdefghij"),
        (
            "1234567890:AAabcdefghijklmnopqrstuvwxyz_-01234",
            "abcdefghijklmnopqrstuvwxyz",
        ),
        (
            "https://api.telegram.org/bot1234567890:AAabcdefghijklmnopqrstuvwxyz_-01234/getMe",
            "abcdefghijklmnopqrstuvwxyz",
        ),
        (
            "dp.pt.0123456789abcdefghijABCDEFGHIJ0123456789abc",
            "0123456789abcdefghij",
        ),
        (
            "dp.st.dev_config.0123456789abcdefghijABCDEFGHIJ0123456789abc",
            "0123456789abcdefghij",
        ),
        (
            "hvs.CAESIJ0123456789abcdefghijABCDEFGHIJ",
            "0123456789abcdefghij",
        ),
        ("postgres://user:hunter22@db/x", "hunter22"),
        ("redis://:hunter22@cache:6379", "hunter22"),
        ("amqp://user:hun@ter22@queue/x", "ter22"),
        ("mysql --password=hunter2 -h db", "hunter2"),
        ("login?user=a&password=hunter2&x=y", "hunter2"),
        ("mysql --password hunter22 -h db", "hunter22"),
        ("gh auth --token abcdef0123", "abcdef0123"),
        ("curl -u admin:hunter22 https://x.example", "hunter22"),
        ("AccountKey=abcdefghij0123456789==", "abcdefghij0123456789"),
        (
            "git clone https://x-access-token:abc123@github.com/a/b",
            "abc123",
        ),
        ("Authorization: Bearer abcdef.123456", "abcdef.123456"),
        (
            "curl -H 'authorization: Basic dXNlcjpwYXNzd29yZA=='",
            "dXNlcjpwYXNzd29yZA",
        ),
        ("password = \"correct-horse\"", "correct-horse"),
        (
            "{\\\"api_key\\\": \\\"abcdef0123456789\\\"}",
            "abcdef0123456789",
        ),
        ("x-api-key: abcdef0123456789", "abcdef0123456789"),
        ("export MY_TOKEN=abcdef0123456789", "abcdef0123456789"),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nAAAAB3NzaC1yc2E\n-----END OPENSSH PRIVATE KEY-----\nx",
            "AAAAB3NzaC1yc2E",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\ncut off in the middle",
            "cut off",
        ),
    ];

    #[test]
    fn secrets_are_masked_and_what_is_around_them_stays() {
        for (text, secret) in SECRETS {
            let masked = mask(text);
            assert!(!masked.contains(secret), "{masked}");
            assert!(masked.contains(MASK), "{masked}");
            assert_eq!(mask(&masked), masked, "twice is once");
        }
        let around = [
            ("key sk-ant-api03-abcdefgh12345678 end", "key [masked] end"),
            (
                "postgres://user:hunter22@db/x",
                "postgres://user:[masked]@db/x",
            ),
            ("password = \"correct-horse\"", "password = \"[masked]\""),
        ];
        for (text, wanted) in around {
            assert_eq!(mask(text), wanted);
        }
    }

    #[test]
    fn an_escaped_character_before_a_secret_hides_nothing() {
        for escape in [
            r"x\n",
            r"x\t",
            r"x\r",
            r"x\\n",
            r"x\x0a",
            r"x\u000a",
            r"x\012",
            "x%0A",
            r"\e[0m",
            "\u{1b}[01;31m",
        ] {
            for (text, secret) in SECRETS {
                let masked = mask(&format!("{escape}{text}"));
                assert!(!masked.contains(secret), "{escape:?} {masked}");
                assert!(masked.starts_with(escape), "{escape:?} {masked}");
            }
        }
        for option in ["--token abcdef0123", "-u admin:hunter22"] {
            let masked = mask(&format!(r"curl x\n{option}"));
            assert!(masked.ends_with(MASK), "{masked}");
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "token: $TOKEN",
            "https://example.org/a:b@c",
            "cargo test --all",
            "sk-learn",
            "the password is asked for",
            "Tokens: 1234",
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "018f4a52-7c1d-7e2b-9f3a-1b2c3d4e5f60",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "docker run -u 1000:1000 x",
            "--token --verbose",
            "cargo run -- --secret $X",
            "src/token/password.rs:12:8",
            "a tokenizer: sentencepiece",
            "https://example.org:8080/path",
            "a long line of text that ends in the middle of\nnothing that is secret",
            "task-with-a-long-name-of-many-words",
            r"C:\new-task-with-a-long-name-of-many-words",
            r"printf 'one\ntwo\tthree\r\n'",
            r"s/\nsk-learn/\nnpm_config_cache/",
            "MSG.the_first_long_name.the_second_long_name",
            "2026-11-16T22:38:02.123456789Z",
            "1700000000:3f786850e387550fdab836ed7e6dc881de23001b",
            "20261116:a-name-of-many-words-that-is-longer-than-that",
            "127.0.0.1:54321",
            "dp.pt.x = dp.st.some_long_name_of_a_field",
            "hvs.items.map(of_some_long_name)",
            "width=100%25 of it",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    /// Wrapped at this width as a terminal does it, with a margin and a frame.
    fn wrapped(text: &str, width: usize, before: &str, after: &str) -> String {
        let letters: Vec<char> = text.chars().collect();
        let rows = letters.chunks(width).map(|row| {
            let row: String = row.iter().collect();
            format!("{before}{row}{after}")
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    /// The letters of a secret, without the line breaks.
    fn letters(text: &str) -> String {
        text.chars()
            .filter(|c| !c.is_whitespace() && *c != '│')
            .collect()
    }

    #[test]
    fn a_secret_that_is_wrapped_at_the_margin_is_masked() {
        for (text, secret) in SECRETS.iter().filter(|(text, _)| !text.contains('\n')) {
            for width in [40, 41, 47, 53, 60, 80] {
                for filler in [0, 11, 23, 31, 38] {
                    let text = format!("{} {text}", "w".repeat(filler));
                    for (before, after) in [("", ""), ("  ", ""), ("│ ", " │")] {
                        let text = wrapped(&text, width, before, after);
                        let masked = mask(&text);
                        let left = letters(&masked);
                        assert!(!left.contains(&letters(secret)), "{text:?}\n{masked:?}");
                        assert!(masked.contains(MASK), "{text:?}\n{masked:?}");
                        let half = &secret[secret.len() / 2..];
                        assert!(
                            half.len() < 8 || !left.contains(half),
                            "{text:?}\n{masked:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn rows_stay_where_they_are() {
        let rows: Vec<String> = wrapped(
            "export ANTHROPIC_API_KEY=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",
            40,
            "",
            "",
        )
        .lines()
        .map(str::to_owned)
        .chain([
            "$ ls".to_owned(),
            String::new(),
            "-----BEGIN PRIVATE KEY-----".to_owned(),
            "abc".to_owned(),
        ])
        .collect();
        let masked = mask_rows(&rows);
        assert_eq!(masked.len(), rows.len());
        assert_eq!(masked[0], "export ANTHROPIC_API_KEY=[masked]");
        assert_eq!(masked[1..], ["", "$ ls", "", "[masked]", ""]);
        assert_eq!(mask_rows(&[]), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_says_so_is_enough_in_json() {
        let value = json!({"password": "short", "apiKey": "x", "token": 7, "text": "token", "list": [{"Secret": "y"}]});
        assert_eq!(
            mask_json(&value),
            json!({"password": "[masked]", "apiKey": "[masked]", "token": 7, "text": "token", "list": [{"Secret": "[masked]"}]})
        );
    }

    /// All rows at once, without the search for signs.
    fn masked_whole(rows: &[String]) -> Vec<String> {
        let whole = rows.join("\n");
        let masked = replaced(&whole, |secret| {
            let breaks = secret.matches('\n').count();
            format!("{MASK}{}", "\n".repeat(breaks))
        });
        let rows = masked.split('\n').take(rows.len());
        rows.map(str::to_owned).collect()
    }

    /// A secret is found by its sign at every position in a long text, and with every wrapping.
    #[test]
    fn a_secret_is_found_in_a_long_text_as_in_a_short_one() {
        let filler = |n: usize| format!("row {n} of a long text that has nothing to hide in it");
        for (text, _) in SECRETS {
            for width in [30, 37, 44] {
                let mut rows: Vec<String> = (0..40).map(filler).collect();
                rows.extend(
                    wrapped(text, width, "│ ", " │")
                        .split('\n')
                        .map(str::to_owned),
                );
                rows.extend((40..60).map(filler));
                rows.extend(text.split('\n').map(str::to_owned));
                rows.extend((60..90).map(filler));
                let masked = mask_rows(&rows);
                assert_eq!(masked, masked_whole(&rows), "{text}");
                assert!(masked.concat().contains(MASK), "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_sign_is_in_front_of_every_secret(rows in proptest::collection::vec(prop_oneof![
            "[ -~│]{0,60}",
            "(sk-|ghp_|token[=:] ?|bearer |https?://a:|eyJ|--user a:|12345678:|password=| -u )?[A-Za-z0-9_.@/-]{0,60}",
        ], 0..50)) {
            prop_assert_eq!(mask_rows(&rows), masked_whole(&rows));
        }

        #[test]
        fn no_text_breaks_it_and_rows_are_kept(rows in proptest::collection::vec("[ -~│\u{e4}\u{4e2d}]{0,60}", 0..8)) {
            let masked = mask_rows(&rows);
            prop_assert_eq!(masked.len(), rows.len());
            let whole = rows.join("\n");
            prop_assert_eq!(mask(&mask(&whole)), mask(&whole));
        }
    }
}
