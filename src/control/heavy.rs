//! Requests that have much in memory while they are answered: the output of a session, a conversation, what is searched.
//!
//! Each takes the bytes that it may need from the allowance of its source before it begins, and keeps them until its answer is
//! in the queue of its client, which has a bound of its own. Those of one connection come one after the other, and not before
//! the client has read what it asked for earlier. So neither a client that asks for much at once nor one that never reads can
//! fill the daemon's memory or keep its processors busy, and short requests go on meanwhile.

use super::allowances::Allowances;
use super::places::ConnectionSource;
use crate::core::model::{Fault, RpcError};
use crate::os::outbox::{Budget, Loan, Outbox};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes for people and their programs together: two searches through the output that a session keeps by default. One that
/// needs more runs alone.
const PEOPLE: usize = 128 << 20;
/// Bytes for all slots together, and for one of them.
const SLOTS: usize = 64 << 20;
const ONE_SLOT: usize = 32 << 20;

/// Lists of one connection that are made at once.
const LISTS: usize = 4;

/// Whoever can't begin for this long is told why.
const PATIENCE: Duration = Duration::from_secs(30);

/// Nothing is begun while there is no room for an answer of so many bytes.
const ANSWER: usize = 1 << 20;

/// The allowance of each source.
#[derive(Debug)]
pub(super) struct HeavyRequests(Allowances);

impl Default for HeavyRequests {
    fn default() -> HeavyRequests {
        HeavyRequests(Allowances::new(PEOPLE, SLOTS, ONE_SLOT))
    }
}

/// The turns of one connection.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    source: ConnectionSource,
    heavy: Arc<Semaphore>,
    lists: Arc<Semaphore>,
    answers: Outbox,
    all: Arc<HeavyRequests>,
}

impl HeavyRequests {
    pub fn turns(self: &Arc<Self>, source: ConnectionSource, answers: Outbox) -> Turns {
        Turns {
            source,
            heavy: Arc::new(Semaphore::new(1)),
            lists: Arc::new(Semaphore::new(LISTS)),
            answers,
            all: self.clone(),
        }
    }
}

/// What one request holds. It is given back when the request has been answered, and when nobody else has a [`HeldWork`] of it.
#[derive(Debug)]
pub(super) struct Holding {
    turns: Turns,
    held: Mutex<Option<Arc<HeldWork>>>,
}

/// A turn and its bytes. Work on a thread keeps a copy, since it goes on when its client has gone.
#[derive(Debug)]
pub(super) struct HeldWork {
    bytes: usize,
    _turn: OwnedSemaphorePermit,
    _loan: Loan,
}

impl Holding {
    /// For a request that comes by no connection: it has an allowance of its own.
    pub fn alone() -> Holding {
        let (answers, _) = Budget::new(ANSWER).queue();
        let all = Arc::new(HeavyRequests::default());
        Holding::new(all.turns(ConnectionSource::People, answers))
    }

    pub fn new(turns: Turns) -> Holding {
        Holding {
            turns,
            held: Mutex::default(),
        }
    }

    /// Waits for the turn and for so many bytes; what was held before is given back if it is less.
    pub async fn hold(&self, bytes: usize) -> Result<Arc<HeldWork>, RpcError> {
        let before = self.lock().take();
        if let Some(held) = before.filter(|held| held.bytes >= bytes) {
            return Ok(self.lock().insert(held).clone());
        }
        let turn = self.turns.heavy.clone().acquire_owned().await;
        let turn = turn.map_err(|_| self.no_bytes())?;
        let room = tokio::time::timeout(PATIENCE, self.turns.answers.drained(ANSWER)).await;
        room.map_err(|_| self.no_room())?;
        let allowance = self.turns.all.0.of(&self.turns.source);
        let loan = tokio::time::timeout(PATIENCE, allowance.lend_in_turn(bytes)).await;
        let held = HeldWork {
            bytes,
            _turn: turn,
            _loan: loan.map_err(|_| self.no_bytes())?,
        };
        Ok(self.lock().insert(Arc::new(held)).clone())
    }

    /// The turn for a list, such as the status of all slots. It needs no bytes of the allowance, so that nothing heavy delays it.
    pub async fn list(&self) -> Option<OwnedSemaphorePermit> {
        self.turns.lists.clone().acquire_owned().await.ok()
    }

