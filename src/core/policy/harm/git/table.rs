//! The content of `tables/git.toml`.

use crate::core::policy::harm::subcommands::Subcommands;
use crate::core::policy::harm::{has_short, is_one_of_long, kept};
use crate::core::policy::quick::QuickMap;
use crate::core::policy::shell::Word;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(read().unwrap_or_default()));

pub struct Table {
    pub ordinary: Subcommands,
    pub globals: Globals,
    pub harmful: Harmful,
    paths: PathUses,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    ordinary: Ordinary,
    globals: Globals,
    harmful: Harmful,
    paths: Paths,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Ordinary {
    plain: String,
    flags: String,
    groups: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Globals {
    pub harmless: String,
    pub valued: String,
    pub settings: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Harmful {
    pub long: String,
    short: BTreeMap<String, [String; 2]>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Paths {
    reads: String,
    writes: String,
    removes: String,
    all: String,
    objects: String,
    unseen: String,
    ignored: BTreeMap<String, [String; 2]>,
}

/// What each subcommand does with paths.
#[derive(Default)]
struct PathUses {
    by_subcommand: QuickMap<&'static str, PathUse>,
    unseen: String,
    ignored: BTreeMap<String, [String; 2]>,
}

impl PathUses {
    fn new(paths: Paths) -> PathUses {
        let mut by_subcommand = QuickMap::<&'static str, PathUse>::default();
        let mut set = |list: String, set: fn(&mut PathUse)| {
            for name in kept(list).split_ascii_whitespace() {
                set(by_subcommand.entry(name).or_default());
            }
        };
        set(paths.reads, |does| does.reads = true);
        set(paths.writes, |does| does.writes = true);
        set(paths.removes, |does| does.removes = true);
        set(paths.all, |does| {
            (does.reads, does.takes_all) = (true, true)
        });
        set(paths.objects, |does| {
            (does.reads, does.takes_objects) = (true, true)
        });
        PathUses {
            by_subcommand,
            unseen: paths.unseen,
            ignored: paths.ignored,
        }
    }
}

/// What a call of git does with the files in its arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathUse {
    pub reads: bool,
    pub writes: bool,
    /// It removes a directory with all its content, even the working directory.
    pub removes: bool,
    /// It affects everything below the named paths, and everything if no path is named.
    pub takes_all: bool,
    /// It reads objects by their hashes.
    pub takes_objects: bool,
    /// It reads names from a file or from its input.
    pub is_unseen: bool,
}

/// A test proves that the file can be parsed.
fn read() -> Result<File, toml::de::Error> {
    toml::from_str(include_str!("../../tables/git.toml"))
}

impl Table {
    fn new(file: File) -> Table {
        let groups = file.ordinary.groups.into_iter();
        let groups: Vec<(&str, &str)> = groups.map(|(name, of)| (kept(name), kept(of))).collect();
        Table {
            ordinary: Subcommands {
                plain: kept(file.ordinary.plain),
                groups: Vec::leak(groups),
                valued: "",
                flags: kept(file.ordinary.flags),
                misleading: "",
                managed: "",
            },
            globals: file.globals,
            harmful: file.harmful,
            paths: PathUses::new(file.paths),
        }
    }

    /// The harmful letters of a subcommand, and those whose value is the rest of their word.
    pub fn letters(&self, subcommand: &str) -> (&str, &str) {
        let found = self.harmful.short.get(subcommand);
        found.map_or(("", ""), |[letters, valued]| (letters, valued))
    }
}

/// What git does with the files in the arguments after its subcommand.
pub fn uses_of_paths(subcommand: &str, rest: &[Word]) -> PathUse {
    let paths = &TABLE.paths;
    let known = paths.by_subcommand.get(subcommand);
    let known = known.copied().unwrap_or_default();
    let reaches_ignored = paths.ignored.get(subcommand).is_some_and(|[short, long]| {
        let is = |word: &Word| has_short(&word.text, short, "") || is_one_of_long(&word.text, long);
        rest.iter().any(is)
    });
    let is_unseen = |word: &Word| is_one_of_long(&word.text, &paths.unseen);
    PathUse {
        removes: known.removes && !rest.iter().any(|word| word.text == "--cached"),
        takes_all: known.takes_all || reaches_ignored,
        is_unseen: rest.iter().any(is_unseen),
        ..known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::policy::harm::has_word;

    #[test]
    fn the_file_can_be_read_and_names_ordinary_subcommands() {
        let file = read().expect("a good file");
        let plain = &file.ordinary.plain;
        let paths = &file.paths;
        for list in [
            &paths.reads,
            &paths.writes,
            &paths.removes,
            &paths.all,
            &paths.objects,
        ] {
            for name in list.split_ascii_whitespace() {
                let is_known = has_word(plain, name);
                assert!(is_known, "{name} is asked about anyway");
            }
        }
    }
}
