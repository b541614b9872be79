//! What clients see of servers that are down.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::{Target, ndjson::NdjsonClient};
use turnbuckle_gateway::{Gateway, Upstream, UpstreamState};
use turnbuckle_server::testing::{Peer, all_combinations};

use crate::{
    scripts::{Script, members, text, tools},
    upstreams::start,
};

fn script() -> Script {
    Script::new(|method, _| match method {
        "tools/list" => tools(&["x"]),
        "tools/call" => text("done"),
        _ => Value::Null,
    })
}

/// Ends a server, and waits until the gateway knows.
async fn end(script: &Script, peer: &mut Peer, tool: &str) {
    script.set_down(true);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let called = peer.call_tool(tool, json!({})).await;
    assert!(called.expect_tool_error().contains("is down since "));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_stays_listed_for_a_minute_and_its_calls_say_so() {
    for combination in all_combinations() {
        let (stable, unstable) = (script(), script());
        let gateway = start([stable.upstream("a"), unstable.upstream("b")]).await;
        let mut peer = combination.connect(gateway.server()).await;
        peer.listen(json!({ "toolsListChanged": true })).await;
        peer.request("tools/list", json!({})).await.expect_result();
        assert_eq!(peer.call_tool("b_x", json!({})).await.text(), "done");
        end(&unstable, &mut peer, "b_x").await;
        peer.notifications();

        tokio::time::sleep(Duration::from_secs(55)).await;
        let listed = peer.request("tools/list", json!({})).await;
        let listed = listed.expect_result();
        assert_eq!(
            members(listed, "tools", "name"),
            ["a_x", "b_x"],
            "{combination}"
        );
        let state = &listed["_meta"]["dev.turnbuckle/servers"][1];
        assert_eq!(state["state"], "down", "{combination}");
        assert!(
            state["since"].as_str().unwrap().ends_with('Z'),
            "{combination}"
        );
        assert!(state["reason"].is_string(), "{combination}");
        peer.expect_no_message().await;

        tokio::time::sleep(Duration::from_secs(10)).await;
        peer.expect_notification("notifications/tools/list_changed")
            .await;
        let listed = peer.request("tools/list", json!({})).await;
        let names = members(listed.expect_result(), "tools", "name");
        assert_eq!(names, ["a_x"], "{combination}");
        let called = peer.call_tool("b_x", json!({})).await;
        let message = called.expect_tool_error();
        assert!(
            message.starts_with("server `b` is down since "),
            "{combination} {message}"
        );
        assert_eq!(peer.call_tool("a_x", json!({})).await.text(), "done");

        unstable.set_down(false);
        tokio::time::sleep(Duration::from_secs(60)).await;
        peer.expect_notification("notifications/tools/list_changed")
            .await;
        assert_eq!(peer.call_tool("b_x", json!({})).await.text(), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn states_are_in_discovery_instructions_and_a_resource() {
    let (up, down) = (script(), script());
    down.set_down(true);
    let gateway = start([up.upstream("a"), down.upstream("b")]).await;
    for combination in all_combinations() {
        let mut peer = combination.connect(gateway.server()).await;
        let messages = peer.messages();
        let discovered = if combination.revision.is_stateless() {
            peer.request("server/discover", json!({}))
                .await
                .expect_result()
                .clone()
        } else {
            let mut responses = messages.iter().map(|message| &message.json);
            responses
                .find(|json| json["result"]["capabilities"].is_object())
                .unwrap()["result"]
                .clone()
        };
        let states = &discovered["_meta"]["dev.turnbuckle/servers"];
        assert_eq!(states[0]["state"], "up", "{combination} {discovered}");
        assert_eq!(states[0]["revision"], "2025-11-25", "{combination}");
        assert_eq!(states[1]["state"], "down", "{combination}");
        let instructions = discovered["instructions"].as_str().unwrap();
        assert!(
            instructions.contains("server `b` is down since "),
            "{combination}"
        );
        let read = peer
            .request("resources/read", json!({ "uri": "turnbuckle://servers" }))
            .await;
        let read = read.expect_result()["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        let read: Value = serde_json::from_str(&read).unwrap();
        assert_eq!(read["servers"][1]["state"], "down", "{combination}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_states_can_be_subscribed_to() {
    let (stable, unstable) = (script(), script());
    let gateway = start([stable.upstream("a"), unstable.upstream("b")]).await;
    let mut peer = Peer::connect(gateway.server()).await;
    peer.listen(json!({ "resourceSubscriptions": ["turnbuckle://servers"] }))
        .await;
    unstable.set_down(true);
    let updated = peer
        .expect_notification("notifications/resources/updated")
        .await;
    assert_eq!(updated["uri"], "turnbuckle://servers");
}

#[tokio::test(start_paused = true)]
async fn a_required_server_that_is_down_fails_discovery_and_readiness() {
    let (required, other) = (script(), script());
    let gateway = start([required.upstream("a").required(true), other.upstream("b")]).await;
    let mut peer = Peer::connect(gateway.server()).await;
    peer.request("server/discover", json!({}))
        .await
        .expect_result();
    assert!(gateway.is_ready());
    peer.request("tools/list", json!({})).await.expect_result();
    end(&required, &mut peer, "a_x").await;
    assert!(!gateway.is_ready());
    let error = peer.request("server/discover", json!({})).await;
    let error = error.expect_error(-32603);
    assert_eq!(error["data"]["server"], "a");
    assert!(error["message"].as_str().unwrap().contains("is down since"));
}

/// A server that never responds.
fn unresponsive(name: &str) -> Upstream {
    Upstream::new(name, || {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let _far = far;
            std::future::pending::<()>().await;
        });
        let (reader, writer) = tokio::io::split(near);
        Target::from(NdjsonClient::new(reader, writer))
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_respond_delays_the_others_by_five_seconds_at_most() {
    let began = tokio::time::Instant::now();
    let gateway = start([script().upstream("a"), unresponsive("b")]).await;
    assert!(
        began.elapsed() <= Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(gateway.status()[1].state, UpstreamState::Starting);
    let mut peer = Peer::connect(gateway.server()).await;
    let began = tokio::time::Instant::now();
    let listed = peer.request("tools/list", json!({})).await;
    assert_eq!(members(listed.expect_result(), "tools", "name"), ["a_x"]);
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_come_is_left_out_after_five_seconds() {
    let slow = Script::new(|_, _| Value::Null).upstream("b");
    let hanging = Upstream::new("hanging", || {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
            let (reader, mut writer) = tokio::io::split(far);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                if message["method"] == "initialize" {
                    let result = crate::scripts::initialized(&json!({ "tools": {} }));
                    let response =
                        json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                    writer
                        .write_all(format!("{response}\n").as_bytes())
                        .await
                        .unwrap();
                }
            }
        });
        let (reader, writer) = tokio::io::split(near);
        Target::from(NdjsonClient::new(reader, writer))
    });
    let hanging = hanging.lifecycle_mode(turnbuckle_client::LifecycleMode::Legacy);
    let gateway = Gateway::new("gateway", "1")
        .upstream(script().upstream("a"))
        .upstream(hanging)
        .upstream(slow);
    let gateway = gateway.start().await.unwrap();
    let mut peer = Peer::connect(gateway.server()).await;
    let began = tokio::time::Instant::now();
    let listed = peer.request("tools/list", json!({})).await;
    assert_eq!(members(listed.expect_result(), "tools", "name"), ["a_x"]);
    assert!(
        began.elapsed() <= Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}
