//! The client requests of a suspended call: input requests of a modern client.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use serde::de::DeserializeOwned;
use tokio::sync::{Notify, oneshot};
use turnbuckle_protocol::{
    RpcError, json,
    jsonrpc::RawObject,
    meta::keys,
    types::{CreateMessageResult, ElicitResult, ListRootsResult},
};

use crate::{
    calls::running::RunningCall,
    lock,
    raw_json::{ObjectWriter, edit},
};

/// The client requests that wait for a retry.
#[derive(Default)]
pub(crate) struct InputTable {
    state: Mutex<InputState>,
    /// Notified when there is a new input request, or the result of the call.
    pub(crate) changed: Notify,
}

#[derive(Default)]
struct InputState {
    /// The number in the last key; keys are not used again.
    last_key: u64,
    open: BTreeMap<u64, InputRequest>,
}

/// A client request without a response.
struct InputRequest {
    method: &'static str,
    params: Box<str>,
    response: oneshot::Sender<Result<String, RpcError>>,
}

/// An input request that a server waits for. It is removed when this is dropped.
pub(crate) struct PendingInput {
    call: Arc<RunningCall>,
    key: u64,
    response: oneshot::Receiver<Result<String, RpcError>>,
}

impl PendingInput {
    /// Adds a client request. Members that only requests of servers have are removed.
    pub(crate) fn add(
        call: &Arc<RunningCall>,
        method: &'static str,
        params: &str,
    ) -> Result<Self, RpcError> {
        let table = call.inputs();
        let params = input_params(params)?.into();
        let (sender, response) = oneshot::channel();
        let key = {
            let mut state = lock(&table.state);
            state.last_key += 1;
            let key = state.last_key;
            let request = InputRequest {
                method,
                params,
                response: sender,
            };
            state.open.insert(key, request);
            key
        };
        table.changed.notify_one();
        Ok(Self {
            call: Arc::clone(call),
            key,
            response,
        })
    }

    /// Waits for the response of the client.
    pub(crate) async fn response(&mut self) -> Result<String, RpcError> {
        let ended = |_| Err(RpcError::internal("the call has ended"));
        (&mut self.response).await.unwrap_or_else(ended)
    }
}

impl Drop for PendingInput {
    fn drop(&mut self) {
        lock(&self.call.inputs().state).open.remove(&self.key);
    }
}

impl InputTable {
    /// Returns the open input requests as a JSON object, or `None` if there are none.
    pub(crate) fn requests(&self) -> Option<String> {
        let state = lock(&self.state);
        if state.open.is_empty() {
            return None;
        }
        let mut out = ObjectWriter::new();
        for (key, input) in &state.open {
            let mut request = ObjectWriter::new();
            request.string("method", input.method);
            request.member("params", &input.params);
            out.member(&format!("q{key}"), &request.finish());
        }
        Some(out.finish())
    }

    /// Returns an error if a response to an open input request is malformed.
    pub(crate) fn check(&self, responses: &RawObject<'_>) -> Result<(), RpcError> {
        let state = lock(&self.state);
        for (key, response) in responses.members() {
            let Some(input) = parse_key(&key).and_then(|key| state.open.get(&key)) else {
                continue;
            };
            let parsed = match input.method {
                "elicitation/create" => parses_as::<ElicitResult>(response),
                "sampling/createMessage" => parses_as::<CreateMessageResult>(response),
                _ => parses_as::<ListRootsResult>(response),
            };
            parsed.map_err(|error| {
                let reason = error.message;
                RpcError::invalid_params(format!("`inputResponses.{key}` is invalid: {reason}"))
            })?;
        }
        Ok(())
    }

    /// Delivers the responses of a retry; unknown keys are ignored, and missing ones stay open.
    pub(crate) fn deliver(&self, responses: &RawObject<'_>) {
        let mut state = lock(&self.state);
        for (key, response) in responses.members() {
            let input = parse_key(&key).and_then(|key| state.open.remove(&key));
            if let Some(input) = input {
                // The server may have cancelled its request.
                let _ = input.response.send(Ok(response.to_owned()));
            }
        }
    }

    /// Returns whether a client request with this method waits for the client.
    pub(crate) fn has_open(&self, method: &str) -> bool {
        let state = lock(&self.state);
        state.open.values().any(|input| input.method == method)
    }

    /// Rejects all open input requests, because the call has ended.
    pub(crate) fn end(&self) {
        let open = std::mem::take(&mut lock(&self.state).open);
        for input in open.into_values() {
            let ended = RpcError::internal("the call has ended");
            let _ = input.response.send(Err(ended));
        }
    }

    /// Ends all open input requests, because the client did not respond in time.
    pub(crate) fn expire(&self) {
        let open = std::mem::take(&mut lock(&self.state).open);
        for input in open.into_values() {
            let _ = input.response.send(match input.method {
                "elicitation/create" => Ok(r#"{"action":"cancel"}"#.to_owned()),
                _ => Err(RpcError::internal("the client did not respond")),
            });
        }
    }
}

/// Parses a key such as `q1`.
fn parse_key(key: &str) -> Option<u64> {
    let digits = key.strip_prefix('q')?;
    let number: u64 = digits.parse().ok()?;
    // No other spelling of the number.
    (number.to_string() == digits).then_some(number)
}

fn parses_as<T: DeserializeOwned>(text: &str) -> Result<(), RpcError> {
    json::from_str::<T>(text).map(drop).map_err(RpcError::from)
}

/// Returns the parameters of a client request without what belongs to the request of the server.
fn input_params(params: &str) -> Result<String, RpcError> {
    let object = RawObject::parse(params)?;
    let Some(meta) = object.get("_meta") else {
        return edit(params, &["elicitationId"], &[]);
    };
    let meta = edit(meta, &[keys::PROGRESS_TOKEN, keys::RELATED_TASK], &[])?;
    if meta == "{}" {
        return edit(params, &["elicitationId", "_meta"], &[]);
    }
    edit(params, &["elicitationId"], &[("_meta", meta)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_members_of_the_servers_request_are_removed() {
        let params = r#"{"message":"Go","elicitationId":"7","_meta":{"progressToken":1,"a": 1.0}}"#;
        let input = input_params(params).unwrap();
        assert_eq!(input, r#"{"message":"Go","_meta":{"a":1.0}}"#);
        let input = input_params(r#"{"_meta":{"progressToken":1}}"#).unwrap();
        assert_eq!(input, "{}");
    }

    #[test]
    fn a_key_has_one_spelling() {
        assert_eq!(parse_key("q12"), Some(12));
        for other in ["q012", "q+1", "12", "q", "q1 ", "Q1"] {
            assert_eq!(parse_key(other), None, "{other}");
        }
    }
}
