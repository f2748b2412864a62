//! What git shows and changes by the paths in its arguments: files of the working tree, and files in commits and in the index.
//! `tables/git.toml` says what each subcommand does.

use super::directories::Directories;
use super::places;
use crate::core::policy::ground::Ground;
use crate::core::policy::harm::{self, Discard, Harm, PathUse};
use crate::core::policy::judge::Case;
use crate::core::policy::paths::{PathPattern, Place, normalise};
use crate::core::policy::rule::{Meaning, Rule};
use crate::core::policy::shell::Word;
use crate::core::policy::tools::Access;
use crate::core::policy::{Decision, Verdict};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// A call of git.
struct Call<'w> {
    subcommand: &'w str,
    /// The arguments after the subcommand, with their positions in the command.
    operands: Vec<(usize, &'w Word)>,
    /// Whether it shows an object by its hash alone.
    shows_object: bool,
    /// Whether it compares a whole commit with a part of one, which shows all of it.
    compares_all: bool,
    does: PathUse,
    /// The directories in which it runs.
    directories: Vec<PathBuf>,
    /// The top directories of the repositories there, looked up if a path may begin there.
    tops: OnceCell<Vec<PathBuf>>,
}

/// What an argument of git may name, if a rule may match it.
enum Meant<'w> {
    /// Any file below a directory.
    Anything(PathBuf),
    /// A glob in a directory, which git expands.
    Glob(PathBuf, &'w str),
    Place(Place),
}

/// A path that an argument of git may name.
#[derive(Debug, PartialEq, Eq)]
struct Target<'w> {
    text: &'w str,
    /// It is relative to the top of the repository.
    from_top: bool,
    /// The files that it names are unknown.
    is_open: bool,
}

