//! Validation of token claims.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value};
use turnbuckle_protocol::Principal;

use super::rejection::TokenError;
use crate::is_same_resource;

/// The accepted audiences, the clock leeway and the scope hierarchy.
pub(super) struct ClaimsPolicy {
    resource: String,
    pub(super) audiences: Vec<String>,
    /// In seconds.
    pub(super) leeway: u64,
    pub(super) hierarchy: ScopeHierarchy,
}

/// A valid token.
#[derive(Clone)]
pub(super) struct VerifiedToken {
    pub(super) principal: Arc<Principal>,
    /// Thumbprint of the key that the token is bound to.
    pub(super) key: Option<String>,
    /// Unix time in seconds when it has to be verified again; at the latest when it expires.
    pub(super) expires_at: u64,
}

impl ClaimsPolicy {
    pub(super) fn new(resource: &str) -> Self {
        Self {
            resource: resource.to_owned(),
            audiences: Vec::new(),
            leeway: 60,
            hierarchy: ScopeHierarchy::default(),
        }
    }

    /// Checks claims after their issuer has been verified.
    pub(super) fn check(
        &self,
        issuer: &str,
        claims: Map<String, Value>,
        now: u64,
    ) -> Result<VerifiedToken, TokenError> {
        if !self.is_accepted_audience(claims.get("aud")) {
            return Err(TokenError::WrongAudience);
        }
        let expires_at = self.check_time(&claims, now)?;
        let key = bound_key(&claims)?;
        let mut principal = self.principal(issuer, claims)?;
        principal.expires_at = Some(expires_at.saturating_add(self.leeway));
        Ok(VerifiedToken {
            principal: Arc::new(principal),
            key,
            expires_at,
        })
    }

    fn is_accepted_audience(&self, audience: Option<&Value>) -> bool {
        let mut audiences = strings(audience);
        audiences.any(|audience| {
            is_same_resource(audience, &self.resource)
                || self.audiences.iter().any(|own| own == audience)
        })
    }

    /// Returns the expiry time of the token.
    fn check_time(&self, claims: &Map<String, Value>, now: u64) -> Result<u64, TokenError> {
        let expires = claims
            .get("exp")
            .and_then(seconds)
            .ok_or(TokenError::NoExpiry)?;
        if now >= expires.saturating_add(self.leeway) {
            return Err(TokenError::Expired);
        }
        match claims.get("nbf").map(seconds) {
            None => Ok(expires),
            Some(Some(begins)) if begins <= now.saturating_add(self.leeway) => Ok(expires),
            Some(_) => Err(TokenError::NotYetValid),
        }
    }

    fn principal(&self, issuer: &str, claims: Map<String, Value>) -> Result<Principal, TokenError> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let client = text("client_id").or_else(|| text("azp")).map(str::to_owned);
        let subject = text("sub").map(str::to_owned).or_else(|| client.clone());
        let subject = subject.filter(|subject| !subject.is_empty());
        let mut principal = Principal::new(issuer, subject.ok_or(TokenError::NoSubject)?);
        principal.scopes = scopes(&claims);
        self.hierarchy.expand(&mut principal.scopes);
        principal.client = client;
        principal.claims = claims;
        Ok(principal)
    }
}

/// Returns the thumbprint of the key that the token is bound to. Other kinds of binding cannot be checked and are
/// rejected.
fn bound_key(claims: &Map<String, Value>) -> Result<Option<String>, TokenError> {
    let Some(confirmation) = claims.get("cnf") else {
        return Ok(None);
    };
    let members = confirmation
        .as_object()
        .ok_or(TokenError::UnsupportedBinding)?;
    match members.get("jkt").and_then(Value::as_str) {
        Some(key) if members.len() == 1 => Ok(Some(key.to_owned())),
        _ => Err(TokenError::UnsupportedBinding),
    }
}

/// Reads `scope`, a space-separated string, or `scp`, which some issuers use, a string or a list.
fn scopes(claims: &Map<String, Value>) -> BTreeSet<String> {
    let written = claims.get("scope").or_else(|| claims.get("scp"));
    let names = strings(written).flat_map(|text| text.split(' '));
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// Returns a string, or each string of a list.
fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = match value {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    list.iter().filter_map(Value::as_str)
}

/// Reads a Unix time in seconds, which may have a fraction.
fn seconds(value: &Value) -> Option<u64> {
    let whole = value.as_u64();
    // The cast saturates, which is intended.
    whole.or_else(|| {
        value
            .as_f64()
            .filter(|time| *time >= 0.0)
            .map(|time| time as u64)
    })
}

/// The scopes that a scope implies.
#[derive(Default)]
pub(super) struct ScopeHierarchy(BTreeMap<String, BTreeSet<String>>);

impl ScopeHierarchy {
    pub(super) fn add(
        &mut self,
        scope: String,
        implied: impl IntoIterator<Item = impl Into<String>>,
    ) {
        let below = self.0.entry(scope).or_default();
        below.extend(implied.into_iter().map(Into::into));
    }

    /// Adds all implied scopes, transitively.
    pub(super) fn expand(&self, scopes: &mut BTreeSet<String>) {
        let mut open: Vec<&String> = Vec::new();
        for scope in scopes.iter() {
            open.extend(self.0.get(scope).into_iter().flatten());
        }
        while let Some(scope) = open.pop() {
            if scopes.insert(scope.clone()) {
                open.extend(self.0.get(scope).into_iter().flatten());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implied_scopes_are_transitive_and_cycles_end() {
        let mut hierarchy = ScopeHierarchy::default();
        hierarchy.add("admin".into(), ["write"]);
        hierarchy.add("write".into(), ["read"]);
        hierarchy.add("read".into(), ["write"]);
        let expanded = |scope: &str| {
            let mut scopes = BTreeSet::from([scope.to_owned()]);
            hierarchy.expand(&mut scopes);
            Vec::from_iter(scopes)
        };

        assert_eq!(expanded("admin"), ["admin", "read", "write"]);
        assert_eq!(expanded("read"), ["read", "write"]);
        assert_eq!(expanded("other"), ["other"]);
    }
}
