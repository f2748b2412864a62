//! The shim's life after the start: one loop around `poll`, which sleeps while nothing happens.

mod bound;
mod end;
mod recording;

use super::checkpoints::Checkpoints;
use super::inputs::{InputOffer, Inputs};
use super::listener::{PeerGone, ShimListener, ShimPeer};
use super::pty::Pty;
use super::recorder::Recorder;
use super::text::{TextPiece, TextStream};
use super::tree::Reaped;
use super::writer::CastJob;
use super::{FromShim, Hello, MAX_NOTE, PROTOCOL, ShimSpec, ToShim};
use crate::core::terminal::At;
use bound::RecordingBound;
use end::ProgramEnd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most bytes of one read from the terminal, and so the longest event. The kernel's own buffer holds 4 KB and is refilled
/// during the read.
const READ: usize = 16 << 10;

/// The longest marker in characters; the rest is cut off. A state and a reason need far less, and a recording's last line must be
/// found without reading much of it.
const MAX_MARK: usize = 4 << 10;

/// How long to wait for the rest of a character. A terminal passes 4 KB at a time, which often ends inside a character, and on a
/// loaded machine the next piece comes late; two broken characters in its place would shift the rest of the row.
const HALF_CHARACTER: Duration = Duration::from_secs(2);

/// How long the terminal is not read after a rotation was refused because of newer output, so that the next snapshot can be
/// complete. A child that writes meanwhile waits no longer than at a busy terminal.
const HOLD: Duration = Duration::from_millis(200);

/// How long the terminal is not read before the first daemon has connected, which takes milliseconds. Otherwise a program that
/// floods its terminal from the start would write megabytes that the daemon has to read before it knows the screen. This also
/// limits the wait for a daemon that was killed.
const FIRST_DAEMON: Duration = Duration::from_secs(5);

/// How long the child gets when the shim receives SIGTERM (the machine shuts down).
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// The signals that the shim handles, as sockets that become readable.
pub(super) struct ShimSignals {
    pub child: UnixStream,
    pub end: UnixStream,
    /// A daemon looks for the shim.
    pub ring: UnixStream,
}

pub(super) struct Shim {
    slot: String,
    /// The state directory of the daemon that started it.
    home: PathBuf,
    listener: ShimListener,
    peer: Option<ShimPeer>,
    pty: Pty,
    recorder: Recorder,
    bound: RecordingBound,
    text: TextStream,
    /// When to give up on the rest of a held character.
    text_due: Option<Instant>,
    /// Until when nothing is read from the terminal.
    held_until: Option<Instant>,
    inputs: Inputs,
    end: ProgramEnd,
    /// A note that it keeps for the next daemon.
    note: String,
    checkpoints: Checkpoints,
    buffer: Box<[u8]>,
}

/// What woke the loop up.
struct Ready {
    child: bool,
    end: bool,
    ring: bool,
    listener: bool,
    peer: PollFlags,
}

impl Shim {
    pub fn new(spec: ShimSpec, listener: ShimListener, mut recorder: Recorder, pty: Pty) -> Self {
        let goes_on = recorder.length() > 0;
        recorder.record('m', &format!("start {}", pty.child.as_raw_nonzero()));
        if goes_on {
            // The header has the size of the first start.
            let at = recorder.record('r', &format!("{}x{}", pty.cols, pty.rows));
            recorder.clock().changed(at);
        }
        Self {
            slot: spec.slot,
            bound: RecordingBound::new(spec.cap),
            home: spec.keeper.home,
            listener,
            peer: None,
            pty,
            recorder,
            text: TextStream::default(),
            text_due: None,
            held_until: Some(Instant::now() + FIRST_DAEMON),
            inputs: Inputs::default(),
            end: ProgramEnd::new(),
            note: String::new(),
            checkpoints: Checkpoints::default(),
            buffer: vec![0; READ].into_boxed_slice(),
        }
    }

    /// The greeting, and the events behind [`Hello::recorded`] that wait for the disk.
    fn hello(&self) -> (Hello, Vec<Arc<CastJob>>) {
        let (recorded, unwritten) = self.recorder.recorded();
        let hello = self.greeting(recorded);
        (hello, unwritten)
    }

    /// The greeting for a daemon that reads so many bytes of the recording.
    pub fn greeting(&self, recorded: u64) -> Hello {
        Hello {
            protocol: PROTOCOL,
            slot: self.slot.clone(),
            shim_pid: std::process::id(),
            child_pid: self.pty.child.as_raw_nonzero().get() as u32,
            cols: self.pty.cols,
            rows: self.pty.rows,
            recording: self.recorder.path().to_owned(),
            recorded,
            last_input: self.inputs.last_taken(),
            exit: self.end.reported_exit(),
            ended_at: self.end.ended_at(),
            note: Some(self.note.clone()),
            written: Some(self.checkpoints.written()),
            checkpoints: self.checkpoints.kept(),
        }
    }

