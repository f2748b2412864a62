//! The shim, driven through the real binary as the daemon drives it.

use missiond::shim::{
    ExitReport, FromShim, Hello, LaunchError, LinkError, ShimLink, ShimSpec, ToShim,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A fact that takes longer than this to come true never will.
const PATIENCE: Duration = Duration::from_secs(30);

struct Stage {
    dir: TempDir,
}

/// A connected shim with everything it has said so far.
struct Driven {
    link: ShimLink,
    hello: Hello,
    output: Vec<u8>,
    heard: Vec<FromShim>,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn spec(&self, argv: &[&str]) -> ShimSpec {
        let env = [("PATH", "/usr/bin:/bin"), ("HOME", "/"), ("LC_ALL", "C")];
        ShimSpec {
            slot: "test".into(),
            argv: argv.iter().map(|&arg| arg.into()).collect(),
            cwd: self.dir.path().into(),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            cols: 80,
            rows: 24,
            recording: self.path("test.cast"),
            socket: self.path("test.sock"),
        }
    }

    async fn launch(&self, argv: &[&str]) -> Driven {
        Driven::of(launch(&self.spec(argv)).await.expect("the shim starts"))
    }

    async fn sh(&self, script: &str) -> Driven {
        self.launch(&["/bin/sh", "-c", script]).await
    }

    async fn adopt(&self) -> Driven {
        let adopted = ShimLink::adopt(&self.path("test.sock")).await;
        Driven::of(adopted.expect("the shim answers"))
    }

    /// The text of all output events among the recording's first `length` bytes.
    fn recorded(&self, length: usize) -> String {
        let file = std::fs::read(self.path("test.cast")).expect("a recording");
        events(&file[..length])
            .into_iter()
            .filter(|(_, code, _)| code == "o")
            .map(|(_, _, data)| data)
            .collect()
    }

    fn all_recorded(&self) -> String {
        let length = std::fs::metadata(self.path("test.cast")).expect("a recording");
        self.recorded(length.len() as usize)
    }

    fn marks(&self, code: &str) -> Vec<String> {
        let file = std::fs::read(self.path("test.cast")).expect("a recording");
        events(&file)
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
    }
}

/// The shims whose child runs in `dir`.
fn pids_of_shims_at(dir: &Path) -> Vec<rustix::process::Pid> {
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
    fn of((link, hello): (ShimLink, Hello)) -> Self {
        Self {
            link,
            hello,
            output: Vec::new(),
            heard: Vec::new(),
        }
    }

    fn send(&mut self, message: ToShim) {
        self.link.send(&message).expect("the shim is there");
    }

    fn input(&mut self, n: u64, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.send(ToShim::Input { n, bytes });
    }

    fn text(&self) -> String {
        String::from_utf8(self.output.clone()).expect("output is always UTF-8")
    }

    /// Listens until `done` says that it has heard enough.
    async fn until(&mut self, what: &str, mut done: impl FnMut(&Driven) -> bool) {
        let listening = async {
            while !done(self) {
                let message = self.link.next().await.expect("the shim goes on");
                if let FromShim::Output { bytes, .. } = &message {
                    self.output.extend_from_slice(bytes);
                }
                self.heard.push(message);
            }
        };
        if tokio::time::timeout(PATIENCE, listening).await.is_err() {
            panic!("{what} never came; heard {:?}", self.heard);
        }
    }

    async fn until_text(&mut self, text: &str) {
        self.until(text, |driven| driven.text().contains(text))
            .await;
    }

    async fn until_heard(&mut self, message: FromShim) {
        self.until(&format!("{message:?}"), |driven| {
            driven.heard.contains(&message)
        })
        .await;
    }

    async fn exit(&mut self) -> ExitReport {
        let exit = |driven: &Driven| {
            driven.heard.iter().find_map(|message| match message {
                FromShim::Exited(exit) => Some(exit.clone()),
                _ => None,
            })
        };
        self.until("the exit", |driven| exit(driven).is_some())
            .await;
        exit(self).expect("it was heard")
    }

    /// Lets the shim go, and waits until it has.
    async fn dismiss(mut self) {
        self.send(ToShim::Dismiss);
        let closed =
            tokio::time::timeout(PATIENCE, async { while self.link.next().await.is_ok() {} });
        closed.await.expect("the shim ends");
        let pid = self.hello.shim_pid;
        eventually("the shim is gone", || !is_running(pid)).await;
    }
}

async fn launch(spec: &ShimSpec) -> Result<(ShimLink, Hello), LaunchError> {
    ShimLink::launch(spec, Path::new(env!("CARGO_BIN_EXE_missiond"))).await
}

async fn eventually(what: &str, mut fact: impl FnMut() -> bool) {
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
fn is_running(pid: u32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z')
}

fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 2..].chars().next()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 2..].split(' ').nth(1)?.parse().ok()
}

fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| parent_of(pid) == Some(parent))
        .collect()
}

/// The events of a recording, checked to be whole and in the order of time.
fn events(file: &[u8]) -> Vec<(f64, String, String)> {
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

#[tokio::test]
async fn what_is_typed_is_echoed_and_recorded() {
    let stage = Stage::new();
    let mut shim = stage.launch(&["/bin/cat"]).await;
    assert_eq!((shim.hello.cols, shim.hello.rows), (80, 24));
    assert_eq!(shim.hello.last_input, 0);
    shim.input(1, "hello\n");
    shim.until_text("hello\r\nhello\r\n").await;
    shim.until_heard(FromShim::Written { n: 1 }).await;
    assert_eq!(stage.all_recorded(), "hello\r\nhello\r\n");
    let start = format!("start {}", shim.hello.child_pid);
    assert_eq!(stage.marks("m"), [start.clone()]);
    shim.input(2, "\x04");
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: Some(0),
            signal: None
        }
    );
    assert_eq!(stage.marks("m"), [start, "exit 0".into()]);
    shim.dismiss().await;
    assert!(!stage.path("test.sock").exists());
}

#[tokio::test]
async fn silence_is_told_in_recorded_time() {
    let stage = Stage::new();
    let mut shim = stage.sh("printf one; read x; printf two; read x").await;
    let quiets = |driven: &Driven| {
        let is_quiet = |message: &&FromShim| matches!(message, FromShim::Quiet { .. });
        driven.heard.iter().filter(is_quiet).count()
    };
    shim.until("two silences", |driven| quiets(driven) == 2)
        .await;
    shim.input(1, "\n");
    shim.until("two more", |driven| quiets(driven) == 4).await;
    let mut last_output = Duration::ZERO;
    let mut reached = Duration::ZERO;
    for message in &shim.heard {
        match message {
            FromShim::Output { at, .. } => {
                assert!(*at > reached, "{:?}", shim.heard);
                (last_output, reached) = (*at, *at);
            }
            FromShim::Quiet { at } => {
                assert!(
                    *at >= last_output + Duration::from_millis(20),
                    "{:?}",
                    shim.heard
                );
                reached = *at;
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_utf8_are_the_same_everywhere() {
    let stage = Stage::new();
    let script = "stty raw -echo; printf 'a\\342'; read x; printf '\\202\\254b\\377c\\360\\237\\246'; read x";
    let mut shim = stage.sh(script).await;
    shim.until_text("a").await;
    shim.input(1, "\n");
    // The beginning of the euro sign has waited too long for its rest by the time that this is typed,
    // unless the two were quick enough; both are right, and the recording says which it was.
    shim.until_text("c\u{fffd}").await;
    let text = shim.text();
    let allowed = [
        "a\u{20ac}b\u{fffd}c\u{fffd}",
        "a\u{fffd}\u{fffd}\u{fffd}b\u{fffd}c\u{fffd}",
    ];
    assert!(allowed.contains(&text.as_str()), "{text:?}");
    assert_eq!(stage.all_recorded(), text);
}

#[tokio::test]
async fn a_resize_reaches_the_child_and_the_recording() {
    let stage = Stage::new();
    let mut shim = stage
        .sh("trap 'stty size' WINCH; stty size; while :; do read x; done")
        .await;
    shim.until_text("24 80\r\n").await;
    shim.send(ToShim::Resize {
        cols: 132,
        rows: 50,
    });
    shim.until_text("50 132\r\n").await;
    assert_eq!(stage.marks("r"), ["132x50"]);
    shim.send(ToShim::Resize { cols: 0, rows: 50 });
    shim.until("a refusal", |driven| {
        driven
            .heard
            .iter()
            .any(|m| matches!(m, FromShim::Trouble { text } if text.contains("0x50")))
    })
    .await;
    drop(shim);
    let shim = stage.adopt().await;
    assert_eq!((shim.hello.cols, shim.hello.rows), (132, 50));
}

#[tokio::test]
async fn a_signal_reaches_the_whole_group() {
    let stage = Stage::new();
    // Without job control both processes are in the child's group.
    let mut shim = stage
        .sh("sh -c 'trap \"echo inner; exit\" USR1; echo up; while :; do sleep 0.01; done' & trap 'echo outer' USR1; wait; wait; exit 7")
        .await;
    shim.until_text("up").await;
    shim.send(ToShim::Signal { signal: 10 });
    shim.until_text("inner").await;
    shim.until_text("outer").await;
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: Some(7),
            signal: None
        }
    );
}

#[tokio::test]
async fn an_end_by_a_signal_is_told_as_such() {
    let stage = Stage::new();
    let mut shim = stage.launch(&["/bin/cat"]).await;
    shim.send(ToShim::Signal { signal: 11 });
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: None,
            signal: Some(11)
        }
    );
    assert_eq!(stage.marks("m").last().unwrap(), "exit signal 11");
}

