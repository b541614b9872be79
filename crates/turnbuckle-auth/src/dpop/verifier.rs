//! Verification of DPoP proofs.

use std::{io, time::SystemTime};

use ring::{hmac, rand::SystemRandom};
use serde_json::{Map, Value};

use super::{
    replay_cache::{ReplayCache, ReplayCheck},
    token_hash,
};
use crate::{
    is_same_resource,
    jwt::{InvalidJwk, InvalidJwt, Jwk, SignatureAlgorithm, UnverifiedJwt, decode, encode},
    unix_time,
};

/// Maximum age of a proof, and maximum distance into the future, in seconds.
const MAX_CLOCK_SKEW_SECONDS: u64 = 60;
/// Maximum number of proofs stored per period. With two periods that is at most about 50 MB, for 4,000 requests per
/// second.
const MAX_PROOFS_PER_PERIOD: usize = 500_000;
/// Maximum number of them for one key.
const MAX_PROOFS_PER_KEY: usize = 100_000;
/// Maximum length of a `jti`, in bytes.
const MAX_JTI_BYTES: usize = 512;

/// Verifies proofs, and stores them so that none is accepted twice.
pub struct ProofVerifier {
    algorithms: Vec<SignatureAlgorithm>,
    nonce_issuer: Option<NonceIssuer>,
    replay_cache: ReplayCache,
}

/// The request that a proof must belong to.
#[derive(Clone, Copy)]
pub struct ExpectedProof<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// The URLs that the request may have been sent to; query and fragment are ignored.
    pub urls: &'a [&'a str],
    /// The access token of the request.
    pub token: &'a str,
    /// The thumbprint of the key that the token is bound to.
    pub key: &'a str,
}

/// Reason why a proof is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProof {
    /// The proof is missing, or there are several.
    #[error("expected exactly one proof")]
    Count,
    /// Not a signed JWT.
    #[error("invalid proof: {0}")]
    Malformed(#[from] InvalidJwt),
    /// The `typ` is not `dpop+jwt`.
    #[error("the `typ` of the proof is not `dpop+jwt`")]
    WrongType,
    /// The signature algorithm is not accepted.
    #[error("the signature algorithm of the proof is not accepted")]
    Algorithm,
    /// The embedded key cannot verify signatures.
    #[error("invalid key in the proof: {0}")]
    Key(#[from] InvalidJwk),
    /// The signature does not match the embedded key.
    #[error("the proof is not signed by its key")]
    Signature,
    /// The token is bound to another key.
    #[error("the token is bound to another key")]
    KeyMismatch,
    /// For another method.
    #[error("the proof is for another method")]
    Method,
    /// For another URL.
    #[error("the proof is for another URL")]
    Url,
    /// Too old, or in the future.
    #[error("the proof is too old or in the future")]
    Time,
    /// For another token.
    #[error("the proof is for another token")]
    Token,
    /// The `jti` is missing or too long.
    #[error("the proof lacks a valid `jti`")]
    Id,
    /// The nonce is missing, expired or not issued here; the rejection carries a new one.
    #[error("the proof requires a nonce")]
    Nonce,
    /// The proof was already used.
    #[error("the proof was already used")]
    Replayed,
    /// The replay cache is full; the client may retry after a minute.
    #[error("too many proofs, try again in a minute")]
    TooManyProofs,
}

impl ProofVerifier {
    /// Accepts only proofs with one of these algorithms.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = SignatureAlgorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Requires every proof to contain a [nonce](Self::issue_nonce) issued at most five minutes ago.
    ///
    /// Fails if the operating system cannot provide randomness.
    pub fn require_nonce(mut self) -> io::Result<Self> {
        self.nonce_issuer = Some(NonceIssuer::new()?);
        Ok(self)
    }

    /// Returns the nonce for the next proof, if nonces are required.
    pub fn issue_nonce(&self, now: SystemTime) -> Option<String> {
        let nonce_issuer = self.nonce_issuer.as_ref()?;
        Some(nonce_issuer.issue(unix_time::seconds(now)))
    }

    /// Returns the names of the accepted algorithms, as in a challenge.
    pub fn algorithm_names(&self) -> String {
        let names: Vec<_> = self.algorithms.iter().map(|one| one.as_str()).collect();
        names.join(" ")
    }

    /// Verifies the proof of a request; each proof is accepted once.
    pub fn verify(
        &self,
        headers: &[&str],
        expected: ExpectedProof<'_>,
        now: SystemTime,
    ) -> Result<(), InvalidProof> {
        let [proof] = headers else {
            return Err(InvalidProof::Count);
        };
        let proof = UnverifiedJwt::parse(proof)?;
        let claims = self.verify_signature(proof, expected.key)?;
        let now = unix_time::seconds(now);
        let id = check_claims(&claims, expected, now)?;
        if let Some(nonce_issuer) = &self.nonce_issuer {
            let nonce = claims.get("nonce").and_then(Value::as_str);
            if !nonce.is_some_and(|nonce| nonce_issuer.is_valid(nonce, now)) {
                return Err(InvalidProof::Nonce);
            }
        }
        match self.replay_cache.insert(expected.key, id, now) {
            ReplayCheck::New => Ok(()),
            ReplayCheck::Replayed => Err(InvalidProof::Replayed),
            ReplayCheck::Full => Err(InvalidProof::TooManyProofs),
        }
    }

    /// Returns the claims if the embedded key has signed the proof and is the expected one.
    fn verify_signature(
        &self,
        proof: UnverifiedJwt<'_>,
        key: &str,
    ) -> Result<Map<String, Value>, InvalidProof> {
        if !proof
            .typ()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("dpop+jwt"))
        {
            return Err(InvalidProof::WrongType);
        }
        if !self.algorithms.contains(&proof.algorithm()) {
            return Err(InvalidProof::Algorithm);
        }
        let jwk = proof.header("jwk").and_then(Value::as_object);
        let jwk = Jwk::parse(jwk.ok_or(InvalidJwk::Incomplete)?)?;
        if jwk.thumbprint() != key {
            return Err(InvalidProof::KeyMismatch);
        }
        proof.verify([&jwk]).ok_or(InvalidProof::Signature)
    }
}

