//! What Claude Code wrote, from the recordings of the tests.

use anyhow::{Context, Result, ensure};
use missiond::core::cast::{CastKind, Recording};
use missiond::core::claude::reading::{Observer, State};
use missiond::core::terminal::Terminal;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

const RECORDINGS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/recordings/2.1.325-120x40"
);
pub const SIZE: (u16, u16) = (120, 40);
/// A line that is on the screen of the dialog only.
pub const ASKED: &str = "Do you want to proceed?";

/// The files that the programs in the terminals write from.
pub struct Material {
    pub root: PathBuf,
}

impl Material {
    pub fn prepare(root: &Path) -> Result<Material> {
        let mut files: Vec<PathBuf> = fs::read_dir(RECORDINGS)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|ending| ending == "cast"));
        files.sort();
        let (mut plain, mut marked) = (String::new(), String::new());
        for file in &files {
            for output in outputs(file)? {
                let output = unmarked(&output);
                plain += &output;
                marked += &in_marks(&output);
            }
        }
        fs::write(root.join("unmarked"), plain)?;
        fs::write(root.join("marked"), marked)?;
        let (idle, dialog) = screens(&Path::new(RECORDINGS).join("bash_allow.cast"))?;
        ensure!(dialog.contains(ASKED), "the dialog asks something else");
        fs::write(root.join("idle"), in_marks(&idle))?;
        fs::write(root.join("dialog"), in_marks(&dialog))?;
        Ok(Material {
            root: root.to_owned(),
        })
    }
}

fn unmarked(output: &str) -> String {
    output.replace("\x1b[?2026h", "").replace("\x1b[?2026l", "")
}

/// As Claude Code writes a frame.
fn in_marks(output: &str) -> String {
    format!("\x1b[?2026h{output}\x1b[?2026l")
}

fn outputs(file: &Path) -> Result<Vec<String>> {
    let recording = Recording::read(BufReader::new(File::open(file)?))?;
    let mut outputs = Vec::new();
    for event in recording {
        if let CastKind::Output(text) = event?.what {
            outputs.push(text);
        }
    }
    Ok(outputs)
}

/// Two screens of a recording, each drawn by itself: with the input box, and with the first dialog.
fn screens(file: &Path) -> Result<(String, String)> {
    let recording = Recording::read(BufReader::new(File::open(file)?))?;
    let mut terminal = Terminal::new(SIZE.0.into(), SIZE.1.into());
    let (mut observer, mut idle) = (Observer::new(), None);
    for event in recording {
        let event = event?;
        let CastKind::Output(text) = &event.what else {
            continue;
        };
        for frame in terminal.feed(event.at, text.as_bytes()) {
            match observer.see(&frame).state {
                State::Idle => idle = Some(terminal.snapshot()),
                State::Confirming if idle.is_some() => {
                    let idle = String::from_utf8(idle.take().context("no input box")?)?;
                    return Ok((idle, String::from_utf8(terminal.snapshot())?));
                }
                _ => {}
            }
        }
    }
    anyhow::bail!("{}: no dialog", file.display())
}
