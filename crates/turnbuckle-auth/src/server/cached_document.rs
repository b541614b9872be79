//! Documents of an issuer, cached and refreshed at a limited rate.

use std::sync::{Arc, RwLock};

use super::Clock;
use crate::{
    AuthorizationServer,
    fetch::{Fetch, FetchRequest},
    sync::{read, write},
    well_known,
};

/// Age from which a document is refreshed in the background.
const REFRESH_AFTER_SECONDS: u64 = 5 * 60;
/// Age from which a request waits for a refresh.
const STALE_AFTER_SECONDS: u64 = 15 * 60;
/// Age from which a document is not used any more, even if it cannot be refreshed.
const EXPIRE_AFTER_SECONDS: u64 = 24 * 60 * 60;
/// Minimum time between two fetches, so that tokens with unknown key ids cannot make us flood the issuer.
const RETRY_INTERVAL_SECONDS: u64 = 30;
/// Minimum time between two fetches before the first document.
const FIRST_FETCH_RETRY_INTERVAL_SECONDS: u64 = 5;

/// One cached document.
pub(super) struct CachedDocument<T> {
    state: RwLock<DocumentState<T>>,
    /// Held during a fetch: one at a time.
    fetch_lock: Arc<tokio::sync::Mutex<()>>,
}

struct DocumentState<T> {
    value: Option<Arc<T>>,
    fetched_at: u64,
    attempted_at: Option<u64>,
}

impl<T: Send + Sync + 'static> CachedDocument<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: RwLock::new(DocumentState {
                value: None,
                fetched_at: 0,
                attempted_at: None,
            }),
            fetch_lock: Arc::default(),
        })
    }

    /// Returns the document; fetches it first if it is stale or not sufficient.
    ///
    /// Returns the cached document if the fetch fails or would be too early, and `None` if it has expired.
    pub(super) async fn get<F>(
        self: &Arc<Self>,
        clock: &Clock,
        is_sufficient: impl Fn(&T) -> bool,
        load: impl FnOnce() -> F,
    ) -> Option<Arc<T>>
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        let (value, age) = self.current(clock.now());
        let is_usable = value.as_deref().is_some_and(is_sufficient) && age < STALE_AFTER_SECONDS;
        if is_usable && age < REFRESH_AFTER_SECONDS {
            return value;
        }
        let fetch_lock = Arc::clone(&self.fetch_lock);
        let fetch_lock = if is_usable {
            match fetch_lock.try_lock_owned() {
                Ok(fetch_lock) => fetch_lock,
                Err(_) => return value,
            }
        } else {
            fetch_lock.lock_owned().await
        };
        if !self.start_attempt(clock.now()) {
            return self.current(clock.now()).0;
        }
        let (document, clock_of_task, loading) = (Arc::clone(self), clock.clone(), load());
        // A separate task, so that a cancelled caller does not cancel the fetch that others wait for.
        let task = tokio::spawn(async move {
            if let Some(value) = loading.await {
                document.store(value, clock_of_task.now());
            }
            drop(fetch_lock);
        });
        if is_usable {
            return value;
        }
        let _ = task.await;
        self.current(clock.now()).0
    }

    fn current(&self, now: u64) -> (Option<Arc<T>>, u64) {
        let state = read(&self.state);
        let age = now.saturating_sub(state.fetched_at);
        (
            state.value.clone().filter(|_| age < EXPIRE_AFTER_SECONDS),
            age,
        )
    }

    /// Returns whether a fetch is due, and records it as started.
    fn start_attempt(&self, now: u64) -> bool {
        let mut state = write(&self.state);
        let interval = match state.value {
            Some(_) => RETRY_INTERVAL_SECONDS,
            None => FIRST_FETCH_RETRY_INTERVAL_SECONDS,
        };
        // A clock that was set back must not block fetches.
        let is_due = state
            .attempted_at
            .is_none_or(|attempted_at| now < attempted_at || now >= attempted_at + interval);
        if is_due {
            state.attempted_at = Some(now);
        }
        is_due
    }

    fn store(&self, value: T, now: u64) {
        let mut state = write(&self.state);
        state.value = Some(Arc::new(value));
        state.fetched_at = now;
    }
}

/// Fetches the metadata of an issuer from the first well-known URL with a valid document. Returns its bytes and the
/// parsed document.
pub(super) async fn fetch_issuer_metadata(
    fetch: &dyn Fetch,
    issuer: &str,
) -> Result<(Vec<u8>, AuthorizationServer), String> {
    let mut reason = "not a valid issuer URL".to_owned();
    for url in well_known::authorization_server(issuer) {
        match fetch_document(fetch, &url).await {
            Ok(body) => match AuthorizationServer::parse(&body, issuer) {
                Ok(metadata) => return Ok((body, metadata)),
                Err(error) => reason = format!("{url}: {error}"),
            },
            Err(error) => reason = error,
        }
    }
    Err(reason)
}

/// Fetches a document.
pub(super) async fn fetch_document(fetch: &dyn Fetch, url: &str) -> Result<Vec<u8>, String> {
    match fetch.fetch(FetchRequest::get(url)).await {
        Ok(response) if response.is_success() => Ok(response.body),
        Ok(response) => Err(format!("{url}: status {}", response.status)),
        Err(error) => Err(format!("{url}: {error}")),
    }
}
