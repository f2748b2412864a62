//! Output queues for clients: shared bytes, bounded per client and for all clients together.
//!
//! Each client has [`OWN`] bytes for itself, so that no client can prevent another's short answer. More than that comes
//! from a budget that it shares with others; if the budget is used up, the client waits, is refused or gets something
//! shorter.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Mutex as Turns, Notify};
use tokio_util::bytes::Bytes;

/// Bytes that each client may always have in its queue.
pub const OWN: usize = 32 << 10;
/// Bytes that all clients together may have beyond that.
const COMMON: usize = 24 << 20;
/// The overhead of a piece, in bytes.
const APART: usize = 128;

/// A bound on bytes that several clients share.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Common>);

#[derive(Debug)]
struct Common {
    lent: Mutex<usize>,
    bound: usize,
    given_back: Notify,
    /// A lock that makes waiting clients take their loans in the order in which they came.
    turns: Turns<()>,
    /// The enclosing budget: a loan here is a loan there too.
    wider: Option<Budget>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(COMMON)
    }
}

impl Budget {
    pub fn new(bound: usize) -> Budget {
        Budget::made(bound, None)
    }

    /// A part of this budget, with a separate bound.
    pub fn within(&self, bound: usize) -> Budget {
        Budget::made(bound, Some(self.clone()))
    }

    fn made(bound: usize, wider: Option<Budget>) -> Budget {
        Budget(Arc::new(Common {
            lent: Mutex::new(0),
            bound,
            given_back: Notify::new(),
            turns: Turns::new(()),
            wider,
        }))
    }

    pub fn bound(&self) -> usize {
        self.0.bound
    }

    /// Waits for a loan, after those that came before. A loan of more than the bound is reduced to the bound.
    pub async fn lend_in_turn(&self, bytes: usize) -> Loan {
        let (mut loan, bytes) = (self.loan(), bytes.min(self.bound()));
        let _turn = self.0.turns.lock().await;
        loop {
            let mut returned = std::pin::pin!(self.widest().given_back.notified());
            returned.as_mut().enable();
            if loan.resize(bytes) {
                return loan;
            }
            returned.await;
        }
    }

    /// The outermost budget, which is notified of each return.
    fn widest(&self) -> &Common {
        match &self.0.wider {
            Some(wider) => wider.widest(),
            None => &self.0,
        }
    }

    /// A queue for one more client.
    pub fn queue(&self) -> (Outbox, Unread) {
        let share = Arc::new(Share {
            budget: self.clone(),
            used: Mutex::new(0),
            given_back: Notify::new(),
        });
        let (queue, unread) = mpsc::unbounded_channel();
        (Outbox { share, queue }, Unread(unread))
    }

    /// An empty loan.
    pub fn loan(&self) -> Loan {
        Loan {
            budget: self.clone(),
            bytes: 0,
        }
    }

    /// Tells whether a queue or a loan of it exists.
    pub fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    fn lent(&self) -> MutexGuard<'_, usize> {
        self.0.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, bytes: usize) -> bool {
        let wider = self.0.wider.as_ref();
        *self.lent() + bytes <= self.0.bound && wider.is_none_or(|wider| wider.has(bytes))
    }

    fn lend(&self, bytes: usize) -> bool {
        let mut lent = self.lent();
        let wider = self.0.wider.as_ref();
        let is_enough =
            *lent + bytes <= self.0.bound && wider.is_none_or(|wider| wider.lend(bytes));
        *lent += if is_enough { bytes } else { 0 };
        is_enough
    }

    fn take_back(&self, bytes: usize) {
        if bytes > 0 {
            *self.lent() -= bytes;
            match &self.0.wider {
                Some(wider) => wider.take_back(bytes),
                None => self.0.given_back.notify_waiters(),
            }
        }
    }
}

/// Bytes that are held outside of a queue.
#[derive(Debug)]
pub struct Loan {
    budget: Budget,
    bytes: usize,
}

impl Loan {
    /// Takes the missing bytes, or returns those that are too many. `false` means that there is not enough; then
    /// nothing changes.
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes && !self.budget.lend(bytes - self.bytes) {
            return false;
        }
        self.budget.take_back(self.bytes.saturating_sub(bytes));
        self.bytes = bytes;
        true
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.budget.take_back(self.bytes);
    }
}

