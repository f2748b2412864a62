//! Memory and answers of a daemon under a crowd:
//! `cargo build --release && cargo run --release --example soak -- SLOTS READERS CONNECTIONS`.
//!
//! It starts the `missiond` beside it and measures, one after the other:
//! - what each of SLOTS slots with a small program needs;
//! - how long commands take while a slot opens CONNECTIONS connections without end;
//! - what is needed when all slots write and each has a follower;
//! - what READERS clients cost that ask for all output and read nothing, and what of it is given back.

mod crowds;
#[path = "../shared/place.rs"]
mod place;
mod stage;

use anyhow::Result;
use crowds::{Followers, flood, neighbour, silent_readers};
use stage::{Memory, Stage};
use std::time::{Duration, Instant};

/// In which a slot without a load of its own is measured.
const QUIET: Duration = Duration::from_secs(5);
/// For which the busy slots write before they are measured.
const BUSY: Duration = Duration::from_secs(30);
/// For which silent readers stay: the daemon drops them before.
const SILENT: Duration = Duration::from_secs(30);
/// What was freed is given back within this time.
const GIVEN_BACK: Duration = Duration::from_secs(30);
/// How often each command is measured. The slowest counts.
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("flood") => return flood(std::env::var("SOAK_FLOOD")?.parse()?),
        Some("neighbour") => return neighbour(),
        _ => {}
    }
    let number = |at: usize, usual: usize| -> Result<usize> {
        arguments
            .get(at)
            .map_or(Ok(usual), |text| Ok(text.parse()?))
    };
    let (slots, readers, connections) = (number(0, 100)?, number(1, 400)?, number(2, 600)?);
    let stage = Stage::start(connections)?;
    let measured = measure(&stage, slots, readers);
    let down = stage.down();
    // The first error is the one that counts: what comes after it may only be its consequence.
    if let (Err(_), Err(error)) = (&measured, &down) {
        eprintln!("`down` has failed too: {error:#}");
    }
    measured?;
    println!("{:<52} {:>6} ms", "down", down?.as_millis());
    Ok(())
}

fn measure(stage: &Stage, slots: usize, readers: usize) -> Result<()> {
    let alone = stage.memory()?;
    print("two slots", alone);
    stage.add_slots(slots)?;
    std::thread::sleep(QUIET);
    let quiet = stage.memory()?;
    print(&format!("{slots} more of a small program"), quiet);
    let share = |of: u64, before: u64| of.saturating_sub(before) / slots.max(1) as u64;
    println!(
        "{:<52} {:>6} kB in the daemon, {} kB for its shim",
        "    each",
        share(quiet.pss, alone.pss),
        stage.shims()? / (slots as u64 + 2),
    );
    crowd_of_a_slot(stage)?;
    print("after that", stage.memory()?);
    if slots > 0 {
        busy(stage, slots)?;
        silence(stage, readers)?;
    }
    Ok(())
}

/// How long commands take while slot `crowd` opens connections without end.
fn crowd_of_a_slot(stage: &Stage) -> Result<()> {
    const COMMANDS: [&[&str]; 5] = [
        &["status"],
        &["screen", "neighbour"],
        &["interrupt", "neighbour"],
        &["interrupt", "crowd"],
        &["stop", "crowd"],
    ];
    let mut slowest = [Duration::ZERO; COMMANDS.len()];
    let mut slowest_call = Duration::ZERO;
    for _ in 0..ROUNDS {
        stage.begin_flood()?;
        slowest_call = slowest_call.max(stage.tool_call()?);
        for (command, slowest) in COMMANDS.iter().zip(&mut slowest) {
            *slowest = (*slowest).max(stage.takes(command)?);
        }
        stage.takes(&["start", "crowd"])?;
    }
    println!("connections of a slot without end, slowest of {ROUNDS}:");
    for (command, took) in COMMANDS.iter().zip(slowest) {
        println!("    {:<48} {:>6} ms", command.join(" "), took.as_millis());
    }
    let call = "a neighbour's tool call (its hook)";
    println!("    {call:<48} {:>6} ms", slowest_call.as_millis());
    Ok(())
}

fn busy(stage: &Stage, slots: usize) -> Result<()> {
    let before = stage.memory()?;
    let followers = Followers::start(stage.socket(), slots)?;
    stage.let_write(slots)?;
    std::thread::sleep(BUSY);
    let now = stage.memory()?;
    print(&format!("{slots} busy slots, each with a follower"), now);
    println!(
        "{:<52} {:>6} kB more in the daemon, {} MB were followed",
        "    each",
        now.pss.saturating_sub(before.pss) / slots as u64,
        followers.end()? >> 20,
    );
    Ok(())
}

fn silence(stage: &Stage, readers: usize) -> Result<()> {
    std::thread::sleep(QUIET);
    let before = stage.memory()?;
    print("the same without followers", before);
    let crowd = silent_readers(stage.socket(), readers)?;
    let most = most_memory(stage, SILENT)?;
    print(&format!("{readers} silent readers, at most"), most);
    let took = stage.takes(&["status"])?;
    println!("{:<52} {:>6} ms", "    status", took.as_millis());
    drop(crowd);
    for seconds in [10, 20, GIVEN_BACK.as_secs()] {
        std::thread::sleep(Duration::from_secs(10));
        print(&format!("{seconds} s after they left"), stage.memory()?);
    }
    let kept = stage.memory()?.pss.saturating_sub(before.pss);
    println!(
        "{:<52} {:>6} MB grown, {} MB of it kept",
        "    silent readers",
        most.pss.saturating_sub(before.pss) >> 10,
        kept >> 10
    );
    Ok(())
}

fn most_memory(stage: &Stage, within: Duration) -> Result<Memory> {
    let end = Instant::now() + within;
    let mut most = stage.memory()?;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(500));
        let now = stage.memory()?;
        if now.pss > most.pss {
            most = now;
        }
    }
    Ok(most)
}

fn print(what: &str, memory: Memory) {
    println!(
        "{what:<52} {:>6.1} MB (Pss; Rss {:.1})",
        memory.pss as f64 / 1024.0,
        memory.rss as f64 / 1024.0
    );
}