impl<'w> Call<'w> {
    fn new(case: &Case<'_>, words: &'w [Word], directories: &Directories) -> Option<Call<'w>> {
        let (at, ways) = harm::git_subcommand(words)?;
        let subcommand = words[at].text.as_str();
        let rest = &words[at + 1..];
        let does = harm::git_paths(subcommand, rest);
        (does.reads || does.writes).then_some(())?;
        let directories = directories.after(&ways, &case.ground).all().to_vec();
        Some(Call {
            subcommand,
            operands: operands(subcommand, rest, at + 1),
            shows_object: does.takes_objects && shows_object(rest),
            compares_all: subcommand.starts_with("diff") && mixes_trees(rest),
            does,
            tops: OnceCell::new(),
            directories,
        })
    }

    /// The access that a rule must restrict to match this call.
    fn access(&self) -> Access {
        match self.does.writes {
            true => Access::Write,
            false => Access::Read,
        }
    }

    /// Whether a rule restricts what the call does with paths.
    fn restricting<'r>(&self, rule: &'r Rule) -> Option<&'r PathPattern> {
        match rule.meaning() {
            Meaning::Path(about, pattern) if rule.decision > Decision::Allow => {
                let is_about = *about == Access::Read || *about == self.access();
                is_about.then_some(pattern)
            }
            _ => None,
        }
    }

    /// What the call does beyond the paths in its arguments.
    fn does_beyond(&self) -> Option<&'static str> {
        match () {
            () if self.does.is_unseen => Some("reads file names from another source"),
            () if self.shows_object => Some("shows an object without a path"),
            () if self.takes_whole() => Some("takes every file"),
            () => None,
        }
    }

    /// The first rule that matches this call whatever paths it names, and the reason.
    fn met_beyond<'r>(&self, case: &'r Case<'_>) -> Option<(&'r Rule, String)> {
        let does = self.does_beyond()?;
        let ground = &case.ground;
        let is_here = |rule: &&Rule| {
            let pattern = self.restricting(rule);
            let below = |base: &Path| pattern.is_some_and(|p| p.may_match_below(base, ground));
            self.bases(true, ground).any(below)
        };
        let rule = case.policy.rules().find(is_here)?;
        let subcommand = self.subcommand;
        let why = format!("git {subcommand} {does}, and {} covers some", rule.at.text);
        Some((rule, why))
    }

    /// The first rule that matches a path of the call, and the reason.
    fn met_by_path<'r>(&self, case: &'r Case<'_>) -> Option<(&'r Rule, String)> {
        self.operands.iter().find_map(|(_, word)| {
            let meant = self.meant(case, word);
            if meant.is_empty() {
                return None;
            }
            let meets = |rule: &&Rule| {
                let pattern = self.restricting(rule);
                let is_met = |meant| pattern.is_some_and(|p| self.meets(case, rule, p, meant));
                meant.iter().any(is_met)
            };
            let rule = case.policy.rules().find(meets)?;
            let why = format!(
                "`{}` may name files that {} covers",
                word.text, rule.at.text
            );
            Some((rule, why))
        })
    }

    /// An argument that only leaves files out does not say which ones are taken.
    fn takes_whole(&self) -> bool {
        let is_none = |(_, word): &(usize, &Word)| targets(&word.text).is_empty();
        let names_none = || self.operands.iter().all(is_none);
        self.does.takes_all && names_none() || self.compares_all
    }

    /// The directories that a path may be relative to.
    fn bases(&self, from_top: bool, ground: &Ground<'_>) -> impl Iterator<Item = &Path> {
        let find = || {
            let all = self.directories.iter();
            all.filter_map(|cwd| ground.repository(cwd)).collect()
        };
        let tops: &[PathBuf] = match from_top {
            true => self.tops.get_or_init(find),
            false => &[],
        };
        self.directories.iter().chain(tops).map(PathBuf::as_path)
    }

    /// What an argument may name, without the places that no rule matches; most arguments name such a place.
    fn meant(&self, case: &Case<'_>, word: &'w Word) -> Vec<Meant<'w>> {
        let ground = &case.ground;
        let mut found = Vec::new();
        for target in targets(&word.text) {
            for base in self.bases(target.from_top, ground) {
                let is_glob = target.text.contains(['*', '?', '[', '\\']);
                let place = || ground.place(target.text, base);
                let is_restricted = |place: &Place| {
                    let takes_all = self.does.takes_all;
                    case.policy
                        .index
                        .may_restrict_tree(place, takes_all, ground)
                };
                // What a path leads to counts also if it may be a range of commits.
                if target.is_open && !is_glob {
                    found.extend(Some(place()).filter(is_restricted).map(Meant::Place));
                }
                found.extend(match (target.is_open, is_glob) {
                    (true, _) => Some(Meant::Anything(base.to_owned())),
                    (_, true) => {
                        let within = ground.place(plain_start(target.text), base);
                        let index = &case.policy.index;
                        let mut ways = within.ways();
                        let may_be = ways.any(|path| index.may_restrict_below(path, ground));
                        may_be.then(|| Meant::Glob(base.to_owned(), target.text))
                    }
                    _ => Some(place()).filter(is_restricted).map(Meant::Place),
                });
            }
        }
        found
    }

    fn meets(
        &self,
        case: &Case<'_>,
        rule: &Rule,
        pattern: &PathPattern,
        meant: &Meant<'_>,
    ) -> bool {
        let ground = &case.ground;
        match meant {
            Meant::Anything(base) => pattern.may_match_below(base, ground),
            Meant::Glob(base, text) => self.glob_meets(ground, pattern, base, text),
            Meant::Place(place) => self.place_meets(case, rule, pattern, place),
        }
    }

    /// Whether a rule matches a file, or files in a directory. The working directory itself does not count, nor does a directory
    /// only because it may contain a name that a rule matches at any depth: commands name such directories all the time.
    fn place_meets(
        &self,
        case: &Case<'_>,
        rule: &Rule,
        pattern: &PathPattern,
        place: &Place,
    ) -> bool {
        let below = |path: &Path| pattern.may_match_below(path, &case.ground);
        let may_hold = || place.ways().any(below);
        let is_whole = || {
            place.ways().any(|path| {
                self.bases(true, &case.ground)
                    .any(|base| base.starts_with(path))
            })
        };
        rule.covers_tree(self.access(), place, &case.ground)
            || self.does.takes_all && may_hold()
            || !pattern.is_anywhere() && may_hold() && (self.does.removes || !is_whole())
    }

    /// Whether a glob that git itself expands may match a file that a pattern matches.
    fn glob_meets(
        &self,
        ground: &Ground<'_>,
        pattern: &PathPattern,
        base: &Path,
        text: &str,
    ) -> bool {
        let absolute = normalise(&base.join(text)).to_string_lossy().into_owned();
        match text.chars().all(|c| matches!(c, '*' | '/' | '.')) {
            true => {
                let takes = self.does.takes_all || self.does.removes && !pattern.is_anywhere();
                takes && pattern.may_share(&absolute, ground)
            }
            false => pattern.is_aimed_at(&absolute, ground),
        }
    }

    /// Whether an argument leads out of the slot's directory or, if git only compares, out of the repository.
    fn leads_out(&self, case: &Case<'_>, word: &Word) -> bool {
        let is_inside = |place: &Place| {
            let is_own = |path: &Path| {
                self.bases(true, &case.ground)
                    .any(|top| path.starts_with(top))
            };
            places::is_inside(case, place, false) || !self.does.writes && place.ways().all(is_own)
        };
        targets(&word.text).into_iter().any(|target| {
            let text = target.text;
            let may_lead = target.from_top
                || text.starts_with(['/', '~'])
                || text.split('/').any(|name| name == "..");
            // A path after a commit is not in a directory.
            let is_stored =
                target.from_top && !word.text.starts_with(":/") && !word.text.starts_with(":(");
            may_lead
                && !is_stored
                && self
                    .bases(target.from_top, &case.ground)
                    .any(|base| !is_inside(&case.ground.place(text, base)))
        })
    }
}

