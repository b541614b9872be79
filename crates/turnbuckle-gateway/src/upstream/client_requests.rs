//! Client requests of a server on their way to a client.

use std::{sync::Arc, time::Duration};

use turnbuckle_client::relay::ServerRequest;
use turnbuckle_protocol::{RpcError, jsonrpc::RawObject, meta::keys};

use crate::{
    calls::running::{ClientRequest, RunningCall, client_request_method},
    upstream::{attribution::Attribution, connection::ConnectionState},
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
    call: Arc<RunningCall>,
    /// The token under which the server expects progress, as JSON.
    progress_token: Option<Box<str>>,
}

impl ConnectionState {
    /// Finds the client of a client request, and starts to pass the request on.
    pub(super) fn start_client_request(
        &self,
        request: &ServerRequest,
    ) -> Result<StartedRequest, RpcError> {
        let method = client_request_method(&request.method)
            .ok_or_else(|| RpcError::method_not_found(&request.method))?;
        let call = match self.calls.call_of_request(request) {
            Attribution::Call(call) if call.is_suspendable() || !call.is_stateless() => call,
            _ => return self.refuse(method),
        };
        if method == "roots/list"
            && call.is_stateless()
            && let Some(roots) = self.roots.get()
        {
            return Ok(StartedRequest::Ready(roots));
        }
        let started = call.start_client_request(method, &request.params, self.revision())?;
        Ok(StartedRequest::Sent(SentRequest {
            method,
            request: started,
            call,
            progress_token: progress_token(&request.params),
        }))
    }

    /// Rejects a client request that belongs to no known client.
    fn refuse(&self, method: &'static str) -> Result<StartedRequest, RpcError> {
        if method == "roots/list"
            && let Some(roots) = self.roots.get()
        {
            return Ok(StartedRequest::Ready(roots));
        }
        self.roots.note_refused(method);
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
        let response = tokio::select! {
            biased;
            response = sent.request.response() => response?,
            never = self.report_waiting(sent.progress_token.as_deref()) => match never {},
        };
        let response = sent
            .call
            .client_response(sent.method, &response, self.revision())?;
        if sent.method == "roots/list" && sent.call.is_stateless() {
            self.roots.keep(&response);
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
            if let Some(client) = self.client.get()
                && let Err(error) = client
                    .relay_notification("notifications/progress", &params)
                    .await
            {
                tracing::debug!(server = self.server.name(), %error, "progress was not sent");
            }
        }
    }
}

/// Returns the progress token of a request, as JSON.
fn progress_token(params: &str) -> Option<Box<str>> {
    let params = RawObject::parse(params).ok()?;
    let meta = RawObject::parse(params.get("_meta")?).ok()?;
    meta.get(keys::PROGRESS_TOKEN).map(Into::into)
}
