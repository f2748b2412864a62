//! Parses the text of a policy file to a [`Policy`]. Every error has its position, and the file's own examples are run.

use super::grants::{self, Grants};
use super::rule::{BadRule, Dialect, Level, Meaning, Rule};
use super::{Ask, Decision, Dialogs, Fallback, LexicalPaths, Policy, RuleRef, Verdict, decide};
use crate::core::settings::table::Table;
use crate::core::text::diagnostic::{Problem, Source};
use serde_json::{Map, Value};
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) const DECISIONS: &[(&str, Decision)] = &[
    ("allow", Decision::Allow),
    ("ask", Decision::Ask),
    ("deny", Decision::Deny),
];
/// The verdicts that an example can expect.
pub(super) const VERDICTS: &[(&str, Decision)] = &[
    ("allow", Decision::Allow),
    ("none", Decision::Silent),
    ("ask", Decision::Ask),
    ("deny", Decision::Deny),
];
/// The values of `default`. None of them allows.
pub(super) const DEFAULTS: &[(&str, Fallback)] = &[
    ("ask", Fallback::Ask),
    ("deny", Fallback::Deny),
    ("claude", Fallback::Claude),
];

pub fn parse(text: &str, file: &Path, project: &Path) -> Result<Policy, Vec<Problem>> {
    let source = Source::new(file, text);
    let root = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        vec![source.problem(span, "this is not valid TOML", error.message().trim())]
    })?;
    let mut reader = Reader {
        source: &source,
        project,
        problems: Vec::new(),
        rules: Vec::new(),
    };
    let policy = reader.file(root.get_ref());
    let mut problems = reader.problems;
    if problems.is_empty() {
        let examples = policy.examples.iter();
        problems.extend(examples.filter_map(|example| example.problem(&source, &policy)));
    }
    problems.sort_by_key(|problem| problem.span.start);
    if problems.is_empty() {
        Ok(policy)
    } else {
        Err(problems)
    }
}

struct Reader<'a> {
    source: &'a Source,
    project: &'a Path,
    problems: Vec<Problem>,
    rules: Vec<Rule>,
}

/// The lists of rules that a file, or a table in it, can have.
pub(super) const LISTS: &[(&str, Decision, Dialect)] = &[
    ("allow", Decision::Allow, Dialect::Rules),
    ("ask", Decision::Ask, Dialect::Rules),
    ("deny", Decision::Deny, Dialect::Rules),
    ("auto_allow", Decision::Allow, Dialect::ToolLists),
    ("require_confirm", Decision::Ask, Dialect::ToolLists),
];

type Lists = Vec<(Decision, Dialect, Vec<Spanned<String>>)>;