/// The verdict of rules on the files that git reads from a commit, from its index or from the working tree.
pub fn restriction(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Verdict> {
    if !case.policy.index.restricts_paths() {
        return None;
    }
    let call = Call::new(case, words, directories)?;
    let (rule, why) = call.met_beyond(case).or_else(|| call.met_by_path(case))?;
    Some(Verdict {
        decision: Decision::Ask,
        rule: Some(rule.at.clone()),
        why,
    })
}

/// Paths outside the slot's directory that git would change, or would compare although they are in no repository.
pub fn harm(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Harm> {
    let call = Call::new(case, words, directories)?;
    (call.does.writes || call.subcommand == "diff").then_some(())?;
    let mut operands = call.operands.iter().rev();
    let (at, word) = operands.find(|(_, word)| call.leads_out(case, word))?;
    let why = format!("`{}` is outside the slot's directory", word.text);
    Some(Harm::at(*at, why))
}

/// Work in no commit that git throws away. A rule for all of git does not cover that, unless `Edit` rules cover every file that may
/// be affected.
pub fn discards(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Harm> {
    /// A name that no rule spells out.
    const ANY: [&str; 2] = ["\u{fffd}", "\u{fffd}/\u{fffd}"];
    let (at, ways) = harm::git_subcommand(words)?;
    let subcommand = words[at].text.as_str();
    let what = match harm::git_discards(subcommand, &words[at + 1..])? {
        Discard::Kept => "what no commit or branch has",
        Discard::Changes => {
            let own = directories.after(&ways, &case.ground);
            let is_covered = |cwd: &PathBuf| {
                let mut verdicts = ANY.iter().map(|name| case.opened(Access::Write, name, cwd));
                verdicts.all(|verdict| verdict.decision == Decision::Allow)
            };
            // Most of them do so in the whole repository, wherever they run.
            let tops = own.all().iter();
            let tops: Vec<PathBuf> = tops
                .filter_map(|cwd| case.ground.repository(cwd))
                .chain([case.ground.cwd[0].clone()])
                .collect();
            if own.all().iter().chain(&tops).all(is_covered) {
                return None;
            }
            "changes in files that no Edit rule covers"
        }
    };
    let why = format!("git {subcommand} may throw away {what}");
    Some(Harm::at(at, why))
}

/// Whether an argument of `git grep` may name a commit: then git searches all of it.
pub fn may_be_commit(case: &Case<'_>, word: &str, directories: &Directories) -> bool {
    let is_number = word.len() >= 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_name = [
        "HEAD",
        "@",
        "FETCH_HEAD",
        "ORIG_HEAD",
        "stash",
        "main",
        "master",
    ]
    .contains(&word);
    let is_marked = word.contains(['~', '^', ':']) || word.contains("@{") || word.contains("..");
    let is_ref = [
        "refs/",
        "heads/",
        "tags/",
        "remotes/",
        "origin/",
        "upstream/",
    ];
    let mut cwds = directories.all().iter();
    is_number
        || is_name
        || is_marked
        || is_ref.iter().any(|start| word.starts_with(start))
        || cwds.any(|cwd| !case.ground.may_exist(&case.ground.place(word, cwd)))
}

/// The arguments that may name files, with their positions; the first argument after the subcommand is at `first`.
fn operands<'w>(subcommand: &str, rest: &'w [Word], first: usize) -> Vec<(usize, &'w Word)> {
    let end = rest
        .iter()
        .position(|word| word.text == "--")
        .unwrap_or(rest.len());
    // `-L:name:file` names a file.
    let is_option = |at: usize| {
        let text = &rest[at].text;
        at <= end && text.starts_with('-') && !text.starts_with("-L")
    };
    let named = (0..rest.len()).filter(|at| !is_option(*at));
    let gives_pattern = |word: &Word| {
        let text = word.text.as_str();
        text.starts_with("-e") || text.starts_with("-f") || text == "--file"
    };
    // The pattern of a search, and the commit of an archive.
    let skipped = match subcommand {
        "grep" => usize::from(!rest.iter().any(gives_pattern)),
        "archive" => usize::from(!rest.first().is_some_and(|word| word.text.contains(':'))),
        _ => 0,
    };
    named
        .skip(skipped)
        .map(|at| (first + at, &rest[at]))
        .collect()
}

/// What a pathspec lets `git grep` search.
#[derive(Debug, PartialEq, Eq)]
pub enum Searched<'w> {
    Path(&'w str),
    /// It leaves files out.
    Nothing,
    /// Files of the whole repository, or names that only git can compare.
    Anything,
}

impl<'w> Searched<'w> {
    pub fn path(&self) -> Option<&'w str> {
        match self {
            Searched::Path(path) => Some(path),
            Searched::Nothing | Searched::Anything => None,
        }
    }
}

pub fn searched(pathspec: &str) -> Searched<'_> {
    let Some(signs) = pathspec.strip_prefix(':') else {
        return Searched::Path(pathspec);
    };
    let long = signs
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(')'));
    let has = |list: &str, sign: &str| list.split(',').any(|one| one.trim() == sign);
    match long {
        Some((list, _)) if has(list, "exclude") => Searched::Nothing,
        Some(("glob" | "literal", path)) if !path.is_empty() => Searched::Path(path),
        None if signs.starts_with(['!', '^'])
            || signs.starts_with("/!")
            || signs.starts_with("/^") =>
        {
            Searched::Nothing
        }
        _ => Searched::Anything,
    }
}

