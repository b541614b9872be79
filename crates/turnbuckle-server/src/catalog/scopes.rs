//! Scopes that tools, prompts and resources require.
//!
//! Lists include items with scopes that the caller lacks, so that a client can request them.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;
use turnbuckle_protocol::{Principal, RpcError, authenticator::AuthRejection};

use crate::{http::SharedAuthenticator, lifecycle::RequestOrigin};

/// A set of required scopes.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequiredScopes {
    scopes: Option<Arc<BTreeSet<String>>>,
}

/// A text is not a `scope-token` (RFC 6749, section 3.3).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{scope:?} is not a scope: expected visible ASCII characters without space, `\"` or `\\`")]
#[non_exhaustive]
pub struct InvalidScope {
    /// The text.
    pub scope: String,
}

/// The reason that a request is denied.
#[derive(Debug)]
pub(crate) enum RequestDenied {
    /// A protocol error.
    Error(RpcError),
    /// The caller lacks required scopes.
    InsufficientScope(Box<HttpRejection>),
}

/// An error that has an HTTP status of its own, or headers.
#[derive(Debug)]
pub(crate) struct HttpRejection {
    /// The JSON-RPC error. The rejection applies only if this is the response.
    pub(crate) error: RpcError,
    pub(crate) kind: HttpRejectionKind,
}

/// The status and headers of a rejection.
#[derive(Debug)]
pub(crate) enum HttpRejectionKind {
    /// The caller lacks required scopes.
    InsufficientScope(AuthRejection),
    /// 503 with `Retry-After`, in seconds.
    RetryAfter(u64),
}

impl RequiredScopes {
    /// No scopes required.
    pub(crate) const NONE: Self = Self { scopes: None };

    pub(crate) fn is_empty(&self) -> bool {
        self.scopes.is_none()
    }

    /// Checks that the caller has the scopes.
    pub(crate) fn check(&self, origin: &RequestOrigin) -> Result<(), RequestDenied> {
        match &self.scopes {
            None => Ok(()),
            Some(required) => check(required, origin),
        }
    }

    /// Returns whether a principal has the scopes, outside of a request.
    pub(crate) fn allows(&self, principal: Option<&Principal>) -> bool {
        match (&self.scopes, principal) {
            (Some(required), Some(principal)) => required.is_subset(&principal.scopes),
            // A subscriber without a principal is the local user.
            _ => true,
        }
    }

    /// Adds the scopes of another set.
    pub(crate) fn extend(&mut self, other: &Self) {
        match &other.scopes {
            Some(scopes) if self.scopes.is_none() => self.scopes = Some(scopes.clone()),
            Some(scopes) => {
                let all = Arc::make_mut(self.scopes.get_or_insert_default());
                all.extend(scopes.iter().cloned());
            }
            None => {}
        }
    }

    /// Adds scopes, up to the first that is invalid.
    pub(crate) fn add(
        &mut self,
        scopes: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), InvalidScope> {
        let all = Arc::make_mut(self.scopes.get_or_insert_default());
        for scope in scopes {
            let scope = scope.as_ref().to_owned();
            if !is_scope(&scope) {
                return Err(InvalidScope { scope });
            }
            all.insert(scope);
        }
        Ok(())
    }
}

/// A `scope-token` (RFC 6749, section 3.3).
pub(crate) fn is_scope(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.bytes().all(is_allowed)
}

#[cold]
fn check(required: &BTreeSet<String>, origin: &RequestOrigin) -> Result<(), RequestDenied> {
    let rejection = match origin.principal.as_deref() {
        Some(principal) if required.is_subset(&principal.scopes) => return Ok(()),
        Some(principal) => match origin.extensions.get::<SharedAuthenticator>() {
            Some(authenticator) => authenticator
                .inner()
                .insufficient_scope(principal, required),
            None => AuthRejection::new(
                403,
                format!("this requires the scopes {}", quoted_list(required)),
            ),
        },
        // Without a principal on a pipe, the caller is the local user, who could run the server directly.
        None if origin.headers.is_none() => return Ok(()),
        None => AuthRejection::new(
            403,
            format!(
                "this requires the scopes {}, but the server does not authenticate callers",
                quoted_list(required)
            ),
        ),
    };
    let error = RpcError::invalid_request(&*rejection.message)
        .with_data(json!({ "requiredScopes": required }));
    let kind = HttpRejectionKind::InsufficientScope(rejection);
    let rejection = HttpRejection { error, kind };
    Err(RequestDenied::InsufficientScope(Box::new(rejection)))
}

fn quoted_list(scopes: &BTreeSet<String>) -> String {
    let quoted: Vec<_> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
    quoted.join(", ")
}

impl From<RpcError> for RequestDenied {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}
