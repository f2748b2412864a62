//! A control group for each slot, if the daemon's own group is delegated to it: the kernel then knows which processes
//! belong to the slot, whatever happens to parents and environments, and can end all of them at once.
//!
//! The groups are `missiond-ID/SLOT` below the daemon's group; ID identifies the daemon's socket. A shim enters the
//! group before it starts its program, and removes the group at its end.

use crate::core::text::hex;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file in which a group lists its processes, and accepts new ones.
const PROCESSES: &str = "cgroup.procs";

/// The attribute by which systemd marks a group as delegated (`Delegate=yes`).
const DELEGATED: &str = "user.delegate";

/// The name of the groups of a daemon's slots.
pub fn mark(socket: &Path) -> String {
    let digest = Sha256::digest(socket.as_os_str().as_encoded_bytes());
    format!("missiond-{}", hex::encode(&digest[..8]))
}

/// The path of a slot's group; `None` if the daemon's own group is not delegated.
pub fn place(socket: &Path, slot: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read("/proc/self/cgroup").ok()?;
    let own = directory(&mounts, path_in(&groups)?)?;
    let mut mark_of_it = [0; 8];
    let length = rustix::fs::getxattr(&own, DELEGATED, &mut mark_of_it[..]).ok()?;
    (mark_of_it[..length] == *b"1").then(|| own.join(mark(socket)).join(slot))
}

/// Moves this process into a group, which is created if it is missing. Processes that it starts later are in it too.
pub fn enter(group: &Path) -> io::Result<()> {
    fs::create_dir_all(group)?;
    fs::write(group.join(PROCESSES), "0")
}

/// Moves this process back into the daemon's group, and removes the slot's.
pub fn leave(group: &Path) {
    let above = group.parent().and_then(Path::parent);
    if above.is_some_and(|above| fs::write(above.join(PROCESSES), "0").is_ok()) {
        remove(group);
    }
}

/// Removes the group if it is empty. The kernel does not remove a group with processes in it, nor a daemon's group with
/// slots in it.
pub fn remove(group: &Path) {
    let _ = fs::remove_dir(group);
    let _ = group.parent().map(fs::remove_dir);
}

/// The processes in a group.
pub fn members(group: &Path) -> Vec<i32> {
    let listed = fs::read_to_string(group.join(PROCESSES)).unwrap_or_default();
    listed
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect()
}

/// Kills all processes in a group and below it at once, also new forks.
pub fn kill(group: &Path) {
    // A group that is gone has no processes.
    let _ = fs::write(group.join("cgroup.kill"), "1");
}

/// The slot of a process according to /proc/PID/cgroup; `mark` is the daemon's.
pub fn slot_in(groups: &[u8], mark: &str) -> Option<String> {
    let mut parts = path_in(groups)?.split('/');
    parts.find(|part| *part == mark)?;
    parts.next().map(str::to_owned)
}

/// The path in the unified hierarchy, which has number 0 and no controllers in its line.
fn path_in(groups: &[u8]) -> Option<&str> {
    let line = groups
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"))?;
    std::str::from_utf8(line).ok()
}

/// The directory of that path in the file system.
fn directory(mounts: &str, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then_some(())?;
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(at).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "25 1 0:22 / /proc rw - proc proc rw\n\
                          30 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                          31 1 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_group_of_a_daemon_is_found_in_the_file_system() {
        let at =
            |mounts: &str, path| directory(mounts, path).map(|found| found.display().to_string());
        let unit = "/user.slice/user@1000.service/app.slice/missiond.service";
        assert_eq!(at(MOUNTS, unit), Some(format!("/sys/fs/cgroup{unit}")));
        // A container sees a part of the hierarchy as its root.
        let part = MOUNTS.replace("0:27 /", "0:27 /docker/abc");
        assert_eq!(
            at(&part, "/docker/abc/m"),
            Some("/sys/fs/cgroup/m".to_owned())
        );
        assert_eq!(at(&part, "/elsewhere"), None);
        assert_eq!(at("", unit), None);
    }

    #[test]
    fn a_slot_is_known_by_its_group_at_any_depth() {
        let mark = mark(Path::new("/run/a.sock"));
        let other = super::mark(Path::new("/run/b.sock"));
        let of = |path: &str| slot_in(format!("4:memory:/x\n0::{path}\n").as_bytes(), &mark);
        let coder = Some("coder".to_owned());
        assert_eq!(of(&format!("/unit/{mark}/coder")), coder);
        assert_eq!(of(&format!("/{mark}/coder/of-its-own/deeper")), coder);
        for outside in [
            format!("/unit/{other}/coder"),
            format!("/unit/{mark}"),
            "/".to_owned(),
        ] {
            assert_eq!(of(&outside), None, "{outside}");
        }
        assert_eq!(slot_in(b"", &mark), None);
    }
}
