//! All that is known of Claude Code: its screens ([`reading`]), the keys that answer them ([`keys`]), its transcript, the
//! input and output of its hooks, its versions and its flags.

pub mod hook;
pub mod keys;
pub mod questions;
pub mod reading;
mod reserved;
pub mod transcript;
mod version;

pub use hook::{HookEvent, HookWhat, gate_output};
pub use reserved::{HOOKS_OFF, reserved_flag};
pub use version::Version;
