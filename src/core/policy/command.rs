//! The verdict on a shell command: each part on its own, the strictest wins, and what can't be proven is
//! never allowed.

use super::judge::{Case, Explanation, PartVerdict, by_rule, strictest};
use super::pattern::collapse;
use super::rule::Rule;
use super::shell::{self, Redirect, Script, Simple, Stripped, Word};
use super::tools::Access;
use super::{Decision, Fallback, Verdict};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

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
mod transfers;
mod trees;
mod variants;
use directories::Directories;
use made::Made;
use part::Part;
pub use spelled::never_allows;

/// How deep a shell inside a command is followed. What is nested deeper is asked about anyway: no rule with a wildcard
/// allows a shell.
const DEEPEST: usize = 3;

/// The most scripts of one command that are judged.
const MOST_SCRIPTS: usize = 8;

pub fn judge(case: &Case<'_>, text: &str) -> Explanation {
    let directories = Directories::new(case.ask.place().to_owned());
    judge_in(case, text, directories, 0)
}

/// `depth` is how many shells are around it.
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
    let shown = parts.iter().filter(|_| case.explains);
    let shown = shown.map(Found::shown).collect();
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

/// A command line that is judged.
struct Line<'a> {
    case: &'a Case<'a>,
    text: &'a str,
    commands: Vec<Command<'a>>,
    is_proven: bool,
    /// A rule that spells it out.
    exact: Option<&'a Rule>,
    depth: usize,
}

impl<'a> Line<'a> {
    /// The verdicts on its commands, and what they may make; `directories` goes where they lead.
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
        // The same command is judged once, as long as it runs in the same directory, and has the same words: those of a
        // script may differ, and so do those that `xargs` adds.
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

    /// Whether the next command runs only if this one has succeeded, and in the same shell.
    fn is_followed_by_and(&self, at: usize) -> bool {
        let Some(next) = self.commands.get(at + 1) else {
            return false;
        };
        let simple = self.commands[at].simple;
        let between = self
            .text
            .get(simple.start + simple.text.len()..next.simple.start);
        between.is_some_and(|between| between.trim() == "&&")
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
        let is_neutral = self.is_proven
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

/// What the shell does itself: files that it opens, and statements that are no commands.
fn beside_commands<'s>(
    case: &Case<'_>,
    script: &'s Script,
    directories: &Directories,
    made: &Made,
) -> Vec<Found<'s>> {
    let opens = |redirect: &Redirect| {
        let verdict = match script.is_proven {
            true => places::opened(case, redirect, directories),
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
    // A statement that does nothing by itself needs a rule only if everything does.
    let counts = !script.is_proven || case.policy.default == Fallback::Deny;
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

/// The verdict, or what a stricter rule says that names the command line as a whole.
fn or_by_rule_on_whole(case: &Case<'_>, verdict: Verdict, whole: &String) -> Verdict {
    let on_whole = strictest(&rules_on(case, std::slice::from_ref(whole)));
    match on_whole.filter(|rule| rule.decision > verdict.decision) {
        Some(rule) => by_rule(rule),
        None => verdict,
    }
}

/// What a shell in a command is told to run counts like the rest of the command, unless a rule allows that shell with
/// what it runs.
fn with_scripts<'a>(
    case: &Case<'_>,
    command: &Command<'_>,
    directories: &Directories,
    depth: usize,
    says: Says<'a>,
) -> Says<'a> {
    if depth == DEEPEST || says.decision() == Decision::Allow || !command.simple.may_run_others() {
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

/// The commands that a wrapper or a shell may run, as words.
fn commands_inside(simple: &Simple) -> Vec<Vec<Word>> {
    if !simple.may_run_others() {
        return Vec::new();
    }
    let word = |text: &String| Word {
        text: text.clone(),
        globs: text.contains(['*', '?', '[']),
        doubt: (text.starts_with('~') && !shell::names_home(text)).then_some(shell::TILDE),
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
    /// What the shell does with the file, if it is one that the shell opens.
    opens: Option<Access>,
    /// No rule speaks about it, and it does nothing that needs one.
    is_neutral: bool,
}

impl Found<'_> {
    fn shown(&self) -> PartVerdict {
        PartVerdict {
            text: self.text.to_owned(),
            verdict: self.says.verdict(),
            opens: self.opens,
            is_neutral: self.is_neutral,
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

    /// Whether no rule speaks.
    fn is_open(&self) -> bool {
        matches!(self, Says::Verdict(Verdict { rule: None, .. }))
    }

    /// Whether no rule speaks, and nothing but reading in the slot's directory happens.
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

/// Runs of blanks as one, line breaks kept: they end a command.
fn one_spaced(text: &str) -> String {
    let text = text.trim();
    match text.contains('\t') || text.contains("  ") {
        true => collapse(text),
        false => text.to_owned(),
    }
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
    // Beside a part that a rule speaks about, one that does nothing by itself does not count.
    let is_counted = |part: &&Found<'_>| !part.is_neutral;
    let counted = || parts.iter().filter(is_counted);
    let most = counted().map(|part| part.says.decision()).max();
    let most = most.or_else(|| parts.iter().map(|part| part.says.decision()).max())?;
    let mut all = counted().chain(parts);
    let part = all.find(|part| part.says.decision() == most)?;
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

/// What no part shows by itself.
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
    // A directory can bring a repository with programs of its own in its configuration, unless it is part of the slot's
    // own, and nothing in the command puts one there.
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
    let mut text = String::new();
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}
