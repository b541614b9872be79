//! Logins of callers at servers with `auth = { kind = "per-user" }`, in a browser: the pages `/connect/ID`,
//! `/connect/callback` and `/connect/callback/ISSUER`.
//!
//! A link is made for one caller and one server. The page first finds out who is at the browser, at the authorization
//! server of the callers, and goes on only with the caller that the link was made for. All steps of a login belong to one
//! browser, by a cookie: otherwise a caller could let another user finish it. A bridge on a loopback address without
//! authentication has one user, the one at this machine.
//!
//! Each authorization server has a redirect URI of its own: `/connect/callback` is that of the issuer of the callers, and
//! those of servers end with a digest of the issuer. A response at another one is refused.

mod identity;
mod page;
mod table;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::COOKIE};
use turnbuckle_auth::{
    AuthorizationError, Secret,
    client::{UserCredentials, UserLogins},
};
use turnbuckle_client::http::HttpFetcher;
use turnbuckle_gateway::{CallerLogin, CallerLogins, Upstream, UpstreamCaller};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_server::http::WebPages;

use self::{
    identity::{BrowserIdentity, IssuerIdentity},
    page::Page,
    table::{LoginTable, RandomId, Step, TakenLogin, User},
};
use crate::{
    context::CommandContext,
    error::Result,
    listener::auth::CallerAuth,
    lock,
    logins::{self, MachineClient},
    target::{config_files::HttpEntry, resolve},
};

/// What callers read if they cannot log in now.
const NO_LOGIN_HINT: &str = "this caller cannot log in now: it needs a token of the issuer of the bridge, or too many logins are open";

/// The path of the pages.
const PATH: &str = "/connect/";
/// The segment of the redirect URIs.
const CALLBACK: &str = "callback";

/// The pages, and the open logins. Clones share them.
#[derive(Clone)]
pub(super) struct ConnectPages(Arc<PagesState>);

struct PagesState {
    identity: BrowserIdentity,
    /// The origin of the pages, once it is known.
    origin: OnceLock<String>,
    table: Mutex<LoginTable>,
}

impl std::fmt::Debug for ConnectPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectPages").finish_non_exhaustive()
    }
}

impl ConnectPages {
    /// Creates the pages for the callers of a bridge. `client` is the client that the bridge is at their issuer.
    pub(super) fn for_callers(
        authorization: Option<&CallerAuth>,
        client: Option<(String, Option<Secret>)>,
    ) -> Result<Self> {
        let issuer = authorization.and_then(|authorization| authorization.issuer.as_deref());
        let audience = authorization.and_then(|authorization| authorization.audience.as_deref());
        let (Some(issuer), Some(audience)) = (issuer, audience) else {
            return Ok(Self::new(BrowserIdentity::LocalUser));
        };
        let (id, secret) = client.unwrap_or_default();
        let fetch = Arc::new(HttpFetcher::trusted());
        let identity = IssuerIdentity::new(issuer, audience, &id, secret, fetch)?;
        Ok(Self::new(BrowserIdentity::Issuer(Box::new(identity))))
    }

    /// Returns a server where each caller has a login of its own. `client` is the client that the bridge is there, if it
    /// has an id.
    pub(super) fn upstream(
        &self,
        name: &str,
        http_entry: &HttpEntry,
        client: &MachineClient,
        context: &CommandContext,
    ) -> Result<Upstream> {
        let logins = logins::user_logins(http_entry, client, context)?;
        let http = resolve::http_client(http_entry, context);
        let users = logins.clone();
        let target = move |caller: &UpstreamCaller| {
            let credentials = users.user(&User::of_caller(caller).key());
            http.clone().authorization(credentials).into()
        };
        let has_local_user = matches!(self.0.identity, BrowserIdentity::LocalUser);
        Ok(Upstream::per_caller(name, target)
            .caller_logins(self.of_server(name, logins))
            .local_user(has_local_user)
            .login_hint(NO_LOGIN_HINT))
    }

    fn new(identity: BrowserIdentity) -> Self {
        Self(Arc::new(PagesState {
            identity,
            origin: OnceLock::new(),
            table: Mutex::default(),
        }))
    }

    /// Sets the origin of the pages, such as `https://bridge.example.com`. No login starts before.
    pub(super) fn set_origin(&self, origin: String) {
        let _ = self.0.origin.set(origin);
    }

