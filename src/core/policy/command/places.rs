//! Paths in the arguments of a command: protected ones, restricted ones, and ones that should not be removed by accident.

use super::directories::{Directories, path_texts};
use crate::core::policy::ground::Ground;
use crate::core::policy::harm::{self, Harm};
use crate::core::policy::judge::{Case, by_rule};
use crate::core::policy::paths::{PathPattern, Place};
use crate::core::policy::pattern::fits;
use crate::core::policy::protected as guarded;
use crate::core::policy::rule::{Meaning, Rule};
use crate::core::policy::secrets;
use crate::core::policy::shell::{Redirect, Word};
use crate::core::policy::tools::Access;
use crate::core::policy::{Decision, Verdict};
use std::path::Path;

/// A place that a word of a command may name.
pub struct Named {
    pub place: Place,
    /// The index of the argument.
    argument: usize,
}

/// The places that the words of a command may name.
pub fn named(case: &Case<'_>, words: &[Word], directories: &Directories) -> Vec<Named> {
    let arguments = words.get(1..).unwrap_or_default();
    arguments
        .iter()
        .enumerate()
        .flat_map(|(argument, word)| {
            let places = match word.globs {
                true => directories.matches(&word.text, &case.ground),
                false => directories.places(word, &case.ground),
            };
            let places = places.into_iter();
            places.map(move |place| Named { place, argument })
        })
        .chain(compared(case, words, directories))
        .chain(unpacked(case, words, directories))
        .chain(printed_by_compose(case, words, directories))
        .collect()
}

/// `gunzip x.gz` creates `x`, and `gzip x` creates `x.gz`.
fn unpacked(case: &Case<'_>, words: &[Word], directories: &Directories) -> Vec<Named> {
    let Some((name, arguments)) = words.split_first() else {
        return Vec::new();
    };
    let Some(ending) = harm::ending_of_packer(&name.text) else {
        return Vec::new();
    };
    let operands = arguments.iter().enumerate();
    let operands = operands.filter(|(_, word)| !word.text.starts_with('-'));
    let made = operands.flat_map(|(argument, word)| {
        let text = match word.text.strip_suffix(ending) {
            Some(unpacked) => unpacked.to_owned(),
            None => format!("{}{ending}", word.text),
        };
        let places = directories.places_of_text(&text, &case.ground).into_iter();
        places.map(move |place| Named { place, argument })
    });
    made.collect()
}

/// `docker compose config` prints the values from `.env`, which it does not name.
fn printed_by_compose(case: &Case<'_>, words: &[Word], directories: &Directories) -> Vec<Named> {
    let is_compose =
        |word: &Word| harm::has_word("compose docker-compose podman-compose", &word.text);
    let argument = words.iter().skip(1).position(|word| word.text == "config");
    let Some(argument) = argument.filter(|_| words.iter().take(2).any(is_compose)) else {
        return Vec::new();
    };
    let places = directories.places_of_text(".env", &case.ground).into_iter();
    places.map(|place| Named { place, argument }).collect()
}

/// `diff file directory` reads the file of the same name in the directory.
fn compared(case: &Case<'_>, words: &[Word], directories: &Directories) -> Vec<Named> {
    let Some((name, arguments)) = words.split_first() else {
        return Vec::new();
    };
    if !harm::has_word("diff sdiff colordiff", &name.text) {
        return Vec::new();
    }
    let is_operand = |at: &usize| !arguments[*at].text.starts_with('-');
    let operands: Vec<usize> = (0..arguments.len()).filter(is_operand).collect();
    let pairs = operands
        .iter()
        .flat_map(|at| operands.iter().map(move |of| (*at, *of)));
    let joined = pairs.filter(|(at, of)| at != of).flat_map(|(at, of)| {
        let file = arguments[of].text.trim_end_matches('/');
        let file = file.rsplit('/').next().unwrap_or_default();
        let text = format!("{}/{file}", arguments[at].text);
        let places = directories.places_of_text(&text, &case.ground).into_iter();
        places.map(move |place| Named {
            place,
            argument: at,
        })
    });
    joined.collect()
}

