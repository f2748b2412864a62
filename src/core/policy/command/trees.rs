//! Programs that read every file below a directory, or copy it to another place: there must be no file that a rule protects from
//! reading.

use super::directories::Directories;
use super::{fed, git};
use crate::core::policy::harm;
use crate::core::policy::judge::Case;
use crate::core::policy::paths::Place;
use crate::core::policy::rule::{Meaning, Rule};
use crate::core::policy::secrets;
use crate::core::policy::shell::Word;
use crate::core::policy::tools::Access;
use crate::core::policy::{Decision, Verdict};
use std::path::Path;

/// The files that a search reads, as far as its words tell.
struct Search<'w> {
    /// The directories to which it changes first.
    ways: Vec<&'w str>,
    /// Where it searches; the working directory if it names none.
    places: Vec<&'w str>,
    /// It skips files whose names begin with a dot.
    skips_hidden: bool,
    /// It follows links, and so may reach any place.
    follows_links: bool,
    /// It may search the whole repository, whatever its places are.
    is_open: bool,
    /// The endings of the names that it reads; empty if it reads all.
    endings: Vec<String>,
    /// The files keep their names and stay below the slot's directory, so that rules on names still match them.
    keeps_names: bool,
    does: &'static str,
}

/// A search becomes *ask* if it may find a restricted file or a well-known secret.
pub fn restriction(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Verdict> {
    let search = git_search(case, words, directories)
        .or_else(|| search_of(words))
        .or_else(|| transfer_of(case, words, directories))?;
    let texts = search.places.iter();
    let after = (!search.ways.is_empty()).then(|| directories.after(&search.ways, &case.ground));
    let directories = after.as_ref().unwrap_or(directories);
    let places: Vec<Place> = texts
        .flat_map(|text| directories.places_of_text(text, &case.ground))
        .collect();
    by_rule(case, &search, &places).or_else(|| above_secrets(case, &search, &places))
}

/// A search in a directory that may contain a well-known secret: a rule for a search program does not cover that.
fn above_secrets(case: &Case<'_>, search: &Search<'_>, places: &[Place]) -> Option<Verdict> {
    let is_above = |path: &Path| secrets::may_lie_below(path, &case.ground);
    let found = places.iter().find(|place| place.ways().any(is_above))?;
    Some(Verdict {
        decision: Decision::Ask,
        rule: None,
        why: format!(
            "it {} in {}, which may contain files with secrets",
            search.does,
            found.written.display()
        ),
    })
}

fn by_rule(case: &Case<'_>, search: &Search<'_>, places: &[Place]) -> Option<Verdict> {
    let comes_across = |rule: &&Rule| match rule.meaning() {
        Meaning::Path(Access::Read, pattern) if rule.decision > Decision::Allow => {
            let hidden = pattern.is_hidden();
            let below = |path| pattern.may_match_below(path, &case.ground);
            let is_passed_by =
                hidden && search.skips_hidden || search.keeps_names && pattern.is_by_name();
            let is_met = || places.iter().any(|place| place.ways().any(below));
            let is_left_out = || {
                !search.endings.is_empty()
                    && !search.follows_links
                    && !fed::may_end_so(case, pattern, &search.endings)
            };
            let is_passed_by = is_passed_by || is_left_out();
            !is_passed_by && (search.follows_links || search.is_open || is_met())
        }
        _ => false,
    };
    let rule = case.policy.rules().find(comes_across)?;
    Some(Verdict {
        decision: Decision::Ask,
        rule: Some(rule.at.clone()),
        why: format!(
            "it {} where files may be that {} covers",
            search.does, rule.at.text
        ),
    })
}

/// `git grep pattern commits -- paths`: words before the dashes may be commits, with every file in them.
fn git_search<'w>(
    case: &Case<'_>,
    words: &'w [Word],
    directories: &Directories,
) -> Option<Search<'w>> {
    let (at, ways) = harm::git_subcommand(words).filter(|(at, _)| words[*at].text == "grep")?;
    let arguments = &words[at + 1..];
    let end = arguments.iter().position(|word| word.text == "--");
    let (before, behind) = arguments.split_at(end.unwrap_or(arguments.len()));
    let has_pattern = arguments.iter().any(|word| gives_pattern(&word.text));
    let named = operands_of(before, "git");
    let named = named.into_iter().skip(usize::from(!has_pattern));
    let own = directories.after(&ways, &case.ground);
    let mut is_open = false;
    let mut places: Vec<&str> = match behind.get(1..) {
        Some(paths) => {
            let searched = paths.iter().map(|word| git::searched(&word.text));
            let searched: Vec<git::Searched<'_>> = searched.collect();
            is_open = searched.contains(&git::Searched::Anything);
            searched.iter().filter_map(git::Searched::path).collect()
        }
        None => named
            .flat_map(|word| {
                let whole = git::may_be_commit(case, word, &own).then_some(".");
                [Some(word), whole].into_iter().flatten()
            })
            .collect(),
    };
    if places.is_empty() {
        places.push(".");
    }
    Some(Search {
        ways,
        is_open,
        ..Search::through(places)
    })
}

