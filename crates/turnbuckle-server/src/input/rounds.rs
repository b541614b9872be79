//! A call that may take several rounds.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use sha2::{Digest, Sha256};
use turnbuckle_protocol::{Principal, RpcError, json, jsonrpc::Params, meta::TraceContext};
use turnbuckle_store::JournalId;

use super::{
    journal::{Entry, Journal, digest},
    owner,
};
use crate::{Server, context::Call, exchange::Run, incident, reply::Reply};

/// State above this size stays with the server, and only its name travels.
const LARGEST_TRAVELLING: usize = 64 * 1024;

/// What a call is about: state sealed for one call opens for no other.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) method: &'static str,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) fingerprint: [u8; 16],
}

/// Questions, answers and effects of a call, in this round and the ones before.
pub(crate) struct Rounds {
    subject: Subject,
    state: Mutex<State>,
}

struct State {
    journal: Journal,
    /// What the client sent along, by key.
    responses: HashMap<String, Box<RawValue>>,
    /// Keys of earlier rounds that this run has not come by yet.
    ahead: HashSet<String>,
    open: Vec<Open>,
    failure: Option<RpcError>,
}

struct Open {
    key: String,
    method: &'static str,
    params: Box<RawValue>,
}

/// What is sealed into `requestState`.
#[derive(Serialize, Deserialize)]
enum Travelling {
    #[serde(rename = "j")]
    Whole(Journal),
    #[serde(rename = "s")]
    Stored(String),
}

impl Rounds {
    /// Begins a round with what the client sent along. A second value is the name under which the journal is stored.
    pub(crate) fn begin(
        server: &Server,
        principal: Option<&Principal>,
        subject: Subject,
        params: &Params<'_>,
    ) -> Result<(Self, Option<JournalId>), RpcError> {
        let responses = match params.get("inputResponses") {
            Some(raw) => json::from_str(raw)
                .map_err(|_| RpcError::invalid_params("`inputResponses` must be an object"))?,
            None => HashMap::new(),
        };
        let rounds = Self {
            state: Mutex::new(State::new(&subject, responses)),
            subject,
        };
        let mut stored = None;
        if let Some(sealed) = params.string("requestState")? {
            let opened = server
                .keys()
                .open(&sealed, &rounds.purpose(server, principal))
                .map_err(|_| foreign())?;
            match serde_json::from_slice(&opened).map_err(|_| foreign())? {
                Travelling::Whole(journal) => rounds.resume(journal)?,
                Travelling::Stored(id) => stored = Some(id.parse().map_err(|_| foreign())?),
            }
        }
        Ok((rounds, stored))
    }

    /// Fetches a journal that did not travel.
    pub(crate) async fn fetch(&self, server: &Server, id: &JournalId) -> Result<(), RpcError> {
        let bytes = server.store_ref().journals.get(id).await;
        let bytes = bytes
            .map_err(|error| incident::internal(&incident::report("reading a journal", &error)))?;
        let bytes = bytes.ok_or_else(expired)?;
        let journal = serde_json::from_slice(&bytes).map_err(|_| foreign())?;
        self.resume(journal)
    }

    fn resume(&self, journal: Journal) -> Result<(), RpcError> {
        if journal.is_expired() {
            return Err(expired());
        }
        let mut state = self.lock();
        if !journal.is_of(self.subject.fingerprint) {
            // A changed tool starts over: what was answered was another question, whatever its key.
            state.responses.clear();
        } else {
            state.ahead = journal.entries.keys().cloned().collect();
            state.journal = journal;
        }
        Ok(())
    }

    /// What the call is about.
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the answer to a question, or notes the question as open.
    pub(super) fn ask(&self, key: &str, method: &'static str, params: Vec<u8>) -> Option<String> {
        let digest = digest(method, &params);
        let mut state = self.lock();
        state.ahead.remove(key);
        match state.journal.entries.get(key) {
            Some(entry) if entry.digest != digest => {
                state.failure = Some(changed(key));
                return None;
            }
            // A sealed answer is final; what the client sends under its key later is ignored.
            Some(Entry {
                answer: Some(answer),
                ..
            }) => return Some(answer.get().to_owned()),
            _ => {}
        }
        if !state.journal.entries.contains_key(key) {
            // Nobody has been here before, whatever the run has left out on its way.
            state.ahead.clear();
        }
        let answer = state.responses.get(key).cloned();
        let given = answer.as_ref().map(|answer| answer.get().to_owned());
        state
            .journal
            .entries
            .insert(key.to_owned(), Entry { digest, answer });
        if given.is_none() && !state.open.iter().any(|open| open.key == key) {
            let params = String::from_utf8(params)
                .ok()
                .and_then(|json| RawValue::from_string(json).ok());
            let params = params.expect("parameters were just written as JSON");
            state.open.push(Open {
                key: key.to_owned(),
                method,
                params,
            });
        }
        given
    }

