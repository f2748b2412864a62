//! What Claude Code runs at its hooks: one JSON in, one answer out; any doubt at the gate is exit 2, which blocks. It
//! touches the socket of the daemon that started the slot, and nothing else.

mod main;

pub use main::{VERB, main};
