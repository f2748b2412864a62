//! Whether there are memory and file descriptors for one more program. A process that runs out of memory in the middle
//! of its work ends, and the daemon has other slots to supervise, so it checks first.

use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// The memory of a program besides its terminal and its output: its shim, a thread, a small program.
const APART: u64 = 16 << 20;

/// Lines of a terminal's scrollback, and bytes of a cell, both at their maximum.
const SCROLLBACK: u64 = 1000;
const CELL: u64 = 24;

/// The maximum memory that a program may need in the daemon, with a terminal of this size and this much kept output. A
/// growing buffer is copied into one of twice the size.
pub fn need(cols: u16, rows: u16, buffer: u64) -> u64 {
    let lines = SCROLLBACK + 2 * u64::from(rows);
    APART + lines * u64::from(cols) * CELL + buffer.saturating_mul(2)
}

/// A lack of memory or file descriptors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Shortage {
    text: String,
    pub next: &'static str,
}

/// File descriptors that the daemon opens for one more program, and some that it needs for a moment.
const FILES: usize = 8;

/// Checks whether there are file descriptors for one more program, in addition to the reserve for control.
pub fn check_files() -> Result<(), Shortage> {
    let opened: std::io::Result<Vec<std::fs::File>> = (0..FILES)
        .map(|_| std::fs::File::open("/dev/null"))
        .collect();
    opened.map(drop).map_err(|error| Shortage {
        text: format!("not enough file descriptors: {error}"),
        next: MORE_FILES,
    })
}

/// Checks whether file descriptors run out. The reserve for control counts as available: if fewer are left than the
/// reserve and some for clients, they run out.
pub fn check_files_left() -> Result<(), Shortage> {
    const FEW: u64 = 12;
    let open = std::fs::read_dir("/proc/self/fd").map(|open| open.count() as u64);
    let left = match (getrlimit(Resource::Nofile).current, open) {
        (Some(most), Ok(open)) => most.saturating_sub(open),
        (None, Ok(_)) => return Ok(()),
        (_, Err(_)) => 0,
    };
    match left < FEW {
        true => Err(Shortage {
            text: format!("file descriptors run out: {left} are left"),
            next: MORE_FILES,
        }),
        false => Ok(()),
    }
}

/// What to do if file descriptors run out.
pub const MORE_FILES: &str = "raise the limit (ulimit -n, LimitNOFILE= in a unit), or close something: missiond session list";

/// A bound on memory, and the distance to it.
struct Bound {
    left: u64,
    place: &'static str,
    next: &'static str,
}

/// Checks that this much memory is left below each bound. A bound that can't be read is ignored: then the system itself
/// decides.
pub fn check(needed: u64) -> Result<(), Shortage> {
    let bounds = [address_space(), data(), group(), machine(), promised()];
    judge(needed, bounds.into_iter().flatten())
}

fn judge(needed: u64, bounds: impl Iterator<Item = Bound>) -> Result<(), Shortage> {
    let tightest = bounds.min_by_key(|bound| bound.left);
    let Some(bound) = tightest.filter(|bound| bound.left < needed) else {
        return Ok(());
    };
    let Bound { left, place, next } = bound;
    let (left, needed) = (left >> 20, needed.div_ceil(1 << 20));
    let text =
        format!("not enough memory: {left} MB are left {place}, and {needed} MB may be needed");
    Err(Shortage { text, next })
}

fn address_space() -> Option<Bound> {
    Some(Bound {
        left: below(Resource::As, "VmSize:")?,
        place: "below the limit on the daemon's address space",
        next: "raise it (ulimit -v, LimitAS= in a unit), or close something: missiond session list",
    })
}

fn data() -> Option<Bound> {
    Some(Bound {
        left: below(Resource::Data, "VmData:")?,
        place: "below the limit on the daemon's data",
        next: "raise it (ulimit -d, LimitDATA= in a unit), or close something: missiond session list",
    })
}

/// The distance of this process to one of its limits.
fn below(limit: Resource, used: &str) -> Option<u64> {
    let limit = getrlimit(limit).current?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(limit.saturating_sub(field(&status, used)? << 10))
}

