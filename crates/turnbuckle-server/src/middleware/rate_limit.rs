//! Limits the rate of operations per caller.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::time::Instant;
use turnbuckle_protocol::RpcError;
use turnbuckle_store::BoxFuture;

use super::{Middleware, Next, Operation, OperationResponse};
use crate::{Context, server::MAX_DURATION, sync::lock};

/// Limits the rate of operations per caller, and rejects the excess.
///
/// A caller is a [`Principal`](turnbuckle_protocol::Principal); without authentication its IP address (for IPv6 its /64
/// network); without an address, as on stdio, its connection. Use [`by`](Self::by) for another key, for example behind
/// a proxy.
///
/// Rejected operations get the JSON-RPC error [`RateLimit::CODE`] with `data.retryAfterMs`, before the handler runs.
/// This also holds for tools: an `isError` result would make the model retry immediately, while the client program can
/// wait.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle_server::{Server, middleware::RateLimit};
///
/// let server = Server::new("search", "1.0.0").layer(
///     RateLimit::new(60, Duration::from_secs(60))
///         .burst(10)
///         .only(|operation| operation.method() == "tools/call"),
/// );
/// ```
#[derive(Clone)]
pub struct RateLimit {
    rate: Rate,
    max_tracked_callers: usize,
    caller: CallerKeyFn,
    filter: Option<OperationFilter>,
    buckets: Arc<TokenBuckets>,
    hasher: RandomState,
}

type CallerKeyFn = Arc<dyn Fn(&Operation, &mut dyn Hasher) + Send + Sync>;
type OperationFilter = Arc<dyn Fn(&Operation) -> bool + Send + Sync>;

impl RateLimit {
    /// The error code, in the application range, after HTTP 429 "Too Many Requests".
    pub const CODE: i64 = 429;

    /// Allows `operations` per `time`, in one burst if the caller was idle.
    ///
    /// # Panics
    ///
    /// If either is zero.
    pub fn new(operations: u32, time: Duration) -> Self {
        let max_tracked_callers = MAX_TRACKED_CALLERS;
        Self {
            rate: Rate::per(operations, time),
            max_tracked_callers,
            caller: Arc::new(|operation, mut hasher| hash_caller(operation.cx(), &mut hasher)),
            filter: None,
            buckets: Arc::new(TokenBuckets::new(max_tracked_callers)),
            hasher: RandomState::new(),
        }
    }

    /// Sets the burst size. The rate stays the same.
    ///
    /// # Panics
    ///
    /// If it is zero.
    #[must_use]
    pub fn burst(mut self, operations: u32) -> Self {
        assert!(operations > 0, "the burst must not be zero");
        self.rate = Rate::new(self.rate.interval, operations);
        self
    }

    /// Sets how many callers are tracked, 10,000 by default. The least recently active are dropped first.
    #[must_use]
    pub fn max_tracked_callers(mut self, callers: usize) -> Self {
        self.max_tracked_callers = callers;
        self.buckets = Arc::new(TokenBuckets::new(callers));
        self
    }

    /// Sets the key that distinguishes callers, such as a header or a claim.
    #[must_use]
    pub fn by<K: Hash>(mut self, key: impl Fn(&Operation) -> K + Send + Sync + 'static) -> Self {
        self.caller = Arc::new(move |operation, mut hasher| key(operation).hash(&mut hasher));
        self
    }

    /// Limits only the operations that match `test`.
    #[must_use]
    pub fn only(mut self, filter: impl Fn(&Operation) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Takes a token, or returns how long to wait for one.
    fn acquire(&self, operation: &Operation) -> Result<(), Duration> {
        if self.filter.as_ref().is_some_and(|test| !test(operation)) {
            return Ok(());
        }
        let mut hasher = self.hasher.build_hasher();
        (self.caller)(operation, &mut hasher);
        self.buckets
            .take_token(hasher.finish(), self.rate, Instant::now())
    }
}

impl Middleware for RateLimit {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, OperationResponse> {
        match self.acquire(&operation) {
            Ok(()) => next.run(),
            Err(wait) => Box::pin(std::future::ready(rate_limit_error(wait).into())),
        }
    }
}

fn rate_limit_error(wait: Duration) -> RpcError {
    // Rounded up, so that a retry after this time is not too early.
    let millis = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let message = format!("too many requests; try again in {millis} ms");
    RpcError::new(RateLimit::CODE, message).with_data(json!({ "retryAfterMs": millis }))
}

/// Hashes the default key of a caller.
pub(crate) fn hash_caller(cx: &Context, hasher: &mut impl Hasher) {
    let origin = &cx.call.origin;
    if let Some(principal) = origin.principal.as_deref() {
        (&principal.issuer, &principal.subject, &principal.client).hash(hasher);
    } else if let Some(peer) = cx.get::<SocketAddr>() {
        network(peer.ip()).hash(hasher);
    } else if let Some(connected) = &origin.connection {
        Arc::as_ptr(connected).hash(hasher);
    }
}

/// Limits the rate of anything by a key. [`RateLimit`] limits the operations of a server.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle_server::middleware::RateTable;
///
/// let sent = RateTable::new(1, Duration::from_secs(60));
/// assert!(sent.acquire(&"ada").is_ok());
/// assert!(sent.acquire(&"ada").is_err());
/// assert!(sent.acquire(&"eve").is_ok());
/// ```
pub struct RateTable {
    rate: Rate,
    buckets: TokenBuckets,
    hasher: RandomState,
}

impl RateTable {
    /// Allows `operations` per `time` and key, in one burst if there were none before. It remembers 10,000 keys; the least
    /// recently used are dropped first.
    ///
    /// # Panics
    ///
    /// If either is zero.
    pub fn new(operations: u32, time: Duration) -> Self {
        Self {
            rate: Rate::per(operations, time),
            buckets: TokenBuckets::new(MAX_TRACKED_CALLERS),
            hasher: RandomState::new(),
        }
    }

