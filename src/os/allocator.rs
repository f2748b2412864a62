//! Settings of the allocator, which reads them from the environment when a process begins. The defaults suit a short
//! command; docs/testing.md has the figures.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The environment variable with the settings. Other programs with the same allocator would read it too.
pub const VARIABLE: &str = "_RJEM_MALLOC_CONF";

/// For a daemon: a background thread returns free memory to the system within seconds, and all threads share one arena,
/// so that one can reuse the memory of another.
const DAEMON: &str = "background_thread:true,narenas:1,oversize_threshold:0";

/// Address space that a daemon reserves, in pieces, in addition to what it uses, so that it can continue at a limit. It
/// takes no memory until it is used.
const KEPT: usize = 48 << 20;
const PIECE: usize = 4 << 20;

/// For a shim, which has two threads, lives for days and should be small: memory for a burst or a long paste is not
/// kept.
pub const SHIM: &str = "narenas:1,tcache:false,dirty_decay_ms:0,muzzy_decay_ms:0";

/// Re-executes this process with the settings of a daemon; it keeps its process id and its files. Returns if it already
/// has settings, or if that fails: then memory is returned later.
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
