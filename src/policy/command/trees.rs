//! Programs that read every file below a directory, or bring it to another place: what a rule keeps from being read
//! must not lie there.

use super::places::Directories;
use crate::policy::harm;
use crate::policy::judge::Case;
use crate::policy::rule::{Meaning, Rule};
use crate::policy::shell::Word;
use crate::policy::tools::Access;
use crate::policy::{Decision, Verdict};

/// What a search goes through, as far as its words tell.
struct Search<'w> {
    /// Where it looks; the working directory where it names nothing.
    places: Vec<&'w str>,
    /// It leaves out files whose names begin with a dot.
    skips_hidden: bool,
    /// The names stay as they are below the slot's directory, so that rules on names alone go on to hold.
    keeps_names: bool,
    does: &'static str,
}

/// A person is asked about a search that may come across a restricted file.
pub fn restriction(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Verdict> {
    if !case.policy.index.restricts_paths() {
        return None;
    }
    let search = search_of(words).or_else(|| transfer_of(case, words, directories))?;
    let places: Vec<_> = search
        .places
        .iter()
        .flat_map(|text| {
            directories
                .all()
                .iter()
                .map(|cwd| case.ground.place(text, cwd))
        })
        .collect();
    let comes_across = |rule: &&Rule| match &rule.meaning {
        Meaning::Path(Access::Read, pattern) if rule.decision > Decision::Allow => {
            let hidden = pattern
                .literal_name()
                .is_some_and(|name| name.starts_with('.'));
            let below = |path| pattern.may_match_below(path, &case.ground);
            let is_passed_by =
                hidden && search.skips_hidden || search.keeps_names && pattern.is_by_name();
            !is_passed_by && places.iter().any(|place| place.ways().any(below))
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

fn search_of(words: &[Word]) -> Option<Search<'_>> {
    let (name, arguments) = words.split_first()?;
    let (patterns, skips_hidden) = match name.text.as_str() {
        // The word `grep` itself stands before the pattern.
        "git" if arguments.first()?.text == "grep" => (2, false),
        "grep" | "egrep" | "fgrep" | "zgrep" if arguments.iter().any(|w| recurses(&w.text)) => {
            (1, false)
        }
        "rgrep" => (1, false),
        "rg" | "ag" | "ack" => (1, !arguments.iter().any(|word| shows_hidden(&word.text))),
        "diff" if arguments.iter().any(|word| recurses(&word.text)) => {
            return Some(Search::through(operands_of(arguments, "diff")));
        }
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
    let sources = transfer.sources.iter().map(|word| word.text.as_str());
    Some(Search {
        keeps_names,
        does: "brings elsewhere what lies",
        ..Search::through(sources.collect())
    })
}

impl<'w> Search<'w> {
    fn through(places: Vec<&'w str>) -> Search<'w> {
        Search {
            places,
            skips_hidden: false,
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

fn shows_hidden(word: &str) -> bool {
    is_cluster_with(word, &['.', 'u', 'a', 'U'])
        || ["--hid", "--no-ig", "--unr", "--all"]
            .iter()
            .any(|s| word.starts_with(s))
}

fn gives_pattern(word: &str) -> bool {
    is_cluster_with(word, &['e', 'f']) || word.starts_with("--regexp") || word.starts_with("--file")
}
