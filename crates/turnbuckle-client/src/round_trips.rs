//! Multi-round-trip requests: input requests of a result are resolved, and the call is sent again.
//!
//! Each round trip is a separate request with the same parameters, the input responses, and the request state of the
//! server. The input requests of one result are resolved concurrently. A server of 2025-11-25 rejects a call with
//! `URLElicitationRequired` instead, until the user has opened the URLs: each URL is shown to the user once, and the
//! call is sent again when the server has reported completion, or after the idle timeout.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    future::poll_fn,
    task::Poll,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use tokio::sync::broadcast;
use turnbuckle_protocol::{
    json,
    jsonrpc::code,
    types::{
        CallToolParams, ElicitUrlParams, GetPromptParams, InputResponses, ReadResourceParams,
        ResultType, UrlElicitationRequiredData,
    },
};

use crate::{
    call::{Boxed, CallOptions},
    client::{Client, ReceivedResult},
    error::CallError,
    inbound::SubscriberSignal,
    target::Change,
    transport::{OutgoingRequest, encode::ToRevision},
};

/// Parameters that accept input responses.
pub(crate) trait AcceptsInputResponses: ToRevision {
    /// Sets the input responses, and the request state.
    fn set_input_responses(&mut self, responses: InputResponses, state: Option<String>);
}

macro_rules! accepts_input_responses {
    ($($params:ty),*) => {$(
        impl AcceptsInputResponses for $params {
            fn set_input_responses(&mut self, responses: InputResponses, state: Option<String>) {
                self.input_responses = (!responses.is_empty()).then_some(responses);
                self.request_state = state;
            }
        }
    )*};
}

accepts_input_responses!(CallToolParams, GetPromptParams, ReadResourceParams);

/// Returns whether a first result may need input: an input request, or an error that may require URLs.
pub(crate) fn needs_round_trip(received: &Result<ReceivedResult, CallError>) -> bool {
    received
        .as_ref()
        .map_or(true, |received| received.kind == ResultType::InputRequired)
}

/// Resolves input requests and sends the request again, until there is a result.
///
/// All attempts share one total timeout; resolving input requests does not count.
pub(crate) async fn resume<P: AcceptsInputResponses>(
    client: &Client,
    first: Result<ReceivedResult, CallError>,
    request: &mut OutgoingRequest<'_>,
    params: &P,
    options: &CallOptions,
) -> Result<ReceivedResult, CallError> {
    let method = request.method.name;
    let mut received = first;
    let mut params = Cow::Borrowed(params);
    let mut completed_urls = CompletedUrls::default();
    let mut round_trip = 0;
    loop {
        request.pause();
        match received {
            Ok(mut received) if received.kind != ResultType::InputRequired => {
                received.round_trips = round_trip;
                return Ok(received);
            }
            Err(error) if round_trip == options.max_round_trips => return Err(error),
            Err(error) => complete_urls_first(client, error, &mut completed_urls, options).await?,
            Ok(received) if round_trip == options.max_round_trips => {
                return Err(round_trips_exhausted(method, &received, round_trip));
            }
            Ok(received) => {
                let input_requests = InputRequests::parse(method, &received)?;
                let (responses, state) = resolve_all(client, method, input_requests).await?;
                params.to_mut().set_input_responses(responses, state);
            }
        }
        request.resume();
        received = client.send(request, &*params, options).await;
        round_trip += 1;
    }
}

/// Returns the error of a call that exceeds the maximum number of round trips.
fn round_trips_exhausted(
    method: &'static str,
    received: &ReceivedResult,
    round_trips: usize,
) -> CallError {
    if round_trips > 0 {
        return CallError::TooManyRoundTrips {
            method,
            limit: round_trips,
        };
    }
    match received.read(method) {
        Ok(input_requests) => CallError::InputRequired {
            method,
            result: Box::new(input_requests),
        },
        Err(error) => error,
    }
}

/// The input requests of a result.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InputRequests {
    #[serde(default)]
    input_requests: Option<BTreeMap<String, InputRequest>>,
    /// Opaque; sent back unchanged.
    #[serde(default)]
    request_state: Option<String>,
}

/// One input request: a request without an envelope.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InputRequest {
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
}

impl InputRequests {
    /// Parses the input requests of a result; there is at least one, or a request state.
    pub(super) fn parse(
        method: &'static str,
        received: &ReceivedResult,
    ) -> Result<Self, CallError> {
        let invalid = |reason: String| CallError::InvalidResponse { method, reason };
        let read = json::from_str::<Self>(received.result.as_str());
        let input_requests = read.map_err(|error| invalid(error.to_string()))?;
        match (
            &input_requests.input_requests,
            &input_requests.request_state,
        ) {
            (None, None) => Err(invalid(
                "neither `inputRequests` nor `requestState` is present".to_owned(),
            )),
            _ => Ok(input_requests),
        }
    }
}

/// Resolves all input requests of a result; the first error ends it.
pub(super) async fn resolve_all(
    client: &Client,
    method: &'static str,
    input_requests: InputRequests,
) -> Result<(InputResponses, Option<String>), CallError> {
    let requests = input_requests.input_requests.unwrap_or_default();
    let responses = resolve_input_requests(client, method, requests).await?;
    Ok((responses, input_requests.request_state))
}

