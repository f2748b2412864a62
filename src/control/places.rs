//! Places for clients: how many may be connected at once, by their source.
//!
//! Each source has its own bound, and each class of sources has places that the others can't take: a slot that opens
//! hundreds of connections blocks neither people nor the hooks of other slots. If a bound is reached, an idle client
//! makes place for the newcomer; if there is none, the newcomer is turned away.

use super::{reserve, unasked};
use crate::core::model::{Fault, RpcError};
use crate::os::peer::PeerOrigin;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Places for people and their programs.
const PEOPLE: usize = 448;
/// Places for all slots together: hooks, and requests that roles grant.
const SLOTS: usize = 288;
/// Places for one slot. Claude Code runs some hooks at once.
const ONE_SLOT: usize = 32;
/// Places for processes whose origin can't be looked up: they may request only the status.
const UNTOLD: usize = 32;

/// A client that has been idle for this long may have to make place. A client that has just connected is about to send
/// a request.
const SETTLED: Duration = Duration::from_secs(1);

/// The source of a client, for the bounds on places.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionSource {
    People,
    Slot(String),
    Untold,
    /// One process, whose origin has not been looked up.
    Process(i32),
}

impl From<&PeerOrigin> for ConnectionSource {
    fn from(origin: &PeerOrigin) -> ConnectionSource {
        match origin {
            PeerOrigin::Outside => ConnectionSource::People,
            PeerOrigin::Slot(name) => ConnectionSource::Slot(name.clone()),
            PeerOrigin::Left(_)
            | PeerOrigin::Daemon
            | PeerOrigin::Untold
            | PeerOrigin::Unseen(_) => ConnectionSource::Untold,
        }
    }
}

impl fmt::Display for ConnectionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionSource::People => f.write_str("people and their programs"),
            ConnectionSource::Slot(name) => write!(f, "slot {name}"),
            ConnectionSource::Untold => f.write_str("processes that can't be looked up"),
            ConnectionSource::Process(pid) => write!(f, "process {pid}"),
        }
    }
}

/// Why a client was turned away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(super) struct TurnedAway {
    pub of: ConnectionSource,
    why: TurnedAwayReason,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum TurnedAwayReason {
    #[error("{who} have all {bound} places that they may have")]
    Places { who: String, bound: usize },
    #[error("Too many open files")]
    Descriptors,
    #[error(
        "the process has {} connections on which it asks for nothing",
        unasked::MAX
    )]
    Unasked,
}

impl TurnedAway {
    /// A client whose origin has not been looked up, because its process has too many connections without a request.
    pub fn unasked(process: i32) -> TurnedAway {
        TurnedAway {
            of: ConnectionSource::Process(process),
            why: TurnedAwayReason::Unasked,
        }
    }
}

impl From<TurnedAway> for RpcError {
    fn from(turned: TurnedAway) -> RpcError {
        let full = reserve::full(&turned.to_string());
        match turned.why {
            TurnedAwayReason::Descriptors => full,
            TurnedAwayReason::Unasked => full.next("ask on a connection as soon as it is made, or close it"),
            TurnedAwayReason::Places { .. } => full.next(
                "end some of these clients, or try again: places of clients that do nothing fall free",
            ),
        }
    }
}

/// The error for an idle client that had to make place.
pub(super) fn made_place() -> RpcError {
    let text =
        "dropped: no request was in progress, and the daemon needs the place for another client";
    RpcError::new(Fault::Full, text)
}

#[derive(Debug)]
struct SeatedListener {
    source: ConnectionSource,
    /// The number of requests in progress.
    busy: usize,
    /// The time since which no request is in progress.
    idle_since: Instant,
    leave: CancellationToken,
}

/// All places, and the clients that have them.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionPlaces(Arc<Mutex<PlaceTable>>);

#[derive(Debug, Default)]
struct PlaceTable {
    seated: BTreeMap<u64, SeatedListener>,
    last_id: u64,
}

/// A client's place. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    places: ConnectionPlaces,
    id: u64,
    leave: CancellationToken,
}

/// A request in progress. Until it is dropped, its client keeps its place.
#[derive(Debug)]
pub(super) struct Busy(Arc<ConnectionPlace>);

impl ConnectionPlaces {
    pub fn admit(
        &self,
        source: ConnectionSource,
        now: Instant,
    ) -> Result<ConnectionPlace, TurnedAway> {
        let mut table = self.table();
        table.make_place(&source, now)?;
        Ok(self.seat(table, source, now))
    }

