//! node and its tools, which have their own syntax for options.

use super::subcommands::{candidates, may_abbreviate};
use super::{Harm, at_words, has_short, has_word, is_one_of_long, languages};
use crate::core::policy::shell::Word;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Options of node that run code, or open a port for a debugger. node also accepts `_` for `-`, and no abbreviations.
pub fn node_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--eval --print --require --import --loader --experimental-loader --env-file \
        --env-file-if-exists --experimental-config-file --experimental-default-config-file --openssl-config \
        --openssl-shared-config --conditions --inspect --inspect-brk --inspect-wait --inspect-port --debug-port \
        --interactive --build-snapshot --build-snapshot-config --snapshot-blob --experimental-sea-config \
        --build-sea --test-reporter --test-reporter-destination --test-global-setup";
    let harmful = |word: &str| {
        let name = name_of(word).replace('_', "-");
        has_short(word, "eprCi", "") || has_word(LONG, &name) || word == "inspect"
    };
    harms(words, harmful, "lets node run code from elsewhere")
}

/// Options of package managers that run a program; npm accepts one dash for two.
pub fn package_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--prefix --dir --cwd --script-shell --node-options --userconfig --globalconfig --shell --call \
        --use-yarnrc --git --editor --viewer --browser --node-gyp --init-module --init.module --onload-script \
        --pack-destination --registry --location --config.";
    let harmful = |word: &str| {
        let is_long = |word: &str| is_one_of_long(word, LONG);
        let with_one_dash = || {
            word.len() > 2
                && word.starts_with('-')
                && !word.starts_with("--")
                && is_long(&format!("-{word}"))
        };
        has_short(word, "CcfFg", "")
            || is_long(word)
            || with_one_dash()
            || word.starts_with("--config.")
    };
    harms(
        words,
        harmful,
        "may run another program or write somewhere else",
    )
}

/// `npm pkg` changes the scripts that will be run; `npm pkg get` only shows package.json.
pub fn manifest_harms(words: &[Word]) -> Vec<Harm> {
    let shows = |at: usize| words.get(at + 1).is_some_and(|word| word.text == "get");
    candidates(words)
        .into_iter()
        .filter(|(at, text)| may_abbreviate(text, "pkg", "p") && !shows(*at))
        .map(|(at, _)| Harm::at(at, "`npm pkg` changes what will be run".to_owned()))
        .collect()
}

/// What pnpm does with its first word.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Pnpm {
    own: String,
    scripts: String,
    tools: String,
}

static PNPM: LazyLock<Pnpm> = LazyLock::new(|| read().unwrap_or_default());

/// A test proves that the file can be parsed.
fn read() -> Result<Pnpm, toml::de::Error> {
    toml::from_str(include_str!("../tables/pnpm.toml"))
}

/// The argument that pnpm may run as a program: it looks for one if it has no subcommand and the project no script of that name.
pub fn run_by_pnpm(arguments: &[&str]) -> Option<usize> {
    let mut is_sure = true;
    for (at, word) in arguments.iter().enumerate() {
        if word.starts_with('-') {
            is_sure &= word.contains('=') || has_word("-r -w -s --recursive --silent", word);
            continue;
        }
        if !has_word(&PNPM.own, word) {
            return Some(at);
        }
        if is_sure {
            return None;
        }
        is_sure = true;
    }
    None
}

/// A word that is neither a subcommand of pnpm nor the usual name of a script may be any program.
pub fn pnpm_harms(words: &[Word]) -> Vec<Harm> {
    let mut harms = Vec::new();
    for (at, word) in candidates(words) {
        let is_script = has_word(&PNPM.scripts, word) || word.contains(':') && !word.contains('/');
        if has_word(&PNPM.own, word) || is_script {
            continue;
        }
        match has_word(&PNPM.tools, word) {
            true => harms.extend(languages::harms_within(&words[at..], at)),
            false => harms.push(Harm::at(at, format!("pnpm may run the program {word}"))),
        }
    }
    // The value of an option may be taken for a program: then the next word is a subcommand.
    let is_known = |at: usize| {
        let next = words.get(at + 1).map_or("", |word| word.text.as_str());
        let known = [&PNPM.own, &PNPM.scripts, &PNPM.tools];
        words[at - 1].text.starts_with('-') && known.iter().any(|list| has_word(list, next))
    };
    harms.retain(|harm| harm.at >= words.len() || !is_known(harm.at));
    harms
}

