//! missiond inside another program: the same supervisor, with no daemon to start and no command line between.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use missiond::embed::{Options, Supervisor};
//!
//! let supervisor = Supervisor::start(Options::from_config("slots.toml")?).await?;
//! let answer = supervisor.send("coder", "Run the tests").await?;
//! println!("{answer}");
//! supervisor.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Who holds the terminals
//! Each terminal is held by a small process of its own, the shim, which is the `missiond` program: it must be
//! installed (see [`Options::program`]). So slots and sessions outlive a program that crashes; the next one that is
//! started with the same configuration, or `missiond run`, finds them again. [`Supervisor::shutdown`] ends them.
//!
//! While the supervisor runs, its control socket is there too: `missiond status`, `attach` and all other commands
//! work on it.
//!
//! # Without async
//! A program that does not want to be async keeps a runtime and waits for one thing at a time:
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use missiond::embed::{Options, Supervisor};
//!
//! // With a thread of its own, so that the slots are looked after between two calls.
//! let runtime = tokio::runtime::Runtime::new()?;
//! let supervisor = runtime.block_on(Supervisor::start(Options::in_directory("/tmp/work")?))?;
//! let ended = runtime.block_on(supervisor.exec("echo hello"))?;
//! assert_eq!((ended.exit_code, ended.output.trim()), (Some(0), "hello"));
//! runtime.block_on(supervisor.shutdown())?;
//! # Ok(())
//! # }
//! ```

mod options;
mod session;

pub use options::{Options, OptionsError};
pub use session::Session;

use crate::control::client::{Client, Dial};
use crate::control::identity::Wanted;
use crate::control::protocol as control;
use crate::control::protocol::{
    Close, CloseParams, CommandWords, Event, ExecParams, Fault, Method, RpcError, SendParams,
    SlotStatus, Spawn, SpawnParams, Submit, SubmitParams, Task, TaskParams, TaskState, TaskStatus,
    ToolAnswer, UnifiedExec,
};
use crate::daemon::{self, DaemonError, DaemonHandle, Host, Order, Slots};
use crate::tasks::execute::{self, News, Settings, dial_at};
use crate::tasks::plan::Run;
use futures_util::{Stream, stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A supervisor in this process.
#[derive(Debug)]
pub struct Supervisor {
    daemon: DaemonHandle,
    dial: Dialled,
    task: JoinHandle<Result<(), DaemonError>>,
}

/// What an event listener hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Event(Box<Event>),
    /// So many events were missed: the listener was too slow.
    Missed(u64),
}

/// The way to the supervisor's own socket.
struct Dialled(Dial);

impl std::fmt::Debug for Dialled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dial")
    }
}

impl Supervisor {
    /// Starts all slots of the configuration. Everything that can be wrong is found before the first one starts.
    pub async fn start(options: Options) -> Result<Supervisor, DaemonError> {
        let Options {
            config,
            env,
            program,
        } = options;
        let program = program
            .filter(|program| program.is_file())
            .ok_or_else(no_program)?;
        let socket = env
            .socket_for(&config.daemon)
            .map_err(|error| DaemonError::place("the socket", error))?;
        let (ready, is_ready) = oneshot::channel();
        let host = Host::other(program, ready);
        let mut task = tokio::spawn(async move { daemon::run_in(host, config, &env).await });
        let daemon = tokio::select! {
            Ok(daemon) = is_ready => daemon,
            ended = &mut task => return Err(ended_early(ended)),
        };
        Ok(Supervisor {
            daemon,
            dial: Dialled(dial_at(&socket, Wanted::Process(std::process::id()))),
            task,
        })
    }

    /// The slots and sessions by name, each with its handle.
    pub fn slots(&self) -> Slots {
        self.daemon.slots()
    }

    /// How a slot or session stands now.
    pub fn status(&self, slot: &str) -> Option<SlotStatus> {
        self.daemon.slots().get(slot).map(|slot| slot.status())
    }

