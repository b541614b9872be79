//! Views: one of several servers alone, in addition to the server in front of all.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{Gateway, RunningGateway, Sharing, Upstream};
use turnbuckle_protocol::{Principal, Revision};
use turnbuckle_server::{
    Resource, Server, Tool,
    testing::{Combination, Peer, TransportKind, http},
};

use crate::{
    scripted::{ScriptedConnection, scripted_as},
    upstreams::{ConnectionCount, ERAS, client, counted, desk, start, upstream},
};

fn note(name: &str) -> Server {
    Server::new(name, "1.0.0")
        .tool(Tool::new("x", async || Ok("done".to_owned())))
        .tool(Tool::new("secret", async || Ok("secret".to_owned())))
        .resource(Resource::text("note://same", "note", name))
}

/// The clients of both eras on byte streams, and of the legacy era over HTTP.
fn combinations() -> [Combination; 4] {
    [
        Combination::new(TransportKind::Ndjson, Revision::V2025_11_25),
        Combination::new(TransportKind::Ndjson, Revision::MODERN),
        Combination::new(TransportKind::Http, Revision::V2025_11_25),
        Combination::new(TransportKind::Http, Revision::MODERN),
    ]
}

fn view(gateway: &RunningGateway, name: &str) -> Server {
    gateway.server_of(name).expect("the server exists")
}