/// The strictest verdict of path rules on the words of a command and the places that they name.
pub fn restriction(
    case: &Case<'_>,
    words: &[Word],
    named: &[Named],
    directories: &Directories,
) -> Option<Verdict> {
    let (name, arguments) = words.split_first()?;
    if !case.policy.index.restricts_paths() {
        return None;
    }
    let on_places = named
        .iter()
        .filter_map(|named| on_place(case, named, &name.text, arguments));
    let on_globs = arguments
        .iter()
        .filter(|word| word.globs && !harm::only_lists(&name.text))
        .filter_map(|word| on_glob(case, word, accesses_of(&name.text), directories));
    on_places
        .chain(on_globs)
        .max_by_key(|verdict| verdict.decision)
}

fn on_place(case: &Case<'_>, named: &Named, program: &str, arguments: &[Word]) -> Option<Verdict> {
    let place = &named.place;
    if !case.policy.index.may_restrict(place, &case.ground) {
        return None;
    }
    let mut verdict = strictest_on(case, place, accesses_of(program))?;
    // Another program may or may not open the file, so a person is asked.
    if !harm::opens(program, arguments, named.argument) {
        verdict.decision = Decision::Ask;
    }
    Some(verdict)
}

/// How a program may access its files.
fn accesses_of(program: &str) -> &'static [Access] {
    match harm::only_reads(program) {
        true => &[Access::Read],
        false => &[Access::Read, Access::Write],
    }
}

/// The verdict of the strictest rule that restricts one of these accesses to a place.
fn strictest_on(case: &Case<'_>, place: &Place, accesses: &[Access]) -> Option<Verdict> {
    let covers = |rule: &&Rule| {
        let any = |access: &Access| rule.covers_place(*access, place, &case.ground);
        rule.decision > Decision::Allow && accesses.iter().any(any)
    };
    let restricting = case.policy.rules().filter(covers);
    let rule = restricting.max_by_key(|rule| rule.decision)?;
    Some(Verdict {
        why: format!("{} is covered by {}", place.written.display(), rule.at.text),
        ..by_rule(rule)
    })
}

/// The verdict of path rules on a file that the shell itself opens for a redirection.
pub fn redirection(
    case: &Case<'_>,
    redirect: &Redirect,
    directories: &Directories,
) -> Option<Verdict> {
    if !case.policy.index.restricts_paths() {
        return None;
    }
    let target = &redirect.target;
    let by_globs = directories.matches(&target.text, &case.ground);
    directories
        .places(target, &case.ground)
        .into_iter()
        .chain(by_globs.into_iter().filter(|_| target.globs))
        .filter(|place| case.policy.index.may_restrict(place, &case.ground))
        .filter_map(|place| strictest_on(case, &place, &[redirect.access]))
        .max_by_key(|verdict| verdict.decision)
}

/// The strictest verdict on a file that the shell opens, over all directories in which it may be.
pub fn opened(case: &Case<'_>, redirect: &Redirect, directories: &Directories) -> Verdict {
    let target = &redirect.target;
    // Any name that the glob may match, and those that it matches now.
    let mut texts = vec![match target.globs {
        true => target.text.replace(['*', '?', '['], "\u{fffd}"),
        false => target.text.clone(),
    }];
    if target.globs {
        let now = directories.matches(&target.text, &case.ground);
        texts.extend(now.iter().map(|place| place.real.display().to_string()));
    }
    let by_glob = target
        .globs
        .then(|| on_glob(case, target, &[redirect.access], directories));
    let all = directories.all().iter();
    let verdicts = all.flat_map(|cwd| {
        let texts = texts.iter();
        texts.map(|text| case.opened(redirect.access, text, cwd))
    });
    let verdicts = verdicts.chain(by_glob.flatten());
    let strictest = verdicts.max_by_key(|verdict| verdict.decision);
    strictest.unwrap_or_else(|| case.by_tool())
}

/// The directories in which a glob searches: its literal start.
pub fn places_of_glob(word: &Word, directories: &Directories, ground: &Ground<'_>) -> Vec<Place> {
    let start = word.text.split(['*', '?', '[']).next().unwrap_or_default();
    let start = start.rsplit_once('=').map_or(start, |(_, value)| value);
    let directory = match start.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => ".",
    };
    let places = directories.all().iter();
    places.map(|cwd| ground.place(directory, cwd)).collect()
}

