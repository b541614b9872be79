//! What all parts of a store share.

use std::sync::Arc;

use turnbuckle_store::{StoreError, StoreLimits};

use crate::{
    connection::Connection,
    keys::Keys,
    log::{LogChannels, Publisher, TaskGuard},
    sealing::Sealer,
};

/// The connection, the keys and the tasks of a store. The tasks end with it.
pub(crate) struct Shared {
    pub(crate) connection: Arc<Connection>,
    pub(crate) keys: Keys,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) limits: StoreLimits,
    pub(crate) channels: Arc<LogChannels>,
    pub(crate) publisher: Arc<Publisher>,
    /// The name of this process in keys.
    pub(crate) process: String,
    pub(crate) _tasks: Vec<TaskGuard>,
}

impl Shared {
    /// Opens a sealed value.
    pub(crate) fn open(&self, sealed: &[u8], name: &str) -> Result<Vec<u8>, StoreError> {
        self.sealer
            .open(sealed, name)
            .map_err(StoreError::unavailable)
    }
}
