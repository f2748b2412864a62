//! A test program that is killed can't clean up. Another process notices its end, and ends what it has left behind.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Reads `+directory` and `-directory` until the test program has ended, in whatever way. Then it kills every process that has
/// one of the directories in its arguments or its environment, twice, since one may be about to be started.
const REAPER: &str = r#"
trap '' INT TERM HUP
left=
while read -r line; do
    case $line in
        +*) left="$left ${line#+}" ;;
        -*) kept=; for dir in $left; do [ "$dir" = "${line#-}" ] || kept="$kept $dir"; done; left=$kept ;;
    esac
done
for round in 1 2; do
    for dir in $left; do
        for process in $(grep -laFs -e "$dir" /proc/[0-9]*/cmdline /proc/[0-9]*/environ); do
            pid=${process#/proc/}; kill -9 "${pid%%/*}"
        done
    done
    [ -z "$left" ] || sleep 0.2
done
for dir in $left; do rm -rf "$dir"; done
"#;

/// It has no end of its own: the pipe is closed when the test program ends.
static OPEN: LazyLock<Mutex<(Child, ChildStdin)>> = LazyLock::new(|| {
    let mut child = Command::new("sh")
        .args(["-c", REAPER])
        // Not in the group that gets ctrl-c.
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let pipe = child.stdin.take().expect("a pipe");
    Mutex::new((child, pipe))
});

/// From now on nothing that belongs to this directory outlives the test program.
pub fn guard(directory: &Path) {
    tell('+', directory);
}

/// The test has cleaned up itself.
pub fn release(directory: &Path) {
    tell('-', directory);
}

/// A child of the test program that no test has started.
pub fn pid() -> u32 {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).0.id()
}

fn tell(what: char, directory: &Path) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    // A reaper that is gone can't help; the test is the same without it.
    let _ = writeln!(open.1, "{what}{}", directory.display());
}
