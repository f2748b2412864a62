//! Commands that only read, and only inside the slot's directory. Claude Code does not ask about these by itself, so a policy
//! that asks by default leaves them to it. Everything must be proven: the program, each option and each path must be known. A
//! person is asked about anything that is not listed.

mod git;
mod table;

use super::directories::Directories;
use crate::core::policy::harm::has_word;
use crate::core::policy::judge::Case;
use crate::core::policy::shell::{Simple, Word};
use table::{Operands, Program};

/// Whether a command only reads inside the slot's directory, as far as its words tell. `words` are its own, without wrappers. The
/// caller checks for harm.
pub fn only_reads(
    case: &Case<'_>,
    simple: &Simple,
    words: &[Word],
    directories: &Directories,
) -> bool {
    let globs = false;
    Reader {
        case,
        directories,
        globs,
    }
    .only_reads(simple, words)
}

/// The same for a command whose globs are known to match nothing outside: the rules have checked what they match.
pub fn only_reads_globs(
    case: &Case<'_>,
    simple: &Simple,
    words: &[Word],
    directories: &Directories,
) -> bool {
    let globs = true;
    Reader {
        case,
        directories,
        globs,
    }
    .only_reads(simple, words)
}

/// `nohup` writes a file, and `xargs` adds unknown words.
fn has_other_wrapper(all: &[Word], own: &[Word]) -> bool {
    let wrappers = &all[..all.len() - own.len()];
    wrappers
        .iter()
        .any(|word| matches!(word.text.as_str(), "nohup" | "xargs"))
}

/// Other options set the clock or read a file.
fn only_shows_date(word: &Word) -> bool {
    word.text.starts_with('+') || matches!(word.text.as_str(), "-u" | "-R" | "-I" | "--utc")
}

struct Reader<'a> {
    case: &'a Case<'a>,
    directories: &'a Directories,
    /// Whether a glob may be among the files.
    globs: bool,
}

impl Reader<'_> {
    fn only_reads(&self, simple: &Simple, words: &[Word]) -> bool {
        let Some((name, arguments)) = words.split_first() else {
            return false;
        };
        let is_plain = |word: &Word| word.doubt.is_none();
        if simple.guessed
            || !name.is_plain_name()
            || !arguments.iter().all(is_plain)
            || has_other_wrapper(&simple.words, words)
            || !self.stands_inside()
        {
            return false;
        }
        match name.text.as_str() {
            "git" => {
                git::only_reads(arguments) && arguments.iter().all(|word| self.is_inside(word))
            }
            "find" => self.find(arguments),
            "sed" => self.sed(arguments),
            "date" => arguments.iter().all(only_shows_date),
            program => table::of(program).is_some_and(|program| self.by_table(program, arguments)),
        }
    }

    /// Whether it runs inside the slot's directory after every earlier `cd`.
    fn stands_inside(&self) -> bool {
        let mut all = self.directories.all().iter();
        all.all(|cwd| {
            let place = self.case.ground.place(".", cwd);
            self.case.ground.is_inside(&place)
        })
    }

    /// Whether every place that a word may name is inside. A glob may match a link that leads out.
    fn is_inside(&self, word: &Word) -> bool {
        let places = self.directories.places(word, &self.case.ground);
        (self.globs || !word.globs) && places.iter().all(|place| self.case.ground.is_inside(place))
    }

    fn by_table(&self, program: &Program, arguments: &[Word]) -> bool {
        if program.operands == Operands::Text {
            // A glob would show the names in another directory.
            let mut globs = arguments.iter().filter(|word| word.globs);
            return globs.all(|word| self.is_inside(word));
        }
        let Some(mut operands) = program.operands_among(arguments) else {
            return false;
        };
        if program.operands == Operands::PatternThenFiles && !program.is_given_pattern(arguments) {
            operands.next();
        }
        operands.all(|word| self.is_inside(word))
    }

    /// `find` with tests and with actions that print.
    fn find(&self, arguments: &[Word]) -> bool {
        const FLAGS: &str = "-print -print0 -empty -not -o -or -a -and -prune -depth -ls -readable -writable \
            -executable -daystart -mount -xdev -true -false -quit ! ( ) ,";
        const VALUED: &str = "-name -iname -path -ipath -wholename -regex -iregex -regextype -type -maxdepth \
            -mindepth -size -mtime -mmin -ctime -cmin -atime -amin -perm -user -group -links -printf";
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            let is_known = match text {
                _ if has_word(VALUED, text) => words.next().is_some_and(|value| !value.globs),
                _ if has_word(FLAGS, text) => true,
                "-newer" => words.next().is_some_and(|file| self.is_inside(file)),
                _ => !text.starts_with('-') && self.is_inside(word),
            };
            if !is_known {
                return false;
            }
        }
        true
    }

    /// `sed -n '10,20p' file`: a script that prints lines by their numbers.
    fn sed(&self, arguments: &[Word]) -> bool {
        let [quiet, script, files @ ..] = arguments else {
            return false;
        };
        let is_line = |text: &str| {
            text == "$" || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let prints = |command: &str| {
            let lines = command.trim().strip_suffix('p');
            lines.is_some_and(|lines| lines.splitn(2, ',').all(is_line))
        };
        let is_file = |word: &Word| !word.text.starts_with('-') && self.is_inside(word);
        quiet.text == "-n" && script.text.split(';').all(prints) && files.iter().all(is_file)
    }
}
