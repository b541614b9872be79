//! Connections that are slow, broken or hostile.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};
use turnbuckle_server::{
    Context, Server, Tool,
    http::{self, Http, MemoryConnector},
};
use turnbuckle_spec_coverage::{req, saw_message};

use crate::http::test_client::{Empty, initialize, modern, server};

/// A server that listens in memory.
struct RunningListener {
    connector: MemoryConnector,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<std::io::Result<()>>,
}

fn listen(http: Http) -> RunningListener {
    let (connector, listener) = http::memory();
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(http.serve_until(listener, async { drop(stopped.await) }));
    RunningListener {
        connector,
        stop: Some(stop),
        ended,
    }
}

impl RunningListener {
    async fn connect(&self) -> DuplexStream {
        self.connector.connect().await.unwrap()
    }
}

/// The text of a request with a JSON body.
fn post(headers: &str, message: &Value) -> String {
    let body = message.to_string();
    saw_message(&body);
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The text of a modern call of a tool.
fn call(name: &str, arguments: &Value) -> String {
    let message = modern(
        "tools/call",
        json!({ "name": name, "arguments": arguments }),
    );
    let headers = format!(
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\n"
    );
    post(&headers, &message)
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Reads until the text contains the expected part.
async fn read_until(stream: &mut (impl AsyncRead + Unpin), wanted: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(wanted) {
        let read = timeout(Duration::from_secs(5), stream.read(&mut buffer));
        let count = read.await.expect(wanted).unwrap();
        assert_ne!(count, 0, "the connection ended after {text:?}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    text
}

/// Reads until the connection ends.
async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let read = timeout(Duration::from_secs(120), stream.read_to_end(&mut bytes));
    let _ = read.await.expect("the connection ends");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A server with a tool that never returns, and the number of its calls that run.
fn hanging() -> (Server, Arc<AtomicUsize>) {
    struct Count(Arc<AtomicUsize>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let running = Arc::new(AtomicUsize::new(0));
    let counter = running.clone();
    let hang = move |cx: Context, talks: bool| {
        counter.fetch_add(1, Ordering::SeqCst);
        let count = Count(counter.clone());
        async move {
            let _count = count;
            if talks {
                cx.progress(1, 2).await;
            }
            std::future::pending::<()>().await;
            Ok("never".to_owned())
        }
    };
    let counter = running.clone();
    let flood = move |_: Empty, cx: Context| {
        counter.fetch_add(1, Ordering::SeqCst);
        let count = Count(counter.clone());
        async move {
            let _count = count;
            for step in 0_u32.. {
                cx.progress_message(step, None, "x".repeat(1024)).await;
            }
            Ok("never".to_owned())
        }
    };
    let silent = hang.clone();
    let server = server()
        .tool(Tool::new("hang", move |_: Empty, cx: Context| {
            silent(cx, false)
        }))
        .tool(Tool::new("hang_aloud", move |_: Empty, cx: Context| {
            hang(cx, true)
        }))
        .tool(Tool::new("flood", flood));
    (server, running)
}

async fn becomes(counter: &AtomicUsize, wanted: usize) {
    for _ in 0..500 {
        if counter.load(Ordering::SeqCst) == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!(
        "{} calls run instead of {wanted}",
        counter.load(Ordering::SeqCst)
    );
}

#[tokio::test]
async fn a_response_is_one_body_with_content_length() {
    let listening = listen(Http::new(server()));
    let mut stream = listening.connect().await;

    write(&mut stream, &call("echo", &json!({ "message": "hi" }))).await;
    let mut buffer = vec![0; 64 * 1024];
    let count = stream.read(&mut buffer).await.unwrap();

    let text = String::from_utf8_lossy(&buffer[..count]);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"));
    assert!(head.contains(&format!("content-length: {}", body.len())));
    serde_json::from_str::<Value>(body).unwrap();
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let listening = listen(Http::new(server()));
    let mut stream = listening.connect().await;

    for text in ["one", "two", "three"] {
        write(&mut stream, &call("echo", &json!({ "message": text }))).await;
        read_until(&mut stream, &format!(r#""text":"{text}""#)).await;
    }
    // A bad body does not end it.
    write(&mut stream, &post("", &json!("nonsense"))).await;
    read_until(&mut stream, "-32600").await;
    write(&mut stream, &call("echo", &json!({ "message": "four" }))).await;
    read_until(&mut stream, r#""text":"four""#).await;
}

#[tokio::test]
async fn header_names_may_be_written_in_any_case() {
    req!("http.header.case-insensitive-names");
    let listening = listen(Http::new(server()));
    let mut stream = listening.connect().await;

    let text = call("echo", &json!({ "message": "hi" }))
        .replace("mcp-protocol-version", "MCP-Protocol-Version")
        .replace("mcp-method", "MCP-METHOD")
        .replace("accept", "Accept");
    write(&mut stream, &text).await;

    read_until(&mut stream, r#""text":"hi""#).await;
}

#[tokio::test]
async fn a_disconnect_before_the_response_cancels_a_stateless_call() {
    req!("http.cancel.disconnect", "http.cancel.stop");
    let (server, running) = hanging();
    let listening = listen(Http::new(server));
    let mut stream = listening.connect().await;
    write(&mut stream, &call("hang", &json!({}))).await;
    becomes(&running, 1).await;

    drop(stream);

    becomes(&running, 0).await;
}

#[tokio::test]
async fn a_disconnect_during_the_stream_cancels_a_stateless_call() {
    let (server, running) = hanging();
    let listening = listen(Http::new(server));
    let mut stream = listening.connect().await;
    write(&mut stream, &call("hang_aloud", &json!({}))).await;
    read_until(&mut stream, "notifications/progress").await;

    drop(stream);

    becomes(&running, 0).await;
}

#[tokio::test]
async fn a_disconnect_ends_a_subscription() {
    let (server, _) = hanging();
    let listening = listen(Http::new(server).max_in_flight(1));
    let mut stream = listening.connect().await;
    let message = modern(
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
    write(&mut stream, &post(headers, &message)).await;
    read_until(&mut stream, "acknowledged").await;

    drop(stream);

    // There is room for another request again.
    for _ in 0..100 {
        let mut stream = listening.connect().await;
        write(&mut stream, &call("echo", &json!({ "message": "hi" }))).await;
        if read_until(&mut stream, "}")
            .await
            .starts_with("HTTP/1.1 200")
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the subscription did not end");
}

#[tokio::test(start_paused = true)]
async fn a_disconnect_does_not_cancel_a_call_of_a_session() {
    req!("http.sse.disconnect-not-cancel");
    let (server, running) = hanging();
    let listening = listen(Http::new(server));
    let mut stream = listening.connect().await;
    write(&mut stream, &post("", &initialize("2025-11-25"))).await;
    let response = read_until(&mut stream, "serverInfo").await;
    let session = response
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap()
        .to_owned();
    let in_session = format!("mcp-session-id: {session}\r\n");
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "hang", "arguments": {} },
    });
    write(&mut stream, &post(&in_session, &call)).await;
    becomes(&running, 1).await;

    drop(stream);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(running.load(Ordering::SeqCst), 1);

    let mut stream = listening.connect().await;
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    write(&mut stream, &post(&in_session, &cancel)).await;
    read_until(&mut stream, "202 Accepted").await;
    becomes(&running, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_stops_the_handler() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let flood = Tool::new("flood", move |_: Empty, cx: Context| {
        let counter = counter.clone();
        async move {
            for step in 0_u32.. {
                let text = "x".repeat(1024);
                cx.progress_message(step, None, text).await;
                counter.fetch_add(1, Ordering::SeqCst);
            }
            Ok("never".to_owned())
        }
    });
    let listening = listen(Http::new(server().tool(flood)));
    let mut stream = listening.connect().await;

    write(&mut stream, &call("flood", &json!({}))).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = sent.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(200)).await;

    assert_eq!(sent.load(Ordering::SeqCst), before, "it waits");
    assert!(before < 5_000, "{before} messages are held");
    // Other clients are served at the same time.
    let mut other = listening.connect().await;
    write(&mut other, &call("echo", &json!({ "message": "hi" }))).await;
    read_until(&mut other, r#""text":"hi""#).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_disconnected() {
    let (server, running) = hanging();
    let listening = listen(Http::new(server));
    let mut stream = listening.connect().await;
    write(&mut stream, &call("flood", &json!({}))).await;
    becomes(&running, 1).await;

    tokio::time::sleep(Duration::from_secs(55)).await;
    assert_eq!(running.load(Ordering::SeqCst), 1, "it may still read");
    tokio::time::sleep(Duration::from_secs(10)).await;

    becomes(&running, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_head_that_never_ends_times_out() {
    let listening = listen(Http::new(server()).header_timeout(Duration::from_secs(5)));
    let mut stream = listening.connect().await;

    write(
        &mut stream,
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-slow",
    )
    .await;

    read_to_end(&mut stream).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_times_out() {
    let listening = listen(Http::new(server()).header_timeout(Duration::from_secs(5)));
    let mut stream = listening.connect().await;

    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_times_out() {
    let listening = listen(Http::new(server()).body_timeout(Duration::from_secs(2)));
    let headers = "host: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n";
    let announced = format!("POST /mcp HTTP/1.1\r\n{headers}content-length: 100\r\n\r\n{{");
    let chunked =
        format!("POST /mcp HTTP/1.1\r\n{headers}transfer-encoding: chunked\r\n\r\n1\r\n{{\r\n");

    for text in [announced, chunked] {
        let mut stream = listening.connect().await;
        write(&mut stream, &text).await;
        read_until(&mut stream, "408 Request Timeout").await;
    }
}

#[tokio::test]
async fn chunks_without_end_are_cut_off_at_the_limit() {
    let listening = listen(Http::new(server()).body_limit(10_000));
    let mut stream = listening.connect().await;
    write(
        &mut stream,
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n\
         transfer-encoding: chunked\r\n\r\n",
    )
    .await;

    let chunk = format!("400\r\n{}\r\n", " ".repeat(1024));
    for _ in 0..12 {
        write(&mut stream, &chunk).await;
    }

    read_until(&mut stream, "413 Payload Too Large").await;
}

#[tokio::test(start_paused = true)]
async fn content_length_with_chunked_encoding_does_not_smuggle_a_request() {
    let listening = listen(Http::new(server()));
    let mut stream = listening.connect().await;
    let body = json!("nonsense").to_string();
    let hidden = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";

    // A reader that used the length would find another request after 4 bytes.
    write(
        &mut stream,
        &format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n\
             content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}{hidden}\r\n0\r\n\r\n",
            body.len() + hidden.len()
        ),
    )
    .await;

    let text = read_until(&mut stream, "}").await;
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
    write(&mut stream, "").await;
    let more = timeout(Duration::from_millis(100), stream.read(&mut [0; 100])).await;
    assert!(
        more.is_err() || matches!(more, Ok(Ok(0))),
        "one answer only"
    );
}

#[tokio::test]
async fn a_request_head_over_the_limit_is_rejected() {
    let listening = listen(Http::new(server()));
    let mut stream = listening.connect().await;

    let long = format!(
        "GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    let _ = timeout(Duration::from_secs(5), stream.write_all(long.as_bytes())).await;

    let text = read_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 431"), "{text}");
}

#[tokio::test]
async fn non_http_input_is_rejected() {
    let listening = listen(Http::new(server()));
    for junk in [
        "\0\0\0\0",
        "GET\r\n\r\n",
        "POST /mcp HTTP/9.9\r\n\r\n",
        "{}\n\n",
    ] {
        let mut stream = listening.connect().await;
        write(&mut stream, junk).await;
        drop(stream);
    }

    let mut stream = listening.connect().await;
    write(&mut stream, &call("echo", &json!({ "message": "hi" }))).await;

    read_until(&mut stream, r#""text":"hi""#).await;
}

/// Runs all ready tasks, and lets a little time pass.
async fn tick() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

#[tokio::test(start_paused = true)]
async fn over_the_limit_the_longest_idle_connection_is_closed() {
    let listening = listen(Http::new(server()).max_connections(2));
    let echo = call("echo", &json!({ "message": "hi" }));
    let mut first = listening.connect().await;
    tick().await;
    let mut second = listening.connect().await;
    tick().await;
    write(&mut first, &echo).await;
    read_until(&mut first, r#""text":"hi""#).await;
    tick().await;

    let mut third = listening.connect().await;
    write(&mut third, &echo).await;
    read_until(&mut third, r#""text":"hi""#).await;

    assert_eq!(read_to_end(&mut second).await, "");
    write(&mut first, &echo).await;
    read_until(&mut first, r#""text":"hi""#).await;
}

#[tokio::test]
async fn a_connection_with_a_request_is_not_closed_for_another() {
    let (server, running) = hanging();
    let listening = listen(Http::new(server).max_connections(2));
    let mut streaming = listening.connect().await;
    write(&mut streaming, &call("hang_aloud", &json!({}))).await;
    read_until(&mut streaming, "notifications/progress").await;
    let mut waiting = listening.connect().await;
    write(&mut waiting, &call("hang", &json!({}))).await;
    becomes(&running, 2).await;

    let mut refused = listening.connect().await;

    let text = read_to_end(&mut refused).await;
    assert!(text.starts_with("HTTP/1.1 503"), "{text}");
    assert!(text.contains("connection: close"), "{text}");
    assert!(text.contains("retry-after: 5"), "{text}");
    assert_eq!(running.load(Ordering::SeqCst), 2);
    drop(waiting);
    becomes(&running, 1).await;
    let mut next = listening.connect().await;
    write(&mut next, &call("echo", &json!({ "message": "hi" }))).await;
    read_until(&mut next, r#""text":"hi""#).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_sending_a_response_is_not_closed_for_another() {
    let listening = listen(Http::new(server()).max_connections(1));
    let mut slow = listening.connect().await;
    // The connection buffers 64 KiB, which is less than all responses.
    let message = "x".repeat(10_000);
    for _ in 0..8 {
        write(&mut slow, &call("echo", &json!({ "message": message }))).await;
    }
    // Time advances only while the server waits for its client.
    tokio::time::sleep(Duration::from_secs(1)).await;

    let mut refused = listening.connect().await;

    let text = read_to_end(&mut refused).await;
    assert!(text.starts_with("HTTP/1.1 503"), "{text}");
    let mut text = String::new();
    while text.matches(&message).count() < 8 {
        text += &read_until(&mut slow, "x").await;
    }
    // When all is sent, it is idle.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut next = listening.connect().await;
    write(&mut next, &call("echo", &json!({ "message": "hi" }))).await;
    read_until(&mut next, r#""text":"hi""#).await;
}

/// Accepts connections from the addresses that the test names.
struct AddressListener(mpsc::Receiver<(DuplexStream, SocketAddr)>);

impl http::Listener for AddressListener {
    type Io = DuplexStream;

    async fn accept(&mut self) -> std::io::Result<(DuplexStream, Option<SocketAddr>)> {
        match self.0.recv().await {
            Some((io, peer)) => Ok((io, Some(peer))),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }
}

/// Serves on a listener with addresses. Returns a function that connects from an address with this last byte.
fn listen_with_addresses(http: Http) -> impl AsyncFn(u8) -> DuplexStream {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(http.serve(AddressListener(receiver)));
    async move |last| {
        let (ours, theirs) = tokio::io::duplex(1024);
        let peer = SocketAddr::from(([203, 0, 113, last], 1000));
        sender.send((theirs, peer)).await.unwrap();
        ours
    }
}

#[tokio::test(start_paused = true)]
async fn clients_of_one_address_that_do_not_read_leave_connections_for_others() {
    let connect = listen_with_addresses(Http::new(server()).max_connections(8));
    let echo = call("echo", &json!({ "message": "hi" }));
    let long = call("echo", &json!({ "message": "x".repeat(10_000) }));
    let mut unread = Vec::new();
    for _ in 0..6 {
        let mut slow = connect(1).await;
        write(&mut slow, &long).await;
        unread.push(slow);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;

    let refused = read_to_end(&mut connect(1).await).await;

    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(refused.contains("retry-after: 5"), "{refused}");
    let mut other = connect(2).await;
    write(&mut other, &echo).await;
    read_until(&mut other, r#""text":"hi""#).await;
    let mut third = connect(3).await;
    write(&mut third, &echo).await;
    read_until(&mut third, r#""text":"hi""#).await;
}

#[tokio::test(start_paused = true)]
async fn an_address_beyond_its_share_of_connections_loses_its_own_idle_one() {
    let connect = listen_with_addresses(Http::new(server()).max_connections(8));
    let echo = call("echo", &json!({ "message": "hi" }));
    let mut other = connect(2).await;
    tick().await;
    let mut own = Vec::new();
    for _ in 0..6 {
        own.push(connect(1).await);
        tick().await;
    }

    let mut next = connect(1).await;
    write(&mut next, &echo).await;
    read_until(&mut next, r#""text":"hi""#).await;

    assert_eq!(read_to_end(&mut own[0]).await, "");
    write(&mut other, &echo).await;
    read_until(&mut other, r#""text":"hi""#).await;
}

#[tokio::test(start_paused = true)]
async fn many_idle_connections_do_not_block_new_ones() {
    let listening = listen(Http::new(server()).max_connections(200));
    let mut idle = Vec::new();
    for _ in 0..1_000 {
        idle.push(listening.connect().await);
        tokio::task::yield_now().await;
    }

    let mut stream = listening.connect().await;
    write(&mut stream, &call("echo", &json!({ "message": "hi" }))).await;

    read_until(&mut stream, r#""text":"hi""#).await;
    // Only as many of the oldest as necessary are closed.
    assert_eq!(read_to_end(&mut idle[0]).await, "");
    let newest = idle.last_mut().unwrap();
    write(newest, &call("echo", &json!({ "message": "hi" }))).await;
    read_until(newest, r#""text":"hi""#).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_request_head_has_ten_seconds_and_later_ones_a_minute() {
    let listening = listen(Http::new(server()));
    let (mut silent, mut used) = (listening.connect().await, listening.connect().await);
    let began = tokio::time::Instant::now();
    write(&mut used, &call("echo", &json!({ "message": "hi" }))).await;
    read_until(&mut used, r#""text":"hi""#).await;

    assert_eq!(read_to_end(&mut silent).await, "");
    assert_eq!(began.elapsed().as_secs(), 10);

    assert_eq!(read_to_end(&mut used).await, "");
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_later_request_head_times_out_although_its_bytes_keep_arriving() {
    let http = Http::new(server()).keep_alive_timeout(Duration::from_secs(5));
    let listening = listen(http);
    let mut stream = listening.connect().await;
    write(&mut stream, &call("echo", &json!({ "message": "hi" }))).await;
    read_until(&mut stream, r#""text":"hi""#).await;
    let began = tokio::time::Instant::now();

    write(&mut stream, "POST /mcp HTTP/1.1\r\nx-slow: ").await;
    let closed = async {
        while timeout(Duration::from_secs(1), stream.read_u8())
            .await
            .is_err()
        {
            write(&mut stream, "a").await;
        }
    };

    timeout(Duration::from_secs(20), closed).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_call_may_last_longer_than_the_time_for_the_next_header() {
    let http = Http::new(server().tool(Tool::infallible("wait", async || {
        tokio::time::sleep(Duration::from_secs(4)).await;
        "waited".to_owned()
    })));
    let listening = listen(http.keep_alive_timeout(Duration::from_secs(1)));
    let mut stream = listening.connect().await;

    write(&mut stream, &call("wait", &json!({}))).await;

    read_until(&mut stream, r#""text":"waited""#).await;
}

/// A listener without a free descriptor, until a connection of it ends.
struct Exhausted {
    inner: http::MemoryListener,
    accepted: usize,
    tries: Arc<AtomicUsize>,
}

impl http::Listener for Exhausted {
    type Io = DuplexStream;

    async fn accept(&mut self) -> std::io::Result<(DuplexStream, Option<std::net::SocketAddr>)> {
        // The second connection lacks a descriptor for a while.
        if self.accepted == 1 && self.tries.fetch_add(1, Ordering::SeqCst) < 20 {
            return Err(std::io::Error::from_raw_os_error(24));
        }
        let accepted = self.inner.accept().await;
        self.accepted += 1;
        accepted
    }

    fn local_addr(&self) -> Option<std::net::SocketAddr> {
        None
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn without_a_free_descriptor_an_idle_connection_is_closed_and_accepting_goes_on() {
    let (connector, inner) = http::memory();
    let tries = Arc::new(AtomicUsize::new(0));
    let listener = Exhausted {
        inner,
        accepted: 0,
        tries: tries.clone(),
    };
    tokio::spawn(Http::new(server()).serve(listener));
    let mut idle = connector.connect().await.unwrap();
    let began = tokio::time::Instant::now();

    assert_eq!(read_to_end(&mut idle).await, "");
    assert!(began.elapsed() < Duration::from_secs(1), "at once");

    let mut stream = connector.connect().await.unwrap();
    write(&mut stream, &call("echo", &json!({ "message": "hi" }))).await;
    read_until(&mut stream, r#""text":"hi""#).await;
    // The next one waits to be accepted: it is accepted once, after the failed attempts.
    assert_eq!(tries.load(Ordering::SeqCst), 21);
    assert!(began.elapsed() > Duration::from_secs(3), "with pauses");
}

#[tokio::test]
async fn a_shutdown_lets_requests_finish_and_ends_streams() {
    req!("lifecycle.shutdown.http");
    let slow = Tool::new("slow", async |_: Empty| {
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok("finished".to_owned())
    });
    let mut listening = listen(Http::new(server().tool(slow)));
    let (mut calling, mut listen, idle) = (
        listening.connect().await,
        listening.connect().await,
        listening.connect().await,
    );
    write(&mut calling, &call("slow", &json!({}))).await;
    let message = modern(
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
    write(&mut listen, &post(headers, &message)).await;
    read_until(&mut listen, "acknowledged").await;

    listening.stop.take().unwrap().send(()).unwrap();

    assert!(read_to_end(&mut calling).await.contains("finished"));
    assert!(read_to_end(&mut listen).await.contains(r#""result""#));
    drop(idle);
    let ended = timeout(Duration::from_secs(5), listening.ended).await;
    ended.expect("the server ends").unwrap().unwrap();
    assert!(listening.connector.connect().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_of_one_listener_leaves_the_server_to_the_others() {
    let server = server();
    let mut first = listen(Http::new(server.clone()));
    let second = listen(Http::new(server));
    let message = modern(
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
    let subscribe = post(headers, &message);
    let (mut ends, mut stays) = (first.connect().await, second.connect().await);
    for stream in [&mut ends, &mut stays] {
        write(stream, &subscribe).await;
        read_until(stream, "acknowledged").await;
    }

    first.stop.take().unwrap().send(()).unwrap();

    assert!(read_to_end(&mut ends).await.contains(r#""result""#));
    first.ended.await.unwrap().unwrap();
    let more = timeout(Duration::from_millis(50), stays.read(&mut [0; 100])).await;
    assert!(more.is_err(), "the other subscription goes on");
    let mut late = second.connect().await;
    write(&mut late, &subscribe).await;
    read_until(&mut late, "acknowledged").await;
    let more = timeout(Duration::from_millis(50), late.read(&mut [0; 100])).await;
    assert!(more.is_err(), "a later subscription goes on");
}

#[tokio::test]
async fn durations_may_be_the_maximum() {
    let endless = Http::new(server())
        .header_timeout(Duration::MAX)
        .body_timeout(Duration::MAX)
        .shutdown_timeout(Duration::MAX)
        .stream_heartbeat(Duration::MAX)
        .sse_upgrade_after(Duration::MAX);
    let mut listening = listen(endless);
    let mut stream = listening.connect().await;

    write(&mut stream, &call("progress", &json!({ "steps": 2 }))).await;
    read_until(&mut stream, "done").await;
    write(&mut stream, &post("", &initialize("2025-11-25"))).await;
    let text = read_until(&mut stream, "serverInfo").await;
    let session = text.split("mcp-session-id: ").nth(1).unwrap();
    let in_session = format!(
        "mcp-session-id: {}\r\n",
        session.split('\r').next().unwrap()
    );
    let slow = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "_meta": { "progressToken": 1 }, "name": "progress", "arguments": { "steps": 2 } },
    });
    write(&mut stream, &post(&in_session, &slow)).await;
    read_until(&mut stream, "done").await;

    drop(stream);
    listening.stop.take().unwrap().send(()).unwrap();
    listening.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_shutdown_has_a_deadline() {
    let (server, running) = hanging();
    let mut listening = listen(Http::new(server).shutdown_timeout(Duration::from_millis(100)));
    let mut stream = listening.connect().await;
    write(&mut stream, &call("hang", &json!({}))).await;
    becomes(&running, 1).await;

    listening.stop.take().unwrap().send(()).unwrap();

    let ended = timeout(Duration::from_secs(5), listening.ended).await;
    ended.expect("the server ends").unwrap().unwrap();
    becomes(&running, 0).await;
}

#[tokio::test]
async fn handlers_see_the_address_of_the_client() {
    let look = Tool::new("look", async |_: Empty, cx: Context| {
        let peer = cx.get::<std::net::SocketAddr>().copied();
        Ok(peer.unwrap().to_string())
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(http::serve(listener, server().tool(look)));
    let mut stream = TcpStream::connect(address).await.unwrap();

    write(&mut stream, &call("look", &json!({}))).await;

    let text = read_until(&mut stream, r#""text""#).await;
    assert!(
        text.contains(&stream.local_addr().unwrap().to_string()),
        "{text}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn unix_sockets_are_served_too() {
    let path = std::env::temp_dir().join(format!("turnbuckle-{}.sock", std::process::id()));
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(http::serve(listener, server()));
    let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    std::fs::remove_file(&path).unwrap();

    write(&mut stream, &call("echo", &json!({ "message": "hi" }))).await;

    read_until(&mut stream, r#""text":"hi""#).await;
}

/// The text of a message in a session.
fn in_session(session: &str, message: &Value) -> String {
    let headers = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
    post(&headers, message)
}

#[tokio::test]
async fn one_connection_can_use_several_sessions_while_one_of_them_ends() {
    let listening = listen(Http::new(server()));
    let (mut first, mut second) = (listening.connect().await, listening.connect().await);
    let mut sessions = Vec::new();
    for _ in 0..2 {
        write(&mut first, &post("", &initialize("2025-11-25"))).await;
        let response = read_until(&mut first, "serverInfo").await;
        let id = response.split("mcp-session-id: ").nth(1).unwrap();
        sessions.push(id.split_once('\r').unwrap().0.to_owned());
    }
    let echo = |id: i64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": "echo", "arguments": { "message": format!("<{id}>") } } })
    };
    for (id, session) in [(1, 0), (2, 0), (3, 1), (4, 0)] {
        write(&mut first, &in_session(&sessions[session], &echo(id))).await;
        read_until(&mut first, &format!("<{id}>")).await;
    }

    let delete = format!(
        "DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {}\r\n\r\n",
        sessions[0]
    );
    write(&mut second, &delete).await;
    read_until(&mut second, "204 No Content").await;

    write(&mut first, &in_session(&sessions[0], &echo(5))).await;
    read_until(&mut first, "404 Not Found").await;
    write(&mut first, &in_session(&sessions[1], &echo(6))).await;
    read_until(&mut first, "<6>").await;
}

#[tokio::test]
async fn the_length_of_a_long_list_is_announced() {
    let tools = (0..200).fold(Server::new("long", "1"), |server, at| {
        let tool = Tool::new(format!("tool{at}"), async || Ok(()));
        server.tool(tool.description("one of many, in a long list"))
    });
    let listening = listen(Http::new(tools));
    let mut stream = listening.connect().await;
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n";

    write(
        &mut stream,
        &post(headers, &modern("tools/list", json!({}))),
    )
    .await;

    let mut response = read_until(&mut stream, "\r\n\r\n").await;
    let length = response.split("content-length: ").nth(1).expect("a length");
    let length: usize = length.split_once('\r').unwrap().0.parse().unwrap();
    let body = response.find("\r\n\r\n").unwrap() + 4;
    let mut rest = vec![0; body + length - response.len()];
    stream.read_exact(&mut rest).await.unwrap();
    response.push_str(&String::from_utf8(rest).unwrap());
    let list: Value = serde_json::from_str(&response[body..]).unwrap();
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 200);
    assert_eq!(list["result"]["resultType"], "complete");
}
