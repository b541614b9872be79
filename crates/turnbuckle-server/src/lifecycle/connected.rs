//! What the requests of one connection share.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use turnbuckle_protocol::{RpcError, json};
use turnbuckle_store::{ClientProfile, SessionId};

use crate::ending::Ending;

/// A connection on which all requests of one client come, as far as the requests care.
#[derive(Default)]
pub(crate) struct Connected {
    closing: Ending,
    last_client: LastClient,
    id: OnceLock<SessionId>,
}

impl Connected {
    /// The name of the connection, which no other has.
    pub(crate) fn id(&self) -> SessionId {
        *self
            .id
            .get_or_init(|| SessionId::generate().expect("the operating system gives random bytes"))
    }

    /// The connection ends: whatever lasts as long as it does ends too.
    pub(crate) fn close(&self) {
        self.closing.end();
    }

    /// Says whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closing.is_over()
    }

    /// Resolves when the connection ends.
    pub(crate) async fn closed(&self) {
        self.closing.over().await;
    }

    /// The client that a request describes.
    pub(super) fn client(
        &self,
        description: Description<'_>,
    ) -> Result<Arc<ClientProfile>, RpcError> {
        self.last_client.get_or_read(description)
    }
}

/// What a request says about its client, as JSON text.
#[derive(Clone, Copy)]
pub(super) struct Description<'a> {
    pub(super) info: Option<&'a str>,
    pub(super) capabilities: &'a str,
}

impl Description<'_> {
    /// Reads it.
    pub(super) fn read(self) -> Result<Arc<ClientProfile>, RpcError> {
        let info = self.info.map(json::from_str).transpose();
        let capabilities = json::from_str(self.capabilities);
        Ok(Arc::new(ClientProfile {
            info: info.map_err(|error| error.within("clientInfo"))?,
            capabilities: capabilities.map_err(|error| error.within("clientCapabilities"))?,
        }))
    }
}

/// Descriptions beyond this size are read each time, so that an idle connection stays small.
const REMEMBERED: usize = 4 * 1024;

/// The last description that was read. A client says the same with every request: what is equal byte by byte is not
/// read twice.
#[derive(Default)]
struct LastClient(Mutex<Option<Known>>);

struct Known {
    info: Option<Box<str>>,
    capabilities: Box<str>,
    client: Arc<ClientProfile>,
}

impl LastClient {
    fn get_or_read(&self, said: Description<'_>) -> Result<Arc<ClientProfile>, RpcError> {
        if let Some(known) = &*self.lock()
            && known.info.as_deref() == said.info
            && *known.capabilities == *said.capabilities
        {
            return Ok(known.client.clone());
        }
        // Without the lock: requests that come side by side on one connection do not wait for each other's reading.
        let client = said.read()?;
        if said.info.map_or(0, str::len) + said.capabilities.len() <= REMEMBERED {
            let known = Known {
                info: said.info.map(Into::into),
                capabilities: said.capabilities.into(),
                client: client.clone(),
            };
            // What was known before is dropped after the lock is given back.
            let _before = self.lock().replace(known);
        }
        Ok(client)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Known>> {
        // A panic while the lock is held leaves a valid value behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_description_is_read_once_and_another_one_anew() {
        let connected = Connected::default();
        let said = |info, capabilities| {
            let description = Description { info, capabilities };
            connected.client(description).expect("a good description")
        };
        let ada = r#"{"name":"ada","version":"1"}"#;

        let first = said(Some(ada), "{}");
        assert!(Arc::ptr_eq(&first, &said(Some(ada), "{}")));
        assert!(said(None, "{}").info.is_none());
        assert!(
            said(Some(ada), r#"{"roots":{}}"#)
                .capabilities
                .roots
                .is_some()
        );
        assert!(said(Some(ada), "{}").capabilities.roots.is_none());
    }

    #[test]
    fn what_cannot_be_read_is_not_remembered() {
        let connected = Connected::default();
        let bad = Description {
            info: None,
            capabilities: "7",
        };

        assert!(connected.client(bad).is_err());
        assert!(connected.client(bad).is_err());
    }
}
