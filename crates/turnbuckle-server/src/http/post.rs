//! POST on the endpoint: reads, parses and classifies a message, then selects the code that handles it.

mod batch;
mod call_set;
pub(super) mod session;
mod session_response;
mod sessionless;
mod stateless;

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use ::http::{
    HeaderMap, Response, StatusCode,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE},
};
use bytes::{Buf, Bytes, BytesMut};
use turnbuckle_protocol::{
    RequestId,
    codec::headers::{Accept, MediaType, parse_accept, parse_content_type},
    jsonrpc::{self, Incoming, MalformedMessage, Message, Request},
};

use crate::{
    http::{
        HttpOptions, SessionMode,
        body::ResponseBody,
        caller_shares::{CallerShares, CallerUsage, LimitUsage},
        endpoint::{Endpoint, InFlightPermit, RequestHead},
        mcp_headers::MCP_SESSION_ID,
        responses,
        session::{limits, missing_session_id},
    },
    lifecycle::{self, MessageClass, SessionPresence},
    request::RunningRequest,
};

/// Responds to a POST on the endpoint.
pub(super) async fn post<B: http_body::Body>(
    endpoint: &Arc<Endpoint>,
    head: &RequestHead,
    body: B,
) -> Response<ResponseBody> {
    if let Err(response) = check_headers(&head.headers) {
        return response;
    }
    let mut permit = match endpoint.acquire_permit(|| limits::quota_owner(head)) {
        Ok(permit) => permit,
        Err(response) => return response,
    };
    let bytes = match read_body(&mut permit, head, pin!(body)).await {
        Ok(bytes) => bytes,
        Err(response) => return response,
    };
    let (running_request, permit) = match route(endpoint, head, &bytes, permit) {
        PostRoute::Stateless(running_request, permit) => (running_request, permit),
        PostRoute::Boxed(responding) => return responding.await,
        PostRoute::Respond(response) => return response,
    };
    drop(bytes);
    stateless::respond(running_request, permit, head).await
}

/// The next step for the message of a POST.
enum PostRoute<'a> {
    /// A stateless request, started.
    Stateless(RunningRequest, InFlightPermit),
    /// A message of a legacy revision. Boxed so that connections without a session keep a small future.
    Boxed(Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send + 'a>>),
    Respond(Response<ResponseBody>),
}

/// Parses and classifies a message, and selects the code that handles it.
fn route<'a>(
    endpoint: &'a Arc<Endpoint>,
    head: &'a RequestHead,
    bytes: &'a Bytes,
    permit: InFlightPermit,
) -> PostRoute<'a> {
    let incoming = jsonrpc::parse(bytes);
    let session = || session_presence(endpoint, head);
    match lifecycle::classify(&incoming, head.version(), session) {
        MessageClass::Stateless(request, meta) => {
            match stateless::start_request(&endpoint.server, head, request, meta) {
                Ok(running_request) => PostRoute::Stateless(running_request, permit),
                Err(response) => PostRoute::Respond(response),
            }
        }
        MessageClass::Initialize(request) => {
            let request = Request {
                id: request.id.clone(),
                method: request.method.clone(),
                params: request.params.clone(),
            };
            PostRoute::Boxed(Box::pin(session::initialize(endpoint, head, request)))
        }
        MessageClass::Session(meta) => PostRoute::Boxed(Box::pin(session::post(
            endpoint, head, incoming, meta, permit,
        ))),
        MessageClass::Sessionless(meta) => PostRoute::Boxed(Box::pin(sessionless::post(
            endpoint, head, incoming, meta, permit,
        ))),
        MessageClass::SessionRequired => {
            PostRoute::Respond(missing_session_id(endpoint, response_id(&incoming)))
        }
        MessageClass::Ignored => PostRoute::Respond(responses::status_only(StatusCode::ACCEPTED)),
        MessageClass::Invalid(rejection) => {
            PostRoute::Respond(responses::rejection(response_id(&incoming), &rejection))
        }
    }
}

