//! The verdict on a shell command: each part on its own, the strictest wins, and what can't be proven is
//! never allowed.

use super::harm::{self, Harm};
use super::judge::{Case, Explanation, PartVerdict, by_rule, strictest};
use super::rule::Rule;
use super::shell::{self, Simple, Stripped, Word};
use super::{Decision, Verdict};
use serde_json::Value;
use std::collections::HashMap;

mod places;
mod spelled;
mod transfers;
mod trees;
mod variants;
use places::{Directories, Named};
use spelled::Inner;
pub use spelled::never_allows;
use transfers::Made;

pub fn judge(case: &Case<'_>, text: &str) -> Explanation {
    let script = shell::read(text);
    let whole = one_spaced(text);
    let exact = case
        .policy
        .rules()
        .find(|rule| allows_exactly(rule, &whole));
    let mut directories = Directories::new(case.ask.place().to_owned());
    let commands: Vec<Command<'_>> = script.commands.iter().map(Command::new).collect();
    let mut made = Made::default();
    for command in commands
        .iter()
        .filter(|command| command.is_piped_into(text))
    {
        made.note(command, &directories, &case.ground);
    }
    let mut parts: Vec<Found<'_>> = Vec::new();
    // The same command is judged once, as long as it runs in the same directory.
    let mut known: HashMap<&str, Option<usize>> = HashMap::new();
    for command in &commands {
        let simple = command.simple;
        let text = simple.text.as_str();
        let says = match known.get(text).filter(|_| !simple.guessed) {
            Some(at) => at.map(|at| parts[at].says.clone()),
            None => Part::new(case, command, &directories, &made, exact).verdict(),
        };
        if !simple.guessed {
            known
                .entry(text)
                .or_insert(says.as_ref().map(|_| parts.len()));
        }
        parts.extend(says.map(|says| Found { text, says }));
        let moves = directories.follow(&simple.words, &case.ground);
        if made.note(command, &directories, &case.ground) || moves {
            known.clear();
        }
    }
    for redirect in &script.redirects {
        if let Some(verdict) = places::redirection(case, redirect, &directories) {
            let (text, says) = (&redirect.target.text, Says::Verdict(verdict));
            parts.push(Found { text, says });
        }
    }
    let shown = parts.iter().filter(|_| case.explains);
    let shown = shown.map(Found::shown).collect();
    let mut verdict = strictest_part(&parts).unwrap_or_else(|| case.by_rules(|_| false));
    let on_whole = strictest(&rules_on(case, std::slice::from_ref(&whole)));
    if let Some(rule) = on_whole.filter(|rule| rule.decision > verdict.decision) {
        verdict = by_rule(rule);
    }
    if let Some(why) = script.doubt.or_else(|| doubt_of_the_whole(case, &commands)) {
        verdict = case.not_allowed(verdict, why);
    }
    Explanation {
        verdict,
        parts: shown,
    }
}

/// The commands that a wrapper or a shell may run, as words.
fn commands_inside(simple: &Simple) -> Vec<Vec<Word>> {
    if !simple.may_run_others() {
        return Vec::new();
    }
    let word = |text: &String| Word {
        text: text.clone(),
        globs: text.contains(['*', '?', '[']),
        ..Word::default()
    };
    shell::commands_within(simple.literal_words())
        .iter()
        .map(|words| words.iter().map(word).collect())
        .collect()
}

/// A simple command, and what it runs: taken apart once, and looked at by many.
struct Command<'a> {
    simple: &'a Simple,
    /// Without harmless wrappers.
    stripped: Stripped<'a>,
    /// The commands that it may run in turn.
    inside: Vec<Vec<Word>>,
}

impl<'a> Command<'a> {
    fn new(simple: &'a Simple) -> Command<'a> {
        Command {
            simple,
            stripped: shell::strip(&simple.words),
            inside: commands_inside(simple),
        }
    }

    /// The parts of a pipe run at the same time, so one may do its work before those that stand in front of it.
    fn is_piped_into(&self, whole: &str) -> bool {
        let before = whole.get(..self.simple.start).unwrap_or_default();
        let before = before.trim_end();
        before.ends_with('|') && !before.ends_with("||")
    }
}

/// A command itself, and those that it may run.
fn every_command<'c>(
    stripped: &Stripped<'c>,
    inside: &'c [Vec<Word>],
) -> impl Iterator<Item = &'c [Word]> {
    std::iter::once(stripped.words).chain(inside.iter().map(Vec::as_slice))
}

/// What was found on a part of a command.
struct Found<'a> {
    text: &'a str,
    says: Says<'a>,
}

