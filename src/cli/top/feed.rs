//! What comes from the daemon: statuses, events and the screen of one slot. Each source is a task of its own; what it
//! finds goes into one bounded queue.

use super::lists::{Listed, Tab};
use super::state::AskToExplain;
use crate::cli::context::{ANSWER_LIMIT, call};
use crate::cli::target::Target;
use crate::control::client::{CallError, Client, Notice};
use crate::control::requests::{
    EventsParams, Explain, ExplainAnswer, Ping, Screen, Sessions, SessionsParams, Status, Tasks,
    TasksParams,
};
use crate::core::model::{
    Event, EventKind, Fault, Nothing, OneSlot, Pong, RpcError, ScreenAnswer, ScreenParams, Select,
    SlotStatus,
};
use futures_util::{Stream, StreamExt};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

/// News that wait for the drawing; a source waits with it while the queue is full.
pub const MAX_NEWS: usize = 32;
/// Between two tries to reach a daemon that is away.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// Events of this time are looked up together.
const GATHER: Duration = Duration::from_millis(100);
/// An ask is judged by then.
const JUDGED: Duration = Duration::from_millis(500);
/// What processes use is only known by measuring: this often.
const MEASURE: Duration = Duration::from_secs(5);

/// Between two looks at a list.
const LIST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub enum FeedNews {
    Statuses {
        statuses: Vec<SlotStatus>,
        all: bool,
    },
    /// The daemon itself.
    Daemon(Box<Pong>),
    Happened(Box<Event>),
    Picture(ScreenAnswer),
    Explained(Box<ExplainAnswer>),
    Listed(Listed),
    Lost(String),
    /// The daemon does not talk to this caller.
    Refused(RpcError),
    /// What came of something that the person did.
    Done(String),
    /// It was refused, or failed; these dialogs are not answered.
    NotDone {
        why: String,
        dialogs: Vec<String>,
    },
}

/// Follows all slots until nobody wants the news any more.
pub async fn statuses(target: Target, news: mpsc::Sender<FeedNews>) {
    loop {
        let lost = match listen(&target, &news).await {
            Ok(()) => return,
            Err(CallError::Rpc(error)) if error.fault == Fault::Refused => FeedNews::Refused(error),
            Err(error) => FeedNews::Lost(error.to_string()),
        };
        if news.send(lost).await.is_err() {
            return;
        }
        sleep(TRY_AGAIN).await;
    }
}

/// `Ok` if nobody listens any more.
async fn listen(target: &Target, news: &mpsc::Sender<FeedNews>) -> Result<(), CallError> {
    let events = Client::connect_to(&target.socket, &target.wanted).await?;
    let mut client = Client::connect_to(&target.socket, &target.wanted).await?;
    let mut events = std::pin::pin!(events.events(Select::default()).await?);
    let mut stale = Stale::All;
    let mut look_at = Instant::now();
    loop {
        tokio::select! {
            notice = events.next() => {
                let ended = || CallError::Lost("the daemon has ended the stream".to_owned());
                let notice = notice.ok_or_else(ended)??;
                if stale.is_empty() {
                    look_at = Instant::now() + GATHER;
                }
                stale.note(&notice);
                if let Notice::Event(event) = notice
                    && is_told(&event.what)
                    && news.send(FeedNews::Happened(event)).await.is_err()
                {
                    return Ok(());
                }
                look_at = look_at.min(Instant::now() + MEASURE);
            }
            () = sleep_until(look_at) => {
                let (select, all) = stale.select();
                let statuses = ask(&mut client, select).await?;
                let later = next_look(&statuses);
                if all {
                    let daemon = call::<Ping>(&mut client, Nothing {}, Some(ANSWER_LIMIT)).await?;
                    // If the dashboard has ended, the next send fails too.
                    let _ = news.send(FeedNews::Daemon(Box::new(daemon))).await;
                }
                if news.send(FeedNews::Statuses { statuses, all }).await.is_err() {
                    return Ok(());
                }
                (stale, look_at) = later;
            }
        }
    }
}

/// What is asked for next, and when: why nobody answered an ask is known a moment after its dialog.
fn next_look(statuses: &[SlotStatus]) -> (Stale, Instant) {
    let unjudged = |status: &&SlotStatus| status.dialog.is_some() && status.waits_because.is_none();
    let unjudged = statuses.iter().filter(unjudged);
    let slots: BTreeSet<String> = unjudged.map(|status| status.slot.clone()).collect();
    match slots.is_empty() {
        true => (Stale::Nothing, Instant::now() + MEASURE),
        false => (Stale::Some(slots), Instant::now() + JUDGED),
    }
}

/// A slot that has gone since is no longer to be named: then all are asked for.
async fn ask(client: &mut Client, select: Select) -> Result<Vec<SlotStatus>, CallError> {
    match call::<Status>(client, select, Some(ANSWER_LIMIT)).await {
        Err(CallError::Rpc(_)) => {
            call::<Status>(client, Select::default(), Some(ANSWER_LIMIT)).await
        }
        answer => answer,
    }
}

/// Which slots have to be asked for again.
enum Stale {
    /// No slot has changed: the next look is for the processor and the memory that they use.
    Nothing,
    Some(BTreeSet<String>),
    All,
}

impl Stale {
    fn is_empty(&self) -> bool {
        matches!(self, Stale::Nothing)
    }