fn session_presence(endpoint: &Endpoint, head: &RequestHead) -> SessionPresence {
    match endpoint.options.session_mode {
        SessionMode::Off => SessionPresence::Disabled,
        SessionMode::On if head.headers.contains_key(MCP_SESSION_ID) => SessionPresence::Present,
        SessionMode::On => SessionPresence::Absent,
    }
}

/// Returns the id for the response to a message.
fn response_id<'a>(incoming: &'a Result<Incoming<'_>, MalformedMessage>) -> Option<&'a RequestId> {
    match incoming {
        Ok(Incoming::One(Message::Request(request))) => Some(&request.id),
        Ok(_) => None,
        Err(malformed) => malformed_id(malformed),
    }
}

/// Returns the id for the response to a malformed message.
///
/// The id of a response was assigned by the server; the client would mistake it for one of its own.
fn malformed_id(malformed: &MalformedMessage) -> Option<&RequestId> {
    malformed.id.as_ref().filter(|_| !malformed.is_response())
}

/// Checks that the body is JSON and that the client accepts both kinds of responses.
fn check_headers(headers: &HeaderMap) -> Result<(), Response<ResponseBody>> {
    check_content_type(headers)?;
    if accepted_types(headers).accepts_json_and_sse() {
        return Ok(());
    }
    Err(responses::invalid_request(
        StatusCode::NOT_ACCEPTABLE,
        "send `Accept: application/json, text/event-stream`",
    ))
}

/// Checks that the body is JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Response<ResponseBody>> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(responses::invalid_request(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send the body without `Content-Encoding`",
        ));
    }
    let is_json = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            value == "application/json" || parse_content_type(value) == MediaType::Json
        });
    if is_json {
        return Ok(());
    }
    Err(responses::invalid_request(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "send `Content-Type: application/json`",
    ))
}

/// The value of `Accept` that nearly every client sends.
const COMMON_ACCEPT: &str = "application/json, text/event-stream";

/// Returns the media types that the client accepts.
pub(super) fn accepted_types(headers: &HeaderMap) -> Accept {
    let mut values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    match (values.next(), values.next()) {
        (Some(COMMON_ACCEPT), None) => Accept {
            json: true,
            event_stream: true,
        },
        (Some(first), None) => parse_accept(first),
        (Some(first), Some(second)) => {
            let joined = [first, second].into_iter().chain(values);
            parse_accept(&joined.collect::<Vec<_>>().join(","))
        }
        (None, _) => parse_accept(""),
    }
}

/// Reads a whole body within the limits on size and time.
pub(super) async fn read_body<B: http_body::Body>(
    permit: &mut InFlightPermit,
    head: &RequestHead,
    mut body: Pin<&mut B>,
) -> Result<Bytes, Response<ResponseBody>> {
    let limit = permit.endpoint.options.body_limit;
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    // A body that arrived together with its head needs no timer and no copy.
    let first = poll_fn(|cx| Poll::Ready(poll_chunk(body.as_mut(), cx))).await;
    match first {
        Poll::Ready(Some(Ok(first))) if body.is_end_stream() => check_limit(limit, first),
        first => Box::pin(read_with_timeout(permit, head, body, first)).await,
    }
}

async fn read_with_timeout<B: http_body::Body>(
    permit: &mut InFlightPermit,
    head: &RequestHead,
    body: Pin<&mut B>,
    first: Poll<Option<BodyChunk>>,
) -> Result<Bytes, Response<ResponseBody>> {
    let endpoint = permit.endpoint.clone();
    let HttpOptions {
        body_limit,
        body_timeout,
        ..
    } = endpoint.options;
    let caller = permit.count_for(head);
    let share = endpoint
        .partial_bodies
        .share(&endpoint.caller_shares, caller);
    let collected = collect(body, first, body_limit, share);
    match tokio::time::timeout(body_timeout, collected).await {
        Ok(bytes) => bytes,
        Err(_) => Err(responses::invalid_request(
            StatusCode::REQUEST_TIMEOUT,
            "the request body was not received in time",
        )),
    }
}

