//! A subscriber to `events`: it gets the status of the selected slots, or the events that it has missed; then live
//! events.

use super::dispatch::Dispatcher;
use super::tails::Tails;
use crate::control::requests::EventsParams;
use crate::core::model::envelope::{self, Lagged, Line, Live, Request};
use crate::core::model::{Event, EventKind, RpcError, Select};
use crate::events::{self, Listener, Missed, SharedEvent, gap};
use crate::os::outbox::{Outbox, OutboxGone};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::bytes::Bytes;

/// The number of events that are read ahead from the event log while the subscriber takes earlier ones.
const READ_AHEAD: usize = 4;

struct Listening<'a> {
    dispatcher: &'a Dispatcher,
    answers: &'a Outbox,
    /// `None` for everything, including slots that are added later.
    selected: Option<Vec<String>>,
    /// Whether the output of the programs is wanted too.
    data: bool,
    tails: Tails,
    /// The number of the last event that was sent. Output that follows that event has the same number.
    position: u64,
}

/// Runs until the subscriber goes, reads too slowly, or the daemon ends.
pub async fn listen(request: &Request, dispatcher: &Dispatcher, answers: &Outbox) {
    let chosen = choose(&request.params, dispatcher);
    let (selected, params) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => {
            let refusal = Line::answer(request.id.clone(), Err(error.into()));
            // A client that is gone needs no answer.
            let _ = answers.send(refusal.bytes()).await;
            return;
        }
    };
    let mut listening = Listening {
        dispatcher,
        answers,
        selected,
        data: params.data,
        tails: Tails::default(),
        position: 0,
    };
    let ready = Line::answer(request.id.clone(), Ok(Value::Object(Default::default())));
    // However the subscription ends, there is no receiver for the error.
    let _ = listening.run(ready, params.after).await;
}

fn choose(
    params: &Value,
    dispatcher: &Dispatcher,
) -> Result<(Option<Vec<String>>, EventsParams), RpcError> {
    let params: EventsParams = serde_json::from_value(params.clone())
        .map_err(|error| RpcError::bad_params("events", &error))?;
    let slots = params.slots.clone();
    // A client that reconnects repeats its earlier request; its slot may be gone meanwhile.
    let selected = match (slots.is_empty(), params.after) {
        (true, _) => None,
        (false, None) => Some(dispatcher.names(&Select { slots })?),
        (false, Some(_)) => Some(
            dispatcher
                .names(&Select {
                    slots: slots.clone(),
                })
                .unwrap_or(slots),
        ),
    };
    Ok((selected, params))
}

