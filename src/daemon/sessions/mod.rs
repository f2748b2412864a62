//! Sessions: programs that an authorised client starts at run time, and that are removed after their end.

mod request;
mod shell;

pub use request::is_of_owner;

use super::{Daemon, DaemonError, DaemonHandle, KeptSlot, Order, Reply};
use crate::config::Config;
use crate::core::machine::Input;
use crate::core::model::{EventKind, Fault, RpcError, SessionStatus, SlotStatus, SpawnParams};
use crate::core::settings::{SessionsConfig, is_name};
use crate::core::text::diagnostic::ConfigError;
use crate::core::text::diagnostic::Problem;
use crate::os::headroom::Shortage;
use crate::os::paths;
use crate::os::{files, headroom};
use crate::session::{Ended, SessionRecord};
use crate::slot::{SlotCommand, SlotHandle, SlotPaths, TerminalRequest};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The number of ended sessions that are kept, for each that may run. It is large enough that a client which starts one
/// after the other has the time to read them all, and small enough that a day of short commands does not fill the
/// memory.
const ENDED_FOR_EACH: usize = 4;

/// The maximum of removed sessions that are remembered, for clients that ask a moment too late.
const MAX_REMEMBERED: usize = 256;

/// A session that was removed.
#[derive(Debug, Clone)]
pub struct Gone {
    pub id: String,
    pub at: DateTime<Utc>,
    pub why: String,
}

pub type GoneOnes = Arc<VecDeque<Gone>>;

/// What the daemon keeps of sessions besides their tasks.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    gone: VecDeque<Gone>,
    /// The clients that wait for the end of each session.
    waiting: BTreeMap<String, Vec<oneshot::Sender<()>>>,
}

impl Daemon {
    /// Loads the sessions of earlier daemons at the start, running or not.
    pub(super) fn load_sessions(&mut self) -> Result<(), DaemonError> {
        let directory = self.context.sessions_dir();
        paths::ensure_private_dir(&directory)
            .map_err(|error| DaemonError::place("the sessions' directory", error))?;
        let entries = std::fs::read_dir(&directory)
            .map_err(|error| DaemonError::place(directory.display().to_string(), error))?;
        for entry in entries.flatten() {
            let file = entry.path();
            if file.extension().is_some_and(|ending| ending == "json") {
                self.load_session(&file)?;
            }
        }
        Ok(())
    }

    fn load_session(&mut self, file: &Path) -> Result<(), DaemonError> {
        let Some(mut record) = read_or_replace(file) else {
            return Ok(());
        };
        if self.has_never_run(&record) {
            let why = "it was never started: its daemon ended before";
            tracing::warn!(session = record.id, "{why}");
            record.ended = Some(Ended::never_ran(why));
            if let Err(error) = record.save(file) {
                tracing::warn!("{} can't be written: {error}", file.display());
            }
        }
        if self.config.slots.iter().any(|slot| slot.name == record.id) {
            let what = format!("the name `{}`", record.id);
            let cause = "a session has it, and a slot of the configuration wants it";
            return Err(DaemonError::place(what, cause).next("give the slot another name"));
        }
        let handle = self.add_session(&record);
        if record.terms.with_connection && record.ended.is_none() {
            let why = "its client's connection was lost with the daemon".to_owned();
            tokio::spawn(async move { end_for(&handle, why).await });
        }
        Ok(())
    }

    /// Tells whether the session's daemon was killed before it started the program: then there is no recording, and no
    /// shim.
    fn has_never_run(&self, record: &SessionRecord) -> bool {
        let recording = SlotPaths::new(&self.context.logs, &record.id).recording;
        let shim = || self.context.shim(&record.id);
        record.ended.is_none() && !recording.exists() && matches!(shim(), Ok(None))
    }

    /// Starts the session's task; this does not start the program.
    fn add_session(&mut self, record: &SessionRecord) -> SlotHandle {
        let config = record.slot();
        let rules = self.rules.of_slot(&config);
        let (handle, task) = super::slot_task::start(self.context.clone(), Arc::new(config), rules);
        tokio::spawn(close_when_leaving(handle.clone(), self.orders.clone()));
        self.kept.insert(
            record.id.clone(),
            KeptSlot {
                handle: handle.clone(),
                task,
                leaving: None,
            },
        );
        handle
    }

    /// Starts a session. All checks come before anything is written. The session is published before its program
    /// starts, and is removed if the start fails.
    pub(super) fn spawn_session(&mut self, params: SpawnParams, reply: Reply<SlotHandle>) {
        match self.prepare_session(params) {
            Err(error) => drop(reply.send(Err(error))),
            Ok(handle) => {
                self.publish();
                tokio::spawn(start(handle, self.orders.clone(), reply));
            }
        }
    }

