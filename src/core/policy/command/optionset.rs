//! Rules that restrict a command by its options and operands: they match however the command is spelled. `rm -rf *` also matches
//! `rm -v -Rf x`, `rm x --rec --for` and `rm -fRv x`; `npm run deploy *` also matches `npm run -w web deploy`. What spellings mean
//! the same is in `tables/spellings.toml`.

use super::spellings::{self, NextWord, Spellings};
use crate::core::policy::pattern::{CommandPattern, Wildcard};
use std::borrow::Cow;

/// Whether a restricting rule matches a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    No,
    /// The option at this position is not known, and may be what the rule restricts.
    Perhaps(usize),
    Yes,
}

/// An option of a command: a letter of a cluster, or a word.
struct GivenOption<'w> {
    at: usize,
    name: Cow<'w, str>,
    value: Option<&'w str>,
}

/// A word that is not an option. It may be the value of the option before it.
struct Operand<'w> {
    text: &'w str,
    is_sure: bool,
}

/// A command in its options and its other words.
#[derive(Default)]
struct Parsed<'w> {
    options: Vec<GivenOption<'w>>,
    operands: Vec<Operand<'w>>,
}

impl<'w> Parsed<'w> {
    fn of(words: &[&'w str], spellings: &Spellings) -> Parsed<'w> {
        let mut parsed = Parsed::default();
        let mut next = NextWord::Operand;
        for (at, word) in words.iter().enumerate() {
            if is_option(word) {
                next = parsed.add_option(at, word, words.get(at + 1).copied(), spellings);
                continue;
            }
            // `git push origin +main`, and the toolchain of `cargo +nightly`.
            let sign = word.get(..1).filter(|sign| matches!(*sign, "+" | ":"));
            if let Some(sign) = sign.filter(|sign| spellings.knows(sign)) {
                parsed.add(at, sign, None);
            }
            if next != NextWord::Value {
                parsed.operands.push(Operand {
                    text: word,
                    is_sure: next == NextWord::Operand && !word.starts_with('+'),
                });
            }
            next = NextWord::Operand;
        }
        parsed
    }

    fn add(&mut self, at: usize, name: &'w str, value: Option<&'w str>) {
        let name = Cow::Borrowed(name);
        self.options.push(GivenOption { at, name, value });
    }

    /// Adds an option, and says what the next word is.
    fn add_option(
        &mut self,
        at: usize,
        word: &'w str,
        following: Option<&'w str>,
        spellings: &Spellings,
    ) -> NextWord {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let is_whole = word.starts_with("--") || spellings.have_one_dash() || spellings.knows(name);
        if is_whole {
            let next = match (value, name) {
                (Some(_), _) | (_, "--") => NextWord::Operand,
                _ => spellings.next_of(name),
            };
            let value = value.or(following.filter(|_| next != NextWord::Operand));
            self.add(at, name, value);
            let whole = value.map(|value| format!("{name}={value}"));
            if let Some(whole) = whole.filter(|whole| spellings.knows(whole)) {
                let name = Cow::Owned(whole);
                let value = None;
                self.options.push(GivenOption { at, name, value });
            }
            if spellings.have_one_dash() && word.starts_with("--") {
                self.add(at, &name[1..], value);
            }
            return next;
        }
        self.add(at, name, value);
        self.add_cluster(at, word, following, spellings)
    }

    fn add_cluster(
        &mut self,
        at: usize,
        word: &'w str,
        following: Option<&'w str>,
        spellings: &Spellings,
    ) -> NextWord {
        let mut next = NextWord::Unknown;
        for (place, letter) in word.char_indices().skip(1) {
            if !letter.is_ascii_alphanumeric() {
                return NextWord::Operand;
            }
            let name = format!("-{letter}");
            let rest = &word[place + letter.len_utf8()..];
            next = spellings.next_of(&name);
            let value = Some(rest).filter(|rest| !rest.is_empty());
            let value = value.or(following.filter(|_| next == NextWord::Value));
            let name = Cow::Owned(name);
            self.options.push(GivenOption { at, name, value });
            if next == NextWord::Value && !rest.is_empty() {
                return NextWord::Operand;
            }
        }
        next
    }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Whether a rule matches a command with these words, in any spelling. Only for rules that restrict.
pub fn speaks_about(pattern: &CommandPattern, words: &[&str]) -> Speaks {
    let rule: Vec<&str> = pattern.text().split(' ').collect();
    let [program, rest @ ..] = rule.as_slice() else {
        return Speaks::No;
    };
    if words.first() != Some(program) || pattern.text().contains('\\') {
        return Speaks::No;
    }
    let general = Spellings::of(program, |_| false);
    if !may_speak(rest, &words[1..], &general) {
        return Speaks::No;
    }
    let is_open = rest.iter().rev().skip(1).any(|word| *word == "*");
    let of = |word: &str| {
        let is_it = |other: &&str| general.plain(other) == word;
        rest.iter().any(is_it) || is_open && words.iter().any(is_it) || *program == "docker-compose"
    };
    let spellings = Spellings::of(program, of);
    let command = Parsed::of(&words[1..], &spellings);
    let value_of = |at: usize| value_behind(rest, at, &spellings);
    let is_value = |at: usize| at > 0 && value_of(at - 1).is_some();
    let operands = rest.iter().enumerate();
    let operands =
        operands.filter(|(at, word)| (!is_option(word) || ends_open(word)) && !is_value(*at));
    let operands: Vec<&str> = operands
        .map(|(_, word)| if is_option(word) { "*" } else { *word })
        .collect();
    if !fits_somewhere(&operands, &command.operands, &spellings) {
        return Speaks::No;
    }
    let options = rest.iter().enumerate().filter(|(_, word)| is_option(word));
    let mut speaks = Speaks::Yes;
    for (at, option) in options {
        let value = rest.get(at + 1).filter(|word| !is_option(word)).copied();
        let with_value = value_of(at).map(|value| format!("{option}={value}"));
        let option = with_value.as_deref().unwrap_or(option);
        match command.has(option, value, &spellings) {
            Speaks::No => return Speaks::No,
            Speaks::Perhaps(at) => speaks = Speaks::Perhaps(at + 1),
            Speaks::Yes => {}
        }
    }
    speaks
}

/// The value of an option of a rule, if it is the next word: `DELETE` of `-X DELETE`.
fn value_behind<'r>(rule: &[&'r str], at: usize, spellings: &Spellings) -> Option<&'r str> {
    let (option, value) = (rule.get(at)?, rule.get(at + 1)?);
    let takes_one = is_option(option)
        && !option.contains(['=', '*'])
        && spellings.next_of(option) == NextWord::Value;
    (takes_one && !is_option(value) && !value.contains('*')).then_some(*value)
}

