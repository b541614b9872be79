//! Who a token is about, if it says so.
//!
//! Nothing is verified: the tokens are our own, and what they say is only shown.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use turnbuckle_auth::Secret;

/// What tokens say of the user.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Claims {
    /// Who it is, in the words of the issuer.
    pub(super) subject: Option<String>,
    /// What people call them.
    pub(super) name: Option<String>,
}

impl Claims {
    /// Reads tokens, of which an earlier one counts more. One that is no JWT says nothing.
    pub(super) fn of<'a>(tokens: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut claims = Self::default();
        for token in tokens {
            let Some(said) = payload(token) else { continue };
            let text = |name: &str| said.get(name).and_then(Value::as_str).map(str::to_owned);
            claims.subject = claims.subject.or_else(|| text("sub"));
            let name = || text("email").or_else(|| text("preferred_username"));
            claims.name = claims.name.or_else(name).or_else(|| text("name"));
        }
        claims
    }
}

fn payload(token: &Secret) -> Option<Map<String, Value>> {
    let mut parts = token.expose().split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = URL_SAFE_NO_PAD.decode(payload).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> Secret {
        Secret::new(format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims)))
    }

    #[test]
    fn the_token_about_the_user_counts_more_than_the_one_for_the_server() {
        let about = token(r#"{"sub": "1", "email": "ada@example.com"}"#);
        let access = token(r#"{"sub": "2", "preferred_username": "ada"}"#);

        let claims = Claims::of([&about, &access]);

        assert_eq!(claims.subject.as_deref(), Some("1"));
        assert_eq!(claims.name.as_deref(), Some("ada@example.com"));
    }

    #[test]
    fn what_is_no_jwt_says_nothing() {
        for text in [
            "",
            "a",
            "a.b",
            "a.b.c",
            "..",
            "e30.WzFd.x",
            "e30.eyJzdWIiOjF9.x",
        ] {
            assert_eq!(
                Claims::of([&Secret::new(text)]),
                Claims::default(),
                "{text}"
            );
        }
    }
}
