//! The file format: plaintext or encrypted JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::encryption::EncryptionKey;
use crate::{
    AuthorizationError,
    client::{registration::ClientRegistration, store::StoredLogin},
};

/// The encryption of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileEncryption {
    /// Not encrypted; protected by file permissions.
    #[default]
    Plaintext,
    /// Encrypted with a key from the [`Keyring`](super::Keyring), so that a copy of the file is useless.
    Encrypted,
}

/// The contents of the store.
#[derive(Serialize, Deserialize)]
pub(super) struct StoreContents {
    version: u32,
    #[serde(default)]
    pub(super) logins: BTreeMap<String, StoredLogin>,
    #[serde(default)]
    pub(super) registrations: BTreeMap<String, ClientRegistration>,
}

/// Version of a plaintext file, and of the contents of an encrypted one.
const PLAINTEXT_VERSION: u32 = 1;

/// Version of an encrypted file, and the newest supported version.
const ENCRYPTED_VERSION: u32 = 2;

/// A parsed file: the contents, or encrypted contents.
pub(super) enum StoreFile {
    Plaintext(StoreContents),
    Encrypted(EncryptedFile),
}

/// An encrypted file.
#[derive(Serialize, Deserialize)]
pub(super) struct EncryptedFile {
    version: u32,
    #[serde(rename = "sealed")]
    ciphertext: String,
}

/// Reason why a file cannot be read.
#[derive(Debug)]
pub(super) enum StoreReadError {
    /// The position of the error; the text there may be secret.
    Damaged(String),
    Newer,
}

impl StoreContents {
    pub(super) fn empty() -> StoreContents {
        StoreContents {
            version: PLAINTEXT_VERSION,
            logins: BTreeMap::new(),
            registrations: BTreeMap::new(),
        }
    }

    /// Serializes the contents as readable JSON.
    pub(super) fn to_plaintext(&self) -> Vec<u8> {
        to_json_file(self)
    }

    /// Serializes and encrypts the contents.
    pub(super) fn to_encrypted(&self, key: &EncryptionKey) -> Result<Vec<u8>, AuthorizationError> {
        let ciphertext = key.encrypt(ENCRYPTED_VERSION, &self.to_plaintext())?;
        let version = ENCRYPTED_VERSION;
        Ok(to_json_file(&EncryptedFile {
            version,
            ciphertext,
        }))
    }

    fn parse(bytes: &[u8]) -> Result<StoreContents, StoreReadError> {
        serde_json::from_slice(bytes).map_err(damaged)
    }
}

impl StoreFile {
    pub(super) fn parse(bytes: &[u8]) -> Result<StoreFile, StoreReadError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } = serde_json::from_slice(bytes).map_err(damaged)?;
        match version {
            0..=PLAINTEXT_VERSION => StoreContents::parse(bytes).map(StoreFile::Plaintext),
            ENCRYPTED_VERSION => serde_json::from_slice(bytes)
                .map(StoreFile::Encrypted)
                .map_err(damaged),
            _ => Err(StoreReadError::Newer),
        }
    }

    pub(super) fn encryption(&self) -> FileEncryption {
        match self {
            StoreFile::Plaintext(_) => FileEncryption::Plaintext,
            StoreFile::Encrypted(_) => FileEncryption::Encrypted,
        }
    }
}

impl EncryptedFile {
    /// Decrypts the contents; `None` if the key is wrong.
    pub(super) fn decrypt(
        &self,
        key: &EncryptionKey,
    ) -> Option<Result<StoreContents, StoreReadError>> {
        let text = key.decrypt(self.version, &self.ciphertext)?;
        Some(StoreContents::parse(&text))
    }
}

fn to_json_file(value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec_pretty(value);
    let mut json = json.expect("the contents can be serialized");
    json.push(b'\n');
    json
}

#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn damaged(error: serde_json::Error) -> StoreReadError {
    let (line, column) = (error.line(), error.column());
    StoreReadError::Damaged(format!("line {line}, column {column}"))
}
