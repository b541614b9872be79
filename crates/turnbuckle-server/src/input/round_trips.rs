//! Calls with several round trips (`input_required`).

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use sha2::{Digest, Sha256};
use turnbuckle_protocol::{Principal, RpcError, json, jsonrpc::Params, meta::TraceContext};
use turnbuckle_store::RequestStateId;

use super::{
    journal::{Journal, JournalEntry, digest},
    store_owner,
};
use crate::{
    Server,
    request::{
        DispatchOutcome, RequestContext,
        error::{incident_error, report_incident},
        response::ResponseWriter,
    },
    sync::lock,
};

/// Larger state is stored on the server, and only its id is sent.
const MAX_SEALED_STATE_BYTES: usize = 64 * 1024;

/// Identifies a call. State sealed for one call is invalid for any other.
#[derive(Debug)]
pub(crate) struct RequestIdentity {
    pub(crate) method: &'static str,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) fingerprint: [u8; 16],
}

/// Requests, responses and side effects of a call, including earlier round trips.
pub(crate) struct RoundTrips {
    identity: RequestIdentity,
    state: Mutex<RoundTripState>,
}

struct RoundTripState {
    journal: Journal,
    /// Responses from the client, by key.
    responses: HashMap<String, Box<RawValue>>,
    /// Keys of earlier round trips that this run has not reached yet.
    replay_keys: HashSet<String>,
    open: Vec<OpenRequest>,
    failure: Option<RpcError>,
}

struct OpenRequest {
    key: String,
    method: &'static str,
    params: Box<RawValue>,
}

/// The sealed content of `requestState`.
#[derive(Serialize, Deserialize)]
enum SealedState {
    #[serde(rename = "j")]
    Whole(Journal),
    #[serde(rename = "s")]
    Stored(String),
}

impl RoundTrips {
    /// Starts a round trip from the request's parameters. The second value is the id of a stored journal.
    pub(crate) fn begin(
        server: &Server,
        principal: Option<&Principal>,
        identity: RequestIdentity,
        params: &Params<'_>,
    ) -> Result<(Self, Option<RequestStateId>), RpcError> {
        let responses = match params.get("inputResponses") {
            Some(raw) => json::from_str(raw)
                .map_err(|_| RpcError::invalid_params("`inputResponses` must be an object"))?,
            None => HashMap::new(),
        };
        let round_trips = Self {
            state: Mutex::new(RoundTripState::new(&identity, responses)),
            identity,
        };
        let mut stored = None;
        if let Some(sealed) = params.string("requestState")? {
            let opened = server
                .sealing_keys()
                .open(&sealed, &round_trips.purpose(server, principal))
                .map_err(|_| state_of_other_request())?;
            match serde_json::from_slice(&opened).map_err(|_| state_of_other_request())? {
                SealedState::Whole(journal) => round_trips.resume(journal)?,
                SealedState::Stored(id) => {
                    stored = Some(id.parse().map_err(|_| state_of_other_request())?);
                }
            }
        }
        Ok((round_trips, stored))
    }

    /// Loads a stored journal.
    pub(crate) async fn load_stored(
        &self,
        server: &Server,
        id: &RequestStateId,
    ) -> Result<(), RpcError> {
        let bytes = server.store_ref().request_states.get(id).await;
        let bytes =
            bytes.map_err(|error| incident_error(&report_incident("reading a journal", &error)))?;
        let bytes = bytes.ok_or_else(expired)?;
        let journal = serde_json::from_slice(&bytes).map_err(|_| state_of_other_request())?;
        self.resume(journal)
    }

    fn resume(&self, journal: Journal) -> Result<(), RpcError> {
        if journal.is_expired() {
            return Err(expired());
        }
        let mut state = self.lock();
        if !journal.matches(self.identity.fingerprint) {
            // The tool has changed, so the call starts over: the responses belong to other requests.
            state.responses.clear();
        } else {
            state.replay_keys = journal.entries.keys().cloned().collect();
            state.journal = journal;
        }
        Ok(())
    }

