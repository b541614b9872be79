//! Several servers, and which callers share their connections.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{Gateway, Sharing};
use turnbuckle_server::{
    Resource, Server, Tool,
    testing::{Peer, all_combinations},
};

use crate::upstreams::{ConnectionCount, ERAS, counted, start, upstream};

/// A server with tools that return its name.
fn server(name: &str, tools: &[&'static str]) -> Server {
    let server = Server::new(name, "1.0.0").instructions(format!("Use {name}."));
    let server = tools.iter().fold(server, |server, tool| {
        let text = name.to_owned();
        server.tool(Tool::new(*tool, move || {
            std::future::ready(Ok(text.clone()))
        }))
    });
    server.resource(Resource::text("shared://x", "x", name.to_owned()))
}

/// The member of all items of a list.
fn members(result: &Value, list: &str, member: &str) -> Vec<String> {
    let items = result[list].as_array().unwrap().iter();
    items
        .map(|item| item[member].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn names_are_prefixed_and_calls_reach_their_server() {
    for combination in all_combinations() {
        let gateway = start([
            upstream("a", LifecycleMode::Legacy, server("a", &["b_c", "run"])),
            upstream("a_b", LifecycleMode::Modern, server("a_b", &["c", "run"])),
        ])
        .await;
        let mut peer = combination.connect(gateway.server()).await;

        // Without a list before.
        assert_eq!(
            peer.call_tool("a_run", json!({})).await.text(),
            "a",
            "{combination}"
        );
        let tools = peer.request("tools/list", json!({})).await;
        let tools = tools.expect_result().clone();
        assert_eq!(
            tools["_meta"]["dev.turnbuckle/servers"][1]["state"], "up",
            "{combination}"
        );
        let names = members(&tools, "tools", "name");
        // `a_b_c` of the first server could also be a tool of the second one.
        assert!(names[0].starts_with("a_b_c_"), "{combination}: {names:?}");
        assert_eq!(names[1..], ["a_run", "a_b_c", "a_b_run"], "{combination}");
        for (name, expected) in names.iter().zip(["a", "a", "a_b", "a_b"]) {
            let called = peer.call_tool(name, json!({})).await;
            assert_eq!(called.text(), expected, "{combination} {name}");
        }
        let unprefixed = peer.request("tools/call", json!({ "name": "run" })).await;
        unprefixed.expect_error(-32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_uri_of_two_servers_can_be_read_on_both() {
    let servers = ERAS.iter().zip(["a", "b"]);
    let gateway =
        start(servers.map(|(mode, name)| upstream(name, *mode, server(name, &["run"])))).await;
    let mut peer = Peer::connect(gateway.server()).await;

    let resources = peer.request("resources/list", json!({})).await;
    let uris = members(resources.expect_result(), "resources", "uri");
    assert_eq!(uris[..2], ["turnbuckle://servers", "shared://x"]);
    for (uri, text) in uris[1..].iter().zip(["a", "b"]) {
        let read = peer.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read.expect_result()["contents"][0]["text"], text, "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn denied_tools_are_neither_listed_nor_called() {
    for deny in [true, false] {
        let policy = upstream(
            "a",
            LifecycleMode::Legacy,
            server("a", &["get_x", "drop_x"]),
        );
        let policy = if deny {
            policy.deny(["drop_*"])
        } else {
            policy.allow(["get_*"])
        };
        let gateway = start([policy]).await;
        let mut peer = Peer::connect(gateway.server()).await;

        let tools = peer.request("tools/list", json!({})).await;
        assert_eq!(members(tools.expect_result(), "tools", "name"), ["get_x"]);
        peer.call_tool("get_x", json!({})).await.expect_result();
        let denied = peer
            .request("tools/call", json!({ "name": "drop_x" }))
            .await;
        denied.expect_error(-32602);
    }
}

#[tokio::test(start_paused = true)]
async fn every_session_has_its_own_connection_and_ends_it() {
    let count = ConnectionCount::default();
    let upstream = counted("a", LifecycleMode::Legacy, server("a", &["run"]), &count);
    let gateway = start([upstream]).await;
    let mut peers = Vec::new();
    for _ in 0..3 {
        let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
        peer.call_tool("run", json!({})).await.expect_result();
        peers.push(peer);
    }
    // The first one was closed when the capabilities of the server were known.
    assert_eq!((count.opened(), count.open()), (4, 3));
    for peer in peers {
        peer.close().await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shared_connection_serves_all_and_ends_when_idle() {
    let count = ConnectionCount::default();
    let shared = counted("a", LifecycleMode::Legacy, server("a", &["run"]), &count);
    let gateway = Gateway::new("gateway", "1").upstream(shared.sharing(Sharing::All));
    let gateway = gateway
        .idle_timeout(Duration::from_secs(60))
        .start()
        .await
        .unwrap();
    for _ in 0..3 {
        let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
        peer.call_tool("run", json!({})).await.expect_result();
    }
    assert_eq!(count.opened(), 1);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(count.open(), 0);
    let mut peer = Peer::connect(gateway.server()).await;
    peer.call_tool("run", json!({})).await.expect_result();
    assert_eq!(count.opened(), 2);
}
