//! What the test programs of one run could not try on this machine.

use super::processes;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// One run of `cargo test`: the process that is the parent of all its test programs. A pid is given again, so it goes
/// with the time at which the process was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub pid: i32,
    pub started: u64,
}

impl Run {
    pub fn this() -> Run {
        let parent = rustix::process::getppid().expect("a parent");
        let pid = parent.as_raw_nonzero().get();
        let started = processes::start_of(pid).expect("the start of the parent");
        Run { pid, started }
    }

    fn list(self) -> PathBuf {
        lists().join(format!("skipped-{}-{}", self.pid, self.started))
    }

    /// The run that a list is of.
    fn of(list: &Path) -> Option<Run> {
        let name = list.file_name()?.to_str()?;
        let (pid, started) = name.strip_prefix("skipped-")?.split_once('-')?;
        Some(Run {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        })
    }

    #[track_caller]
    pub fn skip(self, what: &str, in_ci: bool) {
        let said = format!("skipped: {what}");
        assert!(!in_ci, "{said}");
        eprintln!("{said}");
        self.note(what);
    }

    fn note(self, what: &str) {
        let line = what.replace('\n', " ");
        let mut list = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.list())
            .expect("the list of what was skipped");
        // In one write, since other tests write too.
        list.write_all(format!("{line}\n").as_bytes())
            .expect("the list takes a line");
    }

    /// What was skipped so far, each once, in order.
    pub fn skipped(self) -> Vec<String> {
        let text = fs::read_to_string(self.list()).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines.dedup();
        lines
    }

    pub fn forget(self) {
        // There is none where nothing was skipped.
        let _ = fs::remove_file(self.list());
    }
}

/// Removes the lists of runs that ended before their last test program, such as those of one test program alone.
pub fn forget_ended_runs() {
    let entries = fs::read_dir(lists()).expect("the directory of the lists");
    entries
        .flatten()
        .filter_map(|entry| Run::of(&entry.path()))
        .filter(|run| processes::start_of(run.pid) != Some(run.started))
        .for_each(Run::forget);
}

fn lists() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}
