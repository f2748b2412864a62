//! What a container gets from the host, as `tables/containers.toml` lists it.

use super::programs::{ByName, by_name, read};
use super::{Harm, at_words, base_name, has_short, has_word};
use crate::core::policy::shell::Word;
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Program {
    names: String,
    marks: String,
    starts: String,
    opens: String,
    hosts: String,
    reads: String,
    mounts: String,
}

const FILE: &str = include_str!("../tables/containers.toml");

static TABLE: LazyLock<ByName<Program>> =
    LazyLock::new(|| by_name(read(FILE).unwrap_or_default(), |row| &row.names));

/// A host path that a container gets.
#[derive(Debug, PartialEq, Eq)]
pub struct Given<'w> {
    /// The index of the word that names it.
    pub at: usize,
    pub path: &'w str,
    /// It is mounted read-only.
    pub only_read: bool,
}

fn row(words: &[Word]) -> Option<&'static Program> {
    let name = words.first()?;
    let row = *TABLE.get(base_name(&name.text))?;
    let starts = |word: &Word| has_word(&row.marks, &word.text);
    words.iter().skip(1).any(starts).then_some(row)
}

/// Options of docker that write files or hand out secrets. docker takes no abbreviations: `--build` is not `--build-context`.
pub fn output_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str =
        "--output --secret --ssh --build-context --iidfile --metadata-file --allow --cidfile";
    let harmful = |word: &str| {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        has_short(word, "o", "") || has_word(LONG, name)
    };
    let program = words.first().map_or("", |name| name.text.as_str());
    at_words(words, harmful)
        .map(|(at, word)| {
            let why = format!("`{word}` lets {program} run another program or write a file");
            Harm::at(at, why)
        })
        .collect()
}

/// Options that open the host to a container.
pub fn harms(words: &[Word]) -> Vec<Harm> {
    let Some(row) = row(words) else {
        return Vec::new();
    };
    let starts = words.iter().any(|word| has_word(&row.starts, &word.text));
    let takes_input =
        |word: &str| starts && (has_short(word, "i", "veupwhml") || word == "--interactive");
    let found = at_words(words, |_| true).filter(|(at, word)| {
        let (name, value) = option(words, *at, word);
        let is_host =
            || value == "host" || value.starts_with("container:") || value.starts_with("ns:");
        has_word(&row.opens, name) || has_word(&row.hosts, name) && is_host() || takes_input(word)
    });
    let why = |word: &str| format!("`{word}` opens the machine or the input to the container");
    found.map(|(at, word)| Harm::at(at, why(word))).collect()
}

/// An option and its value, which is in the same word or in the next.
fn option<'w>(words: &'w [Word], at: usize, word: &'w str) -> (&'w str, &'w str) {
    match word.split_once('=') {
        Some((name, value)) if name.starts_with('-') => (name, value),
        _ => (
            word,
            words.get(at + 1).map_or("", |next| next.text.as_str()),
        ),
    }
}

/// The host paths that a container gets, directly or by their content.
pub fn given(words: &[Word]) -> Vec<Given<'_>> {
    let Some(row) = row(words) else {
        return Vec::new();
    };
    let found = at_words(words, |word| word.starts_with('-'));
    found
        .flat_map(|(at, word)| row.given(words, at, word))
        .collect()
}

impl Program {
    fn given<'w>(&self, words: &'w [Word], at: usize, word: &'w str) -> Option<Given<'w>> {
        let (name, value) = option(words, at, word);
        if has_word(&self.reads, name) {
            return Some(Given {
                at,
                path: value,
                only_read: true,
            });
        }
        // `-v/a:/b`, also in a cluster such as `-itv /a:/b`
        let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let in_cluster = cluster
            .and_then(|rest| rest.split_once('v'))
            .map(|(_, rest)| rest);
        let value = match in_cluster {
            _ if has_word(&self.mounts, name) => value,
            Some("") => words.get(at + 1).map_or("", |next| next.text.as_str()),
            Some(attached) => attached,
            None => return None,
        };
        mounted(at, value)
    }
}

/// `path:inside`, `path:inside:ro`, `type=bind,source=path,target=inside`. A name without a slash is a volume.
fn mounted(at: usize, value: &str) -> Option<Given<'_>> {
    let mut fields = value.split(',');
    let of_field = fields.find_map(|field| {
        let (key, value) = field.trim_matches('"').split_once('=')?;
        let is_source = ["source", "src"]
            .iter()
            .any(|name| key.eq_ignore_ascii_case(name));
        is_source.then_some(value)
    });
    let (path, options) = match of_field {
        Some(path) => (path, value),
        None => value.split_once(':')?,
    };
    let is_path = path.starts_with(['/', '.', '~', '$']) || path.contains('/');
    let read_only =
        |option: &str| matches!(option, "ro" | "readonly" | "readonly=true" | "ro=true");
    is_path.then_some(Given {
        at,
        path,
        only_read: options.split([':', ',']).any(read_only),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<Word> {
        let word = |text: &str| Word {
            text: text.to_owned(),
            ..Word::default()
        };
        command.split(' ').map(word).collect()
    }

    #[test]
    fn the_file_can_be_read() {
        let rows = read::<Program>(FILE);
        assert!(!rows.expect("a good file").is_empty());
    }

    #[test]
    fn what_a_container_gets_is_found() {
        for (command, path, only_read) in [
            ("docker run -v /:/h x", "/", false),
            ("docker run -v/:/h x", "/", false),
            ("docker run --volume=/a:/h:ro x", "/a", true),
            ("docker run --volume ./a:/h x", "./a", false),
            ("docker run -itv /a:/h x", "/a", false),
            (
                "docker run --mount type=bind,source=/a,target=/b x",
                "/a",
                false,
            ),
            (
                "docker run --mount=type=bind,src=a/b,dst=/b,readonly x",
                "a/b",
                true,
            ),
            ("docker run --env-file .env x", ".env", true),
            ("docker compose run -v ..:/h x", "..", false),
        ] {
            let words = words(command);
            let found = given(&words);
            let found: Vec<_> = found.iter().map(|g| (g.path, g.only_read)).collect();
            assert_eq!(found, [(path, only_read)], "{command}");
        }
        for command in [
            "docker run -v data:/data x",
            "docker run -v /data x",
            "docker ps -v /a:/b",
        ] {
            assert_eq!(given(&words(command)), [], "{command}");
        }
        assert_eq!(harms(&words("docker run --privileged x")).len(), 1);
        assert_eq!(harms(&words("docker run --pid host x")).len(), 1);
        assert_eq!(harms(&words("docker run --network=host x")).len(), 1);
        assert!(harms(&words("docker run --network mine x")).is_empty());
    }
}
