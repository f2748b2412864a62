//! Everything known about Claude Code: its screens ([`reading`]), the keys that answer them ([`keys`]), its transcript, the input
//! and output of its hooks, its versions and its flags.

pub mod hook;
pub mod keys;
pub mod plans;
pub mod questions;
pub mod reading;
mod reserved;
pub mod transcript;
pub mod usage;
mod version;
pub mod vocabulary;

pub use hook::{HookEvent, HookWhat, gate_output, no_decision};
pub use reserved::{HOOKS_OFF, reserved_flag};
pub use version::Version;
