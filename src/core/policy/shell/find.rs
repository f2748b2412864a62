//! Finds every command that might run, for rules that deny or ask: a superfluous one does little harm here.

use super::wrappers::{inner_starts, is_shell, runner_operands, runs_behind};
use super::{Simple, Word};

/// How many levels of nested commands are searched. Nobody nests more by accident, and no wildcard allows a nested command.
const DEEPEST: usize = 6;

/// The most commands that are searched in one: [`super::LONGEST`] characters can't contain more different ones.
const MOST: usize = 2_000;

/// How many words after a subcommand that runs others may be the program.
const MOST_STARTS: usize = 12;

/// The command itself and those that it would run: through `sudo`, `env`, `sh -c`, `eval`, `find -exec` and the like. Programs
/// are listed without their directory, and also as written.
pub fn commands_within(words: Vec<String>) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut waiting = vec![(words, 0)];
    while let Some((words, depth)) = waiting.pop() {
        let Some(name) = words.first().map(|name| base_name(name).to_owned()) else {
            continue;
        };
        if depth < DEEPEST && found.len() + waiting.len() < MOST {
            let inner = inner_commands(&name, &words)
                .into_iter()
                .map(|words| (words, depth + 1));
            waiting.extend(inner);
        }
        let mut words = words;
        if words[0] != name {
            found.push(words.clone());
            words[0] = name;
        }
        found.push(words);
    }
    found
}

/// The scripts that a command passes to a shell, such as the text after `sh -c`; also through `sudo`, `env` and the like.
pub fn scripts_within(words: Vec<String>) -> Vec<String> {
    let mut found = Vec::new();
    for words in commands_within(words) {
        let name = base_name(&words[0]).to_owned();
        if is_shell(&name) {
            let mut words = words.iter().skip(1);
            let option = words.find(|word| is_command_option(word));
            found.extend(option.and_then(|_| words.next()).cloned());
        } else if name == "eval" {
            found.push(words[1..].join(" "));
        }
    }
    found.retain(|text| text.len() <= super::LONGEST);
    found.sort_unstable();
    found.dedup();
    found
}

fn base_name(name: &str) -> &str {
    name.rsplit('/')
        .next()
        .filter(|base| !base.is_empty())
        .unwrap_or(name)
}

/// Whether a program runs others that its arguments name.
pub fn runs_others(name: &str) -> bool {
    is_shell(name)
        || matches!(name, "eval" | "find" | "fd" | "fdfind")
        || runner_operands(name).is_some()
}

fn inner_commands(name: &str, words: &[String]) -> Vec<Vec<String>> {
    // It only looks the program up.
    if name == "command" && matches!(words.get(1).map(String::as_str), Some("-v" | "-V")) {
        return Vec::new();
    }
    if is_shell(name) {
        return scripts(
            words
                .iter()
                .skip(1)
                .skip_while(|word| !is_command_option(word))
                .skip(1),
        );
    }
    if let Some(behind) = runs_behind(words.iter().map(String::as_str)) {
        let starts = (behind + 1..words.len()).take(MOST_STARTS);
        let mut inner: Vec<_> = starts.map(|at| words[at..].to_vec()).collect();
        let texts = words[behind..].iter();
        inner.extend(scripts(
            texts.filter(|word| word.contains(char::is_whitespace)),
        ));
        return inner;
    }
    match name {
        "eval" => scripts(std::iter::once(&words[1..].join(" "))),
        "find" | "fd" | "fdfind" => after_exec(words),
        _ => match runner_operands(name) {
            Some(operands) => {
                let mut inner: Vec<_> = inner_starts(words, operands)
                    .into_iter()
                    .map(|at| words[at..].to_vec())
                    .collect();
                inner.extend(scripts(
                    words[1..]
                        .iter()
                        .filter(|word| word.contains(char::is_whitespace)),
                ));
                inner
            }
            None => Vec::new(),
        },
    }
}

fn is_command_option(word: &str) -> bool {
    word.starts_with(['-', '+']) && word.contains('c')
}

fn scripts<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<Vec<String>> {
    texts
        .filter(|text| text.len() <= super::LONGEST)
        .flat_map(|text| super::read(text).commands)
        .map(|command| command.literal_words())
        .collect()
}

/// Also `--exec=x` and `-xx`, which fd accepts.
fn after_exec(words: &[String]) -> Vec<Vec<String>> {
    const RUN: [&str; 8] = [
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-x",
        "-X",
        "--exec",
        "--exec-batch",
    ];
    let attached = |word: &str| {
        let long = ["--exec=", "--exec-batch="]
            .iter()
            .find_map(|option| word.strip_prefix(option));
        let short = || word.strip_prefix("-x").or_else(|| word.strip_prefix("-X"));
        long.or_else(short)
            .map(str::to_owned)
            .filter(|program| !program.is_empty())
    };
    let after = |at: usize| match RUN.contains(&words[at].as_str()) {
        true => Some(words[at + 1..].to_vec()),
        false => {
            let program = attached(&words[at])?;
            Some(
                std::iter::once(program)
                    .chain(words[at + 1..].iter().cloned())
                    .collect(),
            )
        }
    };
    (0..words.len()).filter_map(after).collect()
}

/// The commands in a text that can't be parsed: split at every possible separator, without quotes.
pub fn crude(text: &str) -> Vec<Simple> {
    text.split(['\n', ';', '|', '&', '(', ')', '{', '}', '`'])
        .map(crude_command)
        .filter(|command| !command.words.is_empty())
        .take(MOST)
        .collect()
}

fn crude_command(piece: &str) -> Simple {
    let bare = piece.replace(['\'', '"', '\\', '$', '\r'], "");
    let is_setting = |word: &&str| word.contains('=') && !word.starts_with('-');
    let words = without_redirections(&bare)
        .into_iter()
        .skip_while(is_setting)
        .map(|word| Word {
            text: word.to_owned(),
            ..Word::default()
        });
    Simple {
        text: piece.trim().to_owned(),
        start: 0,
        words: words.collect(),
        guessed: true,
    }
}

/// `sudo 2>/dev/null rm x` as `sudo rm x`.
fn without_redirections(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut target_follows = false;
    for word in text.split_whitespace() {
        let redirects = word
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .starts_with(['<', '>']);
        if !redirects && !target_follows {
            words.push(word);
        }
        target_follows = redirects && word.ends_with(['<', '>', '!']);
    }
    words
}