impl Found<'_> {
    fn shown(&self) -> PartVerdict {
        PartVerdict {
            text: self.text.to_owned(),
            verdict: self.says.verdict(),
        }
    }
}

/// A verdict, as yet without its words where a rule has decided: those of most parts are never read.
#[derive(Clone)]
enum Says<'a> {
    Rule(&'a Rule),
    Verdict(Verdict),
}

impl Says<'_> {
    fn decision(&self) -> Decision {
        match self {
            Says::Rule(rule) => rule.decision,
            Says::Verdict(verdict) => verdict.decision,
        }
    }

    fn verdict(&self) -> Verdict {
        match self {
            Says::Rule(rule) => by_rule(rule),
            Says::Verdict(verdict) => verdict.clone(),
        }
    }
}

/// Runs of blanks as one, line breaks kept: they end a command.
fn one_spaced(text: &str) -> String {
    let text = text.trim();
    if !text.contains('\t') && !text.contains("  ") {
        return text.to_owned();
    }
    join(text.split([' ', '\t']).filter(|word| !word.is_empty()))
}

fn allows_exactly(rule: &Rule, whole: &str) -> bool {
    rule.decision == Decision::Allow
        && rule
            .command()
            .is_some_and(|pattern| pattern.is_exact() && pattern.matches(whole))
}

/// The rules in force that speak about one of these ways to write a command.
fn rules_on<'a>(case: &'a Case<'_>, texts: &[String]) -> Vec<&'a Rule> {
    let covered = |rule: &&Rule| rule.covers_tool(&case.ask.tool) || covers_any(rule, texts);
    case.nearest_only(
        case.policy
            .rules_for_commands(texts)
            .filter(covered)
            .collect(),
    )
}

fn covers_any(rule: &Rule, texts: &[String]) -> bool {
    rule.command()
        .is_some_and(|pattern| texts.iter().any(|text| pattern.matches(text)))
}

fn strictest_part(parts: &[Found<'_>]) -> Option<Verdict> {
    let most = parts.iter().map(|part| part.says.decision()).max()?;
    let part = parts.iter().find(|part| part.says.decision() == most)?;
    let mut verdict = part.says.verdict();
    if parts.len() > 1 {
        verdict.why = match most {
            Decision::Allow => "each part is allowed".to_owned(),
            Decision::Ask | Decision::Deny => {
                format!("`{}`: {} (the strictest part wins)", part.text, verdict.why)
            }
        };
    }
    Some(verdict)
}

/// What no part shows by itself.
fn doubt_of_the_whole(case: &Case<'_>, commands: &[Command<'_>]) -> Option<String> {
    if case
        .ask
        .input
        .get("dangerouslyDisableSandbox")
        .is_some_and(|flag| flag != &Value::Bool(false))
    {
        return Some("it asks to run outside the sandbox".to_owned());
    }
    let runs = |names: &[&str]| {
        let mut first = commands
            .iter()
            .map(|command| command.stripped.words.first());
        first.any(|name| name.is_some_and(|name| names.contains(&name.text.as_str())))
    };
    // A directory can bring a repository with programs of its own in its configuration.
    (runs(&["cd", "pushd", "popd"]) && runs(&["git"])).then(|| {
        "it changes the directory and then runs git, which obeys what is configured there"
            .to_owned()
    })
}

/// One simple command of a command line.
struct Part<'a, 'd> {
    case: &'a Case<'a>,
    simple: &'a Simple,
    stripped: Stripped<'a>,
    directories: &'d Directories,
    /// What the parts before it may have made.
    made: &'d Made,
    /// The places that its words may name.
    named: Vec<Named>,
    /// The commands that it may run in turn.
    inside: &'a [Vec<Word>],
    /// A rule that spells out the whole command line.
    exact: Option<&'a Rule>,
}

