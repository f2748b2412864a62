//! The places that one decision is about: where paths lead.

use super::git_hooks::protected_in;
use super::paths::{Paths, Place, normalise};
use super::pattern::fits;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// How many links may lead from one to the next; as many as Linux itself follows.
const MOST_LINKS: usize = 40;

/// How many names are read for one decision to learn what globs stand for.
const MOST_NAMES: usize = 4096;

const PROCESS_LINK: &str = "it goes through a link of `/proc`, which leads each process elsewhere";
const TOO_MANY: &str = "it may stand for more files than are looked at";

/// A directory as it is written and where it really is.
pub type Directory = [PathBuf; 2];

/// What makes files below a directory other than they look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Odd {
    /// A name with a space or a quote in it, or one that could be an option.
    pub names: bool,
    /// A link, which leads anywhere.
    pub links: bool,
}

pub struct Ground<'a> {
    paths: &'a dyn Paths,
    /// What was asked of `paths` for this decision: the paths of one call share most of their way.
    links: RefCell<HashMap<OsString, Option<PathBuf>>>,
    repositories: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
    names_left: Cell<usize>,
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
            repositories: RefCell::default(),
            names_left: Cell::new(MOST_NAMES),
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

    /// Protected places and those of the repository's hooks, with those that they lead to.
    pub fn protected(&self) -> &[PathBuf] {
        let Lazy { from, found } = &self.protected;
        found.get_or_init(|| {
            let [_, cwd] = &self.cwd;
            let hooks = self.paths.hooks(cwd).into_iter();
            let hooks = hooks.map(|hooks| self.resolve(&hooks));
            let hooks = hooks.flat_map(|hooks| protected_in(hooks, cwd));
            let places = from.iter().cloned().chain(hooks);
            let places = places.flat_map(|place| self.directory(&place));
            let mut places: Vec<PathBuf> = places.collect();
            places.dedup();
            places
        })
    }

    /// The settings by which the repository around a directory has git run a program.
    pub fn git_programs(&self, directory: &Path) -> Vec<String> {
        self.paths.git_programs(&self.resolve(directory))
    }

    /// Whether a directory lies in the same repository as the slot's.
    pub fn is_of_same_repository(&self, directory: &Path) -> bool {
        let [_, cwd] = &self.cwd;
        let other = self.resolve(directory);
        other == *cwd || self.paths.repository(&other) == self.paths.repository(cwd)
    }

    /// Whether something below a directory is as one of these, or nobody can tell.
    pub fn has_below(&self, place: &Place, odd: Odd) -> bool {
        if odd == Odd::default() {
            return false;
        }
        let parts = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\');
        let is_odd = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with('-') || name.contains(parts)
        };
        self.finds_below(place, |path| {
            odd.names && is_odd(path) || odd.links && self.link(path).is_some()
        })
    }

    /// Whether a path below a directory is as wanted, or there are more than may be read.
    pub fn finds_below(&self, place: &Place, is_wanted: impl Fn(&Path) -> bool) -> bool {
        let mut waiting = vec![place.real.clone()];
        while let Some(way) = waiting.pop() {
            let names_left = self.names_left.take();
            let Some(names) = self.paths.names(&way, names_left) else {
                return true;
            };
            self.names_left.set(names_left - names.len());
            let below: Vec<PathBuf> = names.iter().map(|name| way.join(name)).collect();
            if below.iter().any(|path| is_wanted(path)) {
                return true;
            }
            waiting.extend(below.into_iter().filter(|path| self.link(path).is_none()));
        }
        false
    }

    /// Whether there is something at this place. A directory of which nothing is known may hold anything.
    pub fn may_exist(&self, place: &Place) -> bool {
        let (Some(parent), Some(name)) = (place.real.parent(), place.real.file_name()) else {
            return true;
        };
        let names = self.paths.names(parent, MOST_NAMES);
        let is_there = names.is_none_or(|names| names.iter().any(|known| known == name));
        let is_unknown = || {
            self.paths
                .names(&self.cwd[1], MOST_NAMES)
                .is_some_and(|n| n.is_empty())
        };
        is_there || is_unknown()
    }

    /// The top of the repository in which a directory lies.
    pub fn repository(&self, directory: &Path) -> Option<PathBuf> {
        let mut known = self.repositories.borrow_mut();
        let find = || self.paths.repository(&self.resolve(directory));
        known
            .entry(directory.to_owned())
            .or_insert_with(find)
            .clone()
    }

    /// Whether a place is in the slot's directory, as it is written and where it really is.
    pub fn is_inside(&self, place: &Place) -> bool {
        let holds =
            |own: &PathBuf, path: &Path| !own.as_os_str().is_empty() && path.starts_with(own);
        let mut ways = place.ways();
        ways.all(|path| self.cwd.iter().any(|own| holds(own, path)))
    }

    /// A path as it is seen from the slot's directory, if it lies there.
    pub fn seen_from_cwd<'p>(&self, path: &'p Path) -> &'p Path {
        let mut below = self
            .cwd
            .iter()
            .filter_map(|cwd| path.strip_prefix(cwd).ok());
        below.next().unwrap_or(path)
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
        self.place_at(&cwd.join(self.expand_home(text)))
    }

    fn place_at(&self, absolute: &Path) -> Place {
        let (real, doubt) = self.resolve_in_doubt(absolute);
        Place {
            written: normalise(absolute),
            real,
            doubt,
        }
    }

    /// The places that a glob stands for now. If it may stand for too many, its directory, in doubt.
    pub fn matches(&self, glob: &str, cwd: &Path) -> Vec<Place> {
        let glob = self.expand_home(glob);
        let mut found = vec![cwd.to_owned()];
        for component in glob.components() {
            let next = match component {
                Component::Normal(name) if is_glob(name) => {
                    self.fitting(&found, &name.to_string_lossy())
                }
                plain => Some(found.iter().map(|way| way.join(plain)).collect()),
            };
            found = match next {
                Some(next) => next,
                None => {
                    let doubt = Some(TOO_MANY);
                    let place = self.place_at(&found[0]);
                    return vec![Place { doubt, ..place }];
                }
            };
        }
        found.iter().map(|way| self.place_at(way)).collect()
    }

    /// What is in these directories and fits a glob. `**` stands for every directory below them too, as some shells
    /// take it. None if that is more than may be read.
    fn fitting(&self, ways: &[PathBuf], glob: &str) -> Option<Vec<PathBuf>> {
        let is_deep = glob == "**";
        let mut waiting = ways.to_vec();
        let mut found = Vec::new();
        while let Some(way) = waiting.pop() {
            let names_left = self.names_left.take();
            let names = self.paths.names(&way, names_left)?;
            self.names_left.set(names_left - names.len());
            let fitting = names
                .iter()
                .filter(|name| fits(glob, &name.to_string_lossy()));
            let fitting: Vec<PathBuf> = fitting.map(|name| way.join(name)).collect();
            if is_deep {
                let is_link = |way: &&PathBuf| self.link(way).is_some();
                waiting.extend(fitting.iter().filter(|way| !is_link(way)).cloned());
            }
            found.extend(fitting);
        }
        if is_deep {
            found.extend_from_slice(ways);
        }
        Some(found)
    }

    /// Most words of a command are plain names: no part of the way to them has to be looked at again.
    fn place_in_cwd(&self, name: &str) -> Place {
        let [cwd, real_cwd] = &self.cwd;
        let mut way = Way::default();
        Place {
            written: cwd.join(name),
            real: self.follow(real_cwd.clone(), Path::new(name), &mut way),
            doubt: way.doubt,
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
        self.resolve_in_doubt(path).0
    }

    /// The same, and why it can't be told.
    fn resolve_in_doubt(&self, path: &Path) -> (PathBuf, Option<&'static str>) {
        // Where the working directory leads is known, and nearly every path of a call lies below it.
        let [cwd, real_cwd] = &self.cwd;
        let mut way = Way::default();
        let real = match path.strip_prefix(cwd) {
            Ok(below) if !cwd.as_os_str().is_empty() => {
                self.follow(real_cwd.clone(), below, &mut way)
            }
            _ => self.follow(PathBuf::new(), path, &mut way),
        };
        (real, way.doubt)
    }

    /// `path` from the real directory `real` on. It calls itself for each link, and the links that are left are
    /// counted over the whole way: links that each name two others would else double the work every time.
    fn follow(&self, mut real: PathBuf, path: &Path, way: &mut Way) -> PathBuf {
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    real.pop();
                }
                Component::Prefix(_) | Component::RootDir => real = PathBuf::from("/"),
                Component::Normal(name) => {
                    real.push(name);
                    match system_link(&real) {
                        SystemLink::No => {
                            if way.links_left > 0
                                && let Some(target) = self.link(&real)
                            {
                                way.links_left -= 1;
                                real.pop();
                                real = self.follow(real, &target, way);
                            }
                        }
                        SystemLink::Stays => {}
                        SystemLink::OwnFiles => real = PathBuf::from("/proc/self/fd"),
                        SystemLink::OfProcess(name) => {
                            way.doubt = Some(PROCESS_LINK);
                            match name {
                                "cwd" => real.clone_from(&self.cwd[1]),
                                "root" => real = PathBuf::from("/"),
                                _ => {}
                            }
                        }
                    }
                }
            }
        }
        real
    }
}

