//! The earlier requests that a message may belong to.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

use super::correlation::{MessagePlace, MessageRef};

/// The maximum number of requests with one key; older ones are forgotten.
const MAX_PER_KEY: usize = 64;
/// The maximum number of requests in a table; older ones are forgotten.
const MAX_REQUESTS: usize = 100_000;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestRecord {
    pub(super) place: MessageRef,
    pub(super) conn: u64,
    pub(super) exchange: Option<u64>,
    pub(super) is_answered: bool,
    /// Whether a task in the result was created by this request. Those in results of `tasks/…` existed before.
    pub(super) creates_tasks: bool,
}

impl RequestRecord {
    /// Returns how well a message fits: in the same exchange, on the same connection, or on another one of HTTP.
    fn fitness(&self, at: MessagePlace) -> Option<u8> {
        let is_same_exchange = self.exchange.is_some() && self.exchange == at.exchange;
        let is_http = self.exchange.is_some() && at.exchange.is_some();
        if is_same_exchange {
            Some(2)
        } else if self.conn == at.conn {
            Some(1)
        } else {
            is_http.then_some(0)
        }
    }
}

/// Requests by a key that need not be unique, such as an id of several connections.
#[derive(Debug)]
pub(super) struct CandidateTable<K> {
    requests: HashMap<K, VecDeque<RequestRecord>>,
    /// The keys in the order of insertion, one per request.
    order: VecDeque<K>,
}

impl<K> Default for CandidateTable<K> {
    fn default() -> Self {
        Self {
            requests: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> CandidateTable<K> {
    pub(super) fn insert(&mut self, key: K, request: RequestRecord) {
        if self.order.len() == MAX_REQUESTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.forget(&oldest);
        }
        self.order.push_back(key.clone());
        let same_key = self.requests.entry(key).or_default();
        if same_key.len() == MAX_PER_KEY {
            same_key.pop_front();
        }
        same_key.push_back(request);
    }

    /// Finds the request that a message belongs to: the best fit, and of those the latest.
    pub(super) fn find(&self, key: &K, at: MessagePlace) -> Option<MessageRef> {
        let same_key = self.requests.get(key)?;
        let best = best(same_key, at, |_| true)?;
        Some(same_key[best].place)
    }

    /// Finds the request of a response, and marks it as answered.
    pub(super) fn take_unanswered(&mut self, key: &K, at: MessagePlace) -> Option<RequestRecord> {
        let same_key = self.requests.get_mut(key)?;
        let best = best(same_key, at, |request| !request.is_answered)?;
        same_key[best].is_answered = true;
        Some(same_key[best])
    }

    fn forget(&mut self, key: &K) {
        let Some(same_key) = self.requests.get_mut(key) else {
            return;
        };
        same_key.pop_front();
        if same_key.is_empty() {
            self.requests.remove(key);
        }
    }
}

fn best(
    requests: &VecDeque<RequestRecord>,
    at: MessagePlace,
    is_candidate: impl Fn(&RequestRecord) -> bool,
) -> Option<usize> {
    let candidates = requests.iter().enumerate();
    let candidates = candidates.filter(|(_, request)| is_candidate(request));
    let fitting = candidates.filter_map(|(index, request)| {
        let fitness = request.fitness(at)?;
        Some((fitness, index))
    });
    fitting.max().map(|(_, index)| index)
}
