//! An upstream server: its settings and its state.

pub(crate) mod connection;
pub(crate) mod list_cache;
pub(crate) mod pool;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::time::Instant;
use turnbuckle_client::{LifecycleMode, ServerInfo, Target, Timeouts};

use crate::{StartError, lifecycle::is_stateless_server, policy::Policy};

/// Callers that share one connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// A modern server: all callers. A legacy server: one connection per session of a legacy client, and per principal
    /// of modern clients.
    #[default]
    Auto,
    /// All callers. A legacy server then cannot send client requests.
    All,
    /// The requests of one principal.
    Principal,
    /// The requests of one session, or of one connection without sessions.
    Session,
    /// One connection per call.
    Call,
}

/// The state of an upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamState {
    /// Not connected yet.
    Starting,
    /// The last connection succeeded.
    Up,
    /// The last connection failed.
    Down,
}

impl fmt::Display for UpstreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Down => "down",
        })
    }
}

/// The status of an upstream server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// The name of the server.
    pub name: String,
    /// Whether it can be reached.
    pub state: UpstreamState,
    /// Whether the gateway is ready only if this server is up.
    pub required: bool,
    /// The negotiated revision, after the first connection.
    pub revision: Option<String>,
    /// The class of the last failure.
    pub reason: Option<String>,
}

/// Creates the target of each connection.
type TargetFactory = Arc<dyn Fn() -> Target + Send + Sync>;

/// An upstream server.
///
/// ```
/// use turnbuckle_client::stdio::ServerCommand;
/// use turnbuckle_gateway::{Sharing, Upstream};
///
/// let files = Upstream::new("files", || ServerCommand::new("file-server").into())
///     .sharing(Sharing::Session)
///     .deny(["delete_*"]);
/// ```
#[derive(Clone)]
pub struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) target: TargetFactory,
    pub(crate) sharing: Sharing,
    pub(crate) required: bool,
    pub(crate) timeouts: Timeouts,
    pub(crate) lifecycle_mode: LifecycleMode,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) scopes: Vec<(String, String)>,
}

impl Upstream {
    /// Creates an upstream server. `target` creates the target of each new connection.
    pub fn new(
        name: impl Into<String>,
        target: impl Fn() -> Target + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into().into(),
            target: Arc::new(target),
            sharing: Sharing::Auto,
            required: false,
            timeouts: Timeouts::default(),
            lifecycle_mode: LifecycleMode::Auto,
            allow: Vec::new(),
            deny: Vec::new(),
            scopes: Vec::new(),
        }
    }

    /// Sets which callers share a connection.
    #[must_use]
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.sharing = sharing;
        self
    }

    /// Makes the gateway ready only if this server is up. `false` by default.
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Lists and calls only what one of these patterns matches: names of tools and prompts, URIs of resources. `*`
    /// matches any characters. Everything by default.
    #[must_use]
    pub fn allow<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.allow.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Hides and rejects what one of these patterns matches, even if it is allowed.
    #[must_use]
    pub fn deny<S: Into<String>>(mut self, globs: impl IntoIterator<Item = S>) -> Self {
        self.deny.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Requires a scope of the callers of what matches a pattern: names of tools and prompts, URIs of resources. A caller
    /// without it gets a challenge with status 403. Lists are the same for all callers.
    ///
    /// The gateway starts only with [`Gateway::authenticated_callers`](crate::Gateway::authenticated_callers).
    #[must_use]
    pub fn scope(mut self, glob: impl Into<String>, scope: impl Into<String>) -> Self {
        self.scopes.push((glob.into(), scope.into()));
        self
    }

    /// Sets the timeouts of relayed requests. One minute without progress and ten minutes in total by default.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the lifecycle to use with the server. Detected by default.
    #[must_use]
    pub fn lifecycle_mode(mut self, mode: LifecycleMode) -> Self {
        self.lifecycle_mode = mode;
        self
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("name", &self.name)
            .field("sharing", &self.sharing)
            .finish_non_exhaustive()
    }
}

/// The first delay after a failed connection; it doubles with every failure.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// An upstream server that the gateway uses.
pub(crate) struct UpstreamServer {
    /// The position in the configuration.
    pub(crate) index: usize,
    pub(crate) settings: Upstream,
    pub(crate) policy: Policy,
    /// What the server said about itself in the last handshake.
    pub(crate) info: ArcSwapOption<ServerInfo>,
    health: Mutex<UpstreamHealth>,
}

struct UpstreamHealth {
    state: UpstreamState,
    reason: Option<String>,
    failures: u32,
    retry_at: Option<Instant>,
}

impl UpstreamServer {
    pub(crate) fn new(index: usize, settings: Upstream) -> Result<Self, StartError> {
        Ok(Self {
            index,
            policy: Policy::new(&settings)?,
            settings,
            info: ArcSwapOption::empty(),
            health: Mutex::new(UpstreamHealth {
                state: UpstreamState::Starting,
                reason: None,
                failures: 0,
                retry_at: None,
            }),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns whether the server is known to keep no session.
    pub(crate) fn is_stateless(&self) -> bool {
        let info = self.info.load();
        info.as_ref().is_some_and(|info| is_stateless_server(info))
    }

    pub(crate) fn status(&self) -> UpstreamStatus {
        let health = self.health();
        UpstreamStatus {
            name: self.name().to_owned(),
            state: health.state,
            required: self.settings.required,
            revision: self
                .info
                .load()
                .as_ref()
                .map(|info| info.revision.to_string()),
            reason: health.reason.clone(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.health().state == UpstreamState::Up
    }

    /// Returns the reason of the last failure if it is too early for another attempt.
    pub(crate) fn retry_later(&self) -> Option<String> {
        let health = self.health();
        let early = health.retry_at.is_some_and(|at| Instant::now() < at);
        early.then(|| health.reason.clone().unwrap_or_default())
    }

    pub(crate) fn connected(&self, info: Arc<ServerInfo>) {
        self.info.store(Some(info));
        let mut health = self.health();
        health.state = UpstreamState::Up;
        health.reason = None;
        health.failures = 0;
        health.retry_at = None;
    }

    /// Records a failed connection, or the death of one.
    pub(crate) fn failed(&self, reason: String) {
        let mut health = self.health();
        let delay = FIRST_RETRY_DELAY * 2_u32.saturating_pow(health.failures.min(10));
        health.state = UpstreamState::Down;
        health.reason = Some(reason);
        health.failures += 1;
        health.retry_at = Some(Instant::now() + delay.min(MAX_RETRY_DELAY));
    }

    fn health(&self) -> std::sync::MutexGuard<'_, UpstreamHealth> {
        // No code under this lock leaves an invalid value.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