fn search_of(words: &[Word]) -> Option<Search<'_>> {
    let (name, arguments) = words.split_first()?;
    let (patterns, skips_hidden) = match name.text.as_str() {
        "grep" | "egrep" | "fgrep" | "zgrep" if arguments.iter().any(|w| recurses(&w.text)) => {
            (1, false)
        }
        "rgrep" => (1, false),
        // It only lists names.
        "rg" if arguments.iter().any(|word| word.text == "--files") => return None,
        "rg" | "ag" | "ack" => (1, !arguments.iter().any(|word| shows_hidden(&word.text))),
        // It compares the files with the same names in two directories, also without `-r`.
        "diff" => return Some(Search::through(operands_of(arguments, "diff"))),
        _ => return None,
    };
    let operands = operands_of(arguments, &name.text);
    let has_pattern = arguments.iter().any(|word| gives_pattern(&word.text));
    let patterns = if has_pattern { patterns - 1 } else { patterns };
    let places = match operands.get(patterns..) {
        Some([]) | None => vec!["."],
        Some(named) => named.to_vec(),
    };
    Some(Search {
        skips_hidden,
        endings: endings(&name.text, arguments),
        follows_links: arguments.iter().any(|word| follows(&name.text, &word.text)),
        ..Search::through(places)
    })
}

/// The endings of the names that the filters of a search let through; empty if that is not known. Each filter counts, although a
/// file has to pass them all.
fn endings(program: &str, arguments: &[Word]) -> Vec<String> {
    let words = arguments.iter().map(|word| word.text.as_str()).enumerate();
    let mut found = Vec::new();
    for (at, word) in words.take_while(|(_, word)| *word != "--") {
        let next = || arguments.get(at + 1).map_or("", |word| word.text.as_str());
        let value = |option: &str| match word.strip_prefix(option)? {
            "" => Some(next()),
            rest => rest.strip_prefix('='),
        };
        let of_letter = |letter: &str| match word.strip_prefix(letter)? {
            "" => Some(next()),
            rest => Some(rest.trim_start_matches('=')),
        };
        let (glob, kind) = match program {
            // These change what a type or a glob means.
            "rg" if ["--type-", "--iglob", "--glob-", "--no-glob"]
                .iter()
                .any(|start| word.starts_with(start)) =>
            {
                return Vec::new();
            }
            // After an `--exclude`, grep searches what no pattern matches; and an option may be shortened.
            "grep" | "egrep" | "fgrep" if widens(word) => return Vec::new(),
            "rg" => (
                value("--glob").or_else(|| of_letter("-g")),
                value("--type").or_else(|| of_letter("-t")),
            ),
            "grep" | "egrep" | "fgrep" => (value("--include"), None),
            _ => return Vec::new(),
        };
        let known = match (glob, kind) {
            (Some(glob), _) if glob.starts_with('!') => continue,
            (Some(glob), _) if glob.contains(['{', '\\']) => None,
            (Some(glob), _) => fed::ending(glob).map(|ending| vec![ending]),
            (_, Some(kind)) => harm::endings_of_type(kind),
            (None, None) => continue,
        };
        let Some(known) = known else {
            return Vec::new();
        };
        found.extend(known);
    }
    found
}

/// Whether an option of grep may let names through that `--include` does not match.
fn widens(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let is_filter = name.starts_with("--ex") || name.starts_with("--inc");
    is_filter && !["--exclude-dir", "--include"].contains(&name)
}

