//! People who look at a slot's terminal, and type into it: their seats, the slot's size, their keys. What they are
//! shown is in [`super::audience`].

use super::Slot;
use super::audience::Size;
use super::handle::Answer;
use super::writing::shown;
use crate::audit::Record;
use crate::core::machine::{Input, Stroke, strokes};
use crate::core::model::Person;
use crate::core::model::{AttachAnswer, Ending, Fault, RpcError, What};
use crate::os::outbox::Outbox;
use crate::shim::ToShim;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Terminals on one slot: more is a mistake in a script.
const MAX_VIEWERS: usize = 16;

/// A program that was given another size has heard of it and drawn its screen by now.
const DRAWN_SMALLER: Duration = Duration::from_millis(500);

/// Somebody's terminal.
#[derive(Debug)]
pub struct Viewer {
    pub size: Size,
    pub read_only: bool,
    /// Whose it is, and the process that shows it.
    pub person: Person,
    /// What is to be written to it.
    pub feed: Outbox,
    /// Told why, before the feed is closed.
    pub end: oneshot::Sender<Ending>,
}

/// A viewer's place among the others.
#[derive(Debug)]
pub struct Seat {
    pub id: u64,
    pub answer: AttachAnswer,
}

/// What a viewer does.
#[derive(Debug)]
pub enum Viewing {
    Join {
        viewer: Viewer,
        reply: Answer<Seat>,
    },
    Keys {
        id: u64,
        bytes: Vec<u8>,
    },
    /// The terminal has this size now, and is to be drawn anew.
    Resize {
        id: u64,
        size: Size,
    },
    Leave {
        id: u64,
    },
}

impl Slot {
    pub(super) async fn view(&mut self, viewing: Viewing) {
        match viewing {
            Viewing::Join { viewer, reply } => drop(reply.send(self.join(viewer))),
            Viewing::Keys { id, bytes } => self.typed(id, bytes).await,
            Viewing::Resize { id, size } => self.viewer_resized(id, size),
            // One who was told of the end has left with it.
            Viewing::Leave { id } => drop(self.leave(id).await),
        }
    }

    fn join(&mut self, viewer: Viewer) -> Result<Seat, RpcError> {
        if !self.link.is_open() {
            return Err(self.not_running());
        }
        if self.audience.len() >= MAX_VIEWERS {
            let text = format!("{MAX_VIEWERS} terminals are attached already");
            return Err(RpcError::new(Fault::Refused, text));
        }
        let Viewer {
            read_only,
            size: (cols, rows),
            ..
        } = viewer;
        let uid = viewer.person.uid;
        let id = self.audience.add(viewer);
        self.fit();
        self.draw_for_viewers();
        self.tell(What::Attached {
            uid,
            read_only,
            cols,
            rows,
        });
        Ok(Seat {
            id,
            answer: AttachAnswer {
                slot: self.running.name.clone(),
                pid: self.machine.pid(),
            },
        })
    }

    /// Unchanged to the program, as an input of its own.
    async fn typed(&mut self, id: u64, bytes: Vec<u8>) {
        let typist = self.audience.typist(id);
        let Some(person) = typist.map(|viewer| viewer.person.clone()) else {
            return;
        };
        let strokes = strokes(&bytes);
        if !strokes.is_empty() {
            self.audience.last_typist = Some(id);
            if let Err(refusal) = self.note_keys_at_a_dialog(&strokes, &bytes, &person).await {
                return self.turn_out(id, refusal).await;
            }
            self.input(Input::Typed { person, strokes }).await;
        }
        self.next_input(bytes.clone());
        self.keep_raw(bytes);
    }

    /// Ends a terminal whose keys were refused: whoever types there must not take them for pressed.
    async fn turn_out(&mut self, id: u64, refusal: RpcError) {
        if let Some(viewer) = self.leave(id).await {
            // Who has gone meanwhile need not be told.
            let _ = viewer.end.send(Ending::Refused(refusal));
        }
    }

    /// A person at the terminal answers a dialog with keys of their own: each that may decide is in the audit before it is
    /// written, also a letter or a paste, since not every dialog says which keys it takes. What they have chosen is written down as their verdict once the dialog is gone.
    async fn note_keys_at_a_dialog(
        &mut self,
        strokes: &[Stroke],
        bytes: &[u8],
        person: &Person,
    ) -> Result<(), RpcError> {
        let decides = strokes.iter().any(|stroke| *stroke != Stroke::Move);
        let Some(dialog) = self.machine.dialog().filter(|_| decides) else {
            return Ok(());
        };
        let why = format!(
            "a person at an attached terminal, at the dialog {}",
            dialog.id
        );
        let record = Record::key(&self.running.name, &shown(bytes), &why).by(person);
        self.audited(record).await
    }

    fn viewer_resized(&mut self, id: u64, size: Size) {
        self.audience.resize(id, size, Instant::now());
        self.fit();
        self.draw_for_viewers();
    }

    async fn leave(&mut self, id: u64) -> Option<Viewer> {
        let viewer = self.audience.remove(id)?;
        self.tell(What::Detached {
            uid: viewer.person.uid,
        });
        if self.audience.last_typist == Some(id) {
            self.input(Input::KeyboardFree).await;
        }
        self.fit();
        Some(viewer)
    }

    /// Gives the terminal the size of the smallest that is attached, or its own again when nobody is. The own size
    /// is remembered, since a daemon that is killed meanwhile leaves it to the next one.
    pub(super) fn fit(&mut self) {
        let smallest = self.audience.smallest();
        let own = self.memory.own_size;
        let Some(wanted) = smallest.or(own) else {
            return;
        };
        self.memory.own_size = match (smallest, own) {
            (None, _) => None,
            (Some(_), None) => Some(self.audience.size(&self.terminal)),
            (Some(_), own) => own,
        };
        if self.memory.own_size != own {
            self.save_memory();
        }
        if self.audience.is_to_ask(wanted, &self.terminal) {
            let (cols, rows) = wanted;
            self.tell_shim(&ToShim::Resize { cols, rows });
        }
    }

    /// Has the program draw all of its screen: it does so when its terminal changes its size. A row less is
    /// enough, and no key is pressed for it.
    pub(super) fn repaint(&mut self) {
        let (cols, rows) = self.audience.size(&self.terminal);
        if self.memory.own_size.is_none() {
            self.memory.own_size = Some((cols, rows));
            self.save_memory();
        }
        let smaller = (cols, rows.saturating_sub(1).max(1));
        if self.audience.is_to_ask(smaller, &self.terminal) {
            let (cols, rows) = smaller;
            self.tell_shim(&ToShim::Resize { cols, rows });
        }
        self.fits_again = Some(Instant::now() + DRAWN_SMALLER);
    }

    pub(super) fn fit_again(&mut self) {
        self.fits_again = None;
        self.fit();
    }

    /// Somebody sets the size; those who are attached come first, and it is the slot's own from then on.
    pub(super) fn resize(&mut self, size: Size) -> Result<(), RpcError> {
        if !self.link.is_open() {
            return Err(self.not_running());
        }
        self.memory.own_size = Some(size);
        self.save_memory();
        self.fit();
        Ok(())
    }

    pub(super) fn draw_for_viewers(&mut self) {
        let name = &self.running.name;
        self.audience.draw(&self.terminal, name, Instant::now());
    }

    /// Nobody has anything more to see here.
    pub(super) fn dismiss_viewers(&mut self, ending: &Ending) {
        for uid in self
            .audience
            .dismiss(&self.terminal, &self.running.name, ending)
        {
            self.tell(What::Detached { uid });
        }
    }
}
