use crate::cli::context::{Context, unless_interrupted};
use crate::cli::duration;
use crate::cli::failure::Failure;
use crate::cli::spawn::milliseconds;
use crate::cli::{complete, done};
use crate::control::requests::{Type as Request, TypeParams};
use std::time::Duration;

/// Longer than this after its time the daemon is taken for stuck.
const GRACE: Duration = Duration::from_secs(10);

/// Types a line into a session, with Enter behind it.
///
/// With --wait it prints what the command wrote, and its exit code is the command's: bash and zsh that missiond
/// started say themselves when they are done. Another program is done when the line that stands at its cursor now, its
/// prompt, comes back and stands. --until-prompt names the prompt, --quiet waits until nothing more comes. Ctrl-C ends
/// the waiting alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session type build 'cargo build' --wait --timeout 10m
  missiond session type py 'print(6 * 7)' --wait
  missiond session type db 'select 1;' --until-prompt '^postgres=# $'
  missiond session type installer yes
  missiond session type build 'cargo test' --wait --json | jq .exit_code")]
pub struct Type {
    /// The session
    #[arg(value_name = "ID", add = complete::slots())]
    id: String,
    /// The line; several are entered as one
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// Wait until the shell is at its prompt again
    #[arg(long)]
    wait: bool,
    /// Wait until nothing was written for this long
    #[arg(id = "quiet_for", long = "quiet", value_name = "TIME", conflicts_with = "wait", value_parser = duration::parse)]
    quiet: Option<Duration>,
    /// Wait until the line at the cursor matches: the prompt of a program that does not say when it is done
    #[arg(long, value_name = "REGEX", conflicts_with_all = ["wait", "quiet_for"])]
    until_prompt: Option<String>,
    /// Stop waiting after this time (exit code 124)
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

/// Only the waiting has ended: the keyboard of the session is not this one.
fn left_running(id: &str) -> Failure {
    Failure::interrupted(&format!("what was typed goes on in {id}")).next(format!(
        "see it with: missiond session follow {id}\ninterrupt it with: missiond keys {id} ctrl+c"
    ))
}

impl Type {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let waits = self.wait || self.quiet.is_some() || self.until_prompt.is_some();
        let params = TypeParams {
            slot: self.id,
            text: self.text,
            wait: self.wait,
            quiet_ms: self.quiet.map(milliseconds),
            until_prompt: self.until_prompt,
            timeout_ms: self.timeout.map(milliseconds),
        };
        if !waits {
            let answer = context.ask::<Request>(params).await?;
            return match context.out.json {
                true => context.out.json(&answer),
                false => context.out.done(format!("{}: typed", answer.slot)),
            };
        }
        let limit = self.timeout.map(|timeout| timeout + GRACE);
        let id = params.slot.clone();
        let answer = context.ask_within::<Request>(params, limit);
        let answer = unless_interrupted(answer, || left_running(&id)).await?;
        if context.out.json {
            context.out.json(&answer)?;
        } else if let Some(output) = answer.output.as_deref().filter(|output| !output.is_empty()) {
            context.out.foreign(output)?;
        }
        if answer.truncated {
            context.out.note("some of the output was left out");
        }
        done::as_the_command(answer.exit_code)
    }
}
