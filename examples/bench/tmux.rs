//! tmux with one window, on a socket of its own.

use crate::Wanted;
use crate::floor::{add_dialogs, dialogs, flood};
use crate::measure::{Figures, Row, cpu_ms, median, now, until};
use crate::play::{self, Player};
use crate::recorded::{ASKED, Material, SIZE};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

pub const NAME: &str = "tmux";

pub fn is_installed() -> bool {
    let version = Command::new("tmux").arg("-V").output();
    version.is_ok_and(|version| version.status.success())
}

struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-f/dev/null").arg("-S").arg(&self.socket);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tmux {arguments:?}: {error}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.run(&["kill-server"]);
    }
}

pub fn measure(material: &Material, wanted: &Wanted, figures: &mut Figures) -> Result<()> {
    let root = tempfile::Builder::new().prefix("bench").tempdir()?;
    let mut player = Player::prepare(root.path())?;
    let tmux = Tmux {
        socket: root.path().join("socket"),
    };
    begin(&tmux, root.path(), &play::command(&material.root)?)?;
    player.does("draw idle")?;
    let server: u32 = tmux.run(&["display-message", "-p", "#{pid}"])?.parse()?;
    for (row, what) in [(Row::Unmarked, "unmarked"), (Row::Marked, "marked")] {
        if wanted.wants(row.name()) {
            figures.add(row, NAME, flood(&mut player, what, &[server])?);
        }
    }
    if wanted.wants(Row::Dialog.name()) {
        measure_dialogs(&tmux, &mut player, figures)?;
    }
    if wanted.wants(Row::Status.name()) {
        let status = || tmux.run(&["display-message", "-p", "#{pid}"]).map(drop);
        add_status(figures, NAME, status)?;
    }
    Ok(())
}

fn begin(tmux: &Tmux, root: &Path, command: &[String]) -> Result<()> {
    let (cols, rows) = (SIZE.0.to_string(), SIZE.1.to_string());
    let mut begin = vec!["new-session", "-d", "-x", &cols, "-y", &rows];
    begin.extend(command.iter().map(String::as_str));
    let output = tmux.command(&begin).current_dir(root).output()?;
    ensure!(output.status.success(), "tmux can't begin a session");
    tmux.run(&["set", "-g", "status", "off"])?;
    Ok(())
}

fn measure_dialogs(tmux: &Tmux, player: &mut Player, figures: &mut Figures) -> Result<()> {
    let mut client = tmux
        .command(&["-C", "attach"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let told = BufReader::new(client.stdout.take().context("it is piped")?);
    let mut told = told.lines();
    let times = dialogs(player, |_| {
        for line in told.by_ref() {
            if line?.contains(ASKED) {
                return Ok(now());
            }
        }
        anyhow::bail!("the client of tmux has ended")
    });
    client.kill()?;
    client.wait()?;
    add_dialogs(figures, NAME, &times?);
    Ok(())
}

/// How long a command takes that asks for a word on how things stand.
pub fn add_status(
    figures: &mut Figures,
    who: &'static str,
    status: impl Fn() -> Result<()>,
) -> Result<()> {
    const TIMES: usize = 40;
    until("a first answer", || status().ok())?;
    let before = cpu_ms(std::process::id(), true)?;
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let began = Instant::now();
        status()?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    let cpu = cpu_ms(std::process::id(), true)? - before;
    figures.add(Row::Status, who, median(&times));
    figures.add(Row::StatusCpu, who, cpu / TIMES as f64);
    Ok(())
}
