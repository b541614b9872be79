//! Sessions, as negotiated by `initialize`.

use std::{collections::BTreeSet, ops::Deref, sync::Arc, time::Duration};

use turnbuckle_protocol::{
    Principal, Revision,
    types::{ClientCapabilities, Implementation, LogLevel},
};

use crate::{BoxFuture, Position, StoreError, StreamTurns, id::random_id, limits::SessionLimits};

/// Stores the sessions of the legacy era.
///
/// An expired session does not exist for any method here, whether or not it was swept.
#[expect(clippy::len_without_is_empty, reason = "a metric, not a collection")]
pub trait SessionStore: Send + Sync {
    /// Creates a session.
    ///
    /// If the store is full, expired sessions are removed first; live sessions never are, and the result is
    /// [`StoreError::Full`]. An owner that has reached its limit gets [`StoreError::TooMany`]; see
    /// [`evict`](Self::evict) for both cases. Oversized client info or capabilities result in
    /// [`StoreError::TooLarge`].
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<SessionId, StoreError>>;

    /// Returns the record of a session. Its idle timeout goes on.
    ///
    /// A store that several processes share may answer from a cache, so that the record is one that was current a moment
    /// ago. After an update of the same process it is current.
    fn load<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>>;

    /// Returns the record of a session for a request of its client, as [`load`](Self::load) does, and restarts the idle
    /// timeout if that costs nothing.
    ///
    /// The default implementation does not restart it: the caller has to [`touch`](Self::touch) the session.
    fn load_for_request<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionInUse>, StoreError>> {
        Box::pin(async move {
            let record = self.load(id).await?;
            Ok(record.map(|record| SessionInUse {
                record,
                is_touched: false,
            }))
        })
    }

    /// Restarts the idle timeouts of sessions. Returns, in the order of `ids`, which of them exist.
    ///
    /// A caller does this for all sessions that it uses, once in each [`touch_interval`](Self::touch_interval).
    fn touch<'a>(&'a self, ids: &'a [SessionId]) -> BoxFuture<'a, Result<Vec<bool>, StoreError>>;

    /// Returns the time between two calls of [`touch`](Self::touch) for a session in use: an eighth of the shortest idle
    /// timeout, or less.
    fn touch_interval(&self) -> Duration;

    /// Applies an update, raises the version of the record, restarts the idle timeout, and returns the current record.
    ///
    /// Updates of one session are applied one after the other; none is lost.
    fn update<'a>(
        &'a self,
        id: &'a SessionId,
        update: SessionUpdate,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>>;

    /// Removes a session. Returns false if it did not exist.
    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Removes one idle session to make room and returns its id, or `None` if no session can be removed.
    ///
    /// Call this after [`create`](Self::create), or [`update`](Self::update) with a subscription, found no room. An
    /// owner that has reached its session limit loses one of its own. Otherwise, in a full store, the largest owner
    /// loses one, then the next largest, as long as it still has at least as many afterwards as the owner that needs
    /// room; if none of them has an idle session, that owner loses one of its own. Within an owner, sessions that are
    /// not initialized go first, then those that were unused for longest.
    ///
    /// If bytes are missing, the rules are the same with two differences: the largest owner is the one with most
    /// bytes, and only a session that frees enough bytes by itself is removed. If nothing is missing, no session is
    /// removed.
    ///
    /// `in_use` tells which sessions this process is using; those are never removed. A store that several processes
    /// share must also skip sessions that the others use, for example those loaded within the last minute. The
    /// default implementation removes nothing.
    fn evict<'a>(
        &'a self,
        needed: RequiredSpace<'a>,
        in_use: &'a (dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Result<Option<SessionId>, StoreError>> {
        let _ = (needed, in_use);
        Box::pin(async { Ok(None) })
    }

    /// Returns the number of sessions, including expired ones that were not swept yet. It may be approximate.
    fn len(&self) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Removes expired sessions and returns all that expired since the last call. Of all callers, also in other
    /// processes that share the store, one gets each id.
    ///
    /// A caller that holds data per session (streams, running calls) calls this regularly and drops the data of the
    /// returned sessions.
    fn sweep(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;
}

