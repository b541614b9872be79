//! Requests of callers that have to log in to a server with an account of their own.
//!
//! A client that can open URLs gets the page of the login as a URL elicitation: a modern one in a round trip, a session by
//! error -32042. Others get the URL as text.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{Params, RawObject, code},
    types::ClientCapabilities,
};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    calls::{TargetName, running::tool_error, state_purpose::StatePurpose},
    catalog::login_tool,
    convert::ListKind,
    errors,
    gateway::{GatewayEvents, GatewayState},
    hops::Hops,
    lifecycle::{UrlRequestPath, is_stateless, url_request_path},
    raw_json::{ObjectWriter, edit},
    upstream::{CallerLogin, UpstreamServer},
};

/// Time in which a client can retry after a login.
const RETRY_TIME: Duration = Duration::from_secs(3600);
/// Time for which a retry waits for the user to complete the login. Clients give up after a minute.
const LOGIN_WAIT: Duration = Duration::from_secs(45);
/// Maximum size of what a client continues after the login.
const MAX_CONTINUED_BYTES: usize = 16 * 1024;
/// The key of the input request.
const INPUT_KEY: &str = "login";
/// The members of a request that continue an earlier one.
const CONTINUATION: [&str; 2] = ["requestState", "inputResponses"];

/// A request that continues one that required a login.
pub(super) enum AfterLogin {
    /// The request as it was before the login.
    Request(RelayedRequest),
    /// The user does not log in.
    Declined,
}

impl GatewayState {
    /// Returns how a request goes on if it is the retry of one that required a login. Waits a while for the user.
    pub(super) async fn resume_after_login(
        &self,
        server: &Arc<UpstreamServer>,
        request: &RelayedRequest,
        target: Option<&TargetName>,
    ) -> Result<Option<AfterLogin>, RpcError> {
        let Some(logins) = &server.settings.caller_logins else {
            return Ok(None);
        };
        if !is_stateless(request.revision()) {
            return Ok(None);
        }
        let params = request.parsed_params();
        let Some(state) = params.string("requestState")? else {
            return Ok(None);
        };
        let purpose = login_purpose(server, request, &params, target);
        let Some(continued) = request.open(&state, &purpose) else {
            return Ok(None);
        };
        let responses = params.get("inputResponses").unwrap_or("{}");
        match action(responses).as_deref() {
            Some("decline" | "cancel") => return Ok(Some(AfterLogin::Declined)),
            Some(_) => {
                let caller = server.caller_of(request)?;
                let open = caller.as_ref().and_then(|caller| logins.open_login(caller));
                if let Some(login) = open {
                    let _ = tokio::time::timeout(LOGIN_WAIT, login.ended()).await;
                }
                if let Some(caller) = &caller {
                    self.pool.forget_failures(server, caller);
                }
            }
            None => {}
        }
        let continued = String::from_utf8_lossy(&continued);
        let continued = RawObject::parse(&continued)?;
        let set: Vec<_> = CONTINUATION
            .into_iter()
            .filter_map(|name| Some((name, continued.get(name)?.to_owned())))
            .collect();
        let params = edit(request.params(), &CONTINUATION, &set)?;
        Ok(Some(AfterLogin::Request(request.with_params(&params)?)))
    }

    /// Asks the caller of a request to log in.
    pub(super) fn request_login(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        request: &RelayedRequest,
        target: Option<&TargetName>,
    ) -> Result<String, RpcError> {
        let caller = server.caller_of(request)?;
        let logins = server.settings.caller_logins.as_ref().zip(caller);
        let Some(login) = logins.and_then(|(logins, caller)| logins.begin_login(&caller)) else {
            return self.readable_login_error(request, server.login_error());
        };
        self.watch_login(server, request, &login);
        let message = format!("Log in to server `{}` with your account.", server.name());
        let capabilities = request.context();
        let capabilities = capabilities.client_capabilities();
        let path = url_request_path(request.revision());
        match path.filter(|_| ClientCapabilities::can_elicit_url(capabilities)) {
            Some(UrlRequestPath::Result) if can_be_continued(request.method()) => {
                match self.login_input_required(server, request, target, &login, &message)? {
                    Some(result) => Ok(result),
                    None => self.login_text(server, request, &login),
                }
            }
            Some(UrlRequestPath::Error) => {
                request.expect_elicitation_complete(login.elicitation_id());
                if let Some(session) = request.session() {
                    login.add_session(session);
                }
                let elicitation = json!({ "mode": "url", "elicitationId": login.elicitation_id(),
                    "url": login.url(), "message": message });
                let error = RpcError::new(code::URL_ELICITATION_REQUIRED, message);
                Err(error.with_data(json!({ "elicitations": [elicitation] })))
            }
            _ => self.login_text(server, request, &login),
        }
    }

