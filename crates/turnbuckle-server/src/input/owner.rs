//! Whose share of the store something takes.

use sha2::{Digest, Sha256};
use turnbuckle_protocol::Principal;

use crate::Server;

/// The name under which the store counts what is kept for a caller; none for callers that no transport could tell apart.
pub(crate) fn owner(server: &Server, principal: Option<&Principal>) -> Option<String> {
    let who = principal?;
    let named = (server.name(), &who.issuer, &who.subject, &who.client);
    let digest = Sha256::new_with_prefix(b"turnbuckle owner\0")
        .chain_update(serde_json::to_vec(&named).expect("strings can be written"))
        .finalize();
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}