/// Whether some of the compared things are paths in a commit, and others are not.
fn mixes_trees(rest: &[Word]) -> bool {
    let compared = rest.iter().take_while(|word| word.text != "--");
    let compared = compared.filter(|word| !word.text.starts_with('-'));
    let (stored, others): (Vec<&Word>, Vec<&Word>) =
        compared.partition(|word| word.text.contains(':'));
    !stored.is_empty() && !others.is_empty()
}

/// The directory in which a glob searches.
fn plain_start(glob: &str) -> &str {
    let start = glob.split(['*', '?', '[', '\\']).next().unwrap_or_default();
    start
        .rsplit_once('/')
        .map_or(".", |(directory, _)| directory)
}

/// Whether `git cat-file` shows the content of an object by its hash.
fn shows_object(rest: &[Word]) -> bool {
    let only_tells =
        |word: &Word| matches!(word.text.as_str(), "-t" | "-s" | "-e" | "--batch-check");
    let is_number = |word: &Word| {
        let text = word.text.as_str();
        text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    !rest.iter().any(only_tells) && rest.iter().any(is_number)
}

/// The paths that an argument may name: as it is, after a commit (`HEAD:path`, `:0:path`), or after git's pathspec prefix
/// (`:(top)path`, `:/path`).
fn targets(word: &str) -> Vec<Target<'_>> {
    let target = |text, from_top| Target {
        text,
        from_top,
        is_open: false,
    };
    if let Some((signs, path)) = word
        .strip_prefix(":(")
        .and_then(|rest| rest.split_once(')'))
    {
        let has = |sign: &str| signs.split(',').any(|one| one.trim().starts_with(sign));
        let found = Target {
            is_open: has("icase") || has("attr"),
            ..target(path, has("top"))
        };
        return Vec::from_iter((!has("exclude")).then_some(found));
    }
    let behind_sign = word.strip_prefix(':').unwrap_or_default();
    let path = behind_sign.trim_start_matches(['/', '!', '^']);
    let signs = &behind_sign[..behind_sign.len() - path.len()];
    if signs.contains(['!', '^']) {
        return Vec::new();
    }
    let stored = word.match_indices(':').map(|(at, _)| &word[at + 1..]);
    let stored = stored.map(|path| path.trim_start_matches('/'));
    let stored = stored.filter(|path| !path.is_empty());
    // `..` beside a path may be a range of commits for git: `HEAD:./..` shows all of the newest commit.
    let may_be_range = word.contains(':') && word.contains("..");
    let all = stored.map(|path| target(path, true));
    all.chain((!word.starts_with(':')).then_some(target(word, false)))
        .map(|found| Target {
            is_open: found.is_open || may_be_range,
            ..found
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_behind_commits_and_signs() {
        for (word, found) in [
            ("src/a", vec![("src/a", false)]),
            ("HEAD:.env", vec![(".env", true), ("HEAD:.env", false)]),
            (":0:.env", vec![("0:.env", true), (".env", true)]),
            (":(top).env", vec![(".env", true)]),
            (":(glob)**/.env", vec![("**/.env", false)]),
            (":/.env", vec![(".env", true)]),
            (":!src", vec![]),
            (":(exclude)src", vec![]),
            (
                "@{1 10:00}:.env",
                vec![
                    ("00}:.env", true),
                    (".env", true),
                    ("@{1 10:00}:.env", false),
                ],
            ),
        ] {
            let targets = targets(word);
            let texts: Vec<(&str, bool)> = targets.iter().map(|t| (t.text, t.from_top)).collect();
            assert_eq!(texts, found, "{word}");
        }
        assert_eq!(searched("src"), Searched::Path("src"));
        assert_eq!(searched(":(glob)src/**"), Searched::Path("src/**"));
        for none in [":!a", ":^a", ":(exclude)a", ":(top,exclude)a", ":/!a"] {
            assert_eq!(searched(none), Searched::Nothing, "{none}");
        }
        for all in [":/", ":(top)", ":", ":(icase)a", ":/src"] {
            assert_eq!(searched(all), Searched::Anything, "{all}");
        }
        assert!(targets(":(icase).ENV")[0].is_open);
        assert!(targets("HEAD:./..")[0].is_open);
        assert!(!targets("main..feature")[0].is_open);
    }
}