    /// Runs until the process tree is gone and a daemon has recorded that.
    pub fn run(&mut self, signals: &ShimSignals) {
        self.reap();
        while !self.end.is_dismissed() {
            let held = self.held();
            let ready = self.wait(signals, held);
            if held.is_some() {
                self.recorder.clock().stand_still(Instant::now());
            }
            if ready.end {
                clear(&signals.end, &mut self.buffer);
                self.end.dismiss();
                self.stop(SHUTDOWN_GRACE);
                self.report(FromShim::Ends);
            }
            if self.held().is_none() {
                self.pump_output();
            }
            if ready.peer.intersects(PollFlags::OUT) {
                self.tell(ShimPeer::flush);
            }
            if !(ready.peer & !PollFlags::OUT).is_empty() {
                self.listen();
            }
            if ready.ring {
                clear(&signals.ring, &mut self.buffer);
                self.rung();
            }
            if ready.listener {
                self.welcome();
            }
            self.pump_input();
            self.serve_timers();
            if ready.child {
                clear(&signals.child, &mut self.buffer);
                self.reap();
            }
        }
    }

    /// The child has ended before the loop began.
    pub fn has_ended(&mut self, reaped: Reaped) {
        self.end.exited(reaped.exit);
    }

    /// Ends everything at once; for a start that no daemon knows of.
    pub fn abandon(&mut self, signals: &ShimSignals) {
        self.end.dismiss();
        self.stop(Duration::ZERO);
        self.run(signals);
    }

