//! An index of what the sessions with GET streams are notified of, so that a change reads only the sessions it concerns.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use turnbuckle_store::{ChangeTarget, ServerChange, SessionId, SessionRecord};

use crate::{
    catalog::subscriptions::EncodedChange, middleware::SessionKey, server::relay::principal_target,
    tasks::TaskOwner,
};

/// Computes the hashes of interests. Its keys are random, so clients cannot choose interests with equal hashes.
///
/// Two interests with equal hashes cost a lookup in the store: a session decides by its record what it gets.
#[derive(Default)]
pub(super) struct InterestHasher {
    state: RandomState,
    reads: AtomicU64,
}

/// The hashes of the interests of one session.
pub(super) struct SessionInterests {
    hashes: Box<[u64]>,
    longest_uri: usize,
    read: ReadNumber,
}

/// The number of a read of a session. A read that begins later has a higher number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadNumber(u64);

/// The sessions that a change may concern.
pub(super) enum ConcernedSessions {
    /// All sessions.
    All,
    /// Sessions with one of `interests` and with `target`, if there is one.
    Interested {
        interests: Option<Vec<u64>>,
        target: Option<u64>,
    },
}

impl InterestHasher {
    /// Begins to read a session. Its record must be loaded afterwards.
    pub(super) fn begin_read(&self) -> ReadNumber {
        ReadNumber(self.reads.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Returns the number of the newest read that has begun.
    pub(super) fn newest_read(&self) -> ReadNumber {
        ReadNumber(self.reads.load(Ordering::SeqCst))
    }

    /// Returns the interests of a session with this record.
    pub(super) fn of_session(
        &self,
        id: SessionId,
        record: &SessionRecord,
        read: ReadNumber,
    ) -> SessionInterests {
        let principal = record.principal.as_ref();
        let subscriptions = record.subscriptions.iter();
        let hashes = subscriptions.map(|uri| self.subscription(uri)).chain([
            self.task_owner(TaskOwner::for_session(principal, id).key()),
            self.target(&SessionKey::from_id(&id).into()),
            self.target(&principal_target(principal)),
        ]);
        let lengths = record.subscriptions.iter().map(String::len);
        SessionInterests {
            hashes: hashes.collect(),
            longest_uri: lengths.max().unwrap_or(0),
            read,
        }
    }

    /// Returns the sessions that a change may concern. `longest_uri` is the length of the longest subscribed URI.
    pub(super) fn concerned_by(
        &self,
        change: &EncodedChange,
        longest_uri: usize,
    ) -> ConcernedSessions {
        let interests = match &change.change {
            ServerChange::ResourceUpdated { uri } => Some(self.covering(uri, longest_uri)),
            ServerChange::Task { task } => Some(vec![self.task_owner(&task.owner)]),
            _ => None,
        };
        let target = match change.target() {
            Some(target @ (ChangeTarget::Session(_) | ChangeTarget::Principal(_))) => {
                Some(self.target(target))
            }
            _ => None,
        };
        match (&interests, target) {
            (None, None) => ConcernedSessions::All,
            _ => ConcernedSessions::Interested { interests, target },
        }
    }

    fn task_owner(&self, key: &str) -> u64 {
        self.state.hash_one(("task owner", key))
    }

    fn target(&self, target: &ChangeTarget) -> u64 {
        self.state.hash_one(("target", target))
    }

    /// Returns the hash of a subscribed URI.
    fn subscription(&self, uri: &str) -> u64 {
        let mut hash = None;
        self.for_each_prefix(uri.as_bytes(), |_, prefix| hash = Some(prefix));
        hash.unwrap_or_else(|| self.uri_hasher().finish())
    }

    /// Returns the hashes of the subscriptions that an update of `uri` concerns, up to a length: of `uri` itself and of
    /// those above it.
    fn covering(&self, uri: &str, longest: usize) -> Vec<u64> {
        let mut hashes = vec![self.uri_hasher().finish()];
        // One byte more shows whether the text ends or continues there.
        let end = uri.len().min(longest.saturating_add(1));
        self.for_each_prefix(&uri.as_bytes()[..end], |length, hash| {
            if length <= longest {
                hashes.push(hash);
            }
        });
        hashes
    }

    /// Calls `visit` with the length and the hash of each prefix that ends before or after a slash, and of the whole URI at
    /// last.
    fn for_each_prefix(&self, uri: &[u8], mut visit: impl FnMut(usize, u64)) {
        let mut hasher = self.uri_hasher();
        let mut length = 0;
        for segment in uri.split_inclusive(|byte| *byte == b'/') {
            let name = segment.strip_suffix(b"/").unwrap_or(segment);
            hasher.write(name);
            length += name.len();
            visit(length, hasher.finish());
            if name.len() < segment.len() {
                hasher.write_u8(b'/');
                length += 1;
                visit(length, hasher.finish());
            }
        }
    }

    fn uri_hasher(&self) -> DefaultHasher {
        let mut hasher = self.state.build_hasher();
        "subscription".hash(&mut hasher);
        hasher
    }
}

/// The interests of all subscribers, by the keys of the subscriber table.
#[derive(Default)]
pub(super) struct InterestIndex {
    /// Interests and subscribers.
    entries: BTreeSet<(u64, u64)>,
    subscribers: BTreeMap<u64, IndexedSubscriber>,
    /// The subscribers with unknown interests: any change may concern them.
    unknown: BTreeSet<u64>,
    /// The number of bytes of the longest subscribed URI, or more.
    longest_uri: usize,
}

/// The interests of a subscriber.
struct IndexedSubscriber {
    hashes: Box<[u64]>,
    /// The read that the hashes are from. Earlier reads are ignored.
    read: ReadNumber,
}

impl InterestIndex {
    /// Adds a subscriber with unknown interests. Only reads after `newest_read` are accepted.
    pub(super) fn add(&mut self, subscriber: u64, newest_read: ReadNumber) {
        let is_new = !self.subscribers.contains_key(&subscriber);
        if is_new {
            self.set_unknown(subscriber, newest_read);
        }
    }

    /// Removes a subscriber.
    pub(super) fn remove(&mut self, subscriber: u64) {
        self.unknown.remove(&subscriber);
        if let Some(removed) = self.subscribers.remove(&subscriber) {
            self.remove_entries(subscriber, &removed.hashes);
        }
        if self.subscribers.is_empty() {
            self.longest_uri = 0;
        }
    }

    /// Sets the interests of a subscriber, unless a later read has set them.
    pub(super) fn set(&mut self, subscriber: u64, interests: SessionInterests) {
        let Some(indexed) = self.subscribers.get_mut(&subscriber) else {
            return;
        };
        if interests.read <= indexed.read {
            return;
        }
        indexed.read = interests.read;
        let hashes = interests.hashes;
        let earlier = std::mem::replace(&mut indexed.hashes, hashes.clone());
        self.remove_entries(subscriber, &earlier);
        self.entries
            .extend(hashes.iter().map(|hash| (*hash, subscriber)));
        self.unknown.remove(&subscriber);
        self.longest_uri = self.longest_uri.max(interests.longest_uri);
    }

    /// Forgets the interests of a subscriber. Only reads after `newest_read` are accepted.
    pub(super) fn forget(&mut self, subscriber: u64, newest_read: ReadNumber) {
        let Some(indexed) = self.subscribers.get_mut(&subscriber) else {
            return;
        };
        let earlier = std::mem::take(&mut indexed.hashes);
        self.remove_entries(subscriber, &earlier);
        self.set_unknown(subscriber, newest_read);
    }

    /// Forgets the interests of all subscribers. Only reads after `newest_read` are accepted.
    pub(super) fn forget_all(&mut self, newest_read: ReadNumber) {
        let subscribers: Vec<u64> = self.subscribers.keys().copied().collect();
        self.entries.clear();
        for subscriber in subscribers {
            self.set_unknown(subscriber, newest_read);
        }
    }

    pub(super) fn longest_uri(&self) -> usize {
        self.longest_uri
    }

    /// Returns whether the interests of a subscriber are not known.
    pub(super) fn is_unknown(&self, subscriber: u64) -> bool {
        self.unknown.contains(&subscriber)
    }

    /// Returns the subscribers with one of the interests and with the target, in the order of their keys.
    pub(super) fn interested(&self, interests: Option<&[u64]>, target: Option<u64>) -> Vec<u64> {
        let with = |hash: u64| {
            let entries = self.entries.range((hash, u64::MIN)..=(hash, u64::MAX));
            entries.map(|(_, subscriber)| *subscriber)
        };
        let mut found: Vec<u64> = match (interests, target) {
            (Some(interests), target) => {
                let found = interests.iter().flat_map(|hash| with(*hash));
                let is_target = |subscriber: &u64| {
                    target.is_none_or(|target| self.entries.contains(&(target, *subscriber)))
                };
                found.filter(is_target).collect()
            }
            (None, Some(target)) => with(target).collect(),
            (None, None) => Vec::new(),
        };
        found.extend(&self.unknown);
        found.sort_unstable();
        found.dedup();
        found
    }

    fn set_unknown(&mut self, subscriber: u64, read: ReadNumber) {
        let hashes = Box::default();
        let indexed = IndexedSubscriber { hashes, read };
        self.subscribers.insert(subscriber, indexed);
        self.unknown.insert(subscriber);
    }

    fn remove_entries(&mut self, subscriber: u64, hashes: &[u64]) {
        for hash in hashes {
            self.entries.remove(&(*hash, subscriber));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether subscribers of `watched` are found for an update of `uri`.
    fn finds(hasher: &InterestHasher, watched: &str, uri: &str, longest: usize) -> bool {
        let hash = hasher.subscription(watched);
        hasher.covering(uri, longest).contains(&hash)
    }

    #[test]
    fn subscribers_of_a_uri_and_of_those_above_it_are_found() {
        let hasher = InterestHasher::default();
        let uris = [
            "",
            "/",
            "//",
            "a",
            "a/",
            "a//",
            "a/b",
            "a/b/",
            "a/b/c",
            "a/bc",
            "ab",
            "a//b",
            "/a",
            "file:///a",
            "file:///a/b",
            "file:///a/",
            "file:///ab",
            "ä/ö",
            "ä/ö/ü",
            "ä",
        ];
        for watched in uris {
            for uri in uris {
                let covers = uri.strip_prefix(watched).is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with('/') || watched.ends_with('/')
                });
                for longest in [watched.len(), 100] {
                    let found = finds(&hasher, watched, uri, longest);
                    assert!(found || !covers, "{watched:?} {uri:?} {longest}");
                }
                // The empty URI is always looked up; the record decides.
                let found = finds(&hasher, watched, uri, 100);
                assert!(
                    covers || !found || watched.is_empty(),
                    "{watched:?} {uri:?}"
                );
            }
        }
    }

    #[test]
    fn a_long_uri_is_looked_up_no_further_than_the_longest_subscription() {
        let hasher = InterestHasher::default();
        let uri = "a/".repeat(1_000_000);

        assert!(hasher.covering(&uri, 10).len() <= 11);
        assert!(finds(&hasher, "a/a/a/", &uri, 6));
    }

    fn interests(hashes: &[u64], read: ReadNumber) -> SessionInterests {
        SessionInterests {
            hashes: hashes.into(),
            longest_uri: 5,
            read,
        }
    }

    #[test]
    fn a_subscriber_with_unknown_interests_is_always_found() {
        let mut index = InterestIndex::default();
        index.add(1, ReadNumber(0));
        index.add(2, ReadNumber(0));
        assert_eq!(index.interested(Some(&[7]), None), [1, 2]);

        index.set(1, interests(&[7], ReadNumber(1)));
        index.set(2, interests(&[8], ReadNumber(2)));
        assert_eq!(index.interested(Some(&[7]), None), [1]);
        assert_eq!(index.interested(Some(&[7, 8]), None), [1, 2]);
        assert_eq!(index.interested(Some(&[7, 8]), Some(8)), [2]);
        assert_eq!(index.interested(None, Some(8)), [2]);

        index.forget(1, ReadNumber(2));
        assert_eq!(index.interested(Some(&[8]), None), [1, 2]);
        index.set(1, interests(&[7], ReadNumber(3)));
        assert_eq!(index.interested(Some(&[8]), None), [2]);

        index.forget_all(ReadNumber(3));
        assert_eq!(index.interested(None, Some(9)), [1, 2]);
    }

    #[test]
    fn an_earlier_read_does_not_replace_a_later_one() {
        let mut index = InterestIndex::default();
        let earlier = interests(&[7], ReadNumber(2));
        index.add(1, ReadNumber(1));
        index.set(1, interests(&[8], ReadNumber(3)));
        index.set(1, earlier);
        assert!(index.interested(Some(&[7]), None).is_empty());
        assert_eq!(index.interested(Some(&[8]), None), [1]);

        index.forget_all(ReadNumber(4));
        index.set(1, interests(&[8], ReadNumber(4)));
        assert!(index.is_unknown(1), "the read began before");
    }

    #[test]
    fn a_removed_subscriber_leaves_nothing_behind() {
        let mut index = InterestIndex::default();
        index.add(1, ReadNumber(0));
        index.set(1, interests(&[7, 8], ReadNumber(1)));

        index.remove(1);
        index.set(1, interests(&[7], ReadNumber(2)));

        assert!(index.entries.is_empty() && index.subscribers.is_empty());
        assert!(index.unknown.is_empty());
        assert_eq!(index.longest_uri, 0);
    }
}