    /// The identity of the call.
    pub(crate) fn identity(&self) -> &RequestIdentity {
        &self.identity
    }

    /// Returns the response to a request, or records the request as open.
    pub(super) fn request(
        &self,
        key: &str,
        method: &'static str,
        params: Vec<u8>,
    ) -> Option<String> {
        let digest = digest(method, &params);
        let mut state = self.lock();
        state.replay_keys.remove(key);
        match state.journal.entries.get(key) {
            Some(entry) if entry.digest != digest => {
                state.failure = Some(request_changed(key));
                return None;
            }
            // A sealed response is final. A later one under the same key is ignored.
            Some(JournalEntry {
                response: Some(response),
                ..
            }) => return Some(response.get().to_owned()),
            _ => {}
        }
        if !state.journal.entries.contains_key(key) {
            // A new key ends the replay, even if the run skipped recorded ones.
            state.replay_keys.clear();
        }
        let response = state.responses.get(key).cloned();
        let known_response = response.as_ref().map(|response| response.get().to_owned());
        state
            .journal
            .entries
            .insert(key.to_owned(), JournalEntry { digest, response });
        if known_response.is_none() && !state.open.iter().any(|open| open.key == key) {
            let params = String::from_utf8(params)
                .ok()
                .and_then(|json| RawValue::from_string(json).ok());
            let params = params.expect("parameters were just written as JSON");
            state.open.push(OpenRequest {
                key: key.to_owned(),
                method,
                params,
            });
        }
        known_response
    }

    /// Returns the stored outcome of a side effect.
    pub(super) fn stored_outcome(&self, key: &str) -> Option<String> {
        let mut state = self.lock();
        state.replay_keys.remove(key);
        let entry = state
            .journal
            .entries
            .get(key)
            .filter(|entry| entry.digest == ONCE_DIGEST)?;
        entry
            .response
            .as_ref()
            .map(|response| response.get().to_owned())
    }

    /// Stores the outcome of a side effect.
    pub(super) fn store_outcome(&self, key: &str, outcome: Box<RawValue>) {
        let entry = JournalEntry {
            digest: ONCE_DIGEST,
            response: Some(outcome),
        };
        self.lock().journal.entries.insert(key.to_owned(), entry);
    }

    /// Fails the call: the stored outcome cannot be deserialized.
    pub(super) fn fail_with_lost_outcome(&self, key: &str) {
        let error = RpcError::internal(format!(
            "the stored outcome of `{key}` cannot be deserialized"
        ));
        self.lock().failure.get_or_insert(error);
    }

    /// Fails the call: the client's response does not match the request.
    pub(super) fn fail_with_invalid_response(&self, key: &str, reason: &str) {
        let error =
            RpcError::invalid_params(format!("the response to `{key}` is invalid: {reason}"));
        self.lock().failure.get_or_insert(error);
    }

    /// Returns whether the handler is still replaying an earlier round trip.
    pub(crate) fn is_replaying(&self) -> bool {
        !self.lock().replay_keys.is_empty()
    }

    /// Returns how a pending handler ends the round trip, or `None` without open requests.
    pub(crate) fn end(&self, call: &RequestContext) -> Option<DispatchOutcome> {
        let mut state = self.lock();
        if let Some(failure) = state.failure.take() {
            return Some(DispatchOutcome::Ready(Err(failure)));
        }
        if state.open.is_empty() {
            return None;
        }
        let open = std::mem::take(&mut state.open);
        let mut journal = state.journal.clone();
        drop(state);
        journal.expire_in(call.server.state_lifetime_limit());
        Some(self.finish_round(call, &open, journal))
    }

