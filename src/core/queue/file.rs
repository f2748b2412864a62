//! Parses a file of tasks and reports every error with its position. Pure: the text is an argument.

use super::plan::{Job, Work, circle};
use crate::core::settings::table::Table;
use crate::core::settings::{Places, is_name, resolve, syntax_error};
use crate::core::text::diagnostic::ConfigError;
use crate::core::text::diagnostic::{Problem, Source, nearest};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

#[cfg(test)]
mod tests;

/// More tasks than this are a program, not a file.
const MAX_TASKS: usize = 500;
const JOBS: RangeInclusive<u16> = 1..=64;
const RETRIES: RangeInclusive<u16> = 0..=100;
const TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(7 * 24 * 3600);

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub jobs: Vec<Job>,
    /// How many tasks may run at once, if the file limits that.
    pub limit: Option<u16>,
}

/// A task as written, before the names in `needs` are resolved.
struct Draft {
    name: String,
    name_span: Range<usize>,
    /// `None` if it has an error: other tasks may still need it.
    work: Option<Work>,
    timeout: Option<Duration>,
    retries: u32,
    needs: Vec<Spanned<String>>,
}

/// Parses the text of a file; relative directories begin at `places.base`.
pub fn parse(source: &Source, places: Places<'_>) -> Result<Plan, ConfigError> {
    let (root, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        let problems = errors.iter().map(|error| syntax_error(source, error));
        return Err(ConfigError {
            problems: problems.collect(),
        });
    }
    let mut reader = TaskFileReader {
        source,
        places,
        problems: Vec::new(),
    };
    let plan = reader.file(root.get_ref());
    if reader.problems.is_empty() {
        return Ok(plan);
    }
    reader.problems.sort_by_key(|problem| problem.span.start);
    Err(ConfigError {
        problems: reader.problems,
    })
}

struct TaskFileReader<'a> {
    source: &'a Source,
    places: Places<'a>,
    problems: Vec<Problem>,
}