/// Resolves input requests concurrently, each under its key.
pub(crate) async fn resolve_input_requests(
    client: &Client,
    method: &'static str,
    input_requests: BTreeMap<String, InputRequest>,
) -> Result<InputResponses, CallError> {
    let max = client.inner.settings.limits.max_server_requests;
    if input_requests.len() > max {
        let reason = format!("more than {max} input requests");
        return Err(CallError::InvalidResponse { method, reason });
    }
    let open = input_requests.into_iter().map(|(key, input_request)| {
        let client = client.clone();
        let response: Boxed<_> = Box::pin(async move {
            let response = resolve_input_request(&client, method, input_request).await?;
            Ok((key, response))
        });
        response
    });
    all(open.collect()).await.map(InputResponses::from_iter)
}

async fn resolve_input_request(
    client: &Client,
    method: &'static str,
    input_request: InputRequest,
) -> Result<Value, CallError> {
    let revision = client.inner.rules().revision;
    let callbacks = &client.inner.settings.callbacks;
    let params = input_request.params.as_deref().map_or("{}", RawValue::get);
    let response = callbacks
        .handle(&input_request.method, params, revision)
        .await;
    response.map_err(|source| CallError::InputFailed {
        method,
        input_method: input_request.method,
        source: Box::new(source),
    })
}

/// Waits for all futures, or for the first error.
async fn all<T>(mut open: Vec<Boxed<Result<T, CallError>>>) -> Result<Vec<T>, CallError> {
    let mut done = Vec::with_capacity(open.len());
    poll_fn(|cx| {
        let mut failed = None;
        open.retain_mut(|response| match response.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(response) => {
                match response {
                    Ok(response) => done.push(response),
                    Err(error) => failed = Some(error),
                }
                false
            }
        });
        match (failed, open.is_empty()) {
            (Some(error), _) => Poll::Ready(Err(error)),
            (None, true) => Poll::Ready(Ok(())),
            (None, false) => Poll::Pending,
        }
    })
    .await?;
    Ok(done)
}

const ELICIT: &str = turnbuckle_protocol::method::ELICITATION_CREATE.name;

/// The URLs that the user agreed to open during one call.
#[derive(Debug, Default)]
pub(super) struct CompletedUrls(HashSet<String>);

/// Completes the URL elicitations that an error requires; returns any other error.
pub(super) async fn complete_urls_first(
    client: &Client,
    error: CallError,
    completed_urls: &mut CompletedUrls,
    options: &CallOptions,
) -> Result<(), CallError> {
    let (method, elicitations) = match required_urls(client, &error) {
        Some(required_urls) => required_urls,
        None => return Err(error),
    };
    // Subscribes before the user is prompted, so that no completion is missed.
    let signals = client.inner.router.signals.subscribe();
    let mut open = HashSet::new();
    for elicitation in elicitations {
        let id = elicitation
            .elicitation_id
            .as_ref()
            .unwrap_or(&elicitation.url)
            .clone();
        if !completed_urls.0.contains(&id) {
            request_consent(client, method, elicitation).await?;
            completed_urls.0.insert(id.clone());
        }
        open.insert(id);
    }
    let idle_timeout = options.timeouts.idle;
    // If the server does not report completion, the next response shows it.
    let _ = tokio::time::timeout(idle_timeout, await_completion(open, signals)).await;
    Ok(())
}

/// Returns the URL elicitations that an error requires, if the client supports them.
fn required_urls(
    client: &Client,
    error: &CallError,
) -> Option<(&'static str, Vec<ElicitUrlParams>)> {
    let CallError::Rejected { method, source, .. } = error else {
        return None;
    };
    let is_required = source.code == code::URL_ELICITATION_REQUIRED
        && client.inner.rules().url_elicitation_required;
    if !is_required || !client.inner.settings.capabilities.can_elicit_url() {
        return None;
    }
    let data = source.data.clone()?;
    let data: UrlElicitationRequiredData = json::from_value(&data).ok()?;
    let max = client.inner.settings.limits.max_server_requests;
    let fits = (1..=max).contains(&data.elicitations.len());
    fits.then_some((method, data.elicitations))
}

async fn request_consent(
    client: &Client,
    method: &'static str,
    elicitation: ElicitUrlParams,
) -> Result<(), CallError> {
    let input_failed = |source| CallError::InputFailed {
        method,
        input_method: ELICIT.to_owned(),
        source: Box::new(source),
    };
    let params = serde_json::to_string(&elicitation).expect("protocol types have string keys");
    let revision = client.inner.rules().revision;
    let callbacks = &client.inner.settings.callbacks;
    let response = callbacks.handle(ELICIT, &params, revision).await;
    match response.map_err(input_failed)?["action"].as_str() {
        Some("accept") => Ok(()),
        _ => Err(CallError::UrlElicitationDeclined { method }),
    }
}

/// Waits until the server has reported the completion of each elicitation; others are ignored.
async fn await_completion(
    mut open: HashSet<String>,
    mut signals: broadcast::Receiver<SubscriberSignal>,
) {
    while !open.is_empty() {
        match signals.recv().await {
            Ok(SubscriberSignal::Change(Change::ElicitationComplete { elicitation_id })) => {
                open.remove(&elicitation_id);
            }
            Ok(SubscriberSignal::Change(_)) => {}
            // The completion may have been missed, or will not be reported: the next response shows it.
            Ok(SubscriberSignal::Gap | SubscriberSignal::End(_)) | Err(_) => return,
        }
    }
}