async fn names(peer: &mut Peer) -> Vec<String> {
    let listed = peer.request("tools/list", json!({})).await;
    let listed = listed.expect_result();
    assert!(
        listed["_meta"]["dev.turnbuckle/servers"].is_null(),
        "{listed}"
    );
    let tools = listed["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_view_has_one_server_with_its_own_names_and_the_same_policy() {
    for mode in ERAS {
        for combination in combinations() {
            let count = ConnectionCount::default();
            let b = counted("b", mode, note("b"), &count)
                .sharing(Sharing::All)
                .deny(["secret"]);
            let gateway = start([upstream("a", mode, note("a")), b]).await;
            let mut all = combination.connect(gateway.server()).await;
            let mut one = combination.connect(view(&gateway, "b")).await;

            let of_all = all.request("tools/list", json!({})).await;
            let of_all = of_all.expect_result()["tools"].as_array().unwrap().len();
            assert_eq!(of_all, 3, "{mode:?} {combination}");
            assert_eq!(names(&mut one).await, ["x"], "{mode:?} {combination}");
            let called = one.call_tool("x", json!({})).await;
            assert_eq!(called.text(), "done");
            for hidden in ["secret", "b_x", "a_x"] {
                let params = json!({ "name": hidden, "arguments": {} });
                let refused = one.request("tools/call", params).await;
                refused.expect_error(-32602);
            }
            // Of equal URIs, each view has that of its server.
            let params = json!({ "uri": "note://same" });
            let read = one.request("resources/read", params).await;
            assert_eq!(read.expect_result()["contents"][0]["text"], "b");
            assert_eq!(count.opened(), 1, "one connection for both paths");
            assert!(gateway.server_of("c").is_none());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_pair_of_eras_passes_client_requests_in_a_view() {
    for mode in ERAS {
        for revision in [Revision::V2025_11_25, Revision::MODERN] {
            let gateway = start([
                upstream("a", mode, note("a")),
                upstream("desk", mode, desk()),
            ]);
            let gateway = gateway.await;
            let peer = Peer::connect(view(&gateway, "desk")).revision(revision);
            let mut peer = peer.respond_with(client).await;

            let signed = peer.call_tool("sign", json!({})).await;

            let text = signed.text();
            assert!(text.contains("Ada"), "{mode:?} {revision} {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_request_of_a_view_does_not_name_the_server() {
    let (a, mut at_a) = scripted_as("a", LifecycleMode::Legacy);
    let (b, mut at_b) = scripted_as("b", LifecycleMode::Legacy);
    let gateway = start([a, b]).await;
    drop((at_a.connection().await, at_b.connection().await));
    let forms = json!({ "elicitation": { "form": {} } });
    let peer = Peer::connect(view(&gateway, "a")).legacy("2025-11-25");
    let mut peer = peer.capabilities(forms).await;
    let id = peer.start_tool("x", json!({})).await;
    let mut connection = at_a.connection().await;
    let call = connection.expect("tools/call").await;
    assert_eq!(elicited(&mut peer, &mut connection, 1).await, "Who?");
    connection.respond_text(&call, "done").await;
    peer.finish(id).await.expect_result();

    // Outside of calls.
    assert_eq!(elicited(&mut peer, &mut connection, 2).await, "Who?");
}

/// Returns the message of an elicitation that the client gets.
async fn elicited(peer: &mut Peer, connection: &mut ScriptedConnection, id: i64) -> Value {
    let form =
        json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
    connection.request(id, "elicitation/create", form).await;
    let request = peer.expect_request("elicitation/create").await;
    peer.respond(&request, json!({ "action": "decline" })).await;
    connection.response(id).await;
    request.params["message"].clone()
}

#[tokio::test(start_paused = true)]
async fn changes_reach_the_clients_of_the_view_of_their_server_and_no_other() {
    for mode in ERAS {
        let (a, b) = (note("a"), note("b"));
        let share = |name: &str, server: &Server| {
            upstream(name, mode, server.clone()).sharing(Sharing::All)
        };
        let gateway = start([share("a", &a), share("b", &b)]).await;
        for combination in combinations() {
            let mut of_a = listening(combination, view(&gateway, "a")).await;
            let mut of_b = listening(combination, view(&gateway, "b")).await;

            b.resource_updated("note://same");
            let updated = of_b.expect_notification("notifications/resources/updated");
            assert_eq!(updated.await["uri"], "note://same");
            let tool = format!("{combination}").replace([' ', ','], "_");
            b.add_tool(Tool::new(tool, async || Ok(String::new())));
            of_b.expect_notification("notifications/tools/list_changed")
                .await;
            assert!(names(&mut of_b).await.len() > 2);
            of_a.expect_no_message().await;
        }
    }
}

async fn listening(combination: Combination, server: Server) -> Peer {
    let mut peer = combination.connect(server).await;
    names(&mut peer).await;
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["note://same"] });
    peer.listen(filter).await;
    peer.notifications();
    peer
}

#[tokio::test(start_paused = true)]
async fn a_reload_replaces_adds_and_removes_the_servers_of_views() {
    for mode in ERAS {
        let server = |name: &str, version: &str, server: Server| {
            upstream(name, mode, server).fingerprint(version)
        };
        let other = || server("other", "1", note("other"));
        let gateway = start([other(), server("a", "1", note("a"))]).await;
        let (kept, changed) = (view(&gateway, "other"), view(&gateway, "a"));
        let mut at_kept = Peer::connect(kept).legacy("2025-11-25").await;
        let mut at_changed = Peer::connect(changed).legacy("2025-11-25").await;
        assert_eq!(names(&mut at_kept).await, ["x", "secret"]);
        assert_eq!(names(&mut at_changed).await, ["x", "secret"]);

        let tool = Tool::new("new", async || Ok("new".to_owned()));
        let newer = Server::new("a", "2.0.0").tool(tool);
        let b = server("b", "1", note("b"));
        let reload = gateway.reload([other(), server("a", "2", newer), b]).await;
        assert_eq!(reload.unwrap().changed, ["a"]);

        at_changed
            .expect_notification("notifications/tools/list_changed")
            .await;
        assert_eq!(names(&mut at_changed).await, ["new"]);
        at_kept.expect_no_message().await;
        assert!(gateway.server_of("b").is_some());
        gateway.reload([other()]).await.unwrap();
        assert!(gateway.server_of("a").is_none());
        assert!(names(&mut at_changed).await.is_empty());
        assert_eq!(names(&mut at_kept).await, ["x", "secret"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_view_ends_before_the_connection_of_its_removed_server() {
    let slow = Server::new("slow", "1.0.0").tool(Tool::new("slow", async || {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Ok("done".to_owned())
    }));
    let other = || upstream("other", LifecycleMode::Legacy, note("other")).fingerprint("1");
    let gateway = start([other(), upstream("slow", LifecycleMode::Legacy, slow)]).await;
    let mut peer = Peer::connect(view(&gateway, "slow")).await;

    let (called, _) = tokio::join!(peer.call_tool("slow", json!({})), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gateway.reload([other()]).await.unwrap();
    });

    assert_eq!(called.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_view_shares_the_rate_of_its_server_and_the_metrics() {
    let limited = |upstreams: [Upstream; 2]| {
        let gateway = Gateway::new("gateway", "1.0.0");
        let gateway = upstreams.into_iter().fold(gateway, Gateway::upstream);
        gateway.rate_limit(2, Duration::from_secs(3600)).start()
    };
    let mode = LifecycleMode::Modern;
    let gateway = limited([
        upstream("a", mode, note("a")),
        upstream("b", mode, note("b")),
    ]);
    let gateway = gateway.await.unwrap();
    let caller = |server: Server| {
        let mut client = http(server);
        client.principal = Some(Principal::new("issuer", "ada"));
        client
    };
    let all = caller(gateway.server()).in_session("2025-11-25").await;
    let one = caller(view(&gateway, "a")).in_session("2025-11-25").await;
    let call = |name: &str| {
        let params = json!({ "name": name, "arguments": {} });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };

    for _ in 0..2 {
        let called = one.post(&call("x")).await.json().await;
        assert!(called["result"].is_object(), "{called}");
    }
    let refused = all.post(&call("a_x")).await.json().await;

    assert!(refused["result"]["content"].is_null(), "{refused}");
    let called = all.post(&call("b_x")).await.json().await;
    assert!(called["result"].is_object(), "{called}");
    let metrics = gateway.metrics();
    let operations = metrics.server_operations.iter();
    assert!(operations.map(|operation| operation.count).sum::<u64>() >= 4);
}

#[tokio::test(start_paused = true)]
async fn sessions_and_cursors_of_a_view_are_unknown_elsewhere() {
    let mode = LifecycleMode::Modern;
    let gateway = Gateway::new("gateway", "1.0.0")
        .upstream(upstream("a", mode, note("a")))
        .upstream(upstream("b", mode, note("b")))
        .page_size(1);
    let gateway = gateway.start().await.unwrap();
    let session = http(view(&gateway, "a")).in_session("2025-11-25").await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let page = session.post(&list).await.json().await;
    let cursor = page["result"]["nextCursor"].clone();
    assert!(cursor.is_string(), "{page}");

    for server in [gateway.server(), view(&gateway, "b")] {
        let mut elsewhere = http(server.clone());
        elsewhere.session = session.session.clone();
        elsewhere.version = session.version.clone();
        assert_eq!(elsewhere.post(&list).await.status(), 404);
        let mut peer = Peer::connect(server).await;
        let next = json!({ "cursor": cursor });
        peer.request("tools/list", next).await.expect_error(-32602);
    }
    let mut same = http(view(&gateway, "a"));
    same.session = session.session;
    same.version = session.version;
    assert_eq!(same.post(&list).await.status(), 200);
}
