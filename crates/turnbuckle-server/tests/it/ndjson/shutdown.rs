//! Shutdown of a connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::oneshot,
    time::{Instant, sleep},
};
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Context, Server, Tool,
    ndjson::{NdjsonServer, serve},
};
use turnbuckle_spec_coverage::req;

use crate::ndjson::test_client::{Peer, modern};

fn server_with_sleep() -> (Server, Arc<AtomicUsize>) {
    let running = Arc::new(AtomicUsize::new(0));
    struct Running(Arc<AtomicUsize>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let counted = running.clone();
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nap {
        seconds: u64,
    }
    let nap = Tool::new("nap", move |args: Nap| {
        counted.fetch_add(1, Ordering::SeqCst);
        let guard = Running(counted.clone());
        async move {
            let _guard = guard;
            sleep(Duration::from_secs(args.seconds)).await;
            Ok("rested".to_owned())
        }
    });
    (Server::new("sleeper", "1").tool(nap), running)
}

fn nap(seconds: u64) -> Value {
    modern(json!({ "name": "nap", "arguments": { "seconds": seconds } }))
}

#[tokio::test(start_paused = true)]
async fn after_the_end_of_input_calls_get_five_seconds() {
    req!("stdio.shutdown.server-eof");
    let (server, running) = server_with_sleep();
    let mut peer = Peer::new(server);
    let quick = peer.request("tools/call", nap(4)).await;
    peer.request("tools/call", nap(60)).await;
    let started = Instant::now();

    let rest = peer.finish().await;

    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["id"], quick);
    assert_eq!(
        running.load(Ordering::SeqCst),
        0,
        "the other one was dropped"
    );
    assert!(
        started.elapsed() < Duration::from_secs(6),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_at_once() {
    let started = Instant::now();

    Peer::new(server_with_sleep().0).finish().await;

    assert!(started.elapsed() < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn an_open_subscription_does_not_delay_the_shutdown_and_is_ended_explicitly() {
    req!(
        "subscriptions.close.response",
        "subscriptions.close.response-id",
        "subscriptions.close.cancelled"
    );
    let mut peer = Peer::new(server_with_sleep().0);
    let id = peer
        .request(
            "subscriptions/listen",
            modern(json!({ "notifications": {} })),
        )
        .await;
    assert_eq!(
        peer.next().await["method"],
        "notifications/subscriptions/acknowledged"
    );
    let started = Instant::now();

    let rest = peer.finish().await;

    assert!(started.elapsed() < Duration::from_millis(10));
    assert_eq!(rest[0]["method"], "notifications/cancelled");
    assert_eq!(rest[0]["params"]["requestId"], id);
    assert_eq!(rest[1]["id"], id);
    assert_eq!(rest[1]["result"]["resultType"], "complete");
    assert_eq!(
        rest[1]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        id
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_calls_get_one_second_and_no_input_is_read() {
    let (server, running) = server_with_sleep();
    let (shut_down, wish) = oneshot::channel::<()>();
    let mut peer = Peer::with(NdjsonServer::new(server).shutdown(async { drop(wish.await) }));
    peer.request("tools/call", nap(60)).await;
    peer.expect_no_message().await;
    let started = Instant::now();

    shut_down.send(()).unwrap();
    tokio::task::yield_now().await;
    peer.request("tools/call", nap(0)).await;
    let rest = peer.rest().await;

    assert_eq!(rest, [] as [Value; 0]);
    assert_eq!(running.load(Ordering::SeqCst), 0);
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_shortens_the_grace_period_after_the_end_of_input() {
    let (server, _) = server_with_sleep();
    let lines = NdjsonServer::new(server).shutdown(sleep(Duration::from_secs(1)));
    let mut peer = Peer::with(lines);
    peer.request("tools/call", nap(60)).await;
    let started = Instant::now();

    peer.finish().await;

    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_last_line_needs_no_line_end() {
    let mut peer = Peer::new(server_with_sleep().0);
    peer.send_bytes(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
        .await;

    let rest = peer.finish().await;

    assert_eq!(rest, [json!({ "jsonrpc": "2.0", "id": 1, "result": {} })]);
}

#[tokio::test(start_paused = true)]
async fn a_disconnected_peer_is_not_an_error_and_its_calls_are_dropped() {
    let (server, running) = server_with_sleep();
    let mut peer = Peer::new(server);
    peer.request("tools/call", nap(60)).await;
    peer.request("tools/call", nap(1)).await;
    peer.expect_no_message().await;

    peer.leave().await.unwrap();

    sleep(Duration::from_millis(1)).await;
    assert_eq!(running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_drops_its_calls() {
    let (server, running) = server_with_sleep();
    let (mut client, far) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(far);
    let serving = tokio::spawn(serve(reader, writer, server));
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": nap(60) });
    client
        .write_all(format!("{request}\n").as_bytes())
        .await
        .unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(running.load(Ordering::SeqCst), 1);

    serving.abort();
    sleep(Duration::from_secs(1)).await;

    assert_eq!(running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_stops_being_read() {
    let large = Tool::new("large", async || Ok("x".repeat(100_000)));
    let server = Server::new("s", "1").tool(large);
    let (mut client, far) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(far);
    let serving = tokio::spawn(serve(reader, writer, server));
    let params = modern(json!({ "name": "large", "arguments": {} }));
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = format!("{request}\n");

    let mut sent = 0;
    while tokio::time::timeout(Duration::from_secs(1), client.write_all(request.as_bytes()))
        .await
        .is_ok()
    {
        sent += 1;
        assert!(sent < 1_000, "unread output is limited");
    }
    // A partly written message is completed.
    let (mut reader, mut writer) = tokio::io::split(client);
    let ending = tokio::spawn(async move {
        writer.write_all(b"\n").await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut responses = String::new();
    reader.read_to_string(&mut responses).await.unwrap();

    ending.await.unwrap();
    serving.await.unwrap().unwrap();
    let complete = responses
        .lines()
        .filter(|line| line.contains("xxx"))
        .count();
    assert!(complete >= sent, "{complete} of {sent}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_everything() {
    let many = Tool::new("many", async |cx: Context| {
        for step in 0..5_000 {
            cx.progress(step, 5_000).await;
        }
        Ok("done".to_owned())
    });
    let mut peer = Peer::with_buffer(NdjsonServer::new(Server::new("s", "1").tool(many)), 64);
    let mut params = modern(json!({ "name": "many", "arguments": {} }));
    params["_meta"]["progressToken"] = json!(1);
    let id = peer.request("tools/call", params).await;

    for step in 0..5_000 {
        assert_eq!(
            peer.next().await["params"]["progress"].as_f64(),
            Some(f64::from(step))
        );
        if step % 500 == 0 {
            sleep(Duration::from_secs(1)).await;
        }
    }

    assert_eq!(peer.next().await["id"], id);
}

#[tokio::test(start_paused = true)]
async fn handlers_see_the_peer_and_transport_extensions() {
    #[derive(Clone)]
    struct Entrance(&'static str);
    let who = Tool::new("who", async |cx: Context| {
        let subject = cx.principal().map(|who| who.subject.clone());
        let entrance = cx.get::<Entrance>().map(|entrance| entrance.0);
        Ok(format!("{subject:?} {entrance:?}"))
    });
    let lines = NdjsonServer::new(Server::new("s", "1").tool(who))
        .principal(Principal::new("here", "ada"))
        .extension(Entrance("front"));
    let mut peer = Peer::with(lines);
    let call = json!({ "name": "who", "arguments": {} });

    let own = peer.call("tools/call", modern(call.clone())).await;
    peer.initialize_session("2025-06-18", json!({})).await;
    let legacy = peer.call("tools/call", call).await;

    for response in [own, legacy] {
        assert_eq!(
            response["result"]["content"][0]["text"],
            "Some(\"ada\") Some(\"front\")"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_ends_its_input_and_never_reads_is_disconnected() {
    let mut peer = Peer::with_buffer(NdjsonServer::new(Server::new("test", "1")), 512);
    for _ in 0..20 {
        peer.request("ping", json!({})).await;
    }
    peer.end_input().await;
    let started = Instant::now();

    peer.wait_for_server_end().await.unwrap();

    assert!(started.elapsed() >= Duration::from_secs(5));
    assert!(started.elapsed() <= Duration::from_secs(11));
}
