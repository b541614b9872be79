//! Quotas of one caller in shared limits.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::Method;
use serde_json::json;
use tower_service::Service;
use tracing::{
    Event, Level, Metadata, Subscriber,
    span::{Attributes, Id, Record},
};
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Server,
    http::{Http, HttpSse},
    testing::TestHttpClient,
};
use turnbuckle_store::{Store, StoreLimits};

use crate::http::test_client::{
    HttpTestClient, HttpTestResponse, initialize, modern, modern_headers, server,
};

/// A server with a limit of sessions in total and per caller.
fn roomy(max_sessions: usize, per_owner: usize) -> (Server, Store) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = max_sessions;
    limits.sessions.max_sessions_per_owner = per_owner;
    let store = Store::memory_with(limits);
    (server().store(store.clone()), store)
}

/// A client with a public IP address.
#[derive(Clone)]
struct Peer {
    caller: HttpTestClient,
    address: SocketAddr,
}

impl Peer {
    fn new(caller: &HttpTestClient, last: u8) -> Self {
        Self {
            caller: caller.clone(),
            address: ([203, 0, 113, last], 1000).into(),
        }
    }

    fn request(&self, method: Method) -> http::request::Builder {
        TestHttpClient::request(&self.caller, method).extension(self.address)
    }

    /// Sends `initialize`.
    async fn initialize(&self) -> HttpTestResponse {
        let hello = initialize("2025-11-25").to_string();
        self.caller.send(self.request(Method::POST), hello).await
    }

    /// Initializes a session, and returns its client.
    async fn begin(&self) -> Self {
        let http_response = self.initialize().await;
        assert_eq!(http_response.status(), 200);
        let mut peer = self.clone();
        peer.caller.session = http_response.header("mcp-session-id").map(str::to_owned);
        peer.caller.version = Some("2025-11-25".to_owned());
        peer.post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        peer
    }

    async fn post(&self, message: serde_json::Value) -> HttpTestResponse {
        let body = message.to_string();
        self.caller.send(self.request(Method::POST), body).await
    }

    /// Returns whether the session still exists.
    async fn is_served(&self) -> bool {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        match self.post(ping).await.status().as_u16() {
            200 => true,
            404 => false,
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn one_caller_does_not_block_others() {
    let (server, store) = roomy(20, 5);
    let caller = HttpTestClient::new(server);
    let (greedy, modest) = (Peer::new(&caller, 1), Peer::new(&caller, 2));

    for _ in 0..100 {
        greedy.begin().await;
    }
    assert_eq!(store.sessions.len().await.unwrap(), 5);
    let modest = modest.begin().await;
    for _ in 0..100 {
        greedy.begin().await;
    }

    assert!(modest.is_served().await);
    assert_eq!(store.sessions.len().await.unwrap(), 6);
}

/// A server with a limit of session bytes, a client behind a proxy, and another client.
fn with_bytes(max_extra_bytes: usize) -> (Peer, Peer) {
    let mut limits = StoreLimits::default();
    limits.sessions.max_extra_bytes = max_extra_bytes;
    let caller = HttpTestClient::new(server().store(Store::memory_with(limits)));
    let proxied = Peer {
        caller: caller.clone(),
        address: "10.0.0.2:4000".parse().unwrap(),
    };
    (proxied, Peer::new(&caller, 1))
}

#[tokio::test]
async fn sessions_with_large_profiles_do_not_block_others() {
    let (proxied, modest) = with_bytes(100_000);
    let hello = |length: usize| {
        let mut hello = initialize("2025-11-25");
        hello["params"]["clientInfo"]["name"] = json!("x".repeat(length));
        hello
    };

    for _ in 0..20 {
        assert_eq!(proxied.post(hello(20_000)).await.status(), 200);
    }
    for _ in 0..3 {
        assert_eq!(modest.post(hello(15_000)).await.status(), 200);
    }

    assert_eq!(modest.post(hello(60_000)).await.status(), 503);
}

#[tokio::test]
async fn subscriptions_of_idle_sessions_do_not_block_others() {
    // A subscription takes 72 bytes.
    let (proxied, modest) = with_bytes(200);
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "test://a" },
    });
    let idle = [proxied.begin().await, proxied.begin().await];
    for idle in &idle {
        let http_response = idle.post(subscribe.clone()).await;
        assert!(http_response.json().await["result"].is_object());
    }
    let modest = modest.begin().await;

