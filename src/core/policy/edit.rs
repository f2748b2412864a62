//! Adds a rule to a policy file: the narrowest one for a call that a person has confirmed.

use super::ground::Ground;
use super::hosts::host_of;
use super::paths::{LexicalPaths, Paths, exact_pattern};
use super::pattern::{CommandPattern, Wildcard};
use super::protected::Protected;
use super::rule::{Dialect, Level, Meaning, Rule};
use super::tools::{self, Access, Subject};
use super::{Ask, Decision, PartVerdict, Policy, RuleRef, Verdict, decide, explain, harm, shell};
use crate::core::text::diagnostic::Problem;
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Value};

/// The narrowest rule that would allow this call next time, such as `Bash(cargo test --all)`. `None` if no rule could: the
/// command can't be proven safe, the path is protected, or the tool is unknown or a question.
pub fn narrow_rule_for(ask: &Ask) -> Option<String> {
    let text = candidate(ask)?;
    let file = Path::new("");
    let policy = Policy::asking(file, file).with_allow_rule(&text)?;
    let allowed = decide(&policy, ask, &LexicalPaths).decision == Decision::Allow;
    allowed.then_some(text)
}

/// The narrowest rules that would allow this call, one for each part that is not allowed yet. `None` if rules can't allow it, or
/// if it needs no rule.
pub fn rules_that_allow(policy: &Policy, ask: &Ask, paths: &dyn Paths) -> Option<Vec<String>> {
    let explanation = explain(policy, ask, paths);
    if explanation.verdict.decision != Decision::Ask {
        return None;
    }
    let is_in_the_way = |part: &&PartVerdict| {
        part.verdict.decision > Decision::Allow && part.verdict.rule.is_none() && !part.is_neutral
    };
    let parts = explanation.parts.iter().filter(is_in_the_way);
    let mut rules: Vec<String> = parts.filter_map(|part| rule_for_part(part, ask)).collect();
    rules.sort_unstable();
    rules.dedup();
    if rules.is_empty() {
        rules.extend(candidate(ask));
    }
    let mut with_rules = policy.clone();
    for rule in &rules {
        with_rules = with_rules.with_allow_rule(rule)?;
    }
    let allowed = decide(&with_rules, ask, paths).decision == Decision::Allow;
    (allowed && !rules.is_empty()).then_some(rules)
}

fn rule_for_part(part: &PartVerdict, ask: &Ask) -> Option<String> {
    let tool = match part.opens {
        None => return Some(format!("Bash({})", Wildcard::escape(&part.text))),
        Some(Access::Read) => "Read",
        Some(Access::Write) => "Edit",
    };
    let ground = Ground::new(&LexicalPaths, &ask.cwd, &ask.cwd, &[]);
    let place = ground.place(&part.text, ask.place()).written;
    // Relative, as people write it, if it is inside the slot's directory.
    let below = place
        .strip_prefix(&ask.cwd)
        .ok()
        .and_then(|below| below.to_str());
    let is_plain = |text: &&str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
    };
    match below.filter(is_plain) {
        Some(below) => Some(format!("{tool}(./{below})")),
        None => Some(format!("{tool}({})", exact_pattern(&place)?)),
    }
}

/// A rule for this command and similar ones, such as `Bash(npm run *)` for `npm run lint`: the program, and its subcommand if
/// that is a plain word. `None` if the tables of harm mention the program.
pub fn general_rule_for(ask: &Ask) -> Option<String> {
    let Subject::Command(text) = tools::subject(ask) else {
        return None;
    };
    let script = shell::read(text);
    let [only] = script.commands.as_slice() else {
        return None;
    };
    if script.doubt.is_some()
        || !script.redirects.is_empty()
        || !harm::harms(&only.words).is_empty()
    {
        return None;
    }
    let is_word = |word: &&shell::Word| {
        let mut bytes = word.text.bytes();
        !word.quoted
            && bytes.all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && !word.text.starts_with('-')
    };
    let (name, rest) = only.words.split_first()?;
    let start = match rest.first().filter(is_word) {
        Some(word) => format!("{} {}", name.text, word.text),
        None if rest.is_empty() => return None,
        None => name.text.clone(),
    };
    let rule = format!("Bash({start} *)");
    let is_idle =
        super::command::never_allows(&CommandPattern::new(&format!("{start} *"))).is_some();
    let file = Path::new("");
    let policy = Policy::asking(file, file).with_allow_rule(&rule)?;
    let allowed = decide(&policy, ask, &LexicalPaths).decision == Decision::Allow;
    (allowed && !is_idle).then_some(rule)
}

