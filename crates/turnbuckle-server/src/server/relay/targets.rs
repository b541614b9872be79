//! Which clients are notified of a change that concerns only some of them.

use std::sync::Arc;

use turnbuckle_protocol::Principal;
use turnbuckle_store::{ChangeTarget, SessionId};

use super::RelayedRequest;
use crate::middleware::SessionKey;

impl RelayedRequest {
    /// Returns the target of changes for this client alone: its [session](Self::session) or, without one, all clients of
    /// its principal that have none.
    pub fn session_target(&self) -> ChangeTarget {
        match self.session() {
            Some(session) => session.into(),
            None => ChangeTarget::Sessionless(principal_key(self.principal())),
        }
    }

    /// Returns the target of changes for all clients of the principal of this request. Without a principal, these are all
    /// clients without one.
    pub fn principal_target(&self) -> ChangeTarget {
        principal_target(self.principal())
    }

    /// Returns whether the client of this request is notified of changes with a target.
    pub(crate) fn is_target(&self, target: &ChangeTarget) -> bool {
        is_target(target, self.principal(), self.session_id())
    }
}

/// Returns whether a client is notified of changes with a target. `session` also identifies the connection that carries all
/// requests of the client.
pub(crate) fn is_target(
    target: &ChangeTarget,
    principal: Option<&Principal>,
    session: Option<SessionId>,
) -> bool {
    let is_principal = |expected: &Option<Arc<str>>| principal_key(principal) == *expected;
    match target {
        ChangeTarget::Everyone => true,
        ChangeTarget::Session(_) => {
            session.is_some_and(|id| *target == SessionKey::from_id(&id).into())
        }
        ChangeTarget::Principal(expected) => is_principal(expected),
        ChangeTarget::Sessionless(expected) => session.is_none() && is_principal(expected),
        // Of a newer store: no client, because the target is not known.
        _ => false,
    }
}

/// Returns the target of changes for all clients of a principal.
pub(crate) fn principal_target(principal: Option<&Principal>) -> ChangeTarget {
    ChangeTarget::Principal(principal_key(principal))
}

/// Identifies a principal, regardless of its scopes and claims.
fn principal_key(principal: Option<&Principal>) -> Option<Arc<str>> {
    let principal = principal?;
    let name = (&principal.issuer, &principal.subject, &principal.client);
    Some(format!("{name:?}").into())
}
