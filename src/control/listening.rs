//! A listener of `events`: how the selected slots stand, then what happens to them.

use super::dispatch::Dispatcher;
use super::envelope::{self, Lagged, Line, Request};
use super::protocol::{Event, EventsParams, RpcError, Select, SlotStatus, What};
use super::tails::Tails;
use serde_json::Value;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::sync::mpsc;

/// The listener has gone, or was dropped.
struct Gone;

impl<T> From<mpsc::error::SendError<T>> for Gone {
    fn from(_: mpsc::error::SendError<T>) -> Gone {
        Gone
    }
}

struct Listening<'a> {
    dispatcher: &'a Dispatcher,
    answers: &'a mpsc::Sender<Line>,
    /// `None` for everything, also slots that are added later.
    selected: Option<Vec<String>>,
    /// Whether what they write is wanted too.
    data: bool,
    tails: Tails,
    /// The number of the last event that was told, which what was written after it has too.
    told: u64,
}

/// Until the listener goes, reads too slowly, or the daemon ends.
pub async fn listen(request: Request, dispatcher: &Dispatcher, answers: &mpsc::Sender<Line>) {
    // Before the snapshot, so that nothing falls between the two.
    let events = dispatcher.bus().listen();
    let (selected, data) = match select(&request.params, dispatcher) {
        Ok(selected) => selected,
        Err(error) => {
            let refusal = Line::answer(request.id, Err(error.into()));
            // One that has gone needs no answer.
            let _ = answers.send(refusal).await;
            return;
        }
    };
    let mut listening = Listening {
        dispatcher,
        answers,
        selected,
        data,
        tails: Tails::default(),
        told: 0,
    };
    let ready = Line::answer(request.id, Ok(Value::Object(Default::default())));
    // However it ends, nobody is left to be told.
    let _ = listening.run(ready, events).await;
}

fn select(
    params: &Value,
    dispatcher: &Dispatcher,
) -> Result<(Option<Vec<String>>, bool), RpcError> {
    let EventsParams { slots, data } = serde_json::from_value(params.clone())
        .map_err(|error| RpcError::bad_params("events", &error))?;
    let selected = match slots.is_empty() {
        true => None,
        false => Some(dispatcher.names(&Select { slots })?),
    };
    Ok((selected, data))
}

impl Listening<'_> {
    async fn run(&mut self, ready: Line, mut events: Receiver<Event>) -> Result<(), Gone> {
        self.answers.send(ready).await?;
        for status in self.dispatcher.statuses(&self.selected) {
            self.snapshot(status).await?;
        }
        let live = Line::notification(envelope::LIVE, Value::Null);
        self.answers.send(live).await?;
        loop {
            tokio::select! {
                event = events.recv() => self.heard(event).await?,
                name = self.tails.written() => self.pass_on(&name).await?,
            }
        }
    }

    async fn snapshot(&mut self, status: SlotStatus) -> Result<(), Gone> {
        let name = status.slot.clone();
        let event = Event {
            seq: self.dispatcher.bus().last(),
            time: chrono::Utc::now(),
            slot: Some(name.clone()),
            what: What::Snapshot {
                status: Box::new(status),
            },
        };
        self.told = event.seq;
        self.answers.send(event_line(&event)).await?;
        self.catch_up(&name).await
    }

    async fn heard(&mut self, event: Result<Event, RecvError>) -> Result<(), Gone> {
        match event {
            Ok(event) if self.concerns(&event) => self.tell(&event).await,
            Ok(_) => Ok(()),
            Err(RecvError::Lagged(missed)) => {
                let params = serde_json::to_value(Lagged { missed }).unwrap_or_default();
                let lagged = Line::notification(envelope::LAGGED, params);
                self.answers.send(lagged).await?;
                Err(Gone)
            }
            Err(RecvError::Closed) => Err(Gone),
        }
    }

    fn concerns(&self, event: &Event) -> bool {
        match (&self.selected, &event.slot) {
            (None, _) => true,
            (Some(names), Some(slot)) => names.contains(slot),
            (Some(_), None) => false,
        }
    }

    /// All that a program has written comes before its end, and after its start.
    async fn tell(&mut self, event: &Event) -> Result<(), Gone> {
        let is_end = matches!(event.what, What::Exit { .. } | What::Closed { .. });
        if let Some(name) = event.slot.as_ref().filter(|_| is_end) {
            self.catch_up(name).await?;
        }
        self.told = self.told.max(event.seq);
        self.answers.send(event_line(event)).await?;
        match (&event.slot, &event.what) {
            (Some(name), What::Closed { .. }) => self.tails.forget(name),
            (Some(name), What::Spawned { .. }) => self.catch_up(name).await?,
            _ => {}
        }
        Ok(())
    }

    async fn catch_up(&mut self, name: &str) -> Result<(), Gone> {
        if !self.data {
            return Ok(());
        }
        self.tails.follow(self.dispatcher, name).await;
        self.pass_on(name).await
    }

    /// What a slot has written since the last look.
    async fn pass_on(&mut self, name: &str) -> Result<(), Gone> {
        for event in self.tails.take(name, self.told).await {
            self.answers.send(event_line(&event)).await?;
        }
        Ok(())
    }
}

fn event_line(event: &Event) -> Line {
    let params = serde_json::to_value(event).unwrap_or_default();
    Line::notification(envelope::EVENT, crate::secrets::mask_json(&params))
}
