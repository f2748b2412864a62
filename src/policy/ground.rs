//! The places that one decision is about: where paths lead, looked up once each.

use super::paths::{Paths, Place, normalise};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// How many links may lead from one to the next; as many as Linux itself follows.
const MOST_LINKS: usize = 40;

/// A directory as it is written and where it really is.
pub type Directory = [PathBuf; 2];

pub struct Ground<'a> {
    paths: &'a dyn Paths,
    /// What is known about links so far. A decision names few places, and each in few directories.
    links: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
    pub cwd: Directory,
    pub project: Directory,
    pub home: Option<Directory>,
    /// Protected places, with those that they lead to.
    pub protected: Vec<PathBuf>,
}

impl<'a> Ground<'a> {
    pub fn new(
        paths: &'a dyn Paths,
        cwd: &Path,
        project: &Path,
        protected: &[PathBuf],
    ) -> Ground<'a> {
        let mut ground = Ground {
            paths,
            links: RefCell::default(),
            cwd: Directory::default(),
            project: Directory::default(),
            home: None,
            protected: Vec::new(),
        };
        ground.cwd = ground.directory(cwd);
        ground.project = ground.directory(project);
        ground.home = paths.home().map(|home| ground.directory(&home));
        ground.protected = protected
            .iter()
            .flat_map(|place| ground.directory(place))
            .collect();
        ground.protected.dedup();
        ground
    }

    fn directory(&self, path: &Path) -> Directory {
        [normalise(path), self.resolve(path)]
    }

    /// `text` as a tool or a shell would take it in the directory `cwd`.
    pub fn place(&self, text: &str, cwd: &Path) -> Place {
        let absolute = cwd.join(self.expand_home(text));
        Place {
            written: normalise(&absolute),
            real: self.resolve(&absolute),
        }
    }

    fn expand_home(&self, text: &str) -> PathBuf {
        let below_home = match text.strip_prefix('~') {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        match (below_home, &self.home) {
            (Some(rest), Some([home, _])) => home.join(rest),
            _ => PathBuf::from(text),
        }
    }

    /// The same place with every link on the way followed; what does not exist stays as it is, since a tool may
    /// be about to create it.
    fn resolve(&self, path: &Path) -> PathBuf {
        let mut real = PathBuf::new();
        let mut waiting = vec![path.to_owned()];
        let mut links_left = MOST_LINKS;
        while let Some(path) = waiting.pop() {
            let mut components = path.components();
            let Some(component) = components.next() else {
                continue;
            };
            waiting.push(components.as_path().to_owned());
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    real.pop();
                }
                other => real.push(other),
            }
            if matches!(component, Component::Normal(_))
                && links_left > 0
                && let Some(target) = self.link(&real)
            {
                links_left -= 1;
                real.pop();
                waiting.push(target);
            }
        }
        real
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.links.borrow().get(path) {
            return known.clone();
        }
        let link = self.paths.link(path);
        self.links
            .borrow_mut()
            .insert(path.to_owned(), link.clone());
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Links;

    impl Paths for Links {
        fn link(&self, path: &Path) -> Option<PathBuf> {
            let target = match path.to_str()? {
                "/a/link" => "real",
                "/a/abs" => "/b",
                "/a/up" => "../c/./d",
                "/a/chain" => "abs/x",
                "/a/loop" => "loop",
                _ => return None,
            };
            Some(PathBuf::from(target))
        }

        fn home(&self) -> Option<PathBuf> {
            None
        }
    }

    #[test]
    fn links_are_followed_part_by_part() {
        let ground = Ground::new(&Links, Path::new("/a"), Path::new("/a"), &[]);
        for (written, real) in [
            ("/a/link/new/file", "/a/real/new/file"),
            ("/a/abs/../x", "/x"),
            ("/a/abs/x", "/b/x"),
            ("/a/up/x", "/c/d/x"),
            ("/a/chain", "/b/x"),
            ("/a/./b//c", "/a/b/c"),
            ("/../..", "/"),
        ] {
            assert_eq!(
                ground.resolve(Path::new(written)),
                Path::new(real),
                "{written}"
            );
        }
        assert!(ground.resolve(Path::new("/a/loop/x")).starts_with("/a"));
    }
}
