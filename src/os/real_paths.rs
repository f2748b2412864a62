//! The real file system, as the policy sees it. Only this file of the policy reads the machine.

use crate::core::policy::Paths;
use crate::core::policy::git_hooks::{Setting, settings};
use rustix::fs::{CWD, readlinkat_raw};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The bytes of a link's target that are read at the first try.
const SHORT_TARGET: usize = 256;

/// The maximum of git config files read for one decision, and the maximum bytes of each: more than any user has.
const MOST_CONFIGS: usize = 32;
const LONGEST_CONFIG: u64 = 1 << 20;

/// Resolves paths on this machine.
#[derive(Debug, Clone)]
pub struct RealPaths {
    home: Option<PathBuf>,
}

impl RealPaths {
    /// `home` is the directory that `~` means in the slot.
    pub fn new(home: Option<PathBuf>) -> RealPaths {
        RealPaths { home }
    }

    /// The files with git's settings for all repositories.
    fn git_configs(&self) -> Vec<PathBuf> {
        let in_home = |name: &str| self.home.as_ref().map(|home| home.join(name));
        let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let xdg = xdg.or_else(|| in_home(".config"));
        let own = xdg.map(|xdg| xdg.join("git/config"));
        let system = Some(PathBuf::from("/etc/gitconfig"));
        let all = [system, own, in_home(".gitconfig")];
        all.into_iter().flatten().collect()
    }

    /// The settings in these files, and in the files that they include.
    fn settings_in(&self, files: impl Iterator<Item = PathBuf>) -> Vec<Setting> {
        let mut files: VecDeque<PathBuf> = files.collect();
        let mut found = Vec::new();
        for _ in 0..MOST_CONFIGS {
            let Some(file) = files.pop_front() else { break };
            for setting in read_short(&file).map_or_else(Vec::new, |text| settings(&text)) {
                match setting {
                    Setting::Include(path) => {
                        files.push_back(file.with_file_name("").join(self.expand_home(&path)));
                    }
                    setting => found.push(setting),
                }
            }
        }
        found
    }

    fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(path),
        }
    }
}

/// A repository, and the top of its work tree.
struct Repository<'a> {
    top: &'a Path,
    configs: [PathBuf; 2],
}

impl Repository<'_> {
    /// The nearest repository, as git finds it: one with a work tree, or a bare one.
    fn around(directory: &Path) -> Option<Repository<'_>> {
        let has = |directory: &Path, name: &str| directory.join(name).exists();
        let is_bare = |it: &Path| ["HEAD", "objects", "refs"].iter().all(|name| has(it, name));
        let is_top = |above: &&Path| has(above, ".git") || is_bare(above);
        let top = directory.ancestors().find(is_top)?;
        let own = match has(top, ".git") {
            true => top.join(".git"),
            false => top.to_owned(),
        };
        // A worktree has a file instead, which names its git directory; a file in that directory names the common one.
        let own = match read_short(&own) {
            Some(text) => top.join(text.strip_prefix("gitdir:")?.trim()),
            None => own,
        };
        let common = read_short(&own.join("commondir"));
        let common = common.map_or_else(|| own.clone(), |text| own.join(text.trim()));
        let configs = [common.join("config"), own.join("config.worktree")];
        Some(Repository { top, configs })
    }
}

