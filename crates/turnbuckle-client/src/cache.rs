//! Answers that may be used again for a while, because the server said so.
//!
//! A cache belongs to one client, and so to one authorization: nothing private ever leaves it. Knows no clock; whoever
//! asks says what time it is. An answer that is no longer fresh is never used, not even when the server fails.

mod using;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use turnbuckle_protocol::method;

use crate::change::Change;
use crate::lifecycle::Rules;

pub(crate) use using::{Hints, Origin};

/// Nothing is fresh for longer, whatever the server says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What an answer belongs to: a method, and the parameter that its result depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    method: &'static str,
    /// A cursor or an address.
    parameter: Option<String>,
}

impl Key {
    pub(crate) fn new(method: &'static str, parameter: Option<String>) -> Self {
        Self { method, parameter }
    }

    fn size(&self) -> usize {
        self.parameter.as_ref().map_or(0, String::len)
    }
}

/// An answer as it came: its JSON text, and the rules of the revision that it is written in.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) text: Bytes,
    pub(crate) rules: Arc<Rules>,
}

/// When a request was made, in terms of changes: an answer from before a change is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

/// The answers of one server.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
    changes: u64,
}

#[derive(Debug)]
struct Entry {
    kept: Kept,
    received: Instant,
    fresh_for: Duration,
}

impl Entry {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.received) < self.fresh_for
    }
}

impl Cache {
    pub(crate) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self {
            entries: HashMap::new(),
            bytes: 0,
            max_entries,
            max_bytes,
            changes: 0,
        }
    }

    /// Returns an answer that is still fresh.
    pub(crate) fn get(&mut self, key: &Key, now: Instant) -> Option<Kept> {
        if self.entries.get(key)?.is_fresh(now) {
            return self.entries.get(key).map(|entry| entry.kept.clone());
        }
        self.remove(key);
        None
    }

    /// Returns what to note down before a request is made.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.changes)
    }

    /// Keeps an answer for as long as it is fresh, unless something has changed since it was asked for.
    pub(crate) fn put(&mut self, key: Key, kept: Kept, ttl_ms: u64, asked: Epoch, now: Instant) {
        self.remove(&key);
        let size = key.size() + kept.text.len();
        if ttl_ms == 0 || asked != self.epoch() || size > self.max_bytes || self.max_entries == 0 {
            return;
        }
        while self.entries.len() >= self.max_entries || self.bytes + size > self.max_bytes {
            self.make_room(now);
        }
        self.bytes += size;
        self.entries.insert(
            key,
            Entry {
                kept,
                received: now,
                fresh_for: Duration::from_millis(ttl_ms).min(LONGEST),
            },
        );
    }

    /// Drops what a change concerns.
    pub(crate) fn forget(&mut self, change: &Change) {
        match change {
            Change::Tools => self.forget_lists(&[method::TOOLS_LIST.name]),
            Change::Prompts => self.forget_lists(&[method::PROMPTS_LIST.name]),
            Change::Resources => self.forget_lists(&[
                method::RESOURCES_LIST.name,
                method::RESOURCES_TEMPLATES_LIST.name,
            ]),
            Change::Resource { uri } => self.forget_where(|key| {
                let address = key.parameter.as_deref().unwrap_or_default();
                key.method == method::RESOURCES_READ.name
                    && (is_within(uri, address) || is_within(address, uri))
            }),
            _ => {}
        }
    }

    /// Drops all pages of lists.
    pub(crate) fn forget_lists(&mut self, methods: &[&str]) {
        self.forget_where(|key| methods.contains(&key.method));
    }

    /// Drops everything: changes may have been missed.
    pub(crate) fn clear(&mut self) {
        self.forget_where(|_| true);
    }

    fn forget_where(&mut self, concerns: impl Fn(&Key) -> bool) {
        self.changes += 1;
        self.entries.retain(|key, _| !concerns(key));
        let sizes = self.entries.iter();
        self.bytes = sizes.map(|(key, it)| key.size() + it.kept.text.len()).sum();
    }

    /// Drops what is no longer fresh, or else the oldest answer.
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
        self.bytes = sizes.map(|(key, it)| key.size() + it.kept.text.len()).sum();
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= key.size() + entry.kept.text.len();
        }
    }
}

/// Says whether an address is another one, or leads to a part of it.
fn is_within(address: &str, whole: &str) -> bool {
    match address.strip_prefix(whole) {
        Some(rest) => rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#']),
        None => false,
    }
}

#[cfg(test)]
mod tests;
