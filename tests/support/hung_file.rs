//! A file on a file system that does not answer, for one process. The kernel asks a listener of fanotify before it lets
//! anybody open the file, and this listener keeps the kernel waiting.

use super::{is_root, skip};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const LISTENER: &str = r#"
import ctypes, os, struct, sys
FAN_CLASS_CONTENT, FAN_CLOEXEC, FAN_MARK_ADD, FAN_OPEN_PERM, FAN_ALLOW, AT_FDCWD = 4, 1, 1, 0x10000, 1, -100
path, held = sys.argv[1].encode(), sys.argv[2].encode()
def is_held(pid):
    if held == b"%d" % pid:
        return True
    try:
        words = open("/proc/%d/cmdline" % pid, "rb").read().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"missiond") and held in words[1:]
FAN_EVENT_ON_CHILD = 0x08000000
mask = FAN_OPEN_PERM | (FAN_EVENT_ON_CHILD if os.path.isdir(path) else 0)
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, os.O_RDONLY)
if queue < 0 or libc.fanotify_mark(queue, FAN_MARK_ADD, ctypes.c_uint64(mask), AT_FDCWD, path):
    print(os.strerror(ctypes.get_errno()), flush=True)
    sys.exit(1)
print("listens", flush=True)
while True:
    events = os.read(queue, 4096)
    while events:
        length, _, _, _, _, opened, pid = struct.unpack_from("=IBBHQii", events)
        events = events[length:]
        if not is_held(pid):
            os.write(queue, struct.pack("=iI", opened, FAN_ALLOW))
            os.close(opened)
"#;

/// While this exists, the process waits if it opens the file, or any file in it if it is a directory; all others open it as
/// usual.
pub struct HungFile(Child);

impl HungFile {
    /// `None`, with a word about it, if this machine can't do it.
    #[track_caller]
    pub fn new(file: &Path, process: i32) -> Option<HungFile> {
        HungFile::held(file, &process.to_string())
    }

    /// The same for each missiond that has this word among its arguments.
    #[track_caller]
    pub fn for_word(file: &Path, word: &str) -> Option<HungFile> {
        HungFile::held(file, word)
    }

    #[track_caller]
    fn held(file: &Path, held: &str) -> Option<HungFile> {
        if !is_root("a file that can't be opened") {
            return None;
        }
        let mut listener = Command::new("python3")
            .args(["-c", LISTENER])
            .arg(file)
            .arg(held)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut line = String::new();
        let said = listener.stdout.take().expect("its output");
        BufReader::new(said).read_line(&mut line).expect("a line");
        let hung = HungFile(listener);
        if line.trim() != "listens" {
            skip(&format!("a file that can't be opened ({})", line.trim()));
            return None;
        }
        Some(hung)
    }
}

impl Drop for HungFile {
    /// The kernel lets everybody go on who waits.
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it has ended");
    }
}