/// A glob may match any file below its directory whose name fits.
fn on_glob(
    case: &Case<'_>,
    word: &Word,
    accesses: &[Access],
    directories: &Directories,
) -> Option<Verdict> {
    let last = word.text.rsplit('/').next().unwrap_or_default();
    let within = places_of_glob(word, directories, &case.ground);
    let may_reach = |place: &Place| {
        let index = &case.policy.index;
        place
            .ways()
            .any(|path| index.may_restrict_below(path, &case.ground))
    };
    if !within.iter().any(may_reach) {
        return None;
    }
    let first = first_glob(&word.text);
    let reaches = |pattern: &PathPattern| {
        let below = |path| {
            let is_looked_at = |name: &str| fits(first, name);
            pattern.may_match_through(path, &case.ground, is_looked_at)
        };
        within.iter().any(|place| place.ways().any(below))
    };
    let is_in_matched = |pattern: &PathPattern| {
        let matches = |path| pattern.matches(path, &case.ground);
        within.iter().any(|place| place.ways().any(matches))
    };
    let may_mean = |rule: &&Rule| match rule.meaning() {
        Meaning::Path(access, pattern)
            if rule.decision > Decision::Allow && accesses.contains(access) =>
        {
            let may_be_named = pattern.literal_name().is_none_or(|name| fits(last, name))
                && may_end(word, last, pattern)
                && (!pattern.is_hidden() || names_hidden(&word.text));
            (may_be_named || is_in_matched(pattern)) && reaches(pattern)
        }
        _ => false,
    };
    let rule = case.policy.rules().find(may_mean)?;
    let why = format!(
        "`{}` may match a file that {} covers",
        word.text, rule.at.text
    );
    Some(Verdict {
        decision: Decision::Ask,
        rule: Some(rule.at.clone()),
        why,
    })
}

/// Whether a name in the path begins with a dot. A glob without a leading dot does not match hidden files.
fn names_hidden(text: &str) -> bool {
    let mut names = text.split(['/', '=', '@', ':']);
    names.any(|name| name.starts_with('.') && !matches!(name, "." | ".."))
}

/// The first path component with a glob.
fn first_glob(text: &str) -> &str {
    let at = text.find(['*', '?', '[']).unwrap_or_default();
    let begin = text[..at].rfind(['/', '=']).map_or(0, |at| at + 1);
    let name = &text[begin..];
    name.split('/').next().unwrap_or_default()
}

/// Whether a name that a glob matches may end as a pattern says. A glob in an earlier component may match a directory that the
/// pattern matches.
fn may_end(word: &Word, last: &str, pattern: &PathPattern) -> bool {
    let Some(ending) = pattern.ending() else {
        return true;
    };
    let way = &word.text[..word.text.len() - last.len()];
    let end = last.rsplit(['*', '?', ']']).next().unwrap_or_default();
    way.contains(['*', '?', '[']) || end.ends_with(ending) || ending.ends_with(end)
}

/// Words that may name a protected path, given to a program that may write.
pub fn protected(
    case: &Case<'_>,
    words: &[Word],
    named: &[Named],
    directories: &Directories,
) -> Option<Harm> {
    let (name, arguments) = words.split_first()?;
    if harm::only_reads(&name.text) {
        return None;
    }
    let by_place = || {
        named
            .iter()
            .find_map(|named| guarded::forbids(&named.place, &case.ground))
    };
    let may_mean = |(at, word): &(usize, &Word)| {
        hidden_glob(&word.text)
            || harm::written(&name.text, arguments).contains(at)
                && meets_protected(case, word, directories)
    };
    let by_glob = || {
        let mut globs = arguments.iter().enumerate().filter(|(_, word)| word.globs);
        let (_, glob) = globs.find(may_mean)?;
        Some(format!("`{}` may match a protected file", glob.text))
    };
    by_place().or_else(by_glob).map(Harm::inexcusable)
}

/// Whether a glob may match something protected, or a directory that contains it.
fn meets_protected(case: &Case<'_>, word: &Word, directories: &Directories) -> bool {
    let first = first_glob(&word.text);
    let places = places_of_glob(word, directories, &case.ground);
    places.iter().any(|place| {
        let mut names = guarded::names_below(place, &case.ground).into_iter();
        names.any(|name| fits(first, &name.to_string_lossy()))
    })
}

