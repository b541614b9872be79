//! Calls of legacy clients at modern servers: the server returns `input_required`, and the client gets requests. The
//! call is repeated with their responses.

use std::{pin::Pin, sync::Arc, task::Poll, time::Duration};

use turnbuckle_protocol::{RpcError, jsonrpc::RawObject, types::ResultType};

use crate::{
    calls::{
        RelayedCall,
        running::{RunningCall, client_request_method, tool_error, with_server_name},
        url_elicitation::{is_url, new_id, url_of},
    },
    convert,
    observation::{CallRecord, observe},
    raw_json::{ObjectWriter, edit, quote},
    tasks::await_task::{TaskEvent, UpstreamTask},
};

/// Maximum number of round trips of a call.
const MAX_ROUND_TRIPS: usize = 10;
/// The first delay before a retry without responses; it doubles up to the maximum.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The reason that a call ends before the server has the requested input.
enum InputError {
    /// The input cannot be had. The result of a tool can state it.
    Rejected(String),
    /// The server sent something invalid.
    Invalid(RpcError),
}

/// A client request that the client declared.
struct CheckedInput {
    key: String,
    method: &'static str,
    params: String,
    /// The id of a URL elicitation.
    elicitation: Option<String>,
}

/// The response to a client request, by key.
type InputResponse<'a> = Pin<Box<dyn Future<Output = Result<String, RpcError>> + Send + 'a>>;

