//! Logins of callers with accounts of their own at a server.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::watch;
use turnbuckle_server::middleware::SessionKey;

use super::UpstreamCaller;
use crate::{calls::url_elicitation, lock};

/// Maximum number of sessions that are notified of the completion of a login.
const MAX_SESSIONS: usize = 16;

/// Lets callers log in to a server in a browser. [`Upstream::caller_logins`](crate::Upstream::caller_logins) installs it.
///
/// The page of a login has to make sure that the user in the browser is the caller. The gateway shows its URL
/// only to the caller.
pub trait CallerLogins: Send + Sync + 'static {
    /// Returns the login that the caller has to complete, and starts one if there is none. `None` if the caller cannot log
    /// in now, for example because it has too many open logins.
    fn begin_login(&self, caller: &UpstreamCaller) -> Option<CallerLogin>;

    /// Returns the login that the caller has started and not completed.
    fn open_login(&self, caller: &UpstreamCaller) -> Option<CallerLogin>;
}

/// A login that a caller has to complete in a browser. Clones are the same login.
#[derive(Clone)]
pub struct CallerLogin {
    url: Arc<str>,
    elicitation: Arc<LoginElicitation>,
    completed: watch::Receiver<bool>,
}

/// What clients know about a login.
struct LoginElicitation {
    id: String,
    sessions: Mutex<Vec<SessionKey>>,
    is_watched: AtomicBool,
}

impl CallerLogin {
    /// Creates a login at a URL. It is open until the other value is used or dropped.
    pub fn new(url: impl Into<Arc<str>>) -> (Self, LoginCompletion) {
        let (sender, completed) = watch::channel(false);
        let login = Self {
            url: url.into(),
            elicitation: Arc::new(LoginElicitation {
                id: url_elicitation::new_id(),
                sessions: Mutex::default(),
                is_watched: AtomicBool::new(false),
            }),
            completed,
        };
        (login, LoginCompletion(sender))
    }

    /// The URL that the user has to open.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits for the end of the login. Returns whether the caller is logged in.
    pub async fn ended(&self) -> bool {
        let mut completed = self.completed.clone();
        completed.wait_for(|completed| *completed).await.is_ok()
    }

    /// The id of the URL elicitation for sessions.
    pub(crate) fn elicitation_id(&self) -> &str {
        &self.elicitation.id
    }

    /// A session has to be notified of the completion.
    pub(crate) fn add_session(&self, session: SessionKey) {
        let mut sessions = lock(&self.elicitation.sessions);
        if sessions.len() < MAX_SESSIONS && !sessions.contains(&session) {
            sessions.push(session);
        }
    }

    /// Returns the sessions that have to be notified.
    pub(crate) fn sessions(&self) -> Vec<SessionKey> {
        lock(&self.elicitation.sessions).clone()
    }

    /// Returns `true` the first time.
    pub(crate) fn begin_watch(&self) -> bool {
        !self.elicitation.is_watched.swap(true, Ordering::Relaxed)
    }
}

/// Shows no URL, which only the caller may know.
impl fmt::Debug for CallerLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerLogin").finish_non_exhaustive()
    }
}

/// Ends a [`CallerLogin`]. Without [`complete`](Self::complete), dropping it ends the login without success.
#[derive(Debug)]
pub struct LoginCompletion(watch::Sender<bool>);

impl LoginCompletion {
    /// The caller is logged in.
    pub fn complete(self) {
        self.0.send_replace(true);
    }
}
