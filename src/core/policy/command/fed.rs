//! File names that one part of a command finds and passes to another, through `xargs` or `find -exec`. The names are not known,
//! but their directories and their endings are.

use super::Command;
use super::directories::Directories;
use crate::core::policy::Decision;
use crate::core::policy::ground::Odd;
use crate::core::policy::harm;
use crate::core::policy::judge::Case;
use crate::core::policy::paths::{PathPattern, Place};
use crate::core::policy::rule::Meaning;
use crate::core::policy::shell::Word;
use crate::core::policy::tools::Access;
use std::path::Path;

/// The source of the names. It is known only if each printed name is a file below its places: the command has no output format of
/// its own, and no filter reads or writes anything else.
#[derive(Debug, Clone, Default)]
pub struct Source {
    places: Vec<Place>,
    /// The ending of every name; empty if it is not known.
    endings: Vec<String>,
    /// Names are separated by NUL bytes, or passed to the program one by one.
    exact: bool,
    /// The names do not include links.
    files_alone: bool,
}

/// Programs that print some of the lines that they read.
const FILTERS: &str = "grep egrep fgrep sort uniq head tail";

/// Programs that print nothing of a file's content, and have no option that writes a file.
const COUNT: &str = "wc ls du stat md5sum sha1sum sha256sum sha512sum basename dirname realpath";

/// Whether a program prints only the size, the checksum or the name of a file, whatever its arguments are.
pub fn only_counts(words: &[Word]) -> bool {
    let name = words.first();
    name.is_some_and(|name| harm::has_word(COUNT, &name.text))
}

