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
    recording: PathBuf,
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
        let dir = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir()
            .expect("a temporary directory");
        let recording = dir.path().join("test.cast");
        Self { dir, recording }
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
            recording: self.recording.clone(),
            socket: self.path("test.sock"),
        }
    }

    async fn launch(&self, argv: &[&str]) -> Driven {
        self.launch_spec(&self.spec(argv)).await
    }

    async fn launch_spec(&self, spec: &ShimSpec) -> Driven {
        self.drive(launch(spec).await.expect("the shim starts"))
    }

    /// What was recorded before the connection is read from the file, as the daemon does it.
    fn drive(&self, (link, hello): (ShimLink, Hello)) -> Driven {
        let recorded = self.recorded(hello.recorded as usize);
        Driven {
            link,
            hello,
            output: recorded.into_bytes(),
            heard: Vec::new(),
        }
    }

    async fn sh(&self, script: &str) -> Driven {
        self.launch(&["/bin/sh", "-c", script]).await
    }

    async fn adopt(&self) -> Driven {
        let adopted = ShimLink::adopt(&self.path("test.sock")).await;
        self.drive(adopted.expect("the shim answers"))
    }

    /// The text of all output events among the recording's first `length` bytes.
    fn recorded(&self, length: usize) -> String {
        let file = std::fs::read(&self.recording).expect("a recording");
        events(&file[..length])
            .into_iter()
            .filter(|(_, code, _)| code == "o")
            .map(|(_, _, data)| data)
            .collect()
    }

    fn all_recorded(&self) -> String {
        let length = std::fs::metadata(&self.recording).expect("a recording");
        self.recorded(length.len() as usize)
    }

    /// The data of all events with this code. The end of a line that is being written is passed over.
    fn marks(&self, code: &str) -> Vec<String> {
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
            let last = &self.heard[self.heard.len().saturating_sub(20)..];
            panic!("{what} never came; the last that was heard is {last:?}");
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

    fn has_trouble(&self, part: &str) -> bool {
        let is_it = |message: &FromShim| matches!(message, FromShim::Trouble { text } if text.contains(part));
        self.heard.iter().any(is_it)
    }

    async fn exit(&mut self) -> ExitReport {
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
    assert_eq!(stage.marks("m"), std::slice::from_ref(&start));
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
    let resized = |message: &FromShim| {
        matches!(
            message,
            FromShim::Resized {
                cols: 132,
                rows: 50,
                ..
            }
        )
    };
    assert!(shim.heard.iter().any(resized), "{:?}", shim.heard);
    shim.send(ToShim::Resize { cols: 0, rows: 50 });
    shim.until("a refusal", |driven| driven.has_trouble("0x50"))
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
    let loaderless = write("loaderless", &without_loader("/bin/cat"), 0o755);
    let missing = stage.path("missing").display().to_string();
    let mut elsewhere = stage.spec(&["/bin/cat"]);
    elsewhere.cwd = "/no/such/directory".into();
    for (spec, reason) in [
        (stage.spec(&[&missing]), "No such file"),
        (stage.spec(&[&plain]), "not executable"),
        (stage.spec(&[&lost]), "/no/such/sh can't be run"),
        (stage.spec(&[&loaderless]), "could not execute"),
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

/// A program whose dynamic loader does not exist, which only the kernel finds out.
fn without_loader(program: &str) -> Vec<u8> {
    let mut bytes = std::fs::read(program).expect("a program");
    let (loader, nothing) = (b"/ld-linux", b"/no-linux");
    let at = bytes
        .windows(loader.len())
        .position(|window| window == loader);
    let at = at.expect("a dynamically linked program");
    bytes[at..at + nothing.len()].copy_from_slice(nothing);
    bytes
}

#[tokio::test]
async fn nothing_but_the_given_environment_reaches_the_child() {
    let stage = Stage::new();
    let mut spec = stage.spec(&["/usr/bin/env"]);
    spec.env.push(("SHELL".into(), "/bin/sh".into()));
    let mut shim = stage.launch_spec(&spec).await;
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

#[tokio::test]
async fn stop_ends_also_those_who_fled_into_a_session_of_their_own() {
    let stage = Stage::new();
    let mut shim = stage
        .sh("trap '' TERM; setsid sh -c 'trap \"\" TERM HUP; echo fled $$; while :; do sleep 0.05; done' & while :; do sleep 0.05; done")
        .await;
    shim.until("the pid", |driven| {
        driven.text().contains("fled") && driven.text().ends_with('\n')
    })
    .await;
    let fled: u32 = shim
        .text()
        .trim()
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(is_running(fled));
    shim.send(ToShim::Stop { grace_ms: 100 });
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: None,
            signal: Some(9)
        }
    );
    assert!(!is_running(fled), "it was killed before the exit was told");
    assert!(children_of(shim.hello.shim_pid).is_empty());
    shim.dismiss().await;
}

#[tokio::test]
async fn a_child_that_ends_in_time_is_not_killed() {
    let stage = Stage::new();
    let mut shim = stage
        .sh("trap 'echo tidy; exit 5' TERM; echo up; while :; do sleep 0.01; done")
        .await;
    shim.until_text("up").await;
    shim.send(ToShim::Stop { grace_ms: 20_000 });
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: Some(5),
            signal: None
        }
    );
    assert!(shim.text().contains("tidy"));
}

