//! The connection to the shim of the slot's program. Each input has a number, so that the shim writes it once; what a person
//! has written is kept until the shim says that it is written.

use super::rotation::Rotation;
use crate::core::terminal::At;
use crate::shim::{FromShim, Hello, LinkError, ShimLink, ToShim};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Inputs of people that are kept until they are written: more than a person has on the way at once.
const MAX_RAW: usize = 64;

/// What comes from the shim.
pub(super) type Message = Result<FromShim, LinkError>;

#[derive(Debug, Default)]
pub(super) struct Link {
    open: Option<ShimLink>,
    /// The shim that was connected to last.
    shim_pid: Option<u32>,
    /// By when a shim that was told to end its program has to say that it did.
    stop_due: Option<Instant>,
    /// The number of the last input.
    last_input: u64,
    /// The end of the program or of the connection, seen while a key was being pressed.
    unheard: Option<Message>,
    /// Inputs of people with their numbers, until they are written.
    raw: VecDeque<(u64, Vec<u8>)>,
    /// Keys that the audit has with their numbers, until they are written.
    keys: VecDeque<(u64, String)>,
    /// The number of the note that the shim keeps for the next daemon, 0 for the one that it had when it was connected
    /// to. `None` if it is an older one, which keeps none.
    kept: Option<u64>,
    rotation: Rotation,
    /// Whether the shim has said that the disk of the recording does not answer.
    recording_hangs: bool,
    /// The recorded time up to which this daemon had the program's output before this connection.
    seen: Option<At>,
}

impl Link {
    /// A shim was connected to. One that answers has all its time again to end its program.
    pub fn connect(&mut self, link: ShimLink, hello: &Hello) {
        self.open = Some(link);
        self.stop_due = None;
        self.shim_pid = Some(hello.shim_pid);
        self.last_input = hello.last_input;
        self.kept = hello.note.as_ref().map(|_| 0);
        self.rotation = Rotation::of(hello);
        self.recording_hangs = false;
    }

    /// Whether the shim is to be told the note with this number.
    pub fn lacks_note(&self, number: u64) -> bool {
        self.is_open() && self.kept.is_some_and(|kept| kept != number)
    }

    /// Has the shim keep this note, which has this number.
    pub fn keep(&mut self, number: u64, note: String) -> Result<(), LinkError> {
        self.kept = Some(number);
        self.send(&ToShim::Keep { note })
    }

    /// The rotation of the file that the shim writes.
    pub fn rotation(&mut self) -> &mut Rotation {
        &mut self.rotation
    }

    /// Up to this time the output is known from an earlier connection to the same shim.
    pub fn knows_up_to(&mut self, seen: Option<At>) {
        self.seen = seen;
    }

    pub fn has_seen(&self, at: At) -> bool {
        self.seen.is_some_and(|seen| at <= seen)
    }

    pub fn set_recording_hangs(&mut self, hangs: bool) {
        self.recording_hangs = hangs;
    }

    /// The file that the shim writes, while its disk does not answer.
    pub fn hung_recording(&self) -> Option<PathBuf> {
        let hangs = self.is_open() && self.recording_hangs;
        hangs.then(|| self.rotation.recording.clone())
    }

    /// Its program is another one than before: what people wrote was for the other.
    pub fn begin_anew(&mut self) {
        self.raw.clear();
        self.keys.clear();
    }

    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The shim that was connected to last, even if the connection is closed.
    pub fn shim_pid(&self) -> Option<u32> {
        self.shim_pid
    }

    pub fn close(&mut self) {
        self.open = None;
        self.stop_due = None;
    }

    /// The connection broke; what was told to the shim stays told.
    pub fn broke(&mut self) {
        self.open = None;
    }

    /// Lets the shim go, whose program has ended. Returns its pid if it was connected.
    pub async fn dismiss(&mut self) -> Option<u32> {
        self.stop_due = None;
        let mut link = self.open.take()?;
        // The shim ends by itself if this does not reach it before it is asked again.
        let _ = link.send(&ToShim::Dismiss);
        let _ = link.flush().await;
        self.shim_pid
    }

    /// Everything that was sent has left this process.
    pub async fn flush(&mut self) {
        if let Some(link) = &mut self.open {
            // A connection that is broken says so when it is read.
            let _ = link.flush().await;
        }
    }

    /// Sends a message; with no connection there is nobody to send it to.
    pub fn send(&mut self, message: &ToShim) -> Result<(), LinkError> {
        self.open.as_mut().map_or(Ok(()), |link| link.send(message))
    }

    /// The number of the next input.
    pub fn next_number(&self) -> u64 {
        self.last_input + 1
    }

    /// Writes to the program, as an input of its own.
    pub fn write(&mut self, bytes: Vec<u8>) -> Result<(), LinkError> {
        self.last_input += 1;
        let n = self.last_input;
        self.send(&ToShim::Input { n, bytes })
    }

