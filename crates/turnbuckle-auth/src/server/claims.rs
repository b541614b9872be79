//! What a token says, and whether that lets anybody in here.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};
use turnbuckle_protocol::Principal;

use super::{flaw::Flaw, hierarchy::Hierarchy};
use crate::is_same_resource;

/// Whom tokens must be for, and how clocks and scopes are read.
pub(super) struct Policy {
    resource: String,
    pub(super) audiences: Vec<String>,
    /// In seconds.
    pub(super) leeway: u64,
    pub(super) hierarchy: Hierarchy,
}

/// A token that is valid.
#[derive(Clone)]
pub(super) struct Verified {
    pub(super) principal: Arc<Principal>,
    /// The thumbprint of the key it is bound to.
    pub(super) key: Option<String>,
    /// When it has to be verified again, in seconds since 1970; at the latest when it ends.
    pub(super) until: u64,
}

impl Policy {
    pub(super) fn new(resource: &str) -> Self {
        Self {
            resource: resource.to_owned(),
            audiences: Vec::new(),
            leeway: 60,
            hierarchy: Hierarchy::default(),
        }
    }

    /// Judges claims that come from `issuer` for sure.
    pub(super) fn check(
        &self,
        issuer: &str,
        claims: Map<String, Value>,
        now: u64,
    ) -> Result<Verified, Flaw> {
        if !self.is_for_us(claims.get("aud")) {
            return Err(Flaw::Audience);
        }
        let until = self.check_time(&claims, now)?;
        let key = bound_key(&claims)?;
        let principal = Arc::new(self.principal(issuer, claims)?);
        Ok(Verified {
            principal,
            key,
            until,
        })
    }

    fn is_for_us(&self, audience: Option<&Value>) -> bool {
        let mut audiences = texts(audience);
        audiences.any(|audience| {
            is_same_resource(audience, &self.resource)
                || self.audiences.iter().any(|own| own == audience)
        })
    }

    /// Returns when the token ends.
    fn check_time(&self, claims: &Map<String, Value>, now: u64) -> Result<u64, Flaw> {
        let expires = claims.get("exp").and_then(seconds).ok_or(Flaw::Endless)?;
        if now >= expires.saturating_add(self.leeway) {
            return Err(Flaw::Expired);
        }
        match claims.get("nbf").map(seconds) {
            None => Ok(expires),
            Some(Some(begins)) if begins <= now.saturating_add(self.leeway) => Ok(expires),
            Some(_) => Err(Flaw::Early),
        }
    }

    fn principal(&self, issuer: &str, claims: Map<String, Value>) -> Result<Principal, Flaw> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let client = text("client_id").or_else(|| text("azp")).map(str::to_owned);
        let subject = text("sub").map(str::to_owned).or_else(|| client.clone());
        let subject = subject.filter(|subject| !subject.is_empty());
        let mut principal = Principal::new(issuer, subject.ok_or(Flaw::Nobody)?);
        principal.scopes = scopes(&claims);
        self.hierarchy.expand(&mut principal.scopes);
        principal.client = client;
        principal.claims = claims;
        Ok(principal)
    }
}

/// The thumbprint of the key that the token is bound to; a binding of another kind is one that nobody here checks.
fn bound_key(claims: &Map<String, Value>) -> Result<Option<String>, Flaw> {
    let Some(confirmation) = claims.get("cnf") else {
        return Ok(None);
    };
    let members = confirmation.as_object().ok_or(Flaw::Binding)?;
    match members.get("jkt").and_then(Value::as_str) {
        Some(key) if members.len() == 1 => Ok(Some(key.to_owned())),
        _ => Err(Flaw::Binding),
    }
}

/// `scope` is a text with spaces; `scp`, as some issuers have it, a text or a list.
fn scopes(claims: &Map<String, Value>) -> BTreeSet<String> {
    let written = claims.get("scope").or_else(|| claims.get("scp"));
    let names = texts(written).flat_map(|text| text.split(' '));
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// A text, or each text of a list.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = match value {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    list.iter().filter_map(Value::as_str)
}

/// A time in seconds, which may have a fraction.
fn seconds(value: &Value) -> Option<u64> {
    let whole = value.as_u64();
    // A float beyond the range of the integer becomes its largest value, which is what is meant.
    whole.or_else(|| {
        value
            .as_f64()
            .filter(|time| *time >= 0.0)
            .map(|time| time as u64)
    })
}
