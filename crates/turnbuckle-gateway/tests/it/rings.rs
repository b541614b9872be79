//! Two gateways that use each other as servers.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::watch;
use turnbuckle_client::{LifecycleMode, Target, ndjson::NdjsonClient};
use turnbuckle_gateway::{RunningGateway, Upstream, UpstreamState};
use turnbuckle_server::{
    Server,
    testing::{Peer, PeerBuilder},
};

use crate::{
    scripts::{Script, initialized, members},
    upstreams::{ConnectionCount, ERAS, desk, start, upstream},
};

/// A server that is set later. Connections wait for it.
#[derive(Clone)]
struct LateServer {
    server: Arc<watch::Sender<Option<Server>>>,
    count: ConnectionCount,
}

impl LateServer {
    fn new() -> Self {
        Self {
            server: Arc::new(watch::channel(None).0),
            count: ConnectionCount::default(),
        }
    }

    fn set(&self, gateway: &RunningGateway) {
        self.server.send_replace(Some(gateway.server()));
    }

    fn upstream(&self, name: &str, mode: LifecycleMode) -> Upstream {
        let late = self.clone();
        Upstream::new(name, move || {
            let (near, far) = tokio::io::duplex(64 * 1024);
            let late = late.clone();
            tokio::spawn(async move {
                let mut server = late.server.subscribe();
                let server = server.wait_for(Option::is_some).await.unwrap().clone();
                let (reader, writer) = tokio::io::split(far);
                let _open = late.count.guard();
                let _ = turnbuckle_server::ndjson::serve(reader, writer, server.unwrap()).await;
            });
            let (reader, writer) = tokio::io::split(near);
            Target::from(NdjsonClient::new(reader, writer))
        })
        .lifecycle_mode(mode)
    }
}

/// Clients of both eras.
fn peers(gateway: &RunningGateway) -> [PeerBuilder; 2] {
    [
        Peer::connect(gateway.server()).legacy("2025-11-25"),
        Peer::connect(gateway.server()).modern(),
    ]
}

async fn tools(peer: &mut Peer) -> Vec<String> {
    let listed = peer.request("tools/list", json!({})).await;
    members(listed.expect_result(), "tools", "name")
}

#[tokio::test(start_paused = true)]
async fn a_gateway_refuses_a_server_behind_which_it_finds_itself() {
    for mode in ERAS {
        let late = LateServer::new();
        let first = start([
            upstream("desk", mode, desk()),
            late.upstream("second", mode),
        ])
        .await;
        let other = LateServer::new();
        other.set(&first);
        let second = start([other.upstream("first", mode)]).await;
        late.set(&second);
        tokio::time::sleep(Duration::from_secs(120)).await;

        let status = &first.status()[1];
        assert_eq!(status.state, UpstreamState::Down, "{mode:?}");
        assert_eq!(status.reason.as_deref(), Some("ring of gateways"));
        assert_eq!(late.count.open(), 0, "{mode:?}");
        for gateway in [&first, &second] {
            for peer in peers(gateway) {
                let mut peer = peer.await;
                let names = tools(&mut peer).await;
                assert_eq!(names.len(), 5, "{mode:?}: {names:?}");
                assert_eq!(names[0], "desk_greet");
                let greeting = peer.call_tool("desk_greet", json!({ "name": "Ada" })).await;
                assert_eq!(greeting.text(), "Hello, Ada!");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requests_end_in_a_ring_that_was_closed_on_both_sides_at_once() {
    for mode in ERAS {
        let (late, other) = (LateServer::new(), LateServer::new());
        let first = start([upstream("one", mode, desk()), late.upstream("second", mode)]);
        let second = start([upstream("two", mode, desk()), other.upstream("first", mode)]);
        let (first, second) = tokio::join!(first, second);
        late.set(&second);
        other.set(&first);
        tokio::time::sleep(Duration::from_secs(1)).await;

        let started = tokio::time::Instant::now();
        for gateway in [&first, &second] {
            for (peer, is_legacy) in peers(gateway).into_iter().zip([true, false]) {
                let mut peer = peer.await;
                let names = tools(&mut peer).await;
                // Those of its own server, and perhaps those of the other gateway.
                assert!((5..=10).contains(&names.len()), "{mode:?}: {names:?}");
                peer.request("resources/list", json!({}))
                    .await
                    .expect_result();
                peer.listen(json!({ "toolsListChanged": true })).await;
                if is_legacy {
                    let level = json!({ "level": "debug" });
                    peer.request("logging/setLevel", level)
                        .await
                        .expect_result();
                    let note = json!({ "uri": "desk://note" });
                    peer.request("resources/subscribe", note)
                        .await
                        .expect_result();
                }
                let unknown = peer.request("tools/call", json!({ "name": "none" })).await;
                unknown.expect_error(-32602);
            }
        }
        let opened = late.count.opened() + other.count.opened();
        assert!(opened <= 16, "{mode:?}: {opened}");
        assert!(started.elapsed() < Duration::from_secs(5), "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_in_a_ring_without_other_servers() {
    for mode in ERAS {
        let late = LateServer::new();
        let first = start([upstream("one", mode, desk()), late.upstream("second", mode)]).await;
        let other = LateServer::new();
        other.set(&first);
        let second = start([other.upstream("first", mode)]).await;
        // The request has passed the second gateway before.
        let mut peer = Peer::connect(second.server()).await;
        let handshake = peer.request("server/discover", json!({})).await;
        let passed = &handshake.expect_result()["_meta"]["dev.turnbuckle/gateways"];
        let meta = json!({ "dev.turnbuckle/hops": 1, "dev.turnbuckle/gateways": [passed[0]] });
        for (method, params) in [
            ("tools/call", json!({ "name": "one_greet", "_meta": meta })),
            ("tools/list", json!({ "_meta": meta })),
            ("resources/list", json!({ "_meta": meta })),
        ] {
            let response = peer.request(method, params).await;
            response.expect_error(-32603);
        }
        let mut peer = Peer::connect(second.server()).legacy("2025-11-25").await;
        for (method, params) in [
            (
                "logging/setLevel",
                json!({ "level": "info", "_meta": meta }),
            ),
            (
                "resources/subscribe",
                json!({ "uri": "desk://note", "_meta": meta }),
            ),
        ] {
            let response = peer.request(method, params).await;
            response.expect_error(-32603);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn everything_that_a_client_causes_counts_the_gateways() {
    let script = Script::new(|method, _| match method {
        "initialize" => initialized(&json!({
            "tools": {}, "prompts": {}, "logging": {}, "resources": { "subscribe": true },
        })),
        _ => Value::Null,
    });
    let gateway = start([script.upstream("script")]).await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    let meta = json!({ "dev.turnbuckle/hops": 2, "dev.turnbuckle/gateways": ["a", "b"] });
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/call", json!({ "name": "x" })),
        ("resources/read", json!({ "uri": "x:1" })),
        ("resources/subscribe", json!({ "uri": "x:1" })),
        ("logging/setLevel", json!({ "level": "info" })),
    ] {
        let mut params = params;
        params["_meta"] = meta.clone();
        peer.request(method, params).await;

        let received = script.requests(method);
        let sent = &received.last().unwrap()["_meta"];
        assert_eq!(sent["dev.turnbuckle/hops"], 3, "{method}: {sent}");
        let passed = sent["dev.turnbuckle/gateways"].as_array().unwrap();
        assert_eq!(passed[..2], [json!("a"), json!("b")], "{method}");
        assert_eq!(passed.len(), 3, "{method}");
    }
}
