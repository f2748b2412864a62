//! The keyboard of a slot: who types. A client that shows only pictures takes it before it types, and holds it for as long as it
//! says so; whoever types at an attached terminal takes it by typing. Pure, but for the time of day.

use crate::core::model::{Fault, KeyboardHolder, Person, RpcError};
use chrono::{DateTime, Local, Utc};
use std::time::{Duration, Instant};

/// A client that says nothing for this long has gone: a closed tab, or a phone that sleeps.
pub const HOLD: Duration = Duration::from_secs(30);

/// Who types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typist {
    /// An attached terminal, by its seat.
    Terminal(u64),
    /// A client that types by requests, by the id that it has chosen for itself.
    Client(String),
}

#[derive(Debug)]
struct Hold {
    typist: Typist,
    holder: KeyboardHolder,
    /// A terminal holds it until it leaves.
    until: Option<Instant>,
}

/// What has changed hands: for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyboardNews {
    Taken(KeyboardHolder),
    /// A client has it no more, for this reason.
    Lost(KeyboardHolder, &'static str),
}

/// At most one holds it at a time.
#[derive(Debug, Default)]
pub struct Keyboard {
    held: Option<Hold>,
}

impl Keyboard {
    pub fn holder(&self) -> Option<&KeyboardHolder> {
        self.held.as_ref().map(|hold| &hold.holder)
    }

    pub fn is_held_by(&self, typist: &Typist) -> bool {
        self.held
            .as_ref()
            .is_some_and(|hold| hold.typist == *typist)
    }

    /// Gives it to this typist, whoever has had it. The first of the news is about the one before.
    pub fn take(&mut self, typist: Typist, person: &Person, now: Instant) -> Vec<KeyboardNews> {
        let until = until(&typist, now);
        if let Some(hold) = self.held.as_mut().filter(|hold| hold.typist == typist) {
            hold.until = until;
            return Vec::new();
        }
        let mut news: Vec<KeyboardNews> = self.lose("somebody else has taken it").collect();
        let holder = KeyboardHolder::new(person, Utc::now());
        let is_client = matches!(typist, Typist::Client(_));
        // That somebody types at a terminal is told by itself.
        news.extend(is_client.then(|| KeyboardNews::Taken(holder.clone())));
        self.held = Some(Hold {
            typist,
            holder,
            until,
        });
        news
    }

    /// Whether this client still has it; if so it keeps it for another while.
    pub fn keep(&mut self, id: &str, slot: &str, now: Instant) -> Result<(), RpcError> {
        let typist = Typist::Client(id.to_owned());
        let held = self.held.as_mut();
        if let Some(hold) = held.filter(|hold| hold.typist == typist) {
            hold.until = until(&typist, now);
            return Ok(());
        }
        let text = match self.holder() {
            Some(KeyboardHolder { uid, via, since }) => format!(
                "{via} (uid {uid}) has had the keyboard of {slot} since {}",
                clock(*since)
            ),
            None => format!("nobody has the keyboard of {slot}: it was given back, or lost"),
        };
        Err(RpcError::new(Fault::Refused, text).next("take it again"))
    }

    pub fn release(&mut self, typist: &Typist) -> Option<KeyboardNews> {
        match self.is_held_by(typist) {
            true => self.lose("it was given back").next(),
            false => None,
        }
    }

    /// The program has ended, or the daemon ends.
    pub fn clear(&mut self) -> Option<KeyboardNews> {
        self.lose("the program has ended").next()
    }

    pub fn due(&self) -> Option<Instant> {
        self.held.as_ref().and_then(|hold| hold.until)
    }

    pub fn expire(&mut self, now: Instant) -> Option<KeyboardNews> {
        match self.due().is_some_and(|until| until <= now) {
            true => self
                .lose("its client has not said anything for 30 s")
                .next(),
            false => None,
        }
    }

    /// Nobody has it any more; news if a client had it.
    fn lose(&mut self, why: &'static str) -> impl Iterator<Item = KeyboardNews> + use<> {
        let client = self
            .held
            .take()
            .filter(|hold| matches!(hold.typist, Typist::Client(_)));
        client
            .map(|hold| KeyboardNews::Lost(hold.holder, why))
            .into_iter()
    }
}

fn until(typist: &Typist, now: Instant) -> Option<Instant> {
    matches!(typist, Typist::Client(_)).then(|| now + HOLD)
}

fn clock(time: DateTime<Utc>) -> String {
    time.with_timezone(&Local).format("%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(via: &str) -> Person {
        Person {
            uid: 1000,
            pid: None,
            via: via.to_owned(),
        }
    }

    fn client(id: &str) -> Typist {
        Typist::Client(id.to_owned())
    }

    fn holds(keyboard: &Keyboard) -> Option<&str> {
        keyboard.holder().map(|holder| holder.via.as_str())
    }

    #[test]
    fn one_has_it_and_the_one_before_is_told() {
        let (mut keyboard, now) = (Keyboard::default(), Instant::now());
        assert_eq!(holds(&keyboard), None);
        let taken = keyboard.take(client("a"), &person("web"), now);
        assert!(matches!(&taken[..], [KeyboardNews::Taken(_)]), "{taken:?}");
        assert!(keyboard.keep("a", "coder", now).is_ok());
        let taken = keyboard.take(client("b"), &person("web phone"), now);
        let [KeyboardNews::Lost(before, _), KeyboardNews::Taken(after)] = &taken[..] else {
            panic!("{taken:?}");
        };
        assert_eq!((&*before.via, &*after.via), ("web", "web phone"));
        let refused = keyboard.keep("a", "coder", now).expect_err("b has it");
        assert!(refused.message.contains("web phone"), "{refused:?}");
        // What the one before does with it has no effect.
        assert_eq!(keyboard.release(&client("a")), None);
        assert_eq!(holds(&keyboard), Some("web phone"));
        assert!(keyboard.release(&client("b")).is_some());
        assert_eq!(holds(&keyboard), None);
        assert!(keyboard.keep("b", "coder", now).is_err());
    }

    #[test]
    fn whoever_types_at_a_terminal_takes_it_and_leaves_with_it() {
        let (mut keyboard, now) = (Keyboard::default(), Instant::now());
        keyboard.take(client("a"), &person("web"), now);
        let taken = keyboard.take(Typist::Terminal(1), &person("attach"), now);
        assert!(matches!(&taken[..], [KeyboardNews::Lost(..)]), "{taken:?}");
        assert_eq!((holds(&keyboard), keyboard.due()), (Some("attach"), None));
        assert!(keyboard.is_held_by(&Typist::Terminal(1)));
        assert!(!keyboard.is_held_by(&Typist::Terminal(2)));
        assert_eq!(keyboard.release(&Typist::Terminal(1)), None);
        assert_eq!(holds(&keyboard), None);
    }

    #[test]
    fn a_client_that_says_nothing_loses_it() {
        let (mut keyboard, now) = (Keyboard::default(), Instant::now());
        keyboard.take(client("a"), &person("web"), now);
        let (before, after) = (now + HOLD / 2, now + HOLD);
        assert_eq!(keyboard.expire(before), None);
        assert!(keyboard.keep("a", "coder", before).is_ok());
        assert_eq!(keyboard.expire(after), None);
        assert!(keyboard.expire(before + HOLD).is_some());
        assert_eq!((holds(&keyboard), keyboard.due()), (None, None));
    }
}
