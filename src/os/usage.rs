//! Resource usage of a slot's processes. The only module that names sysinfo.

use crate::os::blocking;
use crate::os::process_stat::Stat;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System};

/// More frequent requests get the same answer: a scan of all processes costs some milliseconds, and CPU use over less
/// time means little.
const FRESH: Duration = Duration::from_secs(1);

/// The unit of the children's time in the kernel: a hundredth of a second on every kernel.
const TICK: Duration = Duration::from_millis(10);

/// The usage of a program and all its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Resident bytes; shared pages count for each process.
    pub memory: u64,
    /// Percent of one processor since the last scan, or since the start of a new process.
    pub cpu: f32,
    /// CPU time of all descendants so far, including ended children: a build is mostly in processes that are gone.
    pub tools_cpu: Duration,
    pub processes: usize,
    /// Bytes that the running processes have read from the disk and written to it.
    pub read: u64,
    pub written: u64,
}

/// Scans the processes of this machine.
#[derive(Debug, Default)]
pub struct Meter {
    seen: Mutex<SeenProcess>,
}

#[derive(Debug, Default)]
struct SeenProcess {
    system: System,
    at: Option<Instant>,
    /// The times of the last two scans, in seconds since 1970; 0 if there was none.
    looked: u64,
    looked_before: u64,
}

impl Meter {
    /// The usage of each of these programs; `None` for one that is gone. It reads files of the kernel, so it runs
    /// outside the runtime's threads.
    pub async fn of(self: &Arc<Meter>, programs: Vec<u32>) -> Vec<Option<Usage>> {
        let (meter, count) = (self.clone(), programs.len());
        let look = blocking::run(move || meter.look(&programs)).await;
        look.unwrap_or_else(|_| vec![None; count])
    }

    fn look(&self, programs: &[u32]) -> Vec<Option<Usage>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.at.is_none() {
            // By default sysinfo keeps a file of each process open, up to half of this process's limit. It also raises
            // that limit, which the programs of slots would inherit.
            let own = getrlimit(Resource::Nofile);
            sysinfo::set_open_files_limit(0);
            let _ = setrlimit(Resource::Nofile, own);
        }
        if seen.at.is_none_or(|at| at.elapsed() >= FRESH) {
            let what = ProcessRefreshKind::nothing()
                .with_cpu()
                .with_memory()
                .with_disk_usage()
                .without_tasks();
            seen.system
                .refresh_processes_specifics(ProcessesToUpdate::All, true, what);
            seen.at = Some(Instant::now());
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            seen.looked_before = seen.looked;
            seen.looked = now.unwrap_or_default().as_secs();
        }
        let children = children(&seen.system);
        programs
            .iter()
            .map(|program| seen.of_tree(&children, Pid::from_u32(*program)))
            .collect()
    }
}

fn children(system: &System) -> HashMap<Pid, Vec<Pid>> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (pid, process) in system.processes() {
        if let Some(parent) = process.parent() {
            children.entry(parent).or_default().push(*pid);
        }
    }
    children
}

impl SeenProcess {
    /// Everything below the program's shim, which adopts orphans.
    fn of_tree(&self, children: &HashMap<Pid, Vec<Pid>>, program: Pid) -> Option<Usage> {
        let shim = self.system.process(program)?.parent()?;
        let mut usage = Usage::default();
        for pid in below(children, shim) {
            let Some(process) = self.system.process(pid) else {
                continue;
            };
            usage.memory += process.memory();
            usage.cpu += self.share(process);
            usage.processes += 1;
            let disk = process.disk_usage();
            usage.read += disk.total_read_bytes;
            usage.written += disk.total_written_bytes;
            if pid != program {
                usage.tools_cpu += Duration::from_millis(process.accumulated_cpu_time());
                usage.tools_cpu += waited_for(pid);
            }
        }
        Some(usage)
    }

    /// A process that is new since the last scan has no difference: its whole use so far counts.
    fn share(&self, process: &Process) -> f32 {
        if process.start_time() < self.looked_before {
            return process.cpu_usage();
        }
        let lived = process.run_time().max(1) as f32;
        process.accumulated_cpu_time() as f32 / 10.0 / lived
    }
}

/// CPU time of the children that a process has waited for; zero if the kernel does not say.
fn waited_for(pid: Pid) -> Duration {
    let Some(stat) = Stat::of(pid) else {
        return Duration::ZERO;
    };
    [Stat::CHILDREN_TIME, Stat::CHILDREN_TIME + 1]
        .into_iter()
        .filter_map(|field| stat.field(field)?.parse::<u32>().ok())
        .map(|ticks| TICK * ticks)
        .sum()
}

fn below(children: &HashMap<Pid, Vec<Pid>>, root: Pid) -> HashSet<Pid> {
    let mut found = HashSet::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        let of_pid = children.get(&pid).into_iter().flatten();
        open.extend(of_pid.filter(|child| found.insert(**child)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A shell as the shim, a shell in it as the program, and a tool below that.
    fn family(tool: &str) -> (Child, u32) {
        let program = format!("echo $$; {tool} & wait");
        let mut shim = Command::new("sh")
            .args(["-c", "sh -c \"$0\" & wait", &program])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = shim.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        (shim, line.trim().parse().unwrap())
    }

    #[test]
    fn a_tree_is_counted_whole_and_its_tools_apart() {
        let (mut shim, program) = family("sh -c 'while :; do :; done'");
        let meter = Meter::default();
        let usage = watched(&meter, program, |usage| {
            usage.tools_cpu >= Duration::from_millis(100) && usage.cpu > 0.0
        });
        assert_eq!(usage.processes, 2, "{usage:?}");
        assert!(usage.memory > 100_000, "{usage:?}");
        let first = Meter::default().look(&[program])[0].unwrap();
        assert!(first.cpu > 0.0, "also to one that has not looked before");
        kill_below(shim.id());
        shim.wait().unwrap();
        assert_eq!(meter.look(&[u32::MAX - 7]), [None]);
    }

    #[test]
    fn the_work_of_tools_that_are_gone_counts() {
        let burn = r"i=0; while [ \$i -lt 300000 ]; do i=\$((i+1)); done";
        let (mut shim, program) = family(&format!("sh -c '(sh -c \"{burn}\"); exec sleep 1000'"));
        let usage = watched(&Meter::default(), program, |usage| {
            usage.processes == 2 && usage.tools_cpu >= Duration::from_millis(100)
        });
        kill_below(shim.id());
        shim.wait().unwrap();
        assert!(usage.tools_cpu < Duration::from_secs(60), "{usage:?}");
    }

    fn watched(meter: &Meter, program: u32, is_due: impl Fn(&Usage) -> bool) -> Usage {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let usage = meter.look(&[program])[0].unwrap();
            if is_due(&usage) {
                return usage;
            }
            assert!(Instant::now() < end, "{usage:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn kill_below(root: u32) {
        let mut system = System::new();
        system.refresh_processes(ProcessesToUpdate::All, true);
        for pid in below(&children(&system), Pid::from_u32(root)) {
            system.process(pid).map(sysinfo::Process::kill);
        }
    }
}