/// The narrow rule that `always` adds to a policy for this call, or the reason why a rule would not help. The call is judged
/// again with the rule added.
pub fn rule_for_always(policy: &Policy, ask: &Ask, paths: &dyn Paths) -> Result<String, String> {
    let now = decide(policy, ask, paths);
    if now.decision == Decision::Allow {
        return Err(format!("{} already", now.why));
    }
    let nameless = || format!("no rule can name this call of {}", ask.tool);
    let text = candidate(ask).ok_or_else(nameless)?;
    let with_rule = policy.with_allow_rule(&text).ok_or_else(nameless)?;
    let verdict = decide(&with_rule, ask, paths);
    match verdict.decision {
        Decision::Allow => with_rule.fulfils_examples().map(|()| text),
        _ => Err(overruled(policy, verdict)),
    }
}

/// The text of a policy file with the rule that `always` adds, or the reason why the rule is not added. `policy` was read from
/// `text`. The returned text can be loaded.
pub fn add_rule_for_always(policy: &Policy, text: &str, rule: &str) -> Result<String, String> {
    let with_rule = policy.with_allow_rule(rule);
    with_rule.map_or(Ok(()), |policy| policy.fulfils_examples())?;
    let text = add_allow_rule(text, rule).map_err(|error| error.to_string())?;
    match Policy::parse(&text, &policy.file, &policy.project) {
        Ok(_) => Ok(text),
        Err(problems) => Err(problems
            .iter()
            .map(Problem::in_short)
            .collect::<Vec<_>>()
            .join(", ")),
    }
}

/// Why this verdict overrules a rule that would allow the call.
fn overruled(policy: &Policy, verdict: Verdict) -> String {
    let is_it = |rule: &&Rule| Some(&rule.at) == verdict.rule.as_ref();
    let restricts = |rule: &&Rule| rule.decision > Decision::Allow;
    let Some(rule) = policy.rules().filter(restricts).find(is_it) else {
        return verdict.why;
    };
    let verb = match rule.decision {
        Decision::Deny => "denies, and deny beats allow",
        _ => "asks, and ask beats allow",
    };
    let RuleRef { text, file, line } = &rule.at;
    let file = file.file_name().unwrap_or(file.as_os_str());
    format!("`{text}` in {}:{line} {verb}", file.display())
}

/// The narrowest rule that matches a call, whether or not it would be allowed.
fn candidate(ask: &Ask) -> Option<String> {
    if tools::is_dialog(&ask.tool) {
        return None;
    }
    Some(match tools::subject(ask) {
        Subject::Command(command) if !command.contains('\n') => {
            format!("Bash({})", Wildcard::escape(command.trim()))
        }
        Subject::Path(access, path) => {
            let tool = match access {
                Access::Read => "Read",
                Access::Write => "Edit",
            };
            let ground = Ground::new(&LexicalPaths, &ask.cwd, &ask.cwd, &[]);
            format!(
                "{tool}({})",
                exact_pattern(&ground.place(path, ask.place()).written)?
            )
        }
        Subject::Url(url) => format!("WebFetch(domain:{})", host_of(url)?),
        Subject::Name(name) if !name.is_empty() => format!(
            "{}({})",
            tools::find(&ask.tool)?.name,
            Wildcard::escape(name)
        ),
        Subject::Tool => ask.tool.clone(),
        Subject::Command(_) | Subject::Name(_) | Subject::Missing(_) => return None,
    })
}

