//! The daemon: starts the slots, keeps their handles by name, handles signals and orders, and ends everything in order.
//! The screen and the keys of a slot belong to the slot: nothing here reads a screen or presses a key.

mod alerts;
mod error;
mod event_log;
mod health;
mod holder;
mod host;
mod kept_policies;
mod orphans;
mod own_log;
mod places;
mod reload;
mod removed;
mod rules;
mod runtime_dir;
mod service;
mod serving;
mod sessions;
mod slot_task;
mod state_owner;
pub mod tasks;

pub use crate::os::daemon_lock::Holder;
pub use error::DaemonError;
pub use health::stopped;
pub use holder::{configs, files_of};
pub use host::Host;
pub use rules::{OwnPolicy, PoliciesInForce, PolicyInForce, Rules};
pub(crate) use runtime_dir::{check_log_directory, check_socket_directory};
pub use serving::{RemoteAnswer, Serving};
pub use sessions::{Gone, end_for, is_of_owner};

use crate::audit::{self, Audit};
use crate::config::{self, Config};
use crate::core::model::{
    Ailment, Always, Fault, Nothing, Pong, ReloadAnswer, RpcError, SpawnParams,
};
use crate::core::settings::{NotifyConfig, SlotConfig};
use crate::daemon::tasks::store::{Left, Store};
use crate::daemon::tasks::{TasksHandle, keeper};
use crate::events::Bus;
use crate::os::orphans::Shims;
use crate::os::paths::{self, Env};
use crate::os::pause::{self, Moment};
use crate::os::usage::Meter;
use crate::shim;
use crate::slot::once::OnceRequests;
use crate::slot::{self, SlotCommand, SlotContext, SlotHandle};
use alerts::AlertsHandle;
use health::Ailments;
use host::{HostSignals, Wish};
use places::PlaceKeeper;
use runtime_dir::RuntimeDir;
use sessions::{GoneOnes, Sessions};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// The maximum of queued orders; each is short, and people give them one at a time.
const MAX_ORDERS: usize = 16;

/// The limit for the start to wait for shims, which answer quickly: a stopped shim must not delay the other slots.
const LOOKING: std::time::Duration = std::time::Duration::from_secs(5);

/// How long to wait for programs after KILL. A program that still lives after this can't be ended.
const KILLED: std::time::Duration = std::time::Duration::from_secs(1);

/// The limit for writing the results of tasks when the daemon ends.
const LAST_NOTES: std::time::Duration = std::time::Duration::from_secs(2);

pub type Slots = Arc<BTreeMap<String, SlotHandle>>;

/// The policy in force of each slot.
pub type Policies = Arc<PoliciesInForce>;

pub type Reply<T> = oneshot::Sender<Result<T, RpcError>>;

/// A request that only the daemon itself can carry out.
#[derive(Debug)]
pub enum Order {
    Reload {
        reply: Reply<ReloadAnswer>,
    },
    /// Judges by this policy too from now on, or by the roles' policies alone. Waiting requests are judged again.
    Judge {
        own: Option<OwnPolicy>,
        reply: Reply<Nothing>,
    },
    /// Adds a narrow rule to a role's policy.
    AllowAlways {
        role: String,
        rule: String,
        reply: Reply<Always>,
    },
    Down {
        keep: bool,
        reply: Reply<Nothing>,
    },
    /// Reports that a slot that left the config was idle and has been stopped.
    Left {
        slot: String,
    },
    /// Starts a session; the reply comes when its program runs.
    Spawn {
        params: Box<SpawnParams>,
        reply: Reply<SlotHandle>,
    },
    /// Ends these sessions and removes their files; `done` is notified when each is gone.
    Close {
        ids: Vec<String>,
        why: String,
        force: bool,
        done: Vec<oneshot::Sender<()>>,
    },
    /// Reports that the program of a session to be removed has ended.
    SessionEnded {
        id: String,
        why: String,
    },
}

