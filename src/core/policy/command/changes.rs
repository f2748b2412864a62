//! Directories that a command changes: rules on the files in them count, although the command names only the directory.
//! `tables/trees.toml` lists the programs that work on whole directories.

use super::directories::Directories;
use super::places::Named;
use super::transfers::{self, Written};
use crate::core::policy::harm::{self, Formatter, Transfer};
use crate::core::policy::judge::Case;
use crate::core::policy::paths::{PathPattern, Place};
use crate::core::policy::pattern::fits;
use crate::core::policy::rule::{Meaning, Rule};
use crate::core::policy::shell::Word;
use crate::core::policy::tools::Access;
use crate::core::policy::{Decision, Verdict};
use std::path::{Path, PathBuf};

/// A rule that restricts paths, with its access and its pattern.
type Restricting<'r> = (&'r Rule, Access, &'r PathPattern);

/// A rule, and the directory in which files may be that it covers.
type Found<'r> = (&'r Rule, PathBuf);

/// The verdict of rules on the files in the directories that a command names.
pub fn restriction(
    case: &Case<'_>,
    words: &[Word],
    named: &[Named],
    directories: &Directories,
) -> Option<Verdict> {
    let (name, arguments) = words.split_first()?;
    let change = Change {
        case,
        program: &name.text,
        arguments,
        named,
        directories,
    };
    let found = change
        .of_all()
        .or_else(|| change.by_transfer())
        .or_else(|| change.below())
        .or_else(|| change.by_archive())
        .or_else(|| change.by_formatter());
    let (rule, directory) = found?;
    let (rule, directory) = (&rule.at, directory.display());
    Some(Verdict {
        decision: Decision::Ask,
        rule: Some(rule.clone()),
        why: format!("{} covers files that may be in {directory}", rule.text),
    })
}

struct Change<'a> {
    case: &'a Case<'a>,
    program: &'a str,
    arguments: &'a [Word],
    named: &'a [Named],
    directories: &'a Directories,
}

