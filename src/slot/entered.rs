//! The message whose Enter was pressed last is in the slot's memory until its turn is over: a daemon that comes after a kill
//! goes on with the turn, and tells of the message and of its answer what was not told yet.

use super::Slot;
use super::answer::{TurnPlace, ending_at};
use super::kind::ProgramKind;
use crate::core::claude::transcript::TurnEnding;
use crate::core::machine::{Entered, Input, Message};
use crate::core::model::{EventKind, Person};
use crate::events::{Bus, EventsSince};
use crate::os::blocking::{self, Worker};
use crate::shim::Hello;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::time::{Duration, Instant};

/// How long a look at the event log or at the transcript may take.
const LIMIT: Duration = Duration::from_secs(5);

/// A message whose Enter was about to be pressed, and what is needed to find its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTurn {
    text: String,
    /// The sender's id of the message.
    id: Option<String>,
    slash: bool,
    person: Option<Person>,
    /// The number of the input that is its Enter: the shim knows whether it was written.
    number: u64,
    entered_at: DateTime<Utc>,
    /// The position in the event log before the message was told.
    after: u64,
    /// Where in the transcript its turn begins.
    place: Option<TurnPlace>,
}

/// What the event log tells of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ToldOfTurn {
    message: bool,
    end: bool,
}

impl KeptTurn {
    fn new(message: &Message, number: u64, after: u64, place: Option<TurnPlace>) -> KeptTurn {
        KeptTurn {
            text: message.text.clone(),
            id: message.id.clone(),
            slash: message.slash,
            person: message.person.clone(),
            number,
            entered_at: Utc::now(),
            after,
            place,
        }
    }

    pub fn place(&self) -> Option<TurnPlace> {
        self.place.clone()
    }

    fn is_of(&self, message: &Message) -> bool {
        (&self.text, &self.id) == (&message.text, &message.id)
    }

    fn entered(self, is_told: bool) -> Entered {
        let passed = (Utc::now() - self.entered_at).to_std().unwrap_or_default();
        let now = Instant::now();
        Entered {
            began: now.checked_sub(passed).unwrap_or(now),
            is_told,
            message: Message {
                token: None,
                text: self.text,
                slash: self.slash,
                wait: true,
                task: None,
                id: self.id,
                person: self.person,
            },
        }
    }

    /// How its turn has ended, by the transcript. Default if that is unknown.
    async fn ending(&self, disk: &Worker) -> TurnEnding {
        let place = self.place.clone();
        let place = place.and_then(|place| Some((place.transcript, place.offset?)));
        match place {
            Some(place) => ending_at(place, disk).await,
            None => TurnEnding::default(),
        }
    }

    fn told(&self, bus: Bus, slot: String) -> impl Future<Output = ToldOfTurn> + Send + use<> {
        let after = self.after;
        let look = move || bus.since(after).map(|since| ToldOfTurn::by(&since, &slot));
        async move {
            let looked = blocking::run_within(LIMIT, look).await.flatten();
            // If the log can't be read, a missing event is better than a duplicate one.
            looked.unwrap_or(ToldOfTurn {
                message: true,
                end: true,
            })
        }
    }
}

impl ToldOfTurn {
    /// By the events since Enter was about to be pressed: the first message is this one.
    fn by(since: &EventsSince, slot: &str) -> ToldOfTurn {
        let mut told = ToldOfTurn {
            // What is missing in the log may have been the message.
            message: !since.is_whole,
            end: false,
        };
        let of_slot = since.events.iter().filter(|event| event["slot"] == slot);
        for kind in of_slot.filter_map(|event| event["event"].as_str()) {
            match kind {
                "message" => told.message = true,
                "answer" | "failed" if told.message => told.end = true,
                "exit" => told.end = true,
                _ => {}
            }
        }
        told
    }
}

