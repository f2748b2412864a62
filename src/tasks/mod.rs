//! Work that is handed out: prompts that wait for a slot ([`queue`], [`keeper`]), and files of tasks that run side by
//! side ([`mod@file`], [`plan`], [`execute`]).
//!
//! The queue's core is pure; [`keeper`] is the one task in the daemon that owns it, and does what it says.
//! Each task is a file of its own ([`store`]), written before anything follows from it: a task is on the disk
//! before its submission is answered, and "given to slot X" is on the disk before the slot gets it. So nothing is
//! lost with the daemon, and nothing runs twice.

pub mod execute;
pub mod file;
pub mod keeper;
pub mod plan;
pub mod queue;
pub mod runner;
pub mod store;

pub use keeper::TasksHandle;
