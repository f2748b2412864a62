//! Requests that use much memory while they are answered: the output of a session, a conversation, a search.
//!
//! Before it begins, each reserves the bytes that it may need from the budget of its source, and holds them until its
//! answer is in the queue of its client, which has its own bound. The heavy requests of one connection run one after
//! another, and only after the client has read its earlier answers. So neither a client that asks for much at once nor
//! one that never reads can fill the daemon's memory or keep its processors busy, and short requests go on meanwhile.

use super::allowances::Allowances;
use super::places::ConnectionSource;
use crate::core::model::{Fault, RpcError};
use crate::os::outbox::{Budget, Loan, Outbox};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes for people and their programs together: enough for two searches through the output that a session keeps by
/// default. A request that needs more runs alone.
const PEOPLE: usize = 128 << 20;
/// Bytes for all slots together, and for one of them.
const SLOTS: usize = 64 << 20;
const ONE_SLOT: usize = 32 << 20;

/// The maximum of lists that are made at once for one connection.
const LISTS: usize = 4;

/// The timeout for a request that waits to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request does not begin while the client's queue lacks this many bytes for the answer.
const ANSWER: usize = 1 << 20;

/// The budget of each source.
#[derive(Debug)]
pub(super) struct HeavyRequests(Allowances);

impl Default for HeavyRequests {
    fn default() -> HeavyRequests {
        HeavyRequests(Allowances::new(PEOPLE, SLOTS, ONE_SLOT))
    }
}

/// The semaphores of one connection.
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

/// The turn and the bytes that one request holds. They are released when the request has been answered and no other
/// [`HeldWork`] of it exists.
#[derive(Debug)]
pub(super) struct Holding {
    turns: Turns,
    held: Mutex<Option<Arc<HeldWork>>>,
}

/// A turn and its bytes. Work on a thread keeps a copy, since it goes on after its client is gone.
#[derive(Debug)]
pub(super) struct HeldWork {
    bytes: usize,
    _turn: OwnedSemaphorePermit,
    _loan: Loan,
}

impl Holding {
    /// For a request without a connection; it has a separate budget.
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

    /// Waits for the turn and for this many bytes. Bytes held before are released if they are fewer.
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

    /// Waits for the turn for a list, such as the status of all slots. A list needs no bytes of the budget, so that
    /// heavy requests do not delay it.
    pub async fn list(&self) -> Option<OwnedSemaphorePermit> {
        self.turns.lists.clone().acquire_owned().await.ok()
    }

    /// Releases what is held, before a wait.
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

    /// The refusal if too many answers wait to be read, for this client or for others of its source.
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
        // Other sources are not blocked, and all slots together have a bound too.
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