impl Reader<'_> {
    fn file(&mut self, root: &DeTable<'_>) -> Policy {
        let mut table = Table::new(self.source, root, "a policy", &mut self.problems);
        let lists = lists(&mut table);
        let default_table = root
            .get("default")
            .and_then(|value| value.get_ref().as_table());
        let default = match default_table {
            Some(_) => table.entry("default").and(None),
            None => table.word("default", DEFAULTS),
        };
        let deny_reason = table.string("deny_reason");
        let dialogs = sub_table(&mut table, "dialogs");
        let mcp = sub_table(&mut table, "mcp");
        let roles = sub_table(&mut table, "roles");
        let slots = sub_table(&mut table, "slots");
        let examples = example_tables(&mut table);
        table.finish();

        self.add_rules(lists, &Level::Role);
        self.level(default_table, "[default]", &Level::Default);
        self.role_overrides(roles);
        self.slot_overrides(slots);
        let mut policy = Policy::asking(&self.source.file, self.project);
        policy.default = default.map_or(Fallback::Ask, Spanned::into_inner);
        policy.deny_reason = deny_reason.map(Spanned::into_inner);
        policy.dialogs = self.dialogs(dialogs);
        policy.grants = self.grants(mcp);
        policy.examples = examples
            .into_iter()
            .filter_map(|entry| self.example(entry))
            .collect();
        policy.with_rules(std::mem::take(&mut self.rules))
    }

    fn level(&mut self, entries: Option<&DeTable<'_>>, what: &'static str, level: &Level) {
        let Some(entries) = entries else { return };
        let mut table = Table::new(self.source, entries, what, &mut self.problems);
        let lists = lists(&mut table);
        table.finish();
        self.add_rules(lists, level);
    }

    /// A file can hold the lists of several roles. All of them must be valid; only those of the role that the file is named after
    /// are in force.
    fn role_overrides(&mut self, roles: Option<&DeTable<'_>>) {
        let own = self
            .source
            .file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        for (name, entry) in roles.into_iter().flatten() {
            let known = self.rules.len();
            self.override_of(entry, "a role", &Level::Role);
            if own.as_deref() != Some(name.get_ref()) {
                self.rules.truncate(known);
            }
        }
    }

    fn slot_overrides(&mut self, slots: Option<&DeTable<'_>>) {
        for (name, entry) in slots.into_iter().flatten() {
            self.override_of(entry, "a slot", &Level::Slot(name.get_ref().to_string()));
        }
    }

    fn override_of(&mut self, entry: &Spanned<DeValue<'_>>, what: &'static str, level: &Level) {
        match entry.get_ref().as_table() {
            Some(entries) => self.level(Some(entries), what, level),
            None => self.problems.push(self.source.problem(
                entry.span(),
                "wrong type",
                format!("{what} takes a table, such as {{ auto_allow = [\"Read\"] }}"),
            )),
        }
    }

    fn add_rules(&mut self, lists: Lists, level: &Level) {
        for (decision, dialect, rules) in lists {
            for rule in rules {
                match Meaning::parse(rule.get_ref(), decision, dialect, self.project) {
                    Ok(meaning) => self.rules.push(self.rule(&rule, decision, level, meaning)),
                    Err(bad) => self.problems.push(self.bad_rule(&rule, bad)),
                }
            }
        }
    }

    fn rule(
        &self,
        text: &Spanned<String>,
        decision: Decision,
        level: &Level,
        meaning: Meaning,
    ) -> Rule {
        let line = self.source.problem(text.span(), "", "").line();
        let at = RuleRef {
            text: text.get_ref().clone(),
            file: self.source.file.clone(),
            line,
        };
        Rule::new(decision, at, level.clone(), meaning)
    }

    fn bad_rule(&self, rule: &Spanned<String>, bad: BadRule) -> Problem {
        let problem = self
            .source
            .problem(rule.span(), "not a rule that can be used", bad.label);
        match bad.help {
            Some(help) => problem.with_help(help),
            None => problem,
        }
    }

    fn dialogs(&mut self, entries: Option<&DeTable<'_>>) -> Dialogs {
        let mut dialogs = Dialogs::default();
        let Some(entries) = entries else {
            return dialogs;
        };
        let mut table = Table::new(self.source, entries, "[dialogs]", &mut self.problems);
        for (key, place) in [
            ("trust", &mut dialogs.trust),
            ("api_key", &mut dialogs.api_key),
            ("plan", &mut dialogs.plan),
            ("question", &mut dialogs.question),
        ] {
            if let Some(decision) = table.word(key, DECISIONS) {
                *place = decision.into_inner();
            }
        }
        table.finish();
        dialogs
    }

    fn grants(&mut self, entries: Option<&DeTable<'_>>) -> Grants {
        let Some(entries) = entries else {
            return Grants::default();
        };
        let mut table = Table::new(self.source, entries, "[mcp]", &mut self.problems);
        let words = |list: Spanned<Vec<Spanned<String>>>| list.into_inner().into_iter();
        let allow: Vec<Spanned<String>> =
            table.strings("allow").into_iter().flat_map(words).collect();
        let slots = table.strings("slots");
        for word in &allow {
            if let Some(why) = grants::refusal(word.get_ref()) {
                table.fault(word.span(), "a request that can't be granted", why);
            }
        }
        table.finish();
        Grants {
            allow: allow.into_iter().map(Spanned::into_inner).collect(),
            slots: slots.map(|slots| words(slots).map(Spanned::into_inner).collect()),
        }
    }

    fn example(&mut self, entry: &Spanned<DeValue<'_>>) -> Option<Example> {
        let entries = entry.get_ref().as_table()?;
        let mut table = Table::new(self.source, entries, "an example", &mut self.problems);
        let tool = table.string("tool");
        let verdict = table.word("verdict", VERDICTS);
        let cwd = table.string("cwd").map(Spanned::into_inner);
        let slot = table.string("slot").map(Spanned::into_inner);
        let input = table.entry("input").map(|input| json(input.get_ref()));
        for key in ["tool", "verdict"] {
            if !entries.contains_key(key) {
                table.fault(
                    entry.span(),
                    format!("example without a {key}"),
                    format!("add: {key} = \"…\""),
                );
            }
        }
        table.finish();
        let cwd = cwd.map_or_else(|| self.project.to_owned(), |cwd| self.project.join(cwd));
        let verdict = verdict?;
        Some(Example {
            ask: Ask::whole(
                tool?.into_inner(),
                input.unwrap_or(Value::Object(Map::new())),
                cwd,
            ),
            slot,
            line: self.source.problem(verdict.span(), "", "").line(),
            verdict,
        })
    }
}

