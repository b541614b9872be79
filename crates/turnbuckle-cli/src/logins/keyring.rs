//! The keyring of the system, which has the key to sealed logins.
//!
//! On Linux and its like that is whoever offers the Secret Service, on macOS the Keychain, on Windows the Credential Manager.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use keyring_core::{CredentialStore, Entry, Error};
use turnbuckle_auth::client::{Keyring, SealingKey};
use turnbuckle_auth::{Failure, Step};

/// The key has an entry of this name, for this user of it.
const ENTRY: (&str, &str) = ("turnbuckle", "logins");

/// The keyring of the system, which is not spoken to before it is needed.
pub(super) struct SystemKeyring {
    open: Box<dyn Fn() -> keyring_core::Result<Arc<CredentialStore>> + Send + Sync>,
}

impl SystemKeyring {
    /// Takes the keyring that this system has.
    pub(super) fn new() -> Self {
        let open = Box::new(open);
        Self { open }
    }

    fn entry(&self) -> keyring_core::Result<Entry> {
        let (service, user) = ENTRY;
        (self.open)()?.build(service, user, None)
    }
}

impl Keyring for SystemKeyring {
    fn find(&self) -> Result<Option<SealingKey>, Failure> {
        match self.entry().and_then(|entry| entry.get_password()) {
            Ok(text) => read(&text).map(Some),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }

    fn keep(&self, key: &SealingKey) -> Result<(), Failure> {
        // As text: not every keyring is at ease with other bytes.
        let text = STANDARD.encode(key.expose());
        let kept = self.entry().and_then(|entry| entry.set_password(&text));
        kept.map_err(|error| failure(&error))
    }
}

fn read(text: &str) -> Result<SealingKey, Failure> {
    let bytes = STANDARD.decode(text.trim()).unwrap_or_default();
    let bytes = <[u8; SealingKey::LENGTH]>::try_from(bytes);
    bytes.map(SealingKey::new).map_err(|_| {
        let (service, user) = ENTRY;
        let reason = format!("the entry `{user}` of `{service}` in the keyring is no key");
        Failure::new(Step::Store, reason).cure("nothing was changed; restore what stood there")
    })
}

fn failure(error: &Error) -> Failure {
    let (why, cure) = match error {
        Error::NoStorageAccess(why) => (why.to_string(), LOCKED),
        Error::PlatformFailure(why) => (why.to_string(), NOBODY_ANSWERS),
        error => (error.to_string(), NOBODY_ANSWERS),
    };
    let reason = format!("the keyring of the system cannot be used: {why}");
    Failure::new(Step::Store, reason).cure(cure)
}

const LOCKED: &str = "nothing was changed; unlock the keyring, and try again";

#[cfg(all(unix, not(target_os = "macos")))]
const NOBODY_ANSWERS: &str = "nothing was changed; run this in a session with a keyring, as GNOME Keyring, KWallet and KeePassXC are";

#[cfg(not(all(unix, not(target_os = "macos"))))]
const NOBODY_ANSWERS: &str =
    "nothing was changed; run this in a session of the user whose keyring it is";

#[cfg(all(unix, not(target_os = "macos")))]
fn open() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(zbus_secret_service_keyring_store::Store::new()?)
}

#[cfg(target_os = "macos")]
fn open() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(windows)]
fn open() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(windows_native_keyring_store::Store::new()?)
}

#[cfg(test)]
mod tests;
