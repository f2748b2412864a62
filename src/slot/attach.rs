//! People who look at a slot's terminal, and type into it: their seats, the slot's size, their keys. What they are
//! shown is in [`super::audience`].

use super::Slot;
use super::audience::Size;
use super::claude::Claude;
use super::handle::Answer;
use super::keyboard::{KeyboardNews, Typist};
use super::kind::ProgramKind;
use super::screen::SizeFit;
use super::writing::{Writing, shown};
use crate::audit::Record;
use crate::core::machine::{Input, Stroke, strokes};
use crate::core::model::Person;
use crate::core::model::{
    AttachAnswer, Ending, EventKind, KeyboardAction, KeyboardHolder, RpcError,
};
use crate::os::outbox::Outbox;
use crate::shim::ToShim;
use std::time::Instant;
use tokio::sync::oneshot;

/// Why a key of a viewer was pressed.
const WHO: &str = "a person at the keyboard";

/// What a terminal sends for Ctrl-C.
const CTRL_C: u8 = 0x03;

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

/// What a client that types by requests wants with the keyboard.
#[derive(Debug)]
pub struct KeyboardRequest {
    pub id: String,
    pub action: KeyboardAction,
    pub person: Person,
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

impl<K: ProgramKind> Slot<K> {
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
            return Err(K::not_running(self));
        }
        let Viewer {
            read_only,
            size: (cols, rows),
            ..
        } = viewer;
        let uid = viewer.person.uid;
        let id = self.screen.join(viewer)?;
        self.fit();
        self.screen.draw();
        self.tell(EventKind::Attached {
            uid,
            read_only,
            cols,
            rows,
        });
        Ok(Seat {
            id,
            answer: AttachAnswer {
                slot: self.program.settings().name.clone(),
                pid: self.machine.pid(),
            },
        })
    }

    /// Unchanged to the program, as an input of its own.
    async fn typed(&mut self, id: u64, bytes: Vec<u8>) {
        let typist = self.screen.typist(id);
        let Some(person) = typist.map(|viewer| viewer.person.clone()) else {
            return;
        };
        let strokes = strokes(&bytes);
        if !strokes.is_empty() {
            let keyboard = self.screen.keyboard_mut();
            let news = keyboard.take(Typist::Terminal(id), &person, Instant::now());
            self.tell_keyboard(news);
        }
        if let Err(refusal) = self.type_in(bytes, strokes, person).await {
            self.turn_out(id, refusal).await;
        }
    }

    /// Passes on what a person at a keyboard types, after it was noted.
    async fn type_in(
        &mut self,
        bytes: Vec<u8>,
        strokes: Vec<Stroke>,
        person: Person,
    ) -> Result<(), RpcError> {
        if !strokes.is_empty() {
            self.note_typing(&strokes, &bytes, &person).await?;
            self.input(Input::Typed { person, strokes }).await;
        }
        self.next_input(bytes.clone());
        self.keep_raw(bytes);
        Ok(())
    }

    /// Raw input that is for no dialog: of somebody at the keyboard, or of a single request.
    pub(super) async fn write_plainly(&mut self, writing: Writing) -> Result<(), RpcError> {
        let Writing {
            bytes,
            person,
            keyboard,
            ..
        } = writing;
        match keyboard {
            Some(_) => self.type_in(bytes.clone(), strokes(&bytes), person).await,
            None => self.write_down("input", &person, bytes).await,
        }
    }

    /// A client takes the keyboard, keeps it, or gives it back. Returns who has it then.
    pub(super) async fn keyboard(
        &mut self,
        request: KeyboardRequest,
    ) -> Result<Option<KeyboardHolder>, RpcError> {
        if !self.link.is_open() {
            return Err(K::not_running(self));
        }
        let KeyboardRequest { id, action, person } = request;
        let name = self.program.settings().name.clone();
        let (keyboard, now) = (self.screen.keyboard_mut(), Instant::now());
        match action {
            KeyboardAction::Take => {
                let news = keyboard.take(Typist::Client(id), &person, now);
                self.tell_keyboard(news);
            }
            KeyboardAction::Keep => keyboard.keep(&id, &name, now)?,
            KeyboardAction::Release => {
                let lost = keyboard.release(&Typist::Client(id));
                self.lose_keyboard(lost).await;
            }
        }
        Ok(self.screen.keyboard().holder().cloned())
    }

    /// A client has not said for too long that it keeps the keyboard.
    pub(super) async fn keyboard_is_due(&mut self) {
        let lost = self.screen.keyboard_mut().expire(Instant::now());
        self.lose_keyboard(lost).await;
    }

    async fn lose_keyboard(&mut self, lost: Option<KeyboardNews>) {
        if lost.is_some() {
            self.tell_keyboard(lost);
            self.input(Input::KeyboardFree).await;
        }
    }

    fn tell_keyboard(&mut self, news: impl IntoIterator<Item = KeyboardNews>) {
        for one in news {
            self.tell(match one {
                KeyboardNews::Taken(KeyboardHolder { uid, via, .. }) => {
                    EventKind::KeyboardTaken { uid, via }
                }
                KeyboardNews::Lost(KeyboardHolder { uid, via, .. }, why) => {
                    let why = why.to_owned();
                    EventKind::KeyboardLost { uid, via, why }
                }
            });
        }
    }

    /// Ends a terminal whose keys were refused: whoever types there must not take them for pressed.
    async fn turn_out(&mut self, id: u64, refusal: RpcError) {
        if let Some(viewer) = self.leave(id).await {
            // Who has gone meanwhile need not be told.
            let _ = viewer.end.send(Ending::Refused(refusal));
        }
    }

    /// That a person begins to type is in the audit before the first key is written. At a dialog, each key that may decide
    /// is, also a letter or a paste, since not every dialog says which keys it takes. What they have chosen is written down
    /// as their verdict once the dialog is gone.
    async fn note_typing(
        &mut self,
        strokes: &[Stroke],
        bytes: &[u8],
        person: &Person,
    ) -> Result<(), RpcError> {
        let decides = strokes.iter().any(|stroke| *stroke != Stroke::Move);
        let slot = &self.program.settings().name;
        let Some(dialog) = self.machine.dialog().filter(|_| decides) else {
            if !self.machine.person_types() {
                let record = Record::key(slot, "begins to type", WHO).by(person);
                self.log.audited(record).await?;
            }
            K::note_acting_key(self, strokes, bytes, person).await;
            return Ok(());
        };
        let why = format!("{WHO}, at the dialog {}", dialog.id);
        let record = Record::key(slot, &shown(bytes), &why).by(person);
        self.log.audited(record).await
    }

    fn viewer_resized(&mut self, id: u64, size: Size) {
        self.screen.viewer_resized(id, size);
        self.fit();
        self.screen.draw();
    }

    async fn leave(&mut self, id: u64) -> Option<Viewer> {
        let (viewer, typed_last) = self.screen.leave(id)?;
        self.tell(EventKind::Detached {
            uid: viewer.person.uid,
        });
        if typed_last {
            self.input(Input::KeyboardFree).await;
        }
        self.fit();
        Some(viewer)
    }

    /// Gives the terminal the size of the smallest that is attached, or its own again when nobody is.
    pub(super) fn fit(&mut self) {
        let fit = self.screen.fit(self.memory.own_size);
        self.take_size(fit);
    }

    pub(super) fn repaint(&mut self) {
        let fit = self.screen.repaint(self.memory.own_size);
        self.take_size(fit);
    }

    /// The own size is remembered, since a daemon that is killed meanwhile leaves it to the next one.
    fn take_size(&mut self, SizeFit { own, ask }: SizeFit) {
        if self.memory.own_size != own {
            self.memory.change(|memory| memory.own_size = own);
        }
        if let Some((cols, rows)) = ask {
            self.tell_shim(&ToShim::Resize { cols, rows });
        }
    }

    /// Somebody sets the size; those who are attached come first, and it is the slot's own from then on.
    pub(super) fn resize(&mut self, size: Size) -> Result<(), RpcError> {
        if !self.link.is_open() {
            return Err(K::not_running(self));
        }
        self.memory.change(|memory| memory.own_size = Some(size));
        self.fit();
        Ok(())
    }

    /// Nobody has anything more to see here.
    pub(super) fn dismiss_viewers(&mut self, ending: &Ending) {
        for uid in self.screen.dismiss_viewers(ending) {
            self.tell(EventKind::Detached { uid });
        }
        let lost = self.screen.keyboard_mut().clear();
        self.tell_keyboard(lost);
    }
}

impl Slot<Claude> {
    /// Outside of a dialog, what stops a turn and what sends a message is in the audit, and nothing of what was typed.
    pub(super) async fn note_acting_key(
        &mut self,
        strokes: &[Stroke],
        bytes: &[u8],
        person: &Person,
    ) {
        let key = match bytes.contains(&CTRL_C) {
            true => "Ctrl-C",
            false if strokes.contains(&Stroke::Escape) => "Esc",
            false if strokes.contains(&Stroke::Enter) => "Enter",
            false => return,
        };
        let record = Record::key(&self.program.settings().name, key, WHO).by(person);
        self.log.noted(record).await;
    }
}