fn machine() -> Option<Bound> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let swap = field(&memory, "SwapFree:").unwrap_or(0);
    Some(Bound {
        left: (field(&memory, "MemAvailable:")? + swap) << 10,
        place: "on this machine",
        next: "close something: missiond session list, missiond status",
    })
}

/// The overcommit limit, if the machine has one.
fn promised() -> Option<Bound> {
    const STRICT: &str = "2";
    let policy = std::fs::read_to_string("/proc/sys/vm/overcommit_memory").ok()?;
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let (limit, used) = ("CommitLimit:", "Committed_AS:");
    let left = field(&memory, limit)?.saturating_sub(field(&memory, used)?);
    (policy.trim() == STRICT).then_some(Bound {
        left: left << 10,
        place: "of what this machine promises (vm.overcommit_memory)",
        next: "close something: missiond session list, missiond status",
    })
}

/// The daemon's control group and its parents: the tightest limit counts.
fn group() -> Option<Bound> {
    let root = Path::new("/sys/fs/cgroup");
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = root.join(own);
    let above = own.ancestors().take_while(|path| path.starts_with(root));
    Some(Bound {
        left: above.filter_map(left_in_group).min()?,
        place: "below the limit of the daemon's control group",
        next: "raise it (memory.max, MemoryMax= in a unit), or close something: missiond session list",
    })
}

/// The memory left in a control group. The page cache counts as free, because it can be freed when memory is needed.
fn left_in_group(group: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    let stat = read("memory.stat")?;
    let kept = ["active_file", "inactive_file"].map(|name| field(&stat, name).unwrap_or(0));
    let files: u64 = kept.iter().sum();
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

/// The number after a name, in files with a name and a number on each line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Why a process or a thread was not created: the kernel says "try again" if the user or the container has reached its
/// limit.
pub fn why_not_made(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            "the system allows no more processes (see `ulimit -u`, and the limit of the container or service)".to_owned()
        }
        _ => error.to_string(),
    }
}

/// A disk with less room than this is full: an entry of the audit and some output of a slot need as much.
const LEAST_ROOM: u64 = 64 << 10;

/// Tells whether a disk is full. A missing directory is a different problem, and not full.
pub fn is_disk_full(directory: &std::path::Path) -> bool {
    rustix::fs::statvfs(directory).is_ok_and(|disk| {
        let no_files = disk.f_files > 0 && disk.f_favail == 0;
        let room = disk.f_bavail.saturating_mul(disk.f_frsize);
        no_files || room < LEAST_ROOM
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_bound_is_named() {
        let bound = |mb: u64, place| Bound {
            left: mb << 20,
            place,
            next: "",
        };
        let bounds = || [bound(100, "there"), bound(7, "here")].into_iter();
        assert_eq!(judge(7 << 20, bounds()), Ok(()));
        let shortage = judge((7 << 20) + 1, bounds()).unwrap_err();
        assert_eq!(
            shortage.to_string(),
            "not enough memory: 7 MB are left here, and 8 MB may be needed"
        );
    }

    #[test]
    fn numbers_are_found_by_their_whole_names() {
        let text = "MemTotal:  24105 kB\nSwapFree:      3 kB\ninactive_file 4096\n";
        assert_eq!(field(text, "SwapFree:"), Some(3));
        assert_eq!(field(text, "inactive_file"), Some(4096));
        assert_eq!(field(text, "MemAvailable:"), None);
    }

    #[test]
    fn a_group_counts_what_it_can_not_give_back() {
        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(group.path().join(name), text).unwrap();
        assert_eq!(left_in_group(group.path()), None);
        write("memory.max", "1000\n");
        write("memory.current", "900\n");
        write(
            "memory.stat",
            "anon 500\nactive_file 100\ninactive_file 200\n",
        );
        assert_eq!(left_in_group(group.path()), Some(400));
        write("memory.max", "max\n");
        assert_eq!(left_in_group(group.path()), None);
    }

    #[test]
    fn an_ordinary_machine_has_room_for_one_and_none_for_a_million() {
        assert_eq!(check(need(120, 40, 1 << 20)), Ok(()));
        assert!(check(u64::MAX).is_err());
    }
}
