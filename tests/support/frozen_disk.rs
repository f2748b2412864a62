//! A disk that does not answer: nobody can write to it while it is frozen, and reading goes on.

use super::{is_root, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file system of its own in the place of a directory. It needs the right to mount, and a free loop device.
pub struct FrozenDisk {
    place: PathBuf,
    is_frozen: bool,
}

impl FrozenDisk {
    /// `None`, with a word about it, if this machine can't do it. The image lies beside the directory.
    #[track_caller]
    pub fn mount(place: &Path) -> Option<FrozenDisk> {
        if !is_root("a disk that does not answer") {
            return None;
        }
        let image = place.with_extension("img");
        std::fs::create_dir_all(place).expect("a directory");
        let file = std::fs::File::create(&image).expect("a file");
        file.set_len(16 << 20).expect("its size");
        let made = run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        let mounted = made.and_then(|()| {
            let mut mount = Command::new("mount");
            run(mount.args(["-o", "loop"]).arg(&image).arg(place))
        });
        if let Err(why) = mounted {
            skip(&format!("a disk that does not answer ({why})"));
            return None;
        }
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(place, private).expect("it is ours");
        Some(FrozenDisk {
            place: place.to_owned(),
            is_frozen: false,
        })
    }

    pub fn freeze(&mut self) {
        self.control("-f");
        self.is_frozen = true;
    }

    pub fn thaw(&mut self) {
        self.control("-u");
        self.is_frozen = false;
    }

    #[track_caller]
    fn control(&self, what: &str) {
        let done = run(Command::new("fsfreeze").arg(what).arg(&self.place));
        done.expect("fsfreeze works on a disk that was mounted");
    }
}

impl Drop for FrozenDisk {
    /// Whoever waits goes on, also after a failed test.
    fn drop(&mut self) {
        if self.is_frozen {
            let _ = run(Command::new("fsfreeze").arg("-u").arg(&self.place));
        }
        let _ = run(Command::new("umount").arg("-l").arg(&self.place));
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let Output { status, stderr, .. } = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&stderr).trim().to_owned();
    status.success().then_some(()).ok_or(said)
}
