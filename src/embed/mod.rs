//! missiond as a library: the same supervisor inside another program, without a separate daemon or the command line.
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
//! # Shims
//! A small process, the shim, owns each terminal. The shim is the `missiond` program, which must be
//! installed (see [`Options::program`]). So slots and sessions survive a crash of your program; the next one that is
//! started with the same configuration, or `missiond run`, finds them again. [`Supervisor::shutdown`] ends them.
//!
//! While the supervisor runs, its control socket is there too: `missiond status`, `attach` and all other commands
//! work on it.
//!
//! # With a running daemon
//! [`Supervisor::connect_or_start`] uses the daemon that runs with the same configuration, and starts one in this
//! process if there is none.
//!
//! # Your own policy
//! [`Supervisor::with_policy`] accepts any [`PermissionPolicy`], and [`Supervisor::set_policy`] replaces it
//! while the slots run.
//!
//! # Without async
//! A synchronous program keeps a runtime and blocks on one call at a time:
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use missiond::embed::{Options, Supervisor};
//!
//! // Multi-threaded, so that the slots are supervised between two calls.
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

use crate::control::client::{Client, Dial, Notice};
use crate::control::execute::{self, News, Settings, dial_at};
use crate::control::identity::Wanted;
use crate::control::requests::{
    self, Close, CloseParams, CommandWords, EventsParams, ExecParams, LookParams, Method,
    SendParams, Spawn, Status, Submit, SubmitParams, Task, TaskParams, ToolAnswer, UnifiedExec,
};
use crate::core::model::{
    Event, Fault, RpcError, RunParams, Select, SlotStatus, SpawnParams, TaskState, TaskStatus,
};
use crate::core::policy::PermissionPolicy;
use crate::core::queue::plan::Run;
use crate::daemon::{DaemonError, DaemonHandle, Host, Order, OwnPolicy};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A supervisor: in this process, or a daemon that was already running ([`Supervisor::connect_or_start`]). Both are
/// used in the same way.
#[derive(Debug)]
pub struct Supervisor {
    dial: Dialled,
    /// `None` if the daemon runs in another process.
    embedded: Option<Embedded>,
}

/// The daemon in this process.
#[derive(Debug)]
struct Embedded {
    daemon: DaemonHandle,
    task: JoinHandle<Result<(), DaemonError>>,
}

/// An item of an event stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Event(Box<Event>),
    /// This many events were missed: the listener was too slow.
    Missed(u64),
}

/// A client of the supervisor's own socket.
struct Dialled(Dial);

impl std::fmt::Debug for Dialled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dial")
    }
}

impl Supervisor {
    /// Starts all slots of the configuration. All configuration errors are found before the first one starts.
    pub async fn start(options: Options) -> Result<Supervisor, DaemonError> {
        let program = options.installed_program().ok_or_else(no_program)?;
        let socket = options.socket()?;
        let (ready, is_ready) = oneshot::channel();
        let (config, env, policy) = options.into_parts();
        let host = Host::other(program, ready, policy);
        let mut task = tokio::spawn(async move { crate::control::run(host, config, &env).await });
        let daemon = tokio::select! {
            Ok(daemon) = is_ready => daemon,
            ended = &mut task => return Err(ended_early(ended)),
        };
        Ok(Supervisor {
            dial: Dialled(dial_at(&socket, Wanted::Process(std::process::id()))),
            embedded: Some(Embedded { daemon, task }),
        })
    }

    /// Like [`Supervisor::start`], with your own policy, which can be replaced later ([`Supervisor::set_policy`]).
    ///
    /// It judges each tool call, at the gate and at dialogs on the screen, together with the policy files of the roles:
    /// an *ask* or *deny* of a rule in a role's file stays, but the file's default does not apply. Your policy can't
    /// allow what no file can allow: writing missiond's own files, a command that can't be analysed, a call that is
    /// only partly known. `confirm always` is a single yes, since there is no file for a new rule. The policy is called
    /// on a separate thread. If it panics, or takes longer than five seconds, a person decides.
    pub async fn with_policy(
        options: Options,
        policy: impl PermissionPolicy + 'static,
    ) -> Result<Supervisor, DaemonError> {
        Supervisor::start(options.policy(policy)).await
    }

    /// Uses the daemon that runs with this configuration, or starts one in this process if there is none.
    ///
    /// A daemon that was already running continues after this handle is dropped, and judges by its own policies:
    /// options with your own policy are refused there.
    pub async fn connect_or_start(options: Options) -> Result<Supervisor, DaemonError> {
        if let Some(running) = Supervisor::connect(&options).await? {
            return Ok(running);
        }
        let again = options.clone();
        match Supervisor::start(options).await {
            // Another daemon was started at the same moment.
            Err(taken @ DaemonError::Taken { .. }) => {
                Supervisor::connect(&again).await?.ok_or(taken)
            }
            started => started,
        }
    }

    /// The daemon that runs with this configuration, if there is one.
    pub async fn connect(options: &Options) -> Result<Option<Supervisor>, DaemonError> {
        let socket = options.socket()?;
        let wanted = Wanted::Config(options.config_file().to_owned());
        let dial = dial_at(&socket, wanted);
        match dial().await {
            Ok(_) if options.has_policy() => Err(DaemonError::place(
                "the policy of this program",
                "a daemon runs with this configuration already, and judges by its own policies",
            )
            .next("end it with: missiond down, or write the rules into its policies")),
            Ok(_) => Ok(Some(Supervisor {
                dial: Dialled(dial),
                embedded: None,
            })),
            Err(error) if socket.exists() && error.fault == Fault::Refused => {
                Err(DaemonError::place("the socket", error))
            }
            Err(_) => Ok(None),
        }
    }