impl TaskFileReader<'_> {
    fn file(&mut self, root: &DeTable<'_>) -> Plan {
        let mut problems = Vec::new();
        let mut table = Table::new(self.source, root, "a file of tasks", &mut problems);
        let limit = table.number("jobs", JOBS).map(Spanned::into_inner);
        let tasks = table.entry("task");
        table.finish();
        self.problems.append(&mut problems);
        let drafts = self.tasks(tasks);
        Plan {
            jobs: self.connected(drafts),
            limit,
        }
    }

    fn tasks(&mut self, written: Option<&Spanned<DeValue<'_>>>) -> Vec<Draft> {
        let Some(written) = written else {
            self.fault(0..0, "no tasks", "a task begins with a line [[task]]");
            return Vec::new();
        };
        let tables = written.get_ref().as_array();
        let tables = tables.filter(|tables| tables.iter().all(|one| one.get_ref().is_table()));
        let Some(tables) = tables else {
            let label = "a task begins with a line [[task]], in double brackets";
            self.fault(written.span(), "wrong type", label);
            return Vec::new();
        };
        if tables.len() > MAX_TASKS {
            let label = format!("{} tasks; a file has at most {MAX_TASKS}", tables.len());
            self.fault(written.span(), "too many tasks", label);
            return Vec::new();
        }
        let tables = tables
            .iter()
            .filter_map(|one| Some((one.span(), one.get_ref().as_table()?)));
        tables
            .filter_map(|(span, table)| self.task(span, table))
            .collect()
    }

    fn task(&mut self, header: Range<usize>, entries: &DeTable<'_>) -> Option<Draft> {
        let mut problems = Vec::new();
        let mut table = Table::new(self.source, entries, "a task", &mut problems);
        let name = table.string("name");
        let commands = table.string_or_strings("commands");
        let prompt = table.string("prompt");
        let slot = table.string("slot");
        let role = table.string("role");
        let cwd = table.string("cwd");
        let env = table.map("env");
        let timeout = table.duration("timeout", TIMEOUTS);
        let needs = table.strings("needs");
        let retries = table.number("retries", RETRIES);
        table.finish();
        let faulty = !problems.is_empty();
        self.problems.append(&mut problems);
        let name = self.name(header.clone(), name);
        let work = match (commands, prompt) {
            _ if faulty => None,
            (Some(lines), None) => self.commands(lines, cwd, env.unwrap_or_default(), &slot, &role),
            (None, Some(text)) => {
                let variable = env.iter().flatten().next();
                self.of_a_slot(&cwd, variable.map(|(_, named)| named.name_span.clone()));
                self.prompt(text, slot, role)
            }
            (Some(_), Some(prompt)) => {
                self.fault(
                    prompt.span(),
                    "two kinds of work",
                    "a task has either `commands` or a `prompt`",
                );
                None
            }
            (None, None) => {
                self.fault(
                    header,
                    "no work",
                    "a task has either `commands` or a `prompt`",
                );
                None
            }
        };
        let (name_span, name) = name?;
        Some(Draft {
            name,
            name_span,
            work,
            timeout: timeout.map(Spanned::into_inner),
            retries: retries.map_or(0, |retries| u32::from(retries.into_inner())),
            needs: needs.map(Spanned::into_inner).unwrap_or_default(),
        })
    }

    fn name(
        &mut self,
        header: Range<usize>,
        name: Option<Spanned<String>>,
    ) -> Option<(Range<usize>, String)> {
        let Some(name) = name else {
            self.fault(header, "no name", "a task has a `name`");
            return None;
        };
        if !is_name(name.get_ref()) {
            let label = "1 to 64 of a-z, 0-9, `_` and `-`, beginning with a letter or digit";
            self.fault(name.span(), "bad name", label);
            return None;
        }
        Some((name.span(), name.into_inner()))
    }

    fn commands(
        &mut self,
        lines: Spanned<Vec<Spanned<String>>>,
        cwd: Option<Spanned<String>>,
        env: BTreeMap<String, crate::core::settings::table::NamedText>,
        slot: &Option<Spanned<String>>,
        role: &Option<Spanned<String>>,
    ) -> Option<Work> {
        for key in [slot, role].into_iter().flatten() {
            self.fault(
                key.span(),
                "nobody to run it",
                "only a `prompt` is for a slot or a role",
            );
        }
        let empty = lines
            .get_ref()
            .iter()
            .find(|line| line.get_ref().trim().is_empty());
        if lines.get_ref().is_empty() || empty.is_some() {
            let span = empty.map_or(lines.span(), Spanned::span);
            self.fault(
                span,
                "no command",
                "a line for the shell, such as \"cargo test\"",
            );
            return None;
        }
        for (name, named) in env
            .iter()
            .filter(|(name, _)| name.is_empty() || name.contains('='))
        {
            let label = format!("`{name}` can't be the name of a variable");
            self.fault(named.name_span.clone(), "bad variable", label);
        }
        Some(Work::Commands {
            lines: lines
                .into_inner()
                .into_iter()
                .map(Spanned::into_inner)
                .collect(),
            cwd: self.cwd(cwd)?,
            env: env
                .into_iter()
                .map(|(name, named)| (name, named.value))
                .collect(),
        })
    }

    fn cwd(&mut self, cwd: Option<Spanned<String>>) -> Option<PathBuf> {
        let Some(cwd) = cwd else {
            return Some(self.places.base.to_owned());
        };
        match resolve(cwd.get_ref(), self.places) {
            Ok(path) => Some(path),
            Err(why) => {
                self.fault(cwd.span(), "bad path", why);
                None
            }
        }
    }

    /// A prompt can't change the directory or the variables of the slot that gets it.
    fn of_a_slot(&mut self, cwd: &Option<Spanned<String>>, variable: Option<Range<usize>>) {
        if let Some(cwd) = cwd {
            let label = "a slot has its own directory";
            self.fault(cwd.span(), "no directory here", label);
        }
        if let Some(variable) = variable {
            let label = "a slot has its own variables";
            self.fault(variable, "no variables here", label);
        }
    }

    fn prompt(
        &mut self,
        text: Spanned<String>,
        slot: Option<Spanned<String>>,
        role: Option<Spanned<String>>,
    ) -> Option<Work> {
        if text.get_ref().trim().is_empty() {
            self.fault(text.span(), "no prompt", "the prompt is empty");
            return None;
        }
        let to = match (slot, role) {
            (Some(slot), None) => slot.into_inner(),
            (None, Some(role)) => format!("@{}", role.into_inner()),
            (None, None) => {
                self.fault(
                    text.span(),
                    "nobody to ask",
                    "a prompt needs a `slot` or a `role`",
                );
                return None;
            }
            (Some(_), Some(role)) => {
                self.fault(
                    role.span(),
                    "two to ask",
                    "a prompt is for a `slot` or for a `role`",
                );
                return None;
            }
        };
        Some(Work::Prompt {
            to,
            text: text.into_inner(),
        })
    }

    /// The tasks, with the positions of those that they need.
    fn connected(&mut self, drafts: Vec<Draft>) -> Vec<Job> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, draft) in drafts.iter().enumerate() {
            if let Some(first) = places.insert(&draft.name, place) {
                let also = (
                    drafts[first].name_span.clone(),
                    "it is taken here".to_owned(),
                );
                let label = format!("there is a task `{}` already", draft.name);
                let problem = self
                    .source
                    .problem(draft.name_span.clone(), "name taken", label);
                self.problems.push(problem.with_also(also.0, also.1));
            }
        }
        let needs: Vec<Vec<usize>> = drafts
            .iter()
            .map(|draft| self.needed(draft, &places))
            .collect();
        if let Some(members) = circle(&needs) {
            self.show_circle(&members, &drafts);
        }
        let jobs = drafts.into_iter().zip(needs).filter_map(|(draft, needs)| {
            Some(Job {
                name: draft.name,
                work: draft.work?,
                timeout: draft.timeout,
                needs,
                retries: draft.retries,
            })
        });
        jobs.collect()
    }

    fn needed(&mut self, draft: &Draft, places: &BTreeMap<&str, usize>) -> Vec<usize> {
        let mut found = Vec::new();
        for need in &draft.needs {
            match places.get(need.get_ref().as_str()) {
                Some(place) => found.push(*place),
                None => {
                    let label = match nearest(need.get_ref(), places.keys().copied()) {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => "no task has this name".to_owned(),
                    };
                    self.fault(need.span(), "unknown task", label);
                }
            }
        }
        found
    }

    /// `a -> b -> a`, reported at the need that closes the cycle.
    fn show_circle(&mut self, members: &[usize], drafts: &[Draft]) {
        let names = members.iter().chain(members.first());
        let names: Vec<&str> = names.map(|place| drafts[*place].name.as_str()).collect();
        let (Some(last), Some(first)) = (members.last(), names.first()) else {
            return;
        };
        let last = &drafts[*last];
        let closing = last.needs.iter().find(|need| need.get_ref() == first);
        let span = closing.map_or(last.name_span.clone(), Spanned::span);
        let label = format!("these wait for each other: {}", names.join(" -> "));
        self.fault(span, "a circle in `needs`", label);
    }

    fn fault(&mut self, span: Range<usize>, title: &str, label: impl Into<String>) {
        self.problems.push(self.source.problem(span, title, label));
    }
}
