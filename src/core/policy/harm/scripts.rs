//! Programs whose arguments are small programs of their own.

use super::{Harm, at_words, has_short, has_word, is_one_of_long, languages};
use crate::core::policy::shell::Word;

/// What `find` runs, removes or writes.
pub fn find_harms(words: &[Word]) -> Vec<Harm> {
    const HARMFUL: &str =
        "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from";
    let is_number = |word: &str| word[1..].bytes().all(|byte| byte.is_ascii_digit());
    let is_known = |word: &str| {
        let is_option = word.starts_with('-') && word.len() > 1 && !is_number(word);
        !is_option || has_word(FIND_TESTS, word) || word.starts_with("-newer")
    };
    let mut harms: Vec<Harm> = at_words(words, |word| has_word(HARMFUL, word))
        .map(|(at, word)| {
            Harm::at(
                at,
                format!("`{word}` lets find run programs, remove or write files"),
            )
        })
        .collect();
    // The words after -exec belong to another program.
    let end = words.iter().position(|word| has_word(HARMFUL, &word.text));
    let own = &words[..end.unwrap_or(words.len())];
    harms.extend(at_words(own, |word| !is_known(word)).map(|(at, word)| {
        Harm::at(
            at,
            format!("`{word}` is not one of the tests and print actions that every find has"),
        )
    }));
    harms
}

/// The options, tests and actions that read and print in every implementation of find. Others, such as `-rm` of bfs, may do
/// anything.
const FIND_TESTS: &str = "-H -L -P -D -O0 -O1 -O2 -O3 -a -and -o -or -not -name -iname -path -ipath -wholename -iwholename -regex \
    -iregex -regextype -type -xtype -maxdepth -mindepth -depth -d -size -empty -mtime -mmin -ctime -cmin -atime -amin -used -perm \
    -user -group -uid -gid -nouser -nogroup -links -inum -samefile -lname -ilname -fstype -readable -writable -executable -prune \
    -print -print0 -printf -ls -quit -true -false -daystart -mount -xdev -follow -noleaf -warn -nowarn -ignore_readdir_race \
    -noignore_readdir_race -context -E -X -x -s -f --";

/// `npx tool …`: a rule has to name the tool.
pub fn runner_harms(words: &[Word]) -> Vec<Harm> {
    let name = words.first().map_or("", |name| name.text.as_str());
    match words.get(1).map(|first| first.text.as_str()) {
        Some(first) if first.starts_with('-') => {
            vec![Harm::whole(format!(
                "{name} runs the program that its options name"
            ))]
        }
        Some(first) => {
            let mut harms = languages::harms_within(&words[1..], 1);
            harms.push(Harm::at(1, format!("{name} fetches and runs {first}")));
            harms
        }
        None => Vec::new(),
    }
}

/// `ps auxe` shows the environment of every process; `-e` means something else.
pub fn ps_harms(words: &[Word]) -> Vec<Harm> {
    let first = words.get(1).map_or("", |word| word.text.as_str());
    let is_cluster = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_alphabetic());
    match is_cluster && first.contains('e') {
        true => vec![Harm::at(
            1,
            format!("`ps {first}` shows the environment of processes"),
        )],
        false => Vec::new(),
    }
}

/// `gh api` reads by default; other methods can do everything that the account can.
pub fn gh_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--method --field --raw-field --input";
    let first = words.get(1).map_or("", |word| word.text.as_str());
    let shows_token = |word: &str| {
        let of_auth = words.iter().any(|word| word.text == "auth");
        of_auth && (has_short(word, "t", "") || is_one_of_long(word, "--show-token"))
    };
    if let Some((at, word)) = at_words(words, shows_token).next() {
        return vec![Harm::at(
            at,
            format!("`{word}` lets gh show the token of the account"),
        )];
    }
    let is_api =
        first == "api" || first.starts_with('-') && words.iter().any(|word| word.text == "api");
    at_words(words, |word| {
        is_api && (has_short(word, "XfF", "HqpRt") || is_one_of_long(word, LONG))
    })
    .map(|(at, word)| Harm::at(at, format!("`{word}` lets gh api change or send something")))
    .collect()
}

