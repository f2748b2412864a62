//! A slot: one task owns its shim, terminal, machine and journal; outside there is only a handle.

mod adopt;
mod answer;
mod conversation;
mod handle;
mod hear;
pub mod journal;
mod log_file;
pub mod machine;
mod memory;
mod press;
mod rotation;
mod start;
mod strays;
mod task;
mod tell;
mod view;
mod vigil;
mod witness;
mod world;

pub use handle::{Command, SlotHandle};
pub use task::{Slot, start};
pub use world::World;
