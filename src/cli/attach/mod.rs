//! `attach`: the verb is here; `keys` tells what is typed, `tty` is this terminal, `traces` what a program has left on it.

mod keys;
mod traces;
mod tty;

use crate::cli::complete;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::signals::{HeardSignal, Signals};
use crate::cli::target;
use crate::control::requests::{AttachParams, Ping};
use crate::core::model::{Ending, FromViewer, Nothing, ToViewer};
use crate::os::pause::{self, Moment};
use futures_util::{SinkExt, StreamExt};
use keys::{DetachKey, KeyReader, Typed};
use serde_json::json;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};
use tty::Raw;

/// A window that is being dragged has another size many times a second; the program is told of the last.
const SIZE_SETTLES: Duration = Duration::from_millis(60);
/// At the end, what was shown last has this long to reach the terminal.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long it stands there how to leave, before the slot's screen covers it.
const READ_IT: Duration = Duration::from_millis(600);

/// Shows the live terminal of a slot, and types into it.
///
/// What the program writes comes to this terminal, and what you type goes to the program. It gets the size of this
/// terminal, or of the smallest that is attached, and its own size back when the last one leaves. ctrl-q detaches
/// and leaves it running; pressed twice, it is sent to the program.
///
/// While you type, missiond answers no dialog by rule and sends no message, until ten seconds after the last key or
/// until you detach. With --read-only nothing that you type is sent, the slot keeps its size, and a terminal of
/// another size shows what fits.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond attach coder
  missiond attach coder --read-only          only watch
  missiond attach coder --detach-keys ctrl-] where ctrl-q is needed inside")]
pub struct Attach {
    /// The slot or session
    #[arg(value_name = "NAME", add = complete::slots())]
    slot: String,
    /// Watch, and send nothing
    #[arg(long)]
    read_only: bool,
    /// The key that detaches: ctrl- and a letter or one of @ \ ] ^ _
    #[arg(long, value_name = "KEY", default_value = "ctrl-q")]
    detach_keys: DetachKey,
}

/// Why it is over.
enum AttachEnd {
    Detached,
    Told(Ending),
    /// The connection ended without a word.
    Silence,
    Signal(&'static str),
    /// The terminal itself is gone.
    TerminalGone,
}

impl Attach {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        tty::check()?;
        let client = context.connect().await?;
        let (cols, rows) = tty::size();
        let params = AttachParams {
            slot: self.slot.clone(),
            cols,
            rows,
            read_only: self.read_only,
        };
        let (_, frames) = client.attach(params).await?;
        let note_until = self.say_how_to_leave(context);
        let over = self.show(frames, (cols, rows), note_until).await?;
        self.explain(over, context).await
    }

    /// The screen of the slot has no room for it, so it is said before. Returns until when it stands there.
    fn say_how_to_leave(&self, context: &Context) -> Option<Instant> {
        if context.out.quiet || context.out.json {
            return None;
        }
        let (slot, key) = (&self.slot, self.detach_keys);
        context
            .out
            .note(format!("{key} leaves {slot}, which runs on"));
        Some(Instant::now() + READ_IT)
    }

    /// The terminal is as it was when this returns.
    async fn show(
        &self,
        frames: Framed<UnixStream, LengthDelimitedCodec>,
        size: (u16, u16),
        note_until: Option<Instant>,
    ) -> Result<AttachEnd, Failure> {
        let signals = Signals::listen()?;
        let raw = Raw::enter(size)?;
        let (screen, written) = raw.writer();
        let mut session = AttachedSession {
            raw,
            frames,
            screen,
            unwritten: None,
            keys: KeyReader::new(self.detach_keys),
            read_only: self.read_only,
            note_until,
            resize_at: None,
            settle_at: None,
        };
        let over = session.run(signals).await;
        session.finish(written).await;
        Ok(over)
    }

    async fn explain(&self, over: AttachEnd, context: &Context) -> Result<(), Failure> {
        let slot = &self.slot;
        let (why, text) = match over {
            AttachEnd::Detached => ("detached", format!("detached from {slot}")),
            AttachEnd::Told(Ending::Exited { code, signal }) => {
                ("exited", format!("{slot} exited ({})", how(code, signal)))
            }
            AttachEnd::Told(Ending::Removed) => ("removed", format!("{slot} was removed")),
            AttachEnd::Told(Ending::DaemonEnds) => (
                "daemon_ended",
                format!(
                    "the daemon ended; {slot} lives on\n{}",
                    come_back(context, slot)
                ),
            ),
            AttachEnd::Told(Ending::Refused(refusal)) => return Err(refusal.into()),
            AttachEnd::Silence => return Err(self.lost(context).await),
            AttachEnd::Signal(name) => {
                return Err(Failure::failed(format!("detached from {slot} by {name}")));
            }
            AttachEnd::TerminalGone => return Err(Failure::failed("the terminal is gone")),
        };
        if context.out.json {
            return context.out.json(&json!({"slot": slot, "ended": why}));
        }
        context.out.done(text)
    }