    /// Writes a key that the audit has under this name.
    pub fn press(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), LinkError> {
        if !self.is_open() {
            return Err(LinkError::Closed);
        }
        self.write(bytes)?;
        if self.keys.len() >= MAX_RAW {
            self.keys.pop_front();
        }
        self.keys.push_back((self.last_input, name.to_owned()));
        Ok(())
    }

    /// The shim does not write the input with this number. Returns its name if it is a key that the audit has.
    pub fn refused(&mut self, n: u64) -> Option<String> {
        let at = self.keys.iter().position(|(number, _)| *number == n);
        let key = at.and_then(|at| self.keys.remove(at));
        self.written(n);
        key.map(|(_, name)| name)
    }

    /// Keeps the last input, which a person has written, until the shim has written it.
    pub fn keep_last(&mut self, bytes: Vec<u8>) {
        if self.raw.len() >= MAX_RAW {
            self.raw.pop_front();
        }
        self.raw.push_back((self.last_input, bytes));
    }

    /// Everything up to this number is written, or never will be.
    pub fn written(&mut self, n: u64) {
        self.raw.retain(|(number, _)| *number > n);
        self.keys.retain(|(number, _)| *number > n);
    }

    /// A connection that broke may have taken a person's input along. Its number makes sure that it is written once. A key
    /// of the machine is not sent again: it was decided on by a screen that may be gone.
    pub fn resend(&mut self) -> Result<(), LinkError> {
        for (n, bytes) in self.raw.clone() {
            self.last_input = self.last_input.max(n);
            self.send(&ToShim::Input { n, bytes })?;
        }
        Ok(())
    }

    /// The shim was told to end the program, and has to say by `due` that it did. The earlier time counts.
    pub fn ends_by(&mut self, due: Instant) {
        self.stop_due = Some(self.stop_due.map_or(due, |before| before.min(due)));
    }

    pub fn stop_due(&self) -> Option<Instant> {
        self.stop_due
    }

    /// Tells the shim that its messages will be read, though not now.
    pub fn say_taking(&mut self) {
        if let Some(link) = &mut self.open {
            // A connection that is broken says so when it is read.
            let _ = link.say_taking();
        }
    }

    /// The next message of the shim; never, if there is no connection.
    pub async fn next(&mut self) -> Message {
        if let Some(message) = self.unheard.take() {
            return message;
        }
        match &mut self.open {
            Some(link) => link.next().await,
            None => std::future::pending().await,
        }
    }

    /// A message that has been received already.
    pub fn received(&mut self) -> Option<Message> {
        match &self.unheard {
            Some(_) => None,
            None => self.open.as_mut()?.received(),
        }
    }

    /// Whether [`Link::next`] gives the end of the program or of the connection.
    pub fn has_ended(&self) -> bool {
        self.unheard.is_some()
    }

    /// The next message if it comes within `patience`. The end of the program or of the connection is left for
    /// [`Link::next`].
    pub async fn next_within(&mut self, patience: Duration) -> Option<FromShim> {
        let link = self.open.as_mut()?;
        let message = tokio::time::timeout(patience, link.next()).await.ok()?;
        match message {
            Ok(message) if !matches!(message, FromShim::Exited(_)) => Some(message),
            end => {
                self.unheard = Some(end);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::ExitReport;

    fn kept(link: &Link) -> Vec<u64> {
        link.raw.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn what_a_person_wrote_is_kept_until_it_is_written() {
        let mut link = Link::default();
        for text in ["a", "b", "c"] {
            link.write(text.into()).expect("nobody to send it to");
            link.keep_last(text.into());
        }
        // A key of the machine is not kept.
        link.write(b"1".to_vec()).expect("nobody to send it to");
        assert_eq!(kept(&link), [1, 2, 3]);
        link.written(2);
        assert_eq!(kept(&link), [3]);
        link.begin_anew();
        assert_eq!(kept(&link), [0; 0]);
        assert_eq!(link.last_input, 4, "numbers are never used twice");
    }

    #[test]
    fn it_is_kept_within_bounds_and_the_oldest_goes_first() {
        let mut link = Link::default();
        for _ in 0..MAX_RAW + 2 {
            link.write(b"x".to_vec()).expect("nobody to send it to");
            link.keep_last(b"x".to_vec());
        }
        assert_eq!(kept(&link).len(), MAX_RAW);
        assert_eq!(kept(&link)[0], 3);
    }

    #[test]
    fn the_earlier_end_counts() {
        let (mut link, now) = (Link::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        link.ends_by(at(12));
        link.ends_by(at(7));
        link.ends_by(at(9));
        assert_eq!(link.stop_due(), Some(at(7)));
        link.broke();
        assert_eq!(link.stop_due(), Some(at(7)), "the shim may still end it");
        link.close();
        assert_eq!(link.stop_due(), None);
    }

    #[tokio::test]
    async fn an_end_that_was_seen_too_early_is_heard_in_its_turn() {
        let mut link = Link {
            unheard: Some(Ok(FromShim::Exited(ExitReport::UNKNOWN))),
            ..Link::default()
        };
        assert!(link.received().is_none(), "nothing overtakes it");
        assert!(matches!(link.next().await, Ok(FromShim::Exited(_))));
    }
}
