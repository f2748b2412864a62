use crate::cli::context::{ANSWER_LIMIT, Context};
use crate::cli::duration;
use crate::cli::failure::Failure;
use crate::cli::sanitise;
use crate::control::execute::environment_of_caller;
use crate::control::requests::Spawn as Request;
use crate::core::model::{RunParams, SpawnParams};
use crate::core::settings::limits::Limits;
use std::path::PathBuf;
use std::time::Duration;

/// Starts a session: a program, or your shell, in its own terminal.
///
/// It lives on until it is closed, also when the daemon is started again. It runs with the environment that this
/// command has. Its id is printed on standard output, what it writes at first on standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session spawn                                  your shell, here
  missiond session spawn --id build -- cargo build
  missiond session spawn --id web --cwd ~/site --timeout 1h -- python3 -m http.server
  missiond session spawn --owner orchestrator:planner --owner-pid $$ -- bash")]
pub struct Spawn {
    /// A name of your own [default: a UUID]
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// The shell to run [default: $SHELL]
    #[arg(long, value_name = "PATH")]
    shell: Option<String>,
    /// Columns of its terminal
    #[arg(long, value_name = "N")]
    cols: Option<u16>,
    /// Rows of its terminal
    #[arg(long, value_name = "N")]
    rows: Option<u16>,
    #[command(flatten)]
    run: RunArgs,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// How the program of a session is run.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Whose it is, such as orchestrator:planner [default: user]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// End it when this process ends
    #[arg(long, value_name = "PID", requires = "owner")]
    owner_pid: Option<u32>,
    /// The directory in which it runs [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// In a login shell
    #[arg(long)]
    login: bool,
    /// End it after this time; exec then ends with 124
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub timeout: Option<Duration>,
    /// End it when its processes hold more memory than this, such as 500MB
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    max_memory: Option<u64>,
    /// CPU time of each process, in whole seconds; then SIGXCPU ends it
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    max_cpu: Option<Duration>,
    /// Files that each process may have open
    #[arg(long, value_name = "N")]
    max_files: Option<u64>,
    /// Processes and threads of this user in all, beyond which none is started; not for root
    #[arg(long, value_name = "N")]
    max_processes: Option<u64>,
    /// The largest file that a process may write, such as 1GB; then SIGXFSZ ends it
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    max_file_size: Option<u64>,
    /// A variable on top of the environment of this command; can be given again
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
}

impl RunArgs {
    /// The parameters, with the whole environment: the caller's, and what was named on top.
    pub fn params(self, context: &Context, shell: Option<String>) -> Result<RunParams, Failure> {
        let mut env = environment_of_caller();
        env.extend(self.variables);
        Ok(RunParams {
            owner: self.owner,
            owner_pid: self.owner_pid,
            cwd: Some(directory(context, self.cwd)?),
            shell,
            login: self.login,
            timeout_ms: self.timeout.map(milliseconds),
            env,
            env_clear: true,
            max_memory: self.max_memory,
            limits: Limits {
                cpu_ms: self.max_cpu.map(milliseconds),
                files: self.max_files,
                processes: self.max_processes,
                file_size: self.max_file_size,
            },
            with_connection: false,
        })
    }
}

impl Spawn {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let shell = self.shell.or_else(|| own_shell(&self.command));
        let params = SpawnParams {
            id: self.id,
            command: self.command,
            line: None,
            cols: self.cols,
            rows: self.rows,
            run: self.run.params(context, shell)?,
        };
        let answer = context
            .ask_for_session::<Request>(params, ANSWER_LIMIT)
            .await?;
        if context.out.json {
            return context.out.json(&answer);
        }
        // Standard output has the id alone, for id=$(missiond session spawn …).
        match answer.output.trim_end() {
            "" => {}
            output => context.out.note(sanitise::text(output)),
        }
        context.out.line(&answer.id)
    }
}

/// The person's shell, where a shell is what is run: the daemon may have been started with another one.
fn own_shell(command: &[String]) -> Option<String> {
    let shell = || {
        std::env::var("SHELL")
            .ok()
            .filter(|shell| !shell.is_empty())
    };
    command.is_empty().then(shell).flatten()
}

/// The directory that was named, or this one.
fn directory(context: &Context, named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let here = &context.env.cwd;
    let directory = match named {
        Some(named) if named.as_os_str().is_empty() => return Ok(named),
        Some(named) => here.join(named),
        None => here.clone(),
    };
    if directory.is_relative() {
        let gone = Failure::usage("the current directory is gone, or can't be told");
        return Err(gone.next("go to another one, or name one: --cwd DIR"));
    }
    Ok(directory)
}

pub fn milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

fn memory(text: &str) -> Result<u64, String> {
    crate::core::settings::parse_size(text)
        .ok_or_else(|| "write a size such as 500MB or 2GB".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
