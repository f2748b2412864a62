//! Path patterns and the directories that they are relative to.

mod lexical;
mod sharing;

use super::ground::{Directory, Ground};
use super::quick::QuickSet;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
pub use lexical::{below, joined, normalise};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A view of the file system, which the policy itself never touches.
pub trait Paths {
    /// The target of the symbolic link at this absolute path, if it is a link.
    fn link(&self, path: &Path) -> Option<PathBuf>;

    /// The names of the links in a directory; `None` if they are unknown, or if there are more than `most` names.
    fn links_in(&self, _directory: &Path, _most: usize) -> Option<Vec<OsString>> {
        None
    }

    /// The names in a directory; `None` if there are more than `most`. A directory that can't be listed has no names.
    fn names(&self, directory: &Path, most: usize) -> Option<Vec<OsString>>;

    /// The home directory, which `~` means.
    fn home(&self) -> Option<PathBuf>;

    /// The settings that make git run a program in the repository around this directory. Settings of the user or of the machine
    /// are not included.
    fn git_programs(&self, _directory: &Path) -> Vec<String> {
        Vec::new()
    }

    /// The top directory of the repository around this directory, if there is one.
    fn repository(&self, _directory: &Path) -> Option<PathBuf> {
        None
    }

    /// The hooks directories that git's settings name for the repository around this directory.
    fn hooks(&self, _directory: &Path) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Paths as written, without links. Use it to check a file's examples, which belong to no machine. Its home directory is a path
/// that nothing else can name.
#[derive(Debug, Clone, Copy, Default)]
pub struct LexicalPaths;

impl Paths for LexicalPaths {
    fn link(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn names(&self, _: &Path, _: usize) -> Option<Vec<OsString>> {
        Some(Vec::new())
    }

    fn home(&self) -> Option<PathBuf> {
        Some(PathBuf::from("/~"))
    }
}

/// A path in a tool call: as written, and its real path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub written: PathBuf,
    pub real: PathBuf,
    /// Why the real path is uncertain; `real` is the best guess then.
    pub doubt: Option<&'static str>,
}

impl Place {
    /// A place that begins with something that only the shell will know. The path can't be resolved, but the names at its end are
    /// known.
    pub fn unknown(text: &str, cwd: &Path) -> Place {
        let written = normalise(&cwd.join(text));
        Place {
            real: written.clone(),
            written,
            doubt: None,
        }
    }

    /// The paths to it: one, or two if links lead to it.
    pub fn ways(&self) -> impl Iterator<Item = &Path> {
        let real = (self.real != self.written).then_some(self.real.as_path());
        std::iter::once(self.written.as_path()).chain(real)
    }

    /// A place in this directory.
    pub fn join(&self, name: &str) -> Place {
        Place {
            written: self.written.join(name),
            real: self.real.join(name),
            doubt: self.doubt,
        }
    }

    /// Whether it is at or below a directory, both as written and by its real path.
    pub fn is_within(&self, directory: &Directory) -> bool {
        let [written, real] = directory;
        self.written.starts_with(written) && self.real.starts_with(real)
    }
}

/// The directory that a path rule is relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    Root,
    Home,
    Project(PathBuf),
    Cwd,
}

impl Base {
    /// The path relative to this directory, which may itself be reached through a link.
    fn below<'p>(&self, path: &'p Path, ground: &Ground<'_>) -> impl Iterator<Item = &'p Path> {
        let [written, real] = self.ways(ground);
        let below = |base: Option<&Path>| below(path, base?);
        [below(written), below(real)].into_iter().flatten()
    }

    fn ways<'g>(&self, ground: &'g Ground<'_>) -> [Option<&'g Path>; 2] {
        match self {
            Base::Root => [Some(Path::new("/")), None],
            Base::Home => ground.home().map_or([None, None], ways),
            Base::Project(_) => ways(ground.project()),
            Base::Cwd => ways(&ground.cwd),
        }
    }
}

