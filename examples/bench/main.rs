//! What missiond costs, beside tmux and a floor (a PTY, alacritty_terminal and one channel), measured in one run:
//! `cargo build --release && cargo run --release --example bench -- [--rounds N] [--slots N] [--only WORDS] [--json FILE]`.
//!
//! All programs take turns in each round, so that a busy machine costs each of them the same. Each figure is the median of
//! the rounds; the ratio to missiond is the median of the ratios within a round. Trust the figures of processor time on a
//! machine that has other work, and those of the clock on one that has none.

mod floor;
mod measure;
mod missiond;
#[path = "../shared/place.rs"]
mod place;
mod play;
mod recorded;
mod table;
mod tmux;

use anyhow::{Context, Result, bail};
use measure::Figures;
use recorded::Material;
use std::path::{Path, PathBuf};

/// What the command line asks for.
pub struct Wanted {
    pub rounds: usize,
    /// Slots that are taken over, and in which memory is measured.
    pub slots: usize,
    only: Option<String>,
    json: Option<PathBuf>,
}

impl Wanted {
    fn read(arguments: &[String]) -> Result<Wanted> {
        let mut wanted = Wanted {
            rounds: 5,
            slots: 20,
            only: None,
            json: None,
        };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else {
                bail!("{} needs a value", pair[0]);
            };
            match name.as_str() {
                "--rounds" => wanted.rounds = value.parse()?,
                "--slots" => wanted.slots = value.parse()?,
                "--only" => wanted.only = Some(value.clone()),
                "--json" => wanted.json = Some(value.into()),
                _ => bail!("{name} is none of --rounds, --slots, --only and --json"),
            }
        }
        Ok(wanted)
    }

    /// Whether the row with this name is to be measured.
    pub fn wants(&self, row: &str) -> bool {
        self.only.as_ref().is_none_or(|only| row.contains(only))
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("play") => return play::main(&arguments[1..]),
        Some("floor") => return floor::main(Path::new(&arguments[1])),
        _ => {}
    }
    let wanted = Wanted::read(&arguments)?;
    let root = tempfile::Builder::new().prefix("bench").tempdir()?;
    let material = Material::prepare(root.path())?;
    let mut figures = Figures::default();
    if !tmux::is_installed() {
        println!("skipped: tmux, which is not installed");
    }
    for round in 1..=wanted.rounds {
        eprintln!("round {round} of {}", wanted.rounds);
        missiond::measure(&material, &wanted, &mut figures).context("missiond")?;
        if tmux::is_installed() {
            tmux::measure(&material, &wanted, &mut figures).context("tmux")?;
        }
        floor::measure(&material, &wanted, &mut figures).context("the floor")?;
    }
    table::print(&figures);
    if let Some(file) = &wanted.json {
        std::fs::write(file, table::json(&figures))?;
    }
    Ok(())
}