async fn collect<B: http_body::Body>(
    mut body: Pin<&mut B>,
    first: Poll<Option<BodyChunk>>,
    limit: usize,
    mut share: BudgetShare<'_>,
) -> Result<Bytes, Response<ResponseBody>> {
    let first = match first {
        Poll::Ready(first) => first.transpose()?,
        Poll::Pending => next_chunk(body.as_mut()).await?,
    };
    let Some(first) = first else {
        return Ok(Bytes::new());
    };
    let first = check_limit(limit, first)?;
    if body.is_end_stream() {
        return Ok(first);
    }
    share.reserve(first.len())?;
    let Some(second) = next_chunk(body.as_mut()).await? else {
        return Ok(first);
    };
    // Allocate at most 64 KiB for the announced length; the client may not send that much.
    let announced = body.size_hint().lower().min(64 * 1024) as usize;
    let mut buffer = BytesMut::with_capacity(first.len() + second.len() + announced);
    buffer.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(data) = next {
        if buffer.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        share.reserve(data.len())?;
        buffer.extend_from_slice(&data);
        next = next_chunk(body.as_mut()).await?;
    }
    Ok(buffer.freeze())
}

/// A chunk of a body, or the error response if the body ended early.
type BodyChunk = Result<Bytes, Response<ResponseBody>>;

/// Returns the next chunk.
async fn next_chunk<B: http_body::Body>(
    mut body: Pin<&mut B>,
) -> Result<Option<Bytes>, Response<ResponseBody>> {
    poll_fn(|cx| poll_chunk(body.as_mut(), cx))
        .await
        .transpose()
}

/// Returns the next chunk; trailers are skipped.
fn poll_chunk<B: http_body::Body>(
    mut body: Pin<&mut B>,
    cx: &mut Context<'_>,
) -> Poll<Option<BodyChunk>> {
    loop {
        match ready!(body.as_mut().poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Ok(frame)) => {
                if let Ok(mut data) = frame.into_data() {
                    return Poll::Ready(Some(Ok(data.copy_to_bytes(data.remaining()))));
                }
            }
            Some(Err(_)) => {
                let response = responses::invalid_request(
                    StatusCode::BAD_REQUEST,
                    "the request body ended early",
                );
                return Poll::Ready(Some(Err(response)));
            }
        }
    }
}

fn check_limit(limit: usize, data: Bytes) -> BodyChunk {
    if data.len() > limit {
        return Err(too_large(limit));
    }
    Ok(data)
}

fn too_large(limit: usize) -> Response<ResponseBody> {
    responses::invalid_request(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request body exceeds {limit} bytes"),
    )
}

/// The bytes that all partially received bodies may occupy together.
pub(super) struct PartialBodyBudget {
    used: AtomicUsize,
    max_bytes: usize,
}

impl PartialBodyBudget {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            max_bytes,
        }
    }

    fn share<'a>(&'a self, shares: &'a CallerShares, caller: &'a CallerUsage) -> BudgetShare<'a> {
        BudgetShare {
            budget: self,
            shares,
            caller,
            bytes: 0,
        }
    }
}

/// The bytes that one partially received body occupies. They are returned on drop.
struct BudgetShare<'a> {
    budget: &'a PartialBodyBudget,
    shares: &'a CallerShares,
    caller: &'a CallerUsage,
    bytes: usize,
}

