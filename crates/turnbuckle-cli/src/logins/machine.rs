//! Logins of a program itself, without a user, and tokens that it gets in exchange for those of its callers.

use std::sync::Arc;

use turnbuckle_auth::{
    Scopes, Secret,
    client::{GrantType, OAuth, TokenExchange, UserLogins},
    jwt::{SignatureAlgorithm, SigningKey},
};
use turnbuckle_client::http::{HttpFetcher, HttpTarget};

use super::{
    CallerHttp, MachineClient,
    stored_login::{fetcher, open_store},
};
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
    if let Some(scopes) = requested_scopes(machine)? {
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

/// Returns HTTP clients that get tokens in exchange for those of callers. They stay in memory.
pub(crate) fn exchanging_http(
    http_entry: &HttpEntry,
    machine: &MachineClient,
    context: &CommandContext,
) -> Result<CallerHttp> {
    let issuer = machine.issuer.as_deref().unwrap_or_default();
    let fetch = Arc::new(HttpFetcher::trusted());
    let mut exchange = TokenExchange::new(&http_entry.url, issuer, &machine.id, fetch);
    if let Some(secret) = &machine.secret {
        exchange = exchange.client_secret(secret.clone());
    }
    if let Some(pem) = &machine.key {
        exchange = exchange.client_key(signing_key(pem)?);
    }
    if let Some(scopes) = requested_scopes(machine)? {
        exchange = exchange.scopes(scopes);
    }
    if let Some(resource) = &machine.resource {
        exchange = exchange.resource(resource);
    }
    if let Some(audience) = &machine.audience {
        exchange = exchange.audience(audience);
    }
    let http = resolve::http_client(http_entry, context);
    Ok(Arc::new(move |key, newest_token| {
        let credentials = exchange.caller(key, newest_token);
        http.clone().authorization(credentials)
    }))
}

/// Returns the logins of each caller at a server. They are in the same file as those of the user of this program.
pub(crate) fn user_logins(
    http_entry: &HttpEntry,
    client: &MachineClient,
    context: &CommandContext,
) -> Result<UserLogins> {
    let mut oauth =
        OAuth::new(&http_entry.url, fetcher(&http_entry.url)?).client_name("Turnbuckle bridge");
    if let Some(store) = open_store(context) {
        oauth = oauth.store(store);
    }
    if !client.id.is_empty() {
        oauth = oauth.client_id(&client.id);
    }
    if let Some(secret) = &client.secret {
        oauth = oauth.client_secret(secret.clone());
    }
    if let Some(issuer) = &client.issuer {
        oauth = oauth.issuer(issuer);
    }
    if let Some(scopes) = requested_scopes(client)? {
        oauth = oauth.scopes(scopes);
    }
    Ok(UserLogins::new(oauth))
}

fn requested_scopes(machine: &MachineClient) -> Result<Option<Scopes>> {
    let scopes = machine.scope.as_ref().map(|scope| scope.parse::<Scopes>());
    let scopes = scopes.transpose();
    scopes.map_err(|error| CliError::could_not_run(error.to_string()))
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