/// Whether a command has what every spelling of the rule has: the rule's first word, and an option if the rule has one. Most have
/// not, and this is quickly seen.
fn may_speak(rule: &[&str], arguments: &[&str], general: &Spellings) -> bool {
    let acts_as_option = |word: &&str| is_option(word) || word.starts_with(['+', ':']);
    let has_option = || arguments.iter().any(acts_as_option);
    // A word behind an option may be its value, which another spelling joins to it.
    let is_behind = |at: usize| at > 0 && is_option(rule[at - 1]);
    let mut wanted = rule.iter().enumerate();
    let mut wanted = wanted
        .by_ref()
        .filter(|(at, word)| !is_option(word) && !word.contains('*') && !is_behind(*at))
        .map(|(_, word)| word);
    let is_there = |wanted: &&&str| {
        let wanted = general.plain(wanted);
        let is_it =
            |word: &&str| general.plain(word) == wanted || general.may_shorten(word, wanted);
        arguments.iter().any(is_it)
    };
    (!rule.iter().any(|word| is_option(word)) || has_option())
        && wanted.next().as_ref().is_none_or(is_there)
}

/// Whether a call of this program may include a command of one of these programs.
pub fn means_any(program: &str, is_one: impl Fn(&str) -> bool) -> bool {
    let mut means = spellings::means(program).iter();
    program.starts_with("python") || means.any(|means| is_one(means.program()))
}

