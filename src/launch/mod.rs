//! From a slot's configuration to what is spawned: the program, its arguments and its environment.

mod claude;

pub use claude::{SessionStart, Version, claude_args, reserved_flag, settings_json};
