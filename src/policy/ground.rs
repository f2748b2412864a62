//! The places that one decision is about: where paths lead.

use super::paths::{Paths, Place, normalise};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links may lead from one to the next; as many as Linux itself follows.
const MOST_LINKS: usize = 40;

/// A directory as it is written and where it really is.
pub type Directory = [PathBuf; 2];

pub struct Ground<'a> {
    paths: &'a dyn Paths,
    /// What was asked of `paths` for this decision: the paths of one call share most of their way.
    links: RefCell<HashMap<OsString, Option<PathBuf>>>,
    pub cwd: Directory,
    // Looked up when they are first needed: most commands need none of them, and each costs calls of the system.
    project: Lazy<'a, Path, Directory>,
    home: OnceCell<Option<Directory>>,
    protected: Lazy<'a, [PathBuf], Vec<PathBuf>>,
}

struct Lazy<'a, From: ?Sized, To> {
    from: &'a From,
    found: OnceCell<To>,
}

impl<'a, From: ?Sized, To> Lazy<'a, From, To> {
    fn new(from: &'a From) -> Lazy<'a, From, To> {
        let found = OnceCell::new();
        Lazy { from, found }
    }
}

impl<'a> Ground<'a> {
    pub fn new(
        paths: &'a dyn Paths,
        cwd: &Path,
        project: &'a Path,
        protected: &'a [PathBuf],
    ) -> Ground<'a> {
        let mut ground = Ground {
            paths,
            links: RefCell::default(),
            cwd: Directory::default(),
            project: Lazy::new(project),
            home: OnceCell::new(),
            protected: Lazy::new(protected),
        };
        ground.cwd = ground.directory(cwd);
        ground
    }

    pub fn project(&self) -> &Directory {
        let Lazy { from, found } = &self.project;
        found.get_or_init(|| self.directory(from))
    }

    pub fn home(&self) -> Option<&Directory> {
        let find = || self.paths.home().map(|home| self.directory(&home));
        self.home.get_or_init(find).as_ref()
    }

    /// Protected places, with those that they lead to.
    pub fn protected(&self) -> &[PathBuf] {
        let Lazy { from, found } = &self.protected;
        found.get_or_init(|| {
            let places = from.iter().flat_map(|place| self.directory(place));
            let mut places: Vec<PathBuf> = places.collect();
            places.dedup();
            places
        })
    }

    /// Whether a place is in the slot's directory, as it is written and where it really is.
    pub fn is_inside(&self, place: &Place) -> bool {
        let holds =
            |own: &PathBuf, path: &Path| !own.as_os_str().is_empty() && path.starts_with(own);
        let mut ways = place.ways();
        ways.all(|path| self.cwd.iter().any(|own| holds(own, path)))
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.links.borrow().get(path.as_os_str()) {
            return known.clone();
        }
        let target = self.paths.link(path);
        let mut links = self.links.borrow_mut();
        links.insert(path.as_os_str().to_owned(), target.clone());
        target
    }

    fn directory(&self, path: &Path) -> Directory {
        [normalise(path), self.resolve(path)]
    }

    /// `text` as a tool or a shell would take it in the directory `cwd`.
    pub fn place(&self, text: &str, cwd: &Path) -> Place {
        if is_plain_name(text) && cwd == self.cwd[0] {
            return self.place_in_cwd(text);
        }
        let absolute = cwd.join(self.expand_home(text));
        Place {
            written: normalise(&absolute),
            real: self.resolve(&absolute),
        }
    }

    /// Most words of a command are plain names: no part of the way to them has to be looked at again.
    fn place_in_cwd(&self, name: &str) -> Place {
        let [cwd, real_cwd] = &self.cwd;
        let mut links_left = MOST_LINKS;
        Place {
            written: cwd.join(name),
            real: self.follow(real_cwd.clone(), Path::new(name), &mut links_left),
        }
    }

    fn expand_home(&self, text: &str) -> PathBuf {
        let below_home = match text.strip_prefix('~') {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        match (below_home, self.home()) {
            (Some(rest), Some([home, _])) => home.join(rest),
            _ => PathBuf::from(text),
        }
    }

    /// The same place with every link on the way followed; what does not exist stays as it is, since a tool may
    /// be about to create it.
    fn resolve(&self, path: &Path) -> PathBuf {
        // Where the working directory leads is known, and nearly every path of a call lies below it.
        let [cwd, real_cwd] = &self.cwd;
        let mut links_left = MOST_LINKS;
        match path.strip_prefix(cwd) {
            Ok(below) if !cwd.as_os_str().is_empty() => {
                self.follow(real_cwd.clone(), below, &mut links_left)
            }
            _ => self.follow(PathBuf::new(), path, &mut links_left),
        }
    }

    /// `path` from the real directory `real` on. It calls itself for each link, and the links that are left are
    /// counted over the whole way: links that each name two others would else double the work every time.
    fn follow(&self, mut real: PathBuf, path: &Path, links_left: &mut usize) -> PathBuf {
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    real.pop();
                }
                Component::Prefix(_) | Component::RootDir => real = PathBuf::from("/"),
                Component::Normal(name) => {
                    real.push(name);
                    if *links_left > 0
                        && let Some(target) = self.link(&real)
                    {
                        *links_left -= 1;
                        real.pop();
                        real = self.follow(real, &target, links_left);
                    }
                }
            }
        }
        real
    }
}

fn is_plain_name(text: &str) -> bool {
    !text.contains('/') && !matches!(text, "" | "." | "..") && !text.starts_with('~')
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
