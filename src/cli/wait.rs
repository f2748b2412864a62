use crate::cli::context::Context;
use crate::cli::duration;
use crate::cli::failure::Failure;
use crate::cli::slots::SomeSlots;
use crate::cli::{complete, done, reconnect, sanitise, states};
use crate::control::requests::{Wait as Request, WaitAnswer, WaitParams};
use crate::core::claude::reading::State;
use futures_util::future::join_all;
use std::time::Duration;

/// Waits until slots reach a state, end, are quiet or print a thing.
///
/// A daemon that is killed meanwhile may be away for 30 s: the waiting goes on with the next one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond wait coder --for idle,confirming --timeout 5m
  missiond wait coder --exit
  missiond wait --all --for idle
  missiond wait coder --output 'test result: ok'
  missiond wait coder --quiet 500ms
  missiond wait build --prompt          the shell of a session is done")]
pub struct Wait {
    #[command(flatten)]
    slots: SomeSlots,
    #[command(flatten)]
    until: Until,
    /// Stop waiting after this time (exit code 124)
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Until {
    /// Any of these states: starting, idle, thinking, responding, tool_running, confirming, error, exited
    #[arg(long = "for", value_name = "STATE", value_delimiter = ',', value_parser = states::parse, add = complete::states())]
    states: Vec<State>,
    /// The program ends
    #[arg(long)]
    exit: bool,
    /// Nothing is printed for this long
    #[arg(id = "quiet_for", long = "quiet", value_name = "TIME", value_parser = duration::parse)]
    quiet: Option<Duration>,
    /// The shell of a session waits for a command
    #[arg(long)]
    prompt: bool,
    /// A line that the program which runs shows, or prints from now on, matches this regular expression; what a program
    /// that has ended printed does not count
    #[arg(long, value_name = "REGEX")]
    output: Option<String>,
}

impl Wait {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        if let Some(pattern) = &self.until.output {
            regex::Regex::new(pattern)
                .map_err(|error| Failure::usage(format!("not a regular expression: {error}")))?;
        }
        let names = self.slots.names(context).await?;
        let until = &self.until;
        let waits = names.into_iter().map(|slot| {
            let make = move |left| until.params(slot.clone(), left);
            reconnect::ask::<Request>(context, self.timeout, make)
        });
        let mut failures = Vec::new();
        for outcome in join_all(waits).await {
            match outcome {
                Ok(answer) => print(context, &answer)?,
                Err(failure) => failures.push(failure),
            }
        }
        done::settle(context, failures)
    }
}

impl Until {
    fn params(&self, slot: String, timeout_ms: Option<u64>) -> WaitParams {
        WaitParams {
            slot,
            states: self.states.clone(),
            exit: self.exit,
            quiet_ms: self.quiet.map(milliseconds),
            output: self.output.clone(),
            prompt: self.prompt,
            timeout_ms,
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

fn print(context: &Context, answer: &WaitAnswer) -> Result<(), Failure> {
    if context.out.json {
        return context.out.json(answer);
    }
    let mut line = format!("{}: {}", answer.slot, answer.state.name());
    if let Some(code) = answer.exit_code {
        line += &format!(", exit code {code}");
    }
    if let Some(matched) = &answer.matched {
        line += &format!(": {}", sanitise::one_line(matched));
    }
    context.out.done(line)
}