fn lists(table: &mut Table<'_, '_>) -> Lists {
    LISTS
        .iter()
        .filter_map(|(key, decision, dialect)| {
            Some((*decision, *dialect, table.strings(key)?.into_inner()))
        })
        .collect()
}

fn sub_table<'a>(table: &mut Table<'a, '_>, key: &'static str) -> Option<&'a DeTable<'a>> {
    let value = table.entry(key)?;
    let entries = value.get_ref().as_table();
    if entries.is_none() {
        table.wrong_type(key, value, "a table");
    }
    entries
}

fn example_tables<'a>(table: &mut Table<'a, '_>) -> Vec<&'a Spanned<DeValue<'a>>> {
    let Some(value) = table.entry("example") else {
        return Vec::new();
    };
    let items = value
        .get_ref()
        .as_array()
        .map(|array| array.iter().collect::<Vec<_>>())
        .unwrap_or_default();
    if items.is_empty() || !items.iter().all(|item| item.get_ref().is_table()) {
        table.wrong_type("example", value, "tables: write each as [[example]]");
        return Vec::new();
    }
    items
}

/// A call with the verdict that the file expects from its own rules.
#[derive(Debug)]
pub(super) struct Example {
    ask: Ask,
    slot: Option<String>,
    verdict: Spanned<Decision>,
    /// The line of the verdict, from 1.
    line: usize,
}

impl Example {
    pub(super) fn expected(&self) -> Decision {
        *self.verdict.get_ref()
    }

    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// The verdict of these rules, if it is not the one that the example expects.
    pub(super) fn contradiction(&self, policy: &Policy) -> Option<Verdict> {
        let mut policy = policy.clone();
        policy.slot.clone_from(&self.slot);
        let verdict = decide(&policy, &self.ask, &LexicalPaths);
        (verdict.decision != *self.verdict.get_ref()).then_some(verdict)
    }

    fn problem(&self, source: &Source, policy: &Policy) -> Option<Problem> {
        let verdict = self.contradiction(policy)?;
        let label = format!(
            "this policy says `{}`: {}",
            verdict.decision.word(),
            verdict.why
        );
        Some(source.problem(self.verdict.span(), "an example that does not hold", label))
    }
}

fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::from(number.as_str()), Value::from),
        DeValue::Float(number) => number
            .as_str()
            .parse::<f64>()
            .map_or(Value::Null, Value::from),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(entries) => {
            let pairs = entries
                .iter()
                .map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())));
            Value::Object(pairs.collect())
        }
    }
}
