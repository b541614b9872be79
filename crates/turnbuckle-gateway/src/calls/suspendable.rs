//! Calls of modern clients at legacy servers: the server sends client requests, and the client gets them in results.

use std::sync::Arc;

use turnbuckle_client::{
    CallError,
    relay::{RelayRequest, RelayResult},
};
use turnbuckle_protocol::{
    RpcError, json,
    types::{ElicitAction, ElicitResult},
};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    calls::{
        RelayedCall,
        inputs::PendingInput,
        running::{RunningCall, tool_error, with_server_name},
        state_purpose::StatePurpose,
        suspended::{CallEvent, MAX_ROUND_TRIPS, OpenCall, RETRY_TIMEOUT},
        url_elicitation::{id_of, required_elicitations, url_of},
    },
    convert, errors,
    gateway::GatewayState,
    lifecycle::RevisionPair,
    raw_json::ObjectWriter,
    tasks::TaskMode,
    upstream::connection::Connection,
};

/// Maximum number of calls that are repeated because the user had to open a URL.
const MAX_REPEATS: usize = 10;

impl RelayedCall<'_> {
    /// Starts a call that can be suspended.
    pub(super) fn open_call(&self, call: &Arc<RunningCall>) -> Result<OpenCall, RpcError> {
        if self.mode == TaskMode::Awaited {
            let run = self.to_owned_call().run(Arc::clone(call));
            return Ok(OpenCall::new(Arc::clone(call), Box::pin(run)));
        }
        let mut request = self.outgoing(&[])?;
        // The time of the client does not count, and is limited by the number of round trips.
        let timeouts = &mut request.timeouts;
        timeouts.total = timeouts
            .total
            .saturating_add(RETRY_TIMEOUT * MAX_ROUND_TRIPS);
        let run = UpstreamRun {
            gateway: Arc::clone(self.gateway),
            connection: Arc::clone(self.connection),
            call: Arc::clone(call),
            method: self.request.method().into(),
            pair: self.pair,
        };
        Ok(OpenCall::new(
            Arc::clone(call),
            Box::pin(run.finish(request)),
        ))
    }
}

impl GatewayState {
    /// Waits for the outcome of a call, or suspends it because the server requests input.
    pub(super) async fn await_open_call(
        &self,
        mut open: OpenCall,
        request: &RelayedRequest,
        purpose: &StatePurpose<'_>,
    ) -> Result<String, RpcError> {
        match open.next().await {
            CallEvent::Outcome(outcome) => outcome,
            CallEvent::InputRequests(requests) => {
                let state = self.suspended.suspend(open, request, purpose.as_str())?;
                let mut out = ObjectWriter::new();
                out.string("resultType", "input_required");
                out.member("inputRequests", &requests);
                out.string("requestState", &state);
                out.member("_meta", self.identity.as_meta());
                Ok(out.finish())
            }
        }
    }
}

/// A call at a legacy server, which runs until it has a result.
struct UpstreamRun {
    gateway: Arc<GatewayState>,
    connection: Arc<Connection>,
    call: Arc<RunningCall>,
    method: Box<str>,
    pair: RevisionPair,
}

impl UpstreamRun {
    async fn finish(self, request: RelayRequest) -> Result<String, RpcError> {
        let result = self.run(&request).await;
        match result {
            Ok(Ok(result)) => {
                let server = &self.connection.server;
                let result = self
                    .gateway
                    .with_shown_uris(server, &self.method, result.json());
                convert::result(&self.method, &result, self.pair, &self.gateway.identity)
                    .map_err(|error| errors::invalid_result(server.name(), &error))
            }
            Ok(Err(error)) => Err(convert::error(
                &self.method,
                errors::call_failure(self.connection.server.name(), error),
                self.pair,
            )),
            Err(failed) => failed,
        }
    }

    /// Sends the call. If the user has to open URLs first, the call is repeated afterwards.
    ///
    /// The error is the outcome of a call that is not repeated.
    async fn run(
        &self,
        request: &RelayRequest,
    ) -> Result<Result<RelayResult, CallError>, Result<String, RpcError>> {
        let can_repeat = self.call.can_open_urls();
        for _ in 0..MAX_REPEATS {
            let result = self.connection.relay(&self.call, request).await;
            let required = match &result {
                Err(CallError::Rejected { source, .. }) => required_elicitations(source),
                _ => None,
            };
            match required {
                // Boxed, so that the future of a call stays small.
                Some(elicitations) => Box::pin(self.open_urls(&elicitations)).await?,
                None => return Ok(result),
            }
            if !can_repeat {
                return Ok(result);
            }
        }
        Err(self.reject("the server requested input too often"))
    }

    /// Has the client open URLs, and waits until the server reports that this is done.
    async fn open_urls(&self, elicitations: &[String]) -> Result<(), Result<String, RpcError>> {
        const METHOD: &str = "elicitation/create";
        for params in elicitations {
            if self.call.has_declared(METHOD, params).is_err() {
                let url = url_of(params).unwrap_or_default();
                let message = format!(
                    "the server requires that the user opens {url}, which the client does not support; open it, then call again"
                );
                return Err(self.reject(&message));
            }
        }
        let ids: Vec<_> = elicitations
            .iter()
            .filter_map(|params| id_of(params))
            .collect();
        let _expected = self.connection.expect_elicitations(&ids, &self.call);
        let mut pending = Vec::new();
        for params in elicitations {
            let params = match self.gateway.server_label(&self.connection.server) {
                Some(server) => with_server_name(params, &server),
                None => Ok(params.clone()),
            };
            let input = params.and_then(|params| PendingInput::add(&self.call, METHOD, &params));
            pending.push(input.map_err(Err)?);
        }
        for input in &mut pending {
            let response = input.response().await.map_err(Err)?;
            let result = json::from_str::<ElicitResult>(&response);
            if !result.is_ok_and(|result| result.action == ElicitAction::Accept) {
                return Err(self.reject("the user did not open the URL that the server requires"));
            }
        }
        // A server need not report the completion.
        let limit = self.connection.server.settings.timeouts.idle;
        let _ = tokio::time::timeout(limit, self.call.completed.wait()).await;
        Ok(())
    }

    /// Ends the call: with the result of a tool, which a model can read, or with an error.
    fn reject(&self, message: &str) -> Result<String, RpcError> {
        if &*self.method != "tools/call" {
            return Err(RpcError::internal(message.to_owned()));
        }
        crate::convert::result(
            &self.method,
            &tool_error(message),
            self.pair,
            &self.gateway.identity,
        )
    }
}
