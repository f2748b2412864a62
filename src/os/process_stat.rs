//! A snapshot of a process in the kernel's table.

use std::fmt::Display;
use std::str::FromStr;

/// The numbers of all processes.
pub fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The kernel's data about a process, all from the same moment.
#[derive(Debug)]
pub struct Stat {
    pub name: String,
    behind_name: String,
}

impl Stat {
    /// The state: `S` means that it waits.
    pub const STATE: usize = 0;
    pub const PARENT: usize = 1;
    pub const GROUP: usize = 2;
    pub const SESSION: usize = 3;
    /// The process group that gets the keys of its terminal.
    pub const FOREGROUND: usize = 5;
    /// Ticks of the children that it has waited for, in user mode; the next field has those in kernel mode.
    pub const CHILDREN_TIME: usize = 13;
    /// The start time, in ticks since boot.
    pub const START: usize = 19;
    /// The bytes of its address space.
    const SIZE: usize = 20;

    /// The data of a process; `None` if it does not exist.
    pub fn of(pid: impl Display) -> Option<Stat> {
        Stat::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses the line of /proc/PID/stat. The name, in brackets, may contain anything: brackets, spaces, newlines, and
    /// bytes that are not text.
    pub fn parse(line: &[u8]) -> Option<Stat> {
        let text = String::from_utf8_lossy(line);
        let (head, behind_name) = text.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        Some(Stat {
            name: name.to_owned(),
            behind_name: behind_name.to_owned(),
        })
    }

    /// Tells whether the process has ended, or is about to: it has returned its memory and runs no more code. Its entry
    /// stays until its parent has waited for it.
    pub fn has_ended(&self) -> bool {
        matches!(self.field(Self::STATE), Some("Z" | "X")) || self.field(Self::SIZE) == Some("0")
    }

    /// Tells whether a signal or a debugger has stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.field(Self::STATE), Some("T" | "t"))
    }

    /// The foreground group of its terminal, if that is not its own group: then a shell waits for that group.
    pub fn foreground_group(&self) -> Option<u32> {
        let group: u32 = self.field(Self::FOREGROUND)?.parse().ok()?;
        let own = self.field(Self::GROUP)?.parse().ok();
        (group > 0 && Some(group) != own).then_some(group)
    }

    /// The name of the process that leads the foreground group.
    pub fn in_foreground(&self) -> Option<String> {
        let group = self.foreground_group()?;
        // The first process of a pipeline may end before the others.
        Some(Stat::of(group).map_or_else(|| "a command".to_owned(), |first| first.name))
    }

    /// A field after the name, by its index.
    pub fn field(&self, which: usize) -> Option<&str> {
        self.behind_name.split_whitespace().nth(which)
    }

    /// A field after the name, as a number.
    pub fn number<T: FromStr>(&self, which: usize) -> Option<T> {
        self.field(which)?.parse().ok()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        let own = Stat::of(std::process::id()).expect("it runs");
        assert!(!own.has_ended());
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat");
        let look = || Stat::of(child.id()).expect("nobody has waited for it");
        assert!(!look().has_ended());
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
        let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), ended).expect("it ends");
        assert_eq!(look().field(Stat::STATE), Some("Z"));
        assert!(look().has_ended());
        child.wait().expect("it has ended");
    }

    #[test]
    fn a_process_finds_itself_under_any_name() {
        let before = std::fs::read_to_string("/proc/thread-self/comm").expect("a name");
        let odd = "a) S (b";
        std::fs::write("/proc/thread-self/comm", odd).expect("it is ours");
        let stat = Stat::of("thread-self").expect("it runs");
        std::fs::write("/proc/thread-self/comm", before.trim()).expect("it is ours");
        assert_eq!(stat.name, odd);
        assert_eq!(stat.field(Stat::STATE), Some("R"));
        let group = rustix::process::getpgrp().as_raw_nonzero().to_string();
        assert_eq!(stat.field(Stat::GROUP), Some(group.as_str()));
        assert!(Stat::of(0).is_none());
    }
}