/// Unpacking writes files whose names come from the archive; listing, testing and printing do not.
pub fn unzip_harms(words: &[Word]) -> Vec<Harm> {
    let only_shows = |word: &Word| has_short(&word.text, "lvtpzZ", "");
    match words.iter().skip(1).any(only_shows)
        && !words.iter().any(|word| has_short(&word.text, "d", ""))
    {
        true => Vec::new(),
        false => vec![Harm::whole(
            "unzip writes files with names from the archive".to_owned(),
        )],
    }
}

/// Flags of a compiler that choose warnings, optimisation, debug information and definitions: `-O0 -g -Wall -DX=1`.
fn are_plain_flags(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_=+-".contains(&byte);
    value.split(' ').all(|flag| {
        let chooses = ["-O", "-g", "-W", "-D", "-std="];
        flag.bytes().all(is_plain) && chooses.iter().any(|start| flag.starts_with(start))
    })
}

/// Options and variables that make `make` run something other than the project's own rules.
pub fn make_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--file --makefile --eval --directory --include-dir --environment-overrides";
    // Verbosity: nothing that a rule of the project could run.
    let is_switch = |word: &str| {
        let set = word.split_once('=');
        set.is_some_and(|(name, value)| {
            has_word("V VERBOSE DEBUG Q CI", name) && has_word("0 1 true false", value)
                || has_word("CFLAGS CXXFLAGS", name) && are_plain_flags(value)
        })
    };
    let harmful = |word: &str| {
        word.contains('=') && !is_switch(word)
            || has_short(word, "fCIEe", "jlO")
            || is_one_of_long(word, LONG)
    };
    at_words(words, harmful)
        .map(|(at, word)| Harm::at(at, format!("`{word}` changes what make runs")))
        .collect()
}

/// Unpacking writes files with unknown names, and several options run programs.
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
        // Another program fetches `host:file`.
        let is_remote = word
            .split(['/', '='])
            .next()
            .is_some_and(|start| start.contains(':'));
        in_old_style
            || is_remote
            || has_short(word, "xIFPT", "fCbgHKLNVX")
            || is_one_of_long(word, LONG)
    };
    at_words(words, harmful)
        .map(|(at, word)| Harm::at(at, format!("`{word}` lets tar run programs or write files")))
        .collect()
}

/// Modes that let a file run with its owner's rights.
pub fn chmod_harms(words: &[Word]) -> Vec<Harm> {
    let harmful = |word: &str| {
        let symbolic =
            word.contains(['+', '=']) && word.contains('s') && !word.contains(['/', '.']);
        let numeric = u32::from_str_radix(word, 8).is_ok_and(|mode| mode & 0o6000 != 0);
        symbolic || numeric || word.starts_with("--reference")
    };
    at_words(words, harmful)
        .map(|(at, word)| {
            Harm::at(
                at,
                format!("`{word}` may let a file run with others' rights"),
            )
        })
        .collect()
}

/// What `curl` reads, writes or sends beyond a request. Output to /dev/null is harmless.
pub fn curl_harms(words: &[Word]) -> Vec<Harm> {
    const LONG: &str = "--output --output-dir --remote-name --remote-name-all --remote-header-name --config \
        --upload-file --cookie-jar --dump-header --trace --trace-ascii --stderr --libcurl --etag-save --hsts \
        --alt-svc --engine --create-dirs --unix-socket --abstract-unix-socket --key --cert --netrc --netrc-file \
        --netrc-optional --proxy --proxy-header --preproxy --ssl-sessions --variable --proto-default --socks5 \
        --socks5-hostname --socks4 --socks4a --doh-url --connect-to --resolve --cacert --etag-compare";
    let discards = |at: usize| {
        let is_output = matches!(words[at].text.as_str(), "-o" | "--output");
        is_output
            && words
                .get(at + 1)
                .is_some_and(|word| word.text == "/dev/null")
    };
    let is_harmful = |word: &str| {
        let of_files = ["@", "%output{", "=<"]
            .iter()
            .any(|text| word.contains(text));
        // Several addresses, and file names made from them; a format or a body has brackets of its own.
        let of_many = word.contains(['{', '[']) && !word.contains("%{") && !is_json(word);
        has_short(word, "oOKTcDJEnx", "AbCdeFHmPQrtUuwXyYz")
            || is_one_of_long(word, LONG) && word != "--cookie"
            || word.starts_with("--expand-")
            || of_files
            || of_many
            || has_other_scheme(word)
    };
    let found = at_words(words, is_harmful).filter(|(at, _)| !discards(*at));
    found
        .map(|(at, word)| (at, word.to_owned()))
        .chain(cookie_file(words))
        .map(|(at, word)| Harm::at(at, format!("`{word}` lets curl write, read or send files")))
        .collect()
}