#[tokio::test]
async fn what_a_child_leaves_behind_ends_with_it() {
    let stage = Stage::new();
    let mut shim = stage
        .sh("setsid sleep 1000 & echo $!; sleep 0.2; exit 0")
        .await;
    shim.exit().await;
    let left: u32 = shim.text().trim().parse().expect("a pid");
    assert!(!is_running(left));
    assert!(children_of(shim.hello.shim_pid).is_empty());
}

#[tokio::test]
async fn a_thousand_orphans_leave_no_zombie() {
    let stage = Stage::new();
    // Each inner shell ends at once and leaves its child to the shim.
    let mut shim = stage
        .sh("i=0; while [ $i -lt 1000 ]; do (: & ); i=$((i+1)); done; echo done; read x")
        .await;
    shim.until_text("done").await;
    let (pid, child) = (shim.hello.shim_pid, shim.hello.child_pid);
    eventually("only the child is left", || children_of(pid) == [child]).await;
}

#[tokio::test]
async fn an_input_number_is_written_once() {
    let stage = Stage::new();
    let mut shim = stage.sh("stty -echo; echo ready; exec cat").await;
    shim.until_text("ready").await;
    shim.input(1, "one\n");
    shim.until_heard(FromShim::Written { n: 1 }).await;
    drop(shim);
    let mut shim = stage.adopt().await;
    assert_eq!(shim.hello.last_input, 1);
    shim.input(1, "one\n");
    shim.until_heard(FromShim::Written { n: 1 }).await;
    shim.input(2, "two\n");
    shim.until_text("two").await;
    assert_eq!(shim.text(), "ready\r\none\r\ntwo\r\n");
}

#[tokio::test]
async fn a_paste_of_a_megabyte_arrives_at_a_slow_reader() {
    let stage = Stage::new();
    // Raw, so that the terminal passes every byte; the first kilobytes are read one by one.
    let mut shim = stage
        .sh("stty raw -echo; echo ready; (dd bs=1 count=5000 2>/dev/null; sleep 0.3; head -c 1043576) | cksum")
        .await;
    shim.until_text("ready").await;
    let paste: Vec<u8> = (0..1_048_576u32)
        .map(|i| b'a' + (i.wrapping_mul(2_654_435_761) >> 28) as u8)
        .collect();
    std::fs::write(stage.path("paste"), &paste).unwrap();
    shim.input(1, paste);
    shim.until_heard(FromShim::Written { n: 1 }).await;
    shim.exit().await;
    let sum = std::process::Command::new("cksum")
        .arg(stage.path("paste"))
        .output()
        .unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let sum = sum.split(" /").next().unwrap();
    assert!(shim.text().contains(sum), "{sum} expected: {}", shim.text());
}