random_id! {
    /// The id of a session: 144 random bits, written as 24 visible ASCII characters.
    ///
    /// `Debug` shows only the first characters, because the id authorizes requests of the session.
    SessionId
}

/// A session that was loaded for a request.
#[derive(Clone, Debug)]
pub struct SessionInUse {
    /// The record of the session.
    pub record: Arc<SessionRecord>,
    /// Whether its idle timeout was restarted.
    pub is_touched: bool,
}

/// The space that an eviction has to free.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RequiredSpace<'a> {
    /// Space for a new session.
    Session(&'a SessionRecord),
    /// Space for a new subscription of a session.
    Subscription {
        /// The owner of the session.
        owner: &'a SessionOwner,
        /// The URI to subscribe to.
        uri: &'a str,
    },
}

impl<'a> RequiredSpace<'a> {
    /// Returns the owner to charge.
    pub fn owner(self) -> &'a SessionOwner {
        match self {
            Self::Session(record) => &record.owner,
            Self::Subscription { owner, .. } => owner,
        }
    }
}

/// The owner that a session is charged to; limits apply per owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionOwner {
    key: Arc<str>,
    shared: bool,
}

impl SessionOwner {
    /// Creates the owner for one caller, such as a principal or a network address.
    pub fn caller(key: impl Into<Arc<str>>) -> Self {
        Self {
            key: key.into(),
            shared: false,
        }
    }

    /// Creates an owner for many callers that cannot be distinguished, such as all clients behind a reverse proxy.
    pub fn shared(key: impl Into<Arc<str>>) -> Self {
        Self {
            key: key.into(),
            shared: true,
        }
    }

    /// Creates the owner for a principal, independent of the client that acts for it.
    pub fn principal(principal: &Principal) -> Self {
        let name = (&principal.issuer, &principal.subject);
        let name = serde_json::to_string(&name).unwrap_or_default();
        Self::caller(format!("principal {name}"))
    }

    /// Returns the key. Two owners with the same key are equal.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns whether several callers may share this owner.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    pub(crate) fn into_key(self) -> Arc<str> {
        self.key
    }
}

/// The stored state of one session.
#[derive(Clone, Debug)]
pub struct SessionRecord {
    /// The owner that the session is charged to.
    pub owner: SessionOwner,
    /// The principal that created the session; requests of others are rejected.
    pub principal: Option<Principal>,
    /// The negotiated revision.
    pub revision: Revision,
    /// The client info and capabilities.
    pub client: Arc<ClientProfile>,
    /// The number of updates of this record, modulo 2^32. Of two records of a session, it tells which is newer.
    pub version: u32,
    /// Set after `notifications/initialized` was received.
    pub initialized: bool,
    /// The minimum log level, if the client has set one.
    pub log_level: Option<LogLevel>,
    /// URIs of subscribed resources.
    pub subscriptions: Subscriptions,
    /// Which GET stream sends which changes.
    pub stream_turns: StreamTurns,
}

impl SessionRecord {
    /// Creates the record of a session right after `initialize`.
    ///
    /// The session is charged to its principal; all sessions without a principal share one owner.
    pub fn new(
        principal: Option<Principal>,
        revision: Revision,
        client: impl Into<Arc<ClientProfile>>,
    ) -> Self {
        let owner = match &principal {
            Some(principal) => SessionOwner::principal(principal),
            None => SessionOwner::shared(""),
        };
        Self {
            owner,
            principal,
            revision,
            client: client.into(),
            version: 0,
            initialized: false,
            log_level: None,
            subscriptions: Subscriptions::default(),
            stream_turns: StreamTurns::default(),
        }
    }

