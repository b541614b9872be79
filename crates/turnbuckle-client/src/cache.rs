//! The response cache, for results that the server marked as cacheable.
//!
//! A cache belongs to one client, and so to one authorization: private results are not shared. Time is passed in by the
//! caller. A stale response is never used, even if the server fails.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use turnbuckle_protocol::{
    VersionedPayload, json,
    jsonrpc::code,
    method::{self, Method},
    types::{
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedParams, ReadResourceParams, ReadResourceResult,
    },
};

use crate::{
    call::CallOptions,
    client::{
        Client, ReceivedResult,
        list_page::{ListPage, read_page},
        require_complete,
    },
    error::CallError,
    lifecycle::RevisionRules,
    target::Change,
};

/// Maximum freshness, whatever the server says.
const MAX_FRESHNESS: Duration = Duration::from_secs(24 * 60 * 60);

/// Identifies a response: the method, and the parameter that its result depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    method: &'static str,
    /// A cursor or a URI.
    parameter: Option<String>,
}

impl CacheKey {
    pub(crate) fn new(method: &'static str, parameter: Option<String>) -> Self {
        Self { method, parameter }
    }

    fn size(&self) -> usize {
        self.parameter.as_ref().map_or(0, String::len)
    }
}

/// A cached response: its JSON text, and the rules of the revision that it was received in.
#[derive(Clone, Debug)]
pub(crate) struct CachedResponse {
    pub(crate) text: Bytes,
    pub(crate) rules: Arc<RevisionRules>,
}

/// The number of invalidations at the time of a request. A response that was requested before an invalidation is not
/// cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheEpoch(u64);

/// The cached responses of one server.
#[derive(Debug)]
pub(crate) struct ResponseCache {
    entries: HashMap<CacheKey, CacheEntry>,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
    changes: u64,
}

#[derive(Debug)]
struct CacheEntry {
    cached: CachedResponse,
    received: Instant,
    fresh_for: Duration,
}

impl CacheEntry {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.received) < self.fresh_for
    }
}

impl ResponseCache {
    pub(crate) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self {
            entries: HashMap::new(),
            bytes: 0,
            max_entries,
            max_bytes,
            changes: 0,
        }
    }

    /// Returns a response that is still fresh.
    pub(crate) fn get(&mut self, key: &CacheKey, now: Instant) -> Option<CachedResponse> {
        if self.entries.get(key)?.is_fresh(now) {
            return self.entries.get(key).map(|entry| entry.cached.clone());
        }
        self.remove(key);
        None
    }

    /// Returns the current epoch; call it before a request is sent.
    pub(crate) fn epoch(&self) -> CacheEpoch {
        CacheEpoch(self.changes)
    }

    /// Stores a response for as long as it is fresh, unless the cache was invalidated after it was requested.
    pub(crate) fn put(
        &mut self,
        key: CacheKey,
        cached: CachedResponse,
        ttl_ms: u64,
        requested_at: CacheEpoch,
        now: Instant,
    ) {
        self.remove(&key);
        let size = key.size() + cached.text.len();
        if ttl_ms == 0
            || requested_at != self.epoch()
            || size > self.max_bytes
            || self.max_entries == 0
        {
            return;
        }
        while self.entries.len() >= self.max_entries || self.bytes + size > self.max_bytes {
            self.make_room(now);
        }
        self.bytes += size;
        self.entries.insert(
            key,
            CacheEntry {
                cached,
                received: now,
                fresh_for: Duration::from_millis(ttl_ms).min(MAX_FRESHNESS),
            },
        );
    }

    /// Removes the responses that a change affects.
    pub(crate) fn invalidate(&mut self, change: &Change) {
        match change {
            Change::Tools => self.invalidate_lists(&[method::TOOLS_LIST.name]),
            Change::Prompts => self.invalidate_lists(&[method::PROMPTS_LIST.name]),
            Change::Resources => self.invalidate_lists(&[
                method::RESOURCES_LIST.name,
                method::RESOURCES_TEMPLATES_LIST.name,
            ]),
            Change::Resource { uri } => self.invalidate_where(|key| {
                let address = key.parameter.as_deref().unwrap_or_default();
                key.method == method::RESOURCES_READ.name
                    && (is_within(uri, address) || is_within(address, uri))
            }),
            _ => {}
        }
    }

    /// Removes all pages of lists.
    pub(crate) fn invalidate_lists(&mut self, methods: &[&str]) {
        self.invalidate_where(|key| methods.contains(&key.method));
    }

    /// Removes everything, because changes may have been missed.
    pub(crate) fn clear(&mut self) {
        self.invalidate_where(|_| true);
    }

    fn invalidate_where(&mut self, concerns: impl Fn(&CacheKey) -> bool) {
        self.changes += 1;
        self.entries.retain(|key, _| !concerns(key));
        let sizes = self.entries.iter();
        self.bytes = sizes
            .map(|(key, it)| key.size() + it.cached.text.len())
            .sum();
    }

    /// Removes stale responses, or else the oldest one.
    fn make_room(&mut self, now: Instant) {
        let before = self.entries.len();
        self.entries.retain(|_, entry| entry.is_fresh(now));
        if self.entries.len() == before {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.received);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&key);
            }
        }
        let sizes = self.entries.iter();
        self.bytes = sizes
            .map(|(key, it)| key.size() + it.cached.text.len())
            .sum();
    }

    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= key.size() + entry.cached.text.len();
        }
    }
}

