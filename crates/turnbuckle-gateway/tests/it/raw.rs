//! What the gateway does not know passes unchanged.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use turnbuckle_client::{LifecycleMode, Target, ndjson::NdjsonClient};
use turnbuckle_gateway::Upstream;
use turnbuckle_server::testing::Peer;

use crate::upstreams::{ERAS, start};

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

/// What the peers send that the gateway does not know.
const SENT_META: &str =
    r#""com.example/b":{"c" : 1.250},"other":[1e3 ,{"big":12345678901234567890123}]"#;
const SENT_ARGUMENTS: &str = r#"{"n": 1.0,"text":"\u0041\/"}"#;
const RETURNED: &str =
    r#""u":{"x" : 1.0,"y":[1E2]},"_meta":{"com.example/a":[1, 2.50],"com.example/n":1e3}"#;
const TOOL: &str = r#"{"name":"x","v": 2.0,"inputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":1.0}}},"_meta":{"k":1e1}}"#;

/// A server that records the lines that it receives.
fn recorder(mode: LifecycleMode, lines: &Arc<Mutex<Vec<String>>>) -> Upstream {
    let lines = Arc::clone(lines);
    Upstream::new("recorder", move || {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let recorded = Arc::clone(&lines);
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(far);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                let method = message["method"].as_str().unwrap();
                if method == "tools/call" {
                    recorded.lock().unwrap().push(line.clone());
                }
                let Some(id) = message.get("id") else {
                    continue;
                };
                let result = match method {
                    "initialize" => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"r","version":"1"}}"#.to_owned(),
                    "server/discover" => r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#.to_owned(),
                    "tools/list" => format!(r#"{{"tools":[{TOOL}],"resultType":"complete"}}"#),
                    _ => format!(r#"{{"content":[{{"type":"text","text":"t","z": 3.0}}],{RETURNED},"resultType":"complete"}}"#),
                };
                let response = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
                writer.write_all(response.as_bytes()).await.unwrap();
            }
        });
        let (reader, writer) = tokio::io::split(near);
        Target::from(NdjsonClient::new(reader, writer))
    })
    .lifecycle_mode(mode)
}

/// Sends lines to a gateway, and returns the lines with these ids.
async fn exchange(gateway: &turnbuckle_gateway::RunningGateway, sent: &[String]) -> Vec<String> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let server = turnbuckle_server::ndjson::serve(reader, writer, gateway.server());
    tokio::spawn(server);
    let (reader, mut writer) = tokio::io::split(near);
    let (mut lines, mut received) = (BufReader::new(reader).lines(), Vec::new());
    for line in sent {
        writer
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        let sent: Value = serde_json::from_str(line).unwrap();
        while let Some(id) = sent.get("id") {
            let line = lines.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == *id {
                received.push(line);
                break;
            }
        }
    }
    received
}

#[tokio::test(start_paused = true)]
async fn members_and_meta_keep_their_bytes_in_every_pair() {
    let modern = r#","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}"#;
    for mode in ERAS {
        for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
            let lines = Arc::default();
            let gateway = start([recorder(mode, &lines)]).await;
            let own = if revision == "2026-07-28" { modern } else { "" };
            let list = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"a":1{own}}}}}}}"#
            );
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"x","arguments":{SENT_ARGUMENTS},"w": 4.0,"_meta":{{{SENT_META}{own}}}}}}}"#
            );
            let mut sent = vec![list, call];
            if own.is_empty() {
                let initialize = format!(
                    r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
                );
                let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                sent.splice(0..0, [initialize, initialized.to_owned()]);
            }

            let received = exchange(&gateway, &sent).await;

            let pair = format!("{revision}, {mode:?}");
            let [.., listed, called] = &*received else {
                panic!("{received:?}");
            };
            assert!(listed.contains(TOOL), "{pair}: {listed}");
            let block = r#"{"type":"text","text":"t","z": 3.0}"#;
            let members = r#""u":{"x" : 1.0,"y":[1E2]}"#;
            for part in [
                block,
                members,
                r#""com.example/a":[1, 2.50]"#,
                r#""com.example/n":1e3"#,
            ] {
                assert!(called.contains(part), "{pair}: {called}");
            }
            let lines = lines.lock().unwrap();
            let [line] = &**lines else {
                panic!("{pair}: {lines:?}");
            };
            let arguments = format!(r#""arguments":{SENT_ARGUMENTS}"#);
            for part in [SENT_META, &*arguments, r#""w":4.0"#] {
                assert!(line.contains(part), "{pair}: {line}");
            }
        }
    }
}
