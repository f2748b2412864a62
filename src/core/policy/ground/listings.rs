//! Directories that are read for their links. A command that names many files of a directory then costs one look at the
//! directory, instead of one at each file.

use crate::core::policy::paths::Paths;
use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

/// How often names of a directory are looked up one by one, before the directory is read.
const ASKED_BEFORE_READ: usize = 6;

/// The most directories whose look-ups are counted: few commands name files in more.
const MOST_LISTINGS: usize = 8;

/// The most names of a directory that is read for its links: a larger one costs more than it saves.
const LARGEST_LISTING: usize = 256;

/// The directories in which names were looked up during one decision.
#[derive(Default)]
pub struct Listings(RefCell<Vec<(OsString, Listing)>>);

/// What is known of the links in a directory.
enum Listing {
    /// How often one of its names was looked up.
    Asked(usize),
    /// The names of all its links, in small letters: some file systems do not tell capital letters from small ones.
    Links(HashSet<String>),
    Unknown,
}

impl Listings {
    /// Whether the directory of this path was read, and the path is no link in it.
    pub fn exclude(&self, path: &Path, paths: &dyn Paths) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        let mut all = self.0.borrow_mut();
        let Some((_, listing)) = all
            .iter_mut()
            .find(|(known, _)| known == parent.as_os_str())
        else {
            if all.len() < MOST_LISTINGS {
                all.push((parent.as_os_str().to_owned(), Listing::Asked(1)));
            }
            return false;
        };
        if let Listing::Asked(times) = listing {
            *times += 1;
            if *times > ASKED_BEFORE_READ {
                let links = paths.links_in(parent, LARGEST_LISTING);
                *listing = links.map_or(Listing::Unknown, Listing::of);
            }
        }
        match listing {
            Listing::Links(links) => name
                .to_str()
                .is_some_and(|name| name.is_ascii() && !links.contains(&name.to_ascii_lowercase())),
            Listing::Asked(_) | Listing::Unknown => false,
        }
    }
}

impl Listing {
    /// A file system may compare other letters than ASCII in its own way: then nothing is known.
    fn of(names: Vec<OsString>) -> Listing {
        let small = |name: OsString| {
            let name = name.into_string().ok().filter(|name| name.is_ascii())?;
            Some(name.to_ascii_lowercase())
        };
        let names: Option<HashSet<String>> = names.into_iter().map(small).collect();
        names.map_or(Listing::Unknown, Listing::Links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::policy::Policy;
    use crate::core::policy::{Ask, Decision, decide};
    use std::cell::Cell;
    use std::path::PathBuf;

    /// A directory with these links, and how often it was asked about.
    #[derive(Default)]
    struct Counted {
        links: Vec<&'static str>,
        asked: Cell<usize>,
        read: Cell<usize>,
        settings: Cell<usize>,
    }

    impl Paths for Counted {
        fn link(&self, path: &Path) -> Option<PathBuf> {
            self.asked.set(self.asked.get() + 1);
            let name = path.file_name()?.to_str()?.to_lowercase();
            let is_it = |link: &&str| link.to_lowercase() == name;
            self.links.iter().any(is_it).then(|| PathBuf::from(".env"))
        }

        fn links_in(&self, _: &Path, _: usize) -> Option<Vec<OsString>> {
            self.read.set(self.read.get() + 1);
            Some(self.links.iter().map(OsString::from).collect())
        }

        fn names(&self, _: &Path, _: usize) -> Option<Vec<OsString>> {
            Some(Vec::new())
        }

        fn home(&self) -> Option<PathBuf> {
            None
        }

        fn git_programs(&self, _: &Path) -> Vec<String> {
            self.settings.set(self.settings.get() + 1);
            Vec::new()
        }
    }

    fn policy() -> Policy {
        let text = "allow = [\"Bash(cat *)\", \"Bash(git *)\"]\ndeny = [\"Read(./.env)\"]\n";
        Policy::parse(text, Path::new("p.toml"), Path::new("/proj")).expect("a good policy")
    }

    fn many(last: &str) -> Ask {
        let files: Vec<String> = (0..60).map(|n| format!("f{n}")).collect();
        Ask::bash(&format!("cat {} {last}", files.join(" ")), "/proj")
    }

    #[test]
    fn a_directory_is_looked_at_once_for_many_names() {
        let paths = Counted::default();
        let verdict = decide(&policy(), &many("last"), &paths);
        assert_eq!(verdict.decision, Decision::Allow, "{}", verdict.why);
        assert_eq!(paths.read.get(), 1);
        let asked = paths.asked.get();
        assert!(asked < 20, "{asked} look-ups for 61 names");
        let chain: Vec<String> = (0..40).map(|n| format!("git log {n}")).collect();
        let ask = Ask::bash(&chain.join(" && "), "/proj");
        assert_eq!(decide(&policy(), &ask, &paths).decision, Decision::Allow);
        assert_eq!(
            paths.settings.get(),
            1,
            "the settings of git were read again"
        );
    }

    #[test]
    fn links_are_found_in_a_directory_that_was_read() {
        for link in ["last", "LAST", "l\u{e4}st"] {
            let links = vec![link];
            for name in [link, "last"].map(str::to_owned) {
                let is_it = name.to_lowercase() == link.to_lowercase();
                let paths = Counted {
                    links: links.clone(),
                    ..Counted::default()
                };
                let verdict = decide(&policy(), &many(&name), &paths);
                let expected = if is_it {
                    Decision::Deny
                } else {
                    Decision::Allow
                };
                assert_eq!(verdict.decision, expected, "{link} {name}: {}", verdict.why);
            }
        }
    }
}
