//! W3C trace context: the gateway is a span of its own, in requests of both sides.

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_server::testing::Peer;

use crate::{
    scripted::{ScriptedConnection, scripted},
    upstreams::{ERAS, start},
};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const STATE: &str = "rojo=\"1\",congo=t61rcWkgMzE";

fn meta() -> Value {
    json!({ "traceparent": PARENT, "tracestate": STATE, "baggage": "user=ada" })
}

/// Checks that a message has a child span of [`PARENT`], and returns it.
fn child(params: &Value) -> String {
    let meta = &params["_meta"];
    let child = meta["traceparent"].as_str().unwrap();
    assert_eq!((&child[..36], &child[52..]), (&PARENT[..36], &PARENT[52..]));
    assert_ne!(child[36..52], PARENT[36..52]);
    assert_eq!(meta["tracestate"], STATE);
    assert_eq!(meta["baggage"], "user=ada");
    child.to_owned()
}

/// Starts a gateway with a scripted server, and a client of each era.
async fn every_pair(test: impl AsyncFn(Peer, ScriptedConnection, bool)) {
    for mode in ERAS {
        for is_modern_client in [false, true] {
            let (upstream, mut server) = scripted(mode);
            let gateway = start([upstream]).await;
            let mut connection = server.connection().await;
            let peer = Peer::connect(gateway.server());
            let peer = if is_modern_client {
                peer.modern()
            } else {
                peer.legacy("2025-11-25")
            };
            let mut peer = peer
                .capabilities(json!({ "elicitation": { "form": {} } }))
                .await;
            if mode == LifecycleMode::Legacy {
                // The first connection was for the capabilities only.
                let id = peer.start_tool("open", json!({})).await;
                connection = server.connection().await;
                let opening = connection.expect("tools/call").await;
                assert!(opening["params"]["_meta"].get("traceparent").is_none());
                connection.respond_text(&opening, "open").await;
                peer.finish(id).await.expect_result();
            }
            test(peer, connection, mode == LifecycleMode::Modern).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_relayed_request_is_a_child_span() {
    every_pair(async |mut peer, mut connection, _| {
        let mut spans = Vec::new();
        for _ in 0..2 {
            let params = json!({ "name": "x", "arguments": {}, "_meta": meta() });
            let id = peer.start("tools/call", params).await;
            let request = connection.expect("tools/call").await;
            spans.push(child(&request["params"]));
            let result = if request["params"]["_meta"]
                .get("io.modelcontextprotocol/protocolVersion")
                .is_some()
            {
                json!({ "content": [], "resultType": "complete" })
            } else {
                json!({ "content": [] })
            };
            connection.respond(&request, result).await;
            peer.finish(id).await.expect_result();
        }
        assert_ne!(spans[0], spans[1]);

        // Nothing is invented, and an invalid value stays.
        for value in [None, Some("00-invalid")] {
            let mut params = json!({ "name": "x", "arguments": {} });
            if let Some(value) = value {
                params["_meta"] = json!({ "traceparent": value });
            }
            let id = peer.start("tools/call", params).await;
            let request = connection.expect("tools/call").await;
            let sent = request["params"]["_meta"].get("traceparent");
            assert_eq!(sent.and_then(Value::as_str), value);
            connection.respond_text(&request, "done").await;
            peer.finish(id).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_client_request_is_a_child_span() {
    every_pair(async |mut peer, mut connection, is_modern_server| {
        let form = json!({
            "mode": "form",
            "message": "Who?",
            "requestedSchema": { "type": "object", "properties": {} },
            "_meta": meta(),
        });
        let params = json!({ "name": "x", "arguments": {} });
        let id = peer.start("tools/call", params).await;
        let request = connection.expect("tools/call").await;
        if is_modern_server {
            let asked = json!({ "method": "elicitation/create", "params": form });
            let result = json!({
                "resultType": "input_required", "inputRequests": { "who": asked }, "requestState": "s",
            });
            connection.respond(&request, result).await;
        } else {
            connection.request(7, "elicitation/create", form).await;
        }

        let message = peer.next().await;
        let params = match message.get("method") {
            Some(method) => {
                assert_eq!(method, "elicitation/create");
                message["params"].clone()
            }
            None => {
                assert_eq!(message["id"], id, "{message}");
                let requests = message["result"]["inputRequests"].as_object().unwrap();
                requests.values().next().unwrap()["params"].clone()
            }
        };
        child(&params);
    })
    .await;
}
