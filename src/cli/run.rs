use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::target;
use std::path::PathBuf;

/// Runs the daemon in the foreground (also without a verb: `missiond`).
///
/// The config is that of -c, else $MISSIOND_CONFIG, else $XDG_CONFIG_HOME/missiond/slots.toml. A
/// slots.toml in the current directory is never taken unasked: a cloned repository must not bring its
/// own approvals.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  missiond run -c slots.toml
  missiond -c slots.toml -v")]
pub struct Run {
    /// Leave the terminal's session first; `up` starts the daemon so
    #[arg(long, hide = true)]
    pub detached: bool,
}

impl Run {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let config = target::config_to_run(context)?;
        if self.detached {
            rustix::process::setsid()
                .map_err(|error| Failure::failed(format!("cannot leave the terminal: {error}")))?;
        }
        daemon(config)
    }
}

/// The one place where the daemon begins.
fn daemon(config: PathBuf) -> Result<(), Failure> {
    Err(Failure::failed(format!(
        "cannot run {}: this build has no daemon",
        config.display()
    )))
}