/// A handle to the daemon, for connections.
#[derive(Debug, Clone)]
pub struct DaemonHandle {
    context: Arc<SlotContext>,
    /// The process that runs only this daemon.
    own_process: Option<i32>,
    pub tasks: TasksHandle,
    alerts: AlertsHandle,
    slots: watch::Receiver<Slots>,
    policies: watch::Receiver<Policies>,
    gone: watch::Receiver<GoneOnes>,
    orders: mpsc::Sender<Order>,
    about: Pong,
    fault: watch::Receiver<Option<String>>,
    lost: watch::Receiver<Vec<String>>,
    missing: watch::Receiver<Vec<Ailment>>,
    health: Ailments,
}

impl DaemonHandle {
    pub fn bus(&self) -> &Bus {
        &self.context.bus
    }

    /// The task that calls people.
    pub fn alerts(&self) -> &AlertsHandle {
        &self.alerts
    }

    /// The requests with an id, each of which is done once.
    pub fn once(&self) -> &OnceRequests {
        &self.context.once
    }

    pub fn audit(&self) -> &Audit {
        &self.context.audit
    }

    pub fn meter(&self) -> &Arc<Meter> {
        &self.context.meter
    }

    pub fn slots(&self) -> Slots {
        self.slots.borrow().clone()
    }

    pub fn policies(&self) -> Policies {
        self.policies.borrow().clone()
    }

    pub fn pong(&self) -> Pong {
        Pong {
            config_fault: self.fault.borrow().clone(),
            wider_policies: self.wider_policies(),
            lost: self.lost.borrow().clone(),
            health: self.health(),
            ..self.about.clone()
        }
    }

    /// The problems that the daemon has now.
    pub fn health(&self) -> Vec<Ailment> {
        let mut health = self.health.borrow().clone();
        health.extend(self.missing.borrow().iter().cloned());
        health
    }

    fn wider_policies(&self) -> Vec<String> {
        self.policies().roles_that_wait()
    }

    /// Queues an order that has no reply.
    pub async fn give(&self, order: Order) -> Result<(), RpcError> {
        let ending = |_| RpcError::new(Fault::Failed, "the daemon is ending");
        self.orders.send(order).await.map_err(ending)
    }

    pub async fn order<T>(&self, make: impl FnOnce(Reply<T>) -> Order) -> Result<T, RpcError> {
        let ending = || RpcError::new(Fault::Failed, "the daemon is ending");
        let (reply, answer) = oneshot::channel();
        self.orders.send(make(reply)).await.map_err(|_| ending())?;
        answer.await.unwrap_or_else(|_| Err(ending()))
    }
}

