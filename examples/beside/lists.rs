//! The lists of commands, and the file with what Claude Code decided on them.

use super::Result;
use super::inside::Outcome;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

pub const RESULT: &str = "tests/policy/beside.txt";

const DIRECTORIES: [&str; 3] = ["corpus", "cases", "live"];

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
        .map(|(_, command)| command.replace("\\n", "\n").replace("\\r", "\r"))
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

/// The file: the versions, and each command that one of them does not allow by itself.
pub fn written(
    versions: &[String],
    lists: &[List],
    found: &BTreeMap<Case, Vec<Outcome>>,
) -> String {
    let commands: usize = lists.iter().map(|list| list.commands.len()).sum();
    let mut text = format!(
        "# What Claude Code decides by itself, with the rules of each list. Written by `cargo run --example beside`.\n\
         # list, what each version decides, why (the last version that does not allow it), command\n\
         # {commands} commands; those that all versions allow are left out\n\
         versions\t{}\n",
        versions.join(" ")
    );
    for (case, outcomes) in found {
        let Some(last) = outcomes.iter().rfind(|outcome| outcome.word != "allow") else {
            continue;
        };
        let words: Vec<&str> = outcomes
            .iter()
            .map(|outcome| outcome.word.as_str())
            .collect();
        let why: String = last.why.chars().take(160).collect();
        let command = case.command.replace('\n', "\\n").replace('\r', "\\r");
        writeln!(text, "{}\t{}\t{why}\t{command}", case.list, words.join(" "))
            .expect("a String takes everything");
    }
    text
}