/// The words of this command, and of those that it includes: `docker container rm` also means `docker rm`, and `python -m pip` means
/// `pip`.
pub fn meanings<'w>(words: &[&'w str]) -> Vec<Vec<&'w str>> {
    let mut found = vec![words.to_vec()];
    let Some(program) = words.first() else {
        return found;
    };
    for means in spellings::means(program) {
        if speaks_about(&means.pattern(), words) != Speaks::Yes {
            continue;
        }
        let mut gone: Vec<&str> = means.operands().collect();
        let is_kept = |word: &&&'w str| {
            let place = gone.iter().position(|known| known == *word);
            place.map(|at| gone.remove(at)).is_none()
        };
        let rest: Vec<&'w str> = words.iter().filter(is_kept).copied().collect();
        found.push(means.to.split(' ').chain(rest).collect());
    }
    if program.starts_with("python") {
        let is_module =
            |word: &&str| is_option(word) && !word.starts_with("--") && word.ends_with('m');
        let module = words.iter().position(is_module);
        found.extend(module.map(|at| words[at + 1..].to_vec()));
    }
    found
}

fn ends_open(option: &str) -> bool {
    option.ends_with('*')
}

fn fits_somewhere(rule: &[&str], command: &[Operand<'_>], spellings: &Spellings) -> bool {
    let starts = match spellings.have_targets() {
        true => command.len().max(1),
        false => 1,
    };
    (0..starts).any(|at| {
        let rest = command.get(at..).unwrap_or_default();
        fits(rule, rest, spellings, at == 0)
    })
}

/// Whether the operands of a command fit those of a rule. One that may be the value of an option may be left out.
fn fits(rule: &[&str], command: &[Operand<'_>], spellings: &Spellings, is_first: bool) -> bool {
    let Some((wanted, rule)) = rule.split_first() else {
        return command.iter().all(|operand| !operand.is_sure);
    };
    if *wanted == "*" {
        return rule.is_empty()
            || (0..=command.len()).any(|at| fits(rule, &command[at..], spellings, false));
    }
    let Some((operand, command)) = command.split_first() else {
        return false;
    };
    let is_it = || {
        let (wanted, text) = (spellings.plain(wanted), spellings.plain(operand.text));
        match wanted.contains('*') {
            true => Wildcard::new(wanted).matches(text),
            false => wanted == text || is_first && spellings.may_shorten(text, wanted),
        }
    };
    let takes_rest = wanted.ends_with('*') && rule.is_empty();
    is_it() && (takes_rest || fits(rule, command, spellings, false))
        || !operand.is_sure && fits_again(wanted, rule, command, spellings, is_first)
}

/// The same without the first operand of the command.
fn fits_again(
    wanted: &str,
    rule: &[&str],
    command: &[Operand<'_>],
    spellings: &Spellings,
    is_first: bool,
) -> bool {
    let rule: Vec<&str> = std::iter::once(wanted)
        .chain(rule.iter().copied())
        .collect();
    fits(&rule, command, spellings, is_first)
}

impl Parsed<'_> {
    /// Whether the command has an option of a rule.
    fn has(&self, option: &str, following: Option<&str>, spellings: &Spellings) -> Speaks {
        let letters = option.strip_prefix('-').unwrap_or_default();
        let is_cluster = letters.len() > 1
            && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !spellings.have_one_dash()
            && !spellings.knows(option)
            && letters.len() <= LONGEST_CLUSTER;
        if !is_cluster {
            return self.has_one(option, following, spellings);
        }
        let each = letters.chars().map(|letter| format!("-{letter}"));
        let each = each.map(|letter| self.has_one(&letter, None, spellings));
        let all = each.fold(Speaks::Yes, |all, one| match (all, one) {
            (Speaks::No, _) | (_, Speaks::No) => Speaks::No,
            (Speaks::Perhaps(at), _) | (_, Speaks::Perhaps(at)) => Speaks::Perhaps(at),
            _ => Speaks::Yes,
        });
        match self.options.iter().any(|given| given.name == option) {
            true => Speaks::Yes,
            false => all,
        }
    }

    fn has_one(&self, option: &str, following: Option<&str>, spellings: &Spellings) -> Speaks {
        if option.contains('*') {
            let wanted = Wildcard::new(option);
            let is_it = |given: &GivenOption<'_>| {
                let mut others = spellings.of_option(&given.name).into_iter();
                let text = given.value.map(|value| format!("{}={value}", given.name));
                wanted.matches(&given.name)
                    || others.any(|other| wanted.matches(other))
                    || text.is_some_and(|text| wanted.matches(&text))
            };
            return if self.options.iter().any(is_it) {
                Speaks::Yes
            } else {
                Speaks::No
            };
        }
        let (name, value) = match option.split_once('=') {
            Some((name, value)) if !spellings.knows(option) => (name, Some(value)),
            _ => (option, None),
        };
        let mut same = spellings.of_option(name);
        let is_known = !same.is_empty();
        same.extend(spellings.of_option(&format!("{name}={}", following.unwrap_or_default())));
        let is_it = |given: &&GivenOption<'_>| {
            let is_named = |spelling: &str| is_spelled(&given.name, spelling, spellings);
            let is_value = value.is_none_or(|value| given.value == Some(value));
            is_value && (is_named(name) || same.iter().any(|spelling| is_named(spelling)))
        };
        if self.options.iter().any(|given| is_it(&given)) {
            return Speaks::Yes;
        }
        let may_be = |given: &&GivenOption<'_>| {
            !is_known && !spellings.knows(&given.name) && may_mean(&given.name, name)
        };
        let unknown = self.options.iter().find(may_be);
        unknown.map_or(Speaks::No, |given| Speaks::Perhaps(given.at))
    }
}

