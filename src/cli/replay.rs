use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::table;
use crate::core::cast::Recording;
use crate::core::claude::reading::{StateChange, replay};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// Reads a recording as the daemon would, a JSON line per change.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond replay logs/coder.cast
  missiond replay --plain logs/coder.cast
  ssh host cat coder.cast | missiond replay -")]
pub struct ReplayArgs {
    /// The recording (asciicast v2 or v3); `-` reads standard input
    file: PathBuf,
    /// Lines for people: the time, the state and what is asked
    #[arg(long, conflicts_with = "json")]
    plain: bool,
}

impl ReplayArgs {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let input: Box<dyn BufRead> = if self.file.as_os_str() == "-" {
            Box::new(std::io::stdin().lock())
        } else {
            let file = File::open(&self.file).map_err(|error| self.unreadable(error))?;
            Box::new(BufReader::new(file))
        };
        let recording = Recording::read(input).map_err(|error| self.unreadable(error))?;
        for change in replay(recording) {
            let change = change.map_err(|error| self.unreadable(error))?;
            if self.plain {
                context.out.line(plain(&change))?;
            } else {
                context.out.json(&change)?;
            }
        }
        Ok(())
    }

    fn unreadable(&self, error: impl std::fmt::Display) -> Failure {
        Failure::failed(format!("cannot replay {}: {error}", self.file.display()))
            .next("a recording is an asciicast file, such as <slot>.cast in the log directory")
    }
}

fn plain(change: &StateChange) -> String {
    let line = format!("{:9.3}  {}", change.t, change.state.name());
    match &change.dialog {
        Some(dialog) => format!("{line}  {}", table::question(dialog)),
        None => line,
    }
}
