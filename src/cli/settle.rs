//! Whether the slots of a daemon have started, for `up`.

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::sanitise;
use crate::cli::target::DaemonPlace;
use crate::control::client::{CallError, Client};
use crate::control::identity::Wanted;
use crate::control::requests::Status;
use crate::core::claude::reading::State;
use crate::core::model::{Select, SlotStatus};
use serde::Serialize;
use std::io::IsTerminal;
use std::time::Duration;

/// Slots that have not started by then are named and not waited for: a slow machine is no failure.
const PATIENCE: Duration = Duration::from_secs(30);
/// A person at a terminal who has waited for this long wants to know what for.
const SILENT: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);

/// A slot that should run and does not.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct FailedSlot {
    pub slot: String,
    pub why: String,
}

/// How the slots of a daemon have started.
#[derive(Debug, PartialEq, Eq)]
pub struct Settled {
    /// Slots of the config.
    pub total: usize,
    pub failed: Vec<FailedSlot>,
    /// Slots that have not shown yet that they work.
    pub starting: Vec<String>,
    /// Slots that wait at a dialog.
    pub asking: Vec<String>,
}

/// Waits, for a bounded time, until every slot has shown that it works, or has failed.
pub async fn settled(context: &Context, place: &DaemonPlace) -> Result<Settled, Failure> {
    let settling = async {
        let wanted = Wanted::Config(place.config.clone());
        let mut client = Client::connect_to(&place.socket, &wanted).await?;
        let begun = tokio::time::Instant::now();
        let mut silent = std::io::stderr().is_terminal();
        loop {
            let statuses = client.call::<Status>(Select::default()).await?;
            let settled = of(&statuses);
            if settled.starting.is_empty() || begun.elapsed() >= PATIENCE {
                return Ok(settled);
            }
            if silent && begun.elapsed() >= SILENT {
                silent = false;
                let names = settled.starting.join(", ");
                context.out.note(format!("waiting for {names} to start"));
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    // The daemon answers from what it knows: as long again as the slots may take is enough.
    let limit = PATIENCE * 2;
    let settled = tokio::time::timeout(limit, settling).await;
    Ok(settled.unwrap_or(Err(CallError::Silent(limit)))?)
}

/// It is being started, and its screen has not shown yet that it works.
fn is_under_way(status: &SlotStatus) -> bool {
    status.state == State::Starting
}

/// Its program could not be started, or has ended badly and is down or to be started again.
fn has_failed(status: &SlotStatus) -> bool {
    let ended_badly = || {
        let cause = status.cause.as_deref();
        cause.is_some_and(|cause| cause != "clean exit")
    };
    match status.state {
        State::Error => true,
        State::Exited => ended_badly(),
        _ => false,
    }
}

pub fn of(statuses: &[SlotStatus]) -> Settled {
    let slots = statuses.iter().filter(|status| !status.removed);
    let failed = slots.clone().filter(|status| has_failed(status));
    let named = |fits: fn(&SlotStatus) -> bool| {
        let fitting = slots.clone().filter(move |status| fits(status));
        fitting.map(|status| status.slot.clone()).collect()
    };
    Settled {
        failed: failed.map(failed_slot).collect(),
        starting: named(is_under_way),
        asking: named(|status| status.dialog.is_some()),
        total: slots.count(),
    }
}

impl Settled {
    /// What a person should know beside that the daemon runs; `target` names it in the commands.
    pub fn remarks(&self, target: &str) -> Vec<String> {
        let starting = self.starting.join(" ");
        let asking = self.asking.join(" ");
        let still = format!("still starting: {starting}; see: missiond status{target} {starting}");
        let asks = format!("waits for your answer: {asking}; see: missiond pending{target}");
        let remarks = [(&self.starting, still), (&self.asking, asks)];
        let remarks = remarks.into_iter().filter(|(slots, _)| !slots.is_empty());
        remarks.map(|(_, text)| text).collect()
    }
}

fn failed_slot(status: &SlotStatus) -> FailedSlot {
    let words = [&status.doing, &status.last_error, &status.cause];
    let why = words.into_iter().flatten().next();
    FailedSlot {
        slot: status.slot.clone(),
        why: sanitise::one_line(why.map_or("no reason is known", String::as_str)),
    }
}

/// The failure of `up`: the daemon runs, and these slots do not.
/// `target` names it for the next steps.
pub fn in_words(daemon: &str, total: usize, failed: &[FailedSlot], target: &str) -> Failure {
    let text = format!("{daemon}, and {} of {total} slots failed", failed.len());
    let slots = failed
        .iter()
        .map(|failed| format!("{}: {}", failed.slot, failed.why));
    let names: Vec<&str> = failed.iter().map(|failed| failed.slot.as_str()).collect();
    let next = format!(
        "see what is wrong: missiond doctor{target}\nthen: missiond start{target} {}",
        names.join(" ")
    );
    let lines: Vec<String> = slots.chain([next]).collect();
    Failure::failed(text).next(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn status(state: &str, more: Value) -> SlotStatus {
        let mut status = json!({
            "slot": "coder", "role": "coder", "kind": "claude", "state": state,
            "since": "2026-01-01T10:00:00Z", "started_at": null, "pid": null, "restarts": 0,
            "session_id": null, "task_id": null, "cwd": "/src", "dialog": null, "gate": "hook",
            "mode": null, "last_error": null, "owner": "user", "log": "/logs/x.log", "doing": null,
            "background": 0, "queued": 0, "changed": false
        });
        let fields = status.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn a_slot_is_waited_for_until_it_runs_or_has_failed() {
        let crash = json!({"cause": "crash", "restarts": 1});
        let table = [
            ("starting", json!({}), true, false),
            // However long it has run: it may yet end.
            (
                "starting",
                json!({"started_at": "2026-01-01T10:00:05Z"}),
                true,
                false,
            ),
            // It is started again, by a person or after a crash: one that fails again is seen to be down.
            ("starting", crash.clone(), true, false),
            ("exited", crash, false, true),
            ("exited", json!({"cause": "clean exit"}), false, false),
            // It is not set to start, or a person has stopped it.
            ("exited", json!({}), false, false),
            ("error", json!({}), false, true),
            ("idle", json!({"cause": "crash"}), false, false),
            ("confirming", json!({}), false, false),
        ];
        for (state, more, waits, failed) in table {
            let status = status(state, more.clone());
            assert_eq!(is_under_way(&status), waits, "{state} {more}");
            assert_eq!(has_failed(&status), failed, "{state} {more}");
        }
    }

    #[test]
    fn a_removed_slot_is_no_slot_that_should_run() {
        let statuses = [
            status("error", json!({"last_error": "no such program"})),
            status("error", json!({"removed": true})),
            status("idle", json!({})),
        ];
        let Settled { total, failed, .. } = of(&statuses);
        assert_eq!(total, 2);
        let failure = in_words("missiond runs, pid 7", total, &failed, " -c a.toml");
        assert_eq!(
            failure.message,
            "missiond runs, pid 7, and 1 of 2 slots failed"
        );
        let next = failure.next.unwrap();
        assert!(next.starts_with("coder: no such program\n"), "{next}");
        assert!(next.contains("missiond doctor -c a.toml\n"), "{next}");
        assert!(next.ends_with("missiond start -c a.toml coder"), "{next}");
    }
}
