//! The verdict on a shell command. Each part is judged on its own and the strictest verdict wins; a command that can't be proven
//! safe is never allowed.

use super::judge::{Case, Explanation, PartVerdict, by_rule, strictest};
use super::pattern::{CommandPattern, collapse};
use super::rule::Rule;
use super::shell::{self, Redirect, Script, Simple, Stripped, Word};
use super::tools::Access;
use super::{Decision, Fallback, Verdict};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

mod aloud;
mod changes;
mod containers;
mod directories;
mod excuses;
mod fed;
mod git;
mod links;
mod made;
mod neutral;
mod optionset;
mod part;
mod places;
mod reads;
mod spelled;
mod spellings;
mod transfers;
mod trees;
mod variants;
pub use aloud::is_said;
use directories::Directories;
use made::Made;
use part::Part;
pub use spelled::never_allows;

/// How many levels of nested shells are judged (`sh -c "sh -c …"`). A deeper one becomes *ask*: no rule with a wildcard allows a
/// shell.
const DEEPEST: usize = 3;

/// The most scripts of one command line that are judged.
const MOST_SCRIPTS: usize = 8;

const NEEDS_NO_RULE: &str = "it needs no rule: it does nothing by itself";

pub fn judge(case: &Case<'_>, text: &str) -> Explanation {
    let directories = Directories::new(case.ask.place().to_owned());
    let mut explanation = judge_in(case, text, directories, 0);
    // Most calls run in the slot's directory itself; only for others the file system is asked.
    let is_elsewhere = || {
        !case
            .ground
            .place(".", case.ask.place())
            .is_within(&case.ground.cwd)
    };
    if case.ask.place() != case.ask.cwd && is_elsewhere() {
        // A program takes code and settings from the directory in which it runs.
        let why = "it runs outside the slot's directory".to_owned();
        explanation.verdict = case.not_allowed(explanation.verdict, why);
    }
    explanation
}

/// `depth` is the number of shells around this command.
fn judge_in(
    case: &Case<'_>,
    text: &str,
    mut directories: Directories,
    depth: usize,
) -> Explanation {
    let script = shell::read(text);
    let whole = one_spaced(text);
    let exact = case
        .policy
        .rules()
        .find(|rule| allows_exactly(rule, &whole));
    let line = Line {
        case,
        text,
        commands: script.commands.iter().map(Command::new).collect(),
        is_proven: script.is_proven,
        exact,
        depth,
    };
    let (mut parts, made) = line.parts(&mut directories);
    parts.extend(beside_commands(case, &script, &directories, &made));
    let some_count = parts.iter().any(|part| !part.is_neutral);
    let shown = parts.iter().filter(|_| case.explains);
    let shown = shown.map(|part| part.shown(some_count)).collect();
    let verdict = strictest_part(&parts).unwrap_or_else(|| case.by_tool());
    let mut verdict = or_by_rule_on_whole(case, verdict, &whole);
    let of_whole = || doubt_of_the_whole(case, &line.commands, &directories);
    if let Some(why) = script.doubt.clone().or_else(of_whole) {
        verdict = case.not_allowed(verdict, why);
    }
    Explanation {
        verdict,
        parts: shown,
    }
}

/// A command line to judge.
struct Line<'a> {
    case: &'a Case<'a>,
    text: &'a str,
    commands: Vec<Command<'a>>,
    is_proven: bool,
    /// A rule that spells out the whole command line.
    exact: Option<&'a Rule>,
    depth: usize,
}

impl<'a> Line<'a> {
    /// The verdicts on its commands, and the files that they may create. `directories` follows each `cd`.
    fn parts(&self, directories: &mut Directories) -> (Vec<Found<'_>>, Made) {
        let ground = &self.case.ground;
        let mut made = Made::default();
        // What a loop does at its end comes before what it does at its next beginning.
        let loops = self.is_proven
            && ["for ", "while ", "until "]
                .iter()
                .any(|w| self.text.contains(w));
        let is_before = |command: &&Command<'_>| loops || command.is_piped_into(self.text);
        for command in self.commands.iter().filter(is_before) {
            made.note(command, directories, ground);
        }
        let mut parts: Vec<Found<'_>> = Vec::new();
        // The same command is judged once per directory and per set of arguments: the arguments in a script may differ, and so
        // may those that `xargs` adds.
        let mut known: HashMap<&str, Option<usize>> = HashMap::new();
        for (at, command) in self.commands.iter().enumerate() {
            let simple = command.simple;
            let text = simple.text.as_str();
            let is_kept = !simple.guessed && !self.is_proven && !command.stripped.more_words_follow;
            let says = match known.get(text).filter(|_| is_kept) {
                Some(at) => at.map(|at| parts[at].says.clone()),
                None => self.says(at, directories, &made),
            };
            if is_kept {
                let place = says.as_ref().map(|_| parts.len());
                known.entry(text).or_insert(place);
            }
            parts.extend(says.map(|says| self.found(command, says)));
            let moves = directories.follow(&simple.words, ground);
            if !self.is_followed_by_and(at) {
                directories.lose_current();
            }
            if made.note(command, directories, ground) || moves {
                known.clear();
            }
        }
        (parts, made)
    }

