//! The program under rehearsal: it runs in a shim's PTY, and is read and driven like a slot.

use crate::core::cast::{CastKind, Recording};
use crate::core::claude::keys::{self, KeyMeaning};
use crate::core::claude::reading::{Composer, Dialog, Observed, Observer, Seen, State};
use crate::core::machine::{ENTER_IS_LOST, PASTE_SETTLES, SETTLED};
use crate::core::model::ExitReport;
use crate::core::terminal::{At, Frame, Terminal};
use crate::shim::{FromShim, Hello, ShimLink, ShimSpec, ToShim};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The timeout of each wait. On a quiet machine each takes a second or two.
const PATIENCE: Duration = Duration::from_secs(20);
/// The timeout until the first idle screen: a program of a few hundred megabytes is read from the disk.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// The interval of checks for facts that no screen shows.
const LOOK: Duration = Duration::from_millis(30);
/// The grace period of the program before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// A running program, until [`Actor::stop`].
pub struct Actor {
    link: ShimLink,
    shim: Option<Pid>,
    terminal: Terminal,
    observer: Observer,
    last_input: u64,
    /// The id of the open dialog, and since when it is open.
    standing: Option<(String, Instant)>,
    met_dialog: bool,
    /// What is peculiar to this program in the scene.
    remark: Option<String>,
    was_idle: bool,
    idle_since: Option<Instant>,
    /// Whether the shim has reported that the program and all its children are gone.
    exited: bool,
    end: Option<String>,
    /// The latest known recorded time, and when it was received.
    heard: (At, Instant),
    cancel: CancellationToken,
}

impl Actor {
    /// Starts the program in a shim; `missiond` is the program that becomes the shim.
    pub async fn start(
        spec: &ShimSpec,
        missiond: &Path,
        cancel: CancellationToken,
    ) -> Result<Actor, String> {
        let launched = ShimLink::launch(spec, missiond).await;
        let (link, hello) = launched.map_err(|error| error.to_string())?;
        let mut actor = Actor {
            link,
            shim: i32::try_from(hello.shim_pid).ok().and_then(Pid::from_raw),
            terminal: Terminal::new(hello.cols.into(), hello.rows.into()),
            observer: Observer::new(),
            last_input: hello.last_input,
            standing: None,
            met_dialog: false,
            remark: None,
            was_idle: false,
            idle_since: None,
            exited: hello.exit.is_some(),
            end: hello.exit.as_ref().map(how_it_ended),
            heard: (At::ZERO, Instant::now()),
            cancel,
        };
        actor.catch_up(&hello)?;
        Ok(actor)
    }

    /// Reads the output before the connection from the recording.
    fn catch_up(&mut self, hello: &Hello) -> Result<(), String> {
        let unreadable = |error: &dyn std::fmt::Display| format!("the recording: {error}");
        let file = File::open(&hello.recording).map_err(|error| unreadable(&error))?;
        let recording = Recording::read(BufReader::new(file.take(hello.recorded)))
            .map_err(|error| unreadable(&error))?;
        for event in recording {
            let event = event.map_err(|error| unreadable(&error))?;
            self.heard = (event.at, Instant::now());
            if let CastKind::Output(text) = event.what {
                let frames = self.terminal.feed(event.at, text.as_bytes());
                self.see(frames);
            }
        }
        self.reply();
        Ok(())
    }

    pub fn begin_scene(&mut self) {
        self.met_dialog = false;
        self.remark = None;
    }

    pub fn note(&mut self, remark: &str) {
        self.remark = Some(remark.to_owned());
    }

    pub fn remark(&self) -> Option<String> {
        self.remark.clone()
    }

    pub fn observed(&self) -> &Observed {
        self.observer.observed()
    }

    /// Tells whether any dialog was read since the scene began.
    pub fn met_dialog(&self) -> bool {
        self.met_dialog
    }

