//! A long night: random messages, dialogs, kills, stops, reloads, lost paths and a full disk, on real Claude Codes and
//! plain programs together. After each step it checks what always has to hold.
//!
//! `cargo build --release && cargo run --release --example night -- --minutes 60`
//!
//! The seed is printed first; `--seed` takes it again. It needs no account: Claude Code talks to a scripted endpoint.

mod checks;
mod place;
#[path = "../../tests/support/program.rs"]
mod program;
mod steps;

use checks::Checks;
use clap::Parser;
use place::Place;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use steps::Step;

#[derive(Parser)]
struct Arguments {
    /// How long it goes on
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// The seed of an earlier night
    #[arg(long)]
    seed: Option<u64>,
    /// Slots of Claude Code
    #[arg(long, default_value_t = 2)]
    claudes: usize,
    /// Slots of a plain program
    #[arg(long, default_value_t = 3)]
    shells: usize,
    /// The Claude Code to run [default: the one that the tests have installed]
    #[arg(long, value_name = "PROGRAM")]
    claude: Option<PathBuf>,
    /// A kind of step that is left out, such as `lose sockets`
    #[arg(long, value_name = "KIND")]
    leave_out: Vec<String>,
}

/// SplitMix64: the same seed makes the same night, as far as the programs allow.
pub struct Dice(u64);

impl Dice {
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.throw() % limit.max(1) as u64) as usize
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let seed = arguments
        .seed
        .unwrap_or_else(|| u64::from(std::process::id()) ^ clock());
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let mut place = Place::new(
        arguments.claudes,
        arguments.shells,
        arguments.claude.as_deref(),
    )?;
    let mut checks = Checks::new(&place)?;
    let end = Instant::now() + Duration::from_secs(60 * arguments.minutes);
    let mut done: BTreeMap<String, u32> = BTreeMap::new();
    let mut failures = Vec::new();
    while Instant::now() < end && failures.is_empty() {
        let step = Step::choose(&mut dice, &place, &arguments.leave_out);
        println!("{} {step}", chrono::Local::now().format("%H:%M:%S"));
        *done.entry(step.kind().to_owned()).or_default() += 1;
        step.take(&mut place, &mut dice)?;
        failures.extend(checks.after_step(&mut place)?);
    }
    failures.extend(checks.at_the_end(&mut place)?);
    println!("seed {seed}: {done:?}");
    println!("{}", checks.figures());
    place.end();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    println!("everything held");
    Ok(())
}

fn clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64)
}