impl Listening<'_> {
    async fn run(&mut self, ready: Line, after: Option<u64>) -> Result<(), OutboxGone> {
        self.answers.send(ready.bytes()).await?;
        let mut events = match after {
            Some(after) => self.catch_up_after(after).await?,
            None => self.snapshots().await?,
        };
        let live = Live {
            position: self.position,
        };
        let live = serde_json::to_value(live).unwrap_or_default();
        let live = Line::notification(envelope::LIVE, live);
        self.answers.send(live.bytes()).await?;
        loop {
            tokio::select! {
                told = events.next() => self.heard(told).await?,
                name = self.tails.written() => self.pass_on(&name).await?,
            }
        }
    }

    /// Sends the status of each slot. The position is taken first: an event that a snapshot may not show yet is sent
    /// after it.
    async fn snapshots(&mut self) -> Result<events::RecentEvents, OutboxGone> {
        // Events that a snapshot already shows are not sent again.
        self.dispatcher.bus().settled().await;
        let Listener { position, events } = self.dispatcher.bus().listen();
        self.position = position;
        // Each status is taken when the listener has room for it: a listener that does not read costs one status,
        // not one for each slot.
        for name in self.dispatcher.existing(self.selected.as_deref()) {
            self.snapshot(name).await?;
        }
        Ok(events)
    }

    async fn snapshot(&mut self, name: String) -> Result<(), OutboxGone> {
        let Some(slot) = self.dispatcher.handle(&name) else {
            return Ok(());
        };
        let event = Event {
            seq: self.position,
            time: chrono::Utc::now(),
            slot: Some(name.clone()),
            what: EventKind::Snapshot {
                status: Box::new(slot.status()),
            },
        };
        self.answers.send(event_line(event)).await?;
        self.catch_up(&name).await
    }

    /// Sends the events since `after` from the event log, until the log has no more. Events during that are in the log
    /// too, so a subscriber that reads slowly misses nothing.
    async fn catch_up_after(&mut self, after: u64) -> Result<events::RecentEvents, OutboxGone> {
        self.position = after;
        let events = loop {
            let Listener { position, events } = self.dispatcher.bus().listen();
            if position == self.position {
                break events;
            }
            self.replay(position).await?;
            self.position = position;
        };
        for name in self.dispatcher.existing(self.selected.as_deref()) {
            self.catch_up(&name).await?;
        }
        Ok(events)
    }

    async fn replay(&mut self, until: u64) -> Result<(), OutboxGone> {
        let mut replay = self.dispatcher.bus().replay(self.position, until);
        let (ahead, mut read) = mpsc::channel(READ_AHEAD);
        // It ends when all is read, or when the receiver is gone.
        tokio::task::spawn_blocking(move || {
            while let Some(event) = replay.next()
                && ahead.blocking_send(event).is_ok()
            {}
        });
        while let Some(event) = read.recv().await {
            let slot = event.get("slot").and_then(Value::as_str);
            if self.concerns(slot) || is_gap(&event) {
                let line = Line::notification(envelope::EVENT, event);
                self.answers.send(line.bytes()).await?;
            }
        }
        Ok(())
    }

    async fn heard(
        &mut self,
        told: Option<Result<Arc<SharedEvent>, Missed>>,
    ) -> Result<(), OutboxGone> {
        match told.ok_or(OutboxGone)? {
            Ok(told) => {
                let seq = told.event.seq;
                if seq > self.position + 1 {
                    let gap = gap(self.position, seq);
                    self.answers.send(event_line(gap)).await?;
                }
                if self.concerns(told.event.slot.as_deref()) {
                    self.tell(&told).await?;
                }
                self.position = seq;
                Ok(())
            }
            Err(Missed(missed)) => {
                let params = serde_json::to_value(Lagged { missed }).unwrap_or_default();
                let lagged = Line::notification(envelope::LAGGED, params);
                self.answers.send(lagged.bytes()).await?;
                Err(OutboxGone)
            }
        }
    }

    fn concerns(&self, slot: Option<&str>) -> bool {
        match (&self.selected, slot) {
            (None, _) => true,
            (Some(names), Some(slot)) => names.iter().any(|name| name == slot),
            (Some(_), None) => false,
        }
    }

    /// Sends an event. All output of a program comes after its start and before its end.
    async fn tell(&mut self, told: &SharedEvent) -> Result<(), OutboxGone> {
        let event = &told.event;
        let is_end = matches!(
            event.what,
            EventKind::Exit { .. } | EventKind::Closed { .. }
        );
        if let Some(name) = event.slot.as_ref().filter(|_| is_end) {
            self.catch_up(name).await?;
        }
        self.position = event.seq;
        self.answers.send(told.line()).await?;
        match (&event.slot, &event.what) {
            (Some(name), EventKind::Closed { .. }) => self.tails.forget(name),
            (Some(name), EventKind::Spawned { .. }) => self.catch_up(name).await?,
            _ => {}
        }
        Ok(())
    }

    async fn catch_up(&mut self, name: &str) -> Result<(), OutboxGone> {
        if !self.data {
            return Ok(());
        }
        self.tails.follow(self.dispatcher, name).await;
        self.pass_on(name).await
    }

    /// Sends the output of a slot since the last look.
    async fn pass_on(&mut self, name: &str) -> Result<(), OutboxGone> {
        while let Some(event) = self.tails.next(name, self.position).await {
            self.answers.send(event_line(event)).await?;
        }
        Ok(())
    }
}

fn is_gap(event: &Value) -> bool {
    event.get("event").is_some_and(|name| name == "gap")
}

fn event_line(event: Event) -> Bytes {
    SharedEvent::new(event).line()
}
