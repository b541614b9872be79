//! What somebody hears who is not let in: what is wrong, and where tokens are to be had.

use std::collections::BTreeSet;

use turnbuckle_protocol::{Principal, guard::Refusal};

use super::{
    DpopPolicy, ResourceServer,
    flaw::{Flaw, NotVerified},
    presented::Scheme,
};
use crate::{Challenge, Scopes, dpop::InvalidProof};

impl ResourceServer {
    /// There is no token.
    pub(super) fn nobody(&self) -> Refusal {
        let challenge = self
            .challenge(self.wanted_scheme())
            .scope(&named(&self.required));
        Refusal::new(401, "a token is needed").challenge(challenge)
    }

    /// There is something that is no token.
    pub(super) fn malformed(&self) -> Refusal {
        let message = "there must be exactly one Authorization header, of a scheme and a token";
        let challenge = self.challenge(self.wanted_scheme());
        Refusal::new(400, message).challenge(challenge.error("invalid_request", message))
    }

    /// The token is not valid, or nobody can say whether it is.
    pub(super) fn not_verified(&self, why: &NotVerified, sent_as: Scheme) -> Refusal {
        match why {
            NotVerified::Flaw(flaw) => self.invalid(flaw, sent_as),
            NotVerified::Unreachable => {
                Refusal::new(503, "tokens cannot be verified at the moment")
            }
        }
    }

    pub(super) fn invalid(&self, flaw: &Flaw, sent_as: Scheme) -> Refusal {
        let message = flaw.to_string();
        let scheme = match flaw {
            Flaw::Bound | Flaw::MustBeBound => Scheme::Dpop,
            Flaw::Unbound => self.wanted_scheme(),
            _ => sent_as,
        };
        let challenge = self.challenge(scheme).error("invalid_token", &message);
        Refusal::new(401, message).challenge(challenge.scope(&named(&self.required)))
    }

    /// The token is fine, and the proof is not.
    pub(super) fn not_proven(&self, why: &InvalidProof) -> Refusal {
        let message = why.to_string();
        let (status, code) = match why {
            InvalidProof::TooMany => return Refusal::new(503, message),
            InvalidProof::OtherKey => (401, "invalid_token"),
            InvalidProof::Nonce => (401, "use_dpop_nonce"),
            _ => (401, "invalid_dpop_proof"),
        };
        let challenge = self.challenge(Scheme::Dpop).error(code, &message);
        let refusal = Refusal::new(status, message).challenge(challenge);
        match self.proofs.nonce(self.clock.time()) {
            Some(nonce) => refusal.nonce(nonce),
            None => refusal,
        }
    }

    /// The caller may do less than is needed; everything that is needed is named at once.
    pub(super) fn insufficient(&self, caller: &Principal, needed: &BTreeSet<String>) -> Refusal {
        let needed: Scopes = needed.iter().cloned().collect();
        let needed = named(&needed.union(&self.required));
        let scheme = match caller.claims.contains_key("cnf") {
            true => Scheme::Dpop,
            false => Scheme::Bearer,
        };
        let message = "the token is not good for this";
        let challenge = self.challenge(scheme).error("insufficient_scope", message);
        Refusal::new(403, message).challenge(challenge.scope(&needed))
    }

    fn challenge(&self, scheme: Scheme) -> Challenge {
        let challenge = match scheme {
            Scheme::Bearer => Challenge::bearer(),
            Scheme::Dpop => Challenge::dpop().with("algs", &self.proofs.accepted()),
        };
        match self.metadata_url() {
            Some(url) => challenge.resource_metadata(&url),
            None => challenge,
        }
    }

    fn wanted_scheme(&self) -> Scheme {
        match self.dpop {
            DpopPolicy::Require => Scheme::Dpop,
            DpopPolicy::Accept | DpopPolicy::Refuse => Scheme::Bearer,
        }
    }
}

/// What is named in challenges and metadata: refresh tokens are between a client and its authorization server.
pub(super) fn named(scopes: &Scopes) -> Scopes {
    let names = scopes.iter().filter(|name| *name != "offline_access");
    names.map(str::to_owned).collect()
}