/// A package from an address, a repository or a directory instead of the registry.
pub fn source_harms(words: &[Word]) -> Vec<Harm> {
    const INSTALL: &str = "install i in ins inst insta instal isnt isnta isntal isntall add up update upgrade link ln";
    let installs = candidates(words)
        .iter()
        .any(|(_, word)| has_word(INSTALL, word));
    let harmful = |word: &str| {
        let version = word
            .get(1..)
            .and_then(|rest| rest.split_once('@'))
            .map_or("", |(_, of)| of);
        let is_address = |text: &str| {
            text.contains("://")
                || ["git+", "github:", "gitlab:", "bitbucket:", "gist:"]
                    .iter()
                    .any(|s| text.starts_with(s))
        };
        // `owner/repository`
        let is_repository = || {
            word.contains('/')
                && !word.starts_with(['-', '@', '.', '/', '~'])
                && !word.contains('=')
        };
        installs && (is_address(word) || is_address(version) || is_repository())
    };
    harms(words, harmful, "gets code from elsewhere")
}

/// Options of vitest whose value may be a module: a plain name is one of its own, or an installed one.
pub fn vitest_harms(words: &[Word]) -> Vec<Harm> {
    const NAMED: &str = "reporter reporters environment coverage.provider coverage.reporter pool";
    const BROWSERS: &str = "chromium firefox webkit chrome edge safari true false";
    const LOADS: &str =
        "coverage.customprovidermodule snapshotenvironment globalsetup setupfiles browser.provider";
    let is_plain = |value: &str| {
        value != "custom"
            && value
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let found = (1..words.len()).filter(|at| {
        let text = words[*at].text.as_str();
        let Some(option) = text.strip_prefix("--") else {
            return false;
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, value),
            None => (
                option,
                words.get(at + 1).map_or("", |word| word.text.as_str()),
            ),
        };
        let name = name.replace('-', "").to_ascii_lowercase();
        has_word(LOADS, &name)
            || name.ends_with("execargv")
            || has_word(NAMED, &name) && !is_plain(value.trim_start_matches("--"))
            || has_word("browser browser.name", &name)
                && option.contains('=')
                && !has_word(BROWSERS, value)
    });
    let harm = |at: usize| {
        Harm::at(
            at,
            format!("`{}` lets vitest run other code", words[at].text),
        )
    };
    found.map(harm).collect()
}

/// Options of jest that name code; each can be written in camel case or with dashes.
pub fn jest_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "globalsetup globalteardown setupfiles setupfilesafterenv testrunner runner transform \
        testenvironment resolver outputfile config reporters testresultsprocessor filter preset rootdir roots \
        projects modulenamemapper modulepaths moduledirectories snapshotserializers snapshotresolver \
        testsequencer watchplugins dependencyextractor haste prettierpath";
    /// The environments that are part of jest.
    const ENVIRONMENTS: &str = "jsdom node";
    let is_known_environment = |at: usize| {
        let (name, value) = match words[at].text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (
                words[at].text.as_str(),
                words.get(at + 1).map(|word| word.text.as_str()),
            ),
        };
        name == "--env" && value.is_some_and(|value| has_word(ENVIRONMENTS, value))
    };
    let harmful = |word: &str| {
        let name = name_of(word).replace('-', "").to_ascii_lowercase();
        let is_long = word.starts_with("--") && (has_word(LONG, &name) || name == "env");
        is_long || has_short(word, "c", "tw")
    };
    let found = harms(words, harmful, "lets jest run other code or write a file");
    found
        .into_iter()
        .filter(|harm| !is_known_environment(harm.at))
        .collect()
}

fn harms(words: &[Word], is_harmful: impl Fn(&str) -> bool, why: &str) -> Vec<Harm> {
    at_words(words, is_harmful)
        .map(|(at, word)| Harm::at(at, format!("`{word}` {why}")))
        .collect()
}

/// An option without its value.
fn name_of(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// npm reads a capital letter in a subcommand as a dash and the letter.
pub fn in_npms_spelling(word: &str) -> Cow<'_, str> {
    if !word.contains(|c: char| c.is_ascii_uppercase()) {
        return Cow::Borrowed(word);
    }
    let spelled = word.chars().flat_map(|c| {
        let dash = c.is_ascii_uppercase().then_some('-');
        dash.into_iter().chain([c.to_ascii_lowercase()])
    });
    Cow::Owned(spelled.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_programs_are_found() {
        let file = read().expect("a good file");
        assert!(has_word(&file.own, "install") && has_word(&file.scripts, "build"));
        let run = |text: &str| run_by_pnpm(&text.split(' ').collect::<Vec<_>>());
        assert_eq!(run("curl x"), Some(0));
        assert_eq!(run("--filter web curl x"), Some(1));
        assert_eq!(run("install curl"), None);
        assert_eq!(run("-r test curl"), None);
    }
}
