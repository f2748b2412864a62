//! Pressing a key that was decided on: written down first, and only while the screen still shows what it was
//! decided by.

use super::hear::Heard;
use super::machine::{Input, Purpose, Sight};
use super::task::Slot;
use crate::audit::Record;
use crate::config::Kind;
use crate::pause::{self, Moment};
use crate::shim::FromShim;
use std::time::{Duration, Instant};

/// What the shim has sent by now arrives within this.
const ARRIVES: Duration = Duration::from_millis(2);
/// A frame that has begun is waited for; the shim tells of an end or a silence well within this.
const FRAME_ENDS: Duration = Duration::from_millis(300);

/// A screen that is drawn without a pause for so long does not stand still, and is not waited for: commands wait behind
/// the key.
const LOOKS_FOR: Duration = Duration::from_secs(1);

/// A key that the machine wants pressed.
#[derive(Debug)]
pub(super) struct Key {
    pub bytes: Vec<u8>,
    pub name: String,
    pub reason: String,
    pub purpose: Purpose,
    /// A person has written it for the dialog that is up, however much of it is drawn.
    pub by_hand: bool,
}

impl Slot {
    /// What was seen meanwhile is for the machine, with the news that the key was withheld where it no longer
    /// fits.
    pub(super) async fn press_carefully(&mut self, key: Key) -> Option<Input> {
        pause::at(Moment::Decided).await;
        let record = Record::key(&self.running.name, &key.name, &key.reason);
        let audited = self.audited(record).await;
        if !audited && key.purpose == Purpose::Approves {
            return Some(Input::Unaudited);
        }
        pause::at(Moment::Audited).await;
        let before = self.last_sight.clone();
        let news = match self.look_again().await {
            Looked::Still(news) => news,
            // What approves goes only to a screen that has stood still. The machine sees that nothing comes of it, and
            // does not try again at once.
            Looked::Moving(news) if key.purpose == Purpose::Approves => {
                self.warn(&format!(
                    "{} was withheld: the screen does not stand still",
                    key.name
                ));
                return news;
            }
            Looked::Moving(news) => news,
        };
        match news {
            Some(Input::Saw(sight)) if !key.fits(before.as_ref(), &sight) => {
                self.warn(&format!(
                    "{} was withheld: the screen has changed",
                    key.name
                ));
                Some(Input::Withheld(sight))
            }
            news => {
                self.press(key);
                news
            }
        }
    }

    /// Takes in all that has come from the program, up to the end of a frame, and no longer than [`LOOKS_FOR`].
    pub(super) async fn look_again(&mut self) -> Looked {
        if self.running.kind == Kind::Shell {
            return Looked::Still(None);
        }
        let enough = Instant::now() + LOOKS_FOR;
        let mut patience = ARRIVES;
        while let Some(link) = self.link.as_mut() {
            if Instant::now() > enough {
                self.check_waiters();
                return Looked::Moving(self.news());
            }
            let Ok(message) = tokio::time::timeout(patience, link.next()).await else {
                break;
            };
            if matches!(message, Ok(FromShim::Exited(_)) | Err(_)) {
                // Heard in its turn; no key matters any more.
                self.unheard = Some(message);
                break;
            }
            if let Heard::Frames(frames, quiet) = self.take_in(message) {
                frames.iter().for_each(|frame| {
                    self.observer.see(frame);
                });
                quiet.and_then(|at| self.observer.wait(at));
            }
            patience = match self.terminal.is_drawing() {
                true => FRAME_ENDS,
                false => ARRIVES,
            };
        }
        self.check_waiters();
        Looked::Still(self.news())
    }
}

/// What was seen just before a key, as news for the machine where it is any.
pub(super) enum Looked {
    Still(Option<Input>),
    /// Output came without a pause.
    Moving(Option<Input>),
}

impl Looked {
    pub(super) fn news(self) -> Option<Input> {
        match self {
            Looked::Still(news) | Looked::Moving(news) => news,
        }
    }
}

impl Key {
    /// Whether it means the same on both: what would take it is there as it was.
    fn fits(&self, before: Option<&Sight>, now: &Sight) -> bool {
        before.is_some_and(|before| {
            same_place(before, now) || self.by_hand && is_only_redrawn(before, now)
        })
    }
}

fn same_place(before: &Sight, now: &Sight) -> bool {
    before.dialog == now.dialog && before.composer == now.composer && before.certain == now.certain
}

/// Whether the same dialog is up with the same choices, and the program has begun or ended to draw it for another size.
fn is_only_redrawn(before: &Sight, now: &Sight) -> bool {
    let place = |sight: &Sight| {
        let dialog = sight.dialog.as_ref()?;
        Some((dialog.id.clone(), dialog.options.clone(), dialog.selected))
    };
    let redrawn = before.redrawing || now.redrawing;
    redrawn && place(before).is_some() && place(before) == place(now)
}