impl<K: ProgramKind> Slot<K> {
    /// Enter is about to be pressed for a message, whose turn begins here in the transcript. That is on the disk before.
    pub(super) async fn keep_turn(&mut self, place: Option<TurnPlace>) {
        let Some(message) = self.machine.entering() else {
            return;
        };
        let kept = self.memory.turn.as_ref();
        if kept.is_some_and(|kept| kept.is_of(message)) {
            // It is pressed once more. The program may have taken the first one meanwhile.
            return;
        }
        let message = message.clone();
        let after = self.context.bus.listen().position;
        let turn = KeptTurn::new(&message, self.link.next_number(), after, place);
        self.memory.change(|memory| memory.turn = Some(turn));
        while self.memory.is_saving() {
            let written = self.memory.written().await;
            self.memory_written(written);
        }
    }

    /// Once the end of the turn is told, the next daemon need not know of it.
    pub(super) fn forget_ended_turn(&mut self) {
        if self.memory.turn.is_some() && self.machine.has_no_turn() {
            self.forget_turn();
        }
    }

    fn forget_turn(&mut self) {
        self.memory.change(|memory| memory.turn = None);
    }

    /// The message at which the adopted program was when an earlier daemon was killed, unless that has told its end.
    pub(super) async fn recall_turn(&mut self, hello: &Hello) -> Option<Input> {
        let turn = self.memory.turn.clone()?;
        if turn.number > hello.last_input {
            // The Enter was not written, so the message is as if it had never been entered.
            if let Some(id) = turn.id {
                self.note_not_entered(id).await;
            }
            self.forget_turn();
            return None;
        }
        if hello.exit.is_some() {
            self.settle_turn().await;
        }
        let turn = self.memory.turn.clone()?;
        let told = self.told_of(&turn).await;
        match told.end {
            true => {
                self.forget_turn();
                None
            }
            false => Some(Input::WasEntered(Box::new(turn.entered(told.message)))),
        }
    }

    /// The program has ended, or is not found: what its transcript has of the last turn is told, unless it was told before.
    pub(super) async fn settle_turn(&mut self) {
        let Some(turn) = self.memory.turn.clone() else {
            return;
        };
        let told = self.told_of(&turn).await;
        let ending = turn.ending(self.memory.disk()).await;
        if !told.end && ending.is_whole {
            if !told.message {
                let text = turn.text.clone();
                self.tell(EventKind::Message { text });
            }
            let passed = (Utc::now() - turn.entered_at).num_milliseconds();
            let duration_ms = passed.try_into().unwrap_or(0);
            match (ending.failure, ending.text) {
                (Some(text), _) => self.tell(EventKind::Failed { text }),
                (None, Some(text)) => self.tell(EventKind::Answer { text, duration_ms }),
                // A command may print nothing.
                (None, None) => {}
            }
        }
        if told.end || ending.is_whole {
            self.forget_turn();
        }
    }

    fn told_of(&self, turn: &KeptTurn) -> impl Future<Output = ToldOfTurn> + Send + use<K> {
        let slot = self.program.settings().name.clone();
        turn.told(self.context.bus.clone(), slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ToldOfTurn as Told;

    fn told(events: &[(&str, &str)]) -> Told {
        let event = |(slot, kind): &(&str, &str)| serde_json::json!({"slot": slot, "event": kind});
        let since = EventsSince {
            events: events.iter().map(event).collect(),
            is_whole: true,
        };
        Told::by(&since, "a")
    }

    #[test]
    fn the_log_tells_how_far_a_message_has_come() {
        let nothing = Told::default();
        let message = Told {
            message: true,
            ..nothing
        };
        let end = Told {
            end: true,
            ..message
        };
        assert_eq!(told(&[("a", "key"), ("a", "state")]), nothing);
        assert_eq!(told(&[("b", "message"), ("b", "answer")]), nothing);
        // The end of the turn before, whose event was written late.
        assert_eq!(told(&[("a", "answer")]), nothing);
        assert_eq!(told(&[("a", "message")]), message);
        assert_eq!(told(&[("a", "message"), ("b", "answer")]), message);
        for last in ["answer", "failed", "exit"] {
            assert_eq!(told(&[("a", "message"), ("a", last)]), end, "{last}");
        }
        assert!(told(&[("a", "exit")]).end, "its program has ended");
        let cut = EventsSince::default();
        assert_eq!(Told::by(&cut, "a"), message, "rather none than two");
    }
}