    fn prepare_session(&mut self, params: SpawnParams) -> Result<SlotHandle, RpcError> {
        let record = request::record(params, &self.config.sessions, &self.context)?;
        self.check_name(&record.id)?;
        let needed = headroom::need(record.cols, record.rows, record.terms.buffer);
        headroom::check(needed)?;
        headroom::check_files()?;
        self.make_room(&record.terms.owner)?;
        let failed = |error: std::io::Error| {
            RpcError::new(Fault::Failed, format!("the session can't be kept: {error}"))
        };
        let kept = shell::write(&record, &self.context)
            .and_then(|()| record.save(&self.context.session_file(&record.id)))
            .map(|()| self.add_session(&record));
        kept.map_err(|error| {
            self.remove_files(&record.id);
            failed(error)
        })
    }

    /// Checks that the name is free, also in the log directory.
    fn check_name(&self, id: &str) -> Result<(), RpcError> {
        let taken = |text: String| Err(RpcError::new(Fault::Usage, text));
        if self.config.slots.iter().any(|slot| slot.name == id) {
            return taken(format!("`{id}` is a slot of the configuration"));
        }
        if self.kept.contains_key(id) {
            return taken(format!("there is a session `{id}` already"));
        }
        if SlotPaths::new(&self.context.logs, id)
            .all()
            .iter()
            .any(|path| path.exists())
        {
            return taken(format!("`{id}` has logs of an earlier slot"));
        }
        Ok(())
    }

    /// Checks the limits on running sessions; ended ones do not count. If too many ended ones are kept, removes the
    /// oldest.
    fn make_room(&mut self, owner: &str) -> Result<(), RpcError> {
        let SessionsConfig {
            per_owner, total, ..
        } = self.config.sessions;
        let limits = [
            (usize::from(per_owner), Some(owner), "per_owner"),
            (usize::from(total), None, "total"),
        ];
        for (limit, owner, key) in limits {
            let running = self.running(owner);
            if running >= limit {
                let whose = owner.map_or("in all".to_owned(), |owner| format!("of {owner}"));
                return Err(RpcError::new(
                    Fault::Refused,
                    format!("{running} sessions {whose} run already"),
                )
                .next(format!(
                    "close one, or raise `{key}` in [sessions]: missiond session list"
                )));
            }
        }
        let ended = self.ended();
        let over = (ended.len() + 1).saturating_sub(ENDED_FOR_EACH * usize::from(total));
        for id in ended.into_iter().take(over) {
            self.leave_session(&id, "newer ones need its place", false, None);
        }
        Ok(())
    }

    fn staying(&self) -> impl Iterator<Item = (SlotStatus, SessionStatus)> {
        let staying = self.kept.values().filter(|kept| kept.leaving.is_none());
        staying.filter_map(|kept| {
            let mut status = kept.handle.status();
            status.session.take().map(|session| (status, session))
        })
    }

    fn running(&self, owner: Option<&str>) -> usize {
        let counts = |(status, session): &(SlotStatus, SessionStatus)| {
            session.ended_at.is_none() && owner.is_none_or(|owner| owner == status.owner)
        };
        self.staying().filter(counts).count()
    }

    /// The ended sessions, the oldest first.
    fn ended(&self) -> Vec<String> {
        let ended = self.staying().filter_map(|(status, session)| {
            let at = session.ended_at?;
            Some((at, status.slot))
        });
        let mut ended: Vec<_> = ended.collect();
        ended.sort();
        ended.into_iter().map(|(_, id)| id).collect()
    }

    /// Ends a session and removes its files; `done` is notified when that is over.
    pub(super) fn leave_session(
        &mut self,
        id: &str,
        why: &str,
        force: bool,
        done: Option<oneshot::Sender<()>>,
    ) {
        let Some(kept) = self.kept.get_mut(id) else {
            return;
        };
        self.sessions
            .waiting
            .entry(id.to_owned())
            .or_default()
            .extend(done);
        let (handle, orders) = (kept.handle.clone(), self.orders.clone());
        if kept.leaving.is_some() {
            if force {
                tokio::spawn(async move { hurry(&handle).await });
            }
            return;
        }
        let (id, why) = (id.to_owned(), why.to_owned());
        kept.leaving = Some(tokio::spawn(async move {
            let leave = TerminalRequest::Leave(why.clone());
            let _ = handle.send(SlotCommand::Terminal(leave)).await;
            if force {
                hurry(&handle).await;
            }
            end(&handle).await;
            let _ = orders.send(Order::SessionEnded { id, why }).await;
        }));
    }

    /// Removes a session whose task and shim have ended.
    pub(super) async fn forget_session(&mut self, id: &str, why: String) {
        let Some(kept) = self.kept.remove(id) else {
            return;
        };
        let _ = kept.task.await;
        // Its last events must not be written after its end.
        self.context.bus.settled().await;
        self.remove_files(id);
        self.context
            .bus
            .publish(Some(id), EventKind::Closed { why: why.clone() });
        tracing::info!(session = id, "closed: {why}");
        self.remember_gone(id, why);
        self.publish();
        for waiting in self.sessions.waiting.remove(id).unwrap_or_default() {
            // A client that is gone needs no answer.
            let _ = waiting.send(());
        }
    }

