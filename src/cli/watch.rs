use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::reconnect::Daemon;
use crate::cli::{complete, reader, sanitise};
use crate::control::client::CallError;
use crate::control::protocol::{Output as Request, OutputAnswer, OutputParams};

/// How long the daemon may let us wait for more before it is asked again.
const ASK_AGAIN_MS: u64 = 30_000;

/// Prints what a session has written and goes on until it ends.
///
/// The bytes are passed on as they are, colours and all. How the session ended is said on standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond follow build
  missiond follow build -n 0            only what comes from now on
  missiond follow build --json          a line for each piece")]
pub struct Follow {
    /// The session
    #[arg(value_name = "ID", add = complete::slots())]
    id: String,
    /// Begin with the last N lines only
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
}

impl Follow {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        reader::while_read(self.follow(context)).await
    }

    async fn follow(self, context: &Context) -> Result<(), Failure> {
        let (mut daemon, mut client) = Daemon::reach(context).await?;
        let mut params = OutputParams {
            slot: self.id,
            lines: self.lines,
            raw: true,
            ..OutputParams::default()
        };
        // What there is comes at once; only then is there something to wait for.
        let mut first = true;
        loop {
            let answer = match client.call::<Request>(params.clone()).await {
                // Sessions outlive the daemon, and places in their output hold for the next one.
                Err(CallError::Lost(why)) if !first => {
                    client = daemon.again(&why, None).await?;
                    continue;
                }
                answer => answer?,
            };
            // That nothing older is kept is no gap to one who has just come.
            if answer.dropped_bytes > 0 && !first {
                let missed = answer.dropped_bytes;
                context
                    .out
                    .note(format!("[missiond: {missed} bytes were missed]"));
            }
            show(context, &answer)?;
            if !answer.running && answer.end == answer.total {
                return tell_end(context, &answer);
            }
            params.lines = None;
            params.from = Some(answer.end);
            params.wait_ms = Some(ASK_AGAIN_MS);
            first = false;
        }
    }
}

fn show(context: &Context, answer: &OutputAnswer) -> Result<(), Failure> {
    match (answer.text.is_empty(), context.out.json) {
        (true, _) => Ok(()),
        (false, true) => context.out.json(answer),
        (false, false) => context.out.raw(&answer.bytes()),
    }
}

fn tell_end(context: &Context, answer: &OutputAnswer) -> Result<(), Failure> {
    let how = match (answer.exit_code, answer.signal) {
        (_, Some(signal)) => format!("by signal {signal}"),
        (Some(code), None) => format!("with exit code {code}"),
        (None, None) => "in a way that is not known".to_owned(),
    };
    if context.out.json {
        return context.out.json(answer);
    }
    let why = answer.why.iter().map(|why| format!(" ({why})"));
    let why = sanitise::one_line(&why.collect::<String>());
    context
        .out
        .note(format!("{} ended {how}{why}", answer.slot));
    Ok(())
}
