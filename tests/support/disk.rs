//! A disk that can be filled.

use super::skip;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A disk of a little room in the place of a directory, which needs the right to mount.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `size` as `mount` takes it, such as `128k`.
    pub fn mount(at: &Path, size: &str) -> Option<SmallDisk> {
        let options = format!("size={size},mode=0700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(at)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk(at.to_owned()));
        }
        skip("a full disk is not tried, since none can be mounted (needs root)");
        None
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes all that is left, also what was given back since.
    pub fn fill(&self) {
        let mut options = File::options();
        let filler = options.append(true).create(true).open(self.filler());
        let mut filler = filler.expect("a file");
        while filler.write_all(&[0; 512]).is_ok() {}
    }

    pub fn free(&self) {
        std::fs::remove_file(self.filler()).expect("it was filled");
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
