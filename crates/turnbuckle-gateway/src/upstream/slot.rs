//! The place of a connection: it is opened once for all of its callers, and again after it has ended.

use std::{
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use tokio::{sync::watch, task::AbortHandle, time::Instant};
use turnbuckle_protocol::{RpcError, types::Implementation};
use turnbuckle_server::{middleware::SessionKey, relay::ChangeTarget};

use crate::{
    calls::running::RunningCall,
    convert::ListKind,
    errors, lock,
    upstream::{
        UpstreamCaller, UpstreamServer,
        connection::{Connection, ConnectionSettings},
        health::Backoff,
        interest::Interest,
        session_client::SessionClient,
    },
};

/// The outcome of opening a connection.
pub(super) type Opened = Result<Arc<Connection>, RpcError>;

/// The place of a connection.
pub(super) struct Slot {
    settings: ConnectionSettings,
    /// The principal that the connection counts against.
    pub(super) owner: Option<Arc<str>>,
    /// Whether the connection is kept for further requests. Otherwise it ends with the call that uses it.
    is_kept: bool,
    interest: Arc<Interest>,
    state: Mutex<SlotState>,
}

struct SlotState {
    connection: Option<Arc<Connection>>,
    /// The connection if it is not kept.
    borrowed: Weak<Connection>,
    start: Option<Start>,
    backoff: Backoff,
    /// The time of the last start.
    used: Instant,
    is_removed: bool,
}

/// Who uses the connection of a slot.
pub(super) struct SlotUsers<'a> {
    /// Whether callers share it.
    pub(super) is_shared: bool,
    /// The client, if it is the connection of one session.
    pub(super) session_client: Option<&'a Arc<SessionClient>>,
    /// The clients that get what the server announces.
    pub(super) change_target: Option<&'a ChangeTarget>,
}

/// A connection that is being opened, in a task of its own: it does not end with the caller that came first.
struct Start {
    outcome: watch::Receiver<Option<Opened>>,
    task: AbortHandle,
}

/// The reason that a slot returned no connection.
pub(super) enum SlotError {
    /// The slot was removed while the connection was opened.
    Removed,
    /// The connection could not be opened.
    Failed(RpcError),
}

