//! The key that a file is sealed with, and the keyring that it is kept in.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::{Failure, Step};

/// Where the key is kept that a file is sealed with: mostly the keyring of the operating system.
///
/// It is asked only when a file is sealed, or is to be. It may wait, for the user too: nobody else is kept waiting.
pub trait Keyring: Send + Sync + 'static {
    /// Returns the key; nothing if there is none.
    ///
    /// A keyring that is locked, or cannot be asked, is a failure: whoever hears that there is no key may make another.
    fn find(&self) -> Result<Option<SealingKey>, Failure>;

    /// Keeps a key, where there was none.
    fn keep(&self, key: &SealingKey) -> Result<(), Failure>;
}

/// What a file is sealed with. Prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct SealingKey([u8; SealingKey::LENGTH]);

impl SealingKey {
    /// How many bytes it has.
    pub const LENGTH: usize = 32;

    /// Takes the bytes that a keyring kept.
    pub fn new(bytes: [u8; SealingKey::LENGTH]) -> SealingKey {
        SealingKey(bytes)
    }

    /// Returns the bytes, for a keyring to keep.
    pub fn expose(&self) -> &[u8; SealingKey::LENGTH] {
        &self.0
    }

    pub(super) fn random() -> Result<SealingKey, Failure> {
        random().map(SealingKey)
    }

    /// Seals a text as one of this version of the file.
    pub(super) fn seal(&self, version: u32, text: &[u8]) -> Result<String, Failure> {
        // At random: a key would have to seal billions of files until two are likely to meet.
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut inside = text.to_vec();
        let tag = self
            .cipher()
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(version.to_be_bytes()),
                &mut inside,
            )
            .map_err(|_| Failure::new(Step::Store, "what is to be sealed is too long"))?;
        Ok(STANDARD.encode([&nonce, &inside[..], tag.as_ref()].concat()))
    }

    /// Returns what was sealed; nothing if that was done with another key, for another version, or has been changed since.
    pub(super) fn open(&self, version: u32, sealed: &str) -> Option<Vec<u8>> {
        let mut bytes = STANDARD.decode(sealed).ok()?;
        let (nonce, inside) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let version = Aad::from(version.to_be_bytes());
        let text = self.cipher().open_in_place(nonce, version, inside).ok()?;
        Some(text.to_vec())
    }

    fn cipher(&self) -> LessSafeKey {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &self.0);
        LessSafeKey::new(key.expect("the cipher takes keys of this length"))
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], Failure> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Step::Store, format!("there is no randomness: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SealingKey {
        SealingKey::new([byte; SealingKey::LENGTH])
    }

    #[test]
    fn what_is_sealed_is_opened_by_its_key_and_its_version_alone() {
        let sealed = key(1).seal(2, b"sesame").unwrap();

        assert_eq!(key(1).open(2, &sealed).as_deref(), Some(&b"sesame"[..]));
        assert_eq!(key(2).open(2, &sealed), None);
        assert_eq!(key(1).open(3, &sealed), None);
    }

    #[test]
    fn no_changed_and_no_shorter_text_is_opened() {
        let sealed = STANDARD.decode(key(1).seal(2, b"sesame").unwrap()).unwrap();

        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(key(1).open(2, &STANDARD.encode(changed)), None, "{at}");
            assert_eq!(key(1).open(2, &STANDARD.encode(&sealed[..at])), None);
        }
        assert_eq!(key(1).open(2, "no base64!"), None);
    }

    #[test]
    fn nothing_is_sealed_the_same_way_twice() {
        let [one, other] = [(); 2].map(|()| key(1).seal(2, b"sesame").unwrap());

        assert_ne!(one, other);
    }

    #[test]
    fn a_key_is_never_printed() {
        assert_eq!(format!("{:?}", key(7)), "***");
    }
}
