//! The PTY and the child in it. The only file that names portable-pty.

use super::process::StartReport;
use super::tree::{self, Reaped};
use super::{ShimSpec, process};
use crate::os::process_stat::Stat;
use filedescriptor::FileDescriptor;
use portable_pty::{CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use rustix::io::Errno;
use rustix::process::Pid;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How long the new process may take from its fork to the exec. The kernel needs about a millisecond; after this time it counts
/// as started, and a later death is reported as an exit.
const EXEC_WAIT: Duration = Duration::from_secs(2);

pub(super) struct Pty {
    master: Box<dyn MasterPty + Send>,
    /// Kept open so that the master never reports a hang-up while descendants come and go: the kernel reports the end of the
    /// child, not the terminal.
    _slave: Box<dyn SlavePty + Send>,
    /// A duplicate of the master. portable-pty's own writer would send a newline and Ctrl-D when it is dropped.
    file: File,
    pub child: Pid,
    pub cols: u16,
    pub rows: u16,
}

/// portable-pty gives the kernel's error only as text; 28 is "no space left", which is not about a disk here.
fn not_opened(fault: &str) -> String {
    match fault.contains("code: 28,") {
        true => "all pseudo-terminals are in use: close some, or raise kernel.pty.max".to_owned(),
        false => format!("no pseudo-terminal could be opened: {fault}"),
    }
}

/// A shortage of processes, memory or descriptors is temporary, and so is an update of the program.
fn is_passing(fault: &(dyn std::error::Error + 'static)) -> bool {
    let passing = [
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::MFILE,
        Errno::NFILE,
        Errno::TXTBSY,
    ];
    let error = fault.downcast_ref::<std::io::Error>();
    let number = error.and_then(std::io::Error::raw_os_error);
    number.is_some_and(|number| passing.contains(&Errno::from_raw_os_error(number)))
}

impl Pty {
    /// Opens a PTY and starts the program in it, as a session leader. If it has already ended, this returns how.
    pub fn spawn(spec: &ShimSpec) -> Result<(Self, Option<Reaped>), StartReport> {
        let pair = native_pty_system()
            .openpty(size(spec.cols, spec.rows))
            .map_err(|fault| StartReport::NotNow(not_opened(&fault.to_string())))?;
        let file = duplicate(pair.master.as_ref())
            .map_err(|fault| format!("the pseudo-terminal can't be used: {fault}"))?;
        let child = pair.slave.spawn_command(command(spec)).map_err(|fault| {
            let reason = format!("{} could not be started: {fault:#}", spec.argv[0]);
            let is_passing = fault.chain().any(is_passing);
            if is_passing {
                StartReport::NotNow(reason)
            } else {
                StartReport::Error(reason)
            }
        })?;
        // The handle is dropped: children are reaped in one place, together with the orphans.
        let child = child
            .process_id()
            .and_then(|id| Pid::from_raw(id as i32))
            .ok_or_else(|| "the program was started and has no process id".to_owned())?;
        let mut pty = Self {
            master: pair.master,
            _slave: pair.slave,
            file,
            child,
            cols: spec.cols,
            rows: spec.rows,
        };
        let ended = pty.await_exec(&spec.argv[0])?;
        Ok((pty, ended))
    }

    /// The child's output, if there is any; the descriptor never blocks.
    pub fn read<'a>(&mut self, buffer: &'a mut [u8]) -> &'a [u8] {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(fault) if fault.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        &buffer[..filled]
    }

    /// Writes as much as the terminal accepts now.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        match rustix::io::retry_on_intr(|| rustix::io::write(&self.file, bytes)) {
            Ok(count) => count,
            // EAGAIN: it is full. Anything else means that the terminal is gone, and with it the child.
            Err(Errno::AGAIN) | Err(_) => 0,
        }
    }

    pub fn resize(&mut self, cols: u16, rows: u16) -> Result<(), String> {
        if cols == 0 || rows == 0 {
            return Err(format!("a terminal can't be resized to {cols}x{rows}"));
        }
        self.master
            .resize(size(cols, rows))
            .map_err(|fault| format!("the terminal can't be resized: {fault}"))?;
        (self.cols, self.rows) = (cols, rows);
        Ok(())
    }

    /// The foreground process group of the terminal.
    pub fn foreground(&self) -> Option<Pid> {
        rustix::termios::tcgetpgrp(&self.file).ok()
    }

    /// portable-pty reports success before the exec, and if the exec fails (a broken binary, a missing loader) the process
    /// aborts. So wait until its name is no longer the shim's; an ended process that was not reaped still has a name.
    fn await_exec(&mut self, program: &str) -> Result<Option<Reaped>, StartReport> {
        let ours = name_and_state("self").map(|(name, _)| name);
        let child = self.child.as_raw_nonzero().to_string();
        let deadline = Instant::now() + EXEC_WAIT;
        while Instant::now() < deadline {
            match name_and_state(&child) {
                Some((name, _)) if Some(&name) != ours.as_ref() && name != process::LIMITER => {
                    break;
                }
                Some((_, 'Z')) => {
                    if let Some(reaped) = tree::reap_one(self.child) {
                        return self.judge_early_end(program, reaped);
                    }
                }
                _ => {}
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(None)
    }

    /// The kernel's reason is lost with the aborted process. It may have been temporary: an update that still writes the program.
    fn judge_early_end(
        &mut self,
        program: &str,
        reaped: Reaped,
    ) -> Result<Option<Reaped>, StartReport> {
        let aborted = rustix::process::Signal::ABORT.as_raw();
        if reaped.exit.signal != Some(aborted) {
            return Ok(Some(reaped));
        }
        let mut buffer = [0; 1024];
        let said = String::from_utf8_lossy(self.read(&mut buffer))
            .trim()
            .to_owned();
        Err(StartReport::NotNow(format!(
            "the system could not execute {program}: is something still writing it, is it made for this machine, are its \
             loader and libraries there? ({said})"
        )))
    }
}

/// The name and the state of a process, from one read.
fn name_and_state(pid: &str) -> Option<(String, char)> {
    let stat = Stat::of(pid)?;
    let state = stat.field(Stat::STATE)?.chars().next()?;
    Some((stat.name, state))
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn size(cols: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

/// If there are limits, this binary sets them and then executes the program: it never runs without them.
fn command(spec: &ShimSpec) -> CommandBuilder {
    let limiter = process::limiter(&spec.limits);
    let mut words = limiter.iter().chain(&spec.argv);
    let mut command = CommandBuilder::new(words.next().map_or("", String::as_str));
    command.args(words);
    command.cwd(&spec.cwd);
    command.env_clear();
    for (name, value) in &spec.env {
        command.env(name, value);
    }
    command
}

/// A duplicate descriptor for the master, which never blocks.
fn duplicate(master: &dyn MasterPty) -> Result<File, String> {
    let number = master.as_raw_fd().ok_or("it has no descriptor")?;
    let file = FileDescriptor::dup(&number)
        .and_then(|descriptor| descriptor.as_file())
        .map_err(|fault| fault.to_string())?;
    rustix::io::ioctl_fionbio(&file, true).map_err(|fault| fault.to_string())?;
    Ok(file)
}
