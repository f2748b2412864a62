//! Programs whose arguments are small programs of their own.

use super::{Harm, at_words, has_short, has_word, is_one_of_long};
use crate::policy::shell::Word;

/// What `find` runs, removes or writes.
pub fn find_harms(words: &[Word]) -> Vec<Harm> {
    const HARMFUL: &str =
        "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from";
    at_words(words, |word| has_word(HARMFUL, word))
        .map(|(at, word)| {
            Harm::at(
                at,
                format!("`{word}` lets find run programs, remove or write files"),
            )
        })
        .collect()
}

/// `npx tool …`: the tool is what a rule has to name.
pub fn runner_harms(words: &[Word]) -> Vec<Harm> {
    let name = words.first().map_or("", |name| name.text.as_str());
    match words.get(1).map(|first| first.text.as_str()) {
        Some(first) if first.starts_with('-') => {
            vec![Harm::whole(format!(
                "{name} runs the program that its options name"
            ))]
        }
        Some(first) => vec![Harm::at(1, format!("{name} fetches and runs {first}"))],
        None => Vec::new(),
    }
}

/// Unpacking writes files whose names the archive chooses; listing, testing and printing do not.
pub fn unzip_harms(words: &[Word]) -> Vec<Harm> {
    let only_shows = |word: &Word| has_short(&word.text, "lvtpzZ", "");
    match words.iter().skip(1).any(only_shows)
        && !words.iter().any(|word| has_short(&word.text, "d", ""))
    {
        true => Vec::new(),
        false => vec![Harm::whole(
            "unzip writes files whose names others choose".to_owned(),
        )],
    }
}

/// Options and variables that make `make` run something else than the project's own rules.
pub fn make_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--file --makefile --eval --directory --include-dir --environment-overrides";
    let harmful = |word: &str| {
        word.contains('=') || has_short(word, "fCIEe", "jlO") || is_one_of_long(word, LONG)
    };
    at_words(words, harmful)
        .map(|(at, word)| Harm::at(at, format!("`{word}` changes what make runs")))
        .collect()
}

/// Unpacking writes files that can't be told beforehand, and several options run programs.
pub fn tar_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--checkpoint-action --to-command --use-compress-program --info-script \
        --new-volume-script --rsh-command --rmt-command --extract --get --absolute-names \
        --remove-files --index-file --one-top-level --files-from";
    // The first word may be a cluster without a dash.
    let old_style = words
        .get(1)
        .map(|word| word.text.as_str())
        .filter(|word| !word.starts_with('-'));
    let harmful = |word: &str| {
        let in_old_style = old_style == Some(word) && word.contains(['x', 'I', 'F']);
        in_old_style || has_short(word, "xIFPT", "fCbgHKLNVX") || is_one_of_long(word, LONG)
    };
    at_words(words, harmful)
        .map(|(at, word)| Harm::at(at, format!("`{word}` lets tar run programs or write files")))
        .collect()
}

/// `awk` programs that start processes, or read and write files of their own choice.
pub fn awk_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--file --exec --include --load --profile --dump-variables --debug \
        --pretty-print --source";
    const CODE: &str = "system getline | > @ close fflush";
    let harmful = |word: &str| {
        has_short(word, "fiElpdDoe", "vF")
            || is_one_of_long(word, LONG)
            || CODE.split_whitespace().any(|text| word.contains(text))
    };
    at_words(words, harmful)
        .map(|(at, word)| {
            Harm::at(
                at,
                format!("`{word}` may let awk run programs, read or write files"),
            )
        })
        .collect()
}

/// `sed` scripts that do more than print and replace.
pub fn sed_harms(words: &[Word]) -> Vec<Harm> {
    let mut harms = Vec::new();
    let mut script_given = false;
    let mut script_follows = false;
    for (at, word) in at_words(words, |_| true) {
        let role = if script_follows {
            SedWord::Script(word)
        } else {
            SedWord::new(word, script_given)
        };
        script_follows = role == SedWord::ScriptFollows;
        script_given |= matches!(role, SedWord::Script(_) | SedWord::ScriptFollows);
        harms.extend(role.harm().map(|why| Harm::at(at, why)));
    }
    harms
}