    let http_response = modest.post(subscribe.clone()).await;

    assert!(http_response.json().await["result"].is_object());
    assert!(!idle[0].is_served().await);
    assert!(idle[1].is_served().await);
}

#[tokio::test]
async fn callers_behind_one_proxy_share_the_unused_capacity() {
    let (server, store) = roomy(20, 5);
    let caller = HttpTestClient::new(server);
    let proxied = Peer {
        caller: caller.clone(),
        address: "10.0.0.2:4000".parse().unwrap(),
    };

    for _ in 0..100 {
        proxied.begin().await;
    }
    assert_eq!(store.sessions.len().await.unwrap(), 20);

    let mut others = Vec::new();
    for last in 1..4 {
        others.push(Peer::new(&caller, last).begin().await);
    }
    for _ in 0..100 {
        proxied.begin().await;
    }
    for other in others {
        assert!(other.is_served().await);
    }
    assert_eq!(store.sessions.len().await.unwrap(), 20);
}

#[tokio::test]
async fn a_full_table_evicts_an_idle_session_of_the_largest_owner() {
    let (server, store) = roomy(10, 9);
    let caller = HttpTestClient::new(server);
    let mut large = Vec::new();
    for _ in 0..7 {
        large.push(Peer::new(&caller, 1).begin().await);
    }
    let mut small = Vec::new();
    for _ in 0..3 {
        small.push(Peer::new(&caller, 2).begin().await);
    }

    let newcomer = Peer::new(&caller, 3).begin().await;

    assert!(newcomer.is_served().await);
    assert!(!large[0].is_served().await, "the oldest of the largest");
    for kept in large[1..].iter().chain(&small) {
        assert!(kept.is_served().await);
    }
    assert_eq!(store.sessions.len().await.unwrap(), 10);
}

#[tokio::test]
async fn a_session_with_an_open_stream_is_not_replaced() {
    let (server, _) = roomy(20, 2);
    let caller = HttpTestClient::new(server);
    let first = Peer::new(&caller, 1).begin().await;
    let stream = first.caller.get(None).await;
    assert_eq!(stream.status(), 200);
    let second = Peer::new(&caller, 1).begin().await;

    let third = Peer::new(&caller, 1).begin().await;
    assert!(first.is_served().await);
    assert!(!second.is_served().await);
    let other_stream = third.caller.get(None).await;
    assert_eq!(other_stream.status(), 200);

    let refused = Peer::new(&caller, 1).initialize().await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.header("retry-after"), Some("5"));
    let error = refused.json().await;
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("more than 2 sessions"), "{message}");

    // An unread stream is kept for a while, but its session is idle.
    drop(stream);
    Peer::new(&caller, 1).begin().await;
    assert!(!first.is_served().await);
    assert!(third.is_served().await);
}

#[tokio::test]
async fn a_session_with_a_running_call_is_not_replaced() {
    let (server, _) = roomy(20, 1);
    let caller = HttpTestClient::new(server);
    let busy = Peer::new(&caller, 1).begin().await;
    let call = json!({
        "jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": { "_meta": { "progressToken": 1 }, "name": "sleep", "arguments": {} },
    });
    // It continues without a waiting client.
    let calling = tokio::spawn({
        let busy = busy.clone();
        async move { drop(busy.post(call).await) }
    });
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    calling.abort();

    let refused = Peer::new(&caller, 1).initialize().await;

    assert_eq!(refused.status(), 429);
    assert!(busy.is_served().await);
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 },
    });
    assert_eq!(busy.post(cancel).await.status(), 202);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    Peer::new(&caller, 1).begin().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_with_a_running_task_is_not_replaced() {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions_per_owner = 1;
    let server = crate::tasks::test_server::server().store(Store::memory_with(limits));
    let caller = HttpTestClient::new(server);
    let working = Peer::new(&caller, 1).begin().await;
    let call = json!({
        "jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": { "name": "work", "arguments": { "seconds": 30 }, "task": {} },
    });
    let task = working.post(call).await.json().await;
    assert_eq!(task["result"]["task"]["status"], "working", "{task}");

    let refused = Peer::new(&caller, 1).initialize().await;

    assert_eq!(refused.status(), 429);
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(Peer::new(&caller, 1).initialize().await.status(), 200);
}