    /// Sets the owner that the session is charged to.
    #[must_use]
    pub fn owned_by(mut self, owner: SessionOwner) -> Self {
        self.owner = owner;
        self
    }

    /// Applies an update within the limits of a session, and raises the version.
    ///
    /// # Errors
    ///
    /// If the session would exceed a limit; the record is unchanged then.
    pub fn apply(
        &mut self,
        update: SessionUpdate,
        limits: &SessionLimits,
    ) -> Result<(), StoreError> {
        match update {
            SessionUpdate::Initialized => self.initialized = true,
            SessionUpdate::LogLevel(level) => self.log_level = Some(level),
            SessionUpdate::Subscribe(uri) => self.subscribe(uri, limits)?,
            SessionUpdate::Unsubscribe(uri) => {
                self.subscriptions.remove(&uri);
            }
            SessionUpdate::BeginTurn {
                generation,
                after,
                sender,
            } => self.stream_turns.begin(generation, after, sender),
        }
        self.version = self.version.wrapping_add(1);
        Ok(())
    }

    fn subscribe(&mut self, uri: String, limits: &SessionLimits) -> Result<(), StoreError> {
        if self.subscriptions.contains(&uri) {
            return Ok(());
        }
        if uri.len() > limits.max_uri_bytes {
            return Err(StoreError::TooLarge {
                what: "URI",
                limit: limits.max_uri_bytes,
            });
        }
        if self.subscriptions.len() >= limits.max_subscriptions {
            return Err(StoreError::TooMany {
                what: "subscriptions",
                limit: limits.max_subscriptions,
            });
        }
        let bytes: usize = self.subscriptions.iter().map(String::len).sum();
        if bytes + uri.len() > limits.max_subscription_bytes {
            return Err(StoreError::TooLarge {
                what: "subscriptions",
                limit: limits.max_subscription_bytes,
            });
        }
        self.subscriptions.insert(uri);
        Ok(())
    }
}

/// The URIs that a session is subscribed to. Without any, they are one word in the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::box_collection,
    reason = "most sessions have none, and their records stay small"
)]
pub struct Subscriptions(Option<Box<BTreeSet<String>>>);

impl Subscriptions {
    fn insert(&mut self, uri: String) {
        self.0.get_or_insert_default().insert(uri);
    }

    fn remove(&mut self, uri: &str) {
        if let Some(uris) = &mut self.0 {
            uris.remove(uri);
        }
        if self.is_empty() {
            self.0 = None;
        }
    }
}

impl Deref for Subscriptions {
    type Target = BTreeSet<String>;

    fn deref(&self) -> &BTreeSet<String> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl<'a> IntoIterator for &'a Subscriptions {
    type Item = &'a String;
    type IntoIter = std::collections::btree_set::Iter<'a, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<String> for Subscriptions {
    fn from_iter<I: IntoIterator<Item = String>>(uris: I) -> Self {
        let uris = BTreeSet::from_iter(uris);
        Self((!uris.is_empty()).then(|| Box::new(uris)))
    }
}

/// The client info and capabilities of a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientProfile {
    /// The name and version of the client.
    pub info: Option<Implementation>,
    /// The capabilities of the client.
    pub capabilities: ClientCapabilities,
}

/// An update of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionUpdate {
    /// `notifications/initialized` was received.
    Initialized,
    /// The client has set the minimum log level.
    LogLevel(LogLevel),
    /// The client subscribes to a resource.
    Subscribe(String),
    /// The client unsubscribes from a resource.
    Unsubscribe(String),
    /// A GET stream begins to send changes. See [`StreamTurns`].
    ///
    /// The newest stream may do so at any endpoint, an older one only at that of the current turn; otherwise nothing
    /// changes.
    BeginTurn {
        /// The number of the stream, or `None` for a new one.
        generation: Option<u32>,
        /// The stream sends the changes after this position, unless it goes on with its turn.
        after: Position,
        /// Identifies the endpoint.
        sender: u64,
    },
}