/// A cookie without a `=` is the name of a file with cookies.
fn cookie_file(words: &[Word]) -> Option<(usize, String)> {
    let names_one = |at: usize, word: &str| {
        let next = || words.get(at + 1).map_or("", |word| word.text.as_str());
        let value = match word.split_once('b') {
            Some((cluster, value)) if has_short(word, "b", "AbCdeFHmPQrtUuwXyYz") => {
                let is_ours = !cluster.contains(|c| "ACdeFHmPQrtUuwXyYz".contains(c));
                is_ours.then(|| if value.is_empty() { next() } else { value })
            }
            _ if word.len() > 5 && is_one_of_long(word, "--cookie") => {
                Some(word.split_once('=').map_or_else(next, |(_, value)| value))
            }
            _ => None,
        };
        value.is_some_and(|value| !value.contains('='))
    };
    let (at, word) = at_words(words, |_| true).find(|(at, word)| names_one(*at, word))?;
    Some((at, word.to_owned()))
}

/// `env` and `ENV` in a program show the environment; as the name of a field or of a variable they do not.
pub fn jq_harms(words: &[Word]) -> Vec<Harm> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let shows = |word: &str, name: &str, harmless_before: &[char]| {
        word.match_indices(name).any(|(at, _)| {
            let before = word[..at].chars().next_back();
            let after = word[at + name.len()..].chars().next();
            !after.is_some_and(is_name)
                && !before.is_some_and(|c| is_name(c) || harmless_before.contains(&c))
        })
    };
    let is_file = |word: &str| {
        let is_plain = |c: char| is_name(c) || matches!(c, '/' | '.' | '-');
        word.chars().all(is_plain)
            && [".json", ".jsonl", ".yaml", ".yml"]
                .iter()
                .any(|end| word.ends_with(end))
    };
    let harmful = |word: &str| {
        !is_file(word) && (shows(word, "env", &['.', '$']) || shows(word, "ENV", &['.']))
    };
    let shown = at_words(words, harmful)
        .map(|(at, word)| Harm::at(at, format!("`{word}` may show the environment")));
    let imported = at_words(words, imports).map(|(at, word)| {
        Harm::at(
            at,
            format!("`{word}` reads another file as code or as data"),
        )
    });
    shown.chain(imported).collect()
}

/// `import "file" as $x;` and `include "file";` at the beginning of a program, or after another of them.
fn imports(word: &str) -> bool {
    ["import", "include"].iter().any(|keyword| {
        word.match_indices(keyword).any(|(at, _)| {
            let before = word[..at].trim_end();
            let last_line = before.lines().next_back().unwrap_or_default();
            let begins =
                before.is_empty() || before.ends_with([';', '}']) || last_line.contains('#');
            let after = word[at + keyword.len()..].trim_start();
            begins && after.starts_with('"')
        })
    })
}

/// perl's field separator is code if it has more than plain characters.
pub fn perl_harms(words: &[Word]) -> Vec<Harm> {
    let splits_by_code = |word: &str| {
        has_short(word, "F", "")
            && word
                .split_once('F')
                .is_some_and(|(_, pattern)| pattern.contains(['(', '{', '$', '@', '`', ';']))
    };
    at_words(words, splits_by_code)
        .map(|(at, word)| Harm::at(at, format!("`{word}` may let perl run code")))
        .collect()
}

/// A body such as `{"a": [1]}`; an address would have no quotes.
fn is_json(word: &str) -> bool {
    word.starts_with(['{', '['])
        && word.contains('"')
        && !word.contains("://")
        && !word.contains('@')
}