    /// Gives back what is held, before a wait.
    pub fn let_go(&self) {
        drop(self.lock().take());
    }

    /// What is held now, for work on a thread.
    pub fn held(&self) -> Option<Arc<HeldWork>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<HeldWork>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The refusal where too many answers wait already, for this client or for others like it.
    pub fn no_room(&self) -> RpcError {
        let source = &self.turns.source;
        let text = format!(
            "turned away: the daemon is full (too many answers for {source} wait to be read)"
        );
        RpcError::new(Fault::Full, text).next("read the answers that wait, then ask again")
    }

    fn no_bytes(&self) -> RpcError {
        let Turns { source, all, .. } = &self.turns;
        let bound = all.0.of(source).bound() >> 20;
        let text = format!(
            "turned away: the daemon is full (searches and long answers for {source} have had all {bound} MiB for {})",
            humantime::format_duration(PATIENCE)
        );
        RpcError::new(Fault::Full, text).next("end some of these clients, or try again later")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::outbox::{Budget, OWN, Unread};
    use futures_util::FutureExt;

    fn client(all: &Arc<HeavyRequests>, source: &ConnectionSource) -> (Turns, Outbox, Unread) {
        let (answers, unread) = Budget::default().queue();
        (all.turns(source.clone(), answers.clone()), answers, unread)
    }

    fn holds_now(turns: &Turns, bytes: usize) -> Option<Holding> {
        let holding = Holding::new(turns.clone());
        let held = holding.hold(bytes).now_or_never();
        held.map(|held| drop(held.unwrap())).map(|()| holding)
    }

    #[tokio::test]
    async fn the_heavy_requests_of_a_connection_run_in_turn_and_when_it_has_read() {
        let (all, people) = (Arc::default(), ConnectionSource::People);
        let (turns, answers, mut unread) = client(&all, &people);
        let first = holds_now(&turns, 1 << 10).expect("nobody else holds anything");
        assert!(holds_now(&turns, 1 << 10).is_none());
        assert!(holds_now(&client(&all, &people).0, 1 << 10).is_some());
        // Work on a thread goes on although its request is gone.
        let at_work = first.hold(1 << 10).await.unwrap();
        drop(first);
        assert!(holds_now(&turns, 1 << 10).is_none());
        drop(at_work);
        assert!(holds_now(&turns, 1 << 10).is_some());
        answers.try_send(vec![b'x'; 2 * OWN].into(), OWN).unwrap();
        assert!(holds_now(&turns, 1 << 10).is_none());
        drop(unread.next().await);
        assert!(holds_now(&turns, 1 << 10).is_some());
    }

    #[tokio::test]
    async fn heavy_requests_have_a_bound_by_their_source_and_its_cause_is_told() {
        let all = Arc::default();
        let slot = |name: &str| ConnectionSource::Slot(name.to_owned());
        let of_a = holds_now(&client(&all, &slot("a")).0, usize::MAX).expect("it runs alone");
        assert!(holds_now(&client(&all, &slot("a")).0, 1).is_none());
        // Others are not kept out, and all slots together have a bound too.
        let people = holds_now(&client(&all, &ConnectionSource::People).0, PEOPLE).expect("free");
        let of_b = holds_now(&client(&all, &slot("b")).0, ONE_SLOT).expect("free");
        assert!(holds_now(&client(&all, &slot("c")).0, 1).is_none());
        assert!(holds_now(&client(&all, &ConnectionSource::People).0, 1).is_none());
        let refused = Holding::new(client(&all, &ConnectionSource::People).0).no_bytes();
        assert_eq!(refused.fault, Fault::Full);
        let cause = "searches and long answers for people and their programs have had all 128 MiB";
        assert!(refused.message.contains(cause), "{}", refused.message);
        drop((of_a, people));
        assert!(holds_now(&client(&all, &slot("c")).0, 1).is_some());
        assert!(holds_now(&client(&all, &ConnectionSource::People).0, PEOPLE).is_some());
        of_b.let_go();
        assert!(holds_now(&client(&all, &slot("b")).0, ONE_SLOT).is_some());
    }
}
