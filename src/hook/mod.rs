//! The program that Claude Code runs at its hooks: one JSON in, one answer out. Any doubt at the gate is exit 2, which
//! blocks. It touches only the socket of the daemon that started the slot.

mod main;

pub use main::{VERB, main};
