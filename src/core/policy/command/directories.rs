//! The directories in which a part of a command may run, and the places that its words may name there.

use crate::core::policy::ground::Ground;
use crate::core::policy::paths::Place;
use crate::core::policy::shell::{self, Word};
use std::path::{Path, PathBuf};

/// Where a part of a command may run: the slot's directory, and every directory that an earlier `cd` names.
#[derive(Clone)]
pub struct Directories {
    all: Vec<PathBuf>,
    /// The directory in which the next part certainly runs: every earlier `cd` led there and succeeded.
    current: Option<PathBuf>,
}

/// The most directories that are tracked. After more changes of directory, later paths are judged in the first ones only; such a
/// command becomes *ask* anyway, see [`super::places::harm`].
const MOST_DIRECTORIES: usize = 8;

impl Directories {
    pub fn new(cwd: PathBuf) -> Directories {
        Directories {
            current: Some(cwd.clone()),
            all: vec![cwd],
        }
    }

    /// From here on the current directory is unknown.
    pub fn lose_current(&mut self) {
        self.current = None;
    }

    /// Follows a command that changes the directory; returns whether it does.
    pub fn follow(&mut self, words: &[Word], ground: &Ground<'_>) -> bool {
        let [name, .., target] = words else {
            return false;
        };
        if !matches!(name.text.as_str(), "cd" | "pushd") || self.all.len() > MOST_DIRECTORIES {
            return false;
        }
        let current = self.current.take();
        self.current = current.map(|cwd| ground.place(&target.text, &cwd).written);
        let targets: Vec<PathBuf> = self
            .all
            .iter()
            .map(|cwd| ground.place(&target.text, cwd).written)
            .collect();
        self.all.extend(targets);
        self.all.dedup();
        true
    }

    /// Only the directory in which the next part certainly runs, if it is known.
    pub fn surest(&self) -> Directories {
        match &self.current {
            Some(cwd) => Directories::new(cwd.clone()),
            None => self.clone(),
        }
    }

    pub fn all(&self) -> &[PathBuf] {
        &self.all
    }

    /// Every place that a word may name.
    pub fn places(&self, word: &Word, ground: &Ground<'_>) -> Vec<Place> {
        if word.doubt.is_some() {
            return self.places_in_doubt(&word.text.replace('"', ""), ground);
        }
        let literal = literal_tilde(&word.text, !shell::names_home(&word.text));
        path_texts(&word.text)
            .chain(literal.as_deref())
            .flat_map(|text| self.all.iter().map(move |cwd| ground.place(text, cwd)))
            .collect()
    }

    /// Every place that the globs of a word match now.
    pub fn matches(&self, word: &str, ground: &Ground<'_>) -> Vec<Place> {
        path_texts(word)
            .filter(|text| text.contains(['*', '?', '[']))
            .flat_map(|text| {
                self.all
                    .iter()
                    .flat_map(move |cwd| ground.matches(text, cwd))
            })
            .collect()
    }

    /// Every place that a text names, literally and by its globs.
    pub fn places_of_text(&self, text: &str, ground: &Ground<'_>) -> Vec<Place> {
        let named = self.all.iter().map(|cwd| ground.place(text, cwd));
        named.chain(self.matches(text, ground)).collect()
    }

    /// The places of a word that is only partly known.
    fn places_in_doubt(&self, word: &str, ground: &Ground<'_>) -> Vec<Place> {
        let place = |text: &str, cwd| match likely(text) {
            Some(likely) => ground.place(&likely, cwd),
            None if text.starts_with(['$', '`']) => Place::unknown(text, cwd),
            None => ground.place(text, cwd),
        };
        let literal = literal_tilde(word, true);
        path_texts(word)
            .chain(literal.as_deref())
            .flat_map(|text| self.all.iter().map(move |cwd| place(text, cwd)))
            .collect()
    }

    pub fn first(&self) -> &Path {
        &self.all[0]
    }

    /// The directory in which the next part runs, if it is known.
    pub fn current(&self) -> Option<&Path> {
        self.current.as_deref()
    }

    pub fn are_too_many(&self) -> bool {
        self.all.len() > MOST_DIRECTORIES
    }

    /// The directories of a program that changes from each of these to another one, as `git -C` does.
    pub fn after(&self, ways: &[&str], ground: &Ground<'_>) -> Directories {
        let all = self.all.iter().map(|cwd| {
            let go = |from: PathBuf, way: &&str| ground.place(way, &from).written;
            ways.iter().fold(cwd.clone(), go)
        });
        Directories {
            all: all.collect(),
            current: None,
        }
    }
}

/// The path of a word whose `~` may be literal: a shell expands a `~` inside a word only in an assignment, and never a quoted
/// one.
fn literal_tilde(word: &str, whole: bool) -> Option<String> {
    if !word.contains('~') {
        return None;
    }
    let mut texts = path_texts(word).filter(|text| text.starts_with('~'));
    let text = texts.find(|text| whole || text.len() < word.len())?;
    Some(format!("./{text}"))
}

/// The usual values of two variables, and of `~+`. Only restrictions may use them, never an *allow*.
fn likely(text: &str) -> Option<String> {
    const LIKELY: &[(&str, &str)] = &[
        ("$HOME", "~"),
        ("${HOME}", "~"),
        ("$PWD", "."),
        ("${PWD}", "."),
        ("~+", "."),
    ];
    LIKELY.iter().find_map(|(variable, stands_for)| {
        let rest = text.strip_prefix(variable)?;
        let is_whole = rest.is_empty() || rest.starts_with('/');
        is_whole.then(|| format!("{stands_for}{rest}"))
    })
}

/// The texts in a word that may be paths: the word, the text after a `=`, the text attached to a short option.
pub fn path_texts(word: &str) -> impl Iterator<Item = &str> {
    let whole = (!word.starts_with('-')).then_some(word);
    let value = word.split_once('=').map(|(_, value)| value);
    let attached = word
        .starts_with('-')
        .then(|| word.find(['/', '~', '.']).map(|at| &word[at..]))
        .flatten();
    // `-Cdirectory`, `-tdirectory`
    let of_letter = word.strip_prefix(['-']).and_then(|rest| {
        let names_one = rest.starts_with(['C', 't', 'd', 'o', 'I', 'f']) || rest.contains('/');
        rest.get(1..)
            .filter(|_| names_one && !rest.starts_with('-'))
    });
    let at_file = word.split_once('@').map(|(_, file)| file);
    // `HEAD:file`, `host:file`
    let behind_colon = word.split_once(':').map(|(_, file)| file);
    let behind_colon = behind_colon.filter(|file| !file.starts_with("//"));
    // `--from-file=key=file`, `-f one,other`, `--set-file a=one,b=other`
    let in_list = word.contains(',') || value.is_some_and(|value| value.contains('='));
    let of_list = in_list.then(|| word.split([',', '=']).skip(1));
    [whole, value, attached, of_letter, at_file, behind_colon]
        .into_iter()
        .flatten()
        .chain(of_list.into_iter().flatten())
        .filter(|text| !text.is_empty())
}