fn ways(directory: &Directory) -> [Option<&Path>; 2] {
    let [written, real] = directory;
    [Some(written), (real != written).then_some(real)]
}

fn is_matched(matcher: &Gitignore, below: &Path) -> bool {
    matcher
        .matched_path_or_any_parents(below, false)
        .is_ignore()
}

/// A set of patterns: tells whether any of them may match.
#[derive(Debug, Clone, Default)]
pub struct PathSet {
    sets: Vec<Joined>,
}

/// The patterns that are relative to one directory.
#[derive(Debug, Clone)]
struct Joined {
    base: Base,
    sieve: Sieve,
    /// `None` if the patterns can't be compiled together; then any path may match.
    matcher: Option<Gitignore>,
}

impl Joined {
    fn may_match(&self, below: &Path) -> bool {
        let matches = |matcher: &Gitignore| is_matched(matcher, below);
        below.as_os_str().is_empty()
            || self.sieve.lets_through(below) && self.matcher.as_ref().is_none_or(matches)
    }
}

/// A cheap pre-filter: for most paths it tells that no pattern matches.
#[derive(Debug, Clone, Default)]
struct Sieve {
    /// The first path components that patterns with a slash match.
    first: QuickSet<OsString>,
    /// The names that patterns without a slash match, at any depth.
    anywhere: QuickSet<OsString>,
    /// There are patterns that fit neither of the two sets.
    open: bool,
}

impl Sieve {
    fn add(&mut self, glob: &str) {
        let path = glob.trim_end_matches('/');
        let is_anchored = path.contains('/');
        let first = path.trim_start_matches('/').split('/').next();
        let first = first.filter(|name| !name.is_empty() && !name.contains(['*', '?', '[', '\\']));
        match first {
            None => self.open = true,
            Some(name) if is_anchored => drop(self.first.insert(name.into())),
            Some(name) => drop(self.anywhere.insert(name.into())),
        }
    }

    fn lets_through(&self, below: &Path) -> bool {
        self.open
            || below
                .iter()
                .next()
                .is_some_and(|name| self.first.contains(name))
            || !self.anywhere.is_empty() && below.iter().any(|name| self.anywhere.contains(name))
    }

    /// Whether a pattern may match something in this directory or below it.
    fn lets_into(&self, directory: &Path) -> bool {
        self.open
            || !self.anywhere.is_empty()
            || directory
                .iter()
                .next()
                .is_none_or(|name| self.first.contains(name))
    }
}

