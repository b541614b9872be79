//! Owners of data.

use std::fmt;

use sha2::{Digest, Sha256};
use turnbuckle_protocol::Principal;

use crate::ContextError;

/// The owner of data. Owners do not see the data of other owners.
///
/// Only a hash of the name is stored; folders and collections are named after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    id: String,
}

impl Owner {
    /// Returns the owner for a user of this machine.
    pub fn for_user(name: &str) -> Self {
        Self::from_parts(&["user", name])
    }

    /// Returns the owner for an authenticated caller. Clients with the same subject are one owner.
    pub fn for_principal(principal: &Principal) -> Self {
        Self::from_parts(&["principal", &principal.issuer, &principal.subject])
    }

    /// Returns the id: sixteen hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn from_parts(parts: &[&str]) -> Self {
        Self {
            id: short_hash(parts),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner_{}", self.id)
    }
}

/// Maps callers to owners.
#[derive(Clone, Debug)]
pub enum OwnershipPolicy {
    /// Every caller is this owner: a server for one user.
    Single(Owner),
    /// Each authenticated caller is an owner; a call without a principal is rejected.
    PerPrincipal,
}

impl OwnershipPolicy {
    /// Returns the owner that a caller acts for.
    pub fn owner_for(&self, principal: Option<&Principal>) -> Result<Owner, ContextError> {
        match (self, principal) {
            (Self::Single(owner), _) => Ok(owner.clone()),
            (Self::PerPrincipal, Some(principal)) => Ok(Owner::for_principal(principal)),
            (Self::PerPrincipal, None) => Err(ContextError::invalid(
                "this server stores data for authenticated callers only; sign in first",
            )),
        }
    }
}

/// Returns a hash of a list of words as sixteen hexadecimal digits. The boundaries between words are part of the hash.
pub(crate) fn short_hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize()[..8])
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_differ_by_kind_and_name() {
        let ada = Owner::for_user("ada");
        assert_eq!(ada, Owner::for_user("ada"));
        let others = [
            Owner::for_user("bob"),
            Owner::for_principal(&Principal::new("user", "ada")),
            Owner::for_principal(&Principal::new("use", "rada")),
        ];
        assert!(others.iter().all(|other| *other != ada));
        assert_ne!(others[1], others[2]);
        assert_eq!(ada.id().len(), 16);
    }

    #[test]
    fn a_caller_without_a_principal_is_rejected_if_owners_are_per_principal() {
        assert!(OwnershipPolicy::PerPrincipal.owner_for(None).is_err());
        let one = OwnershipPolicy::Single(Owner::for_user("ada"));
        assert_eq!(one.owner_for(None).unwrap(), Owner::for_user("ada"));
    }
}
