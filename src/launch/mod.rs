//! From a slot's configuration to the process to spawn: the program, its arguments and its environment. Only `program`,
//! `places` and `trust` access the disk.

mod claude;
mod environment;
mod places;
mod program;
pub mod rehearsed;
mod trust;

pub use claude::{
    SessionStart, calls_hook, claude_args, mode_word, rules_of, settings_json, with_status_line,
};
pub use environment::{LEFT_OUT, LEFT_OUT_PREFIXES, environment, is_left_out, process_environment};
pub use places::{
    conversations_in, hook_command, own_directory, own_status_line, transcript_elsewhere,
    transcript_path,
};
pub use program::{NoVersion, ProgramError, check_cwd, installed_version, resolve_program};
pub use trust::{trust_file, would_ask};

#[cfg(test)]
mod tests;