impl<'a, 'd> Part<'a, 'd> {
    fn new(
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
            inside: &command.inside,
            exact,
        }
    }

    /// None where it may be no command, and no rule restricts it if it is one.
    fn verdict(&self) -> Option<Says<'a>> {
        let only_way = self.only_way_to_write();
        let rules = match &only_way {
            Some(text) => rules_on(self.case, std::slice::from_ref(text)),
            None => rules_on(self.case, &self.texts_to_restrict()),
        };
        let restricted = strictest(&rules)
            .filter(|rule| rule.decision > Decision::Allow)
            .map(Says::Rule);
        let by_places = places::restriction(
            self.case,
            self.stripped.words,
            &self.named,
            self.directories,
        );
        let by_trees = every_command(&self.stripped, self.inside)
            .find_map(|words| trees::restriction(self.case, words, self.directories));
        match restricted
            .into_iter()
            .chain(by_places.into_iter().chain(by_trees).map(Says::Verdict))
            .max_by_key(Says::decision)
        {
            None if self.simple.guessed => None,
            None if only_way.is_some() => Some(self.allowance(rules)),
            None => Some(self.allowance(rules_on(self.case, &self.texts_to_allow()))),
            strictest => strictest,
        }
    }

    /// Most commands are plain words with nothing around them: there is one way to write those, and their rules
    /// are looked for once.
    fn only_way_to_write(&self) -> Option<String> {
        let words = &self.simple.words;
        let texts = || texts_of(words);
        let plain = words
            .iter()
            .all(|word| !word.quoted && word.doubt.is_none())
            && self.stripped.words.len() == words.len()
            && !self.simple.may_run_others()
            && !self.has_restricted_options(texts())
            && self
                .simple
                .text
                .split([' ', '\t'])
                .filter(|word| !word.is_empty())
                .eq(texts());
        plain.then(|| join(texts()))
    }

    /// Every way to write this command and those that it would run.
    fn texts_to_restrict(&self) -> Vec<String> {
        let mut texts = vec![
            one_spaced(&self.simple.text),
            join(texts_of(&self.simple.words)),
        ];
        let own: Vec<&str> = texts_of(self.stripped.words).collect();
        self.add_variants(&own, &mut texts);
        if self.simple.may_run_others() {
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

    /// Whether a command has options, and rules restrict some ways to run its program.
    fn has_restricted_options<'w>(&self, mut words: impl Iterator<Item = &'w str>) -> bool {
        let index = &self.case.policy.index;
        words
            .next()
            .is_some_and(|program| index.restricts_program(program))
            && words.any(|word| word.starts_with('-'))
    }

    /// Every safe way to write this command, harmless wrappers taken off.
    fn texts_to_allow(&self) -> Vec<String> {
        let words = self.stripped.words;
        let canonical: Vec<_> = words.iter().map(Word::canonical).collect();
        let mut texts = vec![join(canonical.iter().map(|word| word.as_ref()))];
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
            return Says::Verdict(self.case.silent());
        }
        let harms = self.harms();
        // Looked for where a rule may need it: what a wrapper runs is nobody's concern where nothing is harmful.
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
                why: harms.first().map_or_else(
                    || "`..` leads out of the directory that the rule names".to_owned(),
                    |harm| harm.why.clone(),
                ),
            }),
        }
    }

    /// What a rule names itself was meant; what only its wildcard lets in was not.
    fn words_spelled_out_by(&self, rule: &Rule) -> usize {
        match self.exact.is_some_and(|exact| exact.at == rule.at) {
            true => usize::MAX,
            false => rule.command().map_or(0, |pattern| pattern.literal_words()),
        }
    }

    /// Whether a word that a wildcard continues goes up, out of the directory with which the rule begins it.
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

    /// The harms of what a wrapper runs, by the words of the whole.
    fn harms_inside(&self, inner: &Inner) -> Vec<Harm> {
        let (at, more_words_follow) = match inner {
            Inner::At(at) => (*at, false),
            Inner::WithMoreAt(at) => (*at, true),
            Inner::Nothing => return Vec::new(),
        };
        let words = &self.stripped.words[at..];
        let part = Part {
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
            harms.extend(transfers::harm(self.case, words, self.directories));
            harms.extend(self.made.harm(self.case, words, self.directories));
        }
        harms.extend(harm::secrets(self.stripped.words));
        harms.extend(self.harm_of_unknown_runner());
        if self.stripped.more_words_follow {
            harms.extend(self.harm_of_unseen_words());
        }
        harms
    }

    /// A program of which nothing is known may run what its arguments name, so a restricted program must not be
    /// among them.
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

    /// `xargs` hands over words that are not known: fine only for a program that does nothing but read.
    fn harm_of_unseen_words(&self) -> Option<Harm> {
        let name = self
            .stripped
            .words
            .first()
            .map_or("", |name| name.text.as_str());
        let safe = harm::only_reads(name) && !self.case.policy.index.restricts_paths();
        (!safe).then(|| Harm::whole(format!("xargs hands words to {name} that are not known")))
    }
}

/// Whether `word` begins as a rule says before a star, and leaves the directory that is named there.
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

/// Whether a way goes up further than it went down.
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

fn texts_of(words: &[Word]) -> impl Iterator<Item = &str> {
    words.iter().map(|word| word.text.as_str())
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}
