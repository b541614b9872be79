//! Encryption of the file, with a key from a keyring.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::format::{EncryptedFile, StoreContents, StoreReadError};
use crate::{AuthorizationError, AuthorizationStep, sync::lock};

/// Encrypts and decrypts the file, with a cached key.
pub(super) struct FileCipher {
    file: PathBuf,
    keyring: Option<Arc<dyn Keyring>>,
    /// The key that was last loaded.
    cached_key: Mutex<Option<EncryptionKey>>,
}

impl FileCipher {
    pub(super) fn new(file: PathBuf, keyring: Option<Arc<dyn Keyring>>) -> FileCipher {
        FileCipher {
            file,
            keyring,
            cached_key: Mutex::default(),
        }
    }

    /// Decrypts a file. The keyring is used once, and again only if the key has changed.
    pub(super) fn open(
        &self,
        file: &EncryptedFile,
    ) -> Result<Result<StoreContents, StoreReadError>, AuthorizationError> {
        if let Some(opened) = self.cached_key().and_then(|key| file.decrypt(&key)) {
            return Ok(opened);
        }
        let key = self.load_key()?.ok_or_else(|| self.key_not_found())?;
        file.decrypt(&key).ok_or_else(|| self.decryption_failed())
    }

    /// Returns the key; creates one if the keyring has none.
    ///
    /// Two concurrent callers could each create a key and lose one, so the caller must hold the write lock.
    pub(super) fn key(&self) -> Result<EncryptionKey, AuthorizationError> {
        if let Some(key) = self.cached_key() {
            return Ok(key);
        }
        if let Some(key) = self.load_key()? {
            return Ok(key);
        }
        self.keyring()?.store_key(&EncryptionKey::random()?)?;
        // Only a key that can be loaded again is used.
        self.load_key()?.ok_or_else(|| self.key_not_stored())
    }

    /// Loads the key from the keyring, and caches it.
    pub(super) fn load_key(&self) -> Result<Option<EncryptionKey>, AuthorizationError> {
        let key = self.keyring()?.load_key()?;
        let mut cached_key = lock(&self.cached_key);
        cached_key.clone_from(&key);
        Ok(key)
    }

    fn cached_key(&self) -> Option<EncryptionKey> {
        let cached_key = lock(&self.cached_key);
        cached_key.clone()
    }

    fn keyring(&self) -> Result<&dyn Keyring, AuthorizationError> {
        self.keyring.as_deref().ok_or_else(|| {
            self.failure("requires a keyring for encryption, and none is available")
                .with_hint("nothing was changed; use a program that supports the keyring")
        })
    }

    fn key_not_found(&self) -> AuthorizationError {
        let file = self.file.display();
        self.failure("is encrypted, and its key is not in the keyring").with_hint(format!(
            "nothing was changed; use the keyring it was encrypted with, or move `{file}` away and log in again"
        ))
    }

    fn key_not_stored(&self) -> AuthorizationError {
        self.failure("cannot be encrypted: the keyring does not store the key")
            .with_hint("nothing was changed; use a persistent keyring, or do not encrypt the file")
    }

    fn decryption_failed(&self) -> AuthorizationError {
        let file = self.file.display();
        self.failure("cannot be decrypted: the keyring has another key, or the file was modified")
            .with_hint(format!(
                "nothing was changed; restore the file or the keyring, or move `{file}` away and log in again"
            ))
    }

    fn failure(&self, what: &str) -> AuthorizationError {
        AuthorizationError::new(
            AuthorizationStep::Store,
            format!("`{}` {what}", self.file.display()),
        )
    }
}

/// Stores the encryption key of a file; usually the keyring of the operating system.
///
/// It is used only for encrypted files. It may block, also on the user.
pub trait Keyring: Send + Sync + 'static {
    /// Returns the key; `None` if there is none.
    ///
    /// A keyring that is locked or unavailable must return an error: after `None`, a new key is created.
    fn load_key(&self) -> Result<Option<EncryptionKey>, AuthorizationError>;

    /// Stores a key; there was none before.
    fn store_key(&self, key: &EncryptionKey) -> Result<(), AuthorizationError>;
}

/// The encryption key of a file. Prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey([u8; EncryptionKey::LENGTH]);

impl EncryptionKey {
    /// Length in bytes.
    pub const LENGTH: usize = 32;

    /// Creates a key from the bytes of a keyring.
    pub fn new(bytes: [u8; EncryptionKey::LENGTH]) -> EncryptionKey {
        EncryptionKey(bytes)
    }

    /// Returns the bytes, for storage in a keyring.
    pub fn expose(&self) -> &[u8; EncryptionKey::LENGTH] {
        &self.0
    }

    pub(super) fn random() -> Result<EncryptionKey, AuthorizationError> {
        random().map(EncryptionKey)
    }

    /// Encrypts a text for this version of the file format.
    pub(super) fn encrypt(&self, version: u32, text: &[u8]) -> Result<String, AuthorizationError> {
        // Random: a collision is unlikely before billions of encryptions with one key.
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut payload = text.to_vec();
        let tag = self
            .cipher()
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(version.to_be_bytes()),
                &mut payload,
            )
            .map_err(|_| {
                AuthorizationError::new(
                    AuthorizationStep::Store,
                    "the contents are too long to be encrypted",
                )
            })?;
        Ok(STANDARD.encode([&nonce, &payload[..], tag.as_ref()].concat()))
    }

    /// Decrypts a text; `None` if the key or the version differ, or the text was modified.
    pub(super) fn decrypt(&self, version: u32, ciphertext: &str) -> Option<Vec<u8>> {
        let mut bytes = STANDARD.decode(ciphertext).ok()?;
        let (nonce, payload) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let version = Aad::from(version.to_be_bytes());
        let text = self.cipher().open_in_place(nonce, version, payload).ok()?;
        Some(text.to_vec())
    }

    fn cipher(&self) -> LessSafeKey {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &self.0);
        LessSafeKey::new(key.expect("the key has the length of the cipher"))
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], AuthorizationError> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| {
        AuthorizationError::new(
            AuthorizationStep::Store,
            format!("no randomness is available: {error}"),
        )
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> EncryptionKey {
        EncryptionKey::new([byte; EncryptionKey::LENGTH])
    }

    #[test]
    fn encrypted_text_needs_its_key_and_version() {
        let ciphertext = key(1).encrypt(2, b"sesame").unwrap();

        assert_eq!(
            key(1).decrypt(2, &ciphertext).as_deref(),
            Some(&b"sesame"[..])
        );
        assert_eq!(key(2).decrypt(2, &ciphertext), None);
        assert_eq!(key(1).decrypt(3, &ciphertext), None);
    }

    #[test]
    fn changed_or_truncated_text_is_not_decrypted() {
        let ciphertext = STANDARD
            .decode(key(1).encrypt(2, b"sesame").unwrap())
            .unwrap();

        for at in 0..ciphertext.len() {
            let mut changed = ciphertext.clone();
            changed[at] ^= 1;
            assert_eq!(key(1).decrypt(2, &STANDARD.encode(changed)), None, "{at}");
            assert_eq!(key(1).decrypt(2, &STANDARD.encode(&ciphertext[..at])), None);
        }
        assert_eq!(key(1).decrypt(2, "no base64!"), None);
    }

    #[test]
    fn each_encryption_differs() {
        let [one, other] = [(); 2].map(|()| key(1).encrypt(2, b"sesame").unwrap());

        assert_ne!(one, other);
    }

    #[test]
    fn a_key_is_never_printed() {
        assert_eq!(format!("{:?}", key(7)), "***");
    }
}