/// The text of a regular file. Other kinds are skipped, because reading a pipe would block.
fn read_short(file: &Path) -> Option<String> {
    fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    let file = File::open(file).ok()?;
    file.take(LONGEST_CONFIG).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

impl Paths for RealPaths {
    fn link(&self, path: &Path) -> Option<PathBuf> {
        // Nearly all paths are not links, so this check allocates nothing.
        let mut start = [MaybeUninit::uninit(); SHORT_TARGET];
        let (target, _) = readlinkat_raw(CWD, path, &mut start[..]).ok()?;
        match target.len() < SHORT_TARGET {
            true => Some(PathBuf::from(OsStr::from_bytes(target))),
            false => path.read_link().ok(),
        }
    }

    fn links_in(&self, directory: &Path, most: usize) -> Option<Vec<OsString>> {
        let mut links = Vec::new();
        for (count, entry) in directory.read_dir().ok()?.enumerate() {
            let entry = entry.ok()?;
            if count == most {
                return None;
            }
            if entry.file_type().ok()?.is_symlink() {
                links.push(entry.file_name());
            }
        }
        Some(links)
    }

    fn names(&self, directory: &Path, most: usize) -> Option<Vec<OsString>> {
        let Ok(entries) = directory.read_dir() else {
            return Some(Vec::new());
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let names: Vec<OsString> = names.take(most + 1).collect();
        (names.len() <= most).then_some(names)
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }

    fn git_programs(&self, directory: &Path) -> Vec<String> {
        let repository = Repository::around(directory);
        let own = repository.into_iter().flat_map(|found| found.configs);
        let programs = |setting| match setting {
            Setting::Program(name) => Some(name),
            _ => None,
        };
        let settings = self.settings_in(own).into_iter();
        settings.filter_map(programs).collect()
    }

    fn repository(&self, directory: &Path) -> Option<PathBuf> {
        Repository::around(directory).map(|found| found.top.to_owned())
    }

    /// Every hooks directory that any of the settings names; it does not matter which of them is in force.
    fn hooks(&self, directory: &Path) -> Vec<PathBuf> {
        let repository = Repository::around(directory);
        let top = repository.as_ref().map_or(directory, |found| found.top);
        let own = repository.iter().flat_map(|found| found.configs.clone());
        let files = self.git_configs().into_iter().chain(own);
        let hooks = |setting| match setting {
            Setting::HooksPath(path) => Some(top.join(self.expand_home(&path))),
            _ => None,
        };
        let settings = self.settings_in(files).into_iter();
        settings.filter_map(hooks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(at: &Path, words: &[&str]) -> String {
        let mut git = std::process::Command::new("git");
        let done = git.current_dir(at).args(words).output().expect("git");
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).expect("text")
    }

    /// Git itself says where its hooks are: in a repository, below its top, in a worktree, and by an included file.
    #[test]
    fn hooks_are_found_where_git_looks_for_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let repository = directory.path().join("repository");
        let below = repository.join("a/b");
        fs::create_dir_all(&below).expect("a directory");
        git(&repository, &["init", "-q"]);
        let paths = RealPaths::new(None);
        // The machine's own settings come first.
        let before = paths.hooks(&below).len();

        git(&repository, &["config", "core.hooksPath", "tools/my hooks"]);
        let is_where_git_looks = |at: &Path| {
            let told = git(at, &["rev-parse", "--git-path", "hooks"]);
            let told = at
                .join(told.trim_end())
                .canonicalize()
                .expect("it is there");
            let found = paths.hooks(at);
            assert_eq!(found.len(), before + 1, "{found:?}");
            let found = found[before].canonicalize().expect("it is there");
            assert_eq!(found, told);
        };
        fs::create_dir_all(repository.join("tools/my hooks")).expect("a directory");
        is_where_git_looks(&repository);
        is_where_git_looks(&below);

        let identity = ["-c", "user.name=a", "-c", "user.email=a"];
        let commit = ["commit", "-q", "--allow-empty", "-m", "one"];
        git(&repository, &[&identity[..], &commit].concat());
        git(&repository, &["worktree", "add", "-q", "../tree"]);
        let tree = directory.path().join("tree");
        fs::create_dir_all(tree.join("tools/my hooks")).expect("a directory");
        is_where_git_looks(&tree);

        git(&repository, &["config", "--unset", "core.hooksPath"]);
        git(&repository, &["config", "include.path", "more"]);
        let more = "[core]\nhooksPath = included\n";
        fs::write(repository.join(".git/more"), more).expect("a file");
        fs::create_dir(repository.join("included")).expect("a directory");
        is_where_git_looks(&repository);
    }

    #[test]
    fn what_a_link_says_is_read_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("link");
        let paths = RealPaths::new(None);
        assert_eq!(paths.link(&link), None);
        for length in [1, SHORT_TARGET - 1, SHORT_TARGET, SHORT_TARGET + 1, 4000] {
            let target = PathBuf::from("x".repeat(length));
            std::os::unix::fs::symlink(&target, &link).expect("a link");
            assert_eq!(paths.link(&link), Some(target));
            std::fs::remove_file(&link).expect("it is ours");
        }
        std::fs::write(&link, "no link").expect("a file");
        assert_eq!(paths.link(&link), None);
    }

    #[test]
    fn the_links_of_a_directory_are_all_its_links() {
        let directory = tempfile::tempdir().expect("a directory");
        let paths = RealPaths::new(None);
        assert_eq!(paths.links_in(directory.path(), 8), Some(Vec::new()));
        for name in ["b", "a"] {
            let link = directory.path().join(name);
            std::os::unix::fs::symlink("x", link).expect("a link");
            std::fs::write(directory.path().join(format!("{name}.txt")), "").expect("a file");
        }
        let mut links = paths.links_in(directory.path(), 4).expect("four names");
        links.sort();
        assert_eq!(links, ["a", "b"]);
        assert_eq!(paths.links_in(directory.path(), 3), None, "too many names");
        // Nothing is known of a directory that can't be read.
        assert_eq!(paths.links_in(&directory.path().join("none"), 8), None);
    }
}
