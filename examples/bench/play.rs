//! The program in each terminal. It does what it is told by a line in the pipe `orders` of its directory, and writes into
//! the pipe `done` beside it when that was, in nanoseconds.

use crate::measure::now;
use anyhow::{Context, Result, bail};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Arguments: the directory with the material; what a slot adds to them is of no interest.
pub fn main(arguments: &[String]) -> Result<()> {
    if arguments.iter().any(|argument| argument == "--version") {
        println!("2.1.325 (Claude Code)");
        return Ok(());
    }
    let material = PathBuf::from(arguments.first().context("no directory")?);
    let mut terminal = tcgetattr(std::io::stdin())?;
    terminal.make_raw();
    tcsetattr(std::io::stdin(), OptionalActions::Now, &terminal)?;
    let mut out = std::io::stdout().lock();
    draw(&mut out, &material.join("idle"), 1)?;
    let orders = BufReader::new(open(Path::new("orders"))?);
    let mut done = open(Path::new("done"))?;
    for order in orders.lines() {
        let order = order?;
        let words: Vec<&str> = order.split(' ').collect();
        let at = match words[..] {
            ["draw", what] => draw(&mut out, &material.join(what), 1)?,
            ["flood", what, bytes] => draw(&mut out, &material.join(what), bytes.parse()?)?,
            _ => bail!("the order {order:?}"),
        };
        writeln!(done, "{at}")?;
    }
    Ok(())
}

/// Writes a file again and again until so many bytes are written; when the last write began.
fn draw(out: &mut impl Write, file: &Path, bytes: usize) -> Result<u64> {
    let text = fs::read(file)?;
    let mut written = 0;
    loop {
        let began = now();
        out.write_all(&text)?;
        out.flush()?;
        written += text.len();
        if written >= bytes {
            return Ok(began);
        }
    }
}

/// Opened for both directions, so that it never ends.
fn open(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.with_context(|| format!("{}", path.display()))
}

/// The other end of the pipes.
pub struct Player {
    orders: File,
    done: BufReader<File>,
}

impl Player {
    /// Makes the pipes in a directory in which a player is to run.
    pub fn prepare(directory: &Path) -> Result<Player> {
        fs::create_dir_all(directory)?;
        for name in ["orders", "done"] {
            let path = directory.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        }
        Ok(Player {
            orders: open(&directory.join("orders"))?,
            done: BufReader::new(open(&directory.join("done"))?),
        })
    }

    /// Has something done; when it was written.
    pub fn does(&mut self, order: &str) -> Result<u64> {
        self.begins(order)?;
        self.ends()
    }

    pub fn begins(&mut self, order: &str) -> Result<()> {
        Ok(writeln!(self.orders, "{order}")?)
    }

    pub fn ends(&mut self) -> Result<u64> {
        let mut line = String::new();
        self.done.read_line(&mut line)?;
        Ok(line.trim().parse()?)
    }
}

/// The command that plays from this material.
pub fn command(material: &Path) -> Result<Vec<String>> {
    let own = std::env::current_exe()?;
    let words = [own.as_path(), Path::new("play"), material];
    Ok(words.map(|word| word.display().to_string()).to_vec())
}