    /// Whether the next command runs only if this one succeeds, in the same shell.
    fn is_followed_by_and(&self, at: usize) -> bool {
        let Some(next) = self.commands.get(at + 1) else {
            return false;
        };
        let simple = self.commands[at].simple;
        let between = self
            .text
            .get(simple.start + simple.text.len()..next.simple.start);
        let between = between.unwrap_or_default().split_whitespace();
        let mut signs =
            between.filter(|sign| !matches!(*sign, "2>&1" | ">/dev/null" | "2>/dev/null"));
        let moves = |command: &Command<'_>| {
            let name = command.stripped.words.first();
            name.is_none_or(|name| matches!(name.text.as_str(), "cd" | "pushd" | "popd"))
        };
        match (signs.next(), signs.next()) {
            (Some("&&"), None) => true,
            // The parts of a pipe do not change the directory of the shell.
            (Some("|"), None) => !moves(next) && !moves(&self.commands[at]),
            _ => false,
        }
    }

    fn says(&self, at: usize, directories: &Directories, made: &Made) -> Option<Says<'_>> {
        let command = &self.commands[at];
        let fed = || fed::source(self.case, &self.commands, at, self.text, directories);
        let fed = command.stripped.more_words_follow.then(fed).flatten();
        let part = Part::new(self.case, command, directories, made, self.exact).fed_by(fed);
        let says = part.verdict()?;
        Some(with_scripts(
            self.case,
            command,
            directories,
            self.depth,
            says,
        ))
    }

    fn found<'s>(&'s self, command: &'s Command<'_>, says: Says<'s>) -> Found<'s> {
        let is_known = |word: &Word| word.doubt.is_none() && !word.globs;
        let is_sure = || !command.simple.guessed && command.simple.words.iter().all(is_known);
        let is_neutral = (self.is_proven || is_sure())
            && self.case.policy.default != Fallback::Deny
            && neutral::is_neutral(&command.simple.words);
        Found {
            text: &command.simple.text,
            opens: None,
            is_neutral: says.is_open() && (is_neutral || says.only_reads(self.case)),
            says,
        }
    }
}

/// What the shell does itself: the files that it opens, and statements that are not commands.
fn beside_commands<'s>(
    case: &Case<'_>,
    script: &'s Script,
    directories: &Directories,
    made: &Made,
) -> Vec<Found<'s>> {
    let opens = |redirect: &Redirect| {
        let verdict = match script.is_proven {
            true => places::opened(case, redirect, directories),
            // As strict as in a script that is proven: without a rule for the file the call is denied.
            false if case.policy.default == Fallback::Deny => {
                let opened = places::opened(case, redirect, directories);
                let restricted = places::redirection(case, redirect, directories);
                let both = restricted.into_iter().chain([opened]);
                return both.max_by_key(|verdict| verdict.decision);
            }
            false => return places::redirection(case, redirect, directories),
        };
        let places = directories.places(&redirect.target, &case.ground);
        let doubt = places.iter().find_map(|place| made.doubt(place));
        Some(match doubt {
            Some(why) => case.not_allowed(verdict, why),
            None => verdict,
        })
    };
    let redirects = script.redirects.iter();
    let redirects = redirects.filter_map(|redirect| {
        Some((
            redirect.target.text.as_str(),
            Some(redirect.access),
            opens(redirect)?,
        ))
    });
    // A statement that does nothing by itself needs a rule only if every call does. In a script that is not proven, the doubt
    // decides: it says more than that no rule speaks about a test.
    let is_open = || case.by_tool().rule.is_none();
    let counts = match case.policy.default {
        Fallback::Deny => true,
        Fallback::Ask | Fallback::Claude => !script.is_proven && !is_open(),
    };
    let statement = script.statement.as_deref().filter(|_| counts);
    let statement = statement.map(|text| (text, None, case.by_tool()));
    let found = |(text, opens, verdict)| {
        let says = Says::Verdict(verdict);
        Found {
            text,
            opens,
            is_neutral: says.only_reads(case),
            says,
        }
    };
    redirects.chain(statement).map(found).collect()
}