impl PathSet {
    pub fn new<'p>(patterns: impl Iterator<Item = &'p PathPattern>) -> PathSet {
        let mut globs: Vec<(Base, Vec<&str>)> = Vec::new();
        for pattern in patterns {
            match globs.iter_mut().find(|(base, _)| *base == pattern.base) {
                Some((_, known)) => known.push(&pattern.glob),
                None => globs.push((pattern.base.clone(), vec![&pattern.glob])),
            }
        }
        let joined = globs.into_iter().map(|(base, globs)| {
            let mut sieve = Sieve::default();
            globs.iter().for_each(|glob| sieve.add(glob));
            Joined {
                base,
                sieve,
                matcher: matcher(&globs).ok(),
            }
        });
        PathSet {
            sets: joined.collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    pub fn matches(&self, path: &Path, ground: &Ground<'_>) -> bool {
        self.sets.iter().any(|set| {
            let mut below = set.base.below(path, ground);
            below.any(|below| set.may_match(below))
        })
    }

    /// Whether a file that a pattern matches may be in this directory or below it.
    pub fn may_match_below(&self, directory: &Path, ground: &Ground<'_>) -> bool {
        self.sets.iter().any(|set| {
            let mut bases = set.base.ways(ground).into_iter().flatten();
            bases.any(|base| match below(directory, base) {
                Some(below) => set.sieve.lets_into(below),
                None => base.starts_with(directory),
            })
        })
    }
}

/// The specifier of `Read(…)` and `Edit(…)`: a gitignore pattern and the directory that it is relative to.
#[derive(Debug, Clone)]
pub struct PathPattern {
    base: Base,
    glob: String,
    /// Its components up to the first wildcard: everything that it matches is there or below.
    start: PathBuf,
    matcher: Gitignore,
}

/// A pattern without a slash matches at any depth.
fn plain_start(glob: &str) -> PathBuf {
    let is_plain = |part: &&str| !part.contains(['*', '?', '[', '\\']);
    let glob = glob.trim_end_matches('/');
    match glob.contains('/') {
        true => glob
            .split('/')
            .skip_while(|part| part.is_empty())
            .take_while(is_plain)
            .collect(),
        false => PathBuf::new(),
    }
}

impl PathPattern {
    pub fn parse(text: &str, project: &Path) -> Result<PathPattern, String> {
        let (base, glob) = base_and_glob(text, project);
        if glob.split('/').any(|part| part == "..") {
            return Err(
                "`..` leads out of the directory; write the place as `//absolute/path`".to_owned(),
            );
        }
        if glob.starts_with(['!', '#']) || glob.trim_matches('/').is_empty() {
            return Err(format!(
                "`{text}` names no files; write a path or a pattern such as `src/**`"
            ));
        }
        if has_open_bracket(&glob) {
            return Err("a `[` has no `]`; write `\\[` for the character itself".to_owned());
        }
        let matcher =
            matcher(&[&glob]).map_err(|error| format!("not a gitignore pattern: {error}"))?;
        Ok(PathPattern {
            base,
            start: plain_start(&glob),
            glob,
            matcher,
        })
    }

    pub fn matches(&self, path: &Path, ground: &Ground<'_>) -> bool {
        self.base.below(path, ground).any(|below| {
            let whole_directory =
                below.as_os_str().is_empty() && self.glob.trim_start_matches('/') == "**";
            whole_directory || is_matched(&self.matcher, below)
        })
    }

    /// Whether everything that it matches is in the directory whose whole content `other` matches, such as `src/**`.
    pub fn is_within(&self, other: &PathPattern) -> bool {
        let above = other.glob.trim_start_matches('/');
        let Some(above) = above.strip_suffix("**") else {
            return false;
        };
        let is_whole = above.is_empty() || above.ends_with('/') && Path::new(above) == other.start;
        let own = self.glob.trim_matches('/');
        let is_below = self.start.starts_with(&other.start) && own.len() > above.len();
        self.base == other.base && is_whole && (above.is_empty() || is_below)
    }

    /// Whether a file that it matches may be in this directory or below it.
    pub fn may_match_below(&self, directory: &Path, ground: &Ground<'_>) -> bool {
        self.may_match_through(directory, ground, |_| true)
    }

    /// The same, if only some names in the directory count.
    pub fn may_match_through(
        &self,
        directory: &Path,
        ground: &Ground<'_>,
        is_looked_at: impl Fn(&str) -> bool,
    ) -> bool {
        let is_looked_at = |name: &OsStr| is_looked_at(&name.to_string_lossy());
        self.base.ways(ground).into_iter().flatten().any(|base| {
            match directory.strip_prefix(base) {
                Ok(below) if !self.may_pass_through(below) => false,
                Ok(below) => match self.start.strip_prefix(below) {
                    Ok(rest) => rest.iter().next().is_none_or(is_looked_at),
                    Err(_) => below.starts_with(&self.start),
                },
                Err(_) => base.starts_with(directory),
            }
        })
    }

    /// Whether it may match a directory or something below it. A pattern with a slash matches at its own depth only.
    fn may_pass_through(&self, directory: &Path) -> bool {
        let glob = self.glob.trim_end_matches('/');
        if !glob.contains('/') {
            return true;
        }
        let parts = glob.trim_start_matches('/').split('/');
        let parts = parts.take_while(|part| !part.contains("**"));
        let mut names = directory.iter().zip(parts);
        names.all(|(name, part)| may_be(part, &name.to_string_lossy()))
    }

    /// Whether every name that it matches begins with a dot.
    pub fn is_hidden(&self) -> bool {
        let glob = self.glob.trim_end_matches('/');
        let last = glob.rsplit('/').next().unwrap_or_default();
        last.starts_with('.')
    }

    /// The existing places that it matches, or their directories. `None` if it matches at any depth, which would be too many
    /// directories to list.
    pub fn existing(&self, ground: &Ground<'_>) -> Option<Vec<Place>> {
        let glob = self.glob.trim_end_matches('/');
        let is_anchored = glob.contains('/') && !glob.trim_start_matches('/').starts_with("**");
        is_anchored.then_some(())?;
        let parts = glob.trim_start_matches('/').split('/');
        let parts: Vec<&str> = parts.take_while(|part| !part.contains("**")).collect();
        let (last, way) = parts.split_last()?;
        // A plain name is searched as a glob, which matches only if the file exists.
        let last = match last.contains(['*', '?', '[']) {
            true => (*last).to_owned(),
            false => format!("{}*", last),
        };
        let way: Vec<&str> = way.iter().copied().chain([last.as_str()]).collect();
        let bases = self.base.ways(ground).into_iter().flatten();
        let found = bases.flat_map(|base| ground.matches(&way.join("/"), base));
        Some(found.collect())
    }

    /// Whether a directory is at or below the components with which the pattern begins, so that it may match right there.
    pub fn begins_above(&self, directory: &Path, ground: &Ground<'_>) -> bool {
        let mut below = self.base.below(directory, ground);
        let is_below = below.any(|below| below.starts_with(&self.start));
        is_below && self.start.components().next().is_some()
    }

    /// Whether it leaves the end of names open, as `.env.*` does.
    pub fn has_open_end(&self) -> bool {
        self.glob.trim_end_matches('/').ends_with('*')
    }

    /// Whether it matches at any depth.
    pub fn is_anywhere(&self) -> bool {
        let glob = self.glob.trim_end_matches('/');
        !glob.contains('/') || glob.trim_start_matches('/').starts_with("**/")
    }

    /// Whether it matches everything below a directory.
    pub fn reaches_below(&self) -> bool {
        self.glob.contains("**")
    }

    /// Whether it matches names in every directory, such as `*.pem`.
    pub fn is_by_name(&self) -> bool {
        let glob = self.glob.trim_end_matches('/');
        !glob.strip_prefix("**/").unwrap_or(glob).contains('/')
    }

    /// The suffix of every name that it matches, if its last component is a star and a suffix, such as `*.pem`.
    pub fn ending(&self) -> Option<&str> {
        let ending = self.glob.rsplit('/').next()?.strip_prefix('*')?;
        (!ending.is_empty() && !ending.contains(['*', '?', '[', '\\'])).then_some(ending)
    }

    /// The last component if it is a plain name, such as `.env` in `./.env`.
    pub fn literal_name(&self) -> Option<&str> {
        let name = self.glob.rsplit('/').next()?;
        (!name.is_empty() && !name.contains(['*', '?', '[', '\\'])).then_some(name)
    }

    /// The pattern for settings that belong to no directory.
    pub fn for_settings(&self, text: &str, project: &Path) -> String {
        match self.base {
            Base::Project(_) => format!("/{}{}", project.display(), self.glob),
            _ => text.to_owned(),
        }
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &PathPattern) -> bool {
        self.base == other.base && self.glob == other.glob
    }
}

fn matcher(globs: &[&str]) -> Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new("");
    for glob in globs {
        builder.add_line(None, glob)?;
    }
    builder.build()
}

