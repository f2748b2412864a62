use crate::cli::context::{Context, unless_interrupted};
use crate::cli::done;
use crate::cli::failure::Failure;
use crate::cli::spawn::{EnvArgs, OwnerArgs, directory, milliseconds};
use crate::control::protocol::{CommandWords, ExecParams, UnifiedExec as Request};
use std::path::PathBuf;
use std::time::Duration;

/// Longer than this after its time the daemon is taken for stuck.
const GRACE: Duration = Duration::from_secs(30);

/// Runs a command in a session, and prints what it writes at first.
///
/// Agents do so with unified_exec.
/// Where it still runs then, go on with type, write, output, wait or screen and its id.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond exec -- git status
  missiond exec --yield 5s -- cargo check
  missiond exec --json -- python3 -i")]
pub struct Exec {
    /// How long to wait for output
    #[arg(long = "yield", value_name = "TIME", default_value = "100ms", value_parser = humantime::parse_duration)]
    time: Duration,
    /// Leave out the middle of what is longer; a token is about four characters
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_tokens: usize,
    /// With colours and all other control sequences
    #[arg(long)]
    raw: bool,
    /// The directory in which it runs [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    #[command(flatten)]
    owner: OwnerArgs,
    /// End it after this time
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    env: EnvArgs,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

fn left_running() -> Failure {
    let next = "see its id with: missiond sessions\nend it with: missiond close ID";
    Failure::interrupted("the command goes on").next(next)
}

impl Exec {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let limit = self.time + GRACE;
        let params = ExecParams {
            command: CommandWords::Words(self.command),
            cwd: Some(directory(context, self.cwd)?),
            shell: None,
            env: self.env.map(),
            owner: self.owner.owner,
            owner_pid: self.owner.owner_pid,
            timeout_ms: self.timeout.map(milliseconds),
            yield_ms: Some(milliseconds(self.time)),
            max_tokens: Some(self.max_tokens),
            raw: self.raw,
        };
        let answer = context.ask_for_session::<Request>(params, limit);
        let answer = unless_interrupted(answer, left_running).await?;
        if context.out.json {
            context.out.json(&answer)?;
        } else if !answer.output.is_empty() {
            context.out.foreign(&answer.output)?;
        }
        if answer.running {
            let id = &answer.session_id;
            context.out.note(format!(
                "still running: missiond follow{} {id}",
                context.target()
            ));
            return Ok(());
        }
        done::as_the_command(answer.exit_code)
    }
}
