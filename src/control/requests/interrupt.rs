use super::write::write;
use super::*;
use crate::core::claude::keys;
use crate::core::machine::{Interrupter, Interruption};
use crate::os::process_stat::Stat;
use crate::slot::Writing;
use tokio::time::Instant;

/// A command that obeys Ctrl-C has ended within this time, also on a loaded machine.
const CTRL_C_WORKS: Duration = Duration::from_secs(5);
/// The interval between two checks of the command.
const LOOK: Duration = Duration::from_millis(20);

request! {
    /// Stops the turn of a slot, never its program.
    Interrupt = "interrupt", OneSlot => InterruptAnswer;
    access: Granted("interrupt", Slots);
    scope: Scope::Steer;
    names: Accepts::Slots("missiond keys ID ctrl+c");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptAnswer {
    pub slot: String,
    /// `nothing` (the slot was idle, or runs no command in the foreground), `declined` (a dialog), `withdrawn` (the slot
    /// was idle, and the message that was about to be sent is not sent), `interrupted`.
    pub effect: String,
}

async fn answer(call: Call<'_>, one: OneSlot) -> Result<InterruptAnswer, RpcError> {
    let slot = call.slot(&one.slot)?;
    let status = slot.status();
    if let Some(pid) = status.pid.filter(|_| status.kind == "shell") {
        let effect = interrupt_in_front(&slot, pid, call.peer).await?.to_owned();
        return Ok(InterruptAnswer {
            slot: one.slot,
            effect,
        });
    }
    let by = match call.peer.origin {
        PeerOrigin::Outside => Interrupter::Person(call.peer.person()),
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

/// Interrupts a slot of a plain program: Ctrl-C goes to the command in the foreground of its shell. A program that runs
/// no command in the foreground is left alone, since Ctrl-C might end it.
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

/// The process group and the name of the command in the foreground of a program, if there is one.
async fn in_front(pid: u32) -> Option<(u32, String)> {
    let look = move || {
        let stat = Stat::of(pid)?;
        Some((stat.foreground_group()?, stat.in_foreground()?))
    };
    blocking::run(look).await.ok().flatten()
}