    /// Returns the logins of callers at a server.
    fn of_server(&self, name: &str, logins: UserLogins) -> Arc<ServerLogins> {
        Arc::new(ServerLogins {
            pages: self.clone(),
            server: name.into(),
            logins,
        })
    }
}

/// The logins of callers at one server.
struct ServerLogins {
    pages: ConnectPages,
    server: Arc<str>,
    logins: UserLogins,
}

impl ServerLogins {
    /// Returns the login that a user has to complete.
    fn begin_for(&self, user: User) -> Option<CallerLogin> {
        let state = &self.pages.0;
        let origin = state.origin.get()?;
        if !state.identity.can_identify(&user) {
            return None;
        }
        let credentials = self.logins.user(&user.key());
        let url = |id: &str| format!("{origin}{PATH}{id}");
        lock(&state.table).offer(user, &self.server, credentials, url)
    }
}

impl CallerLogins for ServerLogins {
    fn begin_login(&self, caller: &UpstreamCaller) -> Option<CallerLogin> {
        self.begin_for(User::of_caller(caller))
    }

    fn open_login(&self, caller: &UpstreamCaller) -> Option<CallerLogin> {
        let user = User::of_caller(caller);
        lock(&self.pages.0.table).open_login(&user, &self.server)
    }
}

impl WebPages for ConnectPages {
    fn has_path(&self, path: &str) -> bool {
        path.starts_with(PATH)
    }

    /// The request is processed to its end, also if the browser disconnects: a code can be used only once.
    fn respond(&self, request: Request<()>) -> BoxFuture<'_, Response<Bytes>> {
        let state = Arc::clone(&self.0);
        let page = tokio::spawn(async move { state.respond(&request).await });
        Box::pin(async move {
            let page = page.await;
            let page = page.unwrap_or_else(|_| Page::failed("the bridge could not respond"));
            page.into_response()
        })
    }
}

/// Where a login goes on, in the browser that has a cookie.
struct NextStep {
    url: String,
    step: Step,
}

impl PagesState {
    async fn respond(&self, request: &Request<()>) -> Page {
        let uri = request.uri();
        let Some(segment) = uri.path().strip_prefix(PATH) else {
            return Page::unknown_link();
        };
        if segment.split('/').next() == Some(CALLBACK) {
            return self.callback(request).await;
        }
        if page::is_prefetch(request.headers()) {
            return Page::prefetch();
        }
        let taken = lock(&self.table).take_offered(segment);
        match taken {
            Some(login) => self.open(login).await,
            None => Page::unknown_link(),
        }
    }

    /// The user has opened a link. It cannot be opened again.
    async fn open(&self, login: TakenLogin) -> Page {
        let Some(cookie) = RandomId::new() else {
            return Page::failed("no randomness is available");
        };
        let next = match &self.identity {
            BrowserIdentity::LocalUser => self.at_server(&login.credentials, cookie.digest()).await,
            BrowserIdentity::Issuer(issuer) => {
                let began = issuer.begin(&self.callback_url()).await;
                began.map(|request| NextStep {
                    url: request.url().to_owned(),
                    step: Step::AtIssuer {
                        cookie: cookie.digest(),
                        request: Box::new(request),
                    },
                })
            }
        };
        let page = self.send_to_step(&login, next);
        page.with_cookie(login.number, &cookie, self.is_secure())
    }

    /// An authorization server has sent the browser back.
    async fn callback(&self, request: &Request<()>) -> Page {
        let query = request.uri().query().unwrap_or_default();
        let Some((login, step)) = lock(&self.table).take_by_response(query) else {
            return Page::unknown_link();
        };
        if step.redirect_uri(&self.callback_url()) != Some(&*self.url(request.uri().path())) {
            tracing::warn!(
                server = &*login.server,
                "a login came back at the redirect URI of another authorization server"
            );
            lock(&self.table).remove(login.number);
            return Page::other_authorization_server();
        }
        let cookies = request.headers().get_all(COOKIE).into_iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let cookie = page::cookie(cookies, login.number, self.is_secure());
        if !step.is_of_browser(cookie.as_deref()) {
            tracing::warn!(
                server = &*login.server,
                "a login came back in another browser"
            );
            lock(&self.table).remove(login.number);
            return Page::other_browser();
        }
        match step {
            Step::AtIssuer { cookie, request } => {
                self.identified(login, cookie, *request, query).await
            }
            Step::AtServer { login: pending, .. } => {
                let done = login.credentials.complete_login(*pending, query).await;
                match done {
                    Ok(()) => {
                        lock(&self.table).complete(&login.user, &login.server);
                        tracing::info!(server = &*login.server, "a caller has logged in");
                        Page::done(&login.server)
                    }
                    Err(error) => self.end(&login, &error),
                }
            }
            Step::Offered { .. } | Step::Busy => Page::unknown_link(),
        }
    }

