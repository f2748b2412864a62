//! What earlier parts of a command line create, move or link: after them, the disk does not yet show where a path will lead.

use super::directories::Directories;
use super::places;
use super::transfers::written_by;
use super::{Command, every_command};
use crate::core::policy::ground::{Ground, Odd};
use crate::core::policy::harm::{self, Harm, Transfer};
use crate::core::policy::judge::Case;
use crate::core::policy::paths::Place;
use crate::core::policy::shell::Word;
use std::path::Path;

/// The most created places that are tracked. If there are more, they count as anywhere: each later part is compared with each
/// place.
const MOST_MADE: usize = 64;

/// A place that a part of a command line may have created.
struct Thing {
    place: Place,
    by: String,
    /// It does not contain links.
    is_plain: bool,
}

/// What the parts of a command line may have created so far.
#[derive(Default)]
pub struct Made {
    things: Vec<Thing>,
    /// The part that may have created links anywhere.
    anywhere: Option<String>,
}

impl Made {
    /// Records what a part may create; returns whether that is new.
    pub fn note(
        &mut self,
        command: &Command<'_>,
        directories: &Directories,
        ground: &Ground<'_>,
    ) -> bool {
        if self.anywhere.is_some() {
            return false;
        }
        let mut makes = false;
        for words in every_command(&command.stripped, &command.inside) {
            makes |= self.note_command(words, directories, ground);
        }
        makes
    }

    fn note_command(
        &mut self,
        words: &[Word],
        directories: &Directories,
        ground: &Ground<'_>,
    ) -> bool {
        let Some((name, arguments)) = words.split_first() else {
            return false;
        };
        if makes_links_anywhere(&name.text, arguments) {
            self.anywhere = Some(name.text.clone());
            return true;
        }
        let Some(transfer) = harm::transfer(&name.text, arguments).filter(|t| t.brings_links)
        else {
            return false;
        };
        let known = self.things.len();
        for cwd in directories.all() {
            let is_plain = name.text != "ln" && self.brings_no_link(&transfer, cwd, ground);
            for written in written_by(&transfer, cwd, ground) {
                let is_here = written.place.ways().any(|path| cwd.starts_with(path));
                if written.filled || !is_here {
                    self.add(written.place, &name.text, is_plain);
                }
            }
        }
        self.things.len() > known || self.anywhere.is_some()
    }

    /// Whether the copied or moved files contain no link, neither on the disk nor by an earlier part.
    fn brings_no_link(&self, transfer: &Transfer<'_>, cwd: &Path, ground: &Ground<'_>) -> bool {
        let links = Odd {
            links: true,
            ..Odd::default()
        };
        transfer.taken().all(|source| {
            let place = ground.place(&source.text, cwd);
            let is_local = !source.text.contains(':') && !source.globs;
            let is_link = place.written != place.real || place.doubt.is_some();
            is_local
                && !is_link
                && !ground.has_below(&place, links)
                && self.maker_of(&place).is_none()
        })
    }

    fn add(&mut self, place: Place, by: &str, is_plain: bool) {
        let is_full = self.things.len() == MOST_MADE;
        let known = self.things.iter_mut().find(|thing| thing.place == place);
        match known {
            Some(known) => known.is_plain &= is_plain,
            None if is_full => self.anywhere = Some(by.to_owned()),
            None => self.things.push(Thing {
                place,
                by: by.to_owned(),
                is_plain,
            }),
        }
    }

    /// The part that may have created a link on the path to a place.
    fn maker_of(&self, place: &Place) -> Option<&str> {
        let leads = |thing: &&Thing| !thing.is_plain && meets(place, &thing.place);
        self.things
            .iter()
            .find(leads)
            .map(|thing| thing.by.as_str())
    }

    /// Why the location of a file that the shell opens is uncertain; `None` if it is certain.
    pub fn doubt(&self, place: &Place) -> Option<String> {
        let maker = self.anywhere.as_deref().or_else(|| self.maker_of(place))?;
        Some(leads(maker, &place.written.to_string_lossy()))
    }

