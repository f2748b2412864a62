//! What Claude Code runs at its hooks: one JSON in, one answer out; any doubt at the gate is exit 2, which blocks. It
//! touches the socket of the daemon that started the slot, and nothing else.

mod event;
mod main;

pub use event::{HookEvent, HookWhat, gate_output};
pub use main::{VERB, main};