#[tokio::test]
async fn an_exit_waits_for_a_daemon() {
    let stage = Stage::new();
    let shim = stage.sh("printf bye; exit 3").await;
    let pid = shim.hello.shim_pid;
    drop(shim);
    eventually("the exit is recorded", || {
        stage.marks("m").last().is_some_and(|mark| mark == "exit 3")
    })
    .await;
    let shim = stage.adopt().await;
    assert_eq!(shim.hello.shim_pid, pid);
    assert_eq!(
        shim.hello.exit,
        Some(ExitReport {
            code: Some(3),
            signal: None
        })
    );
    assert_eq!(stage.recorded(shim.hello.recorded as usize), "bye");
    shim.dismiss().await;
}

#[tokio::test]
async fn what_can_not_start_is_refused_with_the_reason() {
    let stage = Stage::new();
    let write = |name: &str, content: &[u8], mode: u32| {
        let path = stage.path(name);
        std::fs::write(&path, content).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&path, mode).unwrap();
        path.display().to_string()
    };
    let plain = write("plain", b"#!/bin/sh\n", 0o644);
    let lost = write("lost", b"#!/no/such/sh\n", 0o755);
    let damaged = write("damaged", b"\x7fELF damaged beyond repair", 0o755);
    let missing = stage.path("missing").display().to_string();
    let mut elsewhere = stage.spec(&["/bin/cat"]);
    elsewhere.cwd = "/no/such/directory".into();
    for (spec, reason) in [
        (stage.spec(&[&missing]), "No such file"),
        (stage.spec(&[&plain]), "not executable"),
        (stage.spec(&[&lost]), "/no/such/sh can't be run"),
        (stage.spec(&[&damaged]), "could not execute"),
        (elsewhere, "/no/such/directory can't be used"),
    ] {
        match launch(&spec).await {
            Err(LaunchError::Refused(why)) if why.contains(reason) => {}
            other => panic!("{reason:?} expected, not {other:?}"),
        }
        assert!(!stage.path("test.sock").exists());
    }
    // A refusal leaves nothing in the way of the next start.
    stage.launch(&["/bin/cat"]).await;
    let twice = launch(&stage.spec(&["/bin/cat"])).await;
    assert!(matches!(twice, Err(LaunchError::Refused(why)) if why.contains("in use")));
}

#[tokio::test]
async fn nothing_but_the_given_environment_reaches_the_child() {
    let stage = Stage::new();
    let mut spec = stage.spec(&["/usr/bin/env"]);
    spec.env.push(("SHELL".into(), "/bin/sh".into()));
    let mut shim = Driven::of(launch(&spec).await.expect("it starts"));
    shim.exit().await;
    let mut got: Vec<_> = shim.text().lines().map(str::to_owned).collect();
    got.sort();
    assert_eq!(
        got,
        ["HOME=/", "LC_ALL=C", "PATH=/usr/bin:/bin", "SHELL=/bin/sh"]
    );
}

#[tokio::test]
async fn the_newest_daemon_is_the_one_that_counts() {
    let stage = Stage::new();
    let mut old = stage.launch(&["/bin/cat"]).await;
    let mut new = stage.adopt().await;
    let ended = tokio::time::timeout(PATIENCE, old.link.next()).await;
    assert!(matches!(ended, Ok(Err(LinkError::Closed))), "{ended:?}");
    new.input(1, "x\n");
    new.until_text("x\r\nx\r\n").await;
}
