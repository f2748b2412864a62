//! The lists of commands, and the file with what Claude Code decided on them.

use super::Result;
use super::inside::Outcome;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

pub const RESULT: &str = "tests/policy/beside.txt";

const DIRECTORIES: [&str; 3] = ["corpus", "cases", "live"];

#[derive(Clone)]
pub struct List {
    /// `corpus/shell`.
    pub name: String,
    rules: Vec<(String, String)>,
    pub commands: Vec<String>,
}

/// A command of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    list: String,
    command: String,
}

impl Case {
    pub fn new(list: &List, command: &str) -> Case {
        Case {
            list: list.name.clone(),
            command: command.to_owned(),
        }
    }
}

pub fn all() -> Result<Vec<List>> {
    let mut lists = Vec::new();
    for directory in DIRECTORIES {
        for entry in fs::read_dir(format!("tests/policy/{directory}"))? {
            let path = entry?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            lists.push(list(
                format!("{directory}/{name}"),
                &fs::read_to_string(&path)?,
            )?);
        }
    }
    lists.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(lists)
}

fn list(name: String, text: &str) -> Result<List> {
    let (head, lines) = text.split_once("\n\n").ok_or("rules, then commands")?;
    let in_two = |line: &str| {
        let (first, rest) = line.split_once(' ')?;
        Some((first.to_owned(), rest.to_owned()))
    };
    let mut commands: Vec<String> = lines
        .lines()
        .filter_map(in_two)
        .map(|(_, command)| unescaped(&command))
        .collect();
    commands.sort();
    commands.dedup();
    Ok(List {
        name,
        rules: head.lines().filter_map(in_two).collect(),
        commands,
    })
}

impl List {
    /// The rules as Claude Code's settings have them.
    pub fn permissions(&self) -> Value {
        let of = |wanted: &str| -> Vec<&str> {
            let rules = self.rules.iter().filter(|(word, _)| word == wanted);
            rules.map(|(_, rule)| rule.as_str()).collect()
        };
        json!({ "allow": of("allow"), "ask": of("ask"), "deny": of("deny") })
    }
}

/// What runs so far measured.
#[derive(Default)]
pub struct Measured {
    pub versions: Vec<String>,
    /// What each version decides, and why.
    rows: BTreeMap<Case, (String, String)>,
}

impl Measured {
    /// Nothing yet, by these versions.
    pub fn by(versions: Vec<String>) -> Measured {
        Measured {
            versions,
            ..Measured::default()
        }
    }

    /// What the file has.
    pub fn read() -> Result<Measured> {
        let mut measured = Measured::default();
        for line in fs::read_to_string(RESULT)?.lines() {
            let fields: Vec<&str> = line.splitn(4, '\t').collect();
            match fields[..] {
                ["versions", versions] => {
                    measured.versions = versions.split(' ').map(str::to_owned).collect();
                }
                [list, words, why, command] => {
                    let case = Case {
                        list: list.to_owned(),
                        command: unescaped(command),
                    };
                    let row = (words.to_owned(), why.to_owned());
                    measured.rows.insert(case, row);
                }
                _ => {}
            }
        }
        Ok(measured)
    }

    pub fn has(&self, case: &Case) -> bool {
        self.rows.contains_key(case)
    }

    /// Drops the rows of commands that no list has any more.
    pub fn keep(&mut self, lists: &[List]) {
        let cases = |list: &List| -> Vec<Case> {
            let commands = list.commands.iter();
            commands.map(|command| Case::new(list, command)).collect()
        };
        let known: BTreeSet<Case> = lists.iter().flat_map(cases).collect();
        self.rows.retain(|case, _| known.contains(case));
    }

    /// Adds a command, with an outcome for each version.
    pub fn add(&mut self, case: Case, outcomes: &[Outcome]) {
        let last = outcomes.iter().rfind(|outcome| outcome.word != "allow");
        let why = last.map_or("", |outcome| &outcome.why);
        let why = why.chars().take(160).collect();
        let words: Vec<&str> = outcomes.iter().map(|one| one.word.as_str()).collect();
        self.rows.insert(case, (words.join(" "), why));
    }

    /// Writes the file: the versions, and each command.
    pub fn write(&self) -> Result<()> {
        let mut text = format!(
            "# What Claude Code decides by itself, with the rules of each list. Written by `cargo run --example beside`.\n\
             # list, what each version decides, why (the last version that does not allow it), command\n\
             versions\t{}\n",
            self.versions.join(" ")
        );
        for (case, (words, why)) in &self.rows {
            let command = case.command.replace('\n', "\\n").replace('\r', "\\r");
            writeln!(text, "{}\t{words}\t{why}\t{command}", case.list)?;
        }
        Ok(fs::write(RESULT, text)?)
    }
}

fn unescaped(command: &str) -> String {
    command.replace("\\n", "\n").replace("\\r", "\r")
}
