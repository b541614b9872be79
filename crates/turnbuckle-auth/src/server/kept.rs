//! Documents of an issuer, kept for a while and fetched anew when needed, but never often.

use std::sync::{Arc, PoisonError, RwLock};

use super::clock::Clock;

/// From this age on it is renewed, while it is still used.
const RENEWED_AFTER: u64 = 5 * 60;
/// From this age on nobody uses it before a try to renew it.
const OLD_AFTER: u64 = 15 * 60;
/// From this age on it is not used, even if there is nothing newer.
const DEAD_AFTER: u64 = 24 * 60 * 60;
/// No two tries within this time, whatever tokens name: otherwise anybody could have us flood the issuer.
const BETWEEN_TRIES: u64 = 30;
/// The same, as long as there is nothing at all.
const BETWEEN_FIRST_TRIES: u64 = 5;

/// One document.
pub(super) struct Kept<T> {
    state: RwLock<State<T>>,
    /// Held by whoever fetches: one at a time.
    gate: Arc<tokio::sync::Mutex<()>>,
}

struct State<T> {
    value: Option<Arc<T>>,
    fetched: u64,
    tried: Option<u64>,
}

impl<T: Send + Sync + 'static> Kept<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: RwLock::new(State {
                value: None,
                fetched: 0,
                tried: None,
            }),
            gate: Arc::default(),
        })
    }

    /// Returns the document, fetched anew if it is old or not `enough`.
    ///
    /// If that fails or would be too often, what there is; nothing, if there is nothing that can still be used.
    pub(super) async fn get<F>(
        self: &Arc<Self>,
        clock: &Clock,
        is_enough: impl Fn(&T) -> bool,
        load: impl FnOnce() -> F,
    ) -> Option<Arc<T>>
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        let (value, age) = self.current(clock.now());
        let is_usable = value.as_deref().is_some_and(is_enough) && age < OLD_AFTER;
        if is_usable && age < RENEWED_AFTER {
            return value;
        }
        let gate = Arc::clone(&self.gate);
        let gate = match is_usable {
            false => gate.lock_owned().await,
            true => match gate.try_lock_owned() {
                Ok(gate) => gate,
                Err(_) => return value,
            },
        };
        if !self.begin(clock.now()) {
            return self.current(clock.now()).0;
        }
        let (kept, clock_of_task, loading) = (Arc::clone(self), clock.clone(), load());
        // A task of its own: a caller who goes away early must not stop what others wait for.
        let task = tokio::spawn(async move {
            if let Some(value) = loading.await {
                kept.keep(value, clock_of_task.now());
            }
            drop(gate);
        });
        if is_usable {
            return value;
        }
        let _ = task.await;
        self.current(clock.now()).0
    }

    fn current(&self, now: u64) -> (Option<Arc<T>>, u64) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let age = now.saturating_sub(state.fetched);
        (state.value.clone().filter(|_| age < DEAD_AFTER), age)
    }

    /// Says whether it is time for a try, and notes it.
    fn begin(&self, now: u64) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let between = match state.value {
            Some(_) => BETWEEN_TRIES,
            None => BETWEEN_FIRST_TRIES,
        };
        // A clock that was set back must not stop us for as long.
        let is_time = state
            .tried
            .is_none_or(|tried| now < tried || now >= tried + between);
        if is_time {
            state.tried = Some(now);
        }
        is_time
    }

    fn keep(&self, value: T, now: u64) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.value = Some(Arc::new(value));
        state.fetched = now;
    }
}
