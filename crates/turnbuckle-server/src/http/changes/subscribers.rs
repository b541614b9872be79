//! The sessions with GET streams, and what each is notified of.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use turnbuckle_store::{ServerChange, SessionId, SessionRecord};

use super::interests::{ConcernedSessions, InterestHasher, InterestIndex, ReadNumber};
use crate::{
    catalog::subscriptions::EncodedChange,
    http::{session::ActiveSession, stream::GetStream},
    sync::lock,
};

/// The sessions that have GET streams.
#[derive(Default)]
pub(in crate::http) struct ChangeSubscribers {
    hasher: InterestHasher,
    table: Mutex<SubscriberTable>,
}

/// The subscribers and a cached snapshot of them.
///
/// Ordered by insertion: the data of the sessions is in about that order in memory, and iterating in another order is
/// slower.
#[derive(Default)]
struct SubscriberTable {
    entries: BTreeMap<u64, (SessionId, Arc<ActiveSession>)>,
    next_key: u64,
    /// Created for the first change, and reused until a stream is opened or ends: most changes go to the same streams as the
    /// previous one.
    snapshot: SubscriberSnapshot,
    interests: InterestIndex,
}

type SubscriberSnapshot = Option<Arc<[ChangeSubscriber]>>;

/// A session with its streams, as needed to notify it.
#[derive(Clone)]
pub(in crate::http) struct ChangeSubscriber {
    pub(in crate::http) session_id: SessionId,
    pub(in crate::http) session: Arc<ActiveSession>,
    /// Its newest stream when the snapshot was taken.
    pub(in crate::http) newest: Option<Arc<GetStream>>,
}

impl ChangeSubscribers {
    /// Adds a session that opened a stream.
    pub(in crate::http) fn stream_added(
        &self,
        session_id: SessionId,
        session: &Arc<ActiveSession>,
    ) {
        // A snapshot may be large, so it is dropped after the lock is released.
        let newest_read = self.hasher.newest_read();
        let _stale_snapshot = lock(&self.table).stream_added(session_id, session, newest_read);
    }

    /// Updates a session after some of its streams ended. A closed session or one without streams is removed.
    pub(in crate::http) fn streams_removed(&self, session: &ActiveSession) {
        let _stale_snapshot = lock(&self.table).streams_removed(session);
    }

    /// Removes all subscribers.
    pub(in crate::http) fn clear(&self) {
        let _stale_snapshot = std::mem::take(&mut *lock(&self.table));
    }

    /// Begins to read a session. Its record must be loaded afterwards.
    pub(super) fn begin_read(&self) -> ReadNumber {
        self.hasher.begin_read()
    }

    /// Sets what a subscriber is notified of.
    pub(super) fn set_interests(
        &self,
        session_id: SessionId,
        session: &ActiveSession,
        record: &SessionRecord,
        read: ReadNumber,
    ) {
        if let Some(key) = session.subscriber_key.get() {
            let interests = self.hasher.of_session(session_id, record, read);
            lock(&self.table).interests.set(*key, interests);
        }
    }

    /// Sets what a subscriber is notified of, if it is not known.
    pub(super) fn set_unknown_interests(
        &self,
        session_id: SessionId,
        session: &ActiveSession,
        record: &SessionRecord,
        read: ReadNumber,
    ) {
        let is_unknown = |key: &u64| lock(&self.table).interests.is_unknown(*key);
        if session.subscriber_key.get().is_some_and(is_unknown) {
            self.set_interests(session_id, session, record, read);
        }
    }

    /// Forgets what the subscribers are notified of, after messages about them were lost.
    pub(super) fn forget_interests(&self) {
        let newest_read = self.hasher.newest_read();
        lock(&self.table).interests.forget_all(newest_read);
    }

    /// Forgets what a subscriber is notified of, after its record could not be read.
    pub(super) fn forget_interests_of(&self, session: &ActiveSession) {
        let newest_read = self.hasher.newest_read();
        if let Some(key) = session.subscriber_key.get() {
            lock(&self.table).interests.forget(*key, newest_read);
        }
    }

    /// Returns the subscribers that a change may concern.
    pub(super) fn concerned_by(&self, change: &EncodedChange) -> Vec<ChangeSubscriber> {
        let may_get = |subscriber: &ChangeSubscriber| subscriber.may_get(change);
        let mut table = lock(&self.table);
        let longest_uri = table.interests.longest_uri();
        match self.hasher.concerned_by(change, longest_uri) {
            ConcernedSessions::All => {
                let all = table.snapshot();
                drop(table);
                all.iter().filter(|one| may_get(one)).cloned().collect()
            }
            ConcernedSessions::Interested { interests, target } => {
                let keys = table.interests.interested(interests.as_deref(), target);
                let entries = keys.iter().filter_map(|key| table.entries.get(key));
                entries.map(ChangeSubscriber::new).filter(may_get).collect()
            }
        }
    }

    /// Returns all subscribers in insertion order.
    pub(in crate::http) fn snapshot(&self) -> Arc<[ChangeSubscriber]> {
        lock(&self.table).snapshot()
    }

    /// Returns whether the table is empty.
    pub(in crate::http) fn is_empty(&self) -> bool {
        lock(&self.table).entries.is_empty()
    }
}

impl SubscriberTable {
    fn stream_added(
        &mut self,
        session_id: SessionId,
        session: &Arc<ActiveSession>,
        newest_read: ReadNumber,
    ) -> SubscriberSnapshot {
        let key = *session.subscriber_key.get_or_init(|| {
            self.next_key += 1;
            self.next_key
        });
        self.entries
            .entry(key)
            .or_insert_with(|| (session_id, session.clone()));
        self.interests.add(key, newest_read);
        self.snapshot.take()
    }

    fn streams_removed(&mut self, session: &ActiveSession) -> SubscriberSnapshot {
        let key = session.subscriber_key.get()?;
        // A stream that is being opened concurrently is added afterwards.
        if session.is_closed() || session.get_streams.is_empty() {
            self.entries.remove(key);
            self.interests.remove(*key);
        }
        self.snapshot.take()
    }

    fn snapshot(&mut self) -> Arc<[ChangeSubscriber]> {
        let entries = &self.entries;
        self.snapshot
            .get_or_insert_with(|| entries.values().map(ChangeSubscriber::new).collect())
            .clone()
    }
}

impl ChangeSubscriber {
    fn new((session_id, session): &(SessionId, Arc<ActiveSession>)) -> Self {
        Self {
            session_id: *session_id,
            session: session.clone(),
            newest: session.get_streams.newest(),
        }
    }

    /// Returns whether the session may get a change, as far as is known without its record.
    fn may_get(&self, change: &EncodedChange) -> bool {
        change.may_be_for(self.session_id)
            && match &change.change {
                ServerChange::ElicitationCompleted { id } => {
                    self.session.runtime.url_elicitations.is_pending(id)
                }
                _ => true,
            }
    }
}
