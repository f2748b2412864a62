//! A daemon that says what a test wants, and the program run against it with an empty environment.

use missiond::core::model::envelope::{self, ErrorObject, Line, Request};
use missiond::core::model::{Fault, RpcError};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Far longer than anything here takes: a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What becomes of a `ping`, the first being 0; the others are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ping {
    Answered,
    /// The daemon dies under this one, and is back at once.
    Lost(usize),
    /// This one is taken and never answered.
    Unanswered(usize),
}

pub enum Reply {
    Result(Value),
    Error(RpcError),
    /// An answer, then notifications, then the end of the connection.
    Stream(Vec<Line>),
    /// An answer, then notifications, then nothing until the client goes away.
    Open(Vec<Line>),
    /// Whatever a broken daemon may send.
    Raw(Vec<u8>),
    /// No answer, until the client goes away.
    Silence,
}

impl Reply {
    pub fn refused(fault: Fault, message: &str) -> Reply {
        Reply::Error(RpcError::new(fault, message).next("do something else"))
    }
}

/// A home of its own, where daemons can be faked and the program can be run.
pub struct Home {
    pub dir: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        let runtime = dir.path().join("run/missiond");
        let mut private = std::fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(runtime).unwrap();
        Home { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn socket(&self, name: &str) -> PathBuf {
        self.path(&format!("run/missiond/{name}.sock"))
    }

    /// A daemon of this name; every request is also handed to the test.
    pub fn daemon(
        &self,
        name: &str,
        answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Receiver<Request> {
        self.fake_process(name, std::process::id(), answer)
    }

    /// The same, pretending to be this process.
    pub fn fake_process(
        &self,
        name: &str,
        pid: u32,
        answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Receiver<Request> {
        let pong = json!({
            "name": name, "version": "9.9.9", "pid": pid,
            "config": self.path("slots.toml"), "logs": self.path("logs"),
        });
        self.fake(name, pong, Ping::Answered, answer)
    }

    /// The same, pretending to run with this config.
    pub fn daemon_of(
        &self,
        name: &str,
        config: &Path,
        answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Receiver<Request> {
        let pong = json!({
            "name": name, "version": "9.9.9", "pid": std::process::id(),
            "config": config, "logs": self.path("logs"),
        });
        self.fake(name, pong, Ping::Answered, answer)
    }

    /// The same for a daemon that does not answer each `ping`.
    pub fn failing_daemon(
        &self,
        name: &str,
        ping: Ping,
        answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Receiver<Request> {
        let pong = json!({
            "name": name, "version": "9.9.9", "pid": std::process::id(),
            "config": self.path("slots.toml"), "logs": self.path("logs"),
        });
        self.fake(name, pong, ping, answer)
    }

    fn fake(
        &self,
        name: &str,
        pong: Value,
        ping: Ping,
        answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Receiver<Request> {
        let listener = UnixListener::bind(self.socket(name)).unwrap();
        let (heard, requests) = channel();
        let pings = AtomicUsize::new(0);
        let answer = Arc::new(move |request: &Request| match request.method.as_str() {
            "ping" => {
                let number = pings.fetch_add(1, Ordering::Relaxed);
                match ping {
                    Ping::Lost(lost) if lost == number => Reply::Raw(Vec::new()),
                    Ping::Unanswered(silent) if silent == number => Reply::Silence,
                    _ => Reply::Result(pong.clone()),
                }
            }
            method => answer(method, &request.params),
        });
        thread::spawn(move || {
            let heard = Arc::new(Mutex::new(heard));
            for stream in listener.incoming() {
                let (answer, heard) = (answer.clone(), heard.clone());
                thread::spawn(move || serve(stream.unwrap(), &*answer, &heard));
            }
        });
        requests
    }

    /// The program with nothing in its environment but where it lives.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_missiond"));
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.dir.path())
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // The program may stop reading; that is for the test to judge by its output.
        let writer = thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran::from(output)
    }
}

fn serve(stream: UnixStream, answer: &impl Fn(&Request) -> Reply, heard: &Mutex<Sender<Request>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        let request: Request = serde_json::from_str(&line).unwrap();
        // A test that has ended no longer listens.
        let _ = heard.lock().unwrap().send(request.clone());
        let outcome = match answer(&request) {
            Reply::Result(value) => Ok(value),
            Reply::Error(error) => Err(ErrorObject::from(error)),
            Reply::Silence => continue,
            Reply::Raw(bytes) => return drop((&stream).write_all(&bytes)),
            Reply::Stream(notices) => return say_all(&stream, request.id, notices),
            Reply::Open(notices) => {
                say_all(&stream, request.id, notices);
                continue;
            }
        };
        say(&stream, &Line::answer(request.id, outcome));
    }
}

fn say_all(stream: &UnixStream, id: Value, notices: Vec<Line>) {
    let answer = Line::answer(id, Ok(json!({})));
    let lines = std::iter::once(answer).chain(notices);
    lines.for_each(|line| say(stream, &line));
}

fn say(mut stream: &UnixStream, line: &Line) {
    let text = serde_json::to_string(line).unwrap();
    // The client may have gone: that is its right.
    let _ = writeln!(stream, "{text}");
}

/// What a run of the program came to.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub fn error(&self) -> Value {
        let value: Value =
            serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        value["error"].clone()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The status of an idle slot, to be changed by the test.
pub fn status(slot: &str, state: &str) -> Value {
    json!({
        "slot": slot, "role": "coder", "kind": "claude", "state": state,
        "since": "2026-01-01T10:00:00Z", "started_at": "2026-01-01T09:00:00Z", "pid": 4711,
        "restarts": 0, "session_id": "5e55", "task_id": null, "cwd": "/src", "dialog": null,
        "gate": "hook", "mode": "manual", "last_error": null, "owner": "missiond",
        "log": "/logs/coder.log", "doing": null, "background": 0, "queued": 0, "changed": false
    })
}

pub fn dialog() -> Value {
    json!({
        "id": "d7", "kind": "permission", "tool": "Bash", "input": {"command": "cargo test"},
        "text": "Do you want to proceed?", "options": [{"label": "Yes"}, {"label": "No"}],
        "selected": 0, "complete": true
    })
}

pub fn event(seq: u64, what: Value) -> Line {
    let mut event = json!({"seq": seq, "time": "2026-01-01T10:00:00Z", "slot": "coder"});
    let fields = event.as_object_mut().unwrap();
    fields.extend(what.as_object().unwrap().clone());
    Line::notification(envelope::EVENT, event)
}

pub fn text_of(path: &Path) -> String {
    path.display().to_string()
}

/// The program on a terminal, where a person answers a question; what it said and how it ended.
pub fn answered(home: &Home, arguments: &[&str], question: &str, answer: &str) -> (String, u32) {
    let (said, code, is_answered) = on_terminal(home, arguments, question, answer);
    assert!(is_answered, "{said:?}");
    (said, code)
}

/// The program on a terminal, where nothing is typed but the answer to a question if it comes; whether it came is the last.
pub fn on_terminal(
    home: &Home,
    arguments: &[&str],
    question: &str,
    answer: &str,
) -> (String, u32, bool) {
    use portable_pty::{CommandBuilder, PtySize, native_pty_system};
    let size = PtySize {
        cols: 200,
        ..PtySize::default()
    };
    let terminal = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_missiond"));
    command.env_clear();
    command.env("HOME", home.dir.path());
    command.env("XDG_RUNTIME_DIR", home.path("run"));
    command.cwd(home.dir.path());
    command.args(arguments);
    let mut child = terminal.slave.spawn_command(command).unwrap();
    drop(terminal.slave);
    let mut reader = terminal.master.try_clone_reader().unwrap();
    let mut writer = terminal.master.take_writer().unwrap();
    let (mut said, mut chunk, mut is_answered) = (String::new(), [0; 4096], false);
    // Its end is an error on a terminal.
    while let Ok(count @ 1..) = std::io::Read::read(&mut reader, &mut chunk) {
        said += &String::from_utf8_lossy(&chunk[..count]);
        if !is_answered && said.contains(question) {
            is_answered = true;
            std::io::Write::write_all(&mut writer, answer.as_bytes()).unwrap();
        }
    }
    (said, child.wait().unwrap().exit_code(), is_answered)
}