/// Whether a component of a pattern may match this name: its start and its end must agree.
fn may_be(part: &str, name: &str) -> bool {
    const MARKS: [char; 5] = ['*', '?', '[', ']', '\\'];
    if !part.contains(MARKS) {
        return part == name;
    }
    let start = part.split(MARKS).next().unwrap_or_default();
    let end = part.rsplit(MARKS).next().unwrap_or_default();
    name.starts_with(start) && name.ends_with(end)
}

/// Whether a bracket is not closed. gitignore would match it as a character, which is probably not what the author meant.
fn has_open_bracket(glob: &str) -> bool {
    let plain = glob
        .replace("\\\\", "")
        .replace("\\[", "")
        .replace("\\]", "");
    plain
        .rsplit_once('[')
        .is_some_and(|(_, rest)| !rest.contains(']'))
}

fn base_and_glob(text: &str, project: &Path) -> (Base, String) {
    if let Some(absolute) = text.strip_prefix("//") {
        return (Base::Root, format!("/{absolute}"));
    }
    if let Some(below_home) = text.strip_prefix("~/") {
        return (Base::Home, format!("/{below_home}"));
    }
    if text.starts_with('/') {
        return (Base::Project(project.to_owned()), text.to_owned());
    }
    match text.strip_prefix("./") {
        Some(anchored) => (Base::Cwd, format!("/{}", anchored.trim_start_matches("./"))),
        None => (Base::Cwd, text.to_owned()),
    }
}