/// What a word of a `sed` command is.
#[derive(PartialEq)]
enum SedWord<'a> {
    Script(&'a str),
    ScriptFollows,
    Option(&'a str),
    File,
}

impl<'a> SedWord<'a> {
    fn new(word: &'a str, script_given: bool) -> SedWord<'a> {
        let attached = word
            .strip_prefix("--expression=")
            .or_else(|| word.strip_prefix("-e"));
        match attached {
            Some("") => SedWord::ScriptFollows,
            Some(script) => SedWord::Script(script),
            None if has_word("-ne -re -Ee -nre -nEe --expression", word) => SedWord::ScriptFollows,
            None if word.starts_with('-') && word.len() > 1 => SedWord::Option(word),
            None if script_given => SedWord::File,
            None => SedWord::Script(word),
        }
    }

    fn harm(&self) -> Option<String> {
        match self {
            SedWord::Script(script) if !is_harmless_sed(script) => Some(format!(
                "the script `{script}` may let sed run programs or write files"
            )),
            SedWord::Option(option) if !is_harmless_sed_option(option) => {
                Some(format!("`{option}` lets sed change files or run a script"))
            }
            _ => None,
        }
    }
}

fn is_harmless_sed_option(word: &str) -> bool {
    let cluster = word
        .strip_prefix('-')
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| "nErsuz".contains(c)));
    let long = "--quiet --silent --regexp-extended --separate --null-data --unbuffered --posix \
        --sandbox --debug";
    cluster || has_word(long, word)
}

/// Whether a script consists only of addresses and commands that print, delete, replace or quit.
fn is_harmless_sed(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
        if rest.is_empty() {
            return true;
        }
        let Some(after) = skip_addresses(rest).and_then(skip_command) else {
            return false;
        };
        rest = after.trim_start_matches([' ', '\t']);
        if !(rest.is_empty() || rest.starts_with([';', '\n', '{', '}'])) {
            return false;
        }
    }
}

fn skip_addresses(text: &str) -> Option<&str> {
    let mut rest = skip_address(text)?;
    if let Some(second) = rest.strip_prefix(',') {
        rest = skip_address(second.trim_start())?;
    }
    Some(rest.trim_start().trim_start_matches('!').trim_start())
}

fn skip_address(text: &str) -> Option<&str> {
    if let Some(regex) = text.strip_prefix('/') {
        return Some(skip_until(regex, '/')?.trim_start_matches(['I', 'M']));
    }
    Some(text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | '~' | '+')))
}

fn skip_command(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    match chars.next()? {
        'p' | 'P' | 'd' | 'D' | 'q' | 'Q' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' => {
            Some(chars.as_str())
        }
        '{' | '}' => Some(text),
        's' => Some(
            skip_replacement(chars.as_str())?
                .trim_start_matches(|c: char| c.is_ascii_digit() || "gpiI".contains(c)),
        ),
        'y' => skip_replacement(chars.as_str()),
        _ => None,
    }
}

/// `/from/to/` with whatever separates it.
fn skip_replacement(text: &str) -> Option<&str> {
    let separator = text
        .chars()
        .next()
        .filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
    let after_from = skip_until(&text[separator.len_utf8()..], separator)?;
    skip_until(after_from, separator)
}

/// Behind the next `end` that is not escaped. A bracket expression may hide one, so those are not followed.
fn skip_until(text: &str, end: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == end => return Some(&text[at + c.len_utf8()..]),
            '[' if text[at..]
                .find(']')
                .is_some_and(|close| text[at..at + close].contains(end)) =>
            {
                return None;
            }
            '\n' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_that_prints_and_replaces_is_harmless() {
        for script in [
            "s/a/b/",
            "s/a/b/gI",
            "1,5p",
            "$d",
            "/x/,/y/p",
            "/x/!d",
            "s|a|b|2;p",
            "2q",
            "1~2p",
            "/a/{s/b/c/;p}",
            "y/abc/xyz/",
            "",
        ] {
            assert!(is_harmless_sed(script), "{script}");
        }
    }

    #[test]
    fn sed_that_runs_or_writes_is_not() {
        for script in [
            "s/a/id/e",
            "1e id",
            "w /var/x",
            "s/a/b/w f",
            "e",
            "r /etc/passwd",
            "W f",
            "R f",
            "s/a/b/;e id",
            "p;w f",
            "s/[/]/e/e",
            "/x/w f",
            "1!e id",
            "s/a/b/gw f",
            "a\\\ntext",
            "F",
            "v",
            "l",
            "s/a/b/me",
        ] {
            assert!(!is_harmless_sed(script), "{script}");
        }
    }
}
