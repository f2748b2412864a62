//! The verdict on one simple command of a command line.

use super::directories::Directories;
use super::fed::{Source, only_counts};
use super::made::Made;
use super::optionset::Speaks;
use super::places::{self, Named};
use super::spelled::{self, Inner};
use super::transfers;
use super::{
    Command, Says, changes, containers, every_command, git, join, links, one_spaced, optionset,
    reads, rules_on, texts_of, trees, variants,
};
use crate::core::policy::harm::{self, Harm};
use crate::core::policy::judge::{Case, strictest};
use crate::core::policy::rule::Rule;
use crate::core::policy::shell::{self, Simple, Stripped, Word};
use crate::core::policy::{Decision, Fallback, Verdict};

/// One simple command of a command line.
pub struct Part<'a, 'd> {
    case: &'a Case<'a>,
    simple: &'a Simple,
    stripped: Stripped<'a>,
    directories: &'d Directories,
    /// What earlier parts may have created.
    made: &'d Made,
    /// The places that its words may name.
    named: Vec<Named>,
    /// Whether it must be searched for other commands, and those that it may run itself.
    may_run_others: bool,
    inside: &'a [Vec<Word>],
    /// A rule that spells out the whole command line.
    exact: Option<&'a Rule>,
    /// The source of the names that `xargs` passes.
    fed: Option<Source>,
}

impl<'a, 'd> Part<'a, 'd> {
    pub fn new(
        case: &'a Case<'a>,
        command: &'a Command<'a>,
        directories: &'d Directories,
        made: &'d Made,
        exact: Option<&'a Rule>,
    ) -> Part<'a, 'd> {
        let stripped = command.stripped;
        Part {
            case,
            simple: command.simple,
            named: places::named(case, stripped.words, directories),
            stripped,
            directories,
            made,
            may_run_others: command.may_run_others,
            inside: &command.inside,
            exact,
            fed: None,
        }
    }

    /// The same part with names from another part.
    pub fn fed_by(mut self, source: Option<Source>) -> Part<'a, 'd> {
        self.fed = source;
        self
    }

    pub fn case(&self) -> &'a Case<'a> {
        self.case
    }