/// The queue usage of one client.
#[derive(Debug)]
struct Share {
    budget: Budget,
    used: Mutex<usize>,
    given_back: Notify,
}

impl Share {
    fn used(&self) -> MutexGuard<'_, usize> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for one more piece, with at most `most` bytes in the queue. An empty queue accepts a piece of any
    /// size that the budget has.
    fn take(self: &Arc<Share>, bytes: usize, most: usize) -> Option<HeldBytes> {
        let mut used = self.used();
        let wanted = *used + bytes;
        if *used > 0 && wanted > most {
            return None;
        }
        if !self.budget.lend(beyond_own(wanted) - beyond_own(*used)) {
            return None;
        }
        *used = wanted;
        let share = self.clone();
        Some(HeldBytes { share, bytes })
    }
}

fn beyond_own(used: usize) -> usize {
    used.saturating_sub(OWN)
}

/// Bytes of the budget, until they are dropped.
#[derive(Debug)]
struct HeldBytes {
    share: Arc<Share>,
    bytes: usize,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut used = self.share.used();
        let left = *used - self.bytes;
        self.share
            .budget
            .take_back(beyond_own(*used) - beyond_own(left));
        *used = left;
        drop(used);
        self.share.given_back.notify_waiters();
    }
}

/// A piece in the queue. Its room is freed when it is dropped.
#[derive(Debug)]
pub struct OutboxPiece {
    pub bytes: Bytes,
    _held: HeldBytes,
}

/// The sending end of a client's queue.
#[derive(Debug, Clone)]
pub struct Outbox {
    share: Arc<Share>,
    queue: UnboundedSender<OutboxPiece>,
}

/// The client is gone, or was dropped.
#[derive(Debug)]
pub struct OutboxGone;

/// Why a piece was not accepted.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no room now.
    NoRoom,
    Gone,
}

impl Outbox {
    /// Sends a piece, and waits until the client has room for it.
    pub async fn send(&self, bytes: impl Into<Bytes>) -> Result<(), OutboxGone> {
        let bytes = bytes.into();
        loop {
            let own = self.share.given_back.notified();
            let common = self.share.budget.widest().given_back.notified();
            let (mut own, mut common) = (std::pin::pin!(own), std::pin::pin!(common));
            own.as_mut().enable();
            common.as_mut().enable();
            match self.try_send(bytes.clone(), OWN) {
                Ok(()) => return Ok(()),
                Err(Refused::Gone) => return Err(OutboxGone),
                Err(Refused::NoRoom) => {}
            }
            tokio::select! {
                () = own => {}
                () = common => {}
                () = self.queue.closed() => return Err(OutboxGone),
            }
        }
    }

    /// Accepts a piece now or not at all; the queue then has at most `most` bytes, unless it was empty.
    pub fn try_send(&self, bytes: Bytes, most: usize) -> Result<(), Refused> {
        let held = self.share.take(bytes.len() + APART, most);
        let held = held.ok_or(Refused::NoRoom)?;
        let piece = OutboxPiece { bytes, _held: held };
        self.queue.send(piece).map_err(|_| Refused::Gone)
    }

    /// The bytes that the client has not read yet.
    pub fn waiting(&self) -> usize {
        *self.share.used()
    }

    /// Returns when at most [`OWN`] bytes wait to be read and there is room for this many more bytes, or when the
    /// client is gone.
    pub async fn drained(&self, bytes: usize) {
        let Share {
            budget, given_back, ..
        } = &*self.share;
        loop {
            let mut read = std::pin::pin!(given_back.notified());
            let mut by_others = std::pin::pin!(budget.widest().given_back.notified());
            read.as_mut().enable();
            by_others.as_mut().enable();
            if self.waiting() <= OWN && budget.has(bytes.min(budget.bound())) {
                return;
            }
            tokio::select! {
                () = read => {}
                () = by_others => {}
                () = self.queue.closed() => return,
            }
        }
    }
}

/// The receiving end of a client's queue.
#[derive(Debug)]
pub struct Unread(UnboundedReceiver<OutboxPiece>);

