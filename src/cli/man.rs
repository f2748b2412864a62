use crate::cli::Cli;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use clap::CommandFactory;
use std::path::{Path, PathBuf};

/// Prints the manual page, or writes one for each command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond man | man -l -
  missiond man --out ~/.local/share/man/man1")]
pub struct Man {
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self.out {
            Some(directory) => write_all(&directory),
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(Cli::command())
                    .render(&mut page)
                    .map_err(|error| Failure::failed(format!("cannot make the page: {error}")))?;
                context.out.raw(&page)
            }
        }
    }
}

fn write_all(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .map_err(|error| {
            Failure::failed(format!("cannot write to {}: {error}", directory.display()))
        })
}