#[tokio::test]
async fn a_session_in_use_on_another_listener_is_not_replaced() {
    let (server, _) = roomy(20, 1);
    let (here, there) = (
        HttpTestClient::new(server.clone()),
        HttpTestClient::new(server),
    );
    let mut peer = Peer::new(&here, 1).begin().await;
    let session = peer.caller.session.clone();
    peer.caller = there;
    (peer.caller.session, peer.caller.version) = (session, Some("2025-11-25".to_owned()));
    let stream = peer.caller.get(None).await;
    assert_eq!(stream.status(), 200);

    let refused = Peer::new(&here, 1).initialize().await;

    assert_eq!(refused.status(), 429);
    drop(stream);
    assert_eq!(Peer::new(&here, 1).initialize().await.status(), 200);
}

#[tokio::test]
async fn principals_have_separate_quotas_on_every_address() {
    let (server, _) = roomy(20, 1);
    let caller = HttpTestClient::new(server);
    let as_whom = |subject: &str, client: &str, last| {
        let mut peer = Peer::new(&caller, last);
        let mut principal = Principal::new("https://issuer.example", subject);
        principal.client = Some(client.to_owned());
        peer.caller.principal = Some(principal);
        peer
    };
    let ann = as_whom("ann", "one", 1).begin().await;
    let bob = as_whom("bob", "one", 1).begin().await;
    assert!(ann.is_served().await);

    as_whom("ann", "two", 2).begin().await;

    assert!(!ann.is_served().await, "another client is the same caller");
    assert!(bob.is_served().await);
}

#[tokio::test]
async fn one_caller_does_not_use_all_http_sse_streams() {
    let http = Http::new(server()).http_sse(HttpSse::new().max_streams_per_caller(2));
    let caller = HttpTestClient::with_options(http);
    let open = async |last: u8| {
        let request = http::Request::get("/sse")
            .header("host", "localhost")
            .header("accept", "text/event-stream")
            .extension(Peer::new(&caller, last).address);
        caller.send(request, "").await
    };
    let held = [open(1).await, open(1).await];

    let refused = open(1).await;

    assert_eq!(refused.status(), 429);
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(open(2).await.status(), 200);
    drop(held);
    assert_eq!(open(1).await.status(), 200);
}

#[tokio::test]
async fn a_shared_address_does_not_exhaust_the_http_sse_streams() {
    let http = Http::new(server()).http_sse(HttpSse::new().max_streams(20));
    let caller = HttpTestClient::with_options(http);
    let open = async |address: [u8; 4]| {
        let request = http::Request::get("/sse")
            .header("host", "localhost")
            .header("accept", "text/event-stream")
            .extension(SocketAddr::from((address, 1000)));
        caller.send(request, "").await
    };
    let mut held = Vec::new();
    for _ in 0..18 {
        held.push(open([127, 0, 0, 1]).await);
        assert_eq!(held.last().unwrap().status(), 200);
    }

    let refused = open([127, 0, 0, 1]).await;

    assert_eq!(refused.status(), 429);
    for _ in 0..2 {
        held.push(open([203, 0, 113, 1]).await);
        assert_eq!(held.last().unwrap().status(), 200);
    }
    assert_eq!(open([203, 0, 113, 1]).await.status(), 503);
}