impl BudgetShare<'_> {
    /// Reserves bytes for more of the body, or returns an error response if the budget or the share of the caller is
    /// exhausted.
    fn reserve(&mut self, bytes: usize) -> Result<(), Response<ResponseBody>> {
        self.bytes += bytes;
        let used = self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        let by_caller = self.caller.body_bytes.fetch_add(bytes, Ordering::Relaxed);
        if used + bytes > self.budget.max_bytes {
            return Err(responses::service_unavailable(
                None,
                "too many partially received bodies; retry in a few seconds",
            ));
        }
        let usage = LimitUsage {
            by_caller,
            by_others: used.saturating_sub(by_caller),
            free: self.budget.max_bytes - used,
        };
        if !self.shares.allow(self.caller.owner(), &usage) {
            return Err(responses::too_many_requests(
                None,
                "too many partially received bodies of one caller; retry when some are complete",
            ));
        }
        Ok(())
    }
}

impl Drop for BudgetShare<'_> {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.caller
            .body_bytes
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, convert::Infallible, pin::pin};

    use http_body::Frame;
    use turnbuckle_store::SessionOwner;

    use super::*;

    /// A body of several chunks that never ends.
    struct PendingChunks(VecDeque<Bytes>);

    impl PendingChunks {
        fn new(count: usize) -> Self {
            Self(
                (0..count)
                    .map(|_| Bytes::from_static(&[b'x'; 100]))
                    .collect(),
            )
        }
    }

    impl http_body::Body for PendingChunks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
                None => Poll::Pending,
            }
        }
    }

    /// Reads a body of so many chunks of 100 bytes that never ends. Returns the status if it is rejected.
    macro_rules! read_partial {
        ($name:ident, $chunks:expr, $budget:expr, $shares:expr, $caller:expr) => {
            let body = pin!(PendingChunks::new($chunks));
            let share = $budget.share(&$shares, &$caller);
            let mut $name = pin!(collect(body, Poll::Pending, 1000, share));
            let $name = status($name.as_mut());
        };
    }

    /// Polls once. Returns the status of a rejection.
    fn status(
        reading: Pin<&mut impl Future<Output = Result<Bytes, Response<ResponseBody>>>>,
    ) -> Option<u16> {
        match reading.poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Pending => None,
            Poll::Ready(Err(response)) => Some(response.status().as_u16()),
            Poll::Ready(Ok(_)) => panic!("the body never ends"),
        }
    }

    #[test]
    fn partial_bodies_share_a_budget_and_return_it() {
        let (budget, shares) = (PartialBodyBudget::new(500), CallerShares::new(75));
        let caller = shares.caller(SessionOwner::shared("unknown"));
        {
            read_partial!(first, 4, budget, shares, caller);
            read_partial!(second, 2, budget, shares, caller);

            assert_eq!((first, second), (None, Some(503)));
        }

        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
        read_partial!(third, 5, budget, shares, caller);
        assert_eq!(third, None);
    }

    #[test]
    fn the_partial_bodies_of_one_caller_leave_room_for_others() {
        let (budget, shares) = (PartialBodyBudget::new(1000), CallerShares::new(75));
        let greedy = shares.caller(SessionOwner::caller("greedy"));
        let modest = shares.caller(SessionOwner::caller("modest"));
        read_partial!(first, 7, budget, shares, greedy);
        read_partial!(second, 2, budget, shares, greedy);
        assert_eq!((first, second), (None, Some(429)));

        read_partial!(third, 1, budget, shares, modest);

        assert_eq!(third, None);
    }

    #[test]
    fn a_body_in_one_chunk_uses_no_budget() {
        let (budget, shares) = (PartialBodyBudget::new(0), CallerShares::new(75));
        let caller = shares.caller(SessionOwner::caller("one"));
        let body = pin!(http_body_util::Full::new(Bytes::from_static(b"whole")));

        let share = budget.share(&shares, &caller);
        let mut reading = pin!(collect(body, Poll::Pending, 1000, share));

        let outcome = reading
            .as_mut()
            .poll(&mut Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(outcome, Poll::Ready(Ok(bytes)) if bytes == "whole"));
    }
}
