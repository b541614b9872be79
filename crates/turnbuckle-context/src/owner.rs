//! Whose data it is.

use std::fmt;

use sha2::{Digest, Sha256};
use turnbuckle_protocol::Principal;

use crate::ContextError;

/// Whose data it is: nobody sees what belongs to another owner.
///
/// The name itself is nowhere kept, only its hash; folders and collections are named after that.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    id: String,
}

impl Owner {
    /// The user of this machine with this name.
    pub fn for_user(name: &str) -> Self {
        Self::from_parts(&["user", name])
    }

    /// The caller whom someone vouches for. Two clients of one subject are one owner.
    pub fn for_principal(principal: &Principal) -> Self {
        Self::from_parts(&["principal", &principal.issuer, &principal.subject])
    }

    /// Sixteen hexadecimal digits.
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

/// Who owns what a caller saves.
#[derive(Clone, Debug)]
pub enum OwnershipPolicy {
    /// Everyone who reaches the server is this owner: a server for one person.
    Single(Owner),
    /// Each authenticated caller is an owner; a call without a principal is refused.
    PerPrincipal,
}

impl OwnershipPolicy {
    /// Finds the owner that a caller acts for.
    pub fn owner_for(&self, principal: Option<&Principal>) -> Result<Owner, ContextError> {
        match (self, principal) {
            (Self::Single(owner), _) => Ok(owner.clone()),
            (Self::PerPrincipal, Some(principal)) => Ok(Owner::for_principal(principal)),
            (Self::PerPrincipal, None) => Err(ContextError::invalid(
                "this server keeps data for authenticated callers only; sign in first",
            )),
        }
    }
}

/// Sixteen hexadecimal digits that stand for a list of words; where one word ends and the next begins makes a difference.
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
    fn owners_differ_by_all_that_names_them() {
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
    fn a_caller_without_a_name_is_refused_where_names_matter() {
        assert!(OwnershipPolicy::PerPrincipal.owner_for(None).is_err());
        let one = OwnershipPolicy::Single(Owner::for_user("ada"));
        assert_eq!(one.owner_for(None).unwrap(), Owner::for_user("ada"));
    }
}