#[tokio::test]
async fn input_that_nobody_reads_is_refused_whole_in_the_end() {
    let stage = Stage::new();
    let mut shim = stage.sh("stty raw -echo; echo ready; sleep 1000").await;
    shim.until_text("ready").await;
    for n in 1..=6 {
        shim.input(n, vec![b'x'; 1 << 20]);
        shim.link.flush().await.expect("the shim reads");
    }
    shim.until("a refusal", |driven| {
        driven.heard.iter().any(
            |m| matches!(m, FromShim::Refused { n: 6, reason } if reason.contains("has not read")),
        )
    })
    .await;
    // The way for a stop is not blocked by it.
    shim.send(ToShim::Stop { grace_ms: 0 });
    shim.exit().await;
    let ended = |n| {
        shim.heard
            .iter()
            .any(|m| matches!(m, FromShim::Refused { n: refused, .. } if *refused == n))
    };
    assert!((1..=6).all(ended), "{:?}", shim.heard);
}

/// Prints numbered lines as fast as it can, `count` of them.
fn flood(count: usize) -> String {
    format!(
        "stty raw; i=0; while [ $i -lt {count} ]; do i=$((i+1)); echo line $i ééé; done; echo end"
    )
}

fn flooded(count: usize) -> String {
    let lines: String = (1..=count).map(|i| format!("line {i} ééé\n")).collect();
    lines + "end\n"
}

#[tokio::test]
async fn a_daemon_that_dies_in_mid_stream_loses_nothing() {
    const LINES: usize = 20_000;
    let stage = Stage::new();
    let mut shim = stage.sh(&flood(LINES)).await;
    for round in 1..=20 {
        let enough = round * LINES / 25;
        shim.until("more lines", |driven| {
            driven.output.len() > enough * 10 || driven.hello.exit.is_some()
        })
        .await;
        // Dropping the link is all that anyone sees of a daemon that was killed.
        drop(shim);
        shim = stage.adopt().await;
    }
    shim.exit().await;
    assert_eq!(shim.text(), flooded(LINES));
    assert_eq!(stage.all_recorded(), flooded(LINES));
}

/// Where the process that plays a daemon finds its stage.
const STAGE: &str = "SHIM_TEST_STAGE";

/// No test, but the daemon of the next one, in a process of its own.
#[tokio::test]
#[ignore = "started by a_killed_daemon_is_survived_by_its_shim"]
async fn a_daemon_to_be_killed() {
    let Some(dir) = std::env::var_os(STAGE) else {
        return;
    };
    let spec = std::fs::read(Path::new(&dir).join("spec.json")).expect("a specification");
    let spec = serde_json::from_slice(&spec).expect("a specification");
    let (mut link, _) = launch(&spec).await.expect("the shim starts");
    while link.next().await.is_ok() {}
}

