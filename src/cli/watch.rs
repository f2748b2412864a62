use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::reconnect::DaemonConnection;
use crate::cli::{complete, reader, sanitise};
use crate::control::client::CallError;
use crate::control::requests::{Output as Request, OutputAnswer, OutputParams};
use std::io::IsTerminal;

/// How long the daemon may let us wait for more before it is asked again.
const ASK_AGAIN_MS: u64 = 30_000;

/// Prints what a session has written and goes on until it ends.
///
/// A file or a pipe gets the bytes as they are. A terminal gets the text with its colours; other control sequences are left
/// out unless --raw is given. Standard error says how the session ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session follow build
  missiond session follow build -n 0            only what comes from now on
  missiond session follow build --json          a line for each piece")]
pub struct Follow {
    /// The session
    #[arg(value_name = "ID", add = complete::slots())]
    id: String,
    /// Begin with the last N lines only
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
    /// Byte for byte, also to a terminal, with all control sequences
    #[arg(long)]
    raw: bool,
}

impl Follow {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        reader::while_read(self.follow(context)).await
    }

    async fn follow(self, context: &Context) -> Result<(), Failure> {
        let (mut daemon, mut client) = DaemonConnection::reach(context).await?;
        let mut params = OutputParams {
            slot: self.id,
            lines: self.lines,
            raw: true,
            ..OutputParams::default()
        };
        // What there is comes at once; only then is there something to wait for.
        let mut first = true;
        let harmless = !self.raw && std::io::stdout().is_terminal();
        let mut stream = harmless.then(sanitise::SanitisedStream::default);
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
            show(context, &answer, stream.as_mut())?;
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

/// `stream` makes it harmless for a terminal.
fn show(
    context: &Context,
    answer: &OutputAnswer,
    stream: Option<&mut sanitise::SanitisedStream>,
) -> Result<(), Failure> {
    match (answer.text.is_empty(), context.out.json, stream) {
        (true, ..) => Ok(()),
        (false, true, _) => context.out.json(answer),
        (false, false, None) => context.out.raw(&answer.bytes()),
        (false, false, Some(stream)) => context.out.raw(stream.pass(&answer.bytes()).as_bytes()),
    }
}

fn tell_end(context: &Context, answer: &OutputAnswer) -> Result<(), Failure> {
    if context.out.json {
        return context.out.json(answer);
    }
    context.out.note(end_in_words(answer));
    Ok(())
}

/// `build ended with exit code 0 (clean exit)`.
fn end_in_words(answer: &OutputAnswer) -> String {
    let how = match (answer.exit_code, answer.signal) {
        (_, Some(signal)) => format!("by signal {signal}"),
        (Some(code), None) => format!("with exit code {code}"),
        (None, None) => "in a way that is not known".to_owned(),
    };
    let why = answer.why.as_deref().map(sanitise::one_line);
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{} ended {how}{why}", answer.slot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_end_is_told_with_its_reason() {
        let ended = |exit_code: Option<i32>, signal: Option<i32>, why: Option<&str>| {
            let answer = json!({
                "slot": "build", "text": "", "start": 0, "end": 0, "total": 0, "dropped_bytes": 0,
                "truncated": false, "running": false, "exit_code": exit_code, "signal": signal, "why": why
            });
            end_in_words(&serde_json::from_value(answer).unwrap())
        };
        let clean = ended(Some(0), None, Some("clean exit"));
        assert_eq!(clean, "build ended with exit code 0 (clean exit)");
        assert_eq!(ended(Some(6), None, None), "build ended with exit code 6");
        let by_us = ended(None, Some(15), Some("over max_memory\u{1b}"));
        assert_eq!(by_us, r"build ended by signal 15 (over max_memory\x1b)");
    }
}