    /// Counts an operation, or returns how long to wait for it. What is refused does not count.
    pub fn acquire(&self, key: &impl Hash) -> Result<(), Duration> {
        let key = self.hasher.hash_one(key);
        self.buckets.take_token(key, self.rate, Instant::now())
    }
}

impl std::fmt::Debug for RateTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateTable")
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}

/// The part of an address that a caller cannot choose: an IPv6 subscriber has 2^64 addresses.
fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits() >> 64,
    }
}

impl std::fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimit")
            .field("pace", &self.rate)
            .field("max_tracked_callers", &self.max_tracked_callers)
            .finish_non_exhaustive()
    }
}

/// The default number of tracked callers.
const MAX_TRACKED_CALLERS: usize = 10_000;

/// Number of shards, to reduce lock contention.
const SHARDS: usize = 16;

/// The refill rate and capacity of a bucket.
#[derive(Debug, Clone, Copy)]
struct Rate {
    /// Time per operation.
    interval: Duration,
    /// The capacity, as time.
    burst_window: Duration,
}

impl Rate {
    /// `operations` per `time`, in one burst.
    fn per(operations: u32, time: Duration) -> Self {
        assert!(
            operations > 0 && !time.is_zero(),
            "the rate must not be zero"
        );
        Self::new((time / operations).min(MAX_DURATION), operations)
    }

    fn new(interval: Duration, burst: u32) -> Self {
        Self {
            interval,
            burst_window: interval.saturating_mul(burst),
        }
    }
}

/// The token buckets of all callers.
struct TokenBuckets {
    shards: [Mutex<BucketShard>; SHARDS],
}

/// Buckets by generation: recently used ones, and those unused since the last generation was full.
#[derive(Default)]
struct BucketShard {
    recent: HashMap<u64, Instant>,
    old: HashMap<u64, Instant>,
    capacity: usize,
}

impl TokenBuckets {
    fn new(callers: usize) -> Self {
        // Two generations share the capacity of a shard.
        let capacity = callers.div_ceil(SHARDS * 2).max(1);
        let shards = std::array::from_fn(|_| {
            Mutex::new(BucketShard {
                capacity,
                ..BucketShard::default()
            })
        });
        Self { shards }
    }

    /// Takes a token from a caller's bucket, or returns how long to wait for one.
    fn take_token(&self, caller: u64, rate: Rate, now: Instant) -> Result<(), Duration> {
        let shard = &self.shards[(caller % SHARDS as u64) as usize];
        // A panic cannot leave the table in an invalid state.
        let mut shard = lock(shard);
        // The time at which the bucket is full again is its whole state.
        let full = shard.find(caller).map_or(now, |full| full.max(now)) + rate.interval;
        let burst_window = full - now;
        if burst_window > rate.burst_window {
            return Err(burst_window - rate.burst_window);
        }
        shard.put(caller, full);
        Ok(())
    }

    /// The number of tracked callers.
    #[cfg(test)]
    fn len(&self) -> usize {
        let len = |shard: &Mutex<BucketShard>| {
            shard.lock().map_or(0, |it| it.recent.len() + it.old.len())
        };
        self.shards.iter().map(len).sum()
    }
}

impl BucketShard {
    fn find(&self, caller: u64) -> Option<Instant> {
        let found = self.recent.get(&caller).or_else(|| self.old.get(&caller));
        found.copied()
    }

    fn put(&mut self, caller: u64, full: Instant) {
        if self.recent.len() >= self.capacity && !self.recent.contains_key(&caller) {
            self.old = std::mem::take(&mut self.recent);
        }
        self.recent.insert(caller, full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_allows_its_burst_and_then_its_rate() {
        let buckets = TokenBuckets::new(100);
        let rate = Rate::new(Duration::from_secs(1), 3);
        let now = Instant::now();
        let take = |seconds| buckets.take_token(7, rate, now + Duration::from_secs_f64(seconds));

        for _ in 0..3 {
            assert_eq!(take(0.0), Ok(()));
        }
        assert_eq!(take(0.0), Err(Duration::from_secs(1)));
        assert_eq!(take(0.75), Err(Duration::from_millis(250)));
        assert_eq!(take(1.0), Ok(()), "what was refused cost nothing");
        assert!(take(1.0).is_err());
        for _ in 0..3 {
            assert_eq!(take(100.0), Ok(()));
        }
        assert!(
            take(100.0).is_err(),
            "unused tokens do not exceed the burst"
        );
    }

    #[test]
    fn many_callers_do_not_grow_the_rate_limit_table() {
        let buckets = TokenBuckets::new(160);
        let rate = Rate::new(Duration::from_secs(60), 1);
        let now = Instant::now();

        for caller in 0..100_000 {
            assert_eq!(buckets.take_token(caller, rate, now), Ok(()));
        }

        assert!(buckets.len() <= 160, "{}", buckets.len());
        assert!(
            buckets.take_token(99_999, rate, now).is_err(),
            "the last is known"
        );
        assert!(
            buckets.take_token(0, rate, now).is_ok(),
            "the first is forgotten"
        );
    }
}
