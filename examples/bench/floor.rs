//! The least that any supervisor does: it reads a PTY, draws what comes with alacritty_terminal and tells of it through one
//! channel.

use crate::Wanted;
use crate::measure::{self, Figures, Row, median, percentile};
use crate::play::{self, Player};
use crate::recorded::{ASKED, Material, SIZE};
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;
use anyhow::Result;
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

pub const NAME: &str = "floor";

pub fn measure(material: &Material, wanted: &Wanted, figures: &mut Figures) -> Result<()> {
    let root = tempfile::Builder::new().prefix("bench").tempdir()?;
    let mut player = Player::prepare(root.path())?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("floor")
        .arg(&material.root)
        .current_dir(root.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let measured = measure_child(&mut child, &mut player, wanted, figures);
    child.kill()?;
    child.wait()?;
    measured
}

fn measure_child(
    child: &mut Child,
    player: &mut Player,
    wanted: &Wanted,
    figures: &mut Figures,
) -> Result<()> {
    player.does("draw idle")?;
    for (row, what) in [(Row::Unmarked, "unmarked"), (Row::Marked, "marked")] {
        if wanted.wants(row.name()) {
            let rate = flood(player, what, &[child.id()])?;
            figures.add(row, NAME, rate);
        }
    }
    if wanted.wants(Row::Dialog.name()) {
        let mut told = BufReader::new(child.stdout.take().expect("it is piped"));
        // What was drawn before may have asked too.
        let times = dialogs(player, |since| {
            loop {
                let mut line = String::new();
                told.read_line(&mut line)?;
                let at: u64 = line.trim().parse()?;
                if at >= since {
                    return Ok(at);
                }
            }
        })?;
        add_dialogs(figures, NAME, &times);
    }
    Ok(())
}

/// Bytes that are written for a figure of throughput.
const FLOOD: usize = 24 << 20;

/// MB for each second that these processes use.
pub fn flood(player: &mut Player, what: &str, pids: &[u32]) -> Result<f64> {
    let before = measure::settled_cpu_ms(pids)?;
    player.does(&format!("flood {what} {FLOOD}"))?;
    let took = measure::settled_cpu_ms(pids)? - before;
    player.does("draw idle")?;
    Ok(FLOOD as f64 / 1e6 / (took / 1000.0))
}

/// How long it takes until each of many dialogs is told of, in milliseconds.
pub fn dialogs(player: &mut Player, mut told: impl FnMut(u64) -> Result<u64>) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for _ in 0..100 {
        player.does("draw idle")?;
        // A dialog comes up after a while, and not in the frame behind another one.
        std::thread::sleep(std::time::Duration::from_millis(60));
        let drawn = player.does("draw dialog")?;
        times.push(told(drawn)?.saturating_sub(drawn) as f64 / 1e6);
    }
    Ok(times)
}

pub fn add_dialogs(figures: &mut Figures, who: &'static str, times: &[f64]) {
    figures.add(Row::Dialog, who, median(times));
    figures.add(Row::DialogP99, who, percentile(times, 100));
}

/// The process that is measured. It prints when it saw a dialog.
pub fn main(material: &Path) -> Result<()> {
    let (cols, rows) = SIZE;
    let size = PtySize {
        rows,
        cols,
        ..PtySize::default()
    };
    let pair = native_pty_system().openpty(size)?;
    let mut command = CommandBuilder::from_argv(
        play::command(material)?
            .into_iter()
            .map(Into::into)
            .collect(),
    );
    command.cwd(std::env::current_dir()?);
    let _child = pair.slave.spawn_command(command)?;
    let mut reader = pair.master.try_clone_reader()?;
    let (sender, receiver) = mpsc::sync_channel::<bool>(64);
    std::thread::spawn(move || {
        let mut asks = false;
        while let Ok(now_asks) = receiver.recv() {
            if now_asks && !asks {
                println!("{}", measure::now());
            }
            asks = now_asks;
        }
    });
    let mut term = Term::new(Config::default(), &Grid, VoidListener);
    let mut parser: Processor = Processor::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = reader.read(&mut buffer)?;
        parser.advance(&mut term, &buffer[..count]);
        // A dialog is looked for in what comes alone, as in a flood nobody does more.
        let is_short = count < 8 << 10;
        sender.send(is_short && asks(&term))?;
    }
}

fn asks(term: &Term<VoidListener>) -> bool {
    let row = |line: i32| -> String {
        let cells = &term.grid()[Line(line)];
        (0..term.columns())
            .map(|col| cells[Column(col)].c)
            .collect()
    };
    (0..i32::from(SIZE.1)).any(|line| row(line).contains(ASKED))
}

struct Grid;

impl Dimensions for Grid {
    fn total_lines(&self) -> usize {
        SIZE.1.into()
    }

    fn screen_lines(&self) -> usize {
        SIZE.1.into()
    }

    fn columns(&self) -> usize {
        SIZE.0.into()
    }
}
