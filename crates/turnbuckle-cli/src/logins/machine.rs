//! Logins of a program itself, without a user.

use turnbuckle_auth::{
    Scopes, Secret,
    client::{GrantType, OAuth},
    jwt::{SignatureAlgorithm, SigningKey},
};
use turnbuckle_client::http::HttpTarget;

use super::{MachineClient, stored_login::fetcher};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    target::{config_files::HttpEntry, resolve},
};

/// Returns an HTTP client that gets tokens with the client's own credentials. They stay in memory.
pub(crate) fn machine_http(
    http_entry: &HttpEntry,
    machine: &MachineClient,
    context: &CommandContext,
) -> Result<HttpTarget> {
    let mut oauth = OAuth::new(&http_entry.url, fetcher(&http_entry.url)?).client_id(&machine.id);
    if let Some(issuer) = &machine.issuer {
        oauth = oauth.issuer(issuer);
    }
    if let Some(scope) = &machine.scope {
        let scopes = scope.parse::<Scopes>();
        let scopes = scopes.map_err(|error| CliError::could_not_run(error.to_string()))?;
        oauth = oauth.scopes(scopes);
    }
    oauth = match &machine.key {
        Some(pem) => oauth.grant(GrantType::ClientCredentialsJwt(signing_key(pem)?)),
        None => oauth.grant(GrantType::ClientCredentials),
    };
    if let Some(secret) = &machine.secret {
        oauth = oauth.client_secret(secret.clone());
    }
    let http = resolve::http_client(http_entry, context);
    Ok(http.authorization(oauth))
}

fn signing_key(pem: &Secret) -> Result<SigningKey> {
    let algorithms = [
        SignatureAlgorithm::Es256,
        SignatureAlgorithm::Es384,
        SignatureAlgorithm::EdDsa,
        SignatureAlgorithm::Rs256,
    ];
    let keys = algorithms.map(|algorithm| SigningKey::from_pem(pem.expose(), algorithm).ok());
    let key = keys.into_iter().flatten().next();
    key.ok_or_else(|| {
        CliError::could_not_run("the client key cannot be used")
            .hint("a key is a PEM file in PKCS#8, not encrypted: P-256, P-384, Ed25519 or RSA")
    })
}
