//! One copy of what many clients say alike.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, Weak};

use super::lock;
use crate::ClientProfile;

/// Places to remember a profile; a server seldom meets more kinds of clients at one time.
const PLACES: usize = 256;

/// Lets sessions of the same client program share its profile, most of what a session costs.
///
/// Remembers at most one profile per place and keeps none alive: what was displaced or is gone is
/// just not shared.
pub(super) struct Profiles {
    places: Box<[Mutex<Weak<ClientProfile>>]>,
    hasher: RandomState,
}

impl Profiles {
    pub(super) fn new() -> Self {
        Self {
            places: (0..PLACES).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Returns a profile equal to this one, and the same for many sessions.
    pub(super) fn share(&self, profile: Arc<ClientProfile>) -> Arc<ClientProfile> {
        let mut place = lock(self.place(&profile));
        if let Some(known) = place.upgrade().filter(|known| *known == profile) {
            return known;
        }
        *place = Arc::downgrade(&profile);
        profile
    }

    fn place(&self, profile: &ClientProfile) -> &Mutex<Weak<ClientProfile>> {
        let info = profile.info.as_ref();
        let name = info.map(|info| (&info.name, &info.version));
        // The remainder is far below `PLACES`, whatever the width of `usize`.
        &self.places[(self.hasher.hash_one(name) % PLACES as u64) as usize]
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
        let profiles = Profiles::new();

        let one = profiles.share(Arc::new(editor()));
        let two = profiles.share(Arc::new(editor()));

        assert!(Arc::ptr_eq(&one, &two));
    }

    #[test]
    fn one_name_does_not_lend_its_capabilities_to_another_client() {
        let profiles = Profiles::new();
        let mut able = editor();
        able.capabilities.roots = Some(RootsCapability::default());

        let one = profiles.share(Arc::new(editor()));
        let two = profiles.share(Arc::new(able));

        assert_eq!(one.capabilities.roots, None);
        assert!(two.capabilities.roots.is_some());
    }

    #[test]
    fn a_profile_that_nobody_uses_is_not_kept() {
        let profiles = Profiles::new();
        let profile = profiles.share(Arc::new(editor()));
        let watch = Arc::downgrade(&profile);

        drop(profile);

        assert!(watch.upgrade().is_none());
    }
}
