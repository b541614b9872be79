//! Who asks for a token: how a client shows who it is.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, json};

use crate::{
    Secret,
    client::{form::Form, registration::ClientAuthentication},
    form::basic,
    jwt::{SigningError, SigningKey, encode},
};

use super::Endpoint;

const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// How long a signature of ours is good for, in seconds: for one request, and a clock that is not quite right.
const SECONDS: u64 = 60;

/// Why a client cannot show who it is.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotShow {
    #[error("the client must show a secret, and has none")]
    NoSecret,
    #[error("the client must sign, and has no key")]
    NoKey,
    #[error("the client could not sign: {0}")]
    Signing(#[from] SigningError),
}

/// Adds what shows who the client is: to the form, or as the value of the `Authorization` header.
pub(super) fn show(
    form: Form,
    endpoint: &Endpoint<'_>,
) -> Result<(Form, Option<Secret>), CannotShow> {
    let client = endpoint.client;
    let secret = client.secret.as_ref().ok_or(CannotShow::NoSecret);
    let named = |form: Form| form.with("client_id", &client.id);
    Ok(match client.method {
        ClientAuthentication::None => (named(form), None),
        ClientAuthentication::Basic => (form, Some(basic(&client.id, secret?))),
        ClientAuthentication::Post => {
            let form = named(form).with("client_secret", secret?.expose());
            (form, None)
        }
        ClientAuthentication::PrivateKeyJwt => {
            let key = endpoint.key.ok_or(CannotShow::NoKey)?;
            let assertion = assertion(key, &client.id, &endpoint.server.issuer)?;
            let form = named(form).with("client_assertion_type", JWT_BEARER);
            (form.with("client_assertion", &assertion), None)
        }
    })
}

impl CannotShow {
    /// What to do about it.
    pub(super) fn cure(&self) -> Option<&'static str> {
        match self {
            Self::NoSecret => Some("configure the secret that belongs to the client id"),
            Self::NoKey => Some("configure the key that belongs to the client id"),
            Self::Signing(_) => None,
        }
    }
}

/// The JWT of RFC 7523, section 3. It is for the issuer: what is for the endpoint alone could be carried to another server
/// that names the same endpoint.
fn assertion(key: &SigningKey, id: &str, issuer: &str) -> Result<String, SigningError> {
    let mut unique = [0; 16];
    getrandom::fill(&mut unique).map_err(|_| SigningError::Randomness)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    let claims = json!({
        "iss": id,
        "sub": id,
        "aud": issuer,
        "jti": encode(unique),
        "iat": now,
        "exp": now + SECONDS,
    });
    let header = Map::from_iter([("typ".to_owned(), json!("JWT"))]);
    key.sign(header, &claims)
}