impl Policy {
    /// Checks the file's own examples; the error is the first one that fails. Protected paths do not count, because they are not
    /// in the file.
    fn fulfils_examples(&self) -> Result<(), String> {
        let by_file = Policy {
            protected: Protected::default(),
            ..self.clone()
        };
        let examples = self.examples.iter();
        let mut broken = examples.filter(|example| example.contradiction(&by_file).is_some());
        let Some(example) = broken.next() else {
            return Ok(());
        };
        let file = self.file.file_name().unwrap_or(self.file.as_os_str());
        Err(format!(
            "the example at {}:{} says `{}`, which a rule that allows the call would break",
            file.display(),
            example.line(),
            example.expected().word()
        ))
    }

    /// The same policy with one more `allow` rule, as `always` adds it; `None` if the text is not a valid rule.
    pub fn with_allow_rule(&self, text: &str) -> Option<Policy> {
        let meaning = Meaning::parse(text, Decision::Allow, Dialect::Rules, &self.project).ok()?;
        let mut rules = self.rules.clone();
        let at = RuleRef {
            text: text.to_owned(),
            file: self.file.clone(),
            line: 0,
        };
        rules.push(Rule::new(Decision::Allow, at, Level::Role, meaning));
        Some(self.clone().with_rules(rules))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("the policy file is not valid TOML: {0}")]
    NotToml(#[from] toml_edit::TomlError),
    #[error("`allow` in the policy file is not a list; make it one")]
    NotAList,
}

/// The text of a policy file with one more rule in `allow`; everything else is unchanged. A rule that is already there is not
/// added again.
pub fn add_allow_rule(text: &str, rule: &str) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse()?;
    let is_new_list = !document.contains_key("allow");
    let allow = document
        .entry("allow")
        .or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let list = allow.as_array_mut().ok_or(EditError::NotAList)?;
    if list.iter().any(|known| known.as_str() == Some(rule)) {
        return Ok(text.to_owned());
    }
    push_like_the_last(list, rule);
    if is_new_list {
        // The keys of the file itself must come before its first table.
        document.sort_values_by(|left, _, right, _| (left != "allow").cmp(&(right != "allow")));
    }
    Ok(document.to_string())
}

/// If the list has one rule per line, the new rule gets a line too, with the indentation of the last one. A comment after the
/// last rule stays with that rule.
fn push_like_the_last(list: &mut Array, rule: &str) {
    let mut value = Value::from(rule);
    if let Some(last) = list.len().checked_sub(1) {
        let tail = take_tail(list, last);
        let line_end = tail.rfind('\n').unwrap_or(0);
        let indent = list
            .get(last)
            .map_or_else(String::new, |last| indentation(last, list.len()));
        value
            .decor_mut()
            .set_prefix(format!("{}{indent}", &tail[..line_end]));
        put_tail(list, &mut value, &tail[line_end..]);
    }
    list.push_formatted(value);
}

/// The text between the last rule (and its comma, if it has one) and the end of the list.
fn take_tail(list: &mut Array, last: usize) -> String {
    if list.trailing_comma() {
        return list.trailing().as_str().unwrap_or_default().to_owned();
    }
    let Some(last) = list.get_mut(last) else {
        return String::new();
    };
    let tail = last
        .decor()
        .suffix()
        .and_then(|suffix| suffix.as_str())
        .unwrap_or_default()
        .to_owned();
    last.decor_mut().set_suffix("");
    tail
}

fn put_tail(list: &mut Array, value: &mut Value, tail: &str) {
    match list.trailing_comma() {
        true => list.set_trailing(tail),
        false => value.decor_mut().set_suffix(tail),
    }
}

/// The line break and the spaces before a rule, without the comments between them; one space in a list on one line.
fn indentation(value: &Value, rules: usize) -> String {
    let prefix = value
        .decor()
        .prefix()
        .and_then(|prefix| prefix.as_str())
        .unwrap_or_default();
    match prefix.rfind('\n') {
        Some(at) => prefix[at..].to_owned(),
        None if rules == 1 => " ".to_owned(),
        None => prefix.to_owned(),
    }
}
