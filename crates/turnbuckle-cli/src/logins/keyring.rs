//! The system keyring, which stores the key of encrypted logins.
//!
//! Linux and similar systems use the Secret Service, macOS the Keychain, Windows the Credential Manager.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use keyring_core::{CredentialStore, Entry, Error};
use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep,
    client::{EncryptionKey, Keyring},
};

/// The service and user of the keyring entry.
const ENTRY: (&str, &str) = ("turnbuckle", "logins");

/// The system keyring. It is opened when it is first needed.
pub(super) struct SystemKeyring {
    open: Box<dyn Fn() -> keyring_core::Result<Arc<CredentialStore>> + Send + Sync>,
}

impl SystemKeyring {
    /// Uses the keyring of this system.
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
    fn load_key(&self) -> Result<Option<EncryptionKey>, AuthorizationError> {
        match self.entry().and_then(|entry| entry.get_password()) {
            Ok(text) => parse_key(&text).map(Some),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(keyring_failure(&error)),
        }
    }

    fn store_key(&self, key: &EncryptionKey) -> Result<(), AuthorizationError> {
        // As text, because some keyrings do not support other bytes.
        let text = STANDARD.encode(key.expose());
        let stored = self.entry().and_then(|entry| entry.set_password(&text));
        stored.map_err(|error| keyring_failure(&error))
    }
}

fn parse_key(text: &str) -> Result<EncryptionKey, AuthorizationError> {
    let bytes = STANDARD.decode(text.trim()).unwrap_or_default();
    let bytes = <[u8; EncryptionKey::LENGTH]>::try_from(bytes);
    bytes.map(EncryptionKey::new).map_err(|_| {
        let (service, user) = ENTRY;
        let reason = format!("the keyring entry `{user}` of `{service}` is not a key");
        AuthorizationError::new(AuthorizationStep::Store, reason)
            .with_hint("nothing was changed; restore the previous entry")
    })
}

fn keyring_failure(error: &Error) -> AuthorizationError {
    let (why, hint) = match error {
        Error::NoStorageAccess(why) => (why.to_string(), LOCKED_HINT),
        Error::PlatformFailure(why) => (why.to_string(), NO_KEYRING_HINT),
        error => (error.to_string(), NO_KEYRING_HINT),
    };
    let reason = format!("cannot use the system keyring: {why}");
    AuthorizationError::new(AuthorizationStep::Store, reason).with_hint(hint)
}

const LOCKED_HINT: &str = "nothing was changed; unlock the keyring and try again";

#[cfg(all(unix, not(target_os = "macos")))]
const NO_KEYRING_HINT: &str = "nothing was changed; run this in a session with a keyring, such as GNOME Keyring, KWallet or KeePassXC";

#[cfg(not(all(unix, not(target_os = "macos"))))]
const NO_KEYRING_HINT: &str =
    "nothing was changed; run this in a session of the user who owns the keyring";

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