#[tokio::test]
async fn a_killed_daemon_is_survived_by_its_shim() {
    const LINES: usize = 20_000;
    let stage = Stage::new();
    let spec = stage.spec(&["/bin/sh", "-c", &flood(LINES)]);
    std::fs::write(stage.path("spec.json"), serde_json::to_vec(&spec).unwrap()).unwrap();
    let mut daemon = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_daemon_to_be_killed"])
        .env(STAGE, stage.dir.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let is_recording =
        || std::fs::metadata(&stage.recording).is_ok_and(|file| file.len() > 100_000);
    eventually("the flood runs", is_recording).await;
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let mut shim = stage.adopt().await;
    shim.exit().await;
    assert_eq!(shim.text(), flooded(LINES));
    assert_eq!(stage.all_recorded(), flooded(LINES));
}

#[tokio::test]
async fn a_daemon_that_does_not_read_is_let_go_and_the_child_runs_on() {
    const LINES: usize = 60_000;
    let stage = Stage::new();
    let mut shim = stage.sh(&flood(LINES)).await;
    eventually("the child has ended", || {
        stage.marks("m").last().is_some_and(|mark| mark == "exit 0")
    })
    .await;
    let closed = tokio::time::timeout(PATIENCE, async {
        loop {
            match shim.link.next().await {
                Ok(FromShim::Output { bytes, .. }) => shim.output.extend(bytes),
                Ok(_) => {}
                Err(fault) => return fault,
            }
        }
    });
    assert!(matches!(closed.await, Ok(LinkError::Closed)));
    assert!(
        flooded(LINES).starts_with(&shim.text()),
        "what came was in order"
    );
    assert_eq!(stage.adopt().await.text(), flooded(LINES));
}

#[tokio::test]
async fn a_restarted_slot_goes_on_in_its_recording() {
    let stage = Stage::new();
    for word in ["first", "second"] {
        let mut shim = stage.sh(&format!("printf {word}")).await;
        shim.exit().await;
        shim.dismiss().await;
    }
    assert_eq!(stage.all_recorded(), "firstsecond");
    assert_eq!(stage.marks("m").len(), 4);
    assert_eq!(stage.marks("r"), ["80x24"], "the size of the second start");
}

#[tokio::test]
async fn a_shim_belongs_to_nobody() {
    let stage = Stage::new();
    let shim = stage.launch(&["/bin/cat"]).await;
    let pid = shim.hello.shim_pid;
    assert_ne!(parent_of(pid), Some(std::process::id()));
    let own = std::process::id();
    eventually("nothing is left to reap", || children_of(own).is_empty()).await;
    let session = |pid: u32| {
        let pid = rustix::process::Pid::from_raw(pid as i32);
        rustix::process::getsid(pid).unwrap().as_raw_nonzero().get() as u32
    };
    assert_eq!(session(pid), pid);
    assert_eq!(session(shim.hello.child_pid), shim.hello.child_pid);
    let standard: Vec<_> = (0..3)
        .map(|fd| std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap())
        .collect();
    assert_eq!(standard, [Path::new("/dev/null"); 3]);
}

/// A disk of a few pages, which needs the right to mount.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir(at).expect("a directory");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs"])
            .arg(at)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(at.to_owned()));
        }
        eprintln!(
            "skipped: a small disk can't be mounted here (needs root), so a full one is not tested"
        );
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
    }
}

#[tokio::test]
async fn a_full_disk_stops_no_child() {
    let mut stage = Stage::new();
    let Some(disk) = SmallDisk::mount(&stage.path("disk")) else {
        return;
    };
    stage.recording = disk.0.join("test.cast");
    let mut shim = stage.sh("stty -echo; echo ready; exec cat").await;
    shim.until_text("ready").await;
    let filler = disk.0.join("filler");
    while std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&filler)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &[0; 4096]))
        .is_ok()
    {}
    let long_line = "x".repeat(3000) + "\n";
    shim.input(1, long_line.clone());
    shim.input(2, long_line);
    shim.until("the trouble", |driven| driven.has_trouble("No space left"))
        .await;
    shim.input(3, "lost\n");
    shim.until_text("lost").await;
    std::fs::remove_file(&filler).unwrap();
    shim.until("the recovery", |driven| {
        driven.has_trouble("the recording goes on")
    })
    .await;
    shim.input(4, "kept\n");
    shim.until_text("kept").await;
    let recorded = stage.all_recorded();
    assert!(
        recorded.ends_with("kept\r\n") && !recorded.contains("lost"),
        "{recorded}"
    );
    assert!(
        stage
            .marks("m")
            .iter()
            .any(|mark| mark.starts_with("gap: "))
    );
    let told = |message: &&FromShim| matches!(message, FromShim::Trouble { .. });
    assert_eq!(shim.heard.iter().filter(told).count(), 2, "once each");
    shim.send(ToShim::Stop { grace_ms: 1000 });
    shim.exit().await;
    shim.dismiss().await;
}
