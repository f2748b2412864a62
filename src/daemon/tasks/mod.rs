//! Work that is handed out: prompts that wait for a slot.
//!
//! The queue itself is pure ([`crate::core::queue`]); [`keeper`] is the one task in the daemon that owns it, and does what it says.
//! Each task is a file of its own ([`store`]), written before anything follows from it: a task is on the disk
//! before its submission is answered, and "given to slot X" is on the disk before the slot gets it. So nothing is
//! lost with the daemon, and nothing runs twice.

pub mod keeper;
pub mod runner;
pub mod store;

pub use keeper::TasksHandle;
