//! From a slot's configuration to what is spawned: the program, its arguments and its environment.
//! Only `program` and `places` look at the disk.

mod claude;
mod environment;
mod places;
mod program;

pub use claude::{
    SessionStart, Version, calls_hook, claude_args, mode_word, reserved_flag, settings_json,
    with_status_line,
};
pub use environment::{
    HOOKS_OFF, LEFT_OUT, LEFT_OUT_PREFIXES, environment, is_left_out, process_environment,
};
pub use places::{
    hook_command, own_directory, own_status_line, transcript_elsewhere, transcript_path,
};
pub use program::{LaunchError, check_cwd, installed_version, resolve_program};

#[cfg(test)]
mod tests;
