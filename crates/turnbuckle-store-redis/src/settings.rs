//! Settings of a store on Redis.

use std::time::Duration;

use turnbuckle_store::StoreLimits;

use crate::{error::RedisStoreError, sealing::Sealer, url::StoreUrl};

/// Where a store is, and how it is used. All instances of an endpoint need the same URL, keys, prefix and limits.
///
/// ```no_run
/// # async fn example() -> Result<(), turnbuckle_store_redis::RedisStoreError> {
/// use turnbuckle_store_redis::{RedisStore, RedisStoreSettings};
///
/// let settings = RedisStoreSettings::new("redis://cache.internal", ["a secret of all instances"])?;
/// let store = RedisStore::connect_with(settings.prefix("reports")?).await?;
/// # Ok(())
/// # }
/// ```
pub struct RedisStoreSettings {
    pub(crate) url: StoreUrl,
    pub(crate) sealer: Sealer,
    pub(crate) prefix: String,
    pub(crate) limits: StoreLimits,
    pub(crate) response_timeout: Duration,
    pub(crate) connection_timeout: Duration,
}

impl RedisStoreSettings {
    /// Creates settings with the default prefix, limits and timeouts.
    ///
    /// `url` has one of these forms, each with an optional `user:password@` or `:password@`. `rediss` instead of `redis` is TLS.
    ///
    /// - `redis://host:port/database`: one server.
    /// - `redis-sentinel://host:port,host:port/name/database`: sentinels, and the name of the primary. Credentials are those of
    ///   the primary.
    /// - `redis-cluster://host:port,host:port`: some nodes of a cluster.
    ///
    /// The first of the state keys seals values, all of them open values. Each needs at least 16 bytes, which are hard to guess.
    pub fn new<S: AsRef<[u8]>>(
        url: &str,
        state_keys: impl IntoIterator<Item = S>,
    ) -> Result<Self, RedisStoreError> {
        Ok(Self {
            url: StoreUrl::parse(url)?,
            sealer: Sealer::new(state_keys)?,
            prefix: "tb".to_owned(),
            limits: StoreLimits::default(),
            response_timeout: Duration::from_secs(1),
            connection_timeout: Duration::from_secs(2),
        })
    }

    /// Returns an error if a URL has none of the forms of [`new`](Self::new).
    pub fn check_url(url: &str) -> Result<(), RedisStoreError> {
        StoreUrl::parse(url).map(drop)
    }

    /// Sets the prefix of all keys, `tb` by default. Endpoints that share a Redis need different prefixes.
    ///
    /// # Errors
    ///
    /// If the prefix is empty or has characters other than letters, digits, `-`, `_`, `.` and `/`.
    pub fn prefix(mut self, prefix: &str) -> Result<Self, RedisStoreError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if prefix.is_empty() || !prefix.chars().all(is_plain) {
            let reason = "the prefix must consist of letters, digits, `-`, `_`, `.` and `/`";
            return Err(RedisStoreError::InvalidUrl {
                reason: reason.to_owned(),
            });
        }
        self.prefix = prefix.to_owned();
        Ok(self)
    }

    /// Sets the limits of the store.
    #[must_use]
    pub fn limits(mut self, limits: StoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the time after which a command without a response fails; one second by default.
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Sets the time after which an attempt to connect fails; two seconds by default.
    #[must_use]
    pub fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.connection_timeout = timeout;
        self
    }
}

impl std::fmt::Debug for RedisStoreSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStoreSettings")
            .field("address", &format_args!("{}", self.url))
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
