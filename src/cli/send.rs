use crate::cli::context::{Context, unless_interrupted};
use crate::cli::duration;
use crate::cli::failure::{Blame, Failure};
use crate::cli::{columns, complete, dialog, message, reconnect};
use crate::control::requests::{Send as Request, SendParams, Sent, SentParams};
use crate::core::claude::reading::Dialog;
use crate::core::model::{Fault, SendAnswer};
use std::time::Duration;

/// Sends a message to a slot, waits, and prints the answer.
///
/// The answer is the assistant's text after its last tool call, as written. Where the slot is busy the
/// message waits its turn; where a dialog is open it is refused (exit code 4). When Claude asks
/// something on the way that needs you, the question is shown and the exit code is 5; the turn goes on
/// once you answered.
///
/// Each message has an id, one of your own with --id or one that is made. The same id is sent once: repeated, also after
/// the daemon was killed, the command has the same answer. A daemon that is killed meanwhile may be away for 30 s.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond send coder 'Run the tests and fix what fails'
  missiond send coder --timeout 5m - < task.md
  missiond send coder --no-wait 'Now the docs'
  missiond send coder --slash /compact
  missiond send coder --id nightly-7 'Run the tests'
  missiond send coder --id nightly-7 --status   what became of it
  missiond send coder -- --dashes are text after two dashes")]
pub struct Send {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
    /// The message; several words are joined by blanks, `-` alone reads standard input
    #[arg(
        required_unless_present = "status",
        conflicts_with = "status",
        value_name = "TEXT"
    )]
    text: Vec<String>,
    /// Return once Claude Code has taken the message, or where the slot is busy once it is queued
    #[arg(long)]
    no_wait: bool,
    /// Stop waiting after this time (exit code 124); the turn goes on
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// The message begins with `!` and is meant as a shell command
    #[arg(long, conflicts_with = "slash")]
    shell: bool,
    /// The message begins with `/` and is meant as a command of Claude Code
    #[arg(long)]
    slash: bool,
    /// Your own id of the message: with the same id it is sent once
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Tell what became of the message with this --id, and send nothing
    #[arg(long, requires = "id")]
    status: bool,
}

impl Send {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        if let (true, Some(id)) = (self.status, &self.id) {
            let (slot, id) = (self.slot.clone(), id.clone());
            return sent(context, SentParams { slot, id }).await;
        }
        let timeout = self.timeout;
        let params = self.params()?;
        let (slot, id) = (params.slot.clone(), params.id.clone().unwrap_or_default());
        // With its id it is sent once, however often it is asked for.
        let then = format!("then see what became of it: missiond send {slot} --id {id} --status");
        let make = |timeout_ms| SendParams {
            timeout_ms,
            ..params.clone()
        };
        let answer = reconnect::ask_then::<Request>(context, timeout, &then, make);
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
            timeout_ms: None,
            shell: self.shell,
            slash: self.slash,
            id: self.id.or_else(|| Some(uuid::Uuid::new_v4().to_string())),
        })
    }
}

fn print(context: &Context, answer: &SendAnswer) -> Result<(), Failure> {
    if context.out.json {
        return Ok(());
    }
    match &answer.response {
        Some(response) => context.out.foreign(response),
        None => context
            .out
            .done(format!("{}: {}", answer.slot, answer.state)),
    }
}

async fn sent(context: &Context, params: SentParams) -> Result<(), Failure> {
    let sent = context.ask::<Sent>(params).await?;
    if context.out.json {
        return context.out.json(&sent);
    }
    context
        .out
        .line(format!("{} {}: {}", sent.slot, sent.id, sent.state))?;
    if let Some(error) = &sent.error {
        context.out.foreign(&error.message)?;
    }
    match &sent.response {
        Some(response) => context.out.foreign(&format!("\n{response}")),
        None => Ok(()),
    }
}

fn needs_person(context: &Context, slot: &str, dialog: &Dialog) -> Failure {
    if !context.out.json {
        let asked = dialog::Asked {
            width: columns::stderr_width(),
            ..dialog::Asked::new(slot, dialog)
        };
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
