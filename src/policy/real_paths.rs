//! The one file of the policy that looks at the machine.

use super::paths::Paths;
use std::path::{Path, PathBuf};

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
        path.read_link().ok()
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }
}