/// Opens a stateless stream from an address.
async fn listen(caller: &HttpTestClient, address: [u8; 4]) -> HttpTestResponse {
    let message = modern(
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    let request = modern_headers(caller.request(Method::POST), &message)
        .extension(SocketAddr::from((address, 1000)));
    caller.send(request, message.to_string()).await
}

#[tokio::test]
async fn one_caller_does_not_use_all_requests_in_flight() {
    let caller = HttpTestClient::with_options(Http::new(server()).max_in_flight(8));
    let mut open = Vec::new();
    for _ in 0..6 {
        open.push(listen(&caller, [203, 0, 113, 1]).await);
        assert_eq!(open.last().unwrap().status(), 200);
    }

    let rejected = listen(&caller, [203, 0, 113, 1]).await;

    assert_eq!(rejected.status(), 429);
    assert_eq!(rejected.header("retry-after"), Some("5"));
    open.push(listen(&caller, [203, 0, 113, 2]).await);
    assert_eq!(open.last().unwrap().status(), 200);
    // A share of the rest is less than one more, but a caller without requests gets it.
    assert_eq!(listen(&caller, [203, 0, 113, 2]).await.status(), 429);
    assert_eq!(listen(&caller, [203, 0, 113, 3]).await.status(), 200);
    open.clear();
    assert_eq!(listen(&caller, [203, 0, 113, 1]).await.status(), 200);
}

#[tokio::test]
async fn a_single_address_of_a_proxy_may_use_all_requests_in_flight() {
    let caller = HttpTestClient::with_options(Http::new(server()).max_in_flight(8));
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(listen(&caller, [127, 0, 0, 1]).await);
        assert_eq!(open.last().unwrap().status(), 200);
    }

    assert_eq!(listen(&caller, [127, 0, 0, 1]).await.status(), 503);
}

#[tokio::test]
async fn the_share_of_a_caller_can_be_set() {
    let http = Http::new(server()).max_in_flight(8).max_caller_share(25);
    let caller = HttpTestClient::with_options(http);
    let _open = [
        listen(&caller, [203, 0, 113, 1]).await,
        listen(&caller, [203, 0, 113, 1]).await,
    ];

    assert_eq!(listen(&caller, [203, 0, 113, 1]).await.status(), 429);
    assert_eq!(listen(&caller, [203, 0, 113, 2]).await.status(), 200);
}

/// A body that never arrives.
struct MissingBody;

impl http_body::Body for MissingBody {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn requests_without_their_body_count_for_their_caller() {
    let mut service = Http::new(server()).max_in_flight(4).into_service();
    let mut begin = |last: u8| {
        let request = http::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .extension(SocketAddr::from(([203, 0, 113, last], 1000)))
            .body(MissingBody)
            .unwrap();
        let mut response = service.call(request);
        let polled = response
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        (response, polled.is_pending())
    };
    let waiting: Vec<_> = (0..3).map(|_| begin(1)).collect();
    assert!(waiting.iter().all(|(_, is_pending)| *is_pending));

    let (rejected, _) = begin(1);
    let rejected = rejected.await.unwrap();
    let (_, is_pending) = begin(2);

    assert_eq!(rejected.status(), 429);
    assert!(is_pending, "another caller is not rejected");
}

#[tokio::test(start_paused = true)]
async fn calls_of_sessions_count_for_their_caller() {
    let caller = HttpTestClient::with_options(Http::new(server()).max_in_flight(4));
    let greedy = Peer::new(&caller, 1).begin().await;
    let modest = Peer::new(&caller, 2).begin().await;
    // The tool sleeps for a minute.
    let call = |id: u32| {
        let params = json!({ "name": "sleep", "arguments": {} });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    for id in 0..3 {
        let (greedy, call) = (greedy.clone(), call(id));
        tokio::spawn(async move { greedy.post(call).await });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;

    assert_eq!(greedy.post(call(3)).await.status(), 429);
    assert_eq!(modest.post(call(1)).await.status(), 200);
}

/// Counts warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_warning_caused_by_callers_is_rate_limited() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let (server, _) = roomy(20, 0);
    let caller = HttpTestClient::new(server);

    for _ in 0..500 {
        let refused = Peer::new(&caller, 1).initialize().await;
        assert_eq!(refused.status(), 429);
    }

    assert_eq!(warnings.0.load(Ordering::SeqCst), 1);
}
