//! An index over the rules, so that a verdict does not have to try each of them.

use super::Decision;
use super::ground::Ground;
use super::paths::{PathPattern, PathSet, Place};
use super::quick::{QuickMap, QuickSet};
use super::rule::{Meaning, Rule};
use std::path::Path;

#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Rules for commands, by the program that they begin with.
    by_program: QuickMap<String, Vec<usize>>,
    /// Programs that a `deny` or `ask` rule names.
    restricted_programs: QuickSet<String>,
    /// Rules that may match any command.
    any_program: Vec<usize>,
    /// Every path that a `deny` or `ask` rule names.
    restricted: PathSet,
    /// Those of them that match files in one directory, or all files in it.
    trees: PathSet,
}

impl Index {
    pub fn new(rules: &[Rule]) -> Index {
        let mut index = Index::default();
        for (at, rule) in rules.iter().enumerate() {
            match rule.meaning() {
                Meaning::Command(pattern) => match pattern.program() {
                    Some(program) => index.add_command(program, rule.decision, at),
                    None => index.any_program.push(at),
                },
                Meaning::Tool(_) | Meaning::Tools(_) => index.any_program.push(at),
                Meaning::Path(..) | Meaning::Host(_) | Meaning::Name { .. } => {}
            }
        }
        let restricting = rules.iter().filter(|rule| rule.decision > Decision::Allow);
        let restricting = restricting.filter_map(|rule| match rule.meaning() {
            Meaning::Path(_, pattern) => Some(pattern),
            _ => None,
        });
        let restricting: Vec<_> = restricting.collect();
        index.restricted = PathSet::new(restricting.iter().copied());
        let of_directories =
            |pattern: &&_| !PathPattern::is_anywhere(pattern) || pattern.has_open_end();
        index.trees = PathSet::new(restricting.iter().copied().filter(of_directories));
        index
    }

    fn add_command(&mut self, program: &str, decision: Decision, at: usize) {
        let places = self.by_program.entry(program.to_owned()).or_default();
        places.push(at);
        if decision > Decision::Allow {
            self.restricted_programs.insert(program.to_owned());
        }
    }

    /// The positions of the rules that may match one of these commands, in order.
    pub fn for_commands(&self, commands: &[String]) -> Vec<usize> {
        let programs = commands
            .iter()
            .map(|command| command.split(' ').next().unwrap_or_default());
        let named = programs
            .filter_map(|program| self.by_program.get(program))
            .flatten();
        let mut places: Vec<usize> = named.chain(&self.any_program).copied().collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Whether a rule restricts this program or some use of it.
    pub fn restricts_program(&self, program: &str) -> bool {
        self.restricted_programs.contains(program)
    }

    /// Whether a rule restricts any program or some use of it.
    pub fn restricts_programs(&self) -> bool {
        !self.restricted_programs.is_empty()
    }

    /// Whether any path is restricted, so that the paths in a command matter.
    pub fn restricts_paths(&self) -> bool {
        !self.restricted.is_empty()
    }

    /// Whether a rule restricts this place.
    pub fn may_restrict(&self, place: &Place, ground: &Ground<'_>) -> bool {
        place
            .ways()
            .any(|path| self.restricted.matches(path, ground))
    }

    /// Whether a rule restricts this place or, if it is a directory, files in it. With `all`, rules that match names at any depth
    /// count too.
    pub fn may_restrict_tree(&self, place: &Place, all: bool, ground: &Ground<'_>) -> bool {
        let trees = if all { &self.restricted } else { &self.trees };
        let mut ways = place.ways();
        self.may_restrict(place, ground) || ways.any(|path| trees.may_match_below(path, ground))
    }

    /// Whether a rule may restrict a file in this directory or below it.
    pub fn may_restrict_below(&self, directory: &Path, ground: &Ground<'_>) -> bool {
        self.restricted.may_match_below(directory, ground)
    }
}