impl<'a> Change<'a> {
    fn rules(&self) -> impl Iterator<Item = Restricting<'a>> {
        let rules = self.case.policy.rules();
        let rules = rules.filter(|rule| rule.decision > Decision::Allow);
        rules.filter_map(|rule| match rule.meaning() {
            Meaning::Path(about, pattern) => Some((rule, *about, pattern)),
            _ => None,
        })
    }

    /// The first rule that matches a place; with `all` also one that matches names at any depth.
    fn rule_on(
        &self,
        place: &Place,
        all: bool,
        means: impl Fn(&Restricting<'_>) -> bool,
    ) -> Option<Found<'a>> {
        let index = &self.case.policy.index;
        index
            .may_restrict_tree(place, all, &self.case.ground)
            .then_some(())?;
        let (rule, ..) = self.rules().find(means)?;
        Some((rule, place.written.clone()))
    }

    fn may_lie_below(&self, pattern: &PathPattern, place: &Place) -> bool {
        let below = |path: &Path| pattern.may_match_below(path, &self.case.ground);
        place.ways().any(below)
    }

    /// A directory whose whole content a rule covers, given to a program that may open or change it.
    fn of_all(&self) -> Option<Found<'a>> {
        let only_reads = harm::only_reads(self.program);
        // `diff file directory` reads the file of the same name there.
        if only_reads && self.program != "diff" || harm::only_lists(self.program) {
            return None;
        }
        self.named.iter().find_map(|named| {
            let place = &named.place;
            self.rule_on(place, false, |(rule, about, pattern)| {
                let access = if only_reads { Access::Read } else { *about };
                pattern.has_open_end() && rule.covers_tree(access, place, &self.case.ground)
            })
        })
    }

    /// The file that a copy, a move or a link creates in a directory, under its own name.
    fn by_transfer(&self) -> Option<Found<'a>> {
        let transfer = harm::transfer(self.program, self.arguments)?;
        self.directories.all().iter().find_map(|cwd| {
            let written = transfers::written_by(&transfer, cwd, &self.case.ground);
            let by_name = |written: &Written| self.by_written(&transfer, written, cwd);
            let found = written.iter().find_map(by_name);
            found
                .or_else(|| self.by_globs(&transfer, cwd))
                .or_else(|| self.by_move(&transfer, cwd))
        })
    }

    fn by_written(
        &self,
        transfer: &Transfer<'_>,
        written: &Written,
        cwd: &Path,
    ) -> Option<Found<'a>> {
        let place = &written.place;
        let is_whole = || place.ways().any(|path| cwd.starts_with(path));
        // A directory is copied there, or the content of one.
        let brings_more =
            || written.filled || !is_whole() && self.brings_directories(transfer, cwd);
        self.rule_on(place, false, |(rule, about, pattern)| {
            rule.covers_place(Access::Write, place, &self.case.ground)
                || *about == Access::Write
                    && !pattern.is_anywhere()
                    && self.may_lie_below(pattern, place)
                    && brings_more()
        })
    }

    /// Moving a directory moves its content too.
    fn by_move(&self, transfer: &Transfer<'_>, cwd: &Path) -> Option<Found<'a>> {
        let sources = transfer.taken().filter(|_| transfer.moves);
        let mut places = sources.map(|source| self.case.ground.place(&source.text, cwd));
        places.find_map(|place| {
            self.rule_on(&place, false, |(_, _, pattern)| {
                !pattern.is_anywhere() && self.may_lie_below(pattern, &place)
            })
        })
    }

    /// Whether a source may be a directory. Most moves and links are of single files.
    fn brings_directories(&self, transfer: &Transfer<'_>, cwd: &Path) -> bool {
        let ground = &self.case.ground;
        let has_files = |source: &Word| {
            let place = ground.place(&source.text, cwd);
            source.globs || ground.finds_below(&place, |_| true)
        };
        let may_be_directory = !matches!(self.program, "mv" | "ln" | "git");
        transfer.recursive && (may_be_directory || transfer.taken().any(has_files))
    }

    /// The names that a glob matches are not known, but the rules that may match them are.
    fn by_globs(&self, transfer: &Transfer<'_>, cwd: &Path) -> Option<Found<'a>> {
        let globs = transfer.sources.iter().filter(|source| source.globs);
        let lasts = globs.map(|source| source.text.trim_end_matches('/'));
        let lasts = lasts.map(|text| text.rsplit('/').next().unwrap_or_default());
        let lasts: Vec<&str> = lasts.collect();
        let targets = transfers::targets_of(transfer).iter();
        targets
            .map(|text| self.case.ground.place(text, cwd))
            .find_map(|target| {
                self.rule_on(&target, true, |(_, about, pattern)| {
                    let meets = |last: &&str| self.glob_meets(last, pattern, &target);
                    *about == Access::Write && lasts.iter().any(meets)
                })
            })
    }

    fn glob_meets(&self, last: &str, pattern: &PathPattern, target: &Place) -> bool {
        let end = last.rsplit(['*', '?', ']']).next().unwrap_or_default();
        let may_end = pattern
            .ending()
            .is_none_or(|ending| end.ends_with(ending) || ending.ends_with(end));
        let may_be_named = pattern.literal_name().is_none_or(|name| fits(last, name));
        let through = |path: &Path| {
            pattern.may_match_through(path, &self.case.ground, |name| fits(last, name))
        };
        may_end && may_be_named && target.ways().any(through)
    }

    /// A program that changes everything below a directory.
    fn below(&self) -> Option<Found<'a>> {
        harm::changes_below(self.program, self.arguments).then_some(())?;
        self.named.iter().find_map(|named| {
            let place = &named.place;
            self.rule_on(place, false, |(_, _, pattern)| {
                !pattern.is_anywhere() && self.may_lie_below(pattern, place)
            })
        })
    }

    /// Files that an archive or a patch writes; their names are not known here.
    fn by_archive(&self) -> Option<Found<'a>> {
        let into = harm::unpacked_into(self.program, self.arguments)?;
        let places = |text: &&str| self.directories.places_of_text(text, &self.case.ground);
        let places = into.iter().flat_map(places);
        places.into_iter().find_map(|place| {
            self.rule_on(&place, true, |(_, about, pattern)| {
                *about == Access::Write && self.may_lie_below(pattern, &place)
            })
        })
    }

    /// A formatter changes existing files with certain extensions.
    fn by_formatter(&self) -> Option<Found<'a>> {
        let formatter = harm::formatter(self.program, self.arguments)?;
        let own = formatter
            .takes_all
            .then(|| self.directories.places_of_text(".", &self.case.ground));
        let own = own.unwrap_or_default();
        let places = self.named.iter().map(|named| &named.place).chain(&own);
        places.into_iter().find_map(|place| {
            self.rule_on(place, true, |(_, about, pattern)| {
                *about == Access::Write
                    && self.may_lie_below(pattern, place)
                    && self.is_formatted(&formatter, pattern, place)
            })
        })
    }

    fn is_formatted(
        &self,
        formatter: &Formatter,
        pattern: &PathPattern,
        directory: &Place,
    ) -> bool {
        let ground = &self.case.ground;
        let is_formatted = |name: &str| formatter.changes(name);
        let is_changed = match (pattern.literal_name(), pattern.ending()) {
            (Some(name), _) => Some(is_formatted(name)),
            (None, Some(ending)) => Some(is_formatted(&format!("x{ending}"))),
            (None, None) => None,
        };
        if is_changed == Some(false) {
            return false;
        }
        let Some(existing) = pattern.existing(ground) else {
            return true;
        };
        let fits = |path: &Path| path.to_str().is_none_or(is_formatted);
        existing.iter().any(|place| {
            let mut ways = place.ways();
            ways.any(|path| directory.ways().any(|above| path.starts_with(above)))
                && (place.ways().any(fits)
                    || pattern.reaches_below() && ground.finds_below(place, fits))
        })
    }
}
