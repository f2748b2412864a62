//! Names of files that one part of a command finds and hands to another: through `xargs`, or by `find -exec`. They are not
//! known, but it is known where they lie and how they end.

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

/// Where the names come from. A source is known only if each name that it prints is that of a file below its places: it has
/// no format of its own, and no filter reads or writes anything else.
#[derive(Debug, Clone, Default)]
pub struct Source {
    places: Vec<Place>,
    /// How every name ends; none if that is not known.
    endings: Vec<String>,
    /// Names are told apart by zero bytes, or given to the program one by one.
    exact: bool,
    /// Links are not among them.
    files_alone: bool,
}

/// Programs that pass on some of the lines that they read.
const FILTERS: &str = "grep egrep fgrep sort uniq head tail";

/// Programs that show nothing of what is in a file, and have no option that writes one.
const COUNT: &str = "wc ls du stat md5sum sha1sum sha256sum sha512sum basename dirname realpath";

/// Whether a program tells nothing of a file but its size, its sum or its name, whatever words it is given.
pub fn only_counts(words: &[Word]) -> bool {
    let name = words.first();
    name.is_some_and(|name| harm::has_word(COUNT, &name.text))
}

/// What feeds the command at this place, if it reads names from a part before it in the same pipe.
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

/// Whether a filter reads nothing but its input, and prints lines of it as they are.
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

/// What a command prints that looks for files.
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

/// Options with which git prints names alone, each as it is.
const LISTS: &str = "--name-only --cached --staged --others --modified --exclude-standard --relative -z -c -o -m --";

fn only_known(texts: &[&str], known: &str) -> bool {
    let options = texts.iter().filter(|text| text.starts_with('-'));
    options.into_iter().all(|text| harm::has_word(known, text))
}

/// Tests of find, and what joins them. Nothing else is among its words if it prints names alone: `-printf` prints anything,
/// and `-exec` what another program prints.
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

/// Whether every name is that of a plain file: `-type f` stands before all that could be true instead of it.
fn names_files_alone(texts: &[&str]) -> bool {
    let files = texts.windows(2).position(|pair| pair == ["-type", "f"]);
    let Some(files) = files else {
        return false;
    };
    let is_negated = files > 0 && matches!(texts[files - 1], "-not" | "!");
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
    !is_negated && !is_in_brackets && !has_other
}

/// How all of these patterns end; nothing if one of them has no plain end.
fn endings<'w>(patterns: impl Iterator<Item = &'w str>) -> Vec<String> {
    let patterns = patterns.filter(|pattern| !pattern.starts_with('-'));
    let ends: Option<Vec<String>> = patterns.map(ending).collect();
    ends.unwrap_or_default()
}

/// How every name ends that a pattern stands for: at least a dot and a letter, or a whole name.
fn ending(pattern: &str) -> Option<String> {
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
    let mut names = Vec::new();
    for (at, _) in texts
        .iter()
        .enumerate()
        .filter(|(_, text)| matches!(**text, "-name" | "-iname"))
    {
        let is_negated = at > 0 && matches!(texts[at - 1], "-not" | "!");
        names.extend(texts.get(at + 1).filter(|_| !is_negated).copied());
    }
    let branches = texts
        .iter()
        .filter(|text| matches!(**text, "-o" | "-or" | ","))
        .count();
    let is_whole = names.len() > branches;
    let ends = if is_whole {
        endings(names.into_iter())
    } else {
        Vec::new()
    };
    Some((places, ends))
}

impl Source {
    /// Whether a program that only reads may be given these names: none of them is one that a rule restricts.
    pub fn is_open(&self, case: &Case<'_>, words: &[Word]) -> bool {
        let restricts = |rule: &crate::core::policy::Rule| match &rule.meaning {
            Meaning::Path(Access::Read, pattern) if rule.decision > Decision::Allow => {
                self.may_name(case, pattern)
            }
            _ => false,
        };
        if case.policy.rules().any(restricts) {
            return false;
        }
        // A name with a space in it is two names to xargs, and a link leads anywhere.
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
        let ends = |name: &str| {
            self.endings
                .iter()
                .any(|ending| name.ends_with(ending.as_str()))
        };
        match (self.endings.is_empty(), pattern.literal_name()) {
            (true, _) => true,
            (false, Some(name)) => ends(name),
            (false, None) => match pattern.ending() {
                Some(end) => self
                    .endings
                    .iter()
                    .any(|own| own.ends_with(end) || end.ends_with(own.as_str())),
                None => pattern.existing(&case.ground).is_none_or(|found| {
                    let is_directory_of_any = pattern.reaches_below();
                    let named = |place: &Place| place.written.to_str().is_none_or(ends);
                    found
                        .iter()
                        .any(|place| is_directory_of_any || named(place))
                }),
            },
        }
    }
}

/// `grep -l` and `-c` name files and count lines.
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
