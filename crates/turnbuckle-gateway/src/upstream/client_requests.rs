//! Client requests of a server on their way to a client.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use turnbuckle_client::relay::ServerRequest;
use turnbuckle_protocol::{Revision, RpcError, jsonrpc::RawObject, meta::keys};

use crate::{
    calls::{
        running::{
            ClientRequest, RunningCall, client_request_method, task_request_method,
            with_server_name,
        },
        url_elicitation,
    },
    convert,
    raw_json::edit,
    tasks::ids::related_task,
    upstream::{
        attribution::Attribution, connection::ConnectionState, roots::KeptRoots,
        session_client::SessionClient,
    },
};

/// The interval of progress for a server that waits for the client. Many give up after a minute without.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// A client request that has been started, in the order of arrival.
pub(super) enum StartedRequest {
    /// The response is known.
    Ready(String),
    Sent(SentRequest),
}

/// A client request that the client got, or will get.
pub(super) struct SentRequest {
    method: &'static str,
    request: ClientRequest,
    /// The revision of the client.
    downstream: Revision,
    effect: ResponseEffect,
    /// Gets the request if the call ends before the client responds.
    later: Option<Arc<SessionClient>>,
    /// The token under which the server expects progress, as JSON.
    progress_token: Option<Box<str>>,
}

/// What the response of the client changes here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResponseEffect {
    None,
    /// It is kept for later requests.
    KeepRoots,
    /// It names a new task of the client.
    NoteTask,
    /// It lists tasks of the client, also those that other servers have requested.
    FilterTasks,
}

impl ResponseEffect {
    fn of_request(params: &str) -> Self {
        if requests_task(params) {
            Self::NoteTask
        } else {
            Self::None
        }
    }
}

impl ConnectionState {
    /// Finds the client of a client request, and starts to pass the request on.
    pub(super) fn start_client_request(
        &self,
        request: &ServerRequest,
    ) -> Result<StartedRequest, RpcError> {
        if let Some(method) = task_request_method(&request.method) {
            let client = self.client_of_task(method, &request.params)?;
            return Ok(StartedRequest::Sent(SentRequest {
                method,
                request: client.start_task_request(method, &request.params),
                downstream: client.revision(),
                effect: match method {
                    "tasks/list" => ResponseEffect::FilterTasks,
                    _ => ResponseEffect::None,
                },
                later: None,
                progress_token: progress_token(&request.params),
            }));
        }
        let method = client_request_method(&request.method)
            .ok_or_else(|| RpcError::method_not_found(&request.method))?;
        let params = self.with_possible_task(method, &request.params)?;
        if let Some(client) = self.client_of_roots(request) {
            return self.start_outside_of_calls(client, method, &params);
        }
        match self.calls.call_of_request(request) {
            Attribution::Call(call) if call.is_suspendable() || !call.is_stateless() => {
                self.start_in_call(&call, method, &params)
            }
            _ => match self.session_client() {
                Some(client) => self.start_outside_of_calls(client, method, &params),
                None => self.refuse(method),
            },
        }
    }

