//! What a handshake said, remembered.

use std::collections::BTreeSet;
use std::sync::Arc;

use turnbuckle_protocol::types::{ClientCapabilities, Implementation, LogLevel};
use turnbuckle_protocol::{Principal, Revision};

use crate::limits::SessionLimits;
use crate::random::random_id;
use crate::{BoxFuture, StoreError};

/// Sessions of the eras that have a handshake.
///
/// A session that was idle for too long is gone for every method here, whether or not it was swept.
#[expect(
    clippy::len_without_is_empty,
    reason = "a number to watch, not a collection"
)]
pub trait Sessions: Send + Sync {
    /// Begins a session.
    ///
    /// Where the store is full, expired sessions make room; live ones never do, and the answer is
    /// [`StoreError::Full`]. An owner that holds as many as it may gets [`StoreError::TooMany`]; see
    /// [`evict`](Self::evict) for both. A client that says too much about itself is [`StoreError::TooLarge`].
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<SessionId, StoreError>>;

    /// Returns what is remembered, and restarts the idle clock.
    fn load<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>>;

    /// Changes one thing, restarts the idle clock, and returns the record as it is now.
    ///
    /// Changes of one session are applied one after the other; none is lost.
    fn update<'a>(
        &'a self,
        id: &'a SessionId,
        change: SessionChange,
    ) -> BoxFuture<'a, Result<Option<Arc<SessionRecord>>, StoreError>>;

    /// Ends a session; says whether there was one.
    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Ends one idle session to make room, and returns its id; `None` if there is nothing to end.
    ///
    /// Called after [`create`](Self::create), or [`update`](Self::update) with a subscription, found no room. An owner
    /// that holds as many sessions as it may loses one of its own. Otherwise, in a full store, the largest owner loses one,
    /// then the next largest, as long as it still holds at least as many as the owner that needs room will; if none of them
    /// has an idle session, that owner loses one of its own. Within an owner, sessions whose handshake is not done go first,
    /// then those that were unused for longest.
    ///
    /// Where bytes are lacking it is the same, with two differences: the largest owner is the one with most bytes, and
    /// only a session ends that alone frees enough of them. Where nothing is lacking, nobody loses a session.
    ///
    /// `in_use` says which sessions this process uses at the moment: those are never ended. A store that several
    /// processes share must also leave out what the others use, for example everything that was loaded within the last
    /// minute. Unless implemented, nothing is ended.
    fn evict<'a>(
        &'a self,
        needed: SessionRoom<'a>,
        in_use: &'a (dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> BoxFuture<'a, Result<Option<SessionId>, StoreError>> {
        let _ = (needed, in_use);
        Box::pin(async { Ok(None) })
    }

    /// Returns how many sessions are held, expired ones that were not yet swept included.
    fn len(&self) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Drops expired sessions and returns all that expired since the last call.
    ///
    /// Whoever keeps something beside the record (streams, running calls) calls this regularly and
    /// lets go of what belongs to the sessions returned.
    fn sweep(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;
}

random_id! {
    /// Names a session: 144 random bits, as text 24 visible ASCII characters.
    ///
    /// `Debug` shows only the beginning, because whoever knows all of it can speak in its name.
    SessionId
}

/// What room is needed for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SessionRoom<'a> {
    /// Another session.
    Session(&'a SessionRecord),
    /// Another subscription in a session.
    Subscription {
        /// Whose session it is.
        owner: &'a SessionOwner,
        /// What is subscribed to.
        uri: &'a str,
    },
}

impl<'a> SessionRoom<'a> {
    /// Whose quota it counts against.
    pub fn owner(self) -> &'a SessionOwner {
        match self {
            Self::Session(record) => &record.owner,
            Self::Subscription { owner, .. } => owner,
        }
    }
}

/// Whose quota a session counts against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionOwner {
    key: Arc<str>,
    shared: bool,
}

impl SessionOwner {
    /// One caller, such as a principal or a network address.
    pub fn caller(key: impl Into<Arc<str>>) -> Self {
        Self {
            key: key.into(),
            shared: false,
        }
    }

    /// Many callers that cannot be told apart, such as everyone behind a reverse proxy.
    pub fn shared(key: impl Into<Arc<str>>) -> Self {
        Self {
            key: key.into(),
            shared: true,
        }
    }

    /// The caller that tokens of this principal are for, whichever client holds them.
    pub fn principal(principal: &Principal) -> Self {
        let name = (&principal.issuer, &principal.subject);
        let name = serde_json::to_string(&name).unwrap_or_default();
        Self::caller(format!("principal {name}"))
    }

    /// Its name: two owners with one name are the same.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns whether many callers may stand behind it.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    pub(crate) fn into_key(self) -> Arc<str> {
        self.key
    }
}

/// What is remembered of one session.
#[derive(Clone, Debug)]
pub struct SessionRecord {
    /// Whose quota it counts against.
    pub owner: SessionOwner,
    /// Who began it; nobody else may use it.
    pub principal: Option<Principal>,
    /// The negotiated revision.
    pub revision: Revision,
    /// Who the client is and what it can do.
    pub client: Arc<ClientProfile>,
    /// Whether the client said that the handshake is done.
    pub initialized: bool,
    /// The least severe log messages the client wants, once it said so.
    pub log_level: Option<LogLevel>,
    /// URIs of the resources whose updates the client wants.
    pub subscriptions: BTreeSet<String>,
}

impl SessionRecord {
    /// A session as it is right after `initialize` was answered.
    ///
    /// It counts against the quota of its principal; without one, all such sessions share one.
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
            initialized: false,
            log_level: None,
            subscriptions: BTreeSet::new(),
        }
    }

    /// Sets whose quota it counts against.
    #[must_use]
    pub fn owned_by(mut self, owner: SessionOwner) -> Self {
        self.owner = owner;
        self
    }

    /// Changes one thing, within the limits of a session.
    ///
    /// # Errors
    ///
    /// If the session would hold more than it may; then nothing is changed.
    pub fn apply(
        &mut self,
        change: SessionChange,
        limits: &SessionLimits,
    ) -> Result<(), StoreError> {
        match change {
            SessionChange::Initialized => self.initialized = true,
            SessionChange::LogLevel(level) => self.log_level = Some(level),
            SessionChange::Subscribe(uri) => self.subscribe(uri, limits)?,
            SessionChange::Unsubscribe(uri) => {
                self.subscriptions.remove(&uri);
            }
        }
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

/// Who a client is and what it can do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientProfile {
    /// What it calls itself.
    pub info: Option<Implementation>,
    /// What a server may ask of it.
    pub capabilities: ClientCapabilities,
}

/// One change of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionChange {
    /// The client said that the handshake is done.
    Initialized,
    /// The client wants log messages from this level on.
    LogLevel(LogLevel),
    /// The client wants to hear of updates of this resource.
    Subscribe(String),
    /// The client no longer wants to hear of this resource.
    Unsubscribe(String),
}