    /// What happens from now on.
    pub fn events(&self) -> impl Stream<Item = Heard> + Send + 'static + use<> {
        let listener = self.daemon.bus.listen().events;
        stream::unfold(listener, |mut listener| async move {
            let heard = match listener.recv().await {
                Ok(event) => Heard::Event(Box::new(event)),
                Err(RecvError::Lagged(missed)) => Heard::Missed(missed),
                Err(RecvError::Closed) => return None,
            };
            Some((heard, listener))
        })
    }

    /// Sends a message to a slot of Claude Code and waits for the answer.
    pub async fn send(&self, slot: &str, text: &str) -> Result<String, RpcError> {
        let params = SendParams {
            slot: slot.to_owned(),
            text: text.to_owned(),
            wait: true,
            timeout_ms: None,
            shell: false,
            slash: false,
            id: None,
        };
        let answer = self.call::<control::Send>(params).await?;
        match answer.dialog {
            None => Ok(answer.response.unwrap_or_default()),
            Some(dialog) => Err(RpcError::new(
                Fault::NeedsPerson,
                format!("{slot} needs a person: {}", dialog.text),
            )),
        }
    }

    /// Starts a program in a terminal of its own.
    pub async fn open(&self, params: SpawnParams) -> Result<Session<'_>, RpcError> {
        Ok(self.session(&self.spawn(params).await?))
    }

    /// The session with this id, whether there is one or not.
    pub fn session(&self, id: &str) -> Session<'_> {
        Session::new(self, id.to_owned())
    }

    /// Starts a program in a terminal of its own; its id.
    pub async fn spawn(&self, params: SpawnParams) -> Result<String, RpcError> {
        Ok(self.call::<Spawn>(params).await?.id)
    }

    /// Runs one line in a shell and waits for its end, for at most ten minutes.
    pub async fn exec(&self, line: &str) -> Result<ToolAnswer, RpcError> {
        let params = ExecParams {
            owner_pid: Some(std::process::id()),
            yield_ms: Some(600_000),
            ..ExecParams::new(CommandWords::Line(line.to_owned()))
        };
        self.call::<UnifiedExec>(params).await
    }

    /// Ends a session and closes its terminal.
    pub async fn close(&self, session: &str) -> Result<(), RpcError> {
        let slot = Some(session.to_owned());
        let params = CloseParams {
            slot,
            ..CloseParams::default()
        };
        self.call::<Close>(params).await.map(drop)
    }

    /// Puts a prompt into the queue for a slot or a `@role`.
    pub async fn submit(&self, to: &str, text: &str) -> Result<TaskStatus, RpcError> {
        let params = SubmitParams {
            slot: to.to_owned(),
            text: text.to_owned(),
            ..SubmitParams::default()
        };
        self.call::<Submit>(params).await
    }

    /// Waits until a task has ended, or needs a person.
    pub async fn wait_for_task(&self, id: &str) -> Result<TaskStatus, RpcError> {
        let params = TaskParams {
            id: id.to_owned(),
            wait: true,
            timeout_ms: None,
        };
        self.call::<Task>(params).await
    }

    /// Submits a prompt, waits, and gives the answer.
    pub async fn ask(&self, to: &str, text: &str) -> Result<String, RpcError> {
        let submitted = self.submit(to, text).await?;
        let task = self.wait_for_task(&submitted.id).await?;
        let why = || task.error.clone().unwrap_or_default();
        match task.state {
            TaskState::Done => Ok(task.answer.unwrap_or_default()),
            TaskState::NeedsPerson => Err(RpcError::new(Fault::NeedsPerson, why())),
            _ => Err(RpcError::new(Fault::Failed, why())),
        }
    }

    /// Runs the tasks of a plan side by side; `stop` ends all of them.
    pub async fn run_tasks(
        &self,
        run: Run,
        stop: CancellationToken,
        tell: impl FnMut(&Run, usize, News),
    ) -> Run {
        let settings = Settings {
            dial: self.dial.0.clone(),
            environment: execute::environment_of_caller(),
            stop,
        };
        execute::execute(run, settings, tell).await
    }

    /// Any other method of the control socket.
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Answer, RpcError> {
        Ok(self.dial().await?.call::<M>(params).await?)
    }

    async fn dial(&self) -> Result<Client, RpcError> {
        (self.dial.0)().await
    }

    /// Ends all slots and sessions, and the supervisor with them.
    pub async fn shutdown(self) -> Result<(), DaemonError> {
        self.end(false).await
    }

    /// Ends the supervisor; slots and sessions live on in their shims, for the next one.
    pub async fn leave(self) -> Result<(), DaemonError> {
        self.end(true).await
    }

    async fn end(self, keep: bool) -> Result<(), DaemonError> {
        // One that has ended already has nothing to obey.
        let _ = self.daemon.order(|reply| Order::Down { keep, reply }).await;
        self.task.await.unwrap_or_else(|error| Err(lost(error)))
    }
}

fn no_program() -> DaemonError {
    DaemonError::place(
        "the missiond program",
        "it is not there, and it holds the terminals",
    )
    .next("install it, or say where it is by Options::program")
}

fn ended_early(ended: Result<Result<(), DaemonError>, tokio::task::JoinError>) -> DaemonError {
    match ended {
        Ok(Err(error)) => error,
        Ok(Ok(())) => DaemonError::place("the supervisor", "it ended before it was ready"),
        Err(error) => lost(error),
    }
}

fn lost(error: tokio::task::JoinError) -> DaemonError {
    DaemonError::place("the supervisor's task", error)
}