    /// Tells whether the daemon is in this process.
    pub fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// Replaces the policy; waiting dialogs are judged again. See [`Supervisor::with_policy`].
    pub async fn set_policy(
        &self,
        policy: impl PermissionPolicy + 'static,
    ) -> Result<(), RpcError> {
        self.judge_by(Some(OwnPolicy::new(policy))).await
    }

    /// Removes your policy, so that only the policy files of the roles judge.
    pub async fn remove_policy(&self) -> Result<(), RpcError> {
        self.judge_by(None).await
    }

    async fn judge_by(&self, own: Option<OwnPolicy>) -> Result<(), RpcError> {
        let Some(embedded) = &self.embedded else {
            let text =
                "the daemon runs in another process, which a policy of this program can't reach";
            return Err(RpcError::new(Fault::Refused, text)
                .next("write the rules into its policies, then: missiond reload"));
        };
        let order = embedded.daemon.order(|reply| Order::Judge { own, reply });
        order.await.map(drop)
    }

    /// The current status of all slots; sessions are requested by their ids.
    pub async fn statuses(&self) -> Result<Vec<SlotStatus>, RpcError> {
        self.call::<Status>(Select { slots: Vec::new() }).await
    }

    /// The current status of a slot or session.
    pub async fn status(&self, slot: &str) -> Result<SlotStatus, RpcError> {
        let slots = vec![slot.to_owned()];
        let mut found = self.call::<Status>(Select { slots }).await?;
        match found.len() {
            1 => Ok(found.remove(0)),
            _ => Err(RpcError::new(
                Fault::Usage,
                format!("{slot} is not one slot"),
            )),
        }
    }

    /// A stream of the events from now on.
    pub async fn events(&self) -> Result<BoxStream<'static, Heard>, RpcError> {
        if let Some(embedded) = &self.embedded {
            let bus = embedded.daemon.bus();
            bus.settled().await;
            let listener = bus.listen().events;
            return Ok(stream::unfold(listener, heard_next).boxed());
        }
        let params = EventsParams::default();
        let notices = self.dial().await?.events(params).await?;
        let heard = notices.filter_map(|notice| async move {
            match notice.ok()? {
                Notice::Event(event) => Some(Heard::Event(event)),
                Notice::Lagged { missed } => Some(Heard::Missed(missed)),
                Notice::Live { .. } | Notice::Unknown(_) => None,
            }
        });
        Ok(heard.boxed())
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
        let answer = self.call::<requests::Send>(params).await?;
        match answer.dialog {
            None => Ok(answer.response.unwrap_or_default()),
            Some(dialog) => Err(RpcError::new(
                Fault::NeedsPerson,
                format!("{slot} needs a person: {}", dialog.text),
            )),
        }
    }

    /// Starts a program in a new terminal.
    pub async fn open(&self, params: SpawnParams) -> Result<Session<'_>, RpcError> {
        Ok(self.session(&self.spawn(params).await?))
    }

    /// A handle for this session id; it is not checked whether the session exists.
    pub fn session(&self, id: &str) -> Session<'_> {
        Session::new(self, id.to_owned())
    }

    /// Starts a program in a new terminal and returns its id.
    pub async fn spawn(&self, params: SpawnParams) -> Result<String, RpcError> {
        Ok(self.call::<Spawn>(params).await?.id)
    }

    /// Runs one line in a shell and waits for its end, for at most ten minutes.
    pub async fn exec(&self, line: &str) -> Result<ToolAnswer, RpcError> {
        let params = ExecParams {
            command: CommandWords::Line(line.to_owned()),
            run: RunParams {
                owner_pid: Some(std::process::id()),
                ..RunParams::default()
            },
            look: LookParams {
                yield_ms: Some(600_000),
                ..LookParams::default()
            },
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

    /// Submits a prompt to the queue, for a slot or a `@role`.
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

    /// Submits a prompt and waits for the answer.
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

    /// Runs the tasks of a plan in parallel; `stop` ends all of them.
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

    /// Ends all slots and sessions, and the supervisor. A daemon in another process is only disconnected.
    pub async fn shutdown(self) -> Result<(), DaemonError> {
        self.end(false).await
    }

    /// Ends the supervisor; slots and sessions continue in their shims, for the next one.
    pub async fn leave(self) -> Result<(), DaemonError> {
        self.end(true).await
    }

    async fn end(self, keep: bool) -> Result<(), DaemonError> {
        let Some(Embedded { daemon, task }) = self.embedded else {
            return Ok(());
        };
        // A daemon that has already ended can't take the order.
        let _ = daemon.order(|reply| Order::Down { keep, reply }).await;
        task.await.unwrap_or_else(|error| Err(lost(error)))
    }
}

async fn heard_next(
    mut listener: crate::events::RecentEvents,
) -> Option<(Heard, crate::events::RecentEvents)> {
    let heard = match listener.next().await? {
        Ok(told) => Heard::Event(Box::new(told.event.clone())),
        Err(crate::events::Missed(missed)) => Heard::Missed(missed),
    };
    Some((heard, listener))
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