    fn remember_gone(&mut self, id: &str, why: String) {
        let gone = &mut self.sessions.gone;
        gone.retain(|gone| gone.id != id);
        if gone.len() >= MAX_REMEMBERED {
            gone.pop_front();
        }
        let (id, at) = (id.to_owned(), Utc::now());
        gone.push_back(Gone { id, at, why });
        self.gone.send_replace(Arc::new(gone.clone()));
    }

    /// Removes the files of a session, including its log: there may be thousands of sessions in a day.
    fn remove_files(&self, id: &str) {
        for path in SlotPaths::new(&self.context.logs, id).all() {
            let _ = files::remove_with_rotated(&path);
        }
        let _ = std::fs::remove_file(self.context.memory_file(id));
        let _ = std::fs::remove_dir_all(self.context.shell_dir(id));
        let file = self.context.session_file(id);
        let _ = std::fs::remove_file(file.with_extension("broken"));
        let _ = std::fs::remove_file(file);
    }

    /// Refuses a configuration that takes the name of a session.
    pub(super) fn check_sessions(&self, config: &Config) -> Result<(), ConfigError> {
        let is_session = |name: &String| {
            let kept = self.kept.get(name);
            kept.is_some_and(|kept| kept.handle.status().session.is_some())
        };
        let clash = config
            .slots
            .iter()
            .map(|slot| &slot.name)
            .find(|name| is_session(name));
        let Some(name) = clash else { return Ok(()) };
        let title = format!("the name `{name}` is taken by a session");
        let problem = Problem::of_file(&config.file, title, "slots and sessions share their names");
        let help = format!("missiond session close {name}, or give the slot another name");
        Err(vec![problem.with_help(help)].into())
    }
}

/// Loads a session's file. A file that can't be read is set aside and replaced by a minimal one: its session may run,
/// and must not be lost.
fn read_or_replace(file: &Path) -> Option<SessionRecord> {
    let error = match SessionRecord::load(file) {
        Ok(record) => return Some(record),
        Err(error) => error,
    };
    let aside = file.with_extension("broken");
    let _ = std::fs::rename(file, &aside);
    let (shown, aside) = (file.display(), aside.display());
    tracing::error!("{shown} can't be read ({error}); it is kept as {aside}");
    let id = file.file_stem()?.to_str().filter(|id| is_name(id))?;
    let record = SessionRecord::unknown(id);
    record.save(file).ok()?;
    Some(record)
}

/// Starts the program of a published session, and removes the session if that fails.
async fn start(handle: SlotHandle, orders: mpsc::Sender<Order>, reply: Reply<SlotHandle>) {
    match handle.ask(Input::Start).await {
        Ok(_) => drop(reply.send(Ok(handle))),
        Err(error) => {
            let (done, over) = oneshot::channel();
            let order = Order::Close {
                ids: vec![handle.status().slot],
                why: "it did not start".to_owned(),
                force: true,
                done: vec![done],
            };
            if orders.send(order).await.is_ok() {
                let _ = over.await;
            }
            let _ = reply.send(Err(error));
        }
    }
}

/// Waits until a session reports that it is to be removed.
async fn close_when_leaving(handle: SlotHandle, orders: mpsc::Sender<Order>) {
    let mut status = handle.watch_status();
    let leaves = status
        .wait_for(|status| status.session.as_ref().is_some_and(|s| s.leaving.is_some()))
        .await
        .map(|status| status.clone());
    // A session whose task has ended needs no order.
    let Ok(status) = leaves else { return };
    let order = Order::Close {
        ids: vec![status.slot],
        why: status
            .session
            .and_then(|session| session.leaving)
            .unwrap_or_default(),
        force: false,
        done: Vec::new(),
    };
    let _ = orders.send(order).await;
}

/// Ends the program of a session; its output is kept as after every end.
pub async fn end_for(handle: &SlotHandle, why: String) {
    // A session that is gone has ended.
    let _ = handle
        .send(SlotCommand::Terminal(TerminalRequest::End(why)))
        .await;
}

async fn end(handle: &SlotHandle) {
    let (done, ended) = oneshot::channel();
    let shutdown = SlotCommand::Shutdown { keep: false, done };
    if handle.send(shutdown).await.is_ok() {
        let _ = ended.await;
    }
}

/// Kills the program at once, without a grace period.
pub(super) async fn hurry(handle: &SlotHandle) {
    let _ = handle
        .send(SlotCommand::Terminal(TerminalRequest::Hurry))
        .await;
}

impl From<Shortage> for RpcError {
    fn from(shortage: Shortage) -> RpcError {
        RpcError::new(Fault::Failed, shortage.to_string()).next(shortage.next)
    }
}

impl DaemonHandle {
    /// Why the session with this name was removed, if there was one.
    pub fn gone(&self, id: &str) -> Option<Gone> {
        self.gone
            .borrow()
            .iter()
            .find(|gone| gone.id == id)
            .cloned()
    }
}
