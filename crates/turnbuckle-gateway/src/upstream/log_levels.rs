//! The log levels that the users of a connection to a legacy server want: the server gets the most verbose one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use turnbuckle_client::relay::RelayCallId;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::middleware::SessionKey;

use crate::lock;

/// Who wants log messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LogUser {
    /// The session of a legacy client. `None` stands for clients without sessions.
    Session(Option<SessionKey>),
    /// A call of a modern client.
    Call(RelayCallId),
}

/// The log levels of the users of a connection.
#[derive(Default)]
pub(crate) struct LogLevels(Mutex<LevelTable>);

#[derive(Default)]
struct LevelTable {
    users: HashMap<LogUser, LogLevel>,
    /// The level that the server has.
    sent: Option<LogLevel>,
}

/// Keeps the level of a call until it is dropped. The server keeps its level until another one is needed.
pub(super) struct CallLevelGuard {
    levels: Arc<LogLevels>,
    call: RelayCallId,
}

impl Drop for CallLevelGuard {
    fn drop(&mut self) {
        lock(&self.levels.0).users.remove(&LogUser::Call(self.call));
    }
}

impl LogLevels {
    /// Sets the level of a user. Returns the level that the server has to get, if it changes.
    pub(super) fn set(&self, user: LogUser, level: LogLevel) -> Option<LogLevel> {
        let mut table = lock(&self.0);
        table.users.insert(user, level);
        table.level_to_send()
    }

    /// Sets the level of a call, as [`set`](Self::set).
    pub(super) fn set_of_call(
        self: &Arc<Self>,
        call: RelayCallId,
        level: LogLevel,
    ) -> (CallLevelGuard, Option<LogLevel>) {
        let to_send = self.set(LogUser::Call(call), level);
        let levels = Arc::clone(self);
        (CallLevelGuard { levels, call }, to_send)
    }

    /// Forgets a session. Returns the level that the server has to get, if it changes.
    pub(super) fn remove_session(&self, session: SessionKey) -> Option<LogLevel> {
        let mut table = lock(&self.0);
        table.users.remove(&LogUser::Session(Some(session)))?;
        table.level_to_send()
    }

    /// Returns the level for a new connection.
    pub(super) fn restored(&self) -> Option<LogLevel> {
        let mut table = lock(&self.0);
        table.sent = None;
        table.level_to_send()
    }
}

impl LevelTable {
    fn level_to_send(&mut self) -> Option<LogLevel> {
        let most_verbose = self.users.values().min().copied()?;
        (self.sent.replace(most_verbose) != Some(most_verbose)).then_some(most_verbose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_gets_the_most_verbose_level() {
        let levels = LogLevels::default();
        let user = LogUser::Session(None);
        assert_eq!(levels.set(user, LogLevel::Warning), Some(LogLevel::Warning));
        assert_eq!(levels.set(user, LogLevel::Warning), None);
        assert_eq!(levels.set(user, LogLevel::Debug), Some(LogLevel::Debug));
        assert_eq!(levels.set(user, LogLevel::Error), Some(LogLevel::Error));
        assert_eq!(levels.restored(), Some(LogLevel::Error));
    }
}
