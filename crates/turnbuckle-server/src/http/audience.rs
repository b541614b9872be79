//! The sessions that have general streams, and so are told of changes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use turnbuckle_store::SessionId;

use super::{
    feed::Feed,
    presence::{Presence, lock},
};

/// The sessions that have general streams.
#[derive(Default)]
pub(super) struct Audience {
    seating: Mutex<Seating>,
}

/// Who sits where.
///
/// In the order in which they came: what belongs to them lies in memory in about that order, and to go through it in
/// another one takes longer.
#[derive(Default)]
struct Seating {
    seats: BTreeMap<u64, (SessionId, Arc<Presence>)>,
    next: u64,
    /// Made for the first change that is told, and kept until a stream comes or goes: most changes are told on the same
    /// streams as the one before.
    list: List,
}

type List = Option<Arc<[Seat]>>;

/// What is to be known of a session to tell it something.
pub(super) struct Seat {
    pub(super) session: SessionId,
    pub(super) presence: Arc<Presence>,
    /// Its newest stream, when the list was made.
    pub(super) newest: Option<Arc<Feed>>,
}

impl Audience {
    /// Adds a session that has a new stream.
    pub(super) fn join(&self, session: SessionId, presence: &Arc<Presence>) {
        // A list may be long: it goes when the lock is given back.
        let _outdated = lock(&self.seating).join(session, presence);
    }

    /// Notes that streams of a session are gone. One that is over, or has no stream left, is no longer told.
    pub(super) fn leave(&self, presence: &Presence) {
        let _outdated = lock(&self.seating).leave(presence);
    }

    /// Lets go of everybody.
    pub(super) fn clear(&self) {
        let _outdated = std::mem::take(&mut *lock(&self.seating));
    }

    /// Everybody, in the order in which they came.
    pub(super) fn list(&self) -> Arc<[Seat]> {
        lock(&self.seating).list()
    }

    /// Says whether nobody is there.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.seating).seats.is_empty()
    }
}

impl Seating {
    fn join(&mut self, session: SessionId, presence: &Arc<Presence>) -> List {
        let seat = *presence.seat.get_or_init(|| {
            self.next += 1;
            self.next
        });
        self.seats
            .entry(seat)
            .or_insert_with(|| (session, presence.clone()));
        self.list.take()
    }

    fn leave(&mut self, presence: &Presence) -> List {
        let seat = presence.seat.get()?;
        // Whoever opens a stream at this moment joins after it.
        if presence.is_closed() || presence.general.is_empty() {
            self.seats.remove(seat);
        }
        self.list.take()
    }

    fn list(&mut self) -> Arc<[Seat]> {
        let seats = &self.seats;
        self.list
            .get_or_insert_with(|| seats.values().map(Seat::new).collect())
            .clone()
    }
}

impl Seat {
    fn new((session, presence): &(SessionId, Arc<Presence>)) -> Self {
        Self {
            session: *session,
            presence: presence.clone(),
            newest: presence.general.newest(),
        }
    }
}