    /// Like [`ConnectionPlaces::admit`], while only the reserve of descriptors is left, which is for people. An idle
    /// client makes place, and its descriptor is freed.
    pub fn admit_in_need(
        &self,
        source: ConnectionSource,
        now: Instant,
    ) -> Result<ConnectionPlace, TurnedAway> {
        let mut table = self.table();
        let sources: BTreeSet<ConnectionSource> = table.sources().cloned().collect();
        let largest = sources
            .iter()
            .max_by_key(|one| table.count(|source| source == *one));
        let is_free = largest.is_some_and(|from| table.let_go(from, now));
        if source != ConnectionSource::People && !is_free {
            let why = TurnedAwayReason::Descriptors;
            return Err(TurnedAway { of: source, why });
        }
        table.make_place(&source, now)?;
        Ok(self.seat(table, source, now))
    }

    fn seat(
        &self,
        mut table: MutexGuard<'_, PlaceTable>,
        source: ConnectionSource,
        now: Instant,
    ) -> ConnectionPlace {
        table.last_id += 1;
        let (id, leave) = (table.last_id, CancellationToken::new());
        let seated = SeatedListener {
            source,
            busy: 0,
            idle_since: now,
            leave: leave.clone(),
        };
        table.seated.insert(id, seated);
        let places = self.clone();
        ConnectionPlace { places, id, leave }
    }

    fn table(&self) -> MutexGuard<'_, PlaceTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlaceTable {
    fn sources(&self) -> impl Iterator<Item = &ConnectionSource> {
        self.seated.values().map(|seated| &seated.source)
    }

    fn count(&self, mut which: impl FnMut(&ConnectionSource) -> bool) -> usize {
        self.sources().filter(|source| which(source)).count()
    }

    /// Makes sure that there is a place for one more client of this source.
    fn make_place(&mut self, newcomer: &ConnectionSource, now: Instant) -> Result<(), TurnedAway> {
        let own = self.count(|source| source == newcomer);
        let bound = match newcomer {
            ConnectionSource::People => PEOPLE,
            ConnectionSource::Slot(_) => ONE_SLOT,
            ConnectionSource::Untold | ConnectionSource::Process(_) => UNTOLD,
        };
        let is_slot = |source: &ConnectionSource| matches!(source, ConnectionSource::Slot(_));
        let (from, who, bound) = if own >= bound {
            (newcomer.clone(), newcomer.to_string(), bound)
        } else if is_slot(newcomer) && self.count(is_slot) >= SLOTS {
            let from = self.largest_slot(own).unwrap_or_else(|| newcomer.clone());
            (from, "all slots".to_owned(), SLOTS)
        } else {
            return Ok(());
        };
        if self.let_go(&from, now) {
            return Ok(());
        }
        let (of, why) = (newcomer.clone(), TurnedAwayReason::Places { who, bound });
        Err(TurnedAway { of, why })
    }

    /// The slot with the most clients, if it has at least two more than `own`.
    fn largest_slot(&self, own: usize) -> Option<ConnectionSource> {
        let mut by_slot: BTreeMap<&ConnectionSource, usize> = BTreeMap::new();
        for source in self
            .sources()
            .filter(|one| matches!(one, ConnectionSource::Slot(_)))
        {
            *by_slot.entry(source).or_default() += 1;
        }
        let (largest, count) = by_slot.into_iter().max_by_key(|(_, count)| *count)?;
        (count > own + 1).then(|| largest.clone())
    }

    /// Drops the client of a source that has been idle for the longest time; returns whether there was one.
    fn let_go(&mut self, from: &ConnectionSource, now: Instant) -> bool {
        let is_settled = |seated: &SeatedListener| {
            let idle = now.saturating_duration_since(seated.idle_since);
            seated.busy == 0 && idle >= SETTLED
        };
        let idle = self.seated.iter();
        let idle = idle.filter(|(_, seated)| seated.source == *from && is_settled(seated));
        let longest = idle.min_by_key(|(_, seated)| seated.idle_since);
        let longest = longest.map(|(id, _)| *id);
        let left = longest.and_then(|id| self.seated.remove(&id));
        left.inspect(|seated| seated.leave.cancel()).is_some()
    }
}

impl ConnectionPlace {
    /// Returns when the client has to make place for another one.
    pub async fn is_taken(&self) {
        self.leave.cancelled().await;
    }