/// A slot's handle and task.
#[derive(Debug)]
struct KeptSlot {
    handle: SlotHandle,
    task: JoinHandle<()>,
    /// Set if the slot has left the config: waits until the slot is idle, and stops it.
    leaving: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub struct Daemon {
    config: Config,
    rules: Rules,
    context: Arc<SlotContext>,
    kept: BTreeMap<String, KeptSlot>,
    published: watch::Sender<Slots>,
    in_force: watch::Sender<Policies>,
    orders: mpsc::Sender<Order>,
    notify: watch::Sender<NotifyConfig>,
    sessions: Sessions,
    gone: watch::Sender<GoneOnes>,
    /// Why the config on the disk was not accepted.
    fault: watch::Sender<Option<String>>,
    /// The files and directories that were removed and made again, as text.
    lost: watch::Sender<Vec<String>>,
    /// The files and directories that were removed and can't be made again now.
    missing: watch::Sender<Vec<Ailment>>,
    /// Whether a person has accepted the policies in force, in this daemon or in an earlier one.
    policies_are_known: bool,
}

/// Runs the daemon until a request or a signal ends it. All checks come before the first slot starts. `serve` starts
/// the server of requests: it gets the daemon's listener, unless the daemon has none.
pub async fn run<S: Serving>(
    mut host: Host,
    config: Config,
    env: &Env,
    serve: impl FnOnce(DaemonHandle, Option<UnixListener>) -> Option<S>,
) -> Result<(), DaemonError> {
    let mut runtime_dir = RuntimeDir::open(&config, env).await?;
    pause::at(Moment::Bound).await;
    let mut signals = host.signals()?;
    let context = Arc::new(context(&config, env, &runtime_dir, &host)?);
    let reaper = host.is_own().then(|| orphans::adopt(context.shims.clone()));
    let reaper = reaper.transpose()?;
    let rules = Rules::new(&config, &context).beside(host.take_policy());
    let living = removed::shims_at_start(&context, &config).await?;
    let (store, left) = task_store(&context)?;
    let (orders, queue) = mpsc::channel(MAX_ORDERS);
    let mut daemon = Daemon::new(config, rules, context, orders);
    let bus = daemon.context.bus.clone();
    let (notifier, alerts) = alerts::start(
        &daemon.context,
        daemon.notify.subscribe(),
        daemon.published.subscribe(),
    );
    daemon.bring_up(living).await?;
    let slots = daemon.published.subscribe();
    let (tasks, keeper) = keeper::start(store, left, slots, bus.clone());
    let slots = daemon.published.subscribe();
    let (health, ailments) = health::start(daemon.context.clone(), slots, alerts.failing());
    let handle = daemon.handle(&tasks, alerts.clone(), ailments, host.is_own());
    let server = serve(handle.clone(), runtime_dir.take_listener());
    let listeners = server.as_ref().map(Serving::listeners);
    alerts.answer_by(server.as_ref().map(Serving::answers));
    let mut ground = PlaceKeeper::new(runtime_dir, &daemon.context, listeners);
    daemon.announce(host.is_own());
    host.is_ready(handle);
    let keep = daemon.serve_orders(queue, &mut signals, &mut ground).await;
    if host.is_own() {
        service::stopping();
    }
    if keep {
        // The slots go on with their tasks, and the next daemon looks for the results.
        keeper.abort();
    } else {
        tasks.close().await;
    }
    daemon.end(keep, &mut signals).await;
    if tokio::time::timeout(LAST_NOTES, keeper).await.is_err() {
        tracing::warn!("what became of the tasks could not all be written down");
    }
    bus.close().await;
    if let Some(server) = server {
        server.end().await;
    }
    notifier.abort();
    health.abort();
    reaper.inspect(tokio::task::JoinHandle::abort);
    drop(ground);
    Ok(())
}

impl Daemon {
    /// Adopts what is already running, and starts the rest.
    async fn bring_up(&mut self, living: Vec<shim::Handle>) -> Result<(), DaemonError> {
        if !living.is_empty() {
            self.take_over_policies();
        }
        self.keep_policies();
        self.load_sessions()?;
        self.take_up_removed(living).await;
        self.start_all();
        self.look_for_running().await;
        // Now the roles that the programs run in are known.
        self.hand_out().await;
        Ok(())
    }

    /// Logs and reports that the daemon is ready.
    fn announce(&self, is_own: bool) {
        let slots = self.kept.len();
        tracing::info!(socket = %self.context.socket.display(), slots, "ready");
        if is_own {
            service::ready(slots);
        }
    }

    /// A daemon without slots.
    fn new(
        config: Config,
        rules: Rules,
        context: Arc<SlotContext>,
        orders: mpsc::Sender<Order>,
    ) -> Daemon {
        Daemon {
            notify: watch::Sender::new(config.notify.clone()),
            config,
            rules,
            context,
            kept: BTreeMap::new(),
            published: watch::Sender::new(Slots::default()),
            in_force: watch::Sender::new(Policies::default()),
            orders,
            sessions: Sessions::default(),
            gone: watch::Sender::new(GoneOnes::default()),
            fault: watch::Sender::default(),
            lost: watch::Sender::default(),
            missing: watch::Sender::default(),
            policies_are_known: true,
        }
    }

