//! Whose token it is.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    Issuer, ResourceServer,
    cache::digest,
    claims::Verified,
    flaw::{Flaw, NotVerified},
};
use crate::{
    Secret,
    jwt::{InvalidToken, Token},
};

/// How long a signature is not checked again, in seconds: a key that its issuer takes back counts no longer than this.
const SIGNED: u64 = 5 * 60;
/// How long the answer of an issuer counts, in seconds.
const ACTIVE: u64 = 60;
/// How long a token that was refused is refused again without a look, in seconds.
const REFUSED: u64 = 10;

impl ResourceServer {
    /// Returns whose token it is; most often from memory.
    pub(super) async fn verify(&self, token: &str) -> Result<Verified, NotVerified> {
        if token.len() > Token::MOST_BYTES {
            return Err(Flaw::TooLong.into());
        }
        if let Some(verified) = self.known(token) {
            return Ok(verified);
        }
        let (digest, now) = (digest(token), self.clock.now());
        if let Some(verified) = self.verified.get(&digest, now) {
            return Ok(verified);
        }
        if let Some(flaw) = self.rejected.get(&digest, now) {
            return Err(flaw.into());
        }
        let outcome = match Token::parse(token) {
            Ok(signed) => self.of_named_issuer(signed, token).await,
            Err(error) => self.of_any_issuer(token, error).await,
        };
        match &outcome {
            Ok(verified) => self.verified.put(digest, verified.until, verified.clone()),
            Err(NotVerified::Flaw(flaw)) => self.rejected.put(digest, now + REFUSED, flaw.clone()),
            Err(NotVerified::Unreachable) => {}
        }
        outcome
    }

    /// One of the tokens that are known from the start. Every one of them is compared, whichever it is.
    fn known(&self, token: &str) -> Option<Verified> {
        if self.tokens.is_empty() {
            return None;
        }
        let token = Secret::new(token);
        let found = self.tokens.iter().fold(None, |found, (own, principal)| {
            if own.is_same(&token) {
                Some(principal)
            } else {
                found
            }
        });
        found.map(|principal| Verified {
            principal: Arc::clone(principal),
            key: None,
            until: u64::MAX,
        })
    }

    /// A signed token says who issued it. If that is nobody we trust, nobody is asked.
    async fn of_named_issuer(&self, token: Token<'_>, text: &str) -> Result<Verified, NotVerified> {
        let named = token.unverified_claim("iss").and_then(Value::as_str);
        let mut issuers = self.issuers.iter();
        let issuer = issuers.find(|issuer| Some(issuer.name()) == named);
        let issuer = issuer.ok_or(Flaw::Issuer)?;
        if issuer.is_asked() {
            return self.judge(issuer, issuer.ask(text, &self.fetch).await?, ACTIVE);
        }
        let claims = issuer.verify(token, &self.algorithms, &self.fetch, &self.clock);
        self.judge(issuer, claims.await?, SIGNED)
    }

    /// Any other token only its issuer can read. Who that is cannot be seen, so each is asked until one knows it.
    async fn of_any_issuer(
        &self,
        text: &str,
        error: InvalidToken,
    ) -> Result<Verified, NotVerified> {
        let flaw = match self.issuers.is_empty() {
            true => Flaw::Unknown,
            false => Flaw::Form(error),
        };
        let mut why = NotVerified::Flaw(flaw);
        for issuer in self.issuers.iter().filter(|issuer| issuer.is_asked()) {
            let claims = issuer.ask(text, &self.fetch).await;
            match claims.and_then(|claims| self.judge(issuer, claims, ACTIVE)) {
                Ok(verified) => return Ok(verified),
                // "No" is known only if everybody could be asked.
                Err(_) if matches!(why, NotVerified::Unreachable) => {}
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    fn judge(
        &self,
        issuer: &Issuer,
        claims: Map<String, Value>,
        lifetime: u64,
    ) -> Result<Verified, NotVerified> {
        let now = self.clock.now();
        let verified = self.policy.check(issuer.name(), claims, now)?;
        let until = verified.until.min(now + lifetime);
        Ok(Verified { until, ..verified })
    }
}
