//! Makes the recordings of one version of Claude Code at one size of the terminal, all scenes in one go:
//!
//! ```text
//! cargo build && cargo run --example record -- --claude PROGRAM --size 80x24
//! ```
//!
//! It needs no account: the program talks to the scripted endpoint and lives in a throw-away home. What is done, and
//! what a person must see then, stands in `scenes.toml`. Each session becomes `<version>-<size>/<session>.cast` with
//! its `.truth.json`; `--screens DIR` has the screen of every moment as text, to look at before the recordings are
//! kept. The labels come from the scene, from what the endpoint sent and from the text of the screen, never from the
//! reader: `RECORDINGS=DIR cargo test --test recordings` says how many of them are read right.

mod mcp;
mod scenes;
mod stage;
mod truth;

use anyhow::{Context, Result, bail};
use clap::Parser;
use missiond::core::claude::Version;
use missiond::lab::rehearsal::{Home, HomeOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Parser)]
struct Arguments {
    /// The program, and its first arguments: `--claude node --claude cli.js`
    #[arg(long, required_unless_present = "mcp")]
    claude: Vec<String>,
    /// Columns and rows of the terminal
    #[arg(long, default_value = "80x24", value_parser = size)]
    size: (u16, u16),
    /// Where the recordings go
    #[arg(long, default_value = "tests/recordings")]
    out: PathBuf,
    /// Where the screens go, as text
    #[arg(long)]
    screens: Option<PathBuf>,
    /// What is done and what must be seen then
    #[arg(long, default_value = scenes::SCENES)]
    scenes: PathBuf,
    /// Only sessions whose name begins so
    #[arg(long)]
    only: Vec<String>,
    /// Serves a tool on standard input and output, for Claude Code to call
    #[arg(long, hide = true)]
    mcp: bool,
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let sides = text.split_once('x');
    sides
        .and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)))
        .ok_or_else(|| "write it as COLUMNSxROWS".to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.mcp {
        return mcp::serve();
    }
    let version = version(&arguments.claude)?;
    let (cols, rows) = arguments.size;
    let folder = format!("{version}-{cols}x{rows}");
    let place = stage::Place {
        command: arguments.claude.clone(),
        version,
        size: arguments.size,
        missiond: missiond()?,
        out: arguments.out.join(&folder),
        screens: arguments.screens.map(|screens| screens.join(&folder)),
    };
    let wanted = |name: &str| {
        arguments.only.is_empty() || arguments.only.iter().any(|only| name.starts_with(only))
    };
    let mut told = stage::Told::default();
    for session in scenes::sessions(&arguments.scenes)? {
        if wanted(&session.name) && session.is_for(version) {
            stage::record(&place, &session, &mut told).await?;
        }
    }
    println!("{folder}: {told}");
    Ok(())
}

fn version(command: &[String]) -> Result<Version> {
    let (program, arguments) = command.split_first().context("no program")?;
    let home = Home::create(&std::env::temp_dir(), &HomeOptions::default())?;
    let said = Command::new(program)
        .args(arguments)
        .arg("--version")
        .env_clear()
        .envs(home.environment("http://127.0.0.1:9"))
        .output()
        .with_context(|| program.clone())?;
    let said = String::from_utf8_lossy(&said.stdout);
    Version::parse(&said).with_context(|| format!("{program} does not tell its version: {said:?}"))
}

/// The program that becomes the shim: built beside this one.
fn missiond() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let built = own.ancestors().nth(2).map(|dir| dir.join("missiond"));
    match built.filter(|path| Path::exists(path)) {
        Some(path) => Ok(path),
        None => bail!("missiond is not built: `cargo build` first"),
    }
}
