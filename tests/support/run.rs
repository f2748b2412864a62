//! The missiond program, run and looked at.

use super::{PATIENCE, until_within};
use serde_json::Value;
use std::fmt;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub line: String,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Goes on only when the exit code was this.
    #[track_caller]
    pub fn expect(self, code: i32) -> Output {
        assert_eq!(self.code, code, "the exit code of {self}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("no JSON ({error}) from {self}"),
        }
    }

    /// One value for each line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let line = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{self}"));
        self.stdout.lines().map(line).collect()
    }

    /// Standard output without its last line end.
    pub fn text(&self) -> &str {
        self.stdout.strip_suffix('\n').unwrap_or(&self.stdout)
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Output { line, code, .. } = self;
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        write!(f, "`missiond {line}`: {code}\n{stdout}\n{stderr}")
    }
}

/// A command that still runs.
pub struct Running {
    line: String,
    child: Child,
    stdout: Collected,
    stderr: Collected,
}

/// What came through a pipe so far, and the thread that reads on.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts `command`, whose arguments are `line` for people to read, and gives it `input`.
    pub fn start(mut command: Command, line: String, input: &str) -> Running {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("missiond runs");
        let mut stdin = child.stdin.take().expect("it is piped");
        let input = input.to_owned();
        // A thread, since neither side may wait for the other; a command that reads nothing closes it.
        std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let stdout = Collected::from(child.stdout.take());
        let stderr = Collected::from(child.stderr.take());
        Running {
            line,
            child,
            stdout,
            stderr,
        }
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(self) -> Output {
        self.end_within(PATIENCE)
    }

    #[track_caller]
    pub fn end_within(mut self, patience: Duration) -> Output {
        let what = format!("the end of `missiond {}` within {patience:?}", self.line);
        let ended = || self.child.try_wait().expect("it is a child");
        let status = until_within(patience, &what, ended);
        Output {
            line: std::mem::take(&mut self.line),
            code: status.code().unwrap_or(-1),
            stdout: self.stdout.whole(),
            stderr: self.stderr.whole(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, for a command that would go on for ever, and gives what it printed.
    pub fn kill(mut self) -> String {
        let _ = self.child.kill();
        self.stdout.whole()
    }

    /// What it has printed by now.
    pub fn printed(&self) -> String {
        self.stdout.so_far()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already ended, in most cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Collected {
    fn from(pipe: Option<impl Read + Send + 'static>) -> Collected {
        let mut pipe = pipe.expect("it is piped");
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            // What came before an error is what there is to see.
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let mut bytes = sink.lock().expect("no panic there");
                bytes.extend_from_slice(&buffer[..count]);
            }
        });
        Collected {
            bytes,
            thread: Some(thread),
        }
    }

    fn so_far(&self) -> String {
        let bytes = self.bytes.lock().expect("no panic there");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// All of it, once the other side has closed the pipe.
    fn whole(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it only reads");
        }
        self.so_far()
    }
}
