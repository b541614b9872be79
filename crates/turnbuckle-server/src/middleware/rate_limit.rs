//! So many operations per caller and time.

mod buckets;

use std::{
    hash::{BuildHasher, Hash, Hasher, RandomState},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use tokio::time::Instant;
use turnbuckle_protocol::RpcError;
use turnbuckle_store::BoxFuture;

use super::{Answer, Middleware, Next, Operation};
use crate::server::FOREVER;
use buckets::{Buckets, Pace};

/// Lets each caller do so much in a time, and refuses what is beyond it.
///
/// A caller is a [`Principal`](turnbuckle_protocol::Principal); where nobody authenticates, an address (of IPv6 the network);
/// where there is none, as on stdio, a connection. [`by`](Self::by) tells callers apart in another way, which a server behind
/// a proxy needs.
///
/// Refused is by the JSON-RPC error [`RateLimit::CODE`] with `data.retryAfterMs`, for tools too: an `isError` result would
/// invite the model to try again at once, while an error reaches the program that can wait. Nothing of the handler has run.
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
    pace: Pace,
    most_callers: usize,
    caller: Caller,
    test: Option<Test>,
    buckets: Arc<Buckets>,
    hasher: RandomState,
}

type Caller = Arc<dyn Fn(&Operation, &mut dyn Hasher) + Send + Sync>;
type Test = Arc<dyn Fn(&Operation) -> bool + Send + Sync>;

impl RateLimit {
    /// The code of the error: of the application's own range, after HTTP's "Too Many Requests".
    pub const CODE: i64 = 429;

    /// Allows `operations` in every `time`, all of them at once if the caller was quiet before.
    ///
    /// # Panics
    ///
    /// If either is zero.
    pub fn new(operations: u32, time: Duration) -> Self {
        assert!(operations > 0 && !time.is_zero(), "a rate is not zero");
        let most_callers = 10_000;
        Self {
            pace: Pace::new((time / operations).min(FOREVER), operations),
            most_callers,
            caller: Arc::new(|operation, mut hasher| default_caller(operation, &mut hasher)),
            test: None,
            buckets: Arc::new(Buckets::new(most_callers)),
            hasher: RandomState::new(),
        }
    }

    /// Allows so many at once; the rate stays the same.
    ///
    /// # Panics
    ///
    /// If it is zero.
    #[must_use]
    pub fn burst(mut self, operations: u32) -> Self {
        assert!(operations > 0, "one operation at least");
        self.pace = Pace::new(self.pace.interval, operations);
        self
    }

    /// Remembers so many callers, 10,000 by default. Those that were quiet for longest are forgotten first, and begin anew.
    #[must_use]
    pub fn most_callers(mut self, callers: usize) -> Self {
        self.most_callers = callers;
        self.buckets = Arc::new(Buckets::new(callers));
        self
    }

    /// Tells callers apart by something else, such as a header or a claim.
    #[must_use]
    pub fn by<K: Hash>(mut self, key: impl Fn(&Operation) -> K + Send + Sync + 'static) -> Self {
        self.caller = Arc::new(move |operation, mut hasher| key(operation).hash(&mut hasher));
        self
    }

    /// Counts only the operations that pass a test.
    #[must_use]
    pub fn only(mut self, test: impl Fn(&Operation) -> bool + Send + Sync + 'static) -> Self {
        self.test = Some(Arc::new(test));
        self
    }

    /// Takes a place, or says how long to wait for one.
    fn admit(&self, operation: &Operation) -> Result<(), Duration> {
        if self.test.as_ref().is_some_and(|test| !test(operation)) {
            return Ok(());
        }
        let mut hasher = self.hasher.build_hasher();
        (self.caller)(operation, &mut hasher);
        self.buckets
            .take(hasher.finish(), self.pace, Instant::now())
    }
}

impl Middleware for RateLimit {
    fn handle<'a>(&'a self, operation: Operation, next: Next) -> BoxFuture<'a, Answer> {
        match self.admit(&operation) {
            Ok(()) => next.run(),
            Err(wait) => Box::pin(std::future::ready(too_many(wait).into())),
        }
    }
}

fn too_many(wait: Duration) -> RpcError {
    // Rounded up, so that whoever waits this long is not early.
    let millis = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let message = format!("too many requests; try again in {millis} ms");
    RpcError::new(RateLimit::CODE, message).with_data(json!({ "retryAfterMs": millis }))
}

/// Who a caller is, as far as anybody knows.
fn default_caller(operation: &Operation, hasher: &mut impl Hasher) {
    if let Some(principal) = operation.principal() {
        (&principal.issuer, &principal.subject, &principal.client).hash(hasher);
    } else if let Some(peer) = operation.get::<SocketAddr>() {
        network(peer.ip()).hash(hasher);
    } else if let Some(connected) = &operation.call().caller.connected {
        Arc::as_ptr(connected).hash(hasher);
    }
}

/// The part of an address that one caller cannot choose: whoever has an address of IPv6 has 2^64 of them.
fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits() >> 64,
    }
}

impl std::fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimit")
            .field("pace", &self.pace)
            .field("most_callers", &self.most_callers)
            .finish_non_exhaustive()
    }
}