    fn wait(&self, signals: &ShimSignals, held: Option<Instant>) -> Ready {
        let mut pty_events = PollFlags::empty();
        pty_events.set(PollFlags::IN, held.is_none());
        pty_events.set(PollFlags::OUT, self.inputs.front().is_some());
        // A daemon that comes while the file is replaced would not know which one it reads.
        let mut welcomes = PollFlags::IN;
        welcomes.set(PollFlags::IN, !self.recorder.moves());
        let mut fds = vec![
            PollFd::new(&signals.child, PollFlags::IN),
            PollFd::new(&signals.end, PollFlags::IN),
            PollFd::new(&signals.ring, PollFlags::IN),
            PollFd::new(&self.listener, welcomes),
            PollFd::new(&self.pty, pty_events),
            PollFd::new(&self.recorder, PollFlags::IN),
        ];
        let peer_at = self.peer.as_ref().map(|peer| {
            let mut events = PollFlags::IN;
            events.set(PollFlags::OUT, peer.has_waiting());
            fds.push(PollFd::new(peer, events));
            fds.len() - 1
        });
        let bell_at = self.listener.bell().map(|bell| {
            fds.push(PollFd::new(bell, welcomes));
            fds.len() - 1
        });
        let timeout = self.next_timer(held).map(|wait| Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: i64::from(wait.subsec_nanos()),
        });
        // The only failure is an interruption by a signal, which the next round sees in its socket.
        let _ = poll(&mut fds, timeout.as_ref());
        let ready = |index: usize| !fds[index].revents().is_empty();
        Ready {
            child: ready(0),
            end: ready(1),
            ring: ready(2),
            listener: ready(3) || bell_at.is_some_and(ready),
            peer: peer_at.map_or(PollFlags::empty(), |at| fds[at].revents()),
        }
    }

    /// Until when the terminal is not read: for a rotation, a slow daemon or a slow disk.
    fn held(&self) -> Option<Instant> {
        let (peer, now) = (self.peer.as_ref(), Instant::now());
        self.held_until
            .max(peer.and_then(|peer| peer.awaited_until(now)))
            .max(self.recorder.awaited_until(now))
    }

    /// How long nothing needs to be done. While the terminal is not read, no silence can be observed.
    fn next_timer(&self, held: Option<Instant>) -> Option<Duration> {
        let now = Instant::now();
        [
            held.or_else(|| self.recorder.next_silence()),
            self.end.due(),
            self.text_due,
            self.recorder.look_at(),
            self.listener.bell_until(),
        ]
        .into_iter()
        .flatten()
        .min()
        .map(|at| at.saturating_duration_since(now))
    }

    fn serve_timers(&mut self) {
        let now = Instant::now();
        if self.text_due.is_some_and(|due| due <= now) {
            self.give_up_character(now);
        }
        if self.held_until.is_some_and(|until| until <= now) {
            self.held_until = None;
        }
        // If its socket and its daemon's state are gone, nobody will ever dismiss it.
        if self.end.looks(now) && !self.listener.is_there() && !self.home.exists() {
            self.end.dismiss();
        }
        if self.listener.bell_until().is_some_and(|until| until <= now) {
            self.listener.close_bell();
        }
        self.follow_recording();
        self.press(now);
    }

    // ---- from the terminal to the recording and the daemon

    /// Reads once; returns whether there was anything. If not, the silence up to now is reported.
    fn pump_output(&mut self) -> bool {
        let now = Instant::now();
        let bytes = self.pty.read(&mut self.buffer);
        if bytes.is_empty() {
            while let Some(at) = self.recorder.clock().heard_nothing(now) {
                self.report(FromShim::Quiet { at });
            }
            return false;
        }
        let piece = self.text.push(bytes);
        self.text_due = self
            .text
            .is_holding()
            .then(|| Instant::now() + HALF_CHARACTER);
        self.pass_on(&piece);
        self.bound_recording();
        true
    }

    /// Passes on half a character if the other half does not come. It can't come while the terminal is not read.
    fn give_up_character(&mut self, now: Instant) {
        if let Some(until) = self.held() {
            self.text_due = Some(until.max(now) + HALF_CHARACTER);
        } else if !self.pump_output() {
            self.flush_text();
        }
    }

    fn flush_text(&mut self) {
        self.text_due = None;
        let piece = self.text.flush();
        self.pass_on(&piece);
    }

    /// Writes to the recording first, and then sends the same bytes with the same time to the daemon.
    fn pass_on(&mut self, piece: &TextPiece) {
        if piece.text.is_empty() {
            return;
        }
        let at = self.record_change('o', &piece.text, piece.exact.as_deref());
        let position = self.recorder.position();
        self.checkpoints.wrote(at, piece.bytes().len(), position);
        self.tell(|peer| peer.output(at, piece.bytes()));
    }

    /// Records a change of the screen, and returns its time.
    fn record_change(&mut self, code: char, data: &str, exact: Option<&[u8]>) -> At {
        let at = self.recorder.record_exactly(code, data, exact);
        self.recorder.clock().changed(at);
        at
    }

    fn report(&mut self, message: FromShim) {
        self.tell(|peer| peer.report(&message));
    }

    /// A daemon that can't be reached is dropped: the recording has everything for its return.
    fn tell(&mut self, say: impl FnOnce(&mut ShimPeer) -> Result<(), PeerGone>) {
        if let Some(peer) = &mut self.peer
            && say(peer).is_err()
        {
            self.hear_out();
        }
    }

    /// Processes the last messages of a daemon that is gone: it may have sent a dismissal.
    fn hear_out(&mut self) {
        let Some(mut peer) = self.peer.take() else {
            return;
        };
        while let Ok(commands) = peer.read(&mut self.buffer)
            && !commands.is_empty()
        {
            commands.into_iter().for_each(|command| self.obey(command));
        }
    }

    // ---- from the daemon to the terminal and the tree

    /// A daemon does not find the shim, or its own files: removed files are created again.
    fn rung(&mut self) {
        self.restore();
        if let Err(fault) = self.listener.rung() {
            self.trouble(format!(
                "the shim can't be reached without its socket: {fault}"
            ));
        }
    }

    /// Creates removed files again.
    fn restore(&mut self) {
        self.recorder.restore();
        if let Err(text) = self.listener.restore() {
            self.trouble(text);
        }
    }

    /// The newest daemon replaces the previous one.
    fn welcome(&mut self) {
        while !self.recorder.moves()
            && let Some(peer) = self.listener.accept()
        {
            // It reads the recording at once.
            self.recorder.restore();
            let socket = self.listener.restore();
            self.held_until = None;
            let (hello, unwritten) = self.hello();
            self.peer = Some(peer);
            self.tell(|peer| peer.greet(&hello));
            for event in &unwritten {
                if let CastJob::Event(event) = &**event {
                    self.hand_over(event);
                }
            }
            if let Err(text) = socket {
                self.trouble(text);
            }
            if self.recorder.hangs() {
                self.tell_hanging();
            }
            // The silences that it finds in the recording may be long over, and must not look incomplete.
            let told = self.recorder.clock().told();
            told.for_each(|at| self.report(FromShim::Quiet { at }));
            self.tell_news();
        }
    }

    fn listen(&mut self) {
        let Some(peer) = &mut self.peer else { return };
        match peer.read(&mut self.buffer) {
            Ok(commands) => commands.into_iter().for_each(|command| self.obey(command)),
            Err(PeerGone) => {
                self.peer = None;
                // The next daemon must find it, and nobody can be informed if that fails.
                let _ = self.listener.restore();
            }
        }
    }

    fn obey(&mut self, command: Option<ToShim>) {
        match command {
            Some(ToShim::Input { n, bytes }) => self.take_input(n, bytes),
            Some(ToShim::Resize { cols, rows }) => self.resize(cols, rows),
            Some(ToShim::Signal { signal, foreground }) => self.signal_group(signal, foreground),
            Some(ToShim::Stop { grace_ms }) => self.stop(Duration::from_millis(grace_ms)),
            Some(ToShim::Mark { text }) => {
                let text: String = text.chars().take(MAX_MARK).collect();
                self.recorder.record('m', &text);
            }
            Some(ToShim::Keep { note }) if note.len() <= MAX_NOTE => self.note = note,
            Some(ToShim::Keep { .. }) => self.trouble("a note is too long to be kept"),
            Some(ToShim::Checkpoint(screen)) => self.checkpoints.keep(screen),
            Some(ToShim::Rotate { to, seen, snapshot }) => self.rotate(&to, seen, &snapshot),
            Some(ToShim::Restore) => self.restore(),
            // Receiving it is enough: the peer has recorded the time.
            Some(ToShim::Taking) => {}
            Some(ToShim::Dismiss) if self.end.is_over() => self.end.dismiss(),
            Some(ToShim::Dismiss) => self.trouble("a shim is not dismissed while its child runs"),
            None => self.trouble("this shim is older than the daemon and did not understand it"),
        }
    }

    fn rotate(&mut self, to: &Path, seen: At, snapshot: &str) {
        // Bytes that still wait in the terminal would come after the snapshot as well; while it is not read, none come.
        let came = self.held_until.is_none() && self.pump_output();
        let last_change = self.recorder.clock().last_change();
        let is_current = !came && last_change.is_none_or(|last| last <= seen);
        self.held_until = (!is_current).then(|| Instant::now() + HOLD);
        let reason = if !is_current || self.text.is_holding() {
            "there is newer output than the snapshot shows"
        } else if self.recorder.position().is_none() {
            "its disk is behind"
        } else {
            let size = (self.pty.cols, self.pty.rows);
            self.recorder.rotate(to, size, snapshot);
            return self.follow_recording();
        };
        let reason = reason.to_owned();
        self.report(FromShim::NotRotated { reason });
    }

    fn trouble(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.report(FromShim::Trouble { text });
    }

    fn take_input(&mut self, n: u64, bytes: Vec<u8>) {
        if self.end.has_exited() {
            let reason = "the program has ended".to_owned();
            return self.report(FromShim::Refused { n, reason });
        }
        match self.inputs.offer(n, bytes) {
            InputOffer::Taken => {}
            InputOffer::Written => self.report(FromShim::Written { n }),
            InputOffer::Refused(reason) => self.report(FromShim::Refused { n, reason }),
        }
    }

    /// Writes what the terminal accepts; the rest waits for the child to read.
    fn pump_input(&mut self) {
        while let Some(bytes) = self.inputs.front() {
            let whole = bytes.len();
            let count = self.pty.write(bytes);
            if let Some(n) = self.inputs.advance(count) {
                self.report(FromShim::Written { n });
            }
            if count < whole {
                return;
            }
        }
    }

    fn resize(&mut self, cols: u16, rows: u16) {
        match self.pty.resize(cols, rows) {
            Ok(()) => {
                let at = self.record_change('r', &format!("{cols}x{rows}"), None);
                self.report(FromShim::Resized { at, cols, rows });
            }
            Err(text) => self.trouble(text),
        }
    }

    fn signal_group(&mut self, number: i32, foreground: bool) {
        let Some(signal) = Signal::from_named_raw(number) else {
            return self.trouble(format!("there is no signal {number}"));
        };
        // Once it is reaped, its id may belong to another process.
        if self.end.has_exited() {
            return;
        }
        let in_front = self.pty.foreground().filter(|_| foreground);
        let group = in_front.unwrap_or(self.pty.child);
        if let Err(fault) = rustix::process::kill_process_group(group, signal) {
            self.trouble(format!("signal {number} could not be sent: {fault}"));
        }
    }
}

/// Drains the signals from their socket: only their presence matters.
fn clear(mut socket: &UnixStream, buffer: &mut [u8]) {
    while std::io::Read::read(&mut socket, buffer).is_ok_and(|count| count > 0) {}
}
