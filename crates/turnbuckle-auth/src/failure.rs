//! What went wrong on the way to a token: the step, the request, the answer, the likely cause, the cure.

use std::{fmt, sync::Arc};

/// Why there is no token. Cheap to clone.
#[derive(Clone)]
pub struct Failure(Arc<Parts>);

struct Parts {
    step: Step,
    reason: String,
    request: Option<String>,
    answer: Option<String>,
    code: Option<String>,
    cure: Option<String>,
}

/// A step on the way from a refusal to a token that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Reading what the server wants.
    Challenge,
    /// Finding the metadata of the protected resource.
    ResourceMetadata,
    /// Finding the metadata of the authorization server.
    ServerMetadata,
    /// Becoming known to the authorization server.
    Registration,
    /// Sending the user to log in.
    Authorization,
    /// Hearing how the login went.
    Callback,
    /// Waiting for a login on another device.
    DeviceCode,
    /// Getting an assertion from the identity provider.
    Assertion,
    /// Getting a token.
    Token,
    /// Getting a new token for an old one.
    Refresh,
    /// Using a token.
    Use,
    /// Reading or writing what is kept.
    Store,
}

impl Failure {
    /// Says at which step, and why.
    pub fn new(step: Step, reason: impl Into<String>) -> Self {
        Self(Arc::new(Parts {
            step,
            reason: reason.into(),
            request: None,
            answer: None,
            code: None,
            cure: None,
        }))
    }

    /// Says what was asked: a method and a URL, never a query or a body.
    #[must_use]
    pub fn request(self, request: impl fmt::Debug) -> Self {
        let request = format!("{request:?}");
        self.changed(|parts| parts.request = Some(request))
    }

    /// Says what was answered: a status and, at most, the error that it names.
    #[must_use]
    pub fn answer(self, answer: impl Into<String>) -> Self {
        self.changed(|parts| parts.answer = Some(answer.into()))
    }

    /// Says by which name the server calls the error: `invalid_grant`, `access_denied`, …
    #[must_use]
    pub fn code(self, code: impl Into<String>) -> Self {
        self.changed(|parts| parts.code = Some(code.into()))
    }

    /// Says what to do about it.
    #[must_use]
    pub fn cure(self, cure: impl Into<String>) -> Self {
        self.changed(|parts| parts.cure = Some(cure.into()))
    }

    /// Returns the step that failed.
    pub fn step(&self) -> Step {
        self.0.step
    }

    /// Returns why.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// Returns what was asked, if anything was.
    pub fn asked(&self) -> Option<&str> {
        self.0.request.as_deref()
    }

    /// Returns what was answered, if anything was.
    pub fn answered(&self) -> Option<&str> {
        self.0.answer.as_deref()
    }

    /// Returns by which name the server calls the error, if it named one.
    pub fn error_code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// Returns what to do about it, if that is known.
    pub fn advice(&self) -> Option<&str> {
        self.0.cure.as_deref()
    }

    fn changed(self, change: impl FnOnce(&mut Parts)) -> Self {
        let mut parts = Arc::try_unwrap(self.0).unwrap_or_else(|shared| Parts {
            step: shared.step,
            reason: shared.reason.clone(),
            request: shared.request.clone(),
            answer: shared.answer.clone(),
            code: shared.code.clone(),
            cure: shared.cure.clone(),
        });
        change(&mut parts);
        Self(Arc::new(parts))
    }
}

impl Step {
    /// Returns what is done in it, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Challenge => "reading what the server wants",
            Self::ResourceMetadata => "finding out who gives tokens for the server",
            Self::ServerMetadata => "reading the metadata of the authorization server",
            Self::Registration => "registering with the authorization server",
            Self::Authorization => "sending you to log in",
            Self::Callback => "hearing how the login went",
            Self::DeviceCode => "waiting for a login on another device",
            Self::Assertion => "getting an assertion from the identity provider",
            Self::Token => "getting a token",
            Self::Refresh => "refreshing the token",
            Self::Use => "using the token",
            Self::Store => "keeping the token",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line; [`asked`](Failure::asked), [`answered`](Failure::answered) and [`advice`](Failure::advice) say more.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "authorization failed while {}: {}",
            self.0.step, self.0.reason
        )
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("step", &self.0.step)
            .field("reason", &self.0.reason)
            .field("request", &self.0.request)
            .field("answer", &self.0.answer)
            .field("cure", &self.0.cure)
            .finish()
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_the_step_and_the_reason_and_the_rest_can_be_asked_for() {
        let request = crate::fetch::Request::get("https://a.example/token?code=sesame");
        let failure = Failure::new(Step::Token, "the code was used before")
            .request(&request)
            .answer("400 invalid_grant")
            .cure("log in again");

        assert_eq!(
            failure.to_string(),
            "authorization failed while getting a token: the code was used before"
        );
        assert_eq!(failure.asked(), Some("GET https://a.example/token"));
        assert_eq!(failure.clone().answered(), Some("400 invalid_grant"));
        assert_eq!(failure.advice(), Some("log in again"));
        assert!(!format!("{failure:?}").contains("sesame"));
    }
}