/// The verdict, or a stricter one if a rule matches the command line as a whole.
fn or_by_rule_on_whole(case: &Case<'_>, verdict: Verdict, whole: &String) -> Verdict {
    let on_whole = strictest(&rules_on(case, std::slice::from_ref(whole)));
    match on_whole.filter(|rule| rule.decision > verdict.decision) {
        Some(rule) => by_rule(rule),
        None => verdict,
    }
}

/// Adds the verdicts on the scripts that a shell in the command runs, unless a rule allows that shell together with its script.
fn with_scripts<'a>(
    case: &Case<'_>,
    command: &Command<'_>,
    directories: &Directories,
    depth: usize,
    says: Says<'a>,
) -> Says<'a> {
    if depth == DEEPEST || says.decision() == Decision::Allow || !command.may_run_others {
        return says;
    }
    let scripts = shell::scripts_within(command.simple.literal_words());
    let verdicts = scripts
        .iter()
        .take(MOST_SCRIPTS)
        .map(|text| judge_in(case, text, directories.clone(), depth + 1).verdict);
    match verdicts.max_by_key(|verdict| verdict.decision) {
        Some(verdict) if verdict.decision > says.decision() => Says::Verdict(verdict),
        _ => says,
    }
}

/// The commands that a wrapper or a shell may run, as lists of words.
fn commands_inside(simple: &Simple) -> Vec<Vec<Word>> {
    let word = |text: &String| Word {
        text: text.clone(),
        globs: text.contains(['*', '?', '[']),
        doubt: (text.starts_with('~') && !shell::names_home(text)).then_some(shell::TILDE),
        ..Word::default()
    };
    // The last words of the command itself are known better.
    let own = |words: &[String]| {
        let at = simple.words.len().checked_sub(words.len())?;
        let own = &simple.words[at..];
        let is_it = texts_of(own).eq(words.iter().map(String::as_str));
        is_it.then(|| own.to_vec())
    };
    shell::commands_within(simple.literal_words())
        .iter()
        .map(|words| own(words).unwrap_or_else(|| words.iter().map(word).collect()))
        .collect()
}

/// A simple command and the commands that it may run, parsed once and used by several checks.
struct Command<'a> {
    simple: &'a Simple,
    /// The command without harmless wrappers.
    stripped: Stripped<'a>,
    /// Whether it must be searched for other commands.
    may_run_others: bool,
    /// The commands that it may run itself.
    inside: Vec<Vec<Word>>,
}

impl<'a> Command<'a> {
    fn new(simple: &'a Simple) -> Command<'a> {
        let may_run_others = simple.may_run_others();
        Command {
            simple,
            stripped: shell::strip(&simple.words),
            may_run_others,
            inside: match may_run_others {
                true => commands_inside(simple),
                false => Vec::new(),
            },
        }
    }

    /// Whether the command reads a pipe. The parts of a pipe run at the same time, so a later part may finish its work before an
    /// earlier one.
    fn is_piped_into(&self, whole: &str) -> bool {
        let before = whole.get(..self.simple.start).unwrap_or_default();
        let before = before.trim_end();
        before.ends_with('|') && !before.ends_with("||")
    }
}

/// The command itself and those that it may run.
fn every_command<'c>(
    stripped: &Stripped<'c>,
    inside: &'c [Vec<Word>],
) -> impl Iterator<Item = &'c [Word]> {
    std::iter::once(stripped.words).chain(inside.iter().map(Vec::as_slice))
}

/// The verdict on one part of a command.
struct Found<'a> {
    text: &'a str,
    says: Says<'a>,
    /// How the shell accesses the file, if the part is a file that the shell opens.
    opens: Option<Access>,
    /// No rule matches the part, and it does nothing that needs a rule.
    is_neutral: bool,
}

