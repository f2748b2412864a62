//! A shim to drive, and ways to look at what it did.

use missiond::core::cast::Recording;
pub use missiond::core::model::ExitReport;
pub use missiond::shim::{FromShim, Hello, LaunchError, LinkError, ShimLink, ShimSpec, ToShim};
pub use std::path::{Path, PathBuf};
pub use std::time::Duration;
use tempfile::TempDir;

/// A fact that takes longer than this to come true never will.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Stage {
    pub dir: TempDir,
    pub recording: PathBuf,
}

/// A connected shim with everything it has said so far.
pub struct Driven {
    pub link: ShimLink,
    pub hello: Hello,
    /// Piece by piece as text, and byte for byte.
    pub output: String,
    pub exact: Vec<u8>,
    pub heard: Vec<FromShim>,
}

impl Stage {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir()
            .expect("a temporary directory");
        crate::support::reaper::guard(dir.path());
        let recording = dir.path().join("test.cast");
        Self { dir, recording }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn spec(&self, argv: &[&str]) -> ShimSpec {
        let env = [("PATH", "/usr/bin:/bin"), ("HOME", "/"), ("LC_ALL", "C")];
        ShimSpec {
            slot: "test".into(),
            argv: argv.iter().map(|&arg| arg.into()).collect(),
            cwd: self.dir.path().into(),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            cols: 80,
            rows: 24,
            recording: self.recording.clone(),
            socket: self.path("test.sock"),
            limits: Default::default(),
            cgroup: None,
            keeper: missiond::shim::ShimKeeper {
                home: self.dir.path().into(),
                config: self.path("slots.toml"),
            },
            cap: None,
        }
    }

    pub async fn launch(&self, argv: &[&str]) -> Driven {
        self.launch_spec(&self.spec(argv)).await
    }

    pub async fn launch_spec(&self, spec: &ShimSpec) -> Driven {
        self.drive(launch(spec).await.expect("the shim starts"))
    }

    /// What was recorded before the connection is read from the file, as the daemon does it.
    pub fn drive(&self, (link, hello): (ShimLink, Hello)) -> Driven {
        let recorded = self.recorded(hello.recorded as usize);
        let exact = self.recorded_exactly(hello.recorded as usize);
        Driven {
            link,
            hello,
            output: recorded,
            exact,
            heard: Vec::new(),
        }
    }

    pub async fn sh(&self, script: &str) -> Driven {
        self.launch(&["/bin/sh", "-c", script]).await
    }

    pub async fn adopt(&self) -> Driven {
        let adopted = ShimLink::adopt(&self.path("test.sock")).await;
        self.drive(adopted.expect("the shim answers"))
    }

    /// The text of all output events among the recording's first `length` bytes.
    pub fn recorded(&self, length: usize) -> String {
        let file = std::fs::read(&self.recording).expect("a recording");
        events(&file[..length])
            .into_iter()
            .filter(|(_, code, _)| code == "o")
            .map(|(_, _, data)| data)
            .collect()
    }

    /// The same, byte for byte.
    pub fn recorded_exactly(&self, length: usize) -> Vec<u8> {
        let file = std::fs::read(&self.recording).expect("a recording");
        let events = Recording::read(&file[..length]).ok().into_iter().flatten();
        events
            .flat_map(|event| event.expect("a whole event").written().to_vec())
            .collect()
    }

    /// How many events with this code are among the recording's first `length` bytes.
    pub fn count(&self, code: &str, length: usize) -> usize {
        let file = std::fs::read(&self.recording).expect("a recording");
        if length == 0 {
            return 0;
        }
        let events = events(&file[..length]).into_iter();
        events.filter(|event| event.1 == code).count()
    }

    pub fn all_recorded(&self) -> String {
        let length = std::fs::metadata(&self.recording).expect("a recording");
        self.recorded(length.len() as usize)
    }

    /// The data of all events with this code. The end of a line that is being written is passed over.
    pub fn marks(&self, code: &str) -> Vec<String> {
        let file = std::fs::read(&self.recording).expect("a recording");
        let whole = file
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        events(&file[..whole])
            .into_iter()
            .filter(|event| event.1 == code)
            .map(|(_, _, data)| data)
            .collect()
    }
}

/// No test leaves a shim or its tree behind, also when it fails.
impl Drop for Stage {
    fn drop(&mut self) {
        for pid in pids_of_shims_at(self.dir.path()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        crate::support::reaper::release(self.dir.path());
    }
}

/// The shims whose child runs in `dir`.
pub fn pids_of_shims_at(dir: &Path) -> Vec<rustix::process::Pid> {
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let prefix = dir.display().to_string();
    let inodes: Vec<String> = sockets
        .lines()
        .filter(|line| line.contains(&prefix))
        .filter_map(|line| {
            line.split_whitespace()
                .nth(6)
                .map(|i| format!("socket:[{i}]"))
        })
        .collect();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
            let holds = fds.flatten().any(|fd| {
                std::fs::read_link(fd.path())
                    .is_ok_and(|target| inodes.iter().any(|inode| target == Path::new(inode)))
            });
            (comm.trim() == "missiond-shim" && holds)
                .then(|| rustix::process::Pid::from_raw(pid))?
        })
        .collect()
}