impl Unread {
    /// The next piece; `None` when all senders are gone.
    pub async fn next(&mut self) -> Option<OutboxPiece> {
        self.0.recv().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(length: usize) -> Bytes {
        Bytes::from(vec![b'x'; length])
    }

    #[derive(Debug, Clone)]
    enum Step {
        Send {
            client: usize,
            length: usize,
            most: usize,
        },
        Read(usize),
        Leave(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let client = 0usize..4;
        let step = prop_oneof![
            4 => (client.clone(), 0usize..3 * OWN, prop_oneof![Just(OWN), Just(4 * OWN)])
                .prop_map(|(client, length, most)| Step::Send { client, length, most }),
            3 => client.clone().prop_map(Step::Read),
            1 => client.prop_map(Step::Leave),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn what_is_queued_never_exceeds_the_budget(steps in steps()) {
            const BOUND: usize = 5 * OWN;
            let budget = Budget::new(BOUND);
            let mut clients: Vec<_> = (0..4).map(|_| (budget.queue(), Vec::new())).collect();
            for step in steps {
                match step {
                    Step::Send { client, length, most } => {
                        let ((outbox, _), queued) = &mut clients[client];
                        let before: usize = queued.iter().sum();
                        if outbox.try_send(bytes(length), most).is_ok() {
                            queued.push(length);
                            prop_assert!(before == 0 || before + length <= most);
                        } else {
                            prop_assert!(before + length + APART * (queued.len() + 1) > OWN);
                        }
                    }
                    Step::Read(client) => {
                        let ((_, unread), queued) = &mut clients[client];
                        let piece = unread.0.try_recv().ok();
                        prop_assert_eq!(piece.is_some(), !queued.is_empty());
                        if let Some(piece) = piece {
                            prop_assert_eq!(piece.bytes.len(), queued.remove(0));
                        }
                    }
                    Step::Leave(client) => clients[client] = (budget.queue(), Vec::new()),
                }
                let of = |queued: &Vec<usize>| queued.iter().sum::<usize>();
                let all: usize = clients.iter().map(|(_, queued)| of(queued)).sum();
                prop_assert!(all <= BOUND + clients.len() * OWN);
                prop_assert!(*budget.lent() <= BOUND);
            }
            drop(clients);
            prop_assert_eq!(*budget.lent(), 0);
        }
    }

    #[tokio::test]
    async fn whoever_waits_goes_on_when_something_is_read_or_nobody_reads_any_more() {
        let budget = Budget::new(OWN);
        let (outbox, mut unread) = budget.queue();
        outbox.send(bytes(OWN - APART)).await.unwrap();
        let waiting = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.send(bytes(10)).await.is_ok() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        assert_eq!(unread.next().await.unwrap().bytes.len(), OWN - APART);
        assert!(waiting.await.unwrap());

        outbox.send(bytes(OWN / 2)).await.unwrap();
        let waiting = tokio::spawn(async move { outbox.send(bytes(OWN)).await.is_err() });
        tokio::task::yield_now().await;
        drop(unread);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn a_part_of_a_budget_lends_in_turn_and_never_more_than_the_whole() {
        let whole = Budget::new(10);
        let (one, two) = (whole.within(6), whole.within(6));
        let first = one.lend_in_turn(100).await;
        assert_eq!((first.bytes, *whole.lent()), (6, 6));
        let small = two.lend_in_turn(4).await;
        // Everything is lent: a large loan waits, and a small one of the same part waits behind it.
        let large = tokio::spawn({
            let two = two.clone();
            async move { two.lend_in_turn(6).await }
        });
        tokio::task::yield_now().await;
        let behind = tokio::spawn({
            let two = two.clone();
            async move { two.lend_in_turn(1).await }
        });
        tokio::task::yield_now().await;
        drop(small);
        tokio::task::yield_now().await;
        assert!(!large.is_finished() && !behind.is_finished());
        drop(first);
        let large = large.await.unwrap();
        tokio::task::yield_now().await;
        assert!(!behind.is_finished(), "the part has a bound of its own");
        drop(large);
        drop(behind.await.unwrap());
        assert_eq!((*whole.lent(), *two.lent()), (0, 0));
    }

    #[test]
    fn a_short_answer_goes_though_others_have_taken_all() {
        let budget = Budget::new(OWN);
        let (greedy, _unread) = budget.queue();
        let (late, _also) = budget.queue();
        greedy.try_send(bytes(2 * OWN - APART), OWN).unwrap();
        assert_eq!(late.try_send(bytes(2 * OWN), OWN), Err(Refused::NoRoom));
        late.try_send(bytes(OWN - APART), OWN).unwrap();
    }
}
