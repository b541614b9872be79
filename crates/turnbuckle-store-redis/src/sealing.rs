//! Encryption of values in Redis.

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};

use crate::error::InvalidStoreKeys;

/// The first byte of every sealed value. Another format gets another byte.
const FORMAT: u8 = 1;
const KEY_ID: usize = 4;
const NONCE: usize = 24;
const MIN_SECRET: usize = 16;

/// Seals values with XChaCha20-Poly1305: the first key seals, all of them open.
///
/// A sealed value is the format byte, the key id, the nonce and the ciphertext. It opens only under the name for which it was
/// sealed, so that a writer of Redis cannot exchange values.
pub(crate) struct Sealer {
    keys: Vec<Key>,
}

struct Key {
    id: [u8; KEY_ID],
    cipher: XChaCha20Poly1305,
}

/// A value of Redis that was altered, or sealed with a key or format that this process does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a value in Redis cannot be opened with the state keys")]
pub(crate) struct UnsealError;

impl Sealer {
    pub(crate) fn new<S: AsRef<[u8]>>(
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidStoreKeys> {
        let derive_checked = |secret: S| match secret.as_ref() {
            secret if secret.len() < MIN_SECRET => Err(InvalidStoreKeys::TooShort),
            secret => Ok(derive(secret)),
        };
        let keys: Vec<_> = secrets
            .into_iter()
            .map(derive_checked)
            .collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(InvalidStoreKeys::Missing);
        }
        Ok(Self { keys })
    }

    /// Seals `plain` under a name.
    pub(crate) fn seal(&self, plain: &[u8], name: &str) -> Vec<u8> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).expect("random bytes are available");
        let key = self.keys.first().expect("a sealer has a key");
        let payload = Payload {
            msg: plain,
            aad: name.as_bytes(),
        };
        let sealed = key
            .cipher
            .encrypt(XNonce::from_slice(&nonce), payload)
            .expect("the cipher takes any message that fits into memory");
        [&[FORMAT], key.id.as_slice(), &nonce, &sealed].concat()
    }

    /// Opens a value that was sealed under this name.
    pub(crate) fn open(&self, sealed: &[u8], name: &str) -> Result<Vec<u8>, UnsealError> {
        let (_, plain) = self.open_with(sealed, name)?;
        Ok(plain)
    }

    /// Opens a value, and returns whether the first key sealed it.
    pub(crate) fn open_with(
        &self,
        sealed: &[u8],
        name: &str,
    ) -> Result<(bool, Vec<u8>), UnsealError> {
        let Some((&FORMAT, rest)) = sealed.split_first() else {
            return Err(UnsealError);
        };
        let (id, rest) = rest.split_at_checked(KEY_ID).ok_or(UnsealError)?;
        let (nonce, ciphertext) = rest.split_at_checked(NONCE).ok_or(UnsealError)?;
        let index = self.keys.iter().position(|key| key.id == id);
        let index = index.ok_or(UnsealError)?;
        let payload = Payload {
            msg: ciphertext,
            aad: name.as_bytes(),
        };
        let cipher = &self.keys[index].cipher;
        let plain = cipher.decrypt(XNonce::from_slice(nonce), payload);
        plain
            .map(|plain| (index == 0, plain))
            .map_err(|_| UnsealError)
    }
}

fn derive(secret: &[u8]) -> Key {
    let key = Sha256::new_with_prefix(b"turnbuckle store key\0")
        .chain_update(secret)
        .finalize();
    let digest = Sha256::new_with_prefix(b"turnbuckle store key id\0")
        .chain_update(key)
        .finalize();
    let mut id = [0; KEY_ID];
    id.copy_from_slice(&digest[..KEY_ID]);
    Key {
        id,
        cipher: XChaCha20Poly1305::new(&key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "the old secret of all";
    const NEW: &str = "the new secret of all";

    #[test]
    fn a_sealed_value_opens_under_its_name_only() {
        let sealer = Sealer::new([NEW]).unwrap();

        let sealed = sealer.seal(b"state", "tb:a");

        assert_eq!(sealer.open(&sealed, "tb:a"), Ok(b"state".to_vec()));
        assert_eq!(sealer.open(&sealed, "tb:b"), Err(UnsealError));
    }

    #[test]
    fn every_altered_byte_is_noticed() {
        let sealer = Sealer::new([NEW]).unwrap();
        let sealed = sealer.seal(b"state", "tb:a");

        for index in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[index] ^= 1;
            assert_eq!(sealer.open(&altered, "tb:a"), Err(UnsealError), "{index}");
            assert_eq!(sealer.open(&sealed[..index], "tb:a"), Err(UnsealError));
        }
    }

    #[test]
    fn a_former_key_opens_and_a_removed_key_does_not() {
        let old = Sealer::new([OLD]).unwrap();
        let both = Sealer::new([NEW, OLD]).unwrap();
        let new = Sealer::new([NEW]).unwrap();

        let sealed = old.seal(b"state", "tb:a");

        assert_eq!(
            both.open_with(&sealed, "tb:a"),
            Ok((false, b"state".to_vec()))
        );
        assert_eq!(new.open(&sealed, "tb:a"), Err(UnsealError));
        let sealed = both.seal(b"state", "tb:a");
        assert_eq!(
            new.open_with(&sealed, "tb:a"),
            Ok((true, b"state".to_vec()))
        );
    }

    #[test]
    fn a_key_must_be_present_and_long_enough() {
        let error = |secrets: &[&str]| Sealer::new(secrets).map(drop).unwrap_err();

        assert_eq!(error(&[]), InvalidStoreKeys::Missing);
        assert_eq!(error(&[NEW, "short"]), InvalidStoreKeys::TooShort);
    }
}