    /// A part that reads or writes where an earlier part may have created a link.
    pub fn harm(&self, case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Harm> {
        if self.things.is_empty() && self.anywhere.is_none() {
            return None;
        }
        let (name, arguments) = words.split_first()?;
        let (maker, at) = self
            .written(case, words, directories)
            .or_else(|| self.read(case, &name.text, arguments, directories))?;
        Some(Harm::inexcusable(leads(maker, &arguments[at].text)))
    }

    fn written(
        &self,
        case: &Case<'_>,
        words: &[Word],
        directories: &Directories,
    ) -> Option<(&str, usize)> {
        let (name, arguments) = words.split_first()?;
        let written = harm::written(&name.text, arguments);
        let is_path = |at: &&usize| !arguments[**at].text.starts_with('-');
        let at = *written.iter().find(is_path).or(written.first())?;
        let maker = self.anywhere.as_ref().or_else(|| {
            let places = places_written(case, words, directories);
            let may_lead = |thing: &&Thing| places.iter().any(|place| meets(place, &thing.place));
            self.things.iter().find(may_lead).map(|thing| &thing.by)
        })?;
        Some((maker, at))
    }

    /// Programs that show only names open nothing, and git does not follow links.
    fn read(
        &self,
        case: &Case<'_>,
        program: &str,
        arguments: &[Word],
        directories: &Directories,
    ) -> Option<(&str, usize)> {
        if harm::only_lists(program) || program == "git" {
            return None;
        }
        let ground = &case.ground;
        (0..arguments.len()).find_map(|at| {
            let word = &arguments[at];
            let opens = || !word.text.starts_with('-') && harm::opens(program, arguments, at);
            let anywhere = self.anywhere.as_deref().filter(|_| opens());
            let places = match word.globs {
                true => places::places_of_glob(word, directories, ground),
                false => directories.places(word, ground),
            };
            let maker =
                anywhere.or_else(|| places.iter().find_map(|place| self.maker_of(place)))?;
            Some((maker, at))
        })
    }
}

fn leads(maker: &str, text: &str) -> String {
    format!("what {maker} makes before it may lead `{text}` to another place")
}

/// Whether a place is at or below a created one.
fn meets(place: &Place, made: &Place) -> bool {
    place
        .ways()
        .any(|path| made.ways().any(|made| path.starts_with(made)))
}

fn places_written(case: &Case<'_>, words: &[Word], directories: &Directories) -> Vec<Place> {
    let Some((name, arguments)) = words.split_first() else {
        return Vec::new();
    };
    let ground = &case.ground;
    let mut found = Vec::new();
    if let Some(transfer) = harm::transfer(&name.text, arguments) {
        let places = directories.all().iter();
        let written = places.flat_map(|cwd| written_by(&transfer, cwd, ground));
        found.extend(written.map(|written| written.place));
    }
    for at in harm::written(&name.text, arguments) {
        match arguments[at].globs {
            true => found.extend(places::places_of_glob(&arguments[at], directories, ground)),
            false => found.extend(directories.places(&arguments[at], ground)),
        }
    }
    found
}

/// Subcommands of git that write files of a commit, possibly links, into the working directory.
const CHECKS_OUT: &[&str] = &[
    "checkout",
    "switch",
    "restore",
    "reset",
    "merge",
    "pull",
    "rebase",
    "stash",
    "clone",
    "worktree",
    "submodule",
    "apply",
    "am",
    "cherry-pick",
    "revert",
    "read-tree",
    "checkout-index",
];

fn makes_links_anywhere(program: &str, arguments: &[Word]) -> bool {
    let texts = || arguments.iter().map(|word| word.text.as_str());
    match program.rsplit('/').next().unwrap_or_default() {
        "git" => texts()
            .find(|word| CHECKS_OUT.contains(word))
            .is_some_and(|word| !only_names_a_branch(word, arguments)),
        "tar" | "gtar" | "bsdtar" => texts().any(|word| {
            let is_long = word.starts_with("--");
            !is_long && word.contains('x') || word.starts_with("--ex") || word.starts_with("--get")
        }),
        "unzip" | "7z" | "7za" | "7zz" | "unrar" | "cpio" | "pax" | "patch" => true,
        _ => false,
    }
}

/// `git checkout -b name` and `git switch -c name` leave the files unchanged.
fn only_names_a_branch(subcommand: &str, arguments: &[Word]) -> bool {
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    matches!(
        (subcommand, texts.as_slice()),
        ("checkout", ["checkout", "-b", _]) | ("switch", ["switch", "-c" | "--create", _])
    )
}
