//! Adding a rule to a policy file: the narrowest one for a call that a person has confirmed.

use super::ground::Ground;
use super::hosts::host_of;
use super::paths::{LexicalPaths, exact_pattern};
use super::pattern::Wildcard;
use super::rule::{Dialect, Level, Meaning, Rule};
use super::tools::{self, Access, Subject};
use super::{Ask, Decision, Policy, RuleRef, decide};
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Value};

/// The narrowest rule that would allow this call next time, such as `Bash(cargo test --all)`. None where no
/// rule could: where the command can't be proven, the path is protected, the tool is not known, or is a question.
pub fn narrow_rule_for(ask: &Ask) -> Option<String> {
    if tools::is_dialog(&ask.tool) {
        return None;
    }
    let text = match tools::subject(ask) {
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
    };
    would_allow(&text, ask).then_some(text)
}

fn would_allow(text: &str, ask: &Ask) -> bool {
    let file = Path::new("");
    let Ok(meaning) = Meaning::parse(text, Decision::Allow, Dialect::Rules, file) else {
        return false;
    };
    let rule = Rule {
        decision: Decision::Allow,
        at: RuleRef {
            text: text.to_owned(),
            file: file.to_owned(),
            line: 0,
        },
        level: Level::Role,
        meaning,
    };
    let policy = Policy::asking(file, file).with_rules(vec![rule]);
    decide(&policy, ask, &LexicalPaths).decision == Decision::Allow
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("the policy file is no TOML: {0}")]
    NotToml(#[from] toml_edit::TomlError),
    #[error("`allow` in the policy file is not a list; make it one")]
    NotAList,
}

/// The text of a policy file with one more rule in `allow`, everything else as it was. A rule that is there
/// already is not added again.
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
        // Keys of the file itself must stand before its first table.
        document.sort_values_by(|left, _, right, _| (left != "allow").cmp(&(right != "allow")));
    }
    Ok(document.to_string())
}

/// In a list with one rule on each line the new one gets a line too, indented like the last. A comment behind
/// the last rule stays with it.
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

/// What stands between the last rule (and its comma, if it has one) and the end of the list.
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

/// The line break and blanks before a rule, without the comments among them; a blank in a list on one line.
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
