//! argv in, exit code out.

use std::process::ExitCode;

/// It can give back to the system what a crowd of clients has needed: `os::allocator` has its settings.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Before anything else: a shim is one process per slot and must stay small, and a hook runs before every
    // tool call and must be quick.
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(verb) if verb == missiond::shim::VERB => missiond::shim::main(),
        Some(verb) if verb == missiond::hook::VERB => {
            missiond::hook::main(arguments.map(|word| word.to_string_lossy().into_owned()))
        }
        Some(verb) if verb == missiond::lab::demo::stand_in::VERB => {
            missiond::lab::demo::stand_in::main(
                arguments.map(|word| word.to_string_lossy().into_owned()),
            )
        }
        _ => missiond::cli::main(),
    }
}
