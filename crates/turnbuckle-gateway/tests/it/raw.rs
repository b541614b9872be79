//! What the gateway does not know passes unchanged.

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use turnbuckle_client::{LifecycleMode, Target, ndjson::NdjsonClient};
use turnbuckle_gateway::Upstream;
use turnbuckle_server::testing::Peer;

use crate::upstreams::start;

/// A legacy server that returns the parameters of every request in an unknown member.
fn mirror() -> Upstream {
    Upstream::new("mirror", || {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(far);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: serde_json::Value = serde_json::from_str(&line).unwrap();
                let Some(id) = message.get("id") else {
                    continue;
                };
                let result = match message["method"].as_str().unwrap() {
                    "initialize" => json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": { "tools": {} },
                        "serverInfo": { "name": "mirror", "version": "1" },
                    })
                    .to_string(),
                    _ => format!(
                        r#"{{"content":[],"_meta":{{"com.example/a":  [1, 2]}},"params":{}}}"#,
                        message["params"]
                    ),
                };
                let response = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
                writer.write_all(response.as_bytes()).await.unwrap();
            }
        });
        let (reader, writer) = tokio::io::split(near);
        Target::from(NdjsonClient::new(reader, writer))
    })
    .lifecycle_mode(LifecycleMode::Legacy)
}

#[tokio::test(start_paused = true)]
async fn unknown_members_and_meta_pass_in_both_directions() {
    let gateway = start([mirror()]).await;
    for modern in [false, true] {
        let peer = Peer::connect(gateway.server());
        let mut peer = if modern {
            peer.modern()
        } else {
            peer.legacy("2025-11-25")
        }
        .await;
        let meta = json!({ "com.example/b": { "c": 1.25 } });
        let arguments = json!({ "n": 1e3 });
        let params = json!({ "name": "x", "arguments": arguments, "extra": [null], "_meta": meta });

        let response = peer.request("tools/call", params).await;

        let result = response.expect_result();
        assert_eq!(result["_meta"]["com.example/a"], json!([1, 2]));
        let sent = &result["params"];
        assert_eq!(sent["extra"], json!([null]));
        assert_eq!(sent["arguments"], arguments);
        assert_eq!(sent["_meta"]["com.example/b"], json!({ "c": 1.25 }));
        assert_eq!(sent["_meta"]["dev.turnbuckle/hops"], 1);
        let of_client = "io.modelcontextprotocol/clientCapabilities";
        assert!(sent["_meta"].get(of_client).is_none(), "{sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_ring_of_gateways_ends() {
    let gateway = start([mirror()]).await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    let params = json!({ "name": "x", "_meta": { "dev.turnbuckle/hops": 8 } });
    let response = peer.request("tools/call", params).await;
    response.expect_error(-32603);
}

#[tokio::test(start_paused = true)]
async fn methods_of_extensions_are_relayed_to_the_only_server() {
    let gateway = start([mirror()]).await;
    for peer in [
        Peer::connect(gateway.server()).legacy("2025-11-25"),
        Peer::connect(gateway.server()).modern(),
    ] {
        let mut peer = peer.await;
        let response = peer.request("com.example/ring", json!({ "bell": 1 })).await;
        assert_eq!(response.expect_result()["params"]["bell"], 1);
    }
}