    fn note(&mut self, notice: &Notice) {
        let slot = match notice {
            Notice::Event(event) if matches!(event.what, EventKind::Config { .. }) => None,
            Notice::Event(event) => event.slot.clone(),
            _ => None,
        };
        match (self, slot) {
            (Stale::All, _) => {}
            (Stale::Some(slots), Some(slot)) => drop(slots.insert(slot)),
            (stale @ Stale::Nothing, Some(slot)) => *stale = Stale::Some(BTreeSet::from([slot])),
            (stale, None) => *stale = Stale::All,
        }
    }

    /// What to ask for, and whether that is everything.
    fn select(&self) -> (Select, bool) {
        match self {
            Stale::Some(slots) => (
                Select {
                    slots: slots.iter().cloned().collect(),
                },
                false,
            ),
            Stale::Nothing | Stale::All => (Select::default(), true),
        }
    }
}

/// Whether a person wants to read of it in one line.
fn is_told(what: &EventKind) -> bool {
    !matches!(
        what,
        EventKind::Snapshot { .. }
            | EventKind::Data { .. }
            | EventKind::Text { .. }
            | EventKind::State { .. }
    )
}

/// Follows what is `wanted`, and anew when that is something else, until nobody wants anything any more.
async fn follow<T: Clone, F: Future<Output = Result<(), CallError>>>(
    mut wanted: watch::Receiver<Option<T>>,
    watch_one: impl Fn(T) -> F,
) {
    loop {
        let one = wanted.borrow_and_update().clone();
        let following = async {
            match one {
                Some(one) => watch_one(one).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = following => match ended {
                Ok(()) => return,
                // The daemon is away, or the slot is: the statuses tell of it.
                Err(_) => sleep(TRY_AGAIN).await,
            },
            changed = wanted.changed() => if changed.is_err() { return },
        }
    }
}

/// Follows the screen of the slot that is `wanted`, and asks for it at most once in each `pause`.
pub async fn pictures(
    target: Target,
    wanted: watch::Receiver<Option<String>>,
    news: mpsc::Sender<FeedNews>,
    pause: Duration,
) {
    follow(wanted, |slot| watch_screen(&target, slot, &news, pause)).await;
}

/// Follows the list of the tab that is `wanted`.
pub async fn lists(
    target: Target,
    wanted: watch::Receiver<Option<Tab>>,
    news: mpsc::Sender<FeedNews>,
) {
    follow(wanted, |tab| watch_list(&target, tab, &news)).await;
}

/// Asks for the list when something has happened, at most once in each [`LIST_PAUSE`].
async fn watch_list(
    target: &Target,
    tab: Tab,
    news: &mpsc::Sender<FeedNews>,
) -> Result<(), CallError> {
    let mut client = Client::connect_to(&target.socket, &target.wanted).await?;
    let events = Client::connect_to(&target.socket, &target.wanted).await?;
    let mut events = std::pin::pin!(events.events(Select::default()).await?);
    let limit = Some(ANSWER_LIMIT);
    loop {
        let listed = match tab {
            Tab::Slots => return Ok(()),
            Tab::Sessions => {
                let params = SessionsParams::default();
                Listed::Sessions(call::<Sessions>(&mut client, params, limit).await?)
            }
            Tab::Tasks => {
                let params = TasksParams::default();
                Listed::Tasks(call::<Tasks>(&mut client, params, limit).await?)
            }
        };
        if news.send(FeedNews::Listed(listed)).await.is_err() {
            return Ok(());
        }
        next_after(&mut events, LIST_PAUSE).await?;
    }
}

/// Waits for an event, and for more of them until the pause is over.
async fn next_after(
    events: &mut (impl Stream<Item = Result<Notice, CallError>> + Unpin),
    pause: Duration,
) -> Result<(), CallError> {
    let ended = || CallError::Lost("the daemon has ended the stream".to_owned());
    events.next().await.ok_or_else(ended)??;
    let until = Instant::now() + pause;
    while let Ok(more) = tokio::time::timeout_at(until, events.next()).await {
        more.ok_or_else(ended)??;
    }
    Ok(())
}

async fn watch_screen(
    target: &Target,
    slot: String,
    news: &mpsc::Sender<FeedNews>,
    pause: Duration,
) -> Result<(), CallError> {
    let mut client = Client::connect_to(&target.socket, &target.wanted).await?;
    let events = Client::connect_to(&target.socket, &target.wanted).await?;
    let params = EventsParams {
        slots: vec![slot.clone()],
        data: true,
        after: None,
    };
    let mut events = std::pin::pin!(events.events(params).await?);
    loop {
        let params = ScreenParams {
            slot: slot.clone(),
            lines: None,
            ansi: true,
        };
        let picture = call::<Screen>(&mut client, params, Some(ANSWER_LIMIT)).await?;
        if news.send(FeedNews::Picture(picture)).await.is_err() {
            return Ok(());
        }
        // What comes meanwhile is on the next picture.
        next_after(&mut events, pause).await?;
    }
}

/// Asks what speaks for and against the ask that is `wanted`, once for each.
pub async fn explanations(
    target: Target,
    mut wanted: watch::Receiver<Option<AskToExplain>>,
    news: mpsc::Sender<FeedNews>,
) {
    while wanted.changed().await.is_ok() {
        let Some(ask) = wanted.borrow_and_update().clone() else {
            continue;
        };
        // Without an explanation the card has the request and the reason all the same.
        if let Ok(explained) = explain(&target, ask.slot).await
            && news
                .send(FeedNews::Explained(Box::new(explained)))
                .await
                .is_err()
        {
            return;
        }
    }
}

async fn explain(target: &Target, slot: String) -> Result<ExplainAnswer, CallError> {
    let mut client = Client::connect_to(&target.socket, &target.wanted).await?;
    call::<Explain>(&mut client, OneSlot { slot }, Some(ANSWER_LIMIT)).await
}
