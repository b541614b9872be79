//! Who asks for a token: how a client shows who it is.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    Failure, Secret, Step,
    client::{
        form::{self, Form},
        registration::ClientAuthentication,
    },
};

use super::Endpoint;

pub(super) use placeholder::{Prover, SigningKey};

/// Adds what shows who the client is: to the form, or as the value of the `Authorization` header.
pub(in crate::client) fn apply(
    form: Form,
    endpoint: &Endpoint<'_>,
    step: Step,
) -> Result<(Form, Option<Secret>), Failure> {
    let client = endpoint.client;
    let secret = || {
        client.secret.as_ref().ok_or_else(|| {
            Failure::new(step, "the client must show a secret, and has none")
                .cure("configure the secret that belongs to the client id")
        })
    };
    Ok(match client.method {
        ClientAuthentication::None => (form.with("client_id", &client.id), None),
        ClientAuthentication::Post => {
            let form = form.with("client_id", &client.id);
            (form.with("client_secret", secret()?.expose()), None)
        }
        ClientAuthentication::Basic => (form, Some(basic(&client.id, secret()?))),
        ClientAuthentication::PrivateKeyJwt => {
            return Err(Failure::new(step, "signing is not there yet"));
        }
    })
}

/// The header of RFC 6749, section 2.3.1: id and secret are encoded as in a form before they are joined.
fn basic(id: &str, secret: &Secret) -> Secret {
    let pair = format!("{}:{}", form::encode(id), form::encode(secret.expose()));
    Secret::new(format!("Basic {}", STANDARD.encode(pair)))
}

mod placeholder {
    use crate::Secret;

    /// A key.
    pub struct SigningKey;
    /// A prover.
    pub struct Prover;

    impl Prover {
        /// A proof.
        pub fn proof(
            &self,
            _: &str,
            _: &str,
            _: Option<&Secret>,
            _: Option<&str>,
        ) -> Result<String, std::io::Error> {
            Err(std::io::Error::other("not there yet"))
        }
    }
}
