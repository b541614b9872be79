//! Nonces that need no memory: a time, and a seal on it.

use std::io;

use ring::{hmac, rand::SystemRandom};

use crate::jwt::{decode, encode};

/// How long a nonce is good for, in seconds.
const LIFETIME: u64 = 5 * 60;

/// Gives out nonces, and knows them again.
pub(super) struct Nonces {
    key: hmac::Key,
}

impl Nonces {
    pub(super) fn new() -> io::Result<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| io::Error::other("no randomness to make a key of"))?;
        Ok(Self { key })
    }

    pub(super) fn issue(&self, now: u64) -> String {
        let time = now.to_be_bytes();
        let seal = hmac::sign(&self.key, &time);
        encode([&time, seal.as_ref()].concat())
    }

    pub(super) fn is_good(&self, nonce: &str, now: u64) -> bool {
        let Some(nonce) = decode(nonce) else {
            return false;
        };
        let Some((time, seal)) = nonce.split_first_chunk() else {
            return false;
        };
        let age = now.checked_sub(u64::from_be_bytes(*time));
        hmac::verify(&self.key, time, seal).is_ok() && age.is_some_and(|age| age < LIFETIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_good_for_a_while_and_only_where_it_came_from() {
        let (nonces, others) = (Nonces::new().unwrap(), Nonces::new().unwrap());
        let nonce = nonces.issue(1000);

        assert!(nonces.is_good(&nonce, 1000) && nonces.is_good(&nonce, 1299));
        assert!(!nonces.is_good(&nonce, 1300) && !nonces.is_good(&nonce, 999));
        assert!(!others.is_good(&nonce, 1000));
        for forged in [
            "",
            "AAAA",
            "AAAAAAAAA-g",
            &nonce[..nonce.len() - 4],
            "\u{e4}",
        ] {
            assert!(!nonces.is_good(forged, 1000), "{forged}");
        }
    }
}
