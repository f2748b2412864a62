//! node and the tools around it, which have their own ways to write an option.

use super::{Harm, at_words, has_short, has_word, is_one_of_long};
use crate::core::policy::shell::Word;
use std::borrow::Cow;

/// Options of node that run code, or listen for somebody who does; it also takes `_` for `-`, and nothing
/// shortened.
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

/// Options of package managers that run a program; npm takes one dash for two.
pub fn package_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--prefix --dir --cwd --script-shell --node-options --userconfig --globalconfig --shell --call \
        --use-yarnrc --git --editor --viewer --browser --node-gyp --init-module --init.module --onload-script \
        --pack-destination";
    let harmful = |word: &str| {
        let is_long = |word: &str| is_one_of_long(word, LONG);
        let with_one_dash = || {
            word.len() > 2
                && word.starts_with('-')
                && !word.starts_with("--")
                && is_long(&format!("-{word}"))
        };
        has_short(word, "CcfF", "") || is_long(word) || with_one_dash()
    };
    harms(
        words,
        harmful,
        "may run another program or write somewhere else",
    )
}

/// Options of jest that name code; each can be written with capitals or with dashes.
pub fn jest_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "globalsetup globalteardown setupfiles setupfilesafterenv testrunner runner transform \
        testenvironment resolver outputfile config reporters testresultsprocessor filter preset rootdir roots \
        projects modulenamemapper modulepaths moduledirectories snapshotserializers snapshotresolver \
        testsequencer watchplugins dependencyextractor haste prettierpath";
    /// The environments that jest itself brings.
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

/// npm takes a capital in the name of a subcommand for a dash and the letter.
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