/// The most letters of one cluster in a rule: a longer word with one dash is one option.
const LONGEST_CLUSTER: usize = 3;

/// Whether a command spells an option in this way, or abbreviates it.
fn is_spelled(given: &str, option: &str, spellings: &Spellings) -> bool {
    let may_shorten = || {
        given.len() > 2
            && given.starts_with("--")
            && !spellings.are_exact()
            && !spellings.knows(given)
            && option.starts_with(given)
    };
    given == option || may_shorten()
}

/// Whether an unknown option may be another spelling of one that is not known either: a long name of a letter, a letter of a long
/// name, or the same letter in another case.
fn may_mean(given: &str, option: &str) -> bool {
    let is_long = |text: &str| text.starts_with("--");
    let is_letter = |text: &str| text.len() == 2 && text != "--";
    is_long(given) && given != "--" && is_letter(option)
        || is_letter(given) && is_long(option) && option != "--"
        || is_letter(given) && is_letter(option) && given.eq_ignore_ascii_case(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaks(rule: &str, command: &str) -> Speaks {
        let words: Vec<&str> = command.split(' ').collect();
        let pattern = CommandPattern::new(rule);
        let all = meanings(&words);
        let all = all.iter().map(|words| speaks_about(&pattern, words));
        all.fold(Speaks::No, |most, one| match (most, one) {
            (Speaks::Yes, _) | (_, Speaks::Yes) => Speaks::Yes,
            (Speaks::No, one) => one,
            (most, _) => most,
        })
    }

    fn all(rule: &str, are: Speaks, commands: &[&str]) {
        for command in commands {
            assert_eq!(speaks(rule, command), are, "{rule}: {command}");
        }
    }

    #[test]
    fn options_count_wherever_they_stand_and_however_they_are_spelled() {
        let yes = [
            "rm -rf x",
            "rm -fr x",
            "rm -rfv x",
            "rm -v -rf x",
            "rm -r x -f",
            "rm --recursive -f x",
            "rm -rf",
            "rm x --force -R",
            "rm -Rf x",
            "rm -fdvIR x",
            "rm --rec --for x",
            "rm -R --fo x",
        ];
        all("rm -rf *", Speaks::Yes, &yes);
        all(
            "rm -rf *",
            Speaks::No,
            &["rm x", "rm -r x", "rm -f x", "ls -rf x", "rm -vR x"],
        );
        let yes = [
            "git push origin main --force",
            "git push -q --force",
            "git push -f o",
            "git push o +main",
        ];
        all("git push --force *", Speaks::Yes, &yes);
        let no = [
            "git push origin main",
            "git push --force-with-lease",
            "git push -o x",
        ];
        all("git push --force *", Speaks::No, &no);
        all(
            "git push --force*",
            Speaks::Yes,
            &["git push origin --force-with-lease", "git push o -f"],
        );
        all(
            "find * -exec *",
            Speaks::No,
            &["find . -newerct x -maxdepth 2"],
        );
        all(
            "find * -delete",
            Speaks::Yes,
            &["find . -delete -print", "find src -name x -delete"],
        );
        let yes = [
            "git commit -n -m x",
            "git commit -anm x",
            "git commit --no-ver",
            "git commit -m x -n",
        ];
        all("git commit --no-verify *", Speaks::Yes, &yes);
        all(
            "git commit --no-verify *",
            Speaks::No,
            &["git commit -mnew", "git commit -am x"],
        );
        let yes = [
            "git branch -d -f x",
            "git branch -fd x",
            "git branch --delete --force x",
        ];
        all("git branch -D *", Speaks::Yes, &yes);
        all(
            "git branch -D *",
            Speaks::No,
            &["git branch -d x", "git branch -f x"],
        );
    }

    #[test]
    fn words_count_in_each_spelling_and_behind_options() {
        let yes = [
            "npm run -s deploy",
            "npm run -w web deploy",
            "npm rum deploy",
            "npm -w web run deploy x",
        ];
        all("npm run deploy *", Speaks::Yes, &yes);
        all(
            "npm run deploy *",
            Speaks::No,
            &["npm run build", "npm run build deploy", "npm test"],
        );
        let yes = [
            "npm i -g x",
            "npm isntall --global x",
            "npm install --location=global x",
            "npm insta x -g",
            "npm install --location global x",
        ];
        all("npm install -g *", Speaks::Yes, &yes);
        all(
            "npm publish *",
            Speaks::Yes,
            &["npm publ", "npm --tag x publish"],
        );
        all(
            "docker compose down -v *",
            Speaks::Yes,
            &[
                "docker compose -p x down -v",
                "docker compose down -vt1",
                "docker compose down --volumes",
                "docker-compose down -v",
            ],
        );
        all(
            "docker compose down -v *",
            Speaks::No,
            &["docker compose down", "docker compose up -d"],
        );
        all(
            "cargo clean *",
            Speaks::Yes,
            &[
                "cargo +nightly clean",
                "cargo -q clean",
                "cargo --color always clean",
            ],
        );
        all(
            "cargo clean *",
            Speaks::No,
            &["cargo -q test clean", "cargo test --features clean"],
        );
        all(
            "make deploy *",
            Speaks::Yes,
            &["make test deploy", "make -j 4 deploy", "make -C x deploy"],
        );
        all("make deploy *", Speaks::No, &["make test", "make"]);
        all(
            "gh pr merge *",
            Speaks::Yes,
            &[
                "gh pr -R o/r merge 1",
                "gh pr --repo=o/r merge",
                "gh -R o/r pr merge 1",
            ],
        );
        all(
            "chmod 777 *",
            Speaks::Yes,
            &["chmod 0777 x", "chmod -v 00777 x", "chmod a+rwx x"],
        );
        all(
            "terraform destroy *",
            Speaks::Yes,
            &[
                "terraform apply -destroy",
                "terraform apply --destroy -input=false",
            ],
        );
        all(
            "pip install *",
            Speaks::Yes,
            &[
                "python3 -m pip install x",
                "pip3 -q install x",
                "uv pip install x",
            ],
        );
        all(
            "docker rm -f *",
            Speaks::Yes,
            &["docker container rm --force x", "docker rm x -vf"],
        );
    }

    #[test]
    fn an_unknown_option_may_be_another_spelling() {
        all("foo -x *", Speaks::Perhaps(1), &["foo --extra", "foo -X"]);
        all("foo --extra *", Speaks::Perhaps(2), &["foo a -e"]);
        all(
            "foo -x *",
            Speaks::No,
            &["foo a", "foo -y", "foo --verbose"],
        );
        all("foo -x *", Speaks::Yes, &["foo -yx", "foo a -x"]);
    }
}
