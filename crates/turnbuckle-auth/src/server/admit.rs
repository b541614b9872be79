//! The way of a request from its headers to whoever sent it.

use std::{collections::BTreeSet, sync::Arc};

use turnbuckle_protocol::{
    Principal,
    guard::{BoxFuture, Document, Guard, Refusal, Visit},
};

use super::{
    DpopPolicy, ResourceServer,
    claims::Verified,
    flaw::Flaw,
    presented::{Presented, Scheme},
};
use crate::{dpop::Expected, place::Place};

impl Guard for ResourceServer {
    fn admit<'a>(&'a self, visit: Visit<'a>) -> BoxFuture<'a, Result<Arc<Principal>, Refusal>> {
        Box::pin(self.caller(visit))
    }

    fn lacking(&self, caller: &Principal, needed: &BTreeSet<String>) -> Refusal {
        self.insufficient(caller, needed)
    }

    fn document<'a>(&'a self, path: &'a str) -> Option<BoxFuture<'a, Document>> {
        self.document_at(path)
    }
}

impl ResourceServer {
    async fn caller(&self, visit: Visit<'_>) -> Result<Arc<Principal>, Refusal> {
        let presented = match Presented::read(visit.authorization) {
            Ok(Some(presented)) => presented,
            Ok(None) => return Err(self.nobody()),
            Err(_) => return Err(self.malformed()),
        };
        if presented.scheme == Scheme::Dpop && self.dpop == DpopPolicy::Refuse {
            return Err(self.nobody());
        }
        let verified = self.verify(presented.token).await;
        let verified = verified.map_err(|why| self.not_verified(&why, presented.scheme))?;
        self.check_binding(&verified, presented, visit)?;
        let has = |scope: &str| verified.principal.scopes.contains(scope);
        match self.required.iter().all(has) {
            true => Ok(verified.principal),
            false => Err(self.insufficient(&verified.principal, &BTreeSet::new())),
        }
    }

    /// A token that is bound to a key comes with a proof that the key is there, and no other does.
    fn check_binding(
        &self,
        verified: &Verified,
        presented: Presented<'_>,
        visit: Visit<'_>,
    ) -> Result<(), Refusal> {
        let flaw = match (&verified.key, presented.scheme) {
            (Some(key), Scheme::Dpop) => return self.check_proof(key, presented, visit),
            (None, Scheme::Bearer) if self.dpop != DpopPolicy::Require => return Ok(()),
            (None, Scheme::Bearer) => Flaw::MustBeBound,
            (None, Scheme::Dpop) => Flaw::Unbound,
            (Some(_), Scheme::Bearer) if self.dpop == DpopPolicy::Refuse => Flaw::Binding,
            (Some(_), Scheme::Bearer) => Flaw::Bound,
        };
        Err(self.invalid(&flaw, presented.scheme))
    }

    fn check_proof(
        &self,
        key: &str,
        presented: Presented<'_>,
        visit: Visit<'_>,
    ) -> Result<(), Refusal> {
        let origin = Place::parse(&self.resource).map_or("", |place| place.origin);
        // Behind a proxy that changes paths, the URL that clients know is the one of the resource.
        let here = format!("{origin}{}", visit.path);
        let expected = Expected {
            method: visit.method,
            urls: &[&here, &self.resource],
            token: presented.token,
            key,
        };
        let proven = self.proofs.check(visit.dpop, expected, self.clock.time());
        proven.map_err(|why| self.not_proven(&why))
    }
}
