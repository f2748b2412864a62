//! Settings of the allocator, which it reads from the environment when a process begins. What it does without them suits a
//! command that ends soon; docs/testing.md has the figures.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The variable that it reads them from. Other programs with the same allocator would read it too.
pub const VARIABLE: &str = "_RJEM_MALLOC_CONF";

/// For a daemon: a thread of the allocator gives memory that fell free back to the system within seconds, and all threads
/// share one arena, so that one of them can use what another one has left.
const DAEMON: &str = "background_thread:true,narenas:1,oversize_threshold:0";

/// Address space that a daemon keeps for itself, in pieces, beside what it uses: it goes on if a limit leaves it no more. It
/// takes no memory until it is used.
const KEPT: usize = 48 << 20;
const PIECE: usize = 4 << 20;

/// For a shim, which has one thread, lives for days and should be small: nothing is kept of what a burst or a long paste
/// has needed.
pub const SHIM: &str = "narenas:1,tcache:false,dirty_decay_ms:0,muzzy_decay_ms:0";

/// Begins this process anew with the settings of a daemon, as which it keeps its number and its files. Returns if it has
/// settings already, or if it can't be done: then memory is given back later.
pub fn begin_as_daemon() {
    if std::env::var_os(VARIABLE).is_some() {
        let pieces = (0..KEPT / PIECE).map(|_| Vec::<u8>::with_capacity(PIECE));
        return drop(pieces.collect::<Vec<_>>());
    }
    let mut arguments = std::env::args_os();
    let (Ok(program), Some(name)) = (std::env::current_exe(), arguments.next()) else {
        return;
    };
    let mut again = Command::new(program);
    let _cant = again
        .arg0(name)
        .args(arguments)
        .env(VARIABLE, DAEMON)
        .exec();
}
