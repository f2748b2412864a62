//! Masks what should not stand in a log: API keys, tokens, passwords in addresses, private keys. Pure.
//!
//! Text is masked whole, after wrapped rows and split reads were joined: half a key is not recognised.

use regex::{Captures, Regex};
use std::sync::LazyLock;

struct Kind {
    pattern: Regex,
    /// Whether group 1 stays in front of the mask.
    keeps_head: bool,
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let whole = |pattern: &str| kind(pattern, false);
    let headed = |pattern: &str| kind(pattern, true);
    [
        whole(r"sk-ant-[A-Za-z0-9_-]{8,}"),
        whole(r"\bsk-[A-Za-z0-9_-]{20,}"),
        whole(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
        whole(r"\bglpat-[A-Za-z0-9_-]{16,}"),
        whole(r"\bxox[abpors]-[A-Za-z0-9-]{10,}"),
        whole(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        whole(r"\bAIza[A-Za-z0-9_-]{30,}"),
        whole(r"\bnpm_[A-Za-z0-9]{30,}"),
        whole(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"),
        whole(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"),
        headed(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@]+:)[^\s/@]+@"),
        headed(r"(?i)(\bauthorization:\s*(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{8,}"),
        headed(r#"(?i)(\b(?:api[_-]?key|secret|token|passwd|password)["']?\s*[=:]\s*["']?)[^\s"'$<>{}]{8,}"#),
    ]
    .into_iter()
    .flatten()
    .collect()
});

fn kind(pattern: &str, keeps_head: bool) -> Option<Kind> {
    Regex::new(pattern).ok().map(|pattern| Kind {
        pattern,
        keeps_head,
    })
}

/// The text with every secret in it replaced by a mark.
pub fn mask(text: &str) -> String {
    let mut masked = text.to_owned();
    for kind in KINDS.iter() {
        if kind.pattern.is_match(&masked) {
            masked = kind
                .pattern
                .replace_all(&masked, |found: &Captures| replacement(kind, found))
                .into_owned();
        }
    }
    masked
}

fn replacement(kind: &Kind, found: &Captures) -> String {
    let head = if kind.keeps_head {
        found.get(1).map_or("", |head| head.as_str())
    } else {
        ""
    };
    let tail = if found[0].ends_with('@') { "@" } else { "" };
    format!("{head}[masked]{tail}")
}

/// A JSON value with the secrets in its strings masked.
pub fn mask_json(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => Value::String(mask(text)),
        Value::Array(items) => Value::Array(items.iter().map(mask_json).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, value)| (key.clone(), mask_json(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_compiles() {
        assert_eq!(KINDS.len(), 13);
    }

    #[test]
    fn secrets_are_masked_and_the_rest_stays() {
        let cases = [
            ("key sk-ant-api03-abcdefgh12345678 end", "key [masked] end"),
            ("ghp_0123456789abcdefghijABCDEFGHIJ0123", "[masked]"),
            (
                "postgres://user:hunter22@db/x",
                "postgres://user:[masked]@db/x",
            ),
            (
                "Authorization: Bearer abcdef.123456",
                "Authorization: Bearer [masked]",
            ),
            ("AKIAABCDEFGHIJKLMNOP", "[masked]"),
            ("password = \"correct-horse\"", "password = \"[masked]\""),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx",
                "[masked]\nx",
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(mask(text), wanted);
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
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
