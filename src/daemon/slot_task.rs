//! The task of a slot or session, for either kind of program.

use crate::core::settings::{Kind, SlotConfig};
use crate::session::PlainProgram;
use crate::slot::{Claude, MAX_COMMANDS, Slot, SlotCommand, SlotContext, SlotHandle, SlotRules};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// A slot, by the kind of its program, or of its last program.
enum OfKind {
    Claude(Box<Slot<Claude>>),
    Plain(Box<Slot<PlainProgram>>),
}

/// Starts the task of a slot. It first looks for a shim that an earlier daemon left.
pub(super) fn start(
    context: Arc<SlotContext>,
    config: Arc<SlotConfig>,
    rules: Arc<dyn SlotRules>,
) -> (SlotHandle, tokio::task::JoinHandle<()>) {
    let (slot, fault) = Slot::<Claude>::open(context, config, rules);
    let (commands, queue) = mpsc::channel(MAX_COMMANDS);
    let (looked, looked_seen) = watch::channel(false);
    let handle = slot.handle(commands, looked_seen);
    let slot = match slot.kind_to_look_for() {
        Kind::Claude => OfKind::Claude(Box::new(slot)),
        Kind::Shell => OfKind::Plain(Box::new(slot.turn())),
    };
    (handle, tokio::spawn(run(slot, queue, fault, looked)))
}

/// Runs until the slot ends. If the settings of a start are for a program of the other kind, the slot changes its kind.
async fn run(
    mut slot: OfKind,
    mut queue: mpsc::Receiver<SlotCommand>,
    fault: Option<String>,
    looked: watch::Sender<bool>,
) {
    match &mut slot {
        OfKind::Claude(slot) => slot.begin(fault, looked).await,
        OfKind::Plain(slot) => slot.begin(fault, looked).await,
    }
    let mut next = Some(slot);
    while let Some(slot) = next {
        next = match slot {
            OfKind::Claude(slot) => {
                let other = slot.run(&mut queue).await;
                other.map(|slot| OfKind::Plain(Box::new(slot.turn())))
            }
            OfKind::Plain(slot) => {
                let other = slot.run(&mut queue).await;
                other.map(|slot| OfKind::Claude(Box::new(slot.turn())))
            }
        };
    }
}
