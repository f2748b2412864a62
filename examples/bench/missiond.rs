//! missiond with slots that read their program as Claude Code, in a directory of its own.

use crate::Wanted;
use crate::floor::{add_dialogs, dialogs, flood};
use crate::measure::{self, Figures, Row, median, now, private_mb, until};
use crate::place;
use crate::play::{self, Player};
use crate::recorded::Material;
use crate::tmux::add_status;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const NAME: &str = "missiond";
/// Written by each slot that is taken over: about 10 MB of recording.
const RECORDED: usize = 6 << 20;

pub fn measure(material: &Material, wanted: &Wanted, figures: &mut Figures) -> Result<()> {
    let mut stage = Stage::start(material)?;
    let measured = stage.measure(wanted, figures);
    let ended = stage.end();
    measured.and(ended)
}

struct Stage {
    daemon: Child,
    program: PathBuf,
    command: Vec<String>,
    players: Vec<Player>,
    // Last, so that it is removed when everything else has ended.
    root: tempfile::TempDir,
}

impl Stage {
    /// A daemon with one slot.
    fn start(material: &Material) -> Result<Stage> {
        let program = match std::env::var_os("BENCH_MISSIOND") {
            Some(program) => program.into(),
            None => place::missiond_beside()?,
        };
        let root = place::directory("bench", &program)?;
        let command = play::command(&material.root)?;
        let players = vec![Player::prepare(&work(root.path(), 0))?];
        write_config(root.path(), &command, 1)?;
        let daemon = spawn(&program, root.path())?;
        let mut stage = Stage {
            daemon,
            program,
            command,
            players,
            root,
        };
        stage.players[0].does("draw idle")?;
        Ok(stage)
    }

    fn measure(&mut self, wanted: &Wanted, figures: &mut Figures) -> Result<()> {
        let pids = [self.daemon.id(), self.shim(0)?];
        for (row, what) in [(Row::Unmarked, "unmarked"), (Row::Marked, "marked")] {
            if wanted.wants(row.name()) {
                let rate = flood(&mut self.players[0], what, &pids)?;
                figures.add(row, NAME, rate);
            }
        }
        if wanted.wants(Row::Dialog.name()) {
            self.dialogs(figures)?;
        }
        if wanted.wants(Row::Status.name()) {
            add_status(figures, NAME, || self.run(&["status"]))?;
        }
        if wanted.wants(Row::Search.name()) {
            figures.add(Row::Search, NAME, self.search()?);
        }
        let takes_over = wanted.wants(Row::TakeOver.name());
        if takes_over || wanted.wants(Row::Idle.name()) {
            self.memory(wanted.slots, figures)?;
        }
        if takes_over {
            self.take_over(figures)?;
        }
        Ok(())
    }