impl Found<'_> {
    /// With its verdict. `some_count`: other parts decide, and a part that does nothing by itself needs no rule beside them.
    fn shown(&self, some_count: bool) -> PartVerdict {
        let verdict = match some_count && self.is_neutral && self.says.decision() == Decision::Ask {
            true => Verdict::without_rule(Decision::Silent, NEEDS_NO_RULE),
            false => self.says.verdict(),
        };
        PartVerdict {
            text: self.text.to_owned(),
            verdict,
            opens: self.opens,
            is_neutral: self.is_neutral,
        }
    }
}

/// A verdict. If a rule decides, its sentence is not written yet: for most parts nobody reads it.
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

    /// Whether no rule matches.
    fn is_open(&self) -> bool {
        matches!(self, Says::Verdict(Verdict { rule: None, .. }))
    }

    /// Whether no rule matches, and the part only reads inside the slot's directory.
    fn only_reads(&self, case: &Case<'_>) -> bool {
        let is_silent = self.is_open() && self.decision() == Decision::Silent;
        is_silent && case.policy.default == Fallback::Ask
    }

    fn verdict(&self) -> Verdict {
        match self {
            Says::Rule(rule) => by_rule(rule),
            Says::Verdict(verdict) => verdict.clone(),
        }
    }
}

/// Collapses runs of spaces to one. Line breaks stay, because they end a command.
fn one_spaced(text: &str) -> String {
    let text = text.trim();
    match text.contains('\t') || text.contains("  ") {
        true => collapse(text),
        false => text.to_owned(),
    }
}

fn allows_exactly(rule: &Rule, whole: &str) -> bool {
    let is_it = |pattern: &CommandPattern| {
        pattern.is_exact() && pattern.matches(whole)
            || pattern.text() == whole && has_quoted_stars_alone(whole)
    };
    rule.decision == Decision::Allow && rule.command().is_some_and(is_it)
}

/// Whether a command is one of `find`, and all its stars are in quotes: a rule that has them too spells it out.
fn has_quoted_stars_alone(text: &str) -> bool {
    let mut pieces = text.split('\'').enumerate();
    text.starts_with("find ")
        && !text.contains(['"', '\\', '$', '`', ';', '|', '&', '>', '<', '\n'])
        && text.matches('\'').count().is_multiple_of(2)
        && pieces.all(|(at, piece)| at % 2 == 1 || !piece.contains(['*', '?', '[']))
}

/// The rules in force that match one of these spellings of a command.
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
    // If a rule matches one part, the parts that do nothing by themselves do not count.
    let is_counted = |part: &&Found<'_>| !part.is_neutral;
    let counted = || parts.iter().filter(is_counted);
    let most = counted().map(|part| part.says.decision()).max();
    let most = most.or_else(|| parts.iter().map(|part| part.says.decision()).max())?;
    let all = || {
        counted()
            .chain(parts)
            .filter(|part| part.says.decision() == most)
    };
    // A rule says more than that there is none.
    let by_rule = all().find(|part| !part.says.is_open());
    let part = by_rule.or_else(|| all().next())?;
    let mut verdict = part.says.verdict();
    if parts.len() > 1 {
        verdict.why = match most {
            Decision::Allow => "each part is allowed".to_owned(),
            Decision::Silent | Decision::Ask | Decision::Deny => {
                format!("`{}`: {} (the strictest part wins)", part.text, verdict.why)
            }
        };
    }
    Some(verdict)
}

/// The doubts about the command as a whole, which no single part shows.
fn doubt_of_the_whole(
    case: &Case<'_>,
    commands: &[Command<'_>],
    directories: &Directories,
) -> Option<String> {
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
    // Another directory can have a git configuration that runs programs, unless it belongs to the slot's own repository and the
    // command does not create it.
    let is_own = |cwd: &PathBuf| case.ground.is_of_same_repository(cwd);
    let is_known = || {
        directories.all().iter().all(is_own) && !commands.iter().any(excuses::brings_a_repository)
    };
    (runs(&["cd", "pushd", "popd"]) && runs(&["git"]) && !is_known()).then(|| {
        "it changes the directory and then runs git, which obeys what is configured there"
            .to_owned()
    })
}

fn texts_of(words: &[Word]) -> impl Iterator<Item = &str> {
    words.iter().map(|word| word.text.as_str())
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    // Long enough for most commands.
    let mut text = String::with_capacity(64);
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}