    /// Returns the parameters of a client request without the task that it requests, if the client runs no such tasks.
    fn with_possible_task<'a>(
        &self,
        method: &str,
        params: &'a str,
    ) -> Result<Cow<'a, str>, RpcError> {
        let client = self.session_client();
        if !requests_task(params) || client.is_some_and(|client| client.accepts_task(method)) {
            return Ok(Cow::Borrowed(params));
        }
        edit(params, &["task"], &[]).map(Cow::Owned)
    }

    /// Returns the client that gets a request for its roots, if the request names no call.
    ///
    /// Servers request roots as soon as they are initialized. The call that opened the connection, or happens to run, may end
    /// before the client responds.
    fn client_of_roots(&self, request: &ServerRequest) -> Option<&SessionClient> {
        let is_of_call = request.call.is_some() || related_task(&request.params).is_some();
        let client = self
            .session_client()
            .filter(|_| request.method == "roots/list" && !is_of_call)?;
        client.can_receive().then_some(client)
    }

    /// Passes a client request on in a call that it belongs to.
    fn start_in_call(
        &self,
        call: &Arc<RunningCall>,
        method: &'static str,
        params: &str,
    ) -> Result<StartedRequest, RpcError> {
        let mut effect = ResponseEffect::of_request(params);
        if method == "roots/list" && call.is_stateless() {
            if let Some(roots) = self.roots.get() {
                return Ok(StartedRequest::Ready(roots));
            }
            effect = ResponseEffect::KeepRoots;
        }
        let request = call.start_client_request(method, params, self.revision())?;
        self.note_elicitation(&request);
        Ok(StartedRequest::Sent(SentRequest {
            method,
            request,
            downstream: call.downstream(),
            effect,
            later: self
                .session_client()
                .filter(|_| method == "roots/list")
                .cloned(),
            progress_token: progress_token(params),
        }))
    }

    /// Passes a client request on to the client of a session that has its own connection.
    fn start_outside_of_calls(
        &self,
        client: &SessionClient,
        method: &'static str,
        params: &str,
    ) -> Result<StartedRequest, RpcError> {
        let named = match self.server_label() {
            Some(server) if method == "elicitation/create" => {
                Some(with_server_name(params, &server)?)
            }
            _ => None,
        };
        let sent = named.as_deref().unwrap_or(params);
        let task = related_task(params).and_then(|id| self.tasks.related(&id));
        let request = client.start_request(method, sent, self.revision(), task.as_ref())?;
        self.note_elicitation(&request);
        Ok(StartedRequest::Sent(SentRequest {
            method,
            request,
            downstream: client.revision(),
            effect: ResponseEffect::of_request(params),
            later: None,
            progress_token: progress_token(params),
        }))
    }

    /// Remembers the session that gets a URL elicitation, for its completion.
    fn note_elicitation(&self, request: &ClientRequest) {
        let (params, session) = match request {
            ClientRequest::Sent {
                request, params, ..
            } => (params, request.session()),
            ClientRequest::OutsideOfCalls { stream, params, .. } => {
                (params, Some(stream.session()))
            }
            // Modern clients get no completion.
            ClientRequest::Suspended(_) => return,
        };
        if let Some(id) = url_elicitation::id_of(params) {
            self.elicitations.sent(&id, session);
        }
    }

    /// Rejects a client request that belongs to no known client.
    fn refuse(&self, method: &'static str) -> Result<StartedRequest, RpcError> {
        if method == "roots/list"
            && let Some(roots) = self.roots.get()
        {
            return Ok(StartedRequest::Ready(roots));
        }
        self.roots.note_refused(method);
        self.has_refused_requests.store(true, Ordering::Release);
        if self.slot.get().is_none() {
            return Err(RpcError::internal("no client uses this connection yet"));
        }
        let total = self.server.count_refused_request();
        tracing::warn!(
            server = self.server.name(),
            method,
            total,
            "a client request belongs to no known call; with `--share session` all calls of a connection are those of one client"
        );
        Err(RpcError::internal(
            "the request belongs to no call of a client",
        ))
    }

    /// Waits for the response of the client, and keeps the server from giving up.
    pub(super) async fn finish_client_request(
        &self,
        started: StartedRequest,
    ) -> Result<String, RpcError> {
        let mut sent = match started {
            StartedRequest::Ready(response) => return Ok(response),
            StartedRequest::Sent(sent) => sent,
        };
        let _open = OpenRequestGuard::new(self);
        let token = sent.progress_token.take();
        let keeps_roots = sent.effect == ResponseEffect::KeepRoots;
        let _responded = keeps_roots.then(|| RespondedGuard(&self.roots));
        let response = tokio::select! {
            biased;
            response = sent.response() => response,
            never = self.report_waiting(token.as_deref()) => match never {},
        };
        let response = response.inspect_err(|_| {
            if keeps_roots {
                self.roots.note_refused(sent.method);
            }
        })?;
        let (downstream, upstream) = (sent.downstream, self.revision());
        let response =
            convert::client_request_result(sent.method, &response, downstream, upstream)?;
        match sent.effect {
            ResponseEffect::None => {}
            ResponseEffect::KeepRoots => drop(self.roots.keep(&response)),
            ResponseEffect::NoteTask => self.tasks.note_response(&response),
            ResponseEffect::FilterTasks => return self.tasks.filter_list(&response),
        }
        Ok(response)
    }

    /// Sends progress for a client request at an interval, so that the server does not give up. Never returns.
    async fn report_waiting(&self, token: Option<&str>) -> std::convert::Infallible {
        let Some(token) = token else {
            return std::future::pending().await;
        };
        let mut count = 0_u64;
        loop {
            tokio::time::sleep(PROGRESS_INTERVAL).await;
            count += 1;
            let params = format!(r#"{{"progressToken":{token},"progress":{count}}}"#);
            let Some(client) = self.client.get() else {
                continue;
            };
            // Boxed, so that a request that waits stays small.
            let sent = Box::pin(client.relay_notification("notifications/progress", &params));
            if let Err(error) = sent.await {
                tracing::debug!(server = self.server.name(), %error, "progress was not sent");
            }
        }
    }
}

impl SentRequest {
    async fn response(&mut self) -> Result<String, RpcError> {
        let response = self.request.response().await;
        match (&self.later, &self.request) {
            (
                Some(client),
                ClientRequest::Sent {
                    request, params, ..
                },
            ) if response.is_err() && request.has_ended() => {
                Box::pin(client.request(self.method, params)).await
            }
            _ => response,
        }
    }
}

/// Keeps the connection in use until it is dropped.
struct OpenRequestGuard<'a>(&'a ConnectionState);

impl<'a> OpenRequestGuard<'a> {
    fn new(connection: &'a ConnectionState) -> Self {
        connection.open_requests.fetch_add(1, Ordering::Relaxed);
        Self(connection)
    }
}

impl Drop for OpenRequestGuard<'_> {
    fn drop(&mut self) {
        self.0.note_use();
        self.0.open_requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns whether a client request asks the client to run it as a task.
fn requests_task(params: &str) -> bool {
    RawObject::parse(params).is_ok_and(|params| params.get("task").is_some())
}

/// Tells calls that wait for the roots that the server has a response, when dropped.
struct RespondedGuard<'a>(&'a KeptRoots);

impl Drop for RespondedGuard<'_> {
    fn drop(&mut self) {
        self.0.responded.notify_waiters();
    }
}

/// Returns the progress token of a request, as JSON.
fn progress_token(params: &str) -> Option<Box<str>> {
    let params = RawObject::parse(params).ok()?;
    let meta = RawObject::parse(params.get("_meta")?).ok()?;
    meta.get(keys::PROGRESS_TOKEN).map(Into::into)
}
