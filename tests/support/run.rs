//! The missiond program, run and looked at.

use super::{PATIENCE, until_within};
use serde_json::Value;
use std::fmt;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
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
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
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
        let stdout = Some(collect(child.stdout.take()));
        let stderr = Some(collect(child.stderr.take()));
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
            stdout: joined(self.stdout.take()),
            stderr: joined(self.stderr.take()),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, for a command that would go on for ever, and gives what it printed.
    pub fn kill(mut self) -> String {
        let _ = self.child.kill();
        joined(self.stdout.take())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already ended, in most cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    let mut pipe = pipe.expect("it is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is what there is to see.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn joined(thread: Option<JoinHandle<String>>) -> String {
    thread
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default()
}