/// Globs do not match hidden files, unless they begin with a dot.
fn hidden_glob(text: &str) -> bool {
    text.split('/')
        .any(|part| part.starts_with('.') && part.contains(['*', '?', '[']))
}

/// Places whose real path is uncertain, devices, and places from which links or globs lead to a well-known secret.
pub fn led_astray<'n>(
    case: &'n Case<'_>,
    words: &'n [Word],
    named: &'n [Named],
) -> impl Iterator<Item = Harm> + 'n {
    let program = words.first().map_or("", |name| name.text.as_str());
    let is_secret = move |place: &Place| {
        let mut ways = place.ways();
        !harm::only_lists(program) && ways.any(|path| secrets::is_one(path, &case.ground))
    };
    let is_device = move |place: &Place| {
        let mut ways = place.ways();
        ways.any(|path| harm::is_device(program, path))
    };
    // Nobody knows which of them will exist when the command runs.
    let globs = words
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, word)| word.globs);
    let globs = globs.filter_map(move |(at, word)| {
        let directory = path_texts(&word.text).find(|text| text.starts_with("/dev/"))?;
        let may_be = harm::is_device(program, Path::new(directory));
        may_be.then(|| Harm::at(at, format!("`{}` may match a device", word.text)))
    });
    let places = named.iter().filter_map(move |named| {
        let word = &words[named.argument + 1].text;
        let why = match named.place.doubt {
            Some(why) => format!("`{word}`: {why}"),
            None if is_secret(&named.place) => {
                format!("`{word}` leads to a file with secrets")
            }
            None if is_device(&named.place) => format!("`{word}` is a device"),
            None => return None,
        };
        Some(Harm::at(named.argument + 1, why))
    });
    places.chain(globs)
}

/// Writes outside the slot's directory and the directories for temporary files.
pub fn outside(
    case: &Case<'_>,
    words: &[Word],
    named: &[Named],
    directories: &Directories,
) -> Option<Harm> {
    let (name, arguments) = words.split_first()?;
    let written = harm::written(&name.text, arguments);
    let temporary = harm::may_use_temporary(&name.text);
    let leaves = |at: &usize| {
        let word = &arguments[*at];
        let literal = named
            .iter()
            .filter(|named| named.argument == *at)
            .any(|named| !is_inside(case, &named.place, temporary));
        let glob = || {
            let mut places = places_of_glob(word, directories, &case.ground).into_iter();
            places.any(|place| !is_inside(case, &place, temporary))
        };
        literal || word.globs && glob()
    };
    // The last of them: a rule may spell out the earlier ones.
    let is_all = written.is_empty() || harm::stays_inside(&name.text);
    let Some(at) = written.into_iter().filter(leaves).max() else {
        return is_all
            .then(|| elsewhere(case, words, named, directories))
            .flatten();
    };
    let why = format!("`{}` is outside the slot's directory", arguments[at].text);
    Some(Harm::at(at + 1, why))
}

/// A word that names a place outside the slot's directory, for a tool whose writes are not known.
fn elsewhere(
    case: &Case<'_>,
    words: &[Word],
    named: &[Named],
    directories: &Directories,
) -> Option<Harm> {
    let temporary = harm::may_use_temporary(&words.first()?.text);
    // A link inside the directory may lead out of it.
    let leads_out = |at: &usize| {
        let mut places = named.iter().filter(|named| named.argument + 1 == *at);
        places.any(|Named { place, .. }| {
            place.written.starts_with(&case.ground.cwd[0]) && !is_inside(case, place, temporary)
        })
    };
    let leaves = |at: &usize| {
        let mut texts = outer_texts(&words[*at].text);
        texts.any(|text| {
            let mut cwds = directories.all().iter();
            cwds.any(|cwd| !is_inside(case, &case.ground.place(text, cwd), temporary))
        })
    };
    let at = harm::perhaps_written(words)
        .into_iter()
        .filter(|at| leaves(at) || leads_out(at))
        .max()?;
    let why = format!("`{}` is outside the slot's directory", words[at].text);
    Some(Harm::at(at, why))
}

