//! The real missiond with real slots, in a directory of its own.

use super::claude_code::claude;
use super::processes;
use super::program::program_at;
use super::reaper;
use super::run::{Output, Running};
use super::setup::{self, Setup};
use super::{PINNED, until};
use missiond::lab::rehearsal::{Endpoint, Home, HomeOptions};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub struct Daemon {
    child: Child,
    slots: Vec<String>,
    pub endpoint: Endpoint,
    pub home: Home,
    // Last, so that it is removed when everything else has ended.
    root: TempDir,
}

impl Daemon {
    /// Starts a daemon whose slots are the real Claude Code; `None` where that can't be had.
    pub fn start(setup: &Setup) -> Option<Daemon> {
        Some(Daemon::start_with(setup, &claude(PINNED)?))
    }

    /// Starts a daemon whose slots run `command`.
    pub fn start_with(setup: &Setup, command: &[String]) -> Daemon {
        // Short, since the path of a socket has at most 107 bytes.
        let root = tempfile::Builder::new()
            .prefix("md")
            .tempdir()
            .expect("a directory");
        reaper::guard(root.path());
        let endpoint = Endpoint::start().expect("a free port");
        let home = prepare(setup, root.path(), command, &endpoint);
        let child = spawn(missiond(root.path()), root.path());
        let slots = setup.slots.iter().map(|slot| slot.name.clone()).collect();
        let mut daemon = Daemon {
            child,
            slots,
            endpoint,
            home,
            root,
        };
        daemon.wait_until_it_answers();
        daemon
    }

    fn wait_until_it_answers(&mut self) {
        until("the daemon to answer", || {
            let ended = self.child.try_wait().expect("it is a child");
            assert!(ended.is_none(), "the daemon ended: {ended:?}");
            (self.cmd(&["status"]).code == 0).then_some(())
        });
    }

    /// Kills the daemon, and nothing else, as a crash would.
    pub fn crash(&mut self) {
        self.child.kill().expect("it is a child");
        self.child.wait().expect("it is a child");
    }

    /// Waits for its end after `missiond down`.
    pub fn ended(&mut self) {
        until("the daemon to end", || {
            self.child.try_wait().expect("it is a child")
        });
    }

    /// Starts the daemon again after [`Daemon::crash`] or `missiond down`.
    pub fn again(&mut self) {
        self.again_as(missiond(self.root.path()));
    }

    /// What a reboot does: no process is left, the runtime directory is empty, and the daemon is started.
    pub fn reboot(&mut self) {
        let running = processes::all_of(self.root());
        self.crash();
        processes::kill_all_of(self.root());
        until("the end of every process", || {
            let is_there = |pid: &i32| processes::start_of(*pid).is_some();
            (!running.iter().any(is_there)).then_some(())
        });
        fs::remove_dir_all(self.root().join("run/missiond")).expect("a runtime directory");
        self.again();
    }

    /// The same with another binary or another environment.
    pub fn again_as(&mut self, program: Command) {
        self.begin_as(program);
        self.wait_until_it_answers();
    }

    /// The same, without waiting until it answers.
    pub fn begin_as(&mut self, program: Command) {
        self.child.wait().expect("it is a child");
        self.child = spawn(program, self.root.path());
    }

    /// The exit code of a daemon that ends by itself.
    pub fn wait_for_its_end(&mut self) -> Option<i32> {
        let ended = || self.child.try_wait().expect("it is a child");
        until("the end of the daemon", ended).code()
    }

    /// The process of the daemon itself.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Everything of this daemon lies in here.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Runs `missiond` with these arguments, against this daemon, to its end.
    #[track_caller]
    pub fn cmd(&self, arguments: &[&str]) -> Output {
        self.spawn(arguments).end()
    }

    /// The same, with a text on standard input.
    #[track_caller]
    pub fn cmd_with_input(&self, arguments: &[&str], input: &str) -> Output {
        self.run(arguments, input).end()
    }

    /// The same, while the test goes on.
    pub fn spawn(&self, arguments: &[&str]) -> Running {
        self.run(arguments, "")
    }

    fn run(&self, arguments: &[&str], input: &str) -> Running {
        let mut command = missiond(self.root.path());
        command.args(arguments);
        Running::start(command, arguments.join(" "), input)
    }

