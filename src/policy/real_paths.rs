//! The one file of the policy that looks at the machine.

use super::paths::{Paths, normalise};
use std::path::{Path, PathBuf};

/// Where paths lead on this machine.
#[derive(Debug, Clone)]
pub struct RealPaths {
    home: Option<PathBuf>,
}

/// How many links may lead from one to the next; as many as Linux itself follows.
const MOST_LINKS: usize = 40;

impl RealPaths {
    /// `home` is what `~` stands for in the slot.
    pub fn new(home: Option<PathBuf>) -> RealPaths {
        RealPaths { home }
    }
}

impl Paths for RealPaths {
    fn resolve(&self, path: &Path) -> PathBuf {
        resolve(path, MOST_LINKS)
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }
}

/// A file that is about to be created has no real path of its own yet: what exists of the way to it counts,
/// and a dangling link counts as where it points.
fn resolve(path: &Path, links_left: usize) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.components().next_back()) else {
        return normalise(path);
    };
    if links_left > 0
        && let Ok(target) = path.read_link()
    {
        return resolve(&parent.join(target), links_left - 1);
    }
    normalise(&resolve(parent, links_left).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_also_where_the_target_is_missing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("it exists");
        std::fs::create_dir(root.join("real")).expect("a new directory");
        symlink("real", root.join("link")).expect("a new link");
        symlink("real/none/x", root.join("dangling")).expect("a new link");
        symlink("loop", root.join("loop")).expect("a new link");
        let paths = RealPaths::new(None);
        assert_eq!(
            paths.resolve(&root.join("link/new/file")),
            root.join("real/new/file")
        );
        assert_eq!(
            paths.resolve(&root.join("dangling")),
            root.join("real/none/x")
        );
        assert_eq!(paths.resolve(&root.join("link/../a")), root.join("a"));
        assert!(paths.resolve(&root.join("loop")).starts_with(&root));
    }
}