/// The source of the names for the command at this position, if an earlier part of the same pipe prints them.
pub fn source(
    case: &Case<'_>,
    commands: &[Command<'_>],
    at: usize,
    text: &str,
    directories: &Directories,
) -> Option<Source> {
    let is_exact = |word: &Word| word.text == "-0" || word.text == "--null";
    let exact = commands[at].simple.words.iter().skip(1).any(is_exact);
    let mut at = at;
    loop {
        let before = at.checked_sub(1)?;
        is_piped(commands, before, at, text).then_some(())?;
        let words = commands[before].stripped.words;
        let name = words.first()?.text.as_str();
        let is_filter = harm::has_word(FILTERS, name)
            && passes_lines(words)
            && reads_its_input(commands, before, text);
        if !is_filter {
            let source = found_by(case, words, directories)?;
            return Some(Source { exact, ..source });
        }
        at = before;
    }
}

fn is_piped(commands: &[Command<'_>], from: usize, to: usize, text: &str) -> bool {
    let end = commands[from].simple.start + commands[from].simple.text.len();
    let between = text.get(end..commands[to].simple.start);
    between.is_some_and(|between| between.trim() == "|")
}

fn reads_its_input(commands: &[Command<'_>], at: usize, text: &str) -> bool {
    at > 0 && is_piped(commands, at - 1, at, text)
}

/// Whether a filter reads only its input, and prints lines of it unchanged.
fn passes_lines(words: &[Word]) -> bool {
    let Some((name, arguments)) = words.split_first() else {
        return false;
    };
    let mut texts = arguments.iter().map(|word| word.text.as_str());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let flags = |text: &str, known: &str| {
        let letters = text.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|letter| known.contains(letter))
    };
    match name.text.as_str() {
        "sort" => texts.all(|text| flags(text, "urnfV")),
        "uniq" => texts.next().is_none(),
        "head" | "tail" => match (texts.next(), texts.next(), texts.next()) {
            (None, ..) => true,
            (Some("-n"), Some(count), None) => is_number(count),
            (Some(count), None, _) => {
                let count = count.strip_prefix("-n").or(count.strip_prefix('-'));
                count.is_some_and(is_number)
            }
            _ => false,
        },
        // One pattern, and no file.
        _ => {
            let patterns = texts
                .filter(|text| !flags(text, "viEFwx"))
                .collect::<Vec<_>>();
            matches!(patterns.as_slice(), [pattern] if !pattern.starts_with('-'))
        }
    }
}

/// The source for the output of a command that finds files.
pub fn found_by(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Source> {
    let (name, arguments) = words.split_first()?;
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let (places, endings, files_alone) = match (name.text.as_str(), texts.as_slice()) {
        ("find", _) => {
            only_looks(&texts).then_some(())?;
            let (places, endings) = found_by_find(&texts)?;
            (places, endings, names_files_alone(&texts))
        }
        ("git", ["ls-files", rest @ ..]) => {
            only_known(rest, LISTS).then_some(())?;
            (vec!["."], endings(rest.iter().copied()), false)
        }
        ("git", ["diff", rest @ ..]) if rest.contains(&"--name-only") => {
            only_known(rest, LISTS).then_some(())?;
            let named = rest.iter().skip_while(|word| **word != "--");
            (vec!["."], endings(named.copied()), false)
        }
        ("rg", ["--files", named @ ..]) | ("rg", ["-l", _, named @ ..]) => {
            let is_option = |text: &&str| text.starts_with('-');
            (!named.is_empty() && !texts[1..].iter().any(is_option)).then_some(())?;
            (named.to_vec(), Vec::new(), false)
        }
        _ => return None,
    };
    let all = directories.all().iter();
    let places = all.flat_map(|cwd| places.iter().map(|text| case.ground.place(text, cwd)));
    let places: Vec<Place> = places.collect();
    let is_inside = |place: &Place| case.ground.is_inside(place) && place.doubt.is_none();
    places.iter().all(is_inside).then_some(Source {
        places,
        endings,
        exact: true,
        files_alone,
    })
}

/// Options with which git prints only names, unchanged.
const LISTS: &str = "--name-only --cached --staged --others --modified --exclude-standard --relative -z -c -o -m --";

fn only_known(texts: &[&str], known: &str) -> bool {
    let options = texts.iter().filter(|text| text.starts_with('-'));
    options.into_iter().all(|text| harm::has_word(known, text))
}

/// Tests of find, and operators. A find that prints only names has nothing else: `-printf` prints anything, and `-exec` prints
/// another program's output.
const TESTS: &str = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -maxdepth -mindepth -newer -mtime \
    -mmin -atime -amin -ctime -cmin -size -empty -perm -user -group -readable -executable -not -o -or -a -and -prune -print \
    -print0 -depth -mount -xdev";

fn only_looks(texts: &[&str]) -> bool {
    let is_number = |text: &str| text[1..].starts_with(|c: char| c.is_ascii_digit());
    let options = texts
        .iter()
        .filter(|text| text.starts_with('-') && text.len() > 1);
    options
        .into_iter()
        .all(|text| harm::has_word(TESTS, text) || is_number(text))
}

/// Whether every name is a plain file: `-type f` comes before every alternative.
fn names_files_alone(texts: &[&str]) -> bool {
    let files = texts.windows(2).position(|pair| pair == ["-type", "f"]);
    let Some(files) = files else {
        return false;
    };
    let is_negated = files > 0 && matches!(texts[files - 1], "-not" | "!");
    let is_late = texts[..files].iter().any(|text| acts(text));
    let is_in_brackets = texts[..files].contains(&"(");
    let mut depth = 0_usize;
    let has_other = texts.iter().any(|text| {
        match *text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(*text, "-o" | "-or" | ",")
    });
    !is_negated && !is_late && !is_in_brackets && !has_other
}

/// Whether a word of find is an action: it prints or runs something, and later tests do not restrict that.
fn acts(text: &str) -> bool {
    ["-print", "-exec", "-ok", "-fprint", "-ls", "-fls"]
        .iter()
        .any(|action| text.starts_with(action))
}

/// The pattern of the first `-name` in a branch of tests, if it comes before every action of the branch.
fn name_in_branch<'w>(texts: &[&'w str]) -> Option<&'w str> {
    let is_name = |at: &usize| {
        let is_negated = *at > 0 && matches!(texts[at - 1], "-not" | "!");
        // `-iname` also matches names in other letters than its own.
        texts[*at] == "-name" && !is_negated
    };
    let at = (0..texts.len()).find(is_name)?;
    let is_late = texts[..at].iter().any(|text| acts(text));
    texts.get(at + 1).filter(|_| !is_late).copied()
}

/// The endings of all these patterns; empty if one of them has no literal ending.
fn endings<'w>(patterns: impl Iterator<Item = &'w str>) -> Vec<String> {
    let patterns = patterns.filter(|pattern| !pattern.starts_with('-'));
    let ends: Option<Vec<String>> = patterns.map(ending).collect();
    ends.unwrap_or_default()
}

