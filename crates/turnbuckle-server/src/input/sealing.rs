//! Encryption of values that leave the server and come back: request state, handles and cursors.

use std::sync::OnceLock;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};

const KEY_ID: usize = 4;
const NONCE: usize = 24;

/// The reason that secrets cannot encrypt request state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidStateKeys {
    /// The list is empty.
    #[error("at least one secret is required")]
    Missing,
    /// A secret is too short.
    #[error("a secret must have at least 16 bytes")]
    TooShort,
}

/// The server's keys: the first encrypts, every key decrypts.
///
/// Text form: Base64url of key id, nonce and ciphertext (XChaCha20-Poly1305).
pub(crate) struct SealingKeys {
    /// Random keys are generated on first use, because few servers need them.
    keys: OnceLock<Vec<Key>>,
    is_random: bool,
}

struct Key {
    id: [u8; KEY_ID],
    cipher: XChaCha20Poly1305,
    /// The secret that nonces of [`SealingKeys::seal_repeatably`] are derived with.
    nonce_secret: [u8; 32],
}

/// The value cannot be decrypted: altered, sealed for another purpose, or the key was removed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnsealError;

impl SealingKeys {
    /// Creates a random key for this process.
    pub(crate) fn random() -> Self {
        Self {
            keys: OnceLock::new(),
            is_random: true,
        }
    }

    /// Returns whether no other process has these keys.
    pub(crate) fn is_random(&self) -> bool {
        self.is_random
    }

    /// Derives keys from secrets shared by several processes. The first encrypts.
    pub(crate) fn new(secrets: &[Vec<u8>]) -> Self {
        let keys: Vec<_> = secrets.iter().map(|secret| derive(secret)).collect();
        Self {
            keys: keys.into(),
            is_random: false,
        }
    }

    fn all(&self) -> &[Key] {
        self.keys.get_or_init(|| {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret).expect("random bytes are available");
            vec![derive(&secret)]
        })
    }

    /// Encrypts `plain` for `purpose`. Decryption requires the same purpose.
    pub(crate) fn seal(&self, plain: &[u8], purpose: &[u8]) -> String {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).expect("random bytes are available");
        self.current().seal(plain, purpose, &nonce)
    }

    /// Like [`seal`](Self::seal), but returns the same text for the same value and purpose, so that it can be an id.
    pub(crate) fn seal_repeatably(&self, plain: &[u8], purpose: &[u8]) -> String {
        let key = self.current();
        let digest = Sha256::new_with_prefix(key.nonce_secret)
            .chain_update(purpose.len().to_be_bytes())
            .chain_update(purpose)
            .chain_update(plain)
            .finalize();
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&digest[..NONCE]);
        key.seal(plain, purpose, &nonce)
    }

    fn current(&self) -> &Key {
        self.all().first().expect("a server always has a key")
    }

    /// Decrypts a value of [`seal`](Self::seal) with the same purpose.
    pub(crate) fn open(&self, text: &str, purpose: &[u8]) -> Result<Vec<u8>, UnsealError> {
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| UnsealError)?;
        let (id, rest) = bytes.split_at_checked(KEY_ID).ok_or(UnsealError)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE).ok_or(UnsealError)?;
        let key = self.all().iter().find(|key| key.id == id);
        key.ok_or(UnsealError)?
            .cipher
            .decrypt(
                XNonce::from_slice(nonce),
                Payload {
                    msg: sealed,
                    aad: purpose,
                },
            )
            .map_err(|_| UnsealError)
    }
}

impl Key {
    fn seal(&self, plain: &[u8], purpose: &[u8], nonce: &[u8; NONCE]) -> String {
        let payload = Payload {
            msg: plain,
            aad: purpose,
        };
        let sealed = self
            .cipher
            .encrypt(XNonce::from_slice(nonce), payload)
            .expect("the cipher takes any message that fits into memory");
        BASE64_URL_SAFE_NO_PAD.encode([self.id.as_slice(), nonce, &sealed].concat())
    }
}

fn derive(secret: &[u8]) -> Key {
    let key = Sha256::new_with_prefix(b"turnbuckle sealing key\0")
        .chain_update(secret)
        .finalize();
    let digest = Sha256::new_with_prefix(b"turnbuckle key id\0")
        .chain_update(key)
        .finalize();
    let mut id = [0; KEY_ID];
    id.copy_from_slice(&digest[..KEY_ID]);
    let nonce_secret = Sha256::new_with_prefix(b"turnbuckle nonce secret\0")
        .chain_update(key)
        .finalize();
    Key {
        id,
        cipher: XChaCha20Poly1305::new(&key),
        nonce_secret: nonce_secret.into(),
    }
}

impl std::fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_for_the_same_purpose_only() {
        let keys = SealingKeys::random();

        let text = keys.seal(b"state", b"tools/call");

        assert_eq!(keys.open(&text, b"tools/call"), Ok(b"state".to_vec()));
        assert_eq!(keys.open(&text, b"prompts/get"), Err(UnsealError));
    }

    #[test]
    fn an_id_is_the_same_for_the_same_value_and_purpose_only() {
        let keys = SealingKeys::random();

        let id = keys.seal_repeatably(b"task", b"a");

        assert_eq!(id, keys.seal_repeatably(b"task", b"a"));
        assert_ne!(id, keys.seal_repeatably(b"task", b"b"));
        assert_ne!(id[..16], keys.seal_repeatably(b"other", b"a")[..16]);
        assert_eq!(keys.open(&id, b"a"), Ok(b"task".to_vec()));
        assert_eq!(keys.open(&id, b"b"), Err(UnsealError));
    }

    #[test]
    fn a_random_key_is_made_when_it_is_needed_and_stays() {
        let keys = SealingKeys::random();
        assert!(keys.keys.get().is_none());

        let texts = [keys.seal(b"first", b""), keys.seal(b"second", b"")];

        assert_eq!(keys.open(&texts[0], b""), Ok(b"first".to_vec()));
        assert_eq!(keys.open(&texts[1], b""), Ok(b"second".to_vec()));
    }

    #[test]
    fn every_altered_character_is_noticed() {
        let keys = SealingKeys::random();
        let text = keys.seal(b"state", b"");

        for at in 0..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();

            assert_eq!(keys.open(&altered, b""), Err(UnsealError), "character {at}");
        }
        assert_eq!(
            keys.open(&format!("{text}-TAMPERED"), b""),
            Err(UnsealError)
        );
        assert_eq!(keys.open("", b""), Err(UnsealError));
    }

    #[test]
    fn an_old_key_still_opens_and_a_removed_one_does_not() {
        let old = SealingKeys::new(&[b"old".to_vec()]);
        let rotated = SealingKeys::new(&[b"new".to_vec(), b"old".to_vec()]);
        let later = SealingKeys::new(&[b"new".to_vec()]);

        let text = old.seal(b"state", b"");

        assert_eq!(rotated.open(&text, b""), Ok(b"state".to_vec()));
        assert_eq!(later.open(&text, b""), Err(UnsealError));
        assert_eq!(
            later.open(&rotated.seal(b"state", b""), b""),
            Ok(b"state".to_vec())
        );
    }
}
