//! Slots that are no longer in the config while their programs run. Each of them is shown as `removed`, and can be
//! stopped and attached to; if it comes back into the config, it is the slot again.

use super::{Daemon, DaemonError, KeptSlot, Order, orphans, state_owner};
use crate::config::Config;
use crate::core::claude::reading::State;
use crate::core::model::SlotStatus;
use crate::core::settings;
use crate::core::settings::SlotConfig;
use crate::os::blocking;
use crate::os::files::same_file;
use crate::os::process_stat::Stat;
use crate::shim;
use crate::slot::SlotRules;
use crate::slot::{self, AskEverything, Launched, SlotCommand, SlotContext, SlotHandle};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The interval of checks whether a shim that does not answer is gone, or a command in the foreground has ended.
const LOOK: Duration = Duration::from_millis(200);

/// When a slot that has left the config is stopped.
#[derive(Debug, Clone, Copy)]
enum LetGo {
    /// When it is idle.
    WhenIdle,
    /// When a person has stopped it, or its program has ended.
    WhenOver,
}

/// The living shims of this daemon. It is an error if it may not start: with slots of another config, or inside a slot.
pub(super) async fn shims_at_start(
    context: &Arc<SlotContext>,
    config: &Config,
) -> Result<Vec<shim::Handle>, DaemonError> {
    let living = living_shims(context).await?;
    state_owner::claim(context, &config.slots).await?;
    orphans::check_outside(context, &living)?;
    Ok(living)
}

/// The living shims of this daemon. It is an error if there are shims of a daemon with the same name and another
/// config: the two would share a state directory.
async fn living_shims(context: &Arc<SlotContext>) -> Result<Vec<shim::Handle>, DaemonError> {
    let of = context.clone();
    let living = blocking::run(move || shim::Handle::all(&of.state)).await;
    let living = living.flatten();
    let living = living.map_err(|error| DaemonError::place("the process table", error))?;
    let is_foreign = |shim: &&shim::Handle| {
        let theirs = &shim.keeper().config;
        // A config that was moved no longer exists at its old path.
        !same_file(theirs, &context.config) && theirs.exists()
    };
    let Some(first) = living.iter().find(is_foreign) else {
        return Ok(living);
    };
    let config = first.keeper().config.clone();
    let same = living.iter().filter(|shim| shim.keeper().config == config);
    let slots = same.map(|shim| format!("{} (shim {})", shim.slot(), shim.pid()));
    Err(DaemonError::Foreign {
        slots: slots.collect::<Vec<_>>().join(", "),
        theirs: config,
        ours: context.config.clone(),
    })
}

impl Daemon {
    /// Adopts the programs of slots that are no longer in the config and of sessions that are not loaded, and ends the
    /// orphans of those whose shim was killed.
    pub(super) async fn take_up_removed(&mut self, living: Vec<shim::Handle>) {
        let context = self.context.clone();
        let living: BTreeSet<String> = living.iter().map(|shim| shim.slot().to_owned()).collect();
        let unnamed = |name: &&String| !self.names(name);
        let removed: Vec<String> = living.iter().filter(unnamed).cloned().collect();
        for name in removed {
            tracing::warn!("slot {name} is not in the config, and its program runs");
            self.add_removed(&name);
        }
        let mut dead = names_with_sockets(&context);
        dead.retain(|name| !self.names(name));
        let ends = dead.iter().map(|name| slot::end_forgotten(&context, name));
        futures_util::future::join_all(ends).await;
    }

    fn names(&self, name: &str) -> bool {
        let mut slots = self.config.slots.iter();
        self.kept.contains_key(name) || slots.any(|slot| slot.name == name)
    }

    fn add_removed(&mut self, name: &str) {
        let launched = Launched::load(&self.context.memory_file(name));
        let slot = Launched::removed_slot(launched, name);
        let (handle, task) =
            super::slot_task::start(self.context.clone(), Arc::new(slot), self.ask_everything());
        let kept = KeptSlot {
            handle,
            task,
            leaving: None,
        };
        self.kept.insert(name.to_owned(), kept);
        self.let_go(name, LetGo::WhenOver);
    }

    fn ask_everything(&self) -> Arc<dyn SlotRules> {
        Arc::new(AskEverything::new(&self.config.file))
    }