    pub fn directories(&self) -> &'d Directories {
        self.directories
    }

    /// Its words, without harmless wrappers.
    pub fn words(&self) -> &'a [Word] {
        self.stripped.words
    }

    pub fn more_words_follow(&self) -> bool {
        self.stripped.more_words_follow
    }

    /// `None` if it may not be a command, and no rule would restrict it if it were one.
    pub fn verdict(&self) -> Option<Says<'a>> {
        let only_way = self.only_way_to_write();
        let rules = match &only_way {
            Some(text) => rules_on(self.case, std::slice::from_ref(text)),
            None => rules_on(self.case, &self.texts_to_restrict()),
        };
        let restricted = strictest(&rules)
            .filter(|rule| rule.decision > Decision::Allow)
            .into_iter()
            .chain(self.rules_by_options())
            .max_by_key(|rule| rule.decision)
            .map(Says::Rule);
        let by_places = self.restriction_by_places();
        let by_trees = every_command(&self.stripped, self.inside).find_map(|words| {
            trees::restriction(self.case, words, self.directories)
                .or_else(|| git::restriction(self.case, words, self.directories))
                .or_else(|| containers::restriction(self.case, words, self.directories))
        });
        match restricted
            .into_iter()
            .chain(by_places.into_iter().chain(by_trees).map(Says::Verdict))
            .max_by_key(Says::decision)
        {
            None if self.simple.guessed => None,
            None if only_way.is_some() => Some(self.allowance(rules)),
            None => Some(self.allowance(rules_on(self.case, &self.texts_to_allow()))),
            Some(Says::Verdict(verdict)) => Some(self.or_denied_by_default(verdict)),
            strictest => strictest,
        }
        .map(|says| self.or_denied_inside(says))
    }

    /// A doubt about the paths of a command is at least as strict as the default, if no rule allows the command.
    fn or_denied_by_default(&self, verdict: Verdict) -> Says<'a> {
        let is_doubt = verdict.decision == Decision::Ask && !self.simple.guessed;
        if self.case.policy.default != Fallback::Deny || !is_doubt {
            return Says::Verdict(verdict);
        }
        let rules = rules_on(self.case, &self.texts_to_allow());
        match rules.is_empty() && self.exact.is_none() {
            true => Says::Verdict(self.case.by_default(|| false)),
            false => Says::Verdict(verdict),
        }
    }

    /// The strictest rule that restricts this command, or a command that it may run, in another spelling.
    fn rules_by_options(&self) -> Option<&'a Rule> {
        let found = self.by_spelling();
        let sure = found.filter(|(_, speaks)| *speaks == Speaks::Yes);
        sure.map(|(rule, _)| rule).max_by_key(|rule| rule.decision)
    }

    /// The rules that restrict this command, or a command that it may run, or may do so.
    fn by_spelling(&self) -> impl Iterator<Item = (&'a Rule, Speaks)> {
        let policy = self.case.policy;
        let own = every_command(&self.stripped, self.inside);
        // Most commands are of programs that no rule restricts.
        let own = own.filter(|words| {
            let program = words.first().map_or("", |name| name.text.as_str());
            policy.index.restricts_programs()
                && (policy.index.restricts_program(program)
                    || optionset::means_any(program, |other| policy.index.restricts_program(other)))
        });
        let all = own.flat_map(|words| {
            let texts: Vec<&str> = texts_of(words).collect();
            optionset::meanings(&texts)
        });
        all.flat_map(move |words| {
            let program = words.first().copied().unwrap_or_default();
            let is_restricted = policy.index.restricts_program(program);
            let program = [program.to_owned()];
            let rules = is_restricted.then(|| policy.rules_for_commands(&program));
            let rules = rules.into_iter().flatten();
            let rules = rules.filter(|rule| rule.decision > Decision::Allow);
            let rules = rules.filter_map(|rule| {
                let speaks = optionset::speaks_about(rule.command()?, &words);
                (speaks != Speaks::No).then_some((rule, speaks))
            });
            rules.collect::<Vec<_>>()
        })
    }

    /// An unknown option that may be another spelling of what a rule restricts.
    fn harm_of_unknown_option(&self) -> Option<Harm> {
        let is_open = |(rule, speaks)| match speaks {
            Speaks::Perhaps(at) => Some((rule, at)),
            _ => None,
        };
        let (rule, at): (&Rule, usize) = self.by_spelling().find_map(is_open)?;
        let why = format!(
            "it may be another spelling of what {} restricts",
            rule.at.text
        );
        Some(Harm::at(at, why))
    }

    /// If the default is deny, a command that another program runs is denied like the same command alone. Any of several words
    /// may be the program; if a rule matches one of them, the result is uncertain.
    fn or_denied_inside(&self, says: Says<'a>) -> Says<'a> {
        let is_open = says.decision() == Decision::Ask && !self.simple.guessed;
        if self.case.policy.default != Fallback::Deny || !is_open {
            return says;
        }
        let own = self.stripped.words.len();
        let mut inside = self.inside.iter().filter(|words| words.len() < own);
        let is_silent =
            |words: &Vec<Word>| rules_on(self.case, &[join(texts_of(words))]).is_empty();
        match inside.clone().next().is_some() && inside.all(is_silent) {
            true => Says::Verdict(self.case.by_default(|| false)),
            false => says,
        }
    }

    /// The verdict of path rules on the words of this command, and of those that it may run.
    fn restriction_by_places(&self) -> Option<Verdict> {
        if !self.case.policy.index.restricts_paths() {
            return None;
        }
        let restriction = |words: &[Word], named: &[Named]| {
            let by_words = places::restriction(self.case, words, named, self.directories);
            let by_directories = || changes::restriction(self.case, words, named, self.directories);
            by_words.or_else(by_directories)
        };
        let inside = self.inside.iter().filter_map(|words| {
            let named = places::named(self.case, words, self.directories);
            restriction(words, &named)
        });
        restriction(self.stripped.words, &self.named)
            .into_iter()
            .chain(inside)
            .max_by_key(|verdict| verdict.decision)
    }

    /// Most commands are plain words without wrappers. They have only one spelling, and one look-up of rules is enough.
    fn only_way_to_write(&self) -> Option<String> {
        let words = &self.simple.words;
        let texts = || texts_of(words);
        let plain = words
            .iter()
            .all(|word| !word.quoted && word.doubt.is_none())
            && self.stripped.words.len() == words.len()
            && !self.may_run_others
            && !self.has_restricted_options(texts())
            && words
                .get(1)
                .is_none_or(|word| !matches!(word.text.as_str(), "--no-pager" | "-P"))
            && self
                .simple
                .text
                .split([' ', '\t'])
                .filter(|word| !word.is_empty())
                .eq(texts());
        plain.then(|| join(texts()))
    }

    /// Every spelling of this command and of those that it may run.
    fn texts_to_restrict(&self) -> Vec<String> {
        let mut texts = vec![
            one_spaced(&self.simple.text),
            join(texts_of(&self.simple.words)),
            join(texts_of(self.stripped.words)),
        ];
        let own: Vec<&str> = texts_of(self.stripped.words).collect();
        self.add_variants(&own, &mut texts);
        if self.may_run_others {
            for words in shell::commands_within(self.simple.literal_words()) {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                self.add_variants(&words, &mut texts);
                texts.push(join(words.into_iter()));
            }
        }
        texts.sort_unstable();
        texts.dedup();
        texts
    }

    fn add_variants(&self, words: &[&str], texts: &mut Vec<String>) {
        if self.has_restricted_options(words.iter().copied()) {
            texts.extend(variants::of(words));
        }
    }

    /// Whether a command has options, and rules restrict some uses of its program.
    fn has_restricted_options<'w>(&self, mut words: impl Iterator<Item = &'w str>) -> bool {
        let index = &self.case.policy.index;
        words
            .next()
            .is_some_and(|program| index.restricts_program(program))
            && words.any(|word| word.starts_with('-'))
    }

    /// Every safe spelling of this command, without harmless wrappers.
    fn texts_to_allow(&self) -> Vec<String> {
        let words = self.stripped.words;
        let canonical: Vec<_> = words.iter().map(Word::canonical).collect();
        let mut texts = vec![join(canonical.iter().map(|word| word.as_ref()))];
        // It only prints to the output.
        if let [git, no_pager, rest @ ..] = canonical.as_slice()
            && git == "git"
            && (no_pager == "--no-pager" || no_pager == "-P")
        {
            let plain = std::iter::once(git).chain(rest).map(|word| word.as_ref());
            texts.push(join(plain));
        }
        // A backslash could join two words of the text into one.
        if !self.simple.text.contains('\\')
            && let Some(first) = words.first()
            && let Some(written) = self.simple.text.get(first.start - self.simple.start..)
        {
            texts.push(one_spaced(written));
        }
        texts.dedup();
        texts
    }

    fn allowance(&self, mut rules: Vec<&'a Rule>) -> Says<'a> {
        rules.retain(|rule| rule.decision == Decision::Allow);
        rules.extend(self.exact);
        if rules.is_empty() {
            return Says::Verdict(self.without_rule());
        }
        let harms = self.harms();
        // Only needed if there is harm: otherwise it does not matter what a wrapper runs.
        let inner = match harms.is_empty() {
            true => None,
            false => spelled::inner(self.stripped.words),
        };
        let harms_inside = inner.map(|(inner, needs)| (self.harms_inside(&inner), needs));
        let excused = |rule: &&&Rule| {
            let spelled_out = self.words_spelled_out_by(rule);
            let all = match &harms_inside {
                Some((inside, needs)) if *needs <= spelled_out => inside,
                _ => &harms,
            };
            all.iter().all(|harm| harm.at < spelled_out) && !self.leads_out_of(rule)
        };
        match rules.iter().find(excused) {
            Some(rule) => Says::Rule(rule),
            None => Says::Verdict(Verdict {
                decision: Decision::Ask,
                rule: rules.first().map(|rule| rule.at.clone()),
                why: self.harm_in_the_way(&rules, &harms).map_or_else(
                    || "`..` leads out of the directory that the rule names".to_owned(),
                    |harm| harm.why.clone(),
                ),
            }),
        }
    }

    /// The first harm that not even the most telling rule spells out.
    fn harm_in_the_way<'h>(&self, rules: &[&Rule], harms: &'h [Harm]) -> Option<&'h Harm> {
        let spelled_out = rules.iter().map(|rule| self.words_spelled_out_by(rule));
        let most = spelled_out.max().unwrap_or_default();
        let mut others = harms.iter().filter(|harm| harm.at >= most);
        others.next().or(harms.first())
    }

    /// The verdict if no rule allows it: the policy's default. A harmful command is never left to Claude Code.
    fn without_rule(&self) -> Verdict {
        let harms = match self.case.policy.default {
            Fallback::Claude => self.harms(),
            Fallback::Ask | Fallback::Deny => Vec::new(),
        };
        let verdict = self.case.by_default(|| self.only_reads());
        match harms.into_iter().next() {
            Some(harm) => self.case.not_allowed(verdict, harm.why),
            None => verdict,
        }
    }

    /// Whether it only reads inside the slot's directory.
    fn only_reads(&self) -> bool {
        reads::only_reads(
            self.case,
            self.simple,
            self.stripped.words,
            self.directories,
        ) && self.harms().is_empty()
    }

    /// How many words the rule spells out: its author meant those, but not necessarily what only its wildcard matches.
    fn words_spelled_out_by(&self, rule: &Rule) -> usize {
        match self.exact.is_some_and(|exact| exact.at == rule.at) {
            true => usize::MAX,
            false => rule.command().map_or(0, |pattern| pattern.literal_words()),
        }
    }

    /// Whether a word that a wildcard continues leaves, by `..`, the directory with which the rule begins it.
    fn leads_out_of(&self, rule: &Rule) -> bool {
        let goes_up = |word: &&Word| word.text.split('/').any(|name| name == "..");
        let mut words = self.stripped.words.iter().filter(goes_up).peekable();
        if words.peek().is_none() {
            return false;
        }
        let Some(pattern) = rule.command() else {
            return false;
        };
        words.any(|word| {
            pattern
                .before_stars()
                .any(|before| leads_out(&word.text, before))
        })
    }

    /// The harms of the command inside a wrapper, by their positions in the whole command.
    fn harms_inside(&self, inner: &Inner) -> Vec<Harm> {
        let (at, more_words_follow) = match inner {
            Inner::At(at) => (*at, false),
            Inner::WithMoreAt(at) => (*at, true),
            Inner::Nothing => return Vec::new(),
        };
        let words = &self.stripped.words[at..];
        let part = Part {
            fed: self.fed.clone(),
            named: places::named(self.case, words, self.directories),
            inside: &[],
            stripped: Stripped {
                words,
                more_words_follow: self.stripped.more_words_follow || more_words_follow,
            },
            ..*self
        };
        let mut harms = part.harms();
        for harm in &mut harms {
            harm.move_by(at);
        }
        harms
    }

    fn harms(&self) -> Vec<Harm> {
        let mut harms = harm::harms(self.stripped.words);
        harms.extend(places::protected(
            self.case,
            self.stripped.words,
            &self.named,
            self.directories,
        ));
        harms.extend(places::harm(
            self.case,
            self.stripped.words,
            self.directories,
        ));
        harms.extend(places::outside(
            self.case,
            self.stripped.words,
            &self.named,
            self.directories,
        ));
        for words in every_command(&self.stripped, self.inside) {
            harms.extend(git::harm(self.case, words, self.directories));
            harms.extend(git::discards(self.case, words, self.directories));
            harms.extend(links::harm(self.case, words, self.directories));
            harms.extend(containers::harms(self.case, words, self.directories));
            harms.extend(transfers::harm(self.case, words, self.directories));
            harms.extend(self.made.harm(self.case, words, self.directories));
        }
        harms.extend(self.harm_of_git_settings());
        harms.extend(harm::secrets(self.stripped.words));
        harms.extend(places::led_astray(
            self.case,
            self.stripped.words,
            &self.named,
        ));
        harms.extend(self.harm_of_unknown_option());
        harms.extend(self.harm_of_unknown_runner());
        harms.extend(self.harm_of_input());
        if self.stripped.more_words_follow {
            harms.extend(self.harm_of_unseen_words());
        }
        self.excuse(&mut harms);
        harms
    }

    /// A repository's own settings can make even `git diff` or `git status` run a program: an external diff, a text conversion, a
    /// filter, a file system monitor. A clone has none of them; a copied or unpacked repository may.
    fn harm_of_git_settings(&self) -> Option<Harm> {
        let name = self.stripped.words.first()?;
        if name.text != "git" {
            return None;
        }
        let runs = |setting: &&String| harm::git_runs(self.stripped.words, setting);
        let mut all = self.directories.all().iter();
        let setting = all.find_map(|cwd| {
            let settings = self.case.ground.git_programs(cwd);
            settings.iter().find(runs).cloned()
        })?;
        Some(Harm::whole(format!(
            "the repository's own setting `{setting}` has git run another program; see: git config --local --list"
        )))
    }

    /// An unknown program may run what its arguments name, so they must not name a restricted program.
    fn harm_of_unknown_runner(&self) -> Option<Harm> {
        let words = self.stripped.words;
        let name = words.first()?.text.as_str();
        if harm::is_known(name) {
            return None;
        }
        let restricted = (1..words.len()).find(|at| {
            let text = || join(texts_of(&words[*at..]));
            self.case.policy.index.restricts_program(&words[*at].text)
                && rules_on(self.case, &[text()])
                    .iter()
                    .any(|rule| rule.decision > Decision::Allow && rule.command().is_some())
        })?;
        let inner = &words[restricted].text;
        Some(Harm::whole(format!(
            "{name} may run {inner}, which a rule restricts"
        )))
    }

    /// A program that another one starts and that runs its input: no rule has seen that input.
    fn harm_of_input(&self) -> Option<Harm> {
        let own = self.simple.words.len();
        let mut inside = self.inside.iter().filter(|words| words.len() < own);
        let words = inside.find(|words| harm::runs_its_input(words))?;
        let name = &words.first()?.text;
        Some(Harm::whole(format!(
            "{name} runs what it reads from its input"
        )))
    }

    /// `xargs` passes unknown words. That is safe only for a program that only reads, with names of files whose directories are
    /// known. Other words could be options.
    fn harm_of_unseen_words(&self) -> Option<Harm> {
        let name = self
            .stripped
            .words
            .first()
            .map_or("", |name| name.text.as_str());
        let is_open = |source: &Source| source.is_open(self.case, self.stripped.words);
        let is_open = || self.fed.as_ref().is_some_and(is_open);
        let is_harmless =
            || !self.case.policy.index.restricts_paths() && only_counts(self.stripped.words);
        let only_lists = || {
            let mut options = texts_of(self.stripped.words).skip(1);
            name == "gofmt" && options.all(|option| matches!(option, "-l" | "-d" | "-e" | "-s"))
        };
        let safe = (harm::only_reads(name) || only_lists()) && (is_harmless() || is_open());
        (!safe).then(|| Harm::whole(format!("xargs passes unknown words to {name}")))
    }
}

/// Whether `word` begins as a rule says before a star, and then leaves the directory that the rule names.
fn leads_out(word: &str, (before, begins_word): (&str, bool)) -> bool {
    let begin = before.rsplit(' ').next().unwrap_or_default();
    let Some((directory, _)) = begin.rsplit_once('/') else {
        return false;
    };
    match word.strip_prefix(begin).filter(|_| begins_word) {
        Some(_) => climbs(&word[directory.len()..]),
        None => !begins_word && word.contains(begin),
    }
}

/// Whether a relative path goes up further than it went down.
fn climbs(way: &str) -> bool {
    let mut depth = 0_usize;
    way.split('/').any(|name| match name {
        "" | "." => false,
        ".." => match depth.checked_sub(1) {
            Some(less) => {
                depth = less;
                false
            }
            None => true,
        },
        _ => {
            depth += 1;
            false
        }
    })
}
