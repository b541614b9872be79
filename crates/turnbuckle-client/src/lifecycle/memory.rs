//! Which era a server was of when it was last asked.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::Era;

/// Remembers the eras of servers, so that the next connection need not find out again.
///
/// Share one between clients by cloning it. It is a hint: a server that turns out otherwise is asked anew.
#[derive(Clone, Default)]
pub struct EraMemory(Arc<Mutex<HashMap<String, Era>>>);

impl EraMemory {
    /// Remembers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the era of a server.
    ///
    /// A server is named by its origin (`https://example.com`), or by its command.
    pub fn get(&self, server: &str) -> Option<Era> {
        self.lock().get(server).copied()
    }

    /// Remembers the era of a server.
    pub fn set(&self, server: impl Into<String>, era: Era) {
        self.lock().insert(server.into(), era);
    }

    /// Forgets a server.
    pub fn forget(&self, server: &str) {
        self.lock().remove(server);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Era>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows no names: a command may have a secret among its arguments.
impl fmt::Debug for EraMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EraMemory")
            .field("servers", &self.lock().len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_never_shown() {
        let memory = EraMemory::new();
        memory.set("weather-server --key sesame", Era::Modern);

        assert!(!format!("{memory:?}").contains("sesame"));
    }
}
