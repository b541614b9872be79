//! The error of the authorization flow: the failed step, the reason, the request, the response and a hint.

use std::{fmt, sync::Arc};

/// Error of the authorization flow. Cheap to clone.
#[derive(Clone)]
pub struct AuthorizationError(Arc<ErrorDetails>);

struct ErrorDetails {
    step: AuthorizationStep,
    reason: String,
    request: Option<String>,
    response: Option<String>,
    code: Option<String>,
    hint: Option<String>,
}

/// A step of the authorization flow, from the first 401 to a working token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthorizationStep {
    /// Reading the `WWW-Authenticate` challenge.
    Challenge,
    /// Fetching the metadata of the protected resource.
    ResourceMetadata,
    /// Fetching the metadata of the authorization server.
    ServerMetadata,
    /// Registering the client with the authorization server.
    Registration,
    /// Sending the user to the authorization endpoint.
    Authorization,
    /// Receiving the authorization response at the redirect URI.
    Callback,
    /// Waiting for a login with a device code.
    DeviceCode,
    /// Getting an identity assertion from the identity provider.
    Assertion,
    /// Requesting a token.
    Token,
    /// Exchanging the token of a caller.
    Exchange,
    /// Refreshing a token.
    Refresh,
    /// Revoking a token.
    Revocation,
    /// Using a token.
    Use,
    /// Reading or writing the token store.
    Store,
}

impl AuthorizationError {
    /// Creates an error for a step, with a reason.
    pub fn new(step: AuthorizationStep, reason: impl Into<String>) -> Self {
        Self(Arc::new(ErrorDetails {
            step,
            reason: reason.into(),
            request: None,
            response: None,
            code: None,
            hint: None,
        }))
    }

    /// Sets the request that failed: method and URL, without query or body.
    #[must_use]
    pub fn with_request(self, request: impl fmt::Debug) -> Self {
        let request = format!("{request:?}");
        self.update(|details| details.request = Some(request))
    }

    /// Sets the response: the status and, if there is one, the error code.
    #[must_use]
    pub fn with_response(self, response: impl Into<String>) -> Self {
        self.update(|details| details.response = Some(response.into()))
    }

    /// Sets the OAuth error code of the response, such as `invalid_grant` or `access_denied`.
    #[must_use]
    pub fn with_error_code(self, code: impl Into<String>) -> Self {
        self.update(|details| details.code = Some(code.into()))
    }

    /// Sets what the user can do about it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        self.update(|details| details.hint = Some(hint.into()))
    }

    /// Returns the step that failed.
    pub fn step(&self) -> AuthorizationStep {
        self.0.step
    }

    /// Returns the reason.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// Returns the request that failed, if one was sent.
    pub fn request(&self) -> Option<&str> {
        self.0.request.as_deref()
    }

    /// Returns the response, if one was received.
    pub fn response(&self) -> Option<&str> {
        self.0.response.as_deref()
    }

    /// Returns the OAuth error code of the response, if it has one.
    pub fn error_code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// Returns what the user can do about it, if known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    fn update(self, change: impl FnOnce(&mut ErrorDetails)) -> Self {
        let mut details = Arc::try_unwrap(self.0).unwrap_or_else(|shared| ErrorDetails {
            step: shared.step,
            reason: shared.reason.clone(),
            request: shared.request.clone(),
            response: shared.response.clone(),
            code: shared.code.clone(),
            hint: shared.hint.clone(),
        });
        change(&mut details);
        Self(Arc::new(details))
    }
}

impl AuthorizationStep {
    /// Returns what the step does, as text for users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Challenge => "reading the challenge of the server",
            Self::ResourceMetadata => "finding the authorization server",
            Self::ServerMetadata => "reading the metadata of the authorization server",
            Self::Registration => "registering with the authorization server",
            Self::Authorization => "opening the login page",
            Self::Callback => "waiting for the login to finish",
            Self::DeviceCode => "waiting for a login with a device code",
            Self::Assertion => "getting an assertion from the identity provider",
            Self::Token => "requesting a token",
            Self::Exchange => "exchanging the token of a caller",
            Self::Refresh => "refreshing the token",
            Self::Revocation => "revoking the token",
            Self::Use => "using the token",
            Self::Store => "storing the token",
        }
    }
}

impl fmt::Display for AuthorizationStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Formats the step and the reason on one line; [`request`](AuthorizationError::request),
/// [`response`](AuthorizationError::response) and [`hint`](AuthorizationError::hint) have the rest.
impl fmt::Display for AuthorizationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "authorization failed while {}: {}",
            self.0.step, self.0.reason
        )
    }
}

impl fmt::Debug for AuthorizationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationError")
            .field("step", &self.0.step)
            .field("reason", &self.0.reason)
            .field("request", &self.0.request)
            .field("response", &self.0.response)
            .field("hint", &self.0.hint)
            .finish()
    }
}

impl std::error::Error for AuthorizationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_step_and_reason_and_the_rest_has_accessors() {
        let request = crate::fetch::FetchRequest::get("https://a.example/token?code=sesame");
        let failure =
            AuthorizationError::new(AuthorizationStep::Token, "the code was already used")
                .with_request(&request)
                .with_response("400 invalid_grant")
                .with_hint("log in again");

        assert_eq!(
            failure.to_string(),
            "authorization failed while requesting a token: the code was already used"
        );
        assert_eq!(failure.request(), Some("GET https://a.example/token"));
        assert_eq!(failure.clone().response(), Some("400 invalid_grant"));
        assert_eq!(failure.hint(), Some("log in again"));
        assert!(!format!("{failure:?}").contains("sesame"));
    }
}
