//! Different spellings of the same command, as `tables/spellings.toml` lists them.

use crate::core::policy::pattern::CommandPattern;
use crate::core::policy::quick::QuickMap;
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    program: Vec<Row>,
    means: Vec<Means>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Row {
    names: String,
    of: String,
    options: Vec<String>,
    words: Vec<String>,
    exact: bool,
    one_dash: bool,
    shortened: bool,
    targets: bool,
    numbers: bool,
}

/// A command that another one includes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Means {
    from: String,
    pub to: String,
}

impl Means {
    /// The rule that matches the command, whatever follows.
    pub fn pattern(&self) -> CommandPattern {
        CommandPattern::new(&format!("{} *", self.from))
    }

    /// The program of the command that is included.
    pub fn program(&self) -> &str {
        let end = self.to.bytes().position(|byte| byte == b' ');
        &self.to[..end.unwrap_or(self.to.len())]
    }

    /// Its program and its subcommands.
    pub fn operands(&self) -> impl Iterator<Item = &str> {
        self.from.split(' ').filter(|word| !word.starts_with('-'))
    }
}

struct Table {
    rows: QuickMap<&'static str, Vec<&'static Row>>,
    means: QuickMap<&'static str, Vec<&'static Means>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let file: &'static File = Box::leak(Box::new(read().unwrap_or_default()));
    let mut table = Table {
        rows: QuickMap::default(),
        means: QuickMap::default(),
    };
    for row in &file.program {
        for name in row.names.split_ascii_whitespace() {
            table.rows.entry(name).or_default().push(row);
        }
    }
    for means in &file.means {
        let program = means.from.split(' ').next().unwrap_or_default();
        table.means.entry(program).or_default().push(means);
    }
    table
});

/// A test proves that the file can be parsed.
fn read() -> Result<File, toml::de::Error> {
    toml::from_str(include_str!("../tables/spellings.toml"))
}

/// The commands that a call of this program may include.
pub fn means(program: &str) -> &'static [&'static Means] {
    TABLE.means.get(program).map_or(&[], Vec::as_slice)
}

/// What is known about the spellings of a program's options and operands, for one subcommand.
#[derive(Default)]
pub struct Spellings {
    rows: Vec<&'static Row>,
}

/// What a program does with the word after an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextWord {
    Value,
    Operand,
    Unknown,
}

impl Spellings {
    /// The rows for a program; those of a subcommand only if `has` finds its words in the command or the rule.
    pub fn of(program: &str, has: impl Fn(&str) -> bool) -> Spellings {
        let rows = TABLE.rows.get(program).or_else(|| TABLE.rows.get("*"));
        let rows = rows.into_iter().flatten();
        let is_meant = |row: &&&'static Row| row.of.split_ascii_whitespace().all(&has);
        Spellings {
            rows: rows.filter(is_meant).copied().collect(),
        }
    }

    pub fn are_exact(&self) -> bool {
        self.rows.iter().any(|row| row.exact)
    }

    pub fn have_one_dash(&self) -> bool {
        self.rows.iter().any(|row| row.one_dash)
    }

    pub fn have_targets(&self) -> bool {
        self.rows.iter().any(|row| row.targets)
    }

    fn groups(&self) -> impl Iterator<Item = &'static str> {
        let rows = self.rows.iter();
        rows.flat_map(|row| row.options.iter().map(String::as_str))
    }

    /// The spellings of an option; empty if it is not known.
    pub fn of_option(&self, option: &str) -> Vec<&'static str> {
        let groups = self.groups().map(str::split_ascii_whitespace);
        let known = groups.filter(|group| group.clone().any(|spelling| spelling == option));
        known.flatten().filter(|text| *text != "=").collect()
    }

    pub fn knows(&self, option: &str) -> bool {
        let mut spellings = self.groups().flat_map(str::split_ascii_whitespace);
        spellings.any(|spelling| spelling == option)
    }

    /// What stands behind an option without an attached value.
    pub fn next_of(&self, option: &str) -> NextWord {
        let mut groups = self.groups();
        let has = |group: &&str| group.split_ascii_whitespace().any(|text| text == option);
        match groups.find(has) {
            None => NextWord::Unknown,
            Some(group) if group.ends_with('=') => NextWord::Value,
            Some(_) => NextWord::Operand,
        }
    }

    /// An operand in its first spelling.
    pub fn plain<'w>(&self, word: &'w str) -> &'w str {
        let numbers = self.rows.iter().any(|row| row.numbers);
        let is_number = || !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let word = match numbers && is_number() {
            true => word.trim_start_matches('0'),
            false => word,
        };
        self.first_of_group(word).unwrap_or(word)
    }

    fn first_of_group(&self, word: &str) -> Option<&'static str> {
        let rows = self.rows.iter();
        let mut groups = rows.flat_map(|row| row.words.iter().map(String::as_str));
        let group = groups.find(|group| group.split_ascii_whitespace().any(|text| text == word))?;
        group.split_ascii_whitespace().next()
    }

    /// Whether a subcommand may be an abbreviation of another.
    pub fn may_shorten(&self, word: &str, of: &str) -> bool {
        let shortened = self.rows.iter().any(|row| row.shortened);
        shortened && !word.is_empty() && of.starts_with(word) && self.first_of_group(word).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_no_row_has_an_option_twice() {
        let file = read().expect("a good file");
        assert!(!file.means.is_empty());
        for row in &file.program {
            let options = row.options.iter().flat_map(|group| group.split(' '));
            let mut options: Vec<&str> = options.filter(|text| *text != "=").collect();
            let all = options.len();
            options.sort_unstable();
            options.dedup();
            assert_eq!(options.len(), all, "{} {}", row.names, row.of);
        }
    }

    #[test]
    fn a_row_for_a_subcommand_counts_only_there() {
        let commit = Spellings::of("git", |word| word == "commit");
        assert_eq!(commit.of_option("-n"), ["-n", "--no-verify"]);
        assert_eq!(commit.next_of("-m"), NextWord::Value);
        assert_eq!(commit.next_of("--new"), NextWord::Unknown);
        let reset = Spellings::of("git", |word| word == "reset");
        assert!(!reset.knows("-n"));
        let chmod = Spellings::of("chmod", |_| false);
        assert_eq!(chmod.plain("0777"), "777");
        assert_eq!(chmod.plain("a+rwx"), "777");
    }
}