fn has_other_scheme(word: &str) -> bool {
    const OTHERS: &str = "ftp ftps telnet dict gopher gophers scp sftp smb smbs smtp smtps ldap ldaps imap imaps pop3 \
        pop3s rtsp rtmp tftp mqtt ws wss";
    let lower = word.to_ascii_lowercase();
    let ends_in_other = |before: &str| {
        let scheme = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        scheme.is_some_and(|scheme| has_word(OTHERS, scheme))
    };
    lower.contains("file:") || lower.split("://").any(ends_in_other) && lower.contains("://")
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

/// The words of a `sed` command that name files.
pub fn sed_files(words: &[Word]) -> Vec<usize> {
    let (mut script_given, mut script_follows) = (false, false);
    let mut files = Vec::new();
    for (at, word) in at_words(words, |_| true) {
        let role = match script_follows {
            true => SedWord::Script(word),
            false => SedWord::new(word, script_given),
        };
        script_follows = role == SedWord::ScriptFollows;
        script_given |= matches!(role, SedWord::Script(_) | SedWord::ScriptFollows);
        if role == SedWord::File {
            files.push(at);
        }
    }
    files
}

/// The kind of a word in a `sed` command.
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

/// Whether a script has only addresses and commands that print, delete, replace or quit.
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
        return Some(skip_regex(regex, '/')?.trim_start_matches(['I', 'M']));
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
        'l' => Some(
            chars
                .as_str()
                .trim_start_matches(|c: char| c.is_ascii_digit()),
        ),
        's' => Some(
            skip_replacement(chars.as_str(), skip_regex)?
                .trim_start_matches(|c: char| c.is_ascii_digit() || "gpiI".contains(c)),
        ),
        'y' => skip_replacement(chars.as_str(), skip_until),
        _ => None,
    }
}

/// `/from/to/` with any separator.
fn skip_replacement(text: &str, skip_from: fn(&str, char) -> Option<&str>) -> Option<&str> {
    let separator = text
        .chars()
        .next()
        .filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
    let after_from = skip_from(&text[separator.len_utf8()..], separator)?;
    skip_until(after_from, separator)
}

/// The text after the next `end` that is not escaped.
fn skip_until(text: &str, end: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == end => return Some(&text[at + c.len_utf8()..]),
            '\n' => return None,
            _ => {}
        }
    }
    None
}

/// The text after the next `end` that is neither escaped nor in a bracket expression. A `sed` that would end the expression
/// within the brackets reports an error and runs nothing.
fn skip_regex(text: &str, end: char) -> Option<&str> {
    let mut rest = text;
    loop {
        let c = rest.chars().next()?;
        let behind = &rest[c.len_utf8()..];
        rest = match c {
            '\n' => return None,
            '\\' => behind.get(behind.chars().next()?.len_utf8()..)?,
            _ if c == end => return Some(behind),
            '[' => skip_brackets(behind)?,
            _ => behind,
        };
    }
}

/// The text after the closing bracket of an expression; a class within it such as `[:alpha:]` has its own brackets.
fn skip_brackets(text: &str) -> Option<&str> {
    let text = text.strip_prefix('^').unwrap_or(text);
    let mut rest = text.strip_prefix(']').unwrap_or(text);
    loop {
        let c = rest.chars().next()?;
        let behind = &rest[c.len_utf8()..];
        rest = match c {
            '\n' => return None,
            // Implementations differ on whether that closes it.
            '\\' if behind.starts_with(']') => return None,
            ']' => return Some(behind),
            '[' if behind.starts_with([':', '.', '=']) => behind.split_once(']')?.1,
            _ => behind,
        };
    }
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
            "l",
            "$!l20",
            "s/[^/]*$//",
            "s/[]/]x/y/",
            "/[[:alpha:]/]/d",
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
            "s/[^/]*$//e",
            "s/[]/]/e/w f",
            "s/a/[/e;p]/",
            "y/[/]/x/",
            "/[/]/w f",
            "s/[\\]/]/a/",
            "/x/w f",
            "1!e id",
            "s/a/b/gw f",
            "a\\\ntext",
            "F",
            "v",
            "s/a/b/me",
        ] {
            assert!(!is_harmless_sed(script), "{script}");
        }
    }
}