impl RelayedCall<'_> {
    /// Repeats the call until it has a result.
    pub(super) async fn round_trips(&self, call: &Arc<RunningCall>) -> Result<String, RpcError> {
        let mut added: Vec<(&str, String)> = Vec::new();
        let mut elicitations = Vec::new();
        let mut delay = FIRST_RETRY_DELAY;
        for round_trip in 0..=MAX_ROUND_TRIPS {
            let result = self.send(call, &added).await?;
            self.report_completed(&mut elicitations);
            match result.kind() {
                ResultType::InputRequired => {}
                ResultType::Task => return self.await_directed(call, result.json()).await,
                _ => return self.finish(result.json()),
            }
            observe(self.request, CallRecord::count_round_trip);
            if round_trip == MAX_ROUND_TRIPS {
                // Nothing is requested from the client for a retry that is not sent.
                break;
            }
            let object = RawObject::parse(result.json()).map_err(|error| self.invalid(&error))?;
            added.clear();
            let requests = object
                .get("inputRequests")
                .map(RawObject::parse)
                .transpose();
            let requests = requests.map_err(|error| self.invalid(&error))?;
            match requests.filter(|requests| requests.members().next().is_some()) {
                Some(requests) => {
                    let responses = self.respond_to(call, &requests, &mut elicitations).await;
                    match responses {
                        Ok(responses) => added.push(("inputResponses", responses)),
                        Err(error) => return self.fail(error),
                    }
                }
                None if object.get("requestState").is_none() => {
                    return Err(self.invalid(&RpcError::internal("nothing is requested")));
                }
                None => {
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(MAX_RETRY_DELAY);
                }
            }
            if let Some(state) = object.get("requestState") {
                added.push(("requestState", state.to_owned()));
            }
        }
        self.fail(InputError::Rejected(
            "the server requested input too often".to_owned(),
        ))
    }

    /// Awaits a task of the server. The client gets its input requests as requests.
    async fn await_directed(
        &self,
        call: &Arc<RunningCall>,
        created: &str,
    ) -> Result<String, RpcError> {
        let created = UpstreamTask::created(self, call, created);
        let mut task = created.map_err(|error| self.invalid(&error))?;
        let mut elicitations = Vec::new();
        loop {
            match task.next().await? {
                TaskEvent::Result(result) => return self.convert(&result),
                TaskEvent::InputRequests(requests) => {
                    let requests =
                        RawObject::parse(&requests).map_err(|error| self.invalid(&error))?;
                    match self.respond_to(call, &requests, &mut elicitations).await {
                        Ok(responses) => task.update(&responses).await?,
                        Err(error) => return self.fail(error),
                    }
                    self.report_completed(&mut elicitations);
                }
            }
        }
    }

    /// Tells the client that the URL elicitations of the last round trip are completed.
    fn report_completed(&self, elicitations: &mut Vec<String>) {
        for id in elicitations.drain(..) {
            let params = format!(r#"{{"elicitationId":{}}}"#, quote(&id));
            self.request
                .notify("notifications/elicitation/complete", &params);
        }
    }

    /// Sends input requests to the client, all at once, and returns the responses as a JSON object.
    ///
    /// Nothing is sent unless the client declared all of them.
    async fn respond_to(
        &self,
        call: &Arc<RunningCall>,
        requests: &RawObject<'_>,
        elicitations: &mut Vec<String>,
    ) -> Result<String, InputError> {
        let inputs = requests
            .members()
            .map(|(key, entry)| self.check_input(call, key.into_owned(), entry))
            .collect::<Result<Vec<_>, _>>()?;
        elicitations.extend(inputs.iter().filter_map(|input| input.elicitation.clone()));
        // Dropping these futures cancels the client requests at once, before the call itself ends.
        let pending = inputs.iter().map(|input| -> InputResponse<'_> {
            Box::pin(self.request.request_client(input.method, &input.params))
        });
        let mut pending: Vec<_> = pending.map(Some).collect();
        let mut responses: Vec<_> = inputs.iter().map(|_| String::new()).collect();
        std::future::poll_fn(|cx| {
            let mut is_pending = false;
            for (index, slot) in pending.iter_mut().enumerate() {
                let Some(response) = slot else {
                    continue;
                };
                match response.as_mut().poll(cx) {
                    Poll::Pending => is_pending = true,
                    Poll::Ready(Ok(response)) => {
                        responses[index] = response;
                        *slot = None;
                    }
                    Poll::Ready(Err(error)) => {
                        *slot = None;
                        let method = inputs[index].method;
                        let message = format!("`{method}` failed: {}", error.message);
                        return Poll::Ready(Err(InputError::Rejected(message)));
                    }
                }
            }
            if is_pending {
                Poll::Pending
            } else {
                Poll::Ready(Ok(()))
            }
        })
        .await?;
        let mut out = ObjectWriter::new();
        for (input, response) in inputs.iter().zip(&responses) {
            RawObject::parse(response).map_err(|_| {
                InputError::Rejected(format!(
                    "the client responded to `{}` with an invalid result",
                    input.method
                ))
            })?;
            out.member(&input.key, response);
        }
        Ok(out.finish())
    }

    /// Checks an input request, and converts it for the client.
    fn check_input(
        &self,
        call: &Arc<RunningCall>,
        key: String,
        entry: &str,
    ) -> Result<CheckedInput, InputError> {
        let entry = RawObject::parse(entry).map_err(InputError::Invalid)?;
        let method = entry.string("method").map_err(InputError::Invalid)?;
        let method = method.as_deref().and_then(client_request_method);
        let Some(method) = method else {
            let message = "the server requested input of an unknown kind";
            return Err(InputError::Rejected(message.to_owned()));
        };
        let params = entry.get("params").unwrap_or("{}");
        RawObject::parse(params).map_err(InputError::Invalid)?;
        let is_url = method == "elicitation/create" && is_url(params);
        if call.has_declared(method, params).is_err() {
            let message = match url_of(params).filter(|_| is_url) {
                Some(url) => format!(
                    "the server requires that the user opens {url}, which the client does not support; open it, then call again"
                ),
                None => {
                    format!("the server requires `{method}`, which the client does not support")
                }
            };
            return Err(InputError::Rejected(message));
        }
        let mut params = self
            .client_params(method, params)
            .map_err(InputError::Invalid)?;
        let mut elicitation = None;
        if is_url {
            // A modern server sends no id.
            let id = new_id();
            params = edit(&params, &[], &[("elicitationId", quote(&id))])
                .map_err(InputError::Invalid)?;
            elicitation = Some(id);
        }
        Ok(CheckedInput {
            key,
            method,
            params,
            elicitation,
        })
    }

    /// Converts the parameters of a client request for the client.
    fn client_params(&self, method: &'static str, params: &str) -> Result<String, RpcError> {
        let (from, to) = (self.pair.upstream, self.pair.downstream);
        let params = convert::client_request_params(method, params, from, to)?;
        match self.gateway.server_label(&self.connection.server) {
            Some(server) if method == "elicitation/create" => with_server_name(&params, &server),
            _ => Ok(params),
        }
    }

    /// Ends the call: with the result of a tool, which a model can read, or with an error.
    fn fail(&self, error: InputError) -> Result<String, RpcError> {
        match error {
            InputError::Rejected(message) if self.request.method() == "tools/call" => {
                Ok(tool_error(&message))
            }
            InputError::Rejected(message) => Err(RpcError::internal(message)),
            InputError::Invalid(error) => Err(self.invalid(&error)),
        }
    }
}
