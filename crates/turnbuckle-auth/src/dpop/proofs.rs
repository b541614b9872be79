//! The side that checks.

use std::{
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value};

use super::{
    nonces::Nonces,
    prover::token_hash,
    seen::{Seen, Sight},
};
use crate::{
    is_same_resource,
    jwt::{Algorithm, InvalidJwk, InvalidToken, Jwk, Token},
};

/// How old a proof may be, and how far ahead a clock may be, in seconds.
const WINDOW: u64 = 60;
/// The most proofs that are remembered at one time, twice: at most some fifty megabytes, for 4,000 requests in a second.
const MOST_REMEMBERED: usize = 500_000;
/// The most of them that are of one key.
const MOST_OF_ONE: usize = 100_000;
/// The longest `jti` that is read.
const MOST_ID_BYTES: usize = 512;

/// Checks proofs, and remembers them, so that none is used twice.
pub struct Proofs {
    algorithms: Vec<Algorithm>,
    nonces: Option<Nonces>,
    seen: Seen,
}

/// What a proof must be about.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// The URLs by which the request may have come here; of each, the query and the fragment do not count.
    pub urls: &'a [&'a str],
    /// The token that came along.
    pub token: &'a str,
    /// The thumbprint of the key that the token is bound to.
    pub key: &'a str,
}

/// Why a proof proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProof {
    /// There is no proof, or more than one.
    #[error("there must be exactly one proof")]
    Count,
    /// No signed token.
    #[error("the proof cannot be read: {0}")]
    Form(#[from] InvalidToken),
    /// A signed token of another kind.
    #[error("the proof is none: its `typ` is not `dpop+jwt`")]
    Kind,
    /// Signed in a way that is not accepted.
    #[error("the proof is signed in a way that is not accepted")]
    Algorithm,
    /// The key in it is none that verifies.
    #[error("the key of the proof cannot be used: {0}")]
    Key(#[from] InvalidJwk),
    /// Not signed by the key in it.
    #[error("the proof is not signed by its key")]
    Signature,
    /// Of another key than the token is bound to.
    #[error("the token is bound to another key")]
    OtherKey,
    /// For another method.
    #[error("the proof is for another method")]
    Method,
    /// For another URL.
    #[error("the proof is for another URL")]
    Url,
    /// Too old, or from the future.
    #[error("the proof is not of this minute")]
    Time,
    /// For another token.
    #[error("the proof is for another token")]
    Token,
    /// Without a name of its own, or with one that is too long.
    #[error("the proof has no `jti`")]
    Id,
    /// Without a nonce that was given out here lately; the next proof needs the one that is told now.
    #[error("the proof needs a nonce")]
    Nonce,
    /// Used before.
    #[error("the proof was used before")]
    Replayed,
    /// More proofs than can be remembered: try again in a minute.
    #[error("too many proofs in too short a time")]
    TooMany,
}

impl Proofs {
    /// Accepts only proofs that are signed in one of these ways.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Wants every proof to repeat a [nonce](Self::nonce) that was given out at most five minutes ago.
    ///
    /// Fails where the operating system has no randomness to give.
    pub fn require_nonce(mut self) -> io::Result<Self> {
        self.nonces = Some(Nonces::new()?);
        Ok(self)
    }

    /// Returns the nonce for the next proof, if one is needed.
    pub fn nonce(&self, now: SystemTime) -> Option<String> {
        let nonces = self.nonces.as_ref()?;
        Some(nonces.issue(seconds(now)))
    }

    /// Returns the names of the algorithms, as a challenge has them.
    pub fn accepted(&self) -> String {
        let names: Vec<_> = self.algorithms.iter().map(|one| one.as_str()).collect();
        names.join(" ")
    }

    /// Checks the proof that came with a request; each is good for one request.
    pub fn check(
        &self,
        headers: &[&str],
        expected: Expected<'_>,
        now: SystemTime,
    ) -> Result<(), InvalidProof> {
        let [proof] = headers else {
            return Err(InvalidProof::Count);
        };
        let proof = Token::parse(proof)?;
        let claims = self.signed(proof, expected.key)?;
        let now = seconds(now);
        let id = check_claims(&claims, expected, now)?;
        if let Some(nonces) = &self.nonces {
            let nonce = claims.get("nonce").and_then(Value::as_str);
            if !nonce.is_some_and(|nonce| nonces.is_good(nonce, now)) {
                return Err(InvalidProof::Nonce);
            }
        }
        match self.seen.note(expected.key, id, now) {
            Sight::First => Ok(()),
            Sight::Again => Err(InvalidProof::Replayed),
            Sight::TooMany => Err(InvalidProof::TooMany),
        }
    }

    /// What the proof says, if it is signed by the key in it, and that is the one that is wanted.
    fn signed(&self, proof: Token<'_>, key: &str) -> Result<Map<String, Value>, InvalidProof> {
        if !proof
            .kind()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("dpop+jwt"))
        {
            return Err(InvalidProof::Kind);
        }
        if !self.algorithms.contains(&proof.algorithm()) {
            return Err(InvalidProof::Algorithm);
        }
        let jwk = proof.header("jwk").and_then(Value::as_object);
        let jwk = Jwk::parse(jwk.ok_or(InvalidJwk::Incomplete)?)?;
        if jwk.thumbprint() != key {
            return Err(InvalidProof::OtherKey);
        }
        proof.verify([&jwk]).ok_or(InvalidProof::Signature)
    }
}

/// Checks everything but nonce and replay; returns the name of the proof.
fn check_claims<'c>(
    claims: &'c Map<String, Value>,
    expected: Expected<'_>,
    now: u64,
) -> Result<&'c str, InvalidProof> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("htm") != Some(expected.method) {
        return Err(InvalidProof::Method);
    }
    let url = bare(text("htu").unwrap_or_default());
    let mut urls = expected.urls.iter();
    if !urls.any(|own| is_same_resource(bare(own), url)) {
        return Err(InvalidProof::Url);
    }
    let made = claims.get("iat").and_then(Value::as_f64);
    if !made.is_some_and(|made| (made - now as f64).abs() <= WINDOW as f64) {
        return Err(InvalidProof::Time);
    }
    if text("ath") != Some(&token_hash(expected.token)) {
        return Err(InvalidProof::Token);
    }
    let id = text("jti").filter(|id| (1..=MOST_ID_BYTES).contains(&id.len()));
    id.ok_or(InvalidProof::Id)
}

fn bare(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

impl Default for Proofs {
    /// Accepts every algorithm, and wants no nonce.
    fn default() -> Self {
        Self {
            algorithms: Algorithm::ALL.to_vec(),
            nonces: None,
            // A proof may be a window ahead, and is good for a window after that.
            seen: Seen::new(2 * WINDOW + 1, MOST_REMEMBERED, MOST_OF_ONE),
        }
    }
}
