//! Which file system a process waits for. The kernel gives a thread that waits for one no way to give up, and tells others what
//! the thread has asked for.

use super::process_stat::Stat;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The longest path that the kernel takes.
const MAX_PATH: usize = 4096;

/// The arguments of a system call.
const ARGUMENTS: usize = 6;

/// A wait of one thread for a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskWait {
    pid: u32,
    thread: u32,
    /// How often the thread has waited for anything. While it is the same, this wait goes on.
    number: u64,
}

impl DiskWait {
    /// The wait of the first thread of this process, if it waits for a disk.
    pub fn own() -> Option<DiskWait> {
        let pid = std::process::id();
        DiskWait::of(pid, pid)
    }

    /// The waits of all threads of a process.
    pub fn all(pid: u32) -> Vec<DiskWait> {
        let threads = fs::read_dir(format!("/proc/{pid}/task"));
        let names = threads.into_iter().flatten().flatten();
        let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers
            .filter_map(|thread| DiskWait::of(pid, thread))
            .collect()
    }

    fn of(pid: u32, thread: u32) -> Option<DiskWait> {
        let task = format!("{pid}/task/{thread}");
        let stat = Stat::of(&task)?;
        if stat.field(Stat::STATE) != Some("D") {
            return None;
        }
        let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
        let mut lines = status.lines();
        let number = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        let number = number.trim().parse().ok()?;
        Some(DiskWait {
            pid,
            thread,
            number,
        })
    }

    /// The file that it waits for, if the kernel tells.
    pub fn path(&self) -> Option<PathBuf> {
        let DiskWait { pid, thread, .. } = self;
        let call = fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")).ok()?;
        let arguments = call.split_whitespace().skip(1).take(ARGUMENTS);
        let arguments = arguments.filter_map(|word| {
            let word = word.strip_prefix("0x")?;
            u64::from_str_radix(word, 16).ok()
        });
        let arguments: Vec<u64> = arguments.collect();
        let memory = File::open(format!("/proc/{pid}/mem")).ok();
        // A path, or the address of a socket, which has its kind before the path.
        let named = memory.and_then(|memory| {
            let mut places = arguments
                .iter()
                .flat_map(|place| [*place, place.wrapping_add(2)]);
            places.find_map(|place| path_at(&memory, place))
        });
        let opened = || {
            let open = format!("/proc/{pid}/task/{thread}/fd/{}", arguments.first()?);
            fs::read_link(open).ok().filter(|path| path.is_absolute())
        };
        named.or_else(opened)
    }
}

/// The absolute path that is written at this place in a process's memory.
fn path_at(memory: &File, place: u64) -> Option<PathBuf> {
    let mut bytes = [0; MAX_PATH];
    let count = memory.read_at(&mut bytes, place).ok()?;
    let end = bytes[..count].iter().position(|byte| *byte == 0)?;
    let path = &bytes[..end];
    let is_path = path.starts_with(b"/") && !path.iter().any(u8::is_ascii_control);
    is_path.then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}
