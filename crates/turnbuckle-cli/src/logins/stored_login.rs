//! Uses stored logins: finds the login for a server, refreshes and deletes it.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use turnbuckle_auth::{
    self as auth, AuthorizationError, AuthorizationStep, CredentialProvider, Credentials,
    RetryDecision, Scopes, Secret, UnauthorizedResponse, UnsignedRequest,
    client::{
        FileEncryption, FileStore, OAuth, Revocation, StoredLogin, split_login_key,
        token::TokenKind,
    },
    fetch::Fetch,
};
use turnbuckle_client::http::{HttpFetcher, HttpTarget};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_text::shell;

#[cfg(feature = "keyring")]
use super::keyring::SystemKeyring;
#[cfg(not(feature = "keyring"))]
use super::without_keyring::SystemKeyring;
use crate::{
    context::CommandContext,
    credentials,
    error::{CliError, Result, warning},
    logins::LoginSummary,
    state_files,
    target::{CliTarget, config_files::HttpEntry, resolve},
};

/// Returns an HTTP client that uses the login for a server, if there is one.
///
/// An `Authorization` header in the configuration or on the command line takes precedence. Without a login the
/// server's own error is reported.
pub(crate) async fn authorized_http(
    target: &CliTarget,
    http_entry: &HttpEntry,
    context: &CommandContext,
) -> Result<HttpTarget> {
    let http = resolve::http_client(http_entry, context);
    if http_entry.has_credentials() {
        return Ok(http);
    }
    let Some(store) = open_store(context) else {
        return Ok(http);
    };
    let oauth = oauth(&http_entry.url, fetcher(&http_entry.url)?, store, context)?;
    match oauth.stored_login().await? {
        Some(_) => Ok(http.authorization(StoredCredentials::new(oauth, target))),
        None => Ok(http),
    }
}

/// Returns the headers of the login for a server, for callers that send requests themselves.
///
/// A key-bound token needs a new proof for each request, so it cannot be used here.
#[allow(dead_code, reason = "used by the optional command `check`")]
pub(crate) async fn login_headers(
    http_entry: &HttpEntry,
    context: &CommandContext,
) -> Result<Vec<(String, String)>> {
    let Some(store) = open_store(context).filter(|_| !http_entry.has_credentials()) else {
        return Ok(Vec::new());
    };
    let oauth = oauth(&http_entry.url, fetcher(&http_entry.url)?, store, context)?;
    match oauth.stored_login().await? {
        Some(login) if login.tokens.kind == TokenKind::Dpop => Err(CliError::could_not_run(
            "the login to this server is bound to a key and cannot be used for a check",
        )
        .hint("send an unbound token with --token-file FILE")),
        Some(_) => {
            let sending = auth::UnsignedRequest::new("POST", &http_entry.url);
            let credentials = auth::CredentialProvider::credentials(&oauth, sending).await?;
            let headers = credentials.headers.iter();
            Ok(headers
                .map(|(name, value)| ((*name).to_owned(), value.expose().to_owned()))
                .collect())
        }
        None => Ok(Vec::new()),
    }
}

/// Returns a hint how to log in.
pub(crate) fn login_hint(target: &CliTarget, has_credentials: bool) -> String {
    let login = target.command_line("login", "");
    if has_credentials {
        format!(
            "the credentials were rejected: they may have expired, or be for another server; remove them, and log in with `{login}`"
        )
    } else {
        format!("log in with `{login}`, or send a token with --token-file FILE")
    }
}

/// Deletes the login with a key in the store, and revokes its tokens; returns whether there was one.
///
/// If the tokens cannot be revoked, prints a warning.
pub(crate) async fn log_out(key: &str, context: &CommandContext) -> Result<bool> {
    let Some(store) = open_store(context) else {
        return Ok(false);
    };
    // The fragment of a key is not part of a URL for requests.
    let (url, _) = split_login_key(key);
    let oauth = oauth(key, fetcher(url)?, store, context)?;
    let revocation = oauth.log_out().await?;
    if let Some(Revocation::Failed(failure)) = &revocation {
        let response = failure.response().map(|text| format!(" ({text})"));
        let message = format!(
            "the tokens were deleted, but not revoked, and may stay valid until they expire: {}{}",
            failure.reason(),
            response.unwrap_or_default()
        );
        context.ui.print(&warning(&message));
    }
    Ok(revocation.is_some())
}

/// Returns all stored logins.
pub(crate) async fn list(context: &CommandContext) -> Result<Vec<LoginSummary>> {
    let Some(store) = open_store(context) else {
        return Ok(Vec::new());
    };
    let form = store.encryption().await?;
    let logins = store.logins().await?;
    Ok(logins.iter().map(|login| summarize(login, form)).collect())
}

/// Creates the OAuth client for a server, without user interaction.
pub(super) fn oauth(
    url: &str,
    fetch: Arc<dyn Fetch>,
    store: FileStore,
    context: &CommandContext,
) -> Result<OAuth> {
    let mut oauth = OAuth::new(url, fetch)
        .client_name("Turnbuckle")
        .store(store);
    if let Some(id) = &context.options.authorization.client_id {
        oauth = oauth.client_id(id);
    }
    if let Some(secret) = client_secret(context)? {
        oauth = oauth.client_secret(secret);
    }
    Ok(oauth)
}

pub(super) fn fetcher(url: &str) -> Result<Arc<HttpFetcher>> {
    let fetcher = HttpFetcher::for_server(url);
    fetcher
        .map(Arc::new)
        .map_err(|error| CliError::could_not_run(error.to_string()))
}