impl Slot {
    pub(super) fn new(
        settings: ConnectionSettings,
        owner: Option<Arc<str>>,
        is_kept: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings,
            owner,
            is_kept,
            interest: Arc::default(),
            state: Mutex::new(SlotState {
                connection: None,
                borrowed: Weak::new(),
                start: None,
                backoff: Backoff::default(),
                used: Instant::now(),
                is_removed: false,
            }),
        })
    }

    /// Takes over the token of the caller of a request.
    pub(super) fn renew_token(&self, later: &UpstreamCaller) {
        if let Some(caller) = &self.settings.caller {
            caller.renew(later);
        }
    }

    /// Lets the next request of a caller try again at once.
    pub(super) fn forget_failures(&self, of: &UpstreamCaller) {
        let caller = self.settings.caller.as_ref();
        if caller.is_some_and(|caller| caller.is_same_user(of)) {
            let mut state = self.state();
            state.backoff = Backoff::default();
            if let Some(open) = state.open() {
                let lists = open.lists();
                ListKind::ALL
                    .iter()
                    .for_each(|kind| lists.invalidate(*kind));
            }
        }
    }

    /// Returns the open connection, or opens one. `opener` gets the requests that the server sends while it is opened.
    pub(super) async fn connection(
        self: &Arc<Self>,
        opener: Option<&Arc<RunningCall>>,
    ) -> Result<Arc<Connection>, SlotError> {
        let mut outcome = {
            let mut state = self.state();
            if state.is_removed {
                return Err(SlotError::Removed);
            }
            if let Some(open) = state.open() {
                open.note_use();
                return Ok(open);
            }
            match &state.start {
                Some(start) => start.outcome.clone(),
                None => self.start(&mut state, opener).map_err(SlotError::Failed)?,
            }
        };
        // Fails if the start was aborted, because the slot was removed.
        let outcome = outcome.wait_for(Option::is_some).await;
        let outcome = outcome.ok().and_then(|outcome| outcome.clone());
        let opened = outcome.ok_or(SlotError::Removed)?;
        opened.map_err(SlotError::Failed)
    }

    /// Starts to open a connection, unless it is too early for another attempt.
    fn start(
        self: &Arc<Self>,
        state: &mut SlotState,
        opener: Option<&Arc<RunningCall>>,
    ) -> Result<watch::Receiver<Option<Opened>>, RpcError> {
        let server = &self.settings.server;
        if let Some(error) = server.rejects_attempt() {
            return Err(error);
        }
        let delay = (state.backoff.next_attempt()).map_err(|reason| server.down_error(&reason))?;
        let ended = state.connection.take();
        let (sender, outcome) = watch::channel(None);
        let (slot, opener) = (Arc::clone(self), opener.cloned());
        let task = tokio::spawn(async move {
            if let Some(ended) = ended.filter(|ended| !ended.is_busy()) {
                ended.close_in_background();
            }
            let opened = slot.open(delay, opener).await;
            // Holds the connection until the callers have it, if nothing else does.
            sender.send_replace(Some(opened));
        });
        state.used = Instant::now();
        state.start = Some(Start {
            outcome: outcome.clone(),
            task: task.abort_handle(),
        });
        Ok(outcome)
    }

    async fn open(self: &Arc<Self>, delay: Duration, opener: Option<Arc<RunningCall>>) -> Opened {
        tokio::time::sleep(delay).await;
        let server = &self.settings.server;
        let began = Instant::now();
        let is_restart = lock(&self.state).backoff.has_died();
        let opened = Connection::open(self.settings.clone(), opener).await;
        if let Ok(connection) = &opened {
            if is_restart {
                server.counters.restarts.increment();
            }
            connection.set_slot(self);
            connection.restore().await;
        }
        let mut state = self.state();
        state.start = None;
        match opened {
            Ok(connection) => {
                self.keep(&mut state, &connection);
                drop(state);
                if is_restart && let Some(events) = self.settings.events.upgrade() {
                    let target = self.settings.change_target.as_ref();
                    ListKind::ALL
                        .into_iter()
                        .for_each(|kind| events.list_changed(server, kind, false, target));
                }
                Ok(connection)
            }
            Err(error) => {
                let reason = errors::connect_reason(&error);
                if reason == errors::LOGIN_REQUIRED && server.settings.caller_logins.is_some() {
                    tracing::debug!(server = server.name(), %error, "a caller has to log in");
                } else {
                    tracing::warn!(server = server.name(), %error, "a server cannot be reached");
                }
                if !server.failed(&reason, began) {
                    state.backoff.failed(began, &reason);
                }
                Err(server.down_error(&reason))
            }
        }
    }

    /// Uses a connection that was opened elsewhere, unless there is one. Returns whether it is used.
    pub(super) fn try_adopt(self: &Arc<Self>, connection: &Arc<Connection>) -> bool {
        let mut state = self.state();
        if state.is_removed || state.start.is_some() || state.open().is_some() {
            return false;
        }
        self.keep(&mut state, connection);
        true
    }

    fn keep(self: &Arc<Self>, state: &mut SlotState, connection: &Arc<Connection>) {
        connection.set_slot(self);
        connection.note_use();
        state.backoff.connected();
        if self.is_kept {
            state.connection = Some(Arc::clone(connection));
        } else {
            state.borrowed = Arc::downgrade(connection);
        }
    }

    /// Records that the connection has ended by itself.
    pub(super) fn connection_died(&self, reason: &str) {
        let mut state = self.state();
        state.backoff.died(reason);
        let exhausted = state.backoff.is_exhausted().then_some(&state.backoff);
        self.settings.server.disconnected(exhausted);
    }

    /// The name under which the client is introduced to the server.
    pub(super) fn client_info(&self) -> &Implementation {
        &self.settings.client_info
    }

    /// Returns the users of the connection.
    pub(super) fn users(&self) -> SlotUsers<'_> {
        let settings = &self.settings;
        SlotUsers {
            is_shared: settings.is_shared,
            session_client: settings.session_client.as_ref(),
            change_target: settings.change_target.as_ref(),
        }
    }

    /// The subscriptions and log levels of the callers.
    pub(super) fn interest(&self) -> &Arc<Interest> {
        &self.interest
    }

    /// Returns the open connection, if it is kept.
    pub(super) fn kept_connection(&self) -> Option<Arc<Connection>> {
        self.state().open().filter(|_| self.is_kept)
    }

    pub(super) fn server(&self) -> &UpstreamServer {
        &self.settings.server
    }

    /// A session has ended: its subscriptions and its log level do not count anymore.
    pub(super) fn forget_session(&self, session: SessionKey) {
        self.interest.forget_session(session);
        let open = self.state().open();
        match open {
            Some(open) => open.forget_log_level(session),
            // The next connection gets the level of the others.
            None => drop(self.interest.log_levels().remove_session(session)),
        }
    }

    /// Returns whether a connection is open or being opened.
    pub(super) fn is_occupied(&self) -> bool {
        let state = self.state();
        state.open().is_some() || state.start.is_some()
    }

    /// Returns whether a connection that clients wait for has ended, so that it has to be opened without a request.
    pub(super) fn needs_reopening(&self) -> bool {
        let is_occupied = self.is_occupied();
        self.is_kept && !is_occupied && self.interest.is_any()
    }

    /// Returns for how long the slot has not been used; `None` if it is in use, or a client waits for changes.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        let state = self.state();
        let is_awaited = self.is_kept && self.interest.is_any();
        if state.start.is_some() || is_awaited {
            return None;
        }
        match state.open() {
            Some(open) => open.unused_time(),
            None => Some(state.used.elapsed()),
        }
    }

    /// Returns whether no call has used the slot for some time, even if clients wait for changes.
    pub(super) fn is_unused_for(&self, time: Duration) -> bool {
        let state = self.state();
        let unused = match (&state.start, state.open()) {
            (Some(_), _) => None,
            (None, Some(open)) => open.unused_time(),
            (None, None) => Some(state.used.elapsed()),
        };
        unused.is_some_and(|unused| unused >= time)
    }

    /// Makes the slot unusable, and returns its connection.
    pub(super) fn remove(&self) -> Option<Arc<Connection>> {
        let mut state = self.state();
        state.is_removed = true;
        if let Some(start) = state.start.take() {
            start.task.abort();
        }
        let borrowed = state.borrowed.upgrade();
        state.connection.take().or(borrowed)
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        lock(&self.state)
    }
}

impl SlotState {
    fn open(&self) -> Option<Arc<Connection>> {
        let connection = self.connection.clone();
        let connection = connection.or_else(|| self.borrowed.upgrade());
        connection.filter(|connection| connection.is_open())
    }
}