    /// The user has logged in at the issuer of the callers.
    async fn identified(
        &self,
        login: TakenLogin,
        cookie: [u8; 32],
        request: identity::IdentityRequest,
        query: &str,
    ) -> Page {
        let BrowserIdentity::Issuer(issuer) = &self.identity else {
            return Page::unknown_link();
        };
        let user = match issuer.complete(request, query).await {
            Ok(user) => user,
            Err(error) => return self.end(&login, &error),
        };
        if user != login.user {
            tracing::warn!(
                server = &*login.server,
                "another user has opened the login of a caller"
            );
            lock(&self.table).remove(login.number);
            return Page::other_user(&login.server);
        }
        let began = self.at_server(&login.credentials, cookie).await;
        self.send_to_step(&login, began)
    }

    /// Starts the login at the server itself.
    async fn at_server(
        &self,
        credentials: &UserCredentials,
        cookie: [u8; 32],
    ) -> std::result::Result<NextStep, AuthorizationError> {
        let pending = credentials.begin_login(&self.callback_url()).await?;
        Ok(NextStep {
            url: pending.url().to_owned(),
            step: Step::AtServer {
                cookie,
                login: Box::new(pending),
            },
        })
    }

    /// Keeps the next step of a login, and sends the browser there.
    fn send_to_step(
        &self,
        login: &TakenLogin,
        next: std::result::Result<NextStep, AuthorizationError>,
    ) -> Page {
        let NextStep { url, step } = match next {
            Ok(next) => next,
            Err(error) => return self.end(login, &error),
        };
        if lock(&self.table).set_step(login.number, step) {
            Page::redirect(&url)
        } else {
            Page::unknown_link()
        }
    }

    /// Ends a login without success.
    fn end(&self, login: &TakenLogin, error: &AuthorizationError) -> Page {
        tracing::warn!(server = &*login.server, %error, "a caller could not log in");
        lock(&self.table).remove(login.number);
        Page::failed(error.reason())
    }

    /// Returns the redirect URI for the issuer of the callers. Those for servers are below it.
    fn callback_url(&self) -> String {
        self.url(&format!("{PATH}{CALLBACK}"))
    }

    fn url(&self, path: &str) -> String {
        let origin = self.origin.get().map_or("", String::as_str);
        format!("{origin}{path}")
    }

    fn is_secure(&self) -> bool {
        let origin = self.origin.get();
        origin.is_some_and(|origin| origin.starts_with("https:"))
    }
}

impl Page {
    fn unknown_link() -> Self {
        let text = "This link is unknown, was used, or has expired. Repeat the request in your MCP client to get another one.";
        Self::text(StatusCode::NOT_FOUND, "Unknown link", text)
    }

    fn prefetch() -> Self {
        let text = "The link can be opened once, and only by the user.";
        Self::text(StatusCode::FORBIDDEN, "Not opened", text)
    }

    fn other_browser() -> Self {
        let text = "The login was started in another browser. Nothing was changed. Repeat the request in your MCP client, and open the link in one browser.";
        Self::text(StatusCode::FORBIDDEN, "Another browser", text)
    }

    fn other_authorization_server() -> Self {
        let text = "The response came from another authorization server than the login. It was not used. Repeat the request in your MCP client to try again, and tell the operator of the bridge if it happens again.";
        Self::text(StatusCode::FORBIDDEN, "Another authorization server", text)
    }

    fn other_user(server: &str) -> Self {
        let text = format!(
            "This link to log in to `{server}` was made for another user. Nothing was changed. If another user sent it to you, do not use it."
        );
        Self::text(StatusCode::FORBIDDEN, "Another user", &text)
    }

    fn failed(reason: &str) -> Self {
        let text = format!(
            "The login failed: {reason}. Repeat the request in your MCP client to try again."
        );
        Self::text(StatusCode::BAD_GATEWAY, "Not logged in", &text)
    }

    fn done(server: &str) -> Self {
        let text = format!("You are logged in to `{server}`. You can close this page.");
        Self::text(StatusCode::OK, "Logged in", &text)
    }
}
