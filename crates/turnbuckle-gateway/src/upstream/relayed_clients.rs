//! The clients of requests to a modern server, as prepared text.

use std::sync::Mutex;

use turnbuckle_client::relay::RelayedClient;
use turnbuckle_protocol::types::{ClientCapabilities, Implementation};

use crate::lock;

/// Maximum number of clients that are kept.
const MAX_CLIENTS: usize = 16;

/// The clients of the last requests on a connection.
#[derive(Default)]
pub(crate) struct RelayedClients(Mutex<Vec<KnownClient>>);

/// What determines how a client is introduced to the server.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct ClientDescription<'a> {
    /// The client info, unless clients share the connection.
    pub(crate) info: Option<&'a Implementation>,
    /// The declared capabilities.
    pub(crate) capabilities: &'a ClientCapabilities,
    /// Whether the gateway uses tasks of the server.
    pub(crate) uses_tasks: bool,
}

struct KnownClient {
    info: Option<Implementation>,
    capabilities: ClientCapabilities,
    uses_tasks: bool,
    relayed: RelayedClient,
}

impl KnownClient {
    fn description(&self) -> ClientDescription<'_> {
        ClientDescription {
            info: self.info.as_ref(),
            capabilities: &self.capabilities,
            uses_tasks: self.uses_tasks,
        }
    }
}

impl RelayedClients {
    /// Returns the client with this description, or creates it.
    pub(crate) fn get_or_create(
        &self,
        description: ClientDescription<'_>,
        create: impl FnOnce() -> RelayedClient,
    ) -> RelayedClient {
        let mut clients = lock(&self.0);
        let known = clients
            .iter()
            .find(|client| client.description() == description);
        if let Some(known) = known {
            return known.relayed.clone();
        }
        let relayed = create();
        if clients.len() == MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push(KnownClient {
            info: description.info.cloned(),
            capabilities: description.capabilities.clone(),
            uses_tasks: description.uses_tasks,
            relayed: relayed.clone(),
        });
        relayed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_created_once_until_others_replace_it() {
        let (clients, capabilities) = (RelayedClients::default(), ClientCapabilities::new());
        let mut created = 0;
        let mut get = |name: &str, uses_tasks| {
            let info = Implementation::new(name, "1");
            let description = ClientDescription {
                info: Some(&info),
                capabilities: &capabilities,
                uses_tasks,
            };
            clients.get_or_create(description, || {
                created += 1;
                RelayedClient::new(info.clone(), capabilities.clone())
            });
            created
        };

        assert_eq!(get("a", false), 1);
        assert_eq!(get("a", false), 1);
        assert_eq!(get("a", true), 2);
        for other in 0..MAX_CLIENTS {
            assert_eq!(get(&other.to_string(), false), 3 + other);
        }
        assert_eq!(get("a", false), 3 + MAX_CLIENTS);
    }
}