    fn dialogs(&mut self, figures: &mut Figures) -> Result<()> {
        let mut events = self.connect()?;
        events
            .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"events\",\"params\":{}}\n")?;
        let mut lines = BufReader::new(events).lines();
        let times = dialogs(&mut self.players[0], |_| {
            for line in lines.by_ref() {
                let line: Value = serde_json::from_str(&line?)?;
                if line["params"]["event"] == "dialog" {
                    return Ok(now());
                }
            }
            bail!("the events have ended")
        })?;
        add_dialogs(figures, NAME, &times);
        Ok(())
    }

    /// In the output of a session, by requests alone.
    fn search(&self) -> Result<f64> {
        let line = "seq -f 'line %g of what a program writes' 1 280000; echo all; exec cat";
        let session = self.ask("unified_exec", json!({"command": line, "yield_ms": 0}))?;
        let session = session["session_id"].clone();
        self.ask("wait", json!({"slot": session, "output": "^all"}))?;
        let mut times = Vec::new();
        for _ in 0..5 {
            let params = json!({"slot": session, "pattern": "line 27999[0-4] of"});
            let began = Instant::now();
            let found = self.ask("search", params)?;
            times.push(began.elapsed().as_secs_f64() * 1000.0);
            let count = found.as_array().map_or(0, Vec::len);
            ensure!(count == 5, "{count} lines were found");
        }
        self.ask("close", json!({"slot": session, "force": true}))?;
        Ok(median(&times))
    }

    /// Adds slots up to `slots`.
    fn memory(&mut self, slots: usize, figures: &mut Figures) -> Result<()> {
        let alone = private_mb(self.daemon.id())?;
        let first = self.players.len();
        for slot in first..slots {
            let player = Player::prepare(&work(self.root.path(), slot))?;
            self.players.push(player);
        }
        write_config(self.root.path(), &self.command, slots)?;
        self.run(&["reload"])?;
        let added = (slots - first) as f64;
        self.all("draw idle", first)?;
        self.wait_for_screens(slots)?;
        measure::settled_cpu_ms(&[self.daemon.id()])?;
        let idle = private_mb(self.daemon.id())?;
        figures.add(Row::Idle, NAME, (idle - alone) / added);
        Ok(())
    }

    /// All players do the same at once.
    fn all(&mut self, order: &str, first: usize) -> Result<()> {
        for player in &mut self.players[first..] {
            player.begins(order)?;
        }
        for player in &mut self.players[first..] {
            player.ends()?;
        }
        Ok(())
    }

    /// The daemon is killed, and the next one takes all slots over.
    fn take_over(&mut self, figures: &mut Figures) -> Result<()> {
        self.all(&format!("flood marked {RECORDED}"), 0)?;
        self.all("draw idle", 0)?;
        measure::settled_cpu_ms(&[self.daemon.id()])?;
        self.daemon.kill()?;
        self.daemon.wait()?;
        let began = Instant::now();
        self.daemon = spawn(&self.program, self.root.path())?;
        until("an answer", || self.ask("status", json!({})).ok())?;
        let answered = began.elapsed();
        self.wait_for_screens(self.players.len())?;
        let known = began.elapsed();
        let cpu = measure::cpu_ms(self.daemon.id(), false)?;
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        figures.add(Row::TakeOverAnswer, NAME, ms(answered));
        figures.add(Row::TakeOver, NAME, ms(known));
        figures.add(Row::TakeOverCpu, NAME, cpu);
        Ok(())
    }

    /// Until each slot has its input box on the screen.
    fn wait_for_screens(&self, slots: usize) -> Result<()> {
        for slot in 0..slots {
            until("a screen", || {
                let name = format!("s{slot}");
                let screen = self.ask("screen", json!({"slot": name})).ok()?;
                screen.to_string().contains('❯').then_some(())
            })?;
        }
        Ok(())
    }

    fn connect(&self) -> Result<UnixStream> {
        let socket = self.root.path().join("run/missiond/missiond.sock");
        Ok(UnixStream::connect(socket)?)
    }

    fn ask(&self, method: &str, params: Value) -> Result<Value> {
        let mut stream = self.connect()?;
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(stream, "{request}")?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        let mut answer: Value = serde_json::from_str(&line)?;
        ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        Ok(answer["result"].take())
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = missiond(&self.program, self.root.path());
        let output = command.args(arguments).stdin(Stdio::null()).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "missiond {arguments:?}: {error}");
        Ok(())
    }

    /// The process that is the parent of the slot's program.
    fn shim(&self, slot: usize) -> Result<u32> {
        let pid = until("a program that runs", || {
            let status = self.ask("status", json!({})).ok()?;
            status.as_array()?.get(slot)?["pid"].as_u64()
        })?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let fields = stat.rsplit(')').next().context("no fields")?;
        let parent = fields.split_whitespace().nth(1).context("no parent")?;
        Ok(parent.parse()?)
    }

    fn end(mut self) -> Result<()> {
        let down = self.run(&["down", "--yes"]);
        if down.is_err() {
            self.daemon.kill()?;
            let log = fs::read_to_string(self.root.path().join("daemon.log"))?;
            eprintln!("--- the daemon's log\n{log}");
        }
        self.daemon.wait()?;
        down
    }
}

fn spawn(program: &Path, root: &Path) -> Result<Child> {
    let daemon = missiond(program, root)
        .arg("run")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(root.join("daemon.log"))?)
        .spawn()?;
    Ok(daemon)
}

/// With an environment in which nothing of this machine is.
fn missiond(program: &Path, root: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", root)
        .env("XDG_RUNTIME_DIR", root.join("run"))
        .env("XDG_STATE_HOME", root.join("state"))
        .env("MISSIOND_CONFIG", root.join("slots.toml"))
        .current_dir(root);
    command
}

fn work(root: &Path, slot: usize) -> PathBuf {
    root.join("work").join(format!("s{slot}"))
}

fn write_config(root: &Path, command: &[String], slots: usize) -> Result<()> {
    let mut config = String::from("[daemon]\nlogs = \"logs\"\npolicies = \"policies\"\n");
    let command = toml::Value::from(command.to_vec());
    for slot in 0..slots {
        let cwd = toml::Value::from(work(root, slot).display().to_string());
        config += &format!(
            "\n[[slot]]\nname = \"s{slot}\"\nrole = \"r\"\ncwd = {cwd}\ncommand = {command}\n"
        );
    }
    fs::write(root.join("slots.toml"), config)?;
    Ok(())
}