    /// Returns the result that asks a modern client to open the page; `None` if the state would be too large.
    fn login_input_required(
        &self,
        server: &UpstreamServer,
        request: &RelayedRequest,
        target: Option<&TargetName>,
        login: &CallerLogin,
        message: &str,
    ) -> Result<Option<String>, RpcError> {
        let params = request.parsed_params();
        let mut continued = ObjectWriter::new();
        for name in CONTINUATION {
            if let Some(value) = params.get(name) {
                continued.member(name, value);
            }
        }
        let continued = continued.finish();
        if continued.len() > MAX_CONTINUED_BYTES {
            return Ok(None);
        }
        let purpose = login_purpose(server, request, &params, target);
        let state = request.seal(continued.as_bytes(), &purpose, RETRY_TIME);
        let params = json!({ "mode": "url", "message": message, "url": login.url() });
        let asked = json!({ INPUT_KEY: { "method": "elicitation/create", "params": params } });
        let mut out = ObjectWriter::new();
        out.string("resultType", "input_required");
        out.member("inputRequests", &asked.to_string());
        out.string("requestState", &state);
        out.member("_meta", self.identity.as_meta());
        Ok(Some(out.finish()))
    }

    /// Names the page of a login to a client that cannot open it.
    fn login_text(
        &self,
        server: &UpstreamServer,
        request: &RelayedRequest,
        login: &CallerLogin,
    ) -> Result<String, RpcError> {
        let hint = format!(
            "the user has to open {} in a browser and log in, then call again",
            login.url()
        );
        let error = errors::login_required(server.name(), Some(&hint));
        self.readable_login_error(request, error)
    }

    /// Returns an error as the result of a tool, which a model can read and tell the user.
    pub(super) fn readable_login_error(
        &self,
        request: &RelayedRequest,
        error: RpcError,
    ) -> Result<String, RpcError> {
        if request.method() == "tools/call" {
            return self.own_result(&tool_error(&error.message), request);
        }
        Err(error)
    }

    /// Returns the response to a user who does not log in.
    pub(super) fn login_declined(
        &self,
        server: &UpstreamServer,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let error = errors::login_required(server.name(), Some("the user has declined it"));
        self.readable_login_error(request, error)
    }

    /// Waits for the end of a login in the background: sessions that were asked to open it are notified, and clients of the
    /// caller request the lists again.
    fn watch_login(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        request: &RelayedRequest,
        login: &CallerLogin,
    ) {
        if !login.begin_watch() {
            return;
        }
        let (state, server) = (Arc::downgrade(self), Arc::clone(server));
        let (login, request) = (login.clone(), request.clone());
        let target = request.principal_target();
        let caller = server.caller_of(&request).ok().flatten();
        tokio::spawn(async move {
            let is_completed = login.ended().await;
            let Some(state) = state.upgrade().filter(|_| is_completed) else {
                return;
            };
            if let Some(caller) = &caller {
                state.pool.forget_failures(&server, caller);
            }
            for session in login.sessions() {
                state.elicitation_completed(login.elicitation_id(), session);
            }
            for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
                state.invalidate(&server, kind);
                state.announce(kind, target.clone());
            }
        });
    }

    /// Calls the tool that is listed for callers that have to log in.
    pub(super) async fn call_login_tool(
        &self,
        server: &Arc<UpstreamServer>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let hops = Hops::of_request(&request.parsed_params(), &self.id)?;
        let connection = self.pool.get(server, request, None).await?;
        // A server can accept a connection without a token, and check tokens only for other requests.
        connection.lists().invalidate(ListKind::Tools);
        connection.list_for(ListKind::Tools, Some(hops)).await?;
        let result = login_tool::done(server.name());
        self.own_result(&result, request)
    }
}

/// Returns whether a request calls the tool for logins.
pub(super) fn calls_login_tool(
    server: &UpstreamServer,
    request: &RelayedRequest,
    target: Option<&TargetName>,
) -> bool {
    server.settings.caller_logins.is_some()
        && request.method() == "tools/call"
        && target.is_some_and(|target| target.original == login_tool::NAME)
}

/// Returns whether a request can have the result `input_required`.
fn can_be_continued(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// What the state of a request that waits for a login is bound to.
fn login_purpose(
    server: &UpstreamServer,
    request: &RelayedRequest,
    params: &Params<'_>,
    target: Option<&TargetName>,
) -> String {
    let purpose = StatePurpose::new(server, request, params, target);
    format!("login for {}", purpose.as_str())
}

/// Returns what the user did.
fn action(responses: &str) -> Option<String> {
    let responses = RawObject::parse(responses).ok()?;
    let response = RawObject::parse(responses.get(INPUT_KEY)?).ok()?;
    response.string("action").ok()?.map(String::from)
}