/// A copy, a move, a link or an archive of something that may be a directory.
fn transfer_of<'w>(
    case: &Case<'_>,
    words: &'w [Word],
    directories: &Directories,
) -> Option<Search<'w>> {
    let (name, arguments) = words.split_first()?;
    if harm::packs(&name.text, arguments) {
        let operands = arguments.iter().map(|word| word.text.as_str());
        let operands = operands.filter(|text| !text.starts_with('-'));
        return Some(Search {
            does: "packs what lies",
            ..Search::through(operands.collect())
        });
    }
    let transfer = harm::transfer(&name.text, arguments).filter(|transfer| transfer.recursive)?;
    let stays = |target: &&str| {
        let mut cwds = directories.all().iter();
        cwds.all(|cwd| case.ground.place(target, cwd).is_within(&case.ground.cwd))
    };
    // Most moves and links are of single files.
    let keeps_names =
        matches!(name.text.as_str(), "mv" | "ln") && transfer.targets.iter().all(stays);
    let sources = transfer.taken().map(|word| word.text.as_str());
    Some(Search {
        keeps_names,
        does: "brings elsewhere what lies",
        ..Search::through(sources.collect())
    })
}

impl<'w> Search<'w> {
    fn through(places: Vec<&'w str>) -> Search<'w> {
        Search {
            ways: Vec::new(),
            places,
            skips_hidden: false,
            follows_links: false,
            is_open: false,
            endings: Vec::new(),
            keeps_names: false,
            does: "searches",
        }
    }
}

/// Options of searches whose value is the next word.
const VALUED: &str = "--include --exclude --exclude-dir --exclude-from --max-count --after-context --before-context \
    --context --glob --iglob --type --type-not --type-add --type-clear --max-depth --maxdepth --max-filesize --threads --color \
    --colors --colour --regexp --file --sort --sortr --replace --encoding --engine --label --binary-files --directories \
    --devices --max-columns --context-separator --field-context-separator --field-match-separator --group-separator \
    --path-separator --ignore-file --pre --pre-glob --dfa-size-limit --regex-size-limit --hostname-bin --hyperlink-format \
    --generate";

/// The words that are neither options nor their values.
fn operands_of<'w>(arguments: &'w [Word], program: &str) -> Vec<&'w str> {
    let letters: &[char] = match program {
        "rg" => &[
            'A', 'B', 'C', 'E', 'M', 'T', 'd', 'e', 'f', 'g', 'j', 'm', 'r', 't',
        ],
        _ => &['A', 'B', 'C', 'D', 'd', 'e', 'f', 'm'],
    };
    let takes_value = |word: &str| match word.starts_with("--") {
        true => VALUED.split_whitespace().any(|option| option == word),
        false => word.starts_with('-') && word.ends_with(letters),
    };
    let mut operands = Vec::new();
    let mut words = arguments.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        if takes_value(word) {
            words.next();
        } else if !word.starts_with('-') || word == "-" {
            operands.push(word);
        }
    }
    operands
}

fn is_cluster_with(word: &str, letters: &[char]) -> bool {
    word.strip_prefix('-')
        .is_some_and(|rest| !rest.starts_with('-') && rest.contains(letters))
}

fn recurses(word: &str) -> bool {
    is_cluster_with(word, &['r', 'R', 'd'])
        || ["--rec", "--deref", "--dir"]
            .iter()
            .any(|start| word.starts_with(start))
}

/// Whether an option makes a search follow links.
fn follows(program: &str, word: &str) -> bool {
    let letter = match program {
        "rg" => 'L',
        "ag" => 'f',
        _ => 'R',
    };
    is_cluster_with(word, &[letter]) || ["--deref", "--fol"].iter().any(|s| word.starts_with(s))
}

fn shows_hidden(word: &str) -> bool {
    is_cluster_with(word, &['.', 'u', 'a', 'U'])
        || ["--hid", "--no-ig", "--unr", "--all"]
            .iter()
            .any(|s| word.starts_with(s))
}

fn gives_pattern(word: &str) -> bool {
    is_cluster_with(word, &['e', 'f']) || word.starts_with("--regexp") || word.starts_with("--file")
}
