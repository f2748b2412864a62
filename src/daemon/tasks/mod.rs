//! Tasks: prompts that wait for a slot.
//!
//! The queue itself is pure ([`crate::core::queue`]); [`keeper`] is the only task in the daemon that owns it, and
//! carries out its effects. Each task of the queue has its own file ([`store`]), written before anything follows from
//! it: a task is on the disk before its submission is answered, and "given to slot X" is on the disk before the slot
//! gets it. So no task is lost with the daemon, and none runs twice.

pub mod keeper;
pub mod runner;
pub mod store;

pub use keeper::TasksHandle;