/// Returns whether `address` equals `whole`, or is below it.
fn is_within(address: &str, whole: &str) -> bool {
    match address.strip_prefix(whole) {
        Some(rest) => rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#']),
        None => false,
    }
}

/// A result that carries a cache hint.
pub(crate) trait CacheHints: DeserializeOwned + VersionedPayload {
    /// Returns the time for which the result is fresh, in milliseconds.
    fn ttl_ms(&self) -> Option<u64>;
}

macro_rules! hints {
    ($($result:ty),*) => {$(
        impl CacheHints for $result {
            fn ttl_ms(&self) -> Option<u64> {
                self.ttl_ms
            }
        }
    )*};
}

hints!(
    ListToolsResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult
);

/// The source of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseOrigin {
    Server,
    Cache,
}

/// Requests one page of a list, or returns the cached page.
pub(crate) async fn request_page<R: ListPage>(
    client: &Client,
    method: &'static Method,
    cursor: Option<String>,
    options: &CallOptions,
) -> Result<(R, ResponseOrigin), CallError> {
    let key = CacheKey::new(method.name, cursor.clone());
    if let Some(page) = cached(client, &key, options) {
        return Ok((page, ResponseOrigin::Cache));
    }
    let epoch = cache(client).epoch();
    let mut params = PaginatedParams::new();
    params.cursor = cursor;
    let mut request = client.new_request(method, options);
    let received = client.send(&mut request, &params, options).await;
    let received = received.inspect_err(|error| {
        // The server rejected the cursor, so the list it belongs to no longer exists.
        if params.cursor.is_some() && is_invalid_cursor(error) {
            cache(client).invalidate_lists(&[method.name]);
        }
    })?;
    require_complete(method.name, &received)?;
    let (page, is_whole) = read_page(client, method.name, &received)?;
    if is_whole {
        store(client, key, &page, &received, epoch, options);
    }
    Ok((page, ResponseOrigin::Server))
}

/// Requests a resource, or returns the cached response.
pub(crate) async fn request_resource(
    client: &Client,
    params: ReadResourceParams,
    options: &CallOptions,
) -> Result<ReadResourceResult, CallError> {
    let method = &method::RESOURCES_READ;
    let uri = params.uri.clone();
    let key = CacheKey::new(method.name, Some(uri.clone()));
    if let Some(contents) = cached(client, &key, options) {
        return Ok(contents);
    }
    let epoch = cache(client).epoch();
    let mut request = client.new_request(method, options).named(&uri);
    let received = client.send_with_input(&mut request, &params, options);
    let received = received.await?;
    require_complete(method.name, &received)?;
    let contents = received.read(method.name)?;
    // After round trips, the result depends on more than the URI.
    if received.round_trips == 0 {
        store(client, key, &contents, &received, epoch, options);
    }
    Ok(contents)
}

fn cached<R: CacheHints>(client: &Client, key: &CacheKey, options: &CallOptions) -> Option<R> {
    if options.bypass_cache || !is_cacheable(options) {
        return None;
    }
    let cached = cache(client).get(key, Instant::now())?;
    let text = std::str::from_utf8(&cached.text).ok()?;
    let mut result: R = json::from_str(text).ok()?;
    result.upgrade_from(cached.rules.revision);
    Some(result)
}

fn store(
    client: &Client,
    key: CacheKey,
    result: &impl CacheHints,
    received: &ReceivedResult,
    epoch: CacheEpoch,
    options: &CallOptions,
) {
    let ttl_ms = result.ttl_ms().unwrap_or(0);
    if ttl_ms == 0 || !received.rules.cache_hints || !is_cacheable(options) {
        return;
    }
    let cached = CachedResponse {
        // A copy, because the received buffer may be much larger.
        text: Bytes::copy_from_slice(received.result.as_str().as_bytes()),
        rules: received.rules.clone(),
    };
    cache(client).put(key, cached, ttl_ms, epoch, Instant::now());
}

fn cache(client: &Client) -> MutexGuard<'_, ResponseCache> {
    client.inner.router.cache()
}

/// Returns whether the request has no `_meta` that its result could depend on.
fn is_cacheable(options: &CallOptions) -> bool {
    options.meta.is_empty()
}

fn is_invalid_cursor(error: &CallError) -> bool {
    error
        .rpc()
        .is_some_and(|error| error.code == code::INVALID_PARAMS)
}
