//! The one file of the policy that looks at the machine.

use super::paths::Paths;
use rustix::fs::{CWD, readlinkat_raw};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// As much of a link's target as is read at the first try.
const SHORT_TARGET: usize = 256;

/// Where paths lead on this machine.
#[derive(Debug, Clone)]
pub struct RealPaths {
    home: Option<PathBuf>,
}

impl RealPaths {
    /// `home` is what `~` stands for in the slot.
    pub fn new(home: Option<PathBuf>) -> RealPaths {
        RealPaths { home }
    }
}

impl Paths for RealPaths {
    fn link(&self, path: &Path) -> Option<PathBuf> {
        // Nearly all are no links: nothing is allocated to learn that.
        let mut start = [MaybeUninit::uninit(); SHORT_TARGET];
        let (target, _) = readlinkat_raw(CWD, path, &mut start[..]).ok()?;
        match target.len() < SHORT_TARGET {
            true => Some(PathBuf::from(OsStr::from_bytes(target))),
            false => path.read_link().ok(),
        }
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