impl Driven {
    pub fn send(&mut self, message: ToShim) {
        self.link.send(&message).expect("the shim is there");
    }

    pub fn input(&mut self, n: u64, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.send(ToShim::Input { n, bytes });
    }

    pub fn take(&mut self, bytes: &[u8]) {
        self.output += &String::from_utf8_lossy(bytes);
        self.exact.extend_from_slice(bytes);
    }

    pub fn text(&self) -> String {
        self.output.clone()
    }

    /// Listens until `done` says that it has heard enough.
    pub async fn until(&mut self, what: &str, mut done: impl FnMut(&Driven) -> bool) {
        let listening = async {
            while !done(self) {
                let message = self.link.next().await.expect("the shim goes on");
                if let FromShim::Output { bytes, .. } = &message {
                    self.take(bytes);
                }
                self.heard.push(message);
            }
        };
        if tokio::time::timeout(PATIENCE, listening).await.is_err() {
            let last = &self.heard[self.heard.len().saturating_sub(20)..];
            panic!("{what} never came; the last that was heard is {last:?}");
        }
    }

    pub async fn until_text(&mut self, text: &str) {
        self.until(text, |driven| driven.text().contains(text))
            .await;
    }

    pub async fn until_heard(&mut self, message: FromShim) {
        self.until(&format!("{message:?}"), |driven| {
            driven.heard.contains(&message)
        })
        .await;
    }

    /// Waits until `count` silences were told in all.
    pub async fn until_quiet(&mut self, count: usize) {
        let is_quiet = |message: &&FromShim| matches!(message, FromShim::Quiet { .. });
        self.until("a silence", |driven| {
            driven.heard.iter().filter(is_quiet).count() >= count
        })
        .await;
    }

    pub fn has_trouble(&self, part: &str) -> bool {
        let is_it = |message: &FromShim| matches!(message, FromShim::Trouble { text } if text.contains(part));
        self.heard.iter().any(is_it)
    }

    pub async fn exit(&mut self) -> ExitReport {
        let exit = |driven: &Driven| {
            let before = driven.hello.exit.clone();
            let since = driven.heard.iter().find_map(|message| match message {
                FromShim::Exited(exit) => Some(exit.clone()),
                _ => None,
            });
            before.or(since)
        };
        self.until("the exit", |driven| exit(driven).is_some())
            .await;
        exit(self).expect("it was heard")
    }

    /// Lets the shim go, and waits until it has.
    pub async fn dismiss(mut self) {
        self.send(ToShim::Dismiss);
        let closed =
            tokio::time::timeout(PATIENCE, async { while self.link.next().await.is_ok() {} });
        closed.await.expect("the shim ends");
        let pid = self.hello.shim_pid;
        eventually("the shim is gone", || !is_running(pid)).await;
    }
}

pub async fn launch(spec: &ShimSpec) -> Result<(ShimLink, Hello), LaunchError> {
    ShimLink::launch(spec, Path::new(env!("CARGO_BIN_EXE_missiond"))).await
}

pub async fn eventually(what: &str, mut fact: impl FnMut() -> bool) {
    let waiting = async {
        while !fact() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        panic!("not seen: {what}");
    }
}

/// Whether the process exists and has not ended; who reaps it is not the point here.
pub fn is_running(pid: u32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z')
}

pub fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 2..].chars().next()
}

pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 2..].split(' ').nth(1)?.parse().ok()
}

pub fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| parent_of(pid) == Some(parent))
        .collect()
}

/// The events of a recording, checked to be whole and in the order of time.
pub fn events(file: &[u8]) -> Vec<(f64, String, String)> {
    let text = std::str::from_utf8(file).expect("a recording is UTF-8");
    assert!(text.ends_with('\n'), "the recording is whole");
    let mut lines = text.lines();
    let header: serde_json::Value = serde_json::from_str(lines.next().expect("a header")).unwrap();
    assert_eq!(header["version"], 2);
    let events: Vec<(f64, String, String)> = lines
        .map(|line| serde_json::from_str(line).expect("an event"))
        .collect();
    assert!(events.is_sorted_by(|a, b| a.0 <= b.0), "times go forward");
    events
}

/// Sends a signal as a person would with kill(1).
pub fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("the process is there");
}

/// The number after `name` in a file such as /proc/PID/status.
pub fn figure(path: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).expect("a file of /proc");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|word| word.parse().ok()).expect("a figure")
}
