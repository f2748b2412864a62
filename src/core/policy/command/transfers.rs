//! The places that a copy, a move or a link writes, which the words of a command do not name directly: below a directory.

use super::directories::Directories;
use super::places;
use crate::core::policy::ground::Ground;
use crate::core::policy::harm::{self, Harm};
use crate::core::policy::judge::Case;
use crate::core::policy::paths::Place;
use crate::core::policy::pattern::fits;
use crate::core::policy::protected as guarded;
use crate::core::policy::shell::Word;
use std::path::Path;

/// A place that is written.
pub struct Written {
    pub place: Place,
    /// Whether files with unknown names are put into it.
    pub filled: bool,
}

/// The most words that may each be the target, or a suffix of its name. With more, nothing is proven: each is combined with each
/// of the others.
const MOST_TARGETS: usize = 8;

/// The same limit for the parent directories of a source that is copied with its path.
const DEEPEST_WAY: usize = 32;

/// A copy, move or link that may write something protected.
pub fn harm(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Harm> {
    let (name, arguments) = words.split_first()?;
    let transfer = harm::transfer(&name.text, arguments)?;
    let ground = &case.ground;
    if is_beyond_proof(&transfer) {
        let why = format!("the place that {} writes is uncertain", name.text);
        return Some(Harm::inexcusable(why));
    }
    let why = directories.all().iter().find_map(|cwd| {
        let by_place = |written: Written| forbidden(case, &transfer, &written, cwd);
        written_by(&transfer, cwd, ground)
            .into_iter()
            .find_map(by_place)
            .or_else(|| by_globs(&transfer, cwd, ground))
            .or_else(|| taken_away(&transfer, cwd, ground))
    })?;
    Some(Harm::inexcusable(why))
}

fn is_beyond_proof(transfer: &harm::Transfer<'_>) -> bool {
    let is_deep = |source: &&Word| source.text.matches('/').count() >= DEEPEST_WAY;
    transfer.globs
        || transfer.targets.len() > MOST_TARGETS
        || transfer.suffixes.len() > MOST_TARGETS
        || transfer.keeps_way && transfer.sources.iter().any(is_deep)
}

fn forbidden(
    case: &Case<'_>,
    transfer: &harm::Transfer<'_>,
    written: &Written,
    cwd: &Path,
) -> Option<String> {
    let (place, ground) = (&written.place, &case.ground);
    if let Some(why) = guarded::forbids(place, ground) {
        return Some(why);
    }
    let holds_much = places::holds_much(case, place, cwd);
    let unproven = match written.filled {
        true => holds_much || guarded::protects_names_in(place),
        false => false,
    };
    // An existing directory is not replaced, so only what is put into it counts.
    let replaced = transfer.recursive && (written.filled || !holds_much);
    (unproven || replaced && guarded::lies_below(place, ground)).then(|| {
        format!(
            "files with unknown names are put into {}, which may contain protected ones",
            place.written.display()
        )
    })
}

/// The targets; the working directory if none is named.
pub fn targets_of<'t>(transfer: &'t harm::Transfer<'_>) -> &'t [&'t str] {
    match transfer.targets.as_slice() {
        [] => &["."],
        named => named,
    }
}

/// Every place that it may write in the directory `cwd`.
pub fn written_by(transfer: &harm::Transfer<'_>, cwd: &Path, ground: &Ground<'_>) -> Vec<Written> {
    let mut found = Vec::new();
    for target in targets_of(transfer).iter().take(MOST_TARGETS) {
        let is_source = |word: &&&Word| word.text != **target;
        let sources: Vec<&&Word> = transfer.sources.iter().filter(is_source).collect();
        let filled = transfer.replaces || sources.iter().any(|source| fills(&source.text));
        let filled = transfer.recursive && filled;
        let mut texts = vec![(*target).to_owned()];
        for source in sources.iter().filter(|source| !source.globs) {
            texts.extend(
                names_of(&source.text, transfer.keeps_way).map(|n| format!("{target}/{n}")),
            );
        }
        let plain = texts.clone();
        for suffix in transfer.suffixes.iter().take(MOST_TARGETS) {
            texts.extend(plain.iter().map(|text| format!("{text}{suffix}")));
        }
        found.extend(texts.iter().enumerate().map(|(at, text)| Written {
            place: ground.place(text, cwd),
            filled: filled && at == 0,
        }));
    }
    found
}

/// Whether the content of a source goes directly into the target, and not the source under its name.
fn fills(source: &str) -> bool {
    source.ends_with('/') || matches!(source.rsplit('/').next(), Some("." | ".."))
}

/// The names that a source may get in a directory: its last component; if its path is kept, any suffix of the path.
fn names_of(source: &str, keeps_way: bool) -> impl Iterator<Item = &str> {
    let source = source.rsplit_once(':').map_or(source, |(_, path)| path);
    let source = source.trim_end_matches('/');
    let starts = source.match_indices('/').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(starts).take(DEEPEST_WAY);
    let ends = starts.map(|at| &source[at..]);
    let last = source.rsplit('/').next().unwrap_or_default();
    let all = ends.filter(move |_| keeps_way).chain([last]);
    all.filter(|name| !matches!(*name, "" | "." | ".."))
}

/// The names that a glob matches are not known, but the protected names that it may match are.
fn by_globs(transfer: &harm::Transfer<'_>, cwd: &Path, ground: &Ground<'_>) -> Option<String> {
    let targets = targets_of(transfer).iter();
    let targets: Vec<Place> = targets.map(|text| ground.place(text, cwd)).collect();
    let mut globs = transfer.sources.iter().filter(|source| source.globs);
    let meets = |source: &&&Word| {
        let last = source.text.trim_end_matches('/').rsplit('/').next();
        let last = last.unwrap_or_default();
        targets.iter().any(|target| {
            let mut names = guarded::names_below(target, ground).into_iter();
            guarded::protects_names_in(target)
                || names.any(|name| fits(last, &name.to_string_lossy()))
        })
    };
    let glob = globs.find(meets)?;
    Some(format!(
        "`{}` may match a name that is protected there",
        glob.text
    ))
}

/// Moving a directory also moves the protected files in it.
fn taken_away(transfer: &harm::Transfer<'_>, cwd: &Path, ground: &Ground<'_>) -> Option<String> {
    let is_vital = |source: &&&Word| {
        let place = ground.place(&source.text, cwd);
        guarded::lies_below(&place, ground)
    };
    let mut gone = transfer.sources.iter().filter(|_| transfer.moves);
    let source = gone.find(is_vital)?;
    Some(format!("`{}` contains protected files", source.text))
}