/// What is kept along the way to a place.
struct Way {
    links_left: usize,
    doubt: Option<&'static str>,
}

impl Default for Way {
    fn default() -> Way {
        Way {
            links_left: MOST_LINKS,
            doubt: None,
        }
    }
}

/// Links that lead each process elsewhere: what they say here is not what they say to the command.
enum SystemLink<'p> {
    No,
    /// It is left as it is written.
    Stays,
    /// `/dev/fd`.
    OwnFiles,
    /// A link such as `cwd` or `root` of some process.
    OfProcess(&'p str),
}

fn system_link(path: &Path) -> SystemLink<'_> {
    let text = path.to_str().unwrap_or_default();
    match text {
        "/dev/fd" => return SystemLink::OwnFiles,
        "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/proc/self" | "/proc/thread-self" => {
            return SystemLink::Stays;
        }
        "/proc/self/fd/0" | "/proc/self/fd/1" | "/proc/self/fd/2" => return SystemLink::Stays,
        _ => {}
    }
    let Some(below) = text.strip_prefix("/proc/") else {
        return SystemLink::No;
    };
    let names: Vec<&str> = below.split('/').collect();
    match names.as_slice() {
        [_, "task", _, rest @ ..] | [_, rest @ ..] => match rest {
            [name @ ("cwd" | "root" | "exe")] | ["fd" | "map_files", name] => {
                SystemLink::OfProcess(name)
            }
            _ => SystemLink::No,
        },
        [] => SystemLink::No,
    }
}

fn is_glob(name: &OsStr) -> bool {
    name.to_string_lossy().contains(['*', '?', '['])
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

        fn names(&self, _: &Path, _: usize) -> Option<Vec<OsString>> {
            Some(Vec::new())
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