/// The texts in a word that may be paths to another directory.
fn outer_texts(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let is_short = word.starts_with('-') && !word.starts_with("--");
    let attached = is_short.then(|| word.get(2..)).flatten();
    let whole = (!word.starts_with('-')).then_some(word);
    let of_address = word.split_once("file://").map(|(_, path)| path);
    let texts = [whole, value, attached, of_address].into_iter().flatten();
    let texts = texts.flat_map(|text| {
        let behind_colon = text.split_once(':').map(|(_, path)| path);
        let behind_colon = behind_colon.filter(|path| !path.starts_with("//"));
        [Some(text), behind_colon].into_iter().flatten()
    });
    texts.filter(|text| {
        let leads_up = text.split('/').any(|name| name == "..");
        leads_up || text.starts_with(['/', '~']) && !text.starts_with("//")
    })
}

/// Inside the slot's directory; with `temporary` also in the directories for temporary files. A directory in which the slot's own
/// lies does not count as one of them: the projects of others are in it too.
pub fn is_inside(case: &Case<'_>, place: &Place, temporary: bool) -> bool {
    const FOR_ALL: &[&str] = &[
        "/tmp",
        "/var/tmp",
        "/dev/null",
        "/dev/stdout",
        "/dev/stderr",
    ];
    let cwds = &case.ground.cwd;
    let is_shared = |path: &Path| {
        let mut shared = FOR_ALL.iter().filter(|shared| path.starts_with(shared));
        shared.any(|shared| !cwds.iter().any(|own| own.starts_with(shared)))
    };
    let mut ways = place.ways();
    ways.all(|path| cwds.iter().any(|own| path.starts_with(own)) || temporary && is_shared(path))
}

/// Leaving the directory, or removing an important directory.
pub fn harm(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Harm> {
    let (name, arguments) = words.split_first()?;
    match name.text.as_str() {
        "cd" | "pushd" | "popd" => leaving(case, arguments, directories),
        "rm" | "rmdir" | "mv" | "shred" | "unlink" | "chmod" | "chown" | "chgrp" => arguments
            .iter()
            .enumerate()
            .filter(|(_, word)| !word.text.starts_with('-'))
            .find(|(_, word)| {
                directories
                    .all()
                    .iter()
                    .any(|cwd| is_vital(case, word, cwd))
            })
            .map(|(_, word)| {
                Harm::whole(format!(
                    "{} of `{}` could destroy far more than a file",
                    name.text, word.text
                ))
            }),
        _ => None,
    }
}

fn leaving(case: &Case<'_>, arguments: &[Word], directories: &Directories) -> Option<Harm> {
    let inside = match arguments {
        [target] if !target.globs && target.text != "-" && !directories.are_too_many() => {
            let from = directories.current();
            let from = from.unwrap_or_else(|| directories.first());
            let place = case.ground.place(&target.text, from);
            place.is_within(&case.ground.cwd) && guarded::forbids(&place, &case.ground).is_none()
        }
        _ => false,
    };
    (!inside).then(|| Harm {
        at: 1,
        why: "it leaves the slot's directory".to_owned(),
    })
}

/// The root, a directory right below it, the home directory, a directory that contains the slot's own, or one that contains
/// something protected; also all the files in one of them.
fn is_vital(case: &Case<'_>, word: &Word, cwd: &Path) -> bool {
    let text = match word.globs {
        false => word.text.as_str(),
        true => match word.text.rsplit_once('/') {
            Some((directory, "*" | ".*")) if !directory.is_empty() => directory,
            Some(("", _)) => "/",
            None if matches!(word.text.as_str(), "*" | ".*") => ".",
            _ => return false,
        },
    };
    let place = case.ground.place(text, cwd);
    text.starts_with('~') && !text.starts_with("~/")
        || holds_much(case, &place, cwd)
        || guarded::lies_below(&place, &case.ground)
}

/// The root, a directory right below it, or one that contains the home directory or the slot's own.
pub fn holds_much(case: &Case<'_>, place: &Place, cwd: &Path) -> bool {
    let home = case.ground.home().map(|[home, _]| home.as_path());
    let [own, real_own] = &case.ground.cwd;
    place.ways().any(|path| {
        path.components().count() <= 2
            || home.is_some_and(|home| home.starts_with(path))
            || cwd.starts_with(path)
            || own.starts_with(path)
            || real_own.starts_with(path)
    })
}
