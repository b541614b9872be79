//! Logins: as whom the user is known to servers that ask.
//!
//! [`log_in()`] makes one, with [`person`] at the other end; every other command uses what is [`kept`], and renews it.
//! [`claims`] reads who somebody is from a token, a keyring has the key if they are sealed. Nothing here ever shows a token.

mod claims;
mod fetch_once;
mod kept;
#[cfg(feature = "keyring")]
mod keyring;
mod log_in;
// Tests want to see it in every build.
#[cfg(any(test, not(feature = "keyring")))]
mod no_keyring;
mod page;
mod person;

use std::sync::Arc;

use turnbuckle_auth::client::token::TokenKind;
use turnbuckle_auth::client::{FileForm, FileStore, Login, OAuth};
use turnbuckle_auth::fetch::Fetch;
use turnbuckle_auth::{self as auth, Scopes};
use turnbuckle_client::http::{Fetcher, Http};

use crate::account::Account;
use crate::context::Context;
use crate::credentials;
use crate::failure::{Failure, Result};
use crate::place;
use crate::servers::Remote;
use crate::state;
use crate::target::Target;
use claims::Claims;
use kept::Kept;
#[cfg(feature = "keyring")]
use keyring::SystemKeyring;
pub(crate) use log_in::log_in;
#[cfg(not(feature = "keyring"))]
use no_keyring::SystemKeyring;

/// Prepares to speak with a server, as whom the user is logged in.
///
/// Whoever set a header `Authorization` knows better. Without a login nothing is added: the server's refusal then says all
/// that there is to know.
pub(crate) async fn authorized(
    target: &Target,
    remote: &Remote,
    context: &Context,
) -> Result<Http> {
    let http = place::http(remote, context);
    if remote.names_us() {
        return Ok(http);
    }
    let Some(store) = find_store(context) else {
        return Ok(http);
    };
    let oauth = oauth(&remote.url, fetcher(&remote.url)?, store, context)?;
    match oauth.login().await? {
        Some(_) => Ok(http.authorization(Kept::new(oauth, target))),
        None => Ok(http),
    }
}

/// Returns what goes along with requests to a server that the user is logged in to, for those who make requests themselves.
///
/// A token that is bound to a key needs a proof for each request, which nobody can make beforehand.
pub(crate) async fn headers(remote: &Remote, context: &Context) -> Result<Vec<(String, String)>> {
    let Some(store) = find_store(context).filter(|_| !remote.names_us()) else {
        return Ok(Vec::new());
    };
    let oauth = oauth(&remote.url, fetcher(&remote.url)?, store, context)?;
    match oauth.login().await? {
        Some(login) if login.tokens.kind == TokenKind::Dpop => Err(Failure::not_asked(
            "the login to this server is bound to a key, and cannot be used for a check",
        )
        .hint("send a token that is not, with --token-file FILE")),
        Some(_) => {
            let sending = auth::Sending::new("POST", &remote.url);
            let credentials = auth::Authorize::credentials(&oauth, sending).await?;
            let headers = credentials.headers.iter();
            Ok(headers
                .map(|(name, value)| ((*name).to_owned(), value.expose().to_owned()))
                .collect())
        }
        None => Ok(Vec::new()),
    }
}

/// Says how to become known to a server that asks.
pub(crate) fn advice(target: &Target, names_us: bool) -> String {
    let login = target.command_line("login", "");
    match names_us {
        true => format!(
            "what was sent does not do: it may be over, or be for another server; without it, `{login}` logs in"
        ),
        false => format!("log in with `{login}`, or send a token with --token-file FILE"),
    }
}

/// Forgets the login to a server; says whether there was one.
pub(crate) async fn log_out(url: &str, context: &Context) -> Result<bool> {
    match find_store(context) {
        Some(store) => {
            let oauth = oauth(url, fetcher(url)?, store, context)?;
            Ok(oauth.log_out().await?)
        }
        None => Ok(false),
    }
}

/// Returns all logins.
pub(crate) async fn all(context: &Context) -> Result<Vec<Account>> {
    let Some(store) = find_store(context) else {
        return Ok(Vec::new());
    };
    let form = store.form().await?;
    let logins = store.logins().await?;
    Ok(logins.iter().map(|login| account(login, form)).collect())
}

/// Prepares whoever brings tokens for a server; who asks the user is added where that is wanted.
fn oauth(url: &str, fetch: Arc<dyn Fetch>, store: FileStore, context: &Context) -> Result<OAuth> {
    let mut oauth = OAuth::new(url, fetch).name("Turnbuckle").store(store);
    if let Some(id) = &context.options.authorization.client_id {
        oauth = oauth.client_id(id);
    }
    if let Some(secret) = client_secret(context)? {
        oauth = oauth.client_secret(secret);
    }
    Ok(oauth)
}

fn fetcher(url: &str) -> Result<Arc<Fetcher>> {
    let fetcher = Fetcher::for_server(url);
    fetcher
        .map(Arc::new)
        .map_err(|error| Failure::not_asked(error.to_string()))
}

fn client_secret(context: &Context) -> Result<Option<auth::Secret>> {
    let given = &context.options.authorization;
    let Some(file) = &given.client_secret_file else {
        return Ok(None);
    };
    if given.client_id.is_none() {
        return Err(Failure::not_asked(
            "--client-secret-file needs the --client-id that the secret belongs to",
        ));
    }
    let text = credentials::read(file, context)?;
    let text = text.trim_end_matches(['\r', '\n']);
    match text.is_empty() || text.chars().any(char::is_control) {
        true => {
            let reason = "it has to be one line that is not empty";
            Err(credentials::unusable(file, reason))
        }
        false => Ok(Some(auth::Secret::new(text))),
    }
}

/// Returns where logins are kept, if the user has a place for that.
fn find_store(context: &Context) -> Option<FileStore> {
    let folder = state::folder(&context.environment)?;
    Some(FileStore::new(folder.join("logins")).keyring(SystemKeyring::new()))
}

/// Returns what may be shown of a login.
fn account(login: &Login, form: FileForm) -> Account {
    let tokens = &login.tokens;
    let claims = Claims::of(tokens.id_token.as_ref().into_iter().chain([&tokens.access]));
    let names = |scopes: &Scopes| scopes.iter().map(str::to_owned).collect();
    Account {
        server: login.server_url.clone(),
        issuer: login.issuer().to_owned(),
        subject: claims.subject,
        name: claims.name,
        scopes: tokens.scopes.as_ref().map(names),
        client: login.client.id.clone(),
        expires: tokens.expires,
        renews: tokens.refresh.is_some(),
        bound: tokens.kind == TokenKind::Dpop,
        sealed: form == FileForm::Sealed,
    }
}
