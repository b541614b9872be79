//! Publishes server changes to all subscribers.

use std::{fmt, sync::Arc};

use crate::{BoxFuture, LogSubscription, StoreError, TaskRecord};

/// A log of changes, in one order for all subscribers, in this process and in others that share the store.
///
/// Each change has a [`Position`]. The log is bounded: it forgets the oldest changes first.
pub trait ChangeBus: Send + Sync {
    /// Appends a change, for all subscribers. Never waits: neither for a slow subscriber nor for a database.
    fn publish(&self, change: ServerChange);

    /// Publishes the change of a list, unless another process has published the same one.
    ///
    /// `change` is a list change such as [`ServerChange::ToolsChanged`], or one with a target, and `digest` identifies
    /// the new contents of the list. It is not published if the newest equal change in the log has the same digest and
    /// is not older than [`BusLimits::repeat_window`](crate::BusLimits::repeat_window), which is zero by default. With it, a
    /// change that several processes notice at the same time is announced once. After the window it is announced again:
    /// until a process notices the change, its clients get the old list.
    fn publish_list(&self, change: ServerChange, digest: ListDigest);

    /// Subscribes to every change published after this call returns. Changes from shortly before may be included.
    fn subscribe(&self) -> BusSubscription;

    /// Returns a position before every change that is published after this call returns.
    ///
    /// This is the newest change that this process has seen; others may have published newer ones.
    fn position(&self) -> Position;

    /// Returns the changes after a position, oldest first and at most `limit`.
    ///
    /// Returns `None` if the log no longer has all of them, or never had the position.
    fn after(
        &self,
        position: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Option<Vec<PositionedChange>>, StoreError>>;
}

/// The position of a change in the log of a [`ChangeBus`]. Later changes have higher positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// The position before the first change.
    pub const START: Self = Self(0);

    /// Creates the position with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number of the position.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A change and its position in the log.
pub type PositionedChange = (Position, ServerChange);

/// Identifies the contents of a list, for [`ChangeBus::publish_list`].
///
/// Processes with the same list compute the same digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListDigest([u8; 16]);

impl ListDigest {
    /// Creates a digest from its bytes, such as the first of a SHA-256 hash.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// A change that clients can subscribe to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerChange {
    /// The list of tools changed.
    ToolsChanged,
    /// The list of prompts changed.
    PromptsChanged,
    /// The list of resources changed.
    ResourcesChanged,
    /// The contents of a resource changed.
    ResourceUpdated {
        /// The URI of the resource.
        uri: Arc<str>,
    },
    /// A task changed.
    Task {
        /// The current record of the task.
        task: Arc<TaskRecord>,
    },
    /// A URL elicitation completed.
    ElicitationCompleted {
        /// The id of the elicitation.
        id: Arc<str>,
    },
    /// A change that only some clients are notified of.
    Targeted(Arc<TargetedChange>),
}

impl ServerChange {
    /// Returns the bytes that a change refers to, for the limit of a log.
    pub(crate) fn referenced_bytes(&self) -> usize {
        match self {
            Self::ToolsChanged | Self::PromptsChanged | Self::ResourcesChanged => 0,
            Self::ResourceUpdated { uri } => uri.len(),
            Self::Task { task } => task.content_bytes(),
            Self::ElicitationCompleted { id } => id.len(),
            Self::Targeted(targeted) => {
                targeted.target.referenced_bytes() + targeted.change.referenced_bytes()
            }
        }
    }
}

impl ChangeTarget {
    fn referenced_bytes(&self) -> usize {
        match self {
            Self::Everyone | Self::Session(_) => 0,
            Self::Principal(principal) | Self::Sessionless(principal) => {
                principal.as_ref().map_or(0, |principal| principal.len())
            }
        }
    }
}

/// A change, and the clients that are notified of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetedChange {
    /// The clients.
    pub target: ChangeTarget,
    /// The change.
    pub change: ServerChange,
}

/// The clients that are notified of a change, if they are subscribed to it.
///
/// A principal is a text that differs for each issuer, subject and client; `None` stands for clients without one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeTarget {
    /// All clients.
    Everyone,
    /// The client of a session, or of a connection that carries all of its requests, by a hash of its id.
    Session(u64),
    /// All clients of a principal.
    Principal(Option<Arc<str>>),
    /// The clients of a principal that have neither a session nor such a connection.
    Sessionless(Option<Arc<str>>),
}

/// A subscription to a [`ChangeBus`].
pub type BusSubscription = LogSubscription<PositionedChange>;
