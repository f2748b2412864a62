//! argv in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a shim is one process per slot and must stay small.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|verb| verb == missiond::shim::VERB)
    {
        return missiond::shim::main();
    }
    missiond::cli::main()
}