    fn finish_round(
        &self,
        call: &RequestContext,
        open: &[OpenRequest],
        journal: Journal,
    ) -> DispatchOutcome {
        let purpose = self.purpose(&call.server, call.origin.principal.as_deref());
        let reply = ResponseWriter::new(call);
        let input_requests = write_input_requests(open, call.origin.trace.as_deref());
        let bytes = to_json(&journal);
        if bytes.len() <= MAX_SEALED_STATE_BYTES {
            let sealed = call
                .server
                .sealing_keys()
                .seal(&to_json(&SealedState::Whole(journal)), &purpose);
            return DispatchOutcome::Ready(Ok(reply.input_required(&input_requests, &sealed)));
        }
        let server = call.server.clone();
        let owner = store_owner(&server, call.origin.principal.as_deref());
        DispatchOutcome::Handler(Box::pin(async move {
            let journals = &server.store_ref().request_states;
            let (bytes, lifetime) = (Bytes::from(bytes), server.state_lifetime_limit());
            let stored = match owner {
                Some(owner) => journals.put_for(&owner, bytes, lifetime).await,
                None => journals.put(bytes, lifetime).await,
            };
            let id = stored
                .map_err(|error| incident_error(&report_incident("storing a journal", &error)))?;
            let state = SealedState::Stored(id.to_string());
            let sealed = server.sealing_keys().seal(&to_json(&state), &purpose);
            Ok(reply.input_required(&input_requests, &sealed))
        }))
    }

    /// Binds sealed state to the server, the caller and the call.
    fn purpose(&self, server: &Server, principal: Option<&Principal>) -> Vec<u8> {
        let mut hash = Sha256::new();
        let principal_key = principal.map(|principal| {
            (
                &*principal.issuer,
                &*principal.subject,
                principal.client.as_deref(),
            )
        });
        hash.update(to_json(&(server.name(), principal_key)));
        hash.update([0]);
        hash.update(self.identity.method);
        hash.update([0]);
        hash.update(&self.identity.name);
        hash.update([0]);
        hash.update(canonical(&self.identity.arguments));
        hash.finalize().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, RoundTripState> {
        // A panic while the lock is held leaves a valid journal behind.
        lock(&self.state)
    }
}

impl RoundTripState {
    fn new(identity: &RequestIdentity, responses: HashMap<String, Box<RawValue>>) -> Self {
        Self {
            journal: Journal::new(identity.fingerprint),
            responses,
            replay_keys: HashSet::new(),
            open: Vec::new(),
            failure: None,
        }
    }
}

/// The digest that marks entries of side effects.
const ONCE_DIGEST: [u8; 16] = *b"an effect, once.";

fn write_input_requests(open: &[OpenRequest], trace: Option<&TraceContext>) -> Vec<u8> {
    #[derive(Serialize)]
    struct InputRequest<'a> {
        method: &'a str,
        params: &'a RawValue,
    }
    // Of the input requests, only `roots/list` can carry `_meta`.
    let traced = trace.and_then(|trace| {
        let params = serde_json::json!({ "_meta": trace });
        serde_json::value::to_raw_value(&params).ok()
    });
    let mut out = vec![b'{'];
    for (at, open) in open.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&to_json(&open.key));
        out.push(b':');
        out.extend_from_slice(&to_json(&InputRequest {
            method: open.method,
            params: match &traced {
                Some(traced) if open.method == "roots/list" => traced,
                _ => &open.params,
            },
        }));
    }
    out.push(b'}');
    out
}

/// Returns JSON with sorted members: a client may reorder the arguments.
fn canonical(json: &str) -> Vec<u8> {
    // A long number may change when parsed, so such arguments are compared byte by byte.
    let digits = json.as_bytes().split(|byte| !byte.is_ascii_digit());
    if digits.into_iter().any(|run| run.len() > 15) {
        return json.as_bytes().to_vec();
    }
    match serde_json::from_str::<Value>(json) {
        Ok(mut value) => {
            value.sort_all_objects();
            to_json(&value)
        }
        Err(_) => json.as_bytes().to_vec(),
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("our own types have string keys and no failing Serialize")
}

fn state_of_other_request() -> RpcError {
    RpcError::invalid_params("`requestState` is not valid for this call; call again without it")
}

fn expired() -> RpcError {
    RpcError::invalid_params("`requestState` has expired; call again without it")
}

fn request_changed(key: &str) -> RpcError {
    RpcError::internal(format!(
        "the handler sent a different client request under `{key}` than in an earlier round trip; it must not change"
    ))
}