    /// Either the daemon is gone, or it no longer wanted this terminal.
    async fn lost(&self, context: &Context) -> Failure {
        let slot = &self.slot;
        match context.ask::<Ping>(Nothing {}).await {
            Ok(_) => Failure::failed(format!(
                "detached from {slot}: this terminal did not take what it was sent"
            ))
            .next(format!("missiond attach {slot}")),
            Err(_) => Failure::new(
                crate::cli::failure::Blame::NoDaemon,
                format!("the daemon went away; {slot} lives on"),
            )
            .next(come_back(context, slot)),
        }
    }
}

fn come_back(context: &Context, slot: &str) -> String {
    let start = target::how_to_start(context);
    format!("{start}\nthen: missiond attach {slot}")
}

fn how(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "nobody knows how".to_owned(),
    }
}

/// One attached terminal.
struct AttachedSession {
    raw: Raw,
    frames: Framed<UnixStream, LengthDelimitedCodec>,
    screen: mpsc::Sender<Vec<u8>>,
    /// What waits for room on the screen.
    unwritten: Option<Vec<u8>>,
    keys: KeyReader,
    read_only: bool,
    /// The screen is not drawn before: how to leave stands there. Keys and sizes are passed on meanwhile.
    note_until: Option<Instant>,
    /// When the new size of the window is told.
    resize_at: Option<Instant>,
    /// When a key that may go on is taken as it is.
    settle_at: Option<Instant>,
}

impl AttachedSession {
    async fn run(&mut self, mut signals: Signals) -> AttachEnd {
        let mut typed = tty::reader();
        loop {
            let next = tokio::select! {
                // Keys first: a program that floods the screen can be interrupted and left.
                biased;
                heard = signals.next() => match heard {
                    HeardSignal::End(name) => Some(AttachEnd::Signal(name)),
                    HeardSignal::Resized | HeardSignal::GoesOn => {
                        self.resize_at = Some(Instant::now() + SIZE_SETTLES);
                        None
                    }
                },
                bytes = typed.recv() => match bytes {
                    Some(bytes) => {
                        pause::fault(Moment::KeyTaken);
                        let typed = self.keys.take(&bytes);
                        self.typed(typed).await
                    }
                    None => Some(AttachEnd::TerminalGone),
                },
                () = until(self.settle_at) => {
                    let typed = self.keys.time_passed();
                    self.typed(typed).await
                }
                () = until(self.resize_at) => self.resize().await,
                taken = write(&self.screen, &mut self.unwritten) => {
                    (!taken).then_some(AttachEnd::TerminalGone)
                }
                () = until(self.note_until) => {
                    self.note_until = None;
                    None
                }
                frame = self.frames.next(), if self.unwritten.is_none() && self.note_until.is_none() => {
                    self.heard(frame)
                }
            };
            if let Some(over) = next {
                return over;
            }
        }
    }

    async fn typed(&mut self, typed: Typed) -> Option<AttachEnd> {
        self.settle_at = self
            .keys
            .patience()
            .map(|patience| Instant::now() + patience);
        if typed.detach {
            return Some(AttachEnd::Detached);
        }
        if typed.send.is_empty() || self.read_only {
            return None;
        }
        self.tell(FromViewer::Keys(typed.send)).await
    }

    async fn resize(&mut self) -> Option<AttachEnd> {
        self.resize_at = None;
        // Who was stopped and goes on has lost raw mode as well.
        if self.raw.again().is_err() {
            return Some(AttachEnd::TerminalGone);
        }
        let (cols, rows) = tty::size();
        self.raw.resized((cols, rows));
        self.tell(FromViewer::Resize { cols, rows }).await
    }

    async fn tell(&mut self, message: FromViewer) -> Option<AttachEnd> {
        let frame = Bytes::from(message.encode());
        match self.frames.send(frame).await {
            Ok(()) => None,
            // What the daemon said last may still be there to be read.
            Err(_) => match self.frames.next().await {
                frame @ Some(Ok(_)) => self.heard(frame),
                _ => Some(AttachEnd::Silence),
            },
        }
    }

    fn heard(
        &mut self,
        frame: Option<Result<tokio_util::bytes::BytesMut, std::io::Error>>,
    ) -> Option<AttachEnd> {
        let Some(Ok(frame)) = frame else {
            return Some(AttachEnd::Silence);
        };
        match ToViewer::decode(&frame) {
            Ok(ToViewer::Output(bytes)) => {
                self.unwritten = Some(bytes);
                None
            }
            Ok(ToViewer::End(ending)) => Some(AttachEnd::Told(ending)),
            Err(_) => Some(AttachEnd::Silence),
        }
    }

    /// What was shown last is waited for, then the terminal is put right.
    async fn finish(self, written: oneshot::Receiver<()>) {
        let AttachedSession { raw, screen, .. } = self;
        drop(screen);
        let _ = tokio::time::timeout(LAST_WORDS, written).await;
        drop(raw);
    }
}

/// Hands over what waits once there is room; whether anybody writes it.
async fn write(screen: &mpsc::Sender<Vec<u8>>, unwritten: &mut Option<Vec<u8>>) -> bool {
    if unwritten.is_none() {
        std::future::pending::<()>().await;
    }
    let Ok(room) = screen.reserve().await else {
        return false;
    };
    if let Some(bytes) = unwritten.take() {
        room.send(bytes);
    }
    true
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
