//! One request to several slots.

use super::Dispatcher;
use crate::core::machine::{Input, Reply};
use crate::core::model::{Cut, Done, Fault, RpcError, Select};
use crate::slot::SlotHandle;

impl Dispatcher {
    /// Sends the same input to several slots; an error of one slot does not hide the results of the others.
    pub(in crate::control) async fn each(
        &self,
        select: Select,
        make: fn(u64) -> Input,
    ) -> Result<Vec<Done>, RpcError> {
        self.ask_each(self.selected(&select)?, make).await
    }

    /// Like [`Dispatcher::each`], for inputs that start a program. A slot that is not in the config is never started:
    /// it is refused if it is named, and skipped if all slots are meant.
    pub(in crate::control) async fn each_of_config(
        &self,
        select: Select,
        make: fn(u64) -> Input,
    ) -> Result<Vec<Done>, RpcError> {
        let mut slots = self.selected(&select)?;
        if select.slots.is_empty() {
            slots.retain(|slot| !slot.status().removed);
        }
        let (removed, slots): (Vec<SlotHandle>, Vec<SlotHandle>) =
            slots.into_iter().partition(|slot| slot.status().removed);
        let mut done = self.ask_each(slots, make).await?;
        done.extend(removed.iter().map(self::done).map(|one| Done {
            error: Some(not_in_config(&one.slot)),
            ..one
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
            let mut one = done(slot);
            match outcome {
                Ok(Reply::Already) => one.already = true,
                Ok(Reply::Cut(cut)) => one.cut = cut,
                Ok(_) => {}
                Err(error) => one.error = Some(error),
            }
            one
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
        cut: Cut::default(),
        error: None,
    }
}
