//! Spellings of the same options against a real `rm`: if it removes a directory and does not mind that another file is missing,
//! it was told `-r` and `-f`, and a rule that denies `rm -rf` must have matched.

use super::{Random, seed};
use missiond::core::policy::{Ask, Decision, LexicalPaths, Policy, decide};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The letters of `rm`, and its long options.
const LETTERS: &[&str] = &["r", "R", "f", "v", "d", "I"];
const LONG: &[&str] = &[
    "--recursive",
    "--force",
    "--verbose",
    "--dir",
    "--one-file-system",
];

fn option(random: &mut Random) -> String {
    if random.one_in(3) {
        let long = random.of(LONG);
        return long[..3 + random.below(long.len() - 2)].to_owned();
    }
    let letters = (0..=random.below(4)).map(|_| random.of(LETTERS));
    letters.fold("-".to_owned(), |cluster, letter| cluster + letter)
}

/// Options and the two names, in any order.
fn words(random: &mut Random) -> Vec<String> {
    let mut words: Vec<String> = (0..=random.below(3)).map(|_| option(random)).collect();
    for name in ["directory", "missing"] {
        let at = random.below(words.len() + 1);
        words.insert(at, name.to_owned());
    }
    words
}

#[test]
fn no_spelling_of_denied_options_is_allowed() {
    let rules = "allow = [\"Bash(rm *)\"]\ndeny = [\"Bash(rm -rf *)\"]";
    let policy = Policy::parse(rules, Path::new("fuzz.toml"), Path::new("/proj"));
    let policy = policy.expect("a good policy");
    let seed = seed();
    let mut random = Random(seed);
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("directory");
    let (mut denied, mut allowed) = (0, 0);
    for _ in 0..600 {
        fs::create_dir_all(directory.join("in")).expect("a directory");
        let words = words(&mut random);
        let text = format!("rm {}", words.join(" "));
        let done = Command::new("rm")
            .args(&words)
            .env_clear()
            .current_dir(place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("rm ran");
        let is_meant = done.success() && !directory.exists();
        let decision = decide(&policy, &Ask::bash(&text, "/proj"), &LexicalPaths).decision;
        denied += usize::from(is_meant);
        allowed += usize::from(decision == Decision::Allow);
        assert!(
            !is_meant || decision == Decision::Deny,
            "{text}: {decision:?} (seed {seed})"
        );
    }
    assert!(
        denied > 50 && allowed > 50,
        "{denied} denied, {allowed} allowed"
    );
}
