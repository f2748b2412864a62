//! Programs that read every file below a directory, or bring it to another place: what a rule keeps from being read
//! must not lie there.

use super::directories::Directories;
use super::git;
use crate::core::policy::harm;
use crate::core::policy::judge::Case;
use crate::core::policy::paths::Place;
use crate::core::policy::rule::{Meaning, Rule};
use crate::core::policy::secrets;
use crate::core::policy::shell::Word;
use crate::core::policy::tools::Access;
use crate::core::policy::{Decision, Verdict};
use std::path::Path;

/// What a search goes through, as far as its words tell.
struct Search<'w> {
    /// The directories to which it goes before it looks.
    ways: Vec<&'w str>,
    /// Where it looks; the working directory where it names nothing.
    places: Vec<&'w str>,
    /// It leaves out files whose names begin with a dot.
    skips_hidden: bool,
    /// It follows links, and so comes to any place.
    follows_links: bool,
    /// The names stay as they are below the slot's directory, so that rules on names alone go on to hold.
    keeps_names: bool,
    does: &'static str,
}

/// A person is asked about a search that may come across a restricted file or a well-known secret.
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

/// A search through a directory in which a well-known secret may lie: a rule for a program that searches did not mean that.
fn above_secrets(case: &Case<'_>, search: &Search<'_>, places: &[Place]) -> Option<Verdict> {
    let is_above = |path: &Path| secrets::may_lie_below(path, &case.ground);
    let found = places.iter().find(|place| place.ways().any(is_above))?;
    Some(Verdict {
        decision: Decision::Ask,
        rule: None,
        why: format!(
            "it {} in {}, where files with secrets may lie",
            search.does,
            found.written.display()
        ),
    })
}

fn by_rule(case: &Case<'_>, search: &Search<'_>, places: &[Place]) -> Option<Verdict> {
    let comes_across = |rule: &&Rule| match &rule.meaning {
        Meaning::Path(Access::Read, pattern) if rule.decision > Decision::Allow => {
            let hidden = pattern
                .literal_name()
                .is_some_and(|name| name.starts_with('.'));
            let below = |path| pattern.may_match_below(path, &case.ground);
            let is_passed_by =
                hidden && search.skips_hidden || search.keeps_names && pattern.is_by_name();
            let is_met = || places.iter().any(|place| place.ways().any(below));
            !is_passed_by && (search.follows_links || is_met())
        }
        _ => false,
    };
    let rule = case.policy.rules().find(comes_across)?;
    Some(Verdict {
        decision: Decision::Ask,
        rule: Some(rule.at.clone()),
        why: format!(
            "it {} where files may lie that {} covers",
            search.does, rule.at.text
        ),
    })
}

/// `git grep pattern commits -- paths`: what stands before the dashes may be a commit, and so everything.
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
    let mut places: Vec<&str> = match behind.get(1..) {
        Some(paths) => paths.iter().map(|word| word.text.as_str()).collect(),
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
        "rg" | "ag" | "ack" => (1, !arguments.iter().any(|word| shows_hidden(&word.text))),
        // Of two directories it compares the files with the same names, also without `-r`.
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
        follows_links: arguments.iter().any(|word| follows(&name.text, &word.text)),
        ..Search::through(places)
    })
}

/// A copy, a move, a link or an archive of what may be a directory.
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
    // Most of what is moved or linked is a single file.
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
            keeps_names: false,
            does: "searches",
        }
    }
}

/// Options of searches whose value is the word behind them.
const VALUED: &str = "--include --exclude --exclude-dir --exclude-from --max-count --after-context --before-context \
    --context --glob --iglob --type --type-not --max-depth --threads --color --colors --colour --regexp --file \
    --sort --sortr --replace --encoding --engine --label --binary-files --directories --devices --max-columns";

/// The words that are no options and no values of options.
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

/// Whether an option makes a search follow the links that it meets.
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