    /// A line of a shell in this directory, with the environment of `missiond`.
    pub fn in_shell(&self, directory: &Path, line: &str) -> Output {
        let mut command = program_at(Path::new("sh"), self.root.path());
        command.args(["-c", line]).current_dir(directory);
        Running::start(command, line.to_owned(), "").end()
    }

    /// The answer of a command that must succeed, with `--json`.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        self.cmd(&arguments).expect(0).json()
    }

    /// The status of one slot.
    #[track_caller]
    pub fn status(&self, slot: &str) -> Value {
        self.json(&["status", slot])[0].clone()
    }

    #[track_caller]
    pub fn wait_state(&self, slot: &str, states: &str) {
        self.cmd(&["wait", slot, "--for", states, "--timeout", "50s"])
            .expect(0);
    }

    /// The dialog that is open in a slot, once one is.
    #[track_caller]
    pub fn wait_dialog(&self, slot: &str) -> Value {
        self.wait_state(slot, "confirming");
        self.status(slot)["dialog"].clone()
    }

    pub fn cwd(&self, slot: &str) -> PathBuf {
        setup::cwd(self.root.path(), slot)
    }

    /// The home directory of Claude Code.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn config(&self) -> PathBuf {
        self.root.path().join("slots.toml")
    }

    /// The log directory.
    pub fn logs(&self) -> PathBuf {
        self.root.path().join("logs")
    }

    /// The readable log of a slot.
    pub fn log(&self, slot: &str) -> String {
        self.logged(&format!("{slot}.log"))
    }

    /// A file in logs/.
    pub fn logged(&self, name: &str) -> String {
        fs::read_to_string(self.logs().join(name)).unwrap_or_default()
    }

    pub fn transcript(&self, slot: &str, session_id: &str) -> PathBuf {
        self.home.transcript_path(&self.cwd(slot), session_id)
    }

    fn explain(&self) {
        let stderr = fs::read_to_string(self.root.path().join("daemon.stderr"));
        eprintln!("--- daemon\n{}", stderr.unwrap_or_default());
        for slot in &self.slots {
            eprintln!("--- log of {slot}\n{}", end_of(&self.log(slot)));
            let command = missiond(self.root.path()).args(["screen", slot]).output();
            let screen = command.map(|output| output.stdout).unwrap_or_default();
            eprintln!("--- screen of {slot}\n{}", String::from_utf8_lossy(&screen));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.explain();
        }
        // Nothing is waited for but its end: a test of a clean stop says `down` itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        processes::kill_all_of(self.root.path());
        reaper::release(self.root.path());
    }
}

/// The last lines of a log, enough to see what led to a failure.
fn end_of(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// Writes everything that the daemon and Claude Code read.
fn prepare(setup: &Setup, root: &Path, command: &[String], endpoint: &Endpoint) -> Home {
    let written = "a directory of the test's own can be written";
    let policies = root.join("policies");
    fs::create_dir(&policies).expect(written);
    for (role, text) in setup.policy_files() {
        fs::write(policies.join(format!("{role}.toml")), text).expect(written);
    }
    let mut trusted = Vec::new();
    for slot in &setup.slots {
        let cwd = setup::cwd(root, &slot.name);
        fs::create_dir_all(&cwd).expect(written);
        if slot.trusted {
            trusted.push(cwd);
        }
    }
    for private in ["run", "state", "home"] {
        let mut builder = fs::DirBuilder::new();
        builder
            .mode(0o700)
            .create(root.join(private))
            .expect(written);
    }
    let options = HomeOptions {
        trusted,
        ask_about_key: false,
    };
    let home = Home::create(root, &options).expect(written);
    let environment = home.environment(&endpoint.url());
    let config = setup.slots_toml(root, command, &environment);
    fs::write(root.join("slots.toml"), config).expect(written);
    home
}

fn spawn(mut program: Command, root: &Path) -> Child {
    let stderr = File::options()
        .create(true)
        .append(true)
        .open(root.join("daemon.stderr"))
        .expect("a file");
    program
        .arg("run")
        .stdin(Stdio::null())
        .stdout(stderr.try_clone().expect("a file"))
        .stderr(stderr)
        .spawn()
        .expect("missiond runs")
}

/// The program with an environment in which nothing of this machine is.
pub fn missiond(root: &Path) -> Command {
    program_at(Path::new(env!("CARGO_BIN_EXE_missiond")), root)
}
