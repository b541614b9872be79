//! Which sessions are in use, on all listeners of a server together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use turnbuckle_store::SessionId;

/// A part of this process that uses sessions of the store.
pub(crate) trait SessionUser: Send + Sync {
    /// Returns whether a request of the session runs here, or one of its streams is read here.
    fn is_using(&self, session: &SessionId) -> bool;

    /// Drops what is held here for a session that is over.
    fn close(&self, session: &SessionId);
}

/// All users of the sessions of a server.
#[derive(Default)]
pub(crate) struct SessionUsers {
    users: Mutex<Vec<Weak<dyn SessionUser>>>,
}

impl SessionUsers {
    /// Adds a user, for as long as it lives.
    pub(crate) fn add(&self, user: Weak<dyn SessionUser>) {
        let mut users = self.lock();
        users.retain(|user| user.strong_count() > 0);
        users.push(user);
    }

    /// The users that are alive. They are asked without a lock.
    pub(crate) fn all(&self) -> Vec<Arc<dyn SessionUser>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn SessionUser>>> {
        // Nothing that runs under this lock stops halfway, so a poisoned one holds a sound value.
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
