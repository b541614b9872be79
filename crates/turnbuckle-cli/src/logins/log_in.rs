//! The steps of `turnbuckle login`: probe the server, get a token, and verify that the server accepts it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use turnbuckle_auth::{
    self as auth, AuthorizationStep, Challenge, Scopes,
    client::{
        FileEncryption, GrantType, OAuth,
        discovery::{self, DiscoveryMethod},
    },
    fetch::{Fetch, FetchError, FetchMethod, FetchRequest, FetchResponse},
};
use turnbuckle_client::{ConnectError, TransportError, http::HttpFetcher};
use turnbuckle_protocol::{authenticator::BoxFuture, revision::NEWEST_DATE};

use super::{
    interactive::InteractiveUser,
    stored_login::{fetcher, oauth, open_store, summarize},
};
use crate::{
    commands::LoginOptions,
    connection,
    context::CommandContext,
    error::{CliError, Result},
    lock,
    logins::LoginSummary,
    target::{CliTarget, config_files::HttpEntry, resolve},
};

/// Logs in to a server. Returns `None` if the server does not use authorization.
pub(crate) async fn log_in(
    target: &CliTarget,
    http_entry: &HttpEntry,
    options: &LoginOptions,
    context: &CommandContext,
) -> Result<Option<LoginSummary>> {
    let store = open_store(context).ok_or_else(|| {
        CliError::could_not_run("no directory to store the login in")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    // Done first, so that a locked keyring is reported before the user logs in.
    if let Some(form) = storage_form(options) {
        store.set_encryption(form).await?;
    }
    let form = store.encryption().await?;
    let probed = probe(target, http_entry, context).await?;
    let fetch = Arc::new(CachingFetcher::new(fetcher(&http_entry.url)?));
    let Some(method) = choose_method(probed, http_entry, options, &fetch, context).await? else {
        return Ok(None);
    };
    let mut oauth = oauth(&http_entry.url, fetch, store, context)?
        .protocol_version(NEWEST_DATE)
        .grant(method.grant)
        .user_agent(InteractiveUser::new(options, context));
    if let Some(scopes) = requested_scopes(options) {
        oauth = oauth.scopes(scopes);
    }
    let login = oauth.log_in(&method.challenges).await;
    let login = login.map_err(|failure| with_client_id_hint(&failure, context))?;
    verify(target, http_entry, &oauth, context).await?;
    Ok(Some(summarize(&login, form)))
}

/// Logs in to a server that rejects requests without credentials. Returns whether it did.
#[allow(dead_code, reason = "used by the optional command `bridge`")]
pub(crate) async fn log_in_if_required(
    target: &CliTarget,
    http_entry: &HttpEntry,
    context: &CommandContext,
) -> Result<bool> {
    match probe(target, http_entry, context).await? {
        AuthProbe::Open => Ok(false),
        AuthProbe::Challenged(_) => {
            let options = LoginOptions::default();
            let login = log_in(target, http_entry, &options, context).await?;
            Ok(login.is_some())
        }
    }
}

/// The response of a server to a request without credentials.
enum AuthProbe {
    /// The server responds.
    Open,
    /// The server requires authorization.
    Challenged(Vec<Challenge>),
}

/// The challenges of the server and the grant to use.
struct LoginMethod {
    challenges: Vec<Challenge>,
    grant: GrantType,
}

/// Connects without credentials, and returns the challenges of the server.
async fn probe(
    target: &CliTarget,
    http_entry: &HttpEntry,
    context: &CommandContext,
) -> Result<AuthProbe> {
    let http = resolve::http_client(http_entry, context);
    match connection::client_builder(target, context)
        .connect(http)
        .await
    {
        Ok(client) => {
            client.close().await;
            Ok(AuthProbe::Open)
        }
        Err(ConnectError::Unreachable(TransportError::ErrorResponse(response)))
            if matches!(response.status.as_u16(), 401 | 403) =>
        {
            // An invalid header is ignored: the metadata may still be at its well-known URL.
            let header = response.challenge.as_deref().unwrap_or_default();
            Ok(AuthProbe::Challenged(
                Challenge::parse(header).unwrap_or_default(),
            ))
        }
        Err(error) => Err(error.into()),
    }
}

/// Chooses the grant. A server that does not require authorization may still support it, for example for some tools.
async fn choose_method(
    probe: AuthProbe,
    http_entry: &HttpEntry,
    options: &LoginOptions,
    fetch: &CachingFetcher,
    context: &CommandContext,
) -> Result<Option<LoginMethod>> {
    let has_browser = !options.no_browser && InteractiveUser::has_browser(&context.environment);
    let challenges = match probe {
        AuthProbe::Challenged(challenges) if has_browser || options.as_client => {
            let grant = grant(options, false);
            return Ok(Some(LoginMethod { challenges, grant }));
        }
        AuthProbe::Challenged(challenges) => Some(challenges),
        AuthProbe::Open => None,
    };
    let known = challenges.as_deref().unwrap_or_default();
    let found = discovery::discover(fetch, &http_entry.url, known, NEWEST_DATE).await;
    let found = match (found, &challenges) {
        (Ok(found), Some(_)) => found,
        (Ok(found), None) if found.method == DiscoveryMethod::ResourceMetadata => found,
        (Err(failure), Some(_)) => return Err(failure.into()),
        (_, None) => return Ok(None),
    };
    let supports_device_flow = found.server.device_authorization_endpoint.is_some();
    Ok(Some(LoginMethod {
        challenges: challenges.unwrap_or_default(),
        grant: grant(options, supports_device_flow && !has_browser),
    }))
}

fn grant(options: &LoginOptions, on_another_device: bool) -> GrantType {
    match (options.as_client, on_another_device) {
        (true, _) => GrantType::ClientCredentials,
        (false, true) => GrantType::DeviceCode,
        (false, false) => GrantType::AuthorizationCode,
    }
}

/// Returns the requested storage of logins; `None` to keep the current one.
fn storage_form(options: &LoginOptions) -> Option<FileEncryption> {
    match (options.keyring, options.no_keyring) {
        (true, _) => Some(FileEncryption::Encrypted),
        (false, true) => Some(FileEncryption::Plaintext),
        (false, false) => None,
    }
}

fn requested_scopes(options: &LoginOptions) -> Option<Scopes> {
    let scopes = options.scopes.iter().cloned();
    scopes.reduce(|all, more| all.union(&more))
}

/// Adds a hint about `--client-id` to a registration error.
fn with_client_id_hint(failure: &auth::AuthorizationError, context: &CommandContext) -> CliError {
    let is_known = context.options.authorization.client_id.is_some();
    match failure.step() {
        AuthorizationStep::Registration if !is_known => CliError::from(failure).hint(
            "get a client id from the operator of the authorization server, and pass it with --client-id ID",
        ),
        _ => failure.into(),
    }
}

/// Connects with the new login. A login that the server rejects is deleted.
async fn verify(
    target: &CliTarget,
    http_entry: &HttpEntry,
    oauth: &OAuth,
    context: &CommandContext,
) -> Result {
    let http = resolve::http_client(http_entry, context).authorization(oauth.clone());
    let client = match connection::client_builder(target, context)
        .connect(http)
        .await
    {
        Ok(client) => client,
        Err(error) => {
            if let ConnectError::Authorization(failure) = &error
                && failure.step() == AuthorizationStep::Use
            {
                oauth.log_out().await?;
            }
            return Err(error.into());
        }
    };
    client.close().await;
    Ok(())
}

/// Fetches, and caches well-known metadata. It lives for one login only, because metadata may change.
pub(super) struct CachingFetcher {
    fetcher: Arc<HttpFetcher>,
    responses: Mutex<HashMap<String, FetchResponse>>,
}

impl CachingFetcher {
    pub(super) fn new(fetcher: Arc<HttpFetcher>) -> Self {
        Self {
            fetcher,
            responses: Mutex::default(),
        }
    }

    fn responses(&self) -> MutexGuard<'_, HashMap<String, FetchResponse>> {
        lock(&self.responses)
    }
}

impl Fetch for CachingFetcher {
    fn fetch(
        &self,
        request: FetchRequest,
    ) -> BoxFuture<'_, std::result::Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            if request.method != FetchMethod::Get || !request.url.contains("/.well-known/") {
                return self.fetcher.fetch(request).await;
            }
            let cached = self.responses().get(&request.url).cloned();
            if let Some(response) = cached {
                return Ok(response);
            }
            let url = request.url.clone();
            let response = self.fetcher.fetch(request).await?;
            self.responses().insert(url, response.clone());
            Ok(response)
        })
    }
}