    /// The handle for other parts of the program.
    fn handle(
        &self,
        tasks: &TasksHandle,
        alerts: AlertsHandle,
        health: Ailments,
        is_own: bool,
    ) -> DaemonHandle {
        DaemonHandle {
            context: self.context.clone(),
            own_process: is_own.then(|| std::process::id().cast_signed()),
            tasks: tasks.clone(),
            alerts,
            slots: self.published.subscribe(),
            policies: self.in_force.subscribe(),
            gone: self.gone.subscribe(),
            orders: self.orders.clone(),
            about: serving::about(&self.config, &self.context),
            fault: self.fault.subscribe(),
            lost: self.lost.subscribe(),
            missing: self.missing.subscribe(),
            health,
        }
    }
}

/// The task store, read before anything is started.
fn task_store(context: &SlotContext) -> Result<(Store, Left), DaemonError> {
    let directory = context.state.join("tasks");
    Store::open(directory.clone())
        .map_err(|error| DaemonError::place(directory.display().to_string(), error))
}

fn context(
    config: &Config,
    env: &Env,
    runtime_dir: &RuntimeDir,
    host: &Host,
) -> Result<SlotContext, DaemonError> {
    let logs = config.daemon.logs.clone();
    let state = env
        .state_dir()
        .map_err(|error| DaemonError::place("the state directory", error))?;
    let state = state.join(&config.daemon.name);
    paths::ensure_private_dir(&state)
        .map_err(|error| DaemonError::place("the state directory", error))?;
    let audit_file = logs.join(audit::FILE);
    let audit =
        Audit::open(&audit_file, &state).map_err(|error| DaemonError::file(&audit_file, &error))?;
    let worktrees = config
        .daemon
        .worktrees_in(env)
        .map_err(|error| DaemonError::place("the worktrees' directory", error))?;
    let bus = event_log::open(config, &state)?;
    let once =
        OnceRequests::open(&state).map_err(|(place, error)| DaemonError::file(&place, &error))?;
    Ok(SlotContext {
        worktrees,
        program: host.program().to_owned(),
        socket: runtime_dir.socket().to_owned(),
        environment: crate::launch::process_environment(),
        logs,
        state,
        env: env.clone(),
        name: config.daemon.name.clone(),
        config: config.file.clone(),
        bus,
        once,
        audit,
        meter: Arc::default(),
        across: slot::AcrossSlots::default(),
        shims: Shims::default(),
    })
}

impl Daemon {
    fn start_all(&mut self) {
        for slot in self.config.slots.clone() {
            self.add(slot);
        }
        self.publish();
    }

    /// Waits for the shims, so that the first status already shows which programs kept running.
    async fn look_for_running(&self) {
        let looking = self.kept.values().map(|kept| kept.handle.has_looked());
        let all = futures_util::future::join_all(looking);
        if tokio::time::timeout(LOOKING, all).await.is_err() {
            tracing::warn!("a shim is slow to answer; its slot is taken up when it does");
        }
    }

    /// Starts the task of a slot.
    fn add(&mut self, slot: SlotConfig) {
        let name = slot.name.clone();
        let slot = self.settled(&slot);
        let rules = self.rules.of_slot(&slot);
        let (handle, task) = slot_task::start(self.context.clone(), Arc::new(slot), rules);
        let kept = KeptSlot {
            handle,
            task,
            leaving: None,
        };
        self.kept.insert(name, kept);
    }

    fn settled(&self, slot: &SlotConfig) -> SlotConfig {
        self.config.daemon.settled(slot, &self.context.worktrees)
    }

    fn publish(&self) {
        let slots = self
            .kept
            .iter()
            .map(|(name, kept)| (name.clone(), kept.handle.clone()));
        self.published.send_replace(Arc::new(slots.collect()));
        let slots = self.config.slots.clone();
        let policies = PoliciesInForce::new(self.rules.clone(), slots);
        self.in_force.send_replace(Arc::new(policies));
    }

