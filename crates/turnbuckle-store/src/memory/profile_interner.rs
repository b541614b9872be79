//! Deduplicates equal client profiles.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, Weak},
};

use super::lock;
use crate::ClientProfile;

/// The number of slots; a server rarely has more kinds of clients at a time.
const SLOTS: usize = 256;

/// Lets sessions of the same client program share one profile, which is the largest part of a session.
///
/// Holds at most one weak reference per slot. A profile that was displaced or dropped is not shared any more.
pub(super) struct ProfileInterner {
    slots: Box<[Mutex<Weak<ClientProfile>>]>,
    hasher: RandomState,
}

impl ProfileInterner {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Returns a profile equal to this one that many sessions share.
    pub(super) fn intern(&self, profile: Arc<ClientProfile>) -> Arc<ClientProfile> {
        let mut slot = lock(self.slot(&profile));
        if let Some(interned) = slot.upgrade().filter(|interned| *interned == profile) {
            return interned;
        }
        *slot = Arc::downgrade(&profile);
        profile
    }

    fn slot(&self, profile: &ClientProfile) -> &Mutex<Weak<ClientProfile>> {
        let info = profile.info.as_ref();
        let name = info.map(|info| (&info.name, &info.version));
        // The remainder is below `SLOTS`, so it fits into `usize`.
        &self.slots[(self.hasher.hash_one(name) % SLOTS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle_protocol::types::{Implementation, RootsCapability};

    use super::*;

    fn editor() -> ClientProfile {
        ClientProfile {
            info: Some(Implementation::new("editor", "1.0")),
            ..ClientProfile::default()
        }
    }

    #[test]
    fn equal_profiles_become_one() {
        let profiles = ProfileInterner::new();

        let one = profiles.intern(Arc::new(editor()));
        let two = profiles.intern(Arc::new(editor()));

        assert!(Arc::ptr_eq(&one, &two));
    }

    #[test]
    fn profiles_with_the_same_name_and_other_capabilities_are_not_shared() {
        let profiles = ProfileInterner::new();
        let mut able = editor();
        able.capabilities.roots = Some(RootsCapability::default());

        let one = profiles.intern(Arc::new(editor()));
        let two = profiles.intern(Arc::new(able));

        assert_eq!(one.capabilities.roots, None);
        assert!(two.capabilities.roots.is_some());
    }

    #[test]
    fn an_unused_profile_is_dropped() {
        let profiles = ProfileInterner::new();
        let profile = profiles.intern(Arc::new(editor()));
        let watch = Arc::downgrade(&profile);

        drop(profile);

        assert!(watch.upgrade().is_none());
    }
}
