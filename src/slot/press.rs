//! Pressing a key that was decided on: written down first, and only while the screen still shows what it was
//! decided by.

use super::Slot;
use super::kind::ProgramKind;
use crate::audit::Record;
use crate::core::machine::{Input, Observation, Purpose};
use crate::core::model::{Fault, Person, RpcError};
use crate::os::pause::{self, Moment};

const CHANGED: &str = "the screen has changed";
const MOVING: &str = "the key was withheld: the screen does not stand still";

/// A key that the machine wants pressed.
#[derive(Debug)]
pub(super) struct DecidedKey {
    pub bytes: Vec<u8>,
    pub name: String,
    pub reason: String,
    pub purpose: Purpose,
    /// The person who wants it pressed.
    pub person: Option<Person>,
    /// The person has written it for what is up, however much of it is drawn.
    pub is_raw: bool,
}

impl<K: ProgramKind> Slot<K> {
    /// What was seen meanwhile is for the machine, with the news that the key was withheld where it no longer
    /// fits.
    pub(super) async fn press_if_unchanged(&mut self, key: DecidedKey) -> Option<Input> {
        pause::at(Moment::Decided).await;
        let record = key.record(&self.program.settings().name);
        if key.purpose == Purpose::Declines {
            self.log.noted(record).await;
        } else if let Err(error) = self.log.audited(record).await {
            return Some(unpressed(error, None));
        }
        pause::at(Moment::Audited).await;
        self.note_decided().await;
        let before = self.own.last_seen().cloned();
        let news = match K::look_again(self).await {
            Looked::Still(news) => news,
            // What approves goes only to a screen that has stood still.
            Looked::Moving(news) if key.purpose == Purpose::Approves => {
                self.warn(&format!("{}: {MOVING}", key.name));
                self.note_no_effect(&key.name, key.person.as_ref(), MOVING)
                    .await;
                let sight = match news {
                    Some(Input::Saw(sight)) => Some(sight),
                    _ => None,
                };
                let error = RpcError::new(Fault::Refused, MOVING);
                let error = error.next("look at it: missiond pending");
                return Some(unpressed(error, sight));
            }
            Looked::Moving(news) => news,
        };
        match news {
            Some(Input::Saw(sight)) if !key.fits(before.as_ref(), &sight) => {
                self.warn(&format!("{} was withheld: {CHANGED}", key.name));
                let why = format!("the key was withheld: {CHANGED}");
                self.note_no_effect(&key.name, key.person.as_ref(), &why)
                    .await;
                Some(Input::Withheld(sight))
            }
            news => {
                self.press(key).await;
                pause::at(Moment::Pressed).await;
                news
            }
        }
    }

    /// A key that is in the audit was not pressed, or had no effect.
    pub(super) async fn note_no_effect(&mut self, key: &str, person: Option<&Person>, why: &str) {
        let record = Record::no_effect(&self.program.settings().name, key, why);
        self.log.noted(record.by_any(person)).await;
    }
}

/// The news that a key was not pressed.
pub(super) fn unpressed(error: RpcError, sight: Option<Observation>) -> Input {
    let error = Box::new(error);
    Input::Unpressed { error, sight }
}

/// What was seen just before a key, as news for the machine where it is any.
pub(crate) enum Looked {
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

impl DecidedKey {
    /// Its entry in the audit.
    pub(super) fn record(&self, slot: &str) -> Record {
        Record::key(slot, &self.name, &self.reason).by_any(self.person.as_ref())
    }

    /// Whether it means the same on both: what would take it is there as it was.
    fn fits(&self, before: Option<&Observation>, now: &Observation) -> bool {
        before.is_some_and(|before| {
            same_place(before, now) || self.is_raw && is_only_redrawn(before, now)
        })
    }
}

fn same_place(before: &Observation, now: &Observation) -> bool {
    before.dialog == now.dialog && before.composer == now.composer && before.certain == now.certain
}

/// Whether the same dialog is up with the same choices, and the program has begun or ended to draw it for another size.
fn is_only_redrawn(before: &Observation, now: &Observation) -> bool {
    let place = |sight: &Observation| {
        let dialog = sight.dialog.as_ref()?;
        Some((dialog.id.clone(), dialog.options.clone(), dialog.selected))
    };
    let redrawn = before.redrawing || now.redrawing;
    redrawn && place(before).is_some() && place(before) == place(now)
}