    /// Handles orders, signals and changed files until the daemon begins to end. Returns whether the slots keep running.
    async fn serve_orders(
        &mut self,
        mut queue: mpsc::Receiver<Order>,
        signals: &mut HostSignals,
        ground: &mut PlaceKeeper,
    ) -> bool {
        let mut changes = self.watch();
        let mut watchdog = service::Watchdog::new();
        loop {
            tokio::select! {
                order = queue.recv() => match order {
                    Some(Order::Down { keep, reply }) => {
                        let _ = reply.send(Ok(Nothing {}));
                        return self.begins_to_end(keep);
                    }
                    Some(order) => self.obey(order).await,
                    None => return self.begins_to_end(false),
                },
                () = changed(&mut changes) => {
                    self.files_changed().await;
                    changes = self.watch();
                }
                () = ground.stirred() => self.restore(ground).await,
                () = watchdog.due() => service::alive(),
                wish = signals.next() => match wish {
                    Wish::Reload => drop(self.reload().await),
                    Wish::End => return self.begins_to_end(false),
                },
            }
        }
    }

    fn begins_to_end(&self, keep: bool) -> bool {
        self.context.once.end.begin(keep);
        keep
    }

    /// The watch of the config and the policies. If the files can't be watched, changes need a person's `reload`.
    fn watch(&self) -> Option<config::ConfigWatch> {
        config::watch(&self.config)
            .inspect_err(|error| tracing::warn!("{error}"))
            .ok()
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Reload { reply } => drop(reply.send(self.reload().await)),
            Order::Judge { own, reply } => {
                self.rules.judge_beside(own);
                self.hand_out().await;
                drop(reply.send(Ok(Nothing {})));
            }
            Order::AllowAlways { role, rule, reply } => {
                drop(reply.send(self.allow_always(&role, rule).await));
            }
            Order::Left { slot } => self.has_left(&slot),
            Order::Spawn { params, reply } => self.spawn_session(*params, reply),
            Order::Close {
                ids,
                why,
                force,
                done,
            } => {
                let mut done = done.into_iter();
                for id in ids {
                    self.leave_session(&id, &why, force, done.next());
                }
            }
            Order::SessionEnded { id, why } => self.forget_session(&id, why).await,
            Order::Down { .. } => {}
        }
    }

    /// Ends all slots at once, each with its own grace period; a second signal ends all grace periods.
    async fn end(mut self, keep: bool, signals: &mut HostSignals) {
        let shims = self.shims();
        let handles: Vec<SlotHandle> = self.kept.values().map(|kept| kept.handle.clone()).collect();
        let ending = self.kept.values_mut().map(|kept| async move {
            let (done, ended) = oneshot::channel();
            if kept
                .handle
                .send(SlotCommand::Shutdown { keep, done })
                .await
                .is_ok()
            {
                let _ = ended.await;
            }
            let _ = (&mut kept.task).await;
        });
        let mut all = std::pin::pin!(futures_util::future::join_all(ending));
        tokio::select! {
            _ = &mut all => return tracing::info!("ended"),
            () = signals.end() => tracing::warn!("ended by force"),
        }
        if keep {
            return;
        }
        let killed = async {
            futures_util::future::join_all(handles.iter().map(sessions::hurry)).await;
            all.await
        };
        if tokio::time::timeout(KILLED, killed).await.is_err() {
            // No task will record how its program ended, so the shim must end with it.
            let shims = shims.into_iter().filter_map(shim::Handle::of_pid);
            shims.for_each(|shim| shim.dismiss());
        }
    }

    fn shims(&self) -> Vec<u32> {
        let statuses = self.kept.values().map(|kept| kept.handle.status());
        statuses.filter_map(|status| status.shim_pid).collect()
    }
}

async fn changed(changes: &mut Option<config::ConfigWatch>) {
    if let Some(watch) = changes
        && watch.changed().await.is_some()
    {
        return;
    }
    std::future::pending().await
}