/// The ending of every name that a pattern matches: at least a dot and a letter, or a whole name.
pub fn ending(pattern: &str) -> Option<String> {
    let end = pattern.rsplit(['*', '?', ']', '/']).next()?;
    let is_telling = end.len() >= 2 && end.contains('.') && !end.contains(['[', '\\']);
    is_telling.then(|| end.to_owned())
}

fn found_by_find<'w>(texts: &[&'w str]) -> Option<(Vec<&'w str>, Vec<String>)> {
    let is_path = |text: &&&str| !text.starts_with(['-', '(', '!']);
    let mut places: Vec<&str> = texts.iter().take_while(is_path).copied().collect();
    if places.is_empty() {
        places.push(".");
    }
    // Links lead anywhere.
    let follows =
        |text: &&str| matches!(*text, "-L" | "-H" | "-follow" | "-lname" | "-files0-from");
    (!texts.iter().any(follows)).then_some(())?;
    let branches = texts.split(|text| matches!(*text, "-o" | "-or" | ","));
    let names: Option<Vec<&str>> = branches.map(name_in_branch).collect();
    let negates = |pair: &[&str]| matches!(pair[0], "-not" | "!") && pair[1] == "(";
    let names = names.filter(|_| !texts.windows(2).any(negates));
    let ends = names.map_or_else(Vec::new, |names| endings(names.into_iter()));
    Some((places, ends))
}

impl Source {
    /// Whether a program that only reads may get these names: no rule restricts any of them.
    pub fn is_open(&self, case: &Case<'_>, words: &[Word]) -> bool {
        let restricts = |rule: &crate::core::policy::Rule| match rule.meaning() {
            Meaning::Path(Access::Read, pattern) if rule.decision > Decision::Allow => {
                self.may_name(case, pattern)
            }
            _ => false,
        };
        if case.policy.rules().any(restricts) {
            return false;
        }
        // xargs splits a name at a space, and a link leads anywhere.
        let odd = Odd {
            names: !self.exact,
            links: !self.files_alone,
        };
        let has_odd = |place: &Place| case.ground.has_below(place, odd);
        only_counts(words) || only_lists(words) || !self.places.iter().any(has_odd)
    }

    fn may_name(&self, case: &Case<'_>, pattern: &PathPattern) -> bool {
        let below = |place: &Place| {
            place
                .ways()
                .any(|path| pattern.may_match_below(path, &case.ground))
        };
        if !self.places.iter().any(below) {
            return false;
        }
        let is_there = |place: &Place| {
            let mut ways = place.ways();
            ways.any(|path| pattern.begins_above(path, &case.ground))
        };
        if self.places.iter().any(is_there) {
            return true;
        }
        self.endings.is_empty() || may_end_so(case, pattern, &self.endings)
    }
}

/// Whether a file that a pattern matches may have one of these endings. If the pattern does not tell, the existing files do.
pub fn may_end_so(case: &Case<'_>, pattern: &PathPattern, endings: &[String]) -> bool {
    let ends = |name: &str| {
        let mut endings = endings.iter();
        endings.any(|ending| name.ends_with(ending.as_str()))
    };
    match (pattern.literal_name(), pattern.ending()) {
        (Some(name), _) if !pattern.has_open_end() => ends(name),
        (_, Some(end)) => endings
            .iter()
            .any(|own| own.ends_with(end) || end.ends_with(own.as_str())),
        _ => pattern.existing(&case.ground).is_none_or(|found| {
            let fits = |path: &Path| path.to_str().is_none_or(ends);
            found.iter().any(|place| {
                let below = || {
                    case.ground
                        .finds_below(place, |path| fits(path) || case.ground.is_link(path))
                };
                place.ways().any(fits) || pattern.reaches_below() && below()
            })
        }),
    }
}

/// `grep -l` and `-c` print names and counts.
fn only_lists(words: &[Word]) -> bool {
    let is_grep = words
        .first()
        .is_some_and(|name| harm::has_word("grep egrep fgrep rg", &name.text));
    let lists = |word: &Word| {
        let cluster = word.text.strip_prefix('-').unwrap_or_default();
        !cluster.starts_with('-') && cluster.contains(['l', 'L', 'c', 'q'])
    };
    is_grep && words.iter().skip(1).any(lists)
}
