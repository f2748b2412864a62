use crate::cli::context::{Context, unless_interrupted};
use crate::cli::done;
use crate::cli::duration;
use crate::cli::failure::Failure;
use crate::cli::spawn::{RunArgs, milliseconds};
use crate::control::requests::{
    CommandWords, ExecParams, LookParams, StdinParams, ToolAnswer, UnifiedExec as Request,
    WriteStdin,
};
use std::time::{Duration, Instant};

/// Between a command and the first look at it.
const YIELD: Duration = Duration::from_millis(100);

/// The daemon waits no longer for one look.
const ONE_LOOK: Duration = Duration::from_secs(5 * 60);

/// Longer than this after its time the daemon is taken for stuck.
const GRACE: Duration = Duration::from_secs(30);

/// Runs a command in a session, and prints what it writes at first.
///
/// Agents do so with unified_exec. It runs with the environment that this command has.
/// Where it still runs then, go on with type, write, output, wait or screen and its id.
///
/// The exit code is the command's, 128 and the number of the signal that ended it, 124 where its time was over, or 0
/// where it still runs. Where missiond ended it, for its memory or its owner, a line on standard error says why.
/// missiond's own failures have the usual codes, and a line on standard error that begins with
/// `missiond:`; with --json there is an answer on standard output only where the command was started.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session exec -- git status
  missiond session exec --yield 5s -- cargo check
  missiond session exec --timeout 10m -- make test
  missiond session exec --shell bash -- 'echo $RANDOM | tee number'
  missiond session exec --json -- python3 -i")]
pub struct Exec {
    /// How long to wait for output [default: 100ms, with --timeout until its end]
    #[arg(long = "yield", value_name = "TIME", value_parser = duration::parse)]
    time: Option<Duration>,
    /// Leave out the middle of what is longer; a token is about four characters
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_tokens: usize,
    /// With colours and all other control sequences
    #[arg(long)]
    raw: bool,
    /// The shell to run it in, as one line
    #[arg(long, value_name = "PATH")]
    shell: Option<String>,
    #[command(flatten)]
    run: RunArgs,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

fn left_running() -> Failure {
    let next = "see its id with: missiond session list\nend it with: missiond session close ID";
    Failure::interrupted("the command goes on").next(next)
}

impl Exec {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let (timeout, raw) = (self.run.timeout, self.raw);
        let params = self.params(context)?;
        let answer = answered(context, params);
        let answer = unless_interrupted(answer, left_running).await?;
        if context.out.json {
            context.out.json(&answer)?;
        } else if raw {
            context.out.raw(answer.output.as_bytes())?;
        } else if !answer.output.is_empty() {
            context.out.foreign(&answer.output)?;
        }
        if answer.running {
            let id = &answer.session_id;
            context.out.note(format!(
                "still running: missiond session follow{} {id}",
                context.target()
            ));
            return Ok(());
        }
        match timeout {
            Some(timeout) if answer.timed_out => {
                let timeout = humantime::format_duration(timeout);
                Err(Failure::timed_out(format!(
                    "the command was ended after {timeout}"
                )))
            }
            _ => match &answer.ended_because {
                Some(why) => Err(done::ended_by_missiond(answer.exit_code, why)),
                None => done::as_the_command(answer.exit_code),
            },
        }
    }

    fn params(self, context: &Context) -> Result<ExecParams, Failure> {
        // The program has some seconds to end after its time is over.
        let to_its_end = self.run.timeout.map(|timeout| timeout + GRACE);
        let time = self.time.or(to_its_end).unwrap_or(YIELD);
        let command = match self.shell {
            Some(_) => CommandWords::Line(self.command.join(" ")),
            None => CommandWords::Words(self.command),
        };
        Ok(ExecParams {
            command,
            run: self.run.params(context, self.shell)?,
            look: LookParams {
                yield_ms: Some(milliseconds(time)),
                max_tokens: Some(self.max_tokens),
                raw: self.raw,
            },
        })
    }
}

/// Looks as long as was asked, in several looks where one may not take so long.
async fn answered(context: &Context, params: ExecParams) -> Result<ToolAnswer, Failure> {
    let look = params.look;
    let time = Duration::from_millis(look.yield_ms.unwrap_or_default());
    let began = Instant::now();
    let mut answer = context
        .ask_for_session::<Request>(params, time.min(ONE_LOOK) + GRACE)
        .await?;
    while answer.running && began.elapsed() < time {
        let left = time.saturating_sub(began.elapsed()).min(ONE_LOOK);
        let again = StdinParams {
            session_id: answer.session_id.clone(),
            input: String::new(),
            look: LookParams {
                yield_ms: Some(milliseconds(left)),
                ..look
            },
        };
        let more = context
            .ask_within::<WriteStdin>(again, Some(left + GRACE))
            .await?;
        answer = ToolAnswer {
            output: answer.output + &more.output,
            truncated: answer.truncated || more.truncated,
            ..more
        };
    }
    Ok(answer)
}
