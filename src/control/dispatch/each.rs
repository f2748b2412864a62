//! The same request to several slots at once.

use super::Dispatcher;
use crate::core::machine::{Input, Reply};
use crate::core::model::{Done, Fault, RpcError, Select};
use crate::slot::SlotHandle;

impl Dispatcher {
    /// The same for several slots at once; one that fails does not hide the others.
    pub(in crate::control) async fn each(
        &self,
        select: Select,
        make: fn(u64) -> Input,
    ) -> Result<Vec<Done>, RpcError> {
        let names = self.names(&select)?;
        let slots: Vec<SlotHandle> = names
            .iter()
            .map(|name| self.slot(name))
            .collect::<Result<_, _>>()?;
        self.ask_each(slots, make).await
    }

    /// The same for what starts a program. A slot that is not in the config is never started: refused where it is
    /// named, passed over among all.
    pub(in crate::control) async fn each_of_config(
        &self,
        select: Select,
        make: fn(u64) -> Input,
    ) -> Result<Vec<Done>, RpcError> {
        let names = self.names(&select)?;
        let mut slots: Vec<SlotHandle> = names
            .iter()
            .map(|name| self.slot(name))
            .collect::<Result<_, _>>()?;
        if select.slots.is_empty() {
            slots.retain(|slot| !slot.status().removed);
        }
        let (removed, slots): (Vec<SlotHandle>, Vec<SlotHandle>) =
            slots.into_iter().partition(|slot| slot.status().removed);
        let mut done = self.ask_each(slots, make).await?;
        done.extend(removed.iter().map(|slot| {
            let status = slot.status();
            Done {
                error: Some(not_in_config(&status.slot)),
                slot: status.slot,
                state: status.state,
                already: false,
                dropped: Vec::new(),
            }
        }));
        Ok(done)
    }

    async fn ask_each(
        &self,
        slots: Vec<SlotHandle>,
        make: fn(u64) -> Input,
    ) -> Result<Vec<Done>, RpcError> {
        let asked = slots.iter().map(|slot| slot.ask(make));
        let outcomes = futures_util::future::join_all(asked).await;
        let done = slots.iter().zip(outcomes).map(|(slot, outcome)| {
            let status = slot.status();
            Done {
                slot: status.slot,
                state: status.state,
                already: matches!(outcome, Ok(Reply::Already)),
                dropped: match &outcome {
                    Ok(Reply::Dropped(ids)) => ids.clone(),
                    _ => Vec::new(),
                },
                error: outcome.err(),
            }
        });
        Ok(done.collect())
    }
}

pub(in crate::control) fn not_in_config(slot: &str) -> RpcError {
    let text = format!("{slot} was removed from the config: its program is not started again");
    RpcError::new(Fault::Refused, text).next(format!(
        "put it back into the config, then: missiond reload\nor end its program: missiond stop {slot}"
    ))
}

pub(in crate::control) fn done(slot: &SlotHandle) -> Done {
    let status = slot.status();
    Done {
        slot: status.slot,
        state: status.state,
        already: false,
        dropped: Vec::new(),
        error: None,
    }
}
