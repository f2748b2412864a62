//! Requests by which something happens to a slot.

use super::Dispatcher;
use super::sends::ToSend;
use super::session::done;
use crate::core::claude::keys;
use crate::core::machine::{Input, Interrupter, Interruption, Message, Reply};
use crate::core::model::*;
use crate::once::{Record, Sending};
use crate::os::blocking;
use crate::os::peer::{Origin, Peer};
use crate::os::process_stat::Stat;
use crate::slot::{Command, SlotHandle, Writing};
use std::time::Duration;
use tokio::time::Instant;

/// A command that obeys Ctrl-C has ended by then, also on a loaded machine.
const CTRL_C_WORKS: Duration = Duration::from_secs(5);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(20);

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

    pub(in crate::control) async fn adopt(
        &self,
        params: AdoptParams,
    ) -> Result<AdoptAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        if slot.status().removed {
            return Err(not_in_config(&params.slot));
        }
        let session = params.session_id;
        let id = session.to_string();
        let others = self.statuses(&None).into_iter();
        let mut others = others.filter(|other| other.slot != params.slot);
        if let Some(other) = others.find(|other| other.session_id.as_ref() == Some(&id)) {
            let text = format!("{id} is the conversation of slot {}", other.slot);
            return Err(RpcError::new(Fault::Refused, text));
        }
        let restarts = slot
            .request(|reply| Command::TakeOver { session, reply })
            .await?;
        if restarts {
            slot.ask(Input::Restart).await?;
        } else if params.start {
            slot.ask(Input::Start).await?;
        }
        Ok(AdoptAnswer {
            slot: params.slot,
            session_id: session,
            running: slot.status().pid.is_some(),
        })
    }

    pub(in crate::control) async fn send(
        &self,
        params: SendParams,
        peer: &Peer,
    ) -> Result<SendAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let name = params.slot.clone();
        if slot.status().kind != "claude" {
            let text = format!("{name} is a plain program, not Claude Code");
            return Err(
                RpcError::new(Fault::Refused, text).next(format!("missiond write {name} …"))
            );
        }
        let meaning = keys::Meaning {
            shell: params.shell,
            slash: params.slash,
        };
        let text = keys::message(&params.text, meaning).map_err(|error| not_sendable(&error))?;
        let message = Message {
            token: None,
            slash: params.slash && text.starts_with('/'),
            // Its end is waited for in any case, so that its answer is known.
            wait: true,
            task: None,
            id: params.id.or_else(|| Some(uuid::Uuid::new_v4().to_string())),
            text,
            person: (peer.origin == Origin::Outside).then(|| peer.person()),
        };
        let sending = Sending {
            text: params.text,
            plain: !params.shell && !params.slash,
            unattended: !params.wait,
        };
        let id = message.id.clone().unwrap_or_default();
        let record = Record::new(name, id, sending);
        let limit = params.timeout_ms.map(Duration::from_millis);
        self.send_once(ToSend {
            record,
            message,
            slot,
            limit,
        })
        .await
    }

    pub(in crate::control) async fn interrupt(
        &self,
        one: OneSlot,
        peer: &Peer,
    ) -> Result<InterruptAnswer, RpcError> {
        let slot = self.slot(&one.slot)?;
        let status = slot.status();
        if let Some(pid) = status.pid.filter(|_| status.kind == "shell") {
            let effect = interrupt_in_front(&slot, pid, peer).await?.to_owned();
            return Ok(InterruptAnswer {
                slot: one.slot,
                effect,
            });
        }
        let by = match peer.origin {
            Origin::Outside => Interrupter::Person(peer.person()),
            _ => Interrupter::Slot,
        };
        let interrupt = |token| Input::Interrupt(Interruption { token, by });
        match slot.ask(interrupt).await? {
            Reply::Interrupted(effect) => Ok(InterruptAnswer {
                slot: one.slot,
                effect: effect.to_owned(),
            }),
            _ => Err(RpcError::new(Fault::Failed, "the slot gave no answer")),
        }
    }

    pub(in crate::control) async fn write(
        &self,
        params: WriteParams,
        peer: &Peer,
    ) -> Result<Done, RpcError> {
        let slot = self.slot(&params.slot)?;
        let writing = Writing {
            into_dialog: params.into_dialog,
            ..Writing::raw(params.bytes, peer)
        };
        write(&slot, writing).await?;
        Ok(done(&slot))
    }
}

pub(super) async fn write(slot: &SlotHandle, writing: Writing) -> Result<(), RpcError> {
    slot.request(|reply| Command::Write { writing, reply })
        .await
}

/// A slot of a plain program: Ctrl-C goes to the command that its shell waits for. A program that runs no command in
/// front of it is left alone, since Ctrl-C might end it.
async fn interrupt_in_front(
    slot: &SlotHandle,
    pid: u32,
    peer: &Peer,
) -> Result<&'static str, RpcError> {
    let Some((group, command)) = in_front(pid).await else {
        return Ok("nothing");
    };
    write(slot, Writing::raw(keys::INTERRUPT.to_vec(), peer)).await?;
    let until = Instant::now() + CTRL_C_WORKS;
    while Instant::now() < until {
        let now = in_front(pid).await.map(|(group, _)| group);
        if now != Some(group) {
            return Ok("interrupted");
        }
        tokio::time::sleep(LOOK).await;
    }
    let name = slot.status().slot;
    let text = format!("Ctrl-C was pressed, but `{command}` goes on in {name}");
    Err(RpcError::new(Fault::Failed, text).next(format!(
        "look at it: missiond screen {name}; or end the slot's program: missiond stop {name}"
    )))
}

/// The group and the name of the command that runs in front of a program, if one does.
async fn in_front(pid: u32) -> Option<(u32, String)> {
    let look = move || {
        let stat = Stat::of(pid)?;
        Some((stat.foreground_group()?, stat.in_foreground()?))
    };
    blocking::run(look).await.ok().flatten()
}

fn not_in_config(slot: &str) -> RpcError {
    let text = format!("{slot} was removed from the config: its program is not started again");
    RpcError::new(Fault::Refused, text).next(format!(
        "put it back into the config, then: missiond reload\nor end its program: missiond stop {slot}"
    ))
}

pub(super) fn not_sendable(error: &keys::NotSendable) -> RpcError {
    match error {
        keys::NotSendable::Slash(_) => RpcError::new(Fault::Refused, error.to_string())
            .next("add --slash if it is meant, or begin the message with a word"),
        _ => RpcError::new(Fault::Usage, error.to_string()),
    }
}
