//! Who is asking, as far as a transport could tell.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The authenticated caller of a request.
///
/// A plain value: whoever verified the credentials fills it in, and sessions, subscriptions, tasks and
/// sealed request state are bound to it. Two principals are the same caller when issuer, subject and
/// client agree; scopes and claims may differ between two tokens of one caller.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Principal {
    /// Who vouches for the caller, for example the `iss` of a token.
    pub issuer: String,
    /// The caller, as the issuer names it.
    pub subject: String,
    /// The client program that acts for the caller, if known.
    pub client: Option<String>,
    /// What the caller may do.
    pub scopes: BTreeSet<String>,
    /// Everything else that the issuer says.
    pub claims: Map<String, Value>,
}

impl Principal {
    /// Names a caller by issuer and subject.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            subject: subject.into(),
            ..Self::default()
        }
    }

    /// Says whether both name the same caller, whatever their scopes and claims are.
    pub fn is_same_caller(&self, other: &Self) -> bool {
        (&self.issuer, &self.subject, &self.client)
            == (&other.issuer, &other.subject, &other.client)
    }
}
