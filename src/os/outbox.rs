//! What waits until a client reads it: shared bytes in a queue, bounded in bytes for each client and for all together.
//!
//! Each client has [`OWN`] bytes for itself, so that nobody keeps a short answer from anybody. What is more comes from
//! an allowance that all clients have in common; whoever gets nothing there waits, is refused or is shown something
//! shorter, as suits it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio_util::bytes::Bytes;

/// Bytes that each client may have in its queue, whatever the others have.
pub const OWN: usize = 32 << 10;
/// Bytes that all clients together may have beyond that.
const COMMON: usize = 24 << 20;
/// What a piece costs beside its bytes.
const APART: usize = 128;

/// The allowance that all clients have in common.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Common>);

#[derive(Debug)]
struct Common {
    lent: Mutex<usize>,
    bound: usize,
    given_back: Notify,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(COMMON)
    }
}

impl Budget {
    fn new(bound: usize) -> Budget {
        Budget(Arc::new(Common {
            lent: Mutex::new(0),
            bound,
            given_back: Notify::new(),
        }))
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

    fn lent(&self) -> MutexGuard<'_, usize> {
        self.0.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lend(&self, bytes: usize) -> bool {
        let mut lent = self.lent();
        let is_enough = *lent + bytes <= self.0.bound;
        *lent += if is_enough { bytes } else { 0 };
        is_enough
    }

    fn take_back(&self, bytes: usize) {
        if bytes > 0 {
            *self.lent() -= bytes;
            self.0.given_back.notify_waiters();
        }
    }
}

/// What one client has in its queue.
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

    /// Room for one more piece, with at most `most` in the queue. An empty queue takes a piece of any size that the
    /// common allowance has.
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

/// A piece in the queue. Its room falls free when it is dropped.
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

/// The client has gone, or was dropped.
#[derive(Debug)]
pub struct OutboxGone;

/// Why a piece was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no room for it now.
    NoRoom,
    Gone,
}

impl Outbox {
    /// Waits until the client has room for it.
    pub async fn send(&self, bytes: impl Into<Bytes>) -> Result<(), OutboxGone> {
        let bytes = bytes.into();
        loop {
            let own = self.share.given_back.notified();
            let common = self.share.budget.0.given_back.notified();
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

    /// Takes it now or not at all; the queue has `most` bytes at the end, unless it was empty.
    pub fn try_send(&self, bytes: Bytes, most: usize) -> Result<(), Refused> {
        let held = self.share.take(bytes.len() + APART, most);
        let held = held.ok_or(Refused::NoRoom)?;
        let piece = OutboxPiece { bytes, _held: held };
        self.queue.send(piece).map_err(|_| Refused::Gone)
    }

    /// Bytes that the client has not read yet.
    pub fn waiting(&self) -> usize {
        *self.share.used()
    }
}

/// The reading end of a client's queue.
#[derive(Debug)]
pub struct Unread(UnboundedReceiver<OutboxPiece>);

impl Unread {
    /// `None` when nobody can send any more.
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
