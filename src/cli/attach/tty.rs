//! The person's terminal: raw while the slot is shown, and as it was afterwards, however that ends.

use super::traces::Traces;
use crate::cli::failure::Failure;
use crate::core::model::Fault;
use crate::os::pause::{self, Moment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// What a terminal that does not know its size is taken for.
const UNKNOWN_SIZE: (u16, u16) = (80, 24);
/// Pieces on their way from the keyboard or to the screen: more than a moment's worth waits in the socket.
const MAX_PIECES: usize = 8;
/// One read of the keyboard; a paste comes in several.
const READ: usize = 16 << 10;
/// A terminal that takes nothing for this long is not waited for at the end.
const LAST_WRITE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Standard input and output are to be a terminal; there is nothing to attach otherwise.
pub fn check() -> Result<(), Failure> {
    if isatty(stdin()) && isatty(stdout()) {
        return Ok(());
    }
    Err(
        Failure::usage("attach needs a terminal: standard input or output is none")
            .next("in a script: missiond screen, missiond send, missiond write"),
    )
}

/// Columns and rows.
pub fn size() -> (u16, u16) {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => UNKNOWN_SIZE,
    }
}

/// A terminal in raw mode until this is dropped, also by a panic.
pub struct Raw {
    to_restore: Arc<ToRestore>,
}

thread_local! {
    /// Whether this thread is at work on the traces.
    static AT_TRACES: Cell<bool> = const { Cell::new(false) };
}

struct ToRestore {
    before: Termios,
    traces: Mutex<Traces>,
    restored: AtomicBool,
}

impl Raw {
    pub fn enter((cols, rows): (u16, u16)) -> Result<Raw, Failure> {
        let failed = |error| Failure::failed(format!("the terminal can't be set up: {error}"));
        let raw = Raw {
            to_restore: Arc::new(ToRestore {
                before: tcgetattr(stdin()).map_err(failed)?,
                traces: Mutex::new(Traces::new(cols, rows)),
                restored: AtomicBool::new(false),
            }),
        };
        raw.again().map_err(failed)?;
        // The title is put aside for the time, where the terminal knows how.
        let _ = write_all(b"\x1b[22;0t");
        restore_at_panic(Arc::clone(&raw.to_restore));
        Ok(raw)
    }

    /// Sets raw mode once more: a shell that had the terminal meanwhile has set its own.
    pub fn again(&self) -> rustix::io::Result<()> {
        let mut raw = self.to_restore.before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)
    }

    pub fn resized(&self, (cols, rows): (u16, u16)) {
        self.to_restore
            .with_traces(|traces| traces.resize(cols, rows));
    }

    /// A thread that writes to the terminal, since that may block; the second half tells when it has ended.
    pub fn writer(&self) -> (mpsc::Sender<Vec<u8>>, oneshot::Receiver<()>) {
        let (queue, mut pieces) = mpsc::channel::<Vec<u8>>(MAX_PIECES);
        let (ended, has_ended) = oneshot::channel();
        let to_restore = Arc::clone(&self.to_restore);
        thread::spawn(move || {
            while let Some(bytes) = pieces.blocking_recv() {
                pause::fault(Moment::BeforeShown);
                to_restore.with_traces(|traces| traces.shown(&bytes));
                if to_restore.is_restored() || write_all(&bytes).is_err() {
                    break;
                }
            }
            drop(ended);
        });
        (queue, has_ended)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let undo = self.to_restore.with_traces(|traces| traces.undo());
        self.to_restore.restore(&undo);
    }
}

impl ToRestore {
    fn with_traces<T>(&self, work: impl FnOnce(&mut Traces) -> T) -> T {
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        AT_TRACES.set(true);
        let result = work(&mut traces);
        AT_TRACES.set(false);
        result
    }

    /// Then nothing more of the program is shown.
    fn is_restored(&self) -> bool {
        self.restored.load(Ordering::SeqCst)
    }

    /// Where the terminal itself is gone, nothing of this matters.
    fn restore(&self, undo: &str) {
        if self.restored.swap(true, Ordering::SeqCst) {
            return;
        }
        let out = stdout();
        let mut ready = [PollFd::new(&out, PollFlags::OUT)];
        if poll(&mut ready, Some(&LAST_WRITE)).is_ok_and(|count| count > 0) {
            let _ = write_all(format!("{undo}\x1b[23;0t").as_bytes());
        }
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// The words of a panic are to be read, and it ends this program, whatever thread it is in: without one of them there is
/// no terminal. One inside the emulator is caught and changes nothing; it comes from one who is at work on the traces.
fn restore_at_panic(to_restore: Arc<ToRestore>) {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if AT_TRACES.get() {
            return told(panic);
        }
        let undo = to_restore.with_traces(|traces| traces.undo());
        to_restore.restore(&undo);
        told(panic);
        std::process::exit(Fault::Failed.exit_code().into());
    }));
}

/// A thread that reads the keyboard, since that blocks; it ends with the process.
pub fn reader() -> mpsc::Receiver<Vec<u8>> {
    let (typed, keys) = mpsc::channel(MAX_PIECES);
    thread::spawn(move || {
        let mut buffer = vec![0; READ];
        loop {
            let read =
                rustix::io::retry_on_intr(|| rustix::io::read(stdin(), buffer.as_mut_slice()));
            let Ok(count @ 1..) = read else { return };
            pause::fault(Moment::KeyRead);
            if typed.blocking_send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    keys
}

fn write_all(mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        let count = rustix::io::retry_on_intr(|| rustix::io::write(stdout(), bytes))?;
        bytes = &bytes[count..];
    }
    Ok(())
}
