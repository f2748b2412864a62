use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::control::requests::NotifyTest;
use crate::core::model::{ChannelTest, Nothing};

/// Tries the channels by which the daemon calls you.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond notify test
  missiond notify test --json")]
pub struct Notify {
    #[command(subcommand)]
    command: NotifyVerb,
}

#[derive(Debug, clap::Subcommand)]
enum NotifyVerb {
    /// Send a test message by each channel of [notify], and say what became of it
    ///
    /// The daemon sends it, with the settings and the environment that it would call you with. Quiet hours do not hold it
    /// back. If a message does not arrive, the exit code is 1.
    Test,
}

impl Notify {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let NotifyVerb::Test = self.command;
        let tested = context.ask::<NotifyTest>(Nothing {}).await?;
        if tested.is_empty() {
            return Err(Failure::usage("slots.toml has no channel in [notify]")
                .next("add one, such as [notify.ntfy] with a url: docs/notifications.md"));
        }
        if context.out.json {
            context.out.json(&tested)?;
        } else {
            tested
                .iter()
                .try_for_each(|one| context.out.line(in_words(one)))?;
        }
        let failed = tested.iter().filter(|one| !one.ok).count();
        match failed {
            0 => Ok(()),
            1 => Err(Failure::failed("1 message did not arrive")),
            count => Err(Failure::failed(format!("{count} messages did not arrive"))),
        }
    }
}

fn in_words(test: &ChannelTest) -> String {
    let channel = format!("{:<8}", test.channel);
    match (&test.error, test.duration_ms) {
        (Some(error), _) => format!("{channel}  FAILED  {error}"),
        (None, time) => format!("{channel}  sent    {} ms", time.unwrap_or_default()),
    }
}
