//! The file system as one decision sees it: where paths lead.

mod listings;

use super::git_hooks::protected_in;
use super::paths::{Paths, Place, below, joined, normalise};
use super::pattern::fits;
use listings::Listings;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// The most symbolic links in one path; the same limit as in Linux.
const MOST_LINKS: usize = 40;

/// The most file names that one decision reads to expand globs.
const MOST_NAMES: usize = 4096;

const PROCESS_LINK: &str = "it uses a link in `/proc`, which is different for each process";
const TOO_MANY: &str = "it may match more files than missiond reads";

/// A directory as written, and its real path.
pub type Directory = [PathBuf; 2];

/// Properties that make the files below a directory different from what their names suggest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Odd {
    /// A name with a space or a quote, or one that could be read as an option.
    pub names: bool,
    /// A symbolic link, which may lead anywhere.
    pub links: bool,
}

pub struct Ground<'a> {
    paths: &'a dyn Paths,
    /// The answers of `paths` during this decision: the paths of one call have most of their parents in common.
    links: RefCell<HashMap<OsString, Option<PathBuf>>>,
    /// What words mean in the slot's directory: several checks look at the same word.
    places: RefCell<HashMap<String, Place>>,
    listings: Listings,
    repositories: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
    git_programs: RefCell<HashMap<PathBuf, Rc<[String]>>>,
    names_left: Cell<usize>,
    pub cwd: Directory,
    // Looked up on first use: most commands need none of them, and each costs system calls.
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
            places: RefCell::default(),
            listings: Listings::default(),
            repositories: RefCell::default(),
            git_programs: RefCell::default(),
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

    /// The protected paths and the repository's hooks, each also with its real path.
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

    /// The settings that make git run a program in the repository around a directory.
    pub fn git_programs(&self, directory: &Path) -> Rc<[String]> {
        if let Some(known) = self.git_programs.borrow().get(directory) {
            return Rc::clone(known);
        }
        let found: Rc<[String]> = self.paths.git_programs(&self.resolve(directory)).into();
        let mut all = self.git_programs.borrow_mut();
        all.insert(directory.to_owned(), Rc::clone(&found));
        found
    }

    /// Whether a directory is in the same repository as the slot's directory.
    pub fn is_of_same_repository(&self, directory: &Path) -> bool {
        let [_, cwd] = &self.cwd;
        let other = self.resolve(directory);
        other == *cwd || self.paths.repository(&other) == self.paths.repository(cwd)
    }

    /// Whether something below a directory has one of these properties, or that is unknown.
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

    /// Whether a path below a directory matches, or there are more paths than may be read.
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

    /// Whether something exists at this place. A directory that can't be listed may hold anything.
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

    /// The top directory of the repository around a directory.
    pub fn repository(&self, directory: &Path) -> Option<PathBuf> {
        let mut known = self.repositories.borrow_mut();
        let find = || self.paths.repository(&self.resolve(directory));
        known
            .entry(directory.to_owned())
            .or_insert_with(find)
            .clone()
    }

    /// Whether a place is inside the slot's directory, both as written and by its real path.
    pub fn is_inside(&self, place: &Place) -> bool {
        let holds =
            |own: &PathBuf, path: &Path| !own.as_os_str().is_empty() && path.starts_with(own);
        let mut ways = place.ways();
        ways.all(|path| self.cwd.iter().any(|own| holds(own, path)))
    }

    /// A path relative to the slot's directory, if it is inside.
    pub fn seen_from_cwd<'p>(&self, path: &'p Path) -> &'p Path {
        let mut below = self.cwd.iter().filter_map(|cwd| below(path, cwd));
        below.next().unwrap_or(path)
    }

    pub fn is_link(&self, path: &Path) -> bool {
        self.link(path).is_some()
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.links.borrow().get(path.as_os_str()) {
            return known.clone();
        }
        if self.listings.exclude(path, self.paths) {
            return None;
        }
        let target = self.paths.link(path);
        let mut links = self.links.borrow_mut();
        links.insert(path.as_os_str().to_owned(), target.clone());
        target
    }

    fn directory(&self, path: &Path) -> Directory {
        [normalise(path), self.resolve(path)]
    }

    /// `text` as a path, the way a tool or a shell in the directory `cwd` resolves it.
    pub fn place(&self, text: &str, cwd: &Path) -> Place {
        if cwd != self.cwd[0] {
            return self.place_at(&cwd.join(self.expand_home(text)));
        }
        if let Some(known) = self.places.borrow().get(text) {
            return known.clone();
        }
        let place = match is_plain_name(text) {
            true => self.place_in_cwd(text),
            false => self.place_at(&joined(cwd, self.expand_home(text))),
        };
        let mut places = self.places.borrow_mut();
        places.insert(text.to_owned(), place.clone());
        place
    }

    fn place_at(&self, absolute: &Path) -> Place {
        let (real, doubt) = self.resolve_in_doubt(absolute);
        Place {
            written: normalise(absolute),
            real,
            doubt,
        }
    }

    /// The places that a glob matches now. If there may be too many: its directory, marked as doubtful.
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

    /// The paths in these directories that match a glob. `**` also matches every directory below them, as in some shells. `None`
    /// if there are more than may be read.
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

    /// Fast path for a plain name, which is what most words of a command are: the parents need no second look.
    fn place_in_cwd(&self, name: &str) -> Place {
        let [cwd, real_cwd] = &self.cwd;
        let (written, real) = (joined(cwd, name), joined(real_cwd, name));
        let mut way = Way::default();
        let is_plain = matches!(system_link(&real), SystemLink::No) && self.link(&real).is_none();
        let real = match is_plain {
            true => real,
            false => self.follow(real_cwd.clone(), Path::new(name), &mut way),
        };
        Place {
            written,
            real,
            doubt: way.doubt,
        }
    }

    fn expand_home<'t>(&self, text: &'t str) -> Cow<'t, Path> {
        let below_home = match text.strip_prefix('~') {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        match (below_home, self.home()) {
            (Some(rest), Some([home, _])) => Cow::Owned(home.join(rest)),
            _ => Cow::Borrowed(Path::new(text)),
        }
    }

    /// The real path, with every link followed. A part that does not exist stays as written, since a tool may be about to create
    /// it.
    fn resolve(&self, path: &Path) -> PathBuf {
        self.resolve_in_doubt(path).0
    }

    /// The real path, and the reason if it is uncertain.
    fn resolve_in_doubt(&self, path: &Path) -> (PathBuf, Option<&'static str>) {
        // The real path of the working directory is known, and nearly every path of a call is below it.
        let [cwd, real_cwd] = &self.cwd;
        let mut way = Way::default();
        let real = match path.strip_prefix(cwd) {
            Ok(below) if !cwd.as_os_str().is_empty() => {
                let length = real_cwd.as_os_str().len() + 1 + below.as_os_str().len();
                let mut real = PathBuf::with_capacity(length);
                real.push(real_cwd);
                self.follow(real, below, &mut way)
            }
            _ => {
                let real = PathBuf::with_capacity(path.as_os_str().len());
                self.follow(real, path, &mut way)
            }
        };
        (real, way.doubt)
    }

    /// Resolves `path` from the real directory `real`. It calls itself for each link. The limit on links counts over the whole
    /// path; otherwise links that each name two others would double the work every time.
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

/// The state while a path is resolved.
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

/// Links that differ for each process: missiond reads another target than the command will.
enum SystemLink<'p> {
    No,
    /// It stays as written.
    Stays,
    /// `/dev/fd`.
    OwnFiles,
    /// A link such as `cwd` or `root` of a process.
    OfProcess(&'p str),
}

fn system_link(path: &Path) -> SystemLink<'_> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if !bytes.starts_with(b"/dev/") && !bytes.starts_with(b"/proc/") {
        return SystemLink::No;
    }
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
