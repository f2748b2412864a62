use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::control::requests::Ping;
use crate::core::model::Nothing;

/// Shows the version of this program and of the daemon.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond version
  missiond version --json")]
pub struct VersionArgs {}

const OURS: &str = env!("CARGO_PKG_VERSION");

impl VersionArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let daemon = match context.ask::<Ping>(Nothing {}).await {
            Ok(pong) => Some(pong),
            Err(failure) if failure.blame == Blame::NoDaemon => None,
            Err(failure) => return Err(failure),
        };
        if context.out.json {
            let answer = serde_json::json!({ "version": OURS, "daemon": daemon });
            return context.out.json(&answer);
        }
        context.out.line(format!("missiond {OURS}"))?;
        match daemon {
            Some(pong) => context.out.line(format!(
                "daemon {} is {}, pid {}, config {}",
                pong.name,
                pong.version,
                pong.pid,
                pong.config.display()
            )),
            None => context.out.line("no daemon answers"),
        }
    }
}