    /// Returns what an effect gave in an earlier round.
    pub(super) fn remembered(&self, key: &str) -> Option<String> {
        let mut state = self.lock();
        state.ahead.remove(key);
        let entry = state
            .journal
            .entries
            .get(key)
            .filter(|entry| entry.digest == EFFECT)?;
        entry.answer.as_ref().map(|answer| answer.get().to_owned())
    }

    /// Remembers what an effect gave.
    pub(super) fn remember(&self, key: &str, outcome: Box<RawValue>) {
        let entry = Entry {
            digest: EFFECT,
            answer: Some(outcome),
        };
        self.lock().journal.entries.insert(key.to_owned(), entry);
    }

    /// Ends the round with an error: what an effect gave is no longer what the handler expects of it.
    pub(super) fn fail_with_lost_outcome(&self, key: &str) {
        let error = RpcError::internal(format!(
            "what `{key}` gave in an earlier round cannot be read any more"
        ));
        self.lock().failure.get_or_insert(error);
    }

    /// Ends the round with an error: the client's answer does not fit the question.
    pub(super) fn fail_with_bad_answer(&self, key: &str, reason: &str) {
        let error =
            RpcError::invalid_params(format!("the answer to `{key}` does not fit: {reason}"));
        self.lock().failure.get_or_insert(error);
    }

    /// Says whether the handler is still on the way that an earlier round has gone.
    pub(crate) fn is_replaying(&self) -> bool {
        !self.lock().ahead.is_empty()
    }

    /// What a handler that waits leads to: nothing yet, or the end of the round.
    pub(crate) fn end(&self, call: &Call) -> Option<Run> {
        let mut state = self.lock();
        if let Some(failure) = state.failure.take() {
            return Some(Run::Ready(Err(failure)));
        }
        if state.open.is_empty() {
            return None;
        }
        let open = std::mem::take(&mut state.open);
        let mut journal = state.journal.clone();
        drop(state);
        journal.expire_in(call.server.state_lifetime_limit());
        Some(self.hand_over(call, &open, journal))
    }

    fn hand_over(&self, call: &Call, open: &[Open], journal: Journal) -> Run {
        let purpose = self.purpose(&call.server, call.caller.principal.as_deref());
        let reply = Reply::new(call);
        let questions = questions(open, call.caller.trace.as_deref());
        let bytes = to_json(&journal);
        if bytes.len() <= LARGEST_TRAVELLING {
            let sealed = call
                .server
                .keys()
                .seal(&to_json(&Travelling::Whole(journal)), &purpose);
            return Run::Ready(Ok(reply.input_required(&questions, &sealed)));
        }
        let server = call.server.clone();
        let owner = owner(&server, call.caller.principal.as_deref());
        Run::Handler(Box::pin(async move {
            let journals = &server.store_ref().journals;
            let (bytes, lifetime) = (Bytes::from(bytes), server.state_lifetime_limit());
            let stored = match owner {
                Some(owner) => journals.put_for(&owner, bytes, lifetime).await,
                None => journals.put(bytes, lifetime).await,
            };
            let id = stored.map_err(|error| {
                incident::internal(&incident::report("storing a journal", &error))
            })?;
            let travelling = Travelling::Stored(id.to_string());
            let sealed = server.keys().seal(&to_json(&travelling), &purpose);
            Ok(reply.input_required(&questions, &sealed))
        }))
    }

    /// Binds sealed state to who asks, whom, and for what.
    fn purpose(&self, server: &Server, principal: Option<&Principal>) -> Vec<u8> {
        let mut hash = Sha256::new();
        let who = principal.map(|who| (&*who.issuer, &*who.subject, who.client.as_deref()));
        hash.update(to_json(&(server.name(), who)));
        hash.update([0]);
        hash.update(self.subject.method);
        hash.update([0]);
        hash.update(&self.subject.name);
        hash.update([0]);
        hash.update(canonical(&self.subject.arguments));
        hash.finalize().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves a valid journal behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(subject: &Subject, responses: HashMap<String, Box<RawValue>>) -> Self {
        Self {
            journal: Journal::new(subject.fingerprint),
            responses,
            ahead: HashSet::new(),
            open: Vec::new(),
            failure: None,
        }
    }
}

/// The digest of entries that are effects and not questions.
const EFFECT: [u8; 16] = *b"an effect, once.";

fn questions(open: &[Open], trace: Option<&TraceContext>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Question<'a> {
        method: &'a str,
        params: &'a RawValue,
    }
    // Of all questions within a result, only this one has a `_meta`.
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
        out.extend_from_slice(&to_json(&Question {
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

/// JSON with its members sorted: a client may write the same arguments in another order.
fn canonical(json: &str) -> Vec<u8> {
    // A long number may be another one once it is read, so such arguments count byte for byte.
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

fn foreign() -> RpcError {
    RpcError::invalid_params(
        "`requestState` is not what this server gave out for this call; call again without it",
    )
}

fn expired() -> RpcError {
    RpcError::invalid_params("`requestState` has expired; call again without it")
}

fn changed(key: &str) -> RpcError {
    RpcError::internal(format!(
        "the handler asked something else under `{key}` than in an earlier round; a question must not change"
    ))
}