    /// Stops a slot that left the config when it is idle, never in the middle of its work. Until then a person is asked
    /// about everything. Returns a description that says what the slot waits for.
    pub(super) async fn leave(&mut self, slot: &SlotConfig) -> String {
        let name = &slot.name;
        let Some(kept) = self.kept.get(name) else {
            return format!("slot {name}: removed");
        };
        let status = with_foreground(kept.handle.status()).await;
        let config = Arc::new(slot::removed(self.settled(slot)));
        let rules = self.ask_everything();
        // A slot whose task has ended needs no settings.
        let reconfigure = SlotCommand::Reconfigure {
            config,
            rules,
            running: None,
        };
        let _ = kept.handle.send(reconfigure).await;
        self.let_go(name, LetGo::WhenIdle);
        in_words(&status)
    }

    fn let_go(&mut self, name: &str, when: LetGo) {
        let Some(kept) = self.kept.get_mut(name) else {
            return;
        };
        let (handle, orders, slot) = (kept.handle.clone(), self.orders.clone(), name.to_owned());
        let context = self.context.clone();
        kept.leaving = Some(tokio::spawn(async move {
            until_it_may_go(&handle, &context, &slot, when).await;
            let (done, ended) = oneshot::channel();
            if handle
                .send(SlotCommand::Shutdown { keep: false, done })
                .await
                .is_ok()
            {
                let _ = ended.await;
            }
            let _ = orders.send(Order::Left { slot }).await;
        }));
    }

    /// Keeps a slot that came back into the config.
    pub(super) fn stay(&mut self, name: &str) {
        if let Some(leaving) = self.kept.get_mut(name).and_then(|kept| kept.leaving.take()) {
            leaving.abort();
        }
    }
}

async fn until_it_may_go(handle: &SlotHandle, context: &Arc<SlotContext>, slot: &str, when: LetGo) {
    let mut status = handle.watch_status();
    let idle = |status: &SlotStatus| matches!(when, LetGo::WhenIdle) && status.state == State::Idle;
    let over = |status: &SlotStatus| {
        let ended = matches!(status.state, State::Exited | State::Error);
        ended && status.shim_pid.is_none()
    };
    let free = |status: &SlotStatus| over(status) || idle(status);
    while let Ok(found) = status.wait_for(free).await.map(|status| status.clone()) {
        if idle(&found) {
            // Nothing reports the end of a command in the foreground.
            if !with_foreground(found).await.has_work_before_it() {
                return;
            }
        } else {
            // A shim that does not answer may have been stopped: while it lives, its program is not gone.
            let (context, slot) = (context.clone(), slot.to_owned());
            let shim = blocking::run(move || context.shim(&slot)).await.flatten();
            if matches!(shim, Ok(None)) {
                return;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The status, with the command in the foreground of a plain program's terminal. If the lookup fails, it is assumed
/// that there is one.
async fn with_foreground(mut status: SlotStatus) -> SlotStatus {
    if let Some(pid) = status.pid.filter(|_| status.kind == "shell") {
        let looked = blocking::run(move || Stat::of(pid)?.in_foreground()).await;
        status.foreground = looked.unwrap_or_else(|_| Some("a command".to_owned()));
    }
    status
}

/// The slots of this daemon that have a shim's socket. They are found by the names of the sockets and by the state
/// files of slots: the socket of a slot with a long name does not contain the name.
fn names_with_sockets(context: &SlotContext) -> BTreeSet<String> {
    let kept = std::fs::read_dir(&context.state).into_iter().flatten();
    let kept = kept.flatten().filter_map(|entry| {
        let file = entry.file_name().into_string().ok()?;
        Some(file.strip_suffix(".json")?.to_owned())
    });
    let kept = kept.filter(|name| settings::is_name(name));
    let kept = kept.filter(|name| context.has_shim_socket(name));
    kept.chain(context.env.slots_with_shims(&context.name))
        .collect()
}

fn in_words(status: &SlotStatus) -> String {
    let slot = &status.slot;
    let stop = format!("stop it now with: missiond stop {slot}");
    let doing = match (status.state, &status.foreground) {
        (State::Confirming, _) => {
            return format!(
                "slot {slot}: removed while it waits at a dialog, to be stopped when it is idle; \
                 see: missiond pending {slot}, or {stop}"
            );
        }
        (State::Exited | State::Error, _) => None,
        (State::Idle, Some(command)) => Some(format!("runs {command}")),
        (State::Idle, None) if status.has_work_before_it() => Some("has work before it".to_owned()),
        (State::Idle, None) => None,
        (busy, _) => Some(format!("is {}", busy.name())),
    };
    match doing {
        None => format!("slot {slot}: removed and stopped"),
        Some(doing) => {
            format!("slot {slot}: removed while it {doing}, to be stopped when it is idle; {stop}")
        }
    }
}