/// Checks all claims except nonce and replay; returns the `jti`.
fn check_claims<'c>(
    claims: &'c Map<String, Value>,
    expected: ExpectedProof<'_>,
    now: u64,
) -> Result<&'c str, InvalidProof> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("htm") != Some(expected.method) {
        return Err(InvalidProof::Method);
    }
    let url = without_query(text("htu").unwrap_or_default());
    let mut urls = expected.urls.iter();
    if !urls.any(|own| is_same_resource(without_query(own), url)) {
        return Err(InvalidProof::Url);
    }
    let made = claims.get("iat").and_then(Value::as_f64);
    if !made.is_some_and(|made| (made - now as f64).abs() <= MAX_CLOCK_SKEW_SECONDS as f64) {
        return Err(InvalidProof::Time);
    }
    if text("ath") != Some(&token_hash(expected.token)) {
        return Err(InvalidProof::Token);
    }
    let id = text("jti").filter(|id| (1..=MAX_JTI_BYTES).contains(&id.len()));
    id.ok_or(InvalidProof::Id)
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

impl Default for ProofVerifier {
    /// Accepts every algorithm, and requires no nonce.
    fn default() -> Self {
        Self {
            algorithms: SignatureAlgorithm::ALL.to_vec(),
            nonce_issuer: None,
            // A proof may lie one skew in the future and stays valid for one skew after that.
            replay_cache: ReplayCache::new(
                2 * MAX_CLOCK_SKEW_SECONDS + 1,
                MAX_PROOFS_PER_PERIOD,
                MAX_PROOFS_PER_KEY,
            ),
        }
    }
}

/// Lifetime of a nonce, in seconds.
const NONCE_LIFETIME_SECONDS: u64 = 5 * 60;

/// Issues and recognizes nonces without storing them: each is a time with an HMAC.
pub(super) struct NonceIssuer {
    key: hmac::Key,
}

impl NonceIssuer {
    pub(super) fn new() -> io::Result<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| io::Error::other("no randomness is available for a key"))?;
        Ok(Self { key })
    }

    pub(super) fn issue(&self, now: u64) -> String {
        let time = now.to_be_bytes();
        let tag = hmac::sign(&self.key, &time);
        encode([&time, tag.as_ref()].concat())
    }

    pub(super) fn is_valid(&self, nonce: &str, now: u64) -> bool {
        let Some(nonce) = decode(nonce) else {
            return false;
        };
        let Some((time, tag)) = nonce.split_first_chunk() else {
            return false;
        };
        let age = now.checked_sub(u64::from_be_bytes(*time));
        hmac::verify(&self.key, time, tag).is_ok()
            && age.is_some_and(|age| age < NONCE_LIFETIME_SECONDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_expires_and_is_valid_only_for_its_issuer() {
        let (nonce_issuer, others) = (NonceIssuer::new().unwrap(), NonceIssuer::new().unwrap());
        let nonce = nonce_issuer.issue(1000);

        assert!(nonce_issuer.is_valid(&nonce, 1000) && nonce_issuer.is_valid(&nonce, 1299));
        assert!(!nonce_issuer.is_valid(&nonce, 1300) && !nonce_issuer.is_valid(&nonce, 999));
        assert!(!others.is_valid(&nonce, 1000));
        for forged in [
            "",
            "AAAA",
            "AAAAAAAAA-g",
            &nonce[..nonce.len() - 4],
            "\u{e4}",
        ] {
            assert!(!nonce_issuer.is_valid(forged, 1000), "{forged}");
        }
    }
}
