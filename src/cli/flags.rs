//! The flags of every command.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Flags of every command")]
pub struct Flags {
    /// Print JSON: one object, or one per line for streams; errors too
    #[arg(long, global = true, hide_short_help = true)]
    pub json: bool,

    /// Say nothing but the answer and errors
    // No long form: `wait --quiet 500ms` means a slot that prints nothing.
    #[arg(short = 'q', global = true, hide_short_help = true)]
    pub quiet: bool,

    /// Say more about what is done; twice for even more
    #[arg(short, long, global = true, hide_short_help = true, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// When to use colours; `auto` obeys NO_COLOR and CLICOLOR_FORCE
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_short_help = true
    )]
    pub color: Colour,

    /// The daemon's socket; `up` and `run` listen there [else: $MISSIOND_SOCKET]
    #[arg(long, global = true, value_name = "PATH", hide_short_help = true)]
    pub socket: Option<PathBuf>,

    /// The daemon's config [else: $MISSIOND_CONFIG]
    #[arg(
        short,
        long,
        global = true,
        value_name = "FILE",
        hide_short_help = true
    )]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    #[default]
    Auto,
    Always,
    Never,
}

impl Flags {
    /// `auto` is decided for each stream by what it is and by the environment.
    pub fn apply_colour(&self) {
        match self.color {
            Colour::Auto => anstream::ColorChoice::Auto,
            Colour::Always => anstream::ColorChoice::Always,
            Colour::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}
