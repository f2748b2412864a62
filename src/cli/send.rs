use crate::cli::context::{Context, unless_interrupted};
use crate::cli::failure::{Blame, Failure};
use crate::cli::{complete, dialog, message};
use crate::control::protocol::{Fault, Send as Request, SendAnswer, SendParams};
use crate::reading::Dialog;
use std::time::Duration;

/// The daemon keeps the time; this much later it is taken for stuck.
const GRACE: Duration = Duration::from_secs(10);

/// Sends a message to a slot, waits, and prints the answer.
///
/// The answer is the assistant's text after its last tool call, as written. Where the slot is busy the
/// message waits its turn; where a dialog is open it is refused (exit code 4). When Claude asks
/// something on the way that needs you, the question is shown and the exit code is 5; the turn goes on
/// once you answered.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond send coder 'Run the tests and fix what fails'
  missiond send coder --timeout 5m - < task.md
  missiond send coder --no-wait 'Now the docs'
  missiond send coder --slash /compact
  missiond send coder -- --dashes are text after two dashes")]
pub struct Send {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
    /// The message; several words are joined by blanks, `-` alone reads standard input
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// Return once Claude Code has taken the message
    #[arg(long)]
    no_wait: bool,
    /// Stop waiting after this time (exit code 124); the turn goes on
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
    /// The message begins with `!` and is meant as a shell command
    #[arg(long, conflicts_with = "slash")]
    shell: bool,
    /// The message begins with `/` and is meant as a command of Claude Code
    #[arg(long)]
    slash: bool,
}

impl Send {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let limit = self.timeout.map(|timeout| timeout + GRACE);
        let params = self.params()?;
        let slot = params.slot.clone();
        let answer = context.ask_within::<Request>(params, limit);
        let answer = unless_interrupted(answer, || left_running(&slot)).await?;
        if context.out.json {
            context.out.json(&answer)?;
        }
        match &answer.dialog {
            Some(dialog) => Err(needs_person(context, &slot, dialog)),
            None => print(context, &answer),
        }
    }

    fn params(self) -> Result<SendParams, Failure> {
        let text = message::text(&self.text)?;
        Ok(SendParams {
            slot: self.slot,
            text,
            wait: !self.no_wait,
            timeout_ms: self
                .timeout
                .map(|time| time.as_millis().try_into().unwrap_or(u64::MAX)),
            shell: self.shell,
            slash: self.slash,
        })
    }
}

fn print(context: &Context, answer: &SendAnswer) -> Result<(), Failure> {
    if context.out.json {
        return Ok(());
    }
    match &answer.response {
        Some(response) => context.out.foreign(response),
        None => context.out.done(format!("{}: taken", answer.slot)),
    }
}

fn needs_person(context: &Context, slot: &str, dialog: &Dialog) -> Failure {
    if !context.out.json {
        let asked = dialog::Asked::new(slot, dialog);
        let shown = dialog::render(slot, &asked, &context.target());
        context.out.aside(shown);
    }
    let message = format!("{slot} needs you; its turn goes on once you answered");
    Failure::new(Blame::Fault(Fault::NeedsPerson), message).next(format!(
        "then wait for it with: missiond wait {slot} --for idle"
    ))
}

fn left_running(slot: &str) -> Failure {
    Failure::interrupted("the turn goes on").next(format!(
        "see it with: missiond status {slot}\nend it with: missiond interrupt {slot}"
    ))
}