    /// How long the screen has been idle.
    pub fn idle_for(&self) -> Duration {
        self.idle_since
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The present time of the recording's clock.
    pub fn now(&self) -> At {
        let (at, heard) = self.heard;
        at + heard.elapsed()
    }

    /// How the program ended, once it has.
    pub fn end(&self) -> Option<&str> {
        self.end.as_deref()
    }

    /// The last rows that have anything on them.
    pub fn screen(&self) -> String {
        let lines = self.terminal.screen().lines;
        let lines: Vec<String> = lines.iter().map(|line| line.text.clone()).collect();
        lines.join("\n").trim_matches('\n').to_owned()
    }

    /// Waits until `fact` returns a value; `Err` says what the screen shows instead.
    pub async fn until<T>(
        &mut self,
        what: &str,
        fact: impl Fn(&Actor) -> Option<T>,
    ) -> Result<T, String> {
        let patience = if self.was_idle {
            PATIENCE
        } else {
            START_PATIENCE
        };
        let patience = tokio::time::Instant::now() + patience;
        loop {
            if let Some(found) = fact(self) {
                return Ok(found);
            }
            if let Some(end) = &self.end {
                return Err(format!("waited for {what}, but {end}"));
            }
            if tokio::time::Instant::now() >= patience {
                return Err(format!("waited in vain for {what}; {}", self.in_words()));
            }
            tokio::select! {
                message = self.link.next() => match message {
                    Ok(message) => self.hear(message),
                    Err(error) => self.end = Some(error.to_string()),
                },
                () = tokio::time::sleep(LOOK) => {}
                () = self.cancel.cancelled() => return Err("the rehearsal was stopped".to_owned()),
            }
        }
    }

    pub fn press(&mut self, bytes: &[u8]) {
        self.last_input += 1;
        let input = ToShim::Input {
            n: self.last_input,
            bytes: bytes.to_vec(),
        };
        if let Err(error) = self.link.send(&input) {
            self.end = Some(error.to_string());
        }
    }

    /// Requests another size of the terminal; [`Actor::size`] shows when it has changed.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        if let Err(error) = self.link.send(&ToShim::Resize { cols, rows }) {
            self.end = Some(error.to_string());
        }
    }

    /// Columns and rows of the terminal.
    pub fn size(&self) -> (u16, u16) {
        let (cols, rows) = self.terminal.size();
        let side = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        (side(cols), side(rows))
    }

    /// Pastes a text into the input box, and waits until it is there.
    pub async fn paste(&mut self, text: &str) -> Result<String, String> {
        let meaning = KeyMeaning {
            slash: true,
            shell: false,
        };
        let message = keys::message(text, meaning).map_err(|error| error.to_string())?;
        self.press(&keys::paste(&message));
        self.until("the text in the input box", |actor| {
            actor.composer()?.holds(&message).then_some(())
        })
        .await?;
        Ok(message)
    }

    /// Sends a message, and waits until it leaves the input box.
    pub async fn say(&mut self, text: &str) -> Result<(), String> {
        let message = self.paste(text).await?;
        tokio::time::sleep(PASTE_SETTLES).await;
        self.press(keys::ENTER);
        let mut again = Some(Instant::now() + ENTER_IS_LOST);
        loop {
            let left = self.until("the message to leave the input box", |actor| {
                let there = actor.composer().is_some_and(|box_| box_.holds(&message));
                let gone = !there || actor.end.is_some();
                let lost = again.is_some_and(|again| Instant::now() >= again);
                (gone || lost).then_some(gone)
            });
            if left.await? {
                return Ok(());
            }
            again = None;
            self.press(keys::ENTER);
        }
    }

    /// Answers the open dialog with the option that this answer means, like the machine of a slot.
    pub async fn answer(&mut self, answer: &str) -> Result<(), String> {
        let mut dialog = self
            .until("a dialog that stands still", |actor| actor.settled_dialog())
            .await?;
        let pick = keys::pick(&dialog, answer).map_err(|error| error.to_string())?;
        for _ in 0..=2 * dialog.options.len() {
            let step =
                keys::step_towards(&dialog, &pick).ok_or("no row of the dialog is marked")?;
            self.press(&step.bytes);
            if step.decides {
                return self
                    .until("the dialog to go", |actor| actor.is_gone(&dialog))
                    .await;
            }
            dialog = self
                .until("the marked row to move", |actor| {
                    let now = actor.observed().dialog.as_ref();
                    now.filter(|now| now.selected != dialog.selected).cloned()
                })
                .await?;
        }
        Err("the menu does not follow the arrow keys".to_owned())
    }

    /// Ends the program and its shim, and waits until both are gone. A shim that can't be reached is ended by the drop.
    pub async fn stop(mut self) {
        let stopped = tokio::time::timeout(GRACE + PATIENCE, self.end_shim()).await;
        if stopped == Ok(true) {
            self.shim = None;
        }
    }

    /// Ends the program; returns whether the shim has ended by itself.
    async fn end_shim(&mut self) -> bool {
        let grace_ms = GRACE.as_millis() as u64;
        if !self.exited && self.link.send(&ToShim::Stop { grace_ms }).is_err() {
            return false;
        }
        while !self.exited {
            match self.link.next().await {
                Ok(message) => self.hear(message),
                Err(_) => return false,
            }
        }
        if self.link.send(&ToShim::Dismiss).is_err() {
            return false;
        }
        while self.link.next().await.is_ok() {}
        true
    }

    fn hear(&mut self, message: FromShim) {
        let frames = match message {
            FromShim::Output { at, bytes } => {
                self.heard = (at, Instant::now());
                let frames = self.terminal.feed(at, &bytes);
                self.reply();
                frames
            }
            FromShim::Quiet { at } => {
                self.heard = (at, Instant::now());
                let frames = self.terminal.quiet(at);
                self.see(frames);
                self.observer.wait(at);
                Vec::new()
            }
            FromShim::Resized { at, cols, rows } => {
                self.heard = (at, Instant::now());
                self.terminal.resize(at, cols.into(), rows.into())
            }
            FromShim::Exited(report) => {
                self.exited = true;
                self.end = Some(how_it_ended(&report));
                self.observer.exited();
                Vec::new()
            }
            _ => Vec::new(),
        };
        self.see(frames);
        self.note_dialog();
    }

    /// Answers the program's queries to the terminal: without answers it does not draw whole frames.
    fn reply(&mut self) {
        let replies = self.terminal.take_replies();
        if !replies.is_empty() {
            self.press(&replies);
        }
    }

    fn see(&mut self, frames: Vec<Frame>) {
        for frame in frames {
            self.observer.see(&frame);
            self.note_dialog();
        }
    }

    fn note_dialog(&mut self) {
        let id = self.observer.observed().dialog.as_ref().map(|d| &d.id);
        self.met_dialog |= id.is_some();
        let idle = self.observer.observed().state == State::Idle;
        self.was_idle |= idle;
        self.idle_since = idle.then(|| self.idle_since.unwrap_or_else(Instant::now));
        if id != self.standing.as_ref().map(|(id, _)| id) {
            self.standing = id.map(|id| (id.clone(), Instant::now()));
        }
    }

    pub fn composer(&self) -> Option<&Composer> {
        self.observed().reading.composer.as_ref()
    }

    /// The open dialog, once it has stood long enough for a key.
    fn settled_dialog(&self) -> Option<Dialog> {
        let (_, since) = self.standing.as_ref()?;
        let certain = self.observed().reading.seen != Seen::Unknown;
        (certain && since.elapsed() >= SETTLED)
            .then(|| self.observed().dialog.clone())
            .flatten()
    }

    fn is_gone(&self, dialog: &Dialog) -> Option<()> {
        let now = self.observed().dialog.as_ref();
        (now.is_none_or(|now| now.id != dialog.id) || self.end.is_some()).then_some(())
    }

    /// The reading of the screen, for a person.
    fn in_words(&self) -> String {
        let Observed {
            state,
            dialog,
            reading,
        } = self.observed();
        let dialog = dialog.as_ref().map_or(String::new(), |dialog| {
            let labels: Vec<&str> = dialog.options.iter().map(|o| o.label.as_str()).collect();
            format!(
                " ({:?} {} [{}])",
                dialog.kind,
                dialog.tool.as_deref().unwrap_or_default(),
                labels.join(" | ")
            )
        });
        format!("it reads {state:?}{dialog}: {}", reading.because.join(", "))
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // A shim that was not seen to end ends its whole tree at this signal.
        if let Some(shim) = self.shim {
            let _ = kill_process(shim, Signal::TERM);
        }
    }
}

fn how_it_ended(report: &ExitReport) -> String {
    match (report.code, report.signal) {
        (Some(code), _) => format!("the program ended with exit code {code}"),
        (_, Some(signal)) => format!("the program was ended by signal {signal}"),
        (None, None) => "the program ended".to_owned(),
    }
}