fn client_secret(context: &CommandContext) -> Result<Option<auth::Secret>> {
    let given = &context.options.authorization;
    let Some(file) = &given.client_secret_file else {
        return Ok(None);
    };
    if given.client_id.is_none() {
        return Err(CliError::could_not_run(
            "--client-secret-file needs --client-id",
        ));
    }
    let text = credentials::read_secret(file, context)?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() || text.chars().any(char::is_control) {
        let reason = "expected one line that is not empty";
        Err(credentials::invalid_secret(file, reason))
    } else {
        Ok(Some(auth::Secret::new(text)))
    }
}

/// Returns the store of logins, if there is a state directory.
pub(super) fn open_store(context: &CommandContext) -> Option<FileStore> {
    let folder = state_files::dir(&context.environment)?;
    Some(FileStore::new(folder.join("logins")).keyring(SystemKeyring::new()))
}

/// Returns the parts of a login that may be shown.
pub(super) fn summarize(login: &StoredLogin, form: FileEncryption) -> LoginSummary {
    let tokens = &login.tokens;
    let claims =
        TokenClaims::from_tokens(tokens.id_token.as_ref().into_iter().chain([&tokens.access]));
    let (server, user) = split_login_key(&login.server_url);
    let names = |scopes: &Scopes| scopes.iter().map(str::to_owned).collect();
    LoginSummary {
        key: login.server_url.clone(),
        server: server.to_owned(),
        user: user.map(str::to_owned),
        issuer: login.issuer().to_owned(),
        subject: claims.subject,
        name: claims.name,
        scopes: tokens.scopes.as_ref().map(names),
        client_id: login.client.id.clone(),
        expires_at: tokens.expires,
        renewable: tokens.refresh.is_some(),
        key_bound: tokens.kind == TokenKind::Dpop,
        is_encrypted: form == FileEncryption::Encrypted,
    }
}

/// Credentials from a stored login, which are refreshed. If the user has to log in again, the error has the command.
pub(super) struct StoredCredentials {
    oauth: OAuth,
    target: CliTarget,
}

impl StoredCredentials {
    pub(super) fn new(oauth: OAuth, target: &CliTarget) -> Self {
        let target = target.clone();
        Self { oauth, target }
    }

    async fn renew(
        &self,
        unauthorized: UnauthorizedResponse<'_>,
    ) -> std::result::Result<RetryDecision, AuthorizationError> {
        let next = self.oauth.on_unauthorized(unauthorized).await;
        next.map_err(|failure| match failure.step() {
            AuthorizationStep::Authorization => self.login_required(unauthorized),
            _ => failure,
        })
    }

    fn login_required(&self, unauthorized: UnauthorizedResponse<'_>) -> AuthorizationError {
        let parameter = |name| {
            unauthorized
                .challenges
                .iter()
                .find_map(|one| one.parameter(name))
        };
        let error = parameter("error");
        let scope = parameter("scope").filter(|_| error == Some("insufficient_scope"));
        let reason = match scope {
            Some(scope) => format!("the login lacks the scope `{scope}`"),
            None => "the login has expired and cannot be refreshed".to_owned(),
        };
        let option = scope.map(|scope| format!("--scope {}", shell::quote(scope)));
        let login = self
            .target
            .command_line("login", &option.unwrap_or_default());
        let url = unauthorized
            .request
            .url
            .split('?')
            .next()
            .unwrap_or_default();
        let response = format!("{} {}", unauthorized.status, error.unwrap_or_default());
        AuthorizationError::new(AuthorizationStep::Use, reason)
            .with_request(format_args!("{} {url}", unauthorized.request.method))
            .with_response(response.trim_end())
            .with_hint(format!("log in again with `{login}`"))
    }
}

impl CredentialProvider for StoredCredentials {
    fn credentials<'a>(
        &'a self,
        sending: UnsignedRequest<'a>,
    ) -> BoxFuture<'a, std::result::Result<Credentials, AuthorizationError>> {
        self.oauth.credentials(sending)
    }

    fn on_unauthorized<'a>(
        &'a self,
        unauthorized: UnauthorizedResponse<'a>,
    ) -> BoxFuture<'a, std::result::Result<RetryDecision, AuthorizationError>> {
        Box::pin(self.renew(unauthorized))
    }

    fn set_dpop_nonce(&self, nonce: &str) {
        self.oauth.set_dpop_nonce(nonce);
    }
}

/// The claims of tokens about the user.
///
/// They are only shown, so they are not verified.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TokenClaims {
    /// The subject, as the issuer names it.
    pub(super) subject: Option<String>,
    /// A readable name of the user.
    pub(super) name: Option<String>,
}

impl TokenClaims {
    /// Reads claims from tokens; earlier tokens take precedence. Tokens that are not JWTs are skipped.
    pub(super) fn from_tokens<'a>(tokens: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut claims = Self::default();
        for token in tokens {
            let Some(payload) = payload(token) else {
                continue;
            };
            let text = |name: &str| payload.get(name).and_then(Value::as_str).map(str::to_owned);
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
    fn id_token_claims_precede_access_token_claims() {
        let about = token(r#"{"sub": "1", "email": "ada@example.com"}"#);
        let access = token(r#"{"sub": "2", "preferred_username": "ada"}"#);

        let claims = TokenClaims::from_tokens([&about, &access]);

        assert_eq!(claims.subject.as_deref(), Some("1"));
        assert_eq!(claims.name.as_deref(), Some("ada@example.com"));
    }

    #[test]
    fn a_token_that_is_not_a_jwt_has_no_claims() {
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
                TokenClaims::from_tokens([&Secret::new(text)]),
                TokenClaims::default(),
                "{text}"
            );
        }
    }
}