    pub fn busy(self: &Arc<ConnectionPlace>) -> Busy {
        if let Some(seated) = self.places.table().seated.get_mut(&self.id) {
            seated.busy += 1;
        }
        Busy(self.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let ConnectionPlace { places, id, .. } = &*self.0;
        if let Some(seated) = places.table().seated.get_mut(id) {
            seated.busy -= 1;
            seated.idle_since = Instant::now();
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.places.table().seated.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(name: &str) -> ConnectionSource {
        ConnectionSource::Slot(name.to_owned())
    }

    /// As many as this source gets at once.
    fn fill(
        places: &ConnectionPlaces,
        source: &ConnectionSource,
        now: Instant,
    ) -> Vec<Arc<ConnectionPlace>> {
        let mut admitted = Vec::new();
        while let Ok(place) = places.admit(source.clone(), now) {
            admitted.push(Arc::new(place));
        }
        admitted
    }

    #[test]
    fn no_source_takes_the_places_of_another() {
        let (places, now) = (ConnectionPlaces::default(), Instant::now());
        let crowd = fill(&places, &slot("a"), now);
        assert_eq!(crowd.len(), ONE_SLOT);
        assert_eq!(fill(&places, &slot("b"), now).len(), ONE_SLOT);
        let untold = fill(&places, &ConnectionSource::Untold, now);
        let slots: Vec<_> = (0..20)
            .flat_map(|n| fill(&places, &slot(&n.to_string()), now))
            .collect();
        assert_eq!(slots.len() + crowd.len(), SLOTS);
        let people = fill(&places, &ConnectionSource::People, now);
        assert_eq!(people.len(), PEOPLE);
        assert_eq!(untold.len(), UNTOLD);
    }

    #[test]
    fn the_longest_idle_client_of_the_same_source_makes_place() {
        let (places, now) = (ConnectionPlaces::default(), Instant::now());
        let other = places.admit(slot("b"), now).unwrap();
        let crowd = fill(&places, &slot("a"), now);
        let busy = crowd[0].busy();
        assert!(places.admit(slot("a"), now).is_err(), "none has settled");
        let later = now + SETTLED;
        let hook = places.admit(slot("a"), later).unwrap();
        let left: Vec<bool> = crowd.iter().map(|one| one.leave.is_cancelled()).collect();
        assert_eq!(left.iter().filter(|left| **left).count(), 1);
        assert!(!left[0], "one with a request under way stays");
        assert!(!other.leave.is_cancelled() && !hook.leave.is_cancelled());
        drop(busy);
    }

    #[test]
    fn a_slot_with_few_clients_gets_a_place_of_the_slot_with_most() {
        let (places, now) = (ConnectionPlaces::default(), Instant::now());
        let names: Vec<String> = (0..SLOTS / ONE_SLOT).map(|n| n.to_string()).collect();
        let crowd: Vec<_> = names
            .iter()
            .flat_map(|name| fill(&places, &slot(name), now))
            .collect();
        assert_eq!(crowd.len(), SLOTS);
        let refused = places.admit(slot("calm"), now).unwrap_err();
        assert_eq!(refused.of, slot("calm"));
        let later = now + SETTLED;
        let calm = fill(&places, &slot("calm"), later);
        let left = crowd.iter().filter(|one| one.leave.is_cancelled());
        assert_eq!(left.count(), calm.len());
        assert!(calm.len() > 20, "{} got in", calm.len());
        let total = places.table().seated.len();
        assert_eq!(total, SLOTS, "never more than there are places");
    }

    #[test]
    fn the_last_descriptors_are_for_people() {
        let (places, now) = (ConnectionPlaces::default(), Instant::now());
        let crowd: Vec<_> = (0..5).map(|_| places.admit(slot("a"), now)).collect();
        let refused = places.admit_in_need(slot("b"), now).unwrap_err();
        assert_eq!(refused.why, TurnedAwayReason::Descriptors);
        let person = places.admit_in_need(ConnectionSource::People, now).unwrap();
        // An idle client gives up its descriptor.
        let hook = places.admit_in_need(slot("b"), now + SETTLED).unwrap();
        let crowd: Vec<ConnectionPlace> = crowd.into_iter().flatten().collect();
        assert_eq!(
            crowd.iter().filter(|one| one.leave.is_cancelled()).count(),
            1
        );
        assert!(!person.leave.is_cancelled() && !hook.leave.is_cancelled());
    }

    #[test]
    fn a_place_falls_free_with_its_client() {
        let (places, now) = (ConnectionPlaces::default(), Instant::now());
        let crowd = fill(&places, &slot("a"), now);
        let busy = crowd[0].busy();
        drop(crowd);
        assert_eq!(places.table().seated.len(), 1);
        drop(busy);
        assert_eq!(places.table().seated.len(), 0);
    }
}
