//! The end of an HTTP+SSE session, and its limits.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use turnbuckle_server::{
    Context, Server, Tool,
    http::{self, HttpSse},
};

use crate::{
    http::test_client::{Empty, HttpTestClient, initialize, modern, server, tool},
    http_sse::test_client::{HttpSseClient, get, ping, post, with_http_sse},
};

/// A server with a tool `forever` that never returns, and the number of its running calls.
fn forever() -> (Server, Arc<AtomicUsize>) {
    struct Running(Arc<AtomicUsize>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let running = Arc::new(AtomicUsize::new(0));
    let counter = running.clone();
    let tool = Tool::new("forever", move |_: Empty| {
        counter.fetch_add(1, Ordering::SeqCst);
        let running = Running(counter.clone());
        async move {
            let _running = running;
            std::future::pending::<()>().await;
            Ok(String::new())
        }
    });
    (server().tool(tool), running)
}

#[tokio::test(start_paused = true)]
async fn calls_and_the_url_end_with_the_stream() {
    let (server, running) = forever();
    let caller = HttpTestClient::with_options(with_http_sse(server));
    let peer = HttpSseClient::initialized(&caller, "2024-11-05").await;
    let other = HttpSseClient::initialized(&caller, "2024-11-05").await;
    let call = json!({ "name": "forever", "arguments": {} });
    for peer in [&peer, &other] {
        peer.post_accepted(&tool(1, "forever", &json!({}))).await;
        peer.post_accepted(&modern("tools/call", call.clone()))
            .await;
    }
    assert_eq!(running.load(Ordering::SeqCst), 4);

    let uri = peer.uri;
    drop(peer.stream);
    sleep(Duration::from_millis(1)).await;

    assert_eq!(running.load(Ordering::SeqCst), 2);
    let http_response = caller.send(post(&uri), ping(2).to_string()).await;
    assert_eq!(http_response.status(), 404);
    drop(other);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(running.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_posted_while_its_stream_ends_is_cancelled() {
    let (server, running) = forever();
    let caller = HttpTestClient::with_options(with_http_sse(server));

    for _ in 0..200 {
        let peer = HttpSseClient::initialized(&caller, "2024-11-05").await;
        let (poster, uri) = (caller.clone(), peer.uri);
        let posting = tokio::spawn(async move {
            let call = tool(1, "forever", &json!({})).to_string();
            poster.send(post(&uri), call).await.status().as_u16()
        });
        tokio::task::yield_now().await;
        drop(peer.stream);
        assert!(matches!(posting.await.unwrap(), 202 | 404));
    }

    let all_ended = async {
        while running.load(Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), all_ended).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_sends_heartbeats() {
    let caller = HttpTestClient::with_options(
        with_http_sse(server()).stream_heartbeat(Duration::from_secs(3)),
    );
    let mut peer = HttpSseClient::open(&caller).await;

    for _ in 0..2 {
        let started = Instant::now();
        assert_eq!(peer.stream.bytes().await.unwrap(), ": alive\n\n");
        assert_eq!(started.elapsed().as_secs(), 3);
    }
}

#[tokio::test]
async fn the_number_of_streams_is_limited() {
    let http = http::Http::new(server()).http_sse(HttpSse::new().max_streams(2));
    let caller = HttpTestClient::with_options(http);
    let first = HttpSseClient::open(&caller).await;
    let _second = HttpSseClient::open(&caller).await;

    let refused = caller.send(get("/sse"), "").await;
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(refused.status_and_code().await, (503, -32603));
    drop(first);

    HttpSseClient::open(&caller).await;
}

#[tokio::test]
async fn streams_and_calls_are_counted_with_other_requests() {
    let (server, _running) = forever();
    let caller = HttpTestClient::with_options(with_http_sse(server).max_in_flight(2));
    let mut first = HttpSseClient::initialized(&caller, "2024-11-05").await;
    for id in 0..2 {
        first.post_accepted(&tool(id, "forever", &json!({}))).await;
    }

    let busy = first.request(&tool(2, "forever", &json!({}))).await;
    assert_eq!(
        (&busy["id"], &busy["error"]["code"]),
        (&json!(2), &json!(-32603))
    );
    let _second = HttpSseClient::open(&caller).await;
    assert_eq!(caller.send(get("/sse"), "").await.status(), 503);
}

#[tokio::test]
async fn one_caller_does_not_use_all_calls_of_http_sse() {
    let (server, _running) = forever();
    let http = with_http_sse(server)
        .max_in_flight(8)
        .max_calls_per_session(4);
    let caller = HttpTestClient::with_options(http);
    let address = |last: u8| SocketAddr::from(([203, 0, 113, last], 1000));
    let open = async |last: u8| {
        let opened = caller.send(get("/sse").extension(address(last)), "").await;
        let mut stream = opened.stream();
        let uri = stream.event().await.unwrap().data;
        (stream, uri)
    };
    let call = async |uri: &str, id: i64| {
        let message = tool(id, "forever", &json!({})).to_string();
        caller.send(post(uri).extension(address(1)), message).await
    };
    let handshake = async |uri: &str| {
        let message = initialize("2024-11-05").to_string();
        caller.send(post(uri), message).await;
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        caller.send(post(uri), message.to_string()).await;
    };
    let (first, second, other) = (open(1).await, open(1).await, open(2).await);
    for (_, uri) in [&first, &second, &other] {
        handshake(uri).await;
    }
    // The fifth is beyond the limit of the session.
    for id in 0..5 {
        assert_eq!(call(&first.1, id).await.status(), 202);
    }
    for id in 0..2 {
        assert_eq!(call(&second.1, id).await.status(), 202);
    }

    assert_eq!(call(&second.1, 2).await.status(), 429);
    assert_eq!(call(&other.1, 1).await.status(), 202);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_gets_no_response_but_can_cancel_calls() {
    let (server, running) = forever();
    let caller = HttpTestClient::with_options(with_http_sse(server));
    let mut peer = HttpSseClient::initialized(&caller, "2024-11-05").await;
    peer.post_accepted(&tool(1, "forever", &json!({}))).await;
    let long = tool(2, "echo", &json!({ "message": "x".repeat(40_000) }));
    peer.post_accepted(&long).await;
    peer.post_accepted(&long).await;

    assert_eq!(peer.post(long.to_string()).await.status(), 503);
    let params = json!({ "requestId": 1 });
    peer.post_accepted(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
    )
    .await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(running.load(Ordering::SeqCst), 0);

    for _ in 0..2 {
        assert_eq!(peer.next().await["id"], 2);
    }
    assert_eq!(peer.request(&ping(3)).await["id"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_handler_waits_for_a_client_that_does_not_read() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let flood = Tool::new("flood", move |_: Empty, cx: Context| {
        let counter = counter.clone();
        async move {
            for step in 0..20_000 {
                cx.progress(step, 20_000).await;
                counter.fetch_add(1, Ordering::SeqCst);
            }
            Ok("done".to_owned())
        }
    });
    let caller = HttpTestClient::with_options(with_http_sse(server().tool(flood)));
    let mut peer = HttpSseClient::initialized(&caller, "2024-11-05").await;

    peer.post_accepted(&tool(1, "flood", &json!({}))).await;
    sleep(Duration::from_secs(1)).await;

    let waiting = sent.load(Ordering::SeqCst);
    assert!((1..2_000).contains(&waiting), "{waiting}");
    let mut last = peer.next().await;
    while last.get("method").is_some() {
        last = peer.next().await;
    }
    assert_eq!(last["id"], 1);
}

async fn read_until(stream: &mut DuplexStream, wanted: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(wanted) {
        let length = stream.read(&mut buffer).await.unwrap();
        assert_ne!(length, 0, "the end, after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
    text
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_calls_finish_and_then_ends_the_stream() {
    let (connector, listener) = http::memory();
    let (stop, stopped) = oneshot::channel::<()>();
    let nap = Tool::new("nap", async |_: Empty| {
        sleep(Duration::from_secs(2)).await;
        Ok("rested".to_owned())
    });
    let http = with_http_sse(server().tool(nap));
    let ended = tokio::spawn(http.serve_until(listener, async { drop(stopped.await) }));
    let mut stream = connector.connect().await.unwrap();
    let head = "GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let text = read_until(&mut stream, "sessionId=").await;
    let uri = text
        .split("data: ")
        .nth(1)
        .unwrap()
        .trim()
        .lines()
        .next()
        .unwrap();
    for message in [
        crate::http::test_client::initialize("2024-11-05"),
        tool(1, "nap", &json!({})),
    ] {
        let mut posting = connector.connect().await.unwrap();
        let body = message.to_string();
        let text = format!(
            "POST {uri} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        posting.write_all(text.as_bytes()).await.unwrap();
        read_until(&mut posting, "202 Accepted").await;
    }

    let started = Instant::now();
    stop.send(()).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();

    assert!(rest.contains("rested"), "{rest}");
    assert_eq!(started.elapsed().as_secs(), 2);
    timeout(Duration::from_secs(1), ended)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}