/// Writes `path` so that [`PathPattern::parse`] reads it as exactly that place.
pub fn exact_pattern(path: &Path) -> Option<String> {
    let mut out = String::from("/");
    for c in path.to_str()?.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | ' ') {
            out.push('\\');
        }
        out.push(c);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let pattern = PathPattern::parse(pattern, Path::new("/proj")).expect("a good pattern");
        let ground = Ground::new(
            &LexicalPaths,
            Path::new("/proj/sub"),
            Path::new("/proj"),
            &[],
        );
        pattern.matches(&normalise(Path::new(path)), &ground)
    }

    #[test]
    fn the_start_of_a_pattern_says_where_it_is_meant() {
        assert!(matches("//etc/hosts", "/etc/hosts"));
        assert!(matches("~/.ssh/**", "/~/.ssh/id"));
        assert!(matches("/src/**", "/proj/src/a"));
        assert!(!matches("/src/**", "/proj/sub/src/a"));
        assert!(matches("src/**", "/proj/sub/src/a"));
        assert!(!matches("src/**", "/proj/src/a"));
        assert!(!matches("src/**", "/proj/sub/vendor/src/a"));
        assert!(matches("*.rs", "/proj/sub/deep/a.rs"));
        assert!(matches("./.env", "/proj/sub/.env"));
        assert!(!matches("./.env", "/proj/sub/deep/.env"));
        assert!(matches(".env", "/proj/sub/deep/.env"));
        assert!(matches("**", "/proj/sub"));
    }

    #[test]
    fn what_lies_below_is_told_by_whole_names() {
        let below = |path: &str, base: &str| {
            let found = below(Path::new(path), Path::new(base));
            let slow = Path::new(path).strip_prefix(base).ok();
            assert_eq!(found, slow, "{path} below {base}");
            found.is_some()
        };
        assert!(below("/a/b/c", "/a/b"));
        assert!(below("/a/b", "/a/b"));
        assert!(below("/a", "/"));
        assert!(below("/", "/"));
        assert!(!below("/a/bc", "/a/b"));
        assert!(!below("/a", "/a/b"));
    }

    #[test]
    fn dots_are_taken_out_before_matching() {
        assert!(!matches("src/**", "/proj/sub/src/../.env"));
        assert!(matches("./.env", "/proj/sub/././x/../.env"));
    }

    #[test]
    fn an_exact_pattern_means_one_place() {
        let odd = Path::new("/proj/sub/a [b]*?.rs");
        let pattern = exact_pattern(odd).expect("it is UTF-8");
        assert!(matches(&pattern, "/proj/sub/a [b]*?.rs"));
        assert!(!matches(&pattern, "/proj/sub/a b.rs"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for bad in ["", "/", "!x", "../x", "src/../x", "src/[", "{a"] {
            assert!(
                PathPattern::parse(bad, Path::new("/proj")).is_err(),
                "{bad}"
            );
        }
    }
}
