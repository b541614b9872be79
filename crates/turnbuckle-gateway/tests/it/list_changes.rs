//! Lists: from memory, and again only after a change.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::Gateway;
use turnbuckle_server::{CacheHint, Server, Tool, testing::Peer};

use crate::{
    failing_server::{Scripted, Step, is_call, result},
    scripted::{ScriptedConnection, scripted_with},
    scripts::{Script, initialized, members, text, tools},
    upstreams::{start, upstream},
};

/// A server with as many tools as the counter says.
fn counted(count: &Arc<AtomicUsize>) -> Script {
    let count = Arc::clone(count);
    Script::new(move |method, _| match method {
        "tools/list" => {
            let names = (0..count.load(Ordering::SeqCst)).map(|number| format!("t{number}"));
            tools(&names.collect::<Vec<_>>())
        }
        _ => Value::Null,
    })
}

async fn listening(gateway: &turnbuckle_gateway::RunningGateway) -> Peer {
    let mut peer = Peer::connect(gateway.server()).await;
    peer.listen(json!({ "toolsListChanged": true })).await;
    let listed = peer.request("tools/list", json!({})).await;
    listed.expect_result();
    peer.notifications();
    peer
}

const CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test(start_paused = true)]
async fn a_thousand_changes_are_one_new_list_and_one_notification() {
    let count = Arc::new(AtomicUsize::new(1));
    let script = counted(&count);
    let gateway = start([script.upstream("a"), counted(&count).upstream("b")]).await;
    let mut peer = listening(&gateway).await;

    count.store(2, Ordering::SeqCst);
    for _ in 0..1_000 {
        script.notify(CHANGED, &json!({}));
    }
    peer.expect_notification(CHANGED).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    peer.expect_no_message().await;
    let requested = script.requests("tools/list").len();
    assert!((2..=3).contains(&requested), "{requested}");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_clients_do_not_see_is_not_announced() {
    let script = counted(&Arc::new(AtomicUsize::new(1)));
    let gateway = start([script.upstream("a")]).await;
    let mut peer = listening(&gateway).await;
    script.notify(CHANGED, &json!({}));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(script.requests("tools/list").len(), 2);
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_is_announced_although_a_client_has_listed_since() {
    let count = Arc::new(AtomicUsize::new(1));
    let script = counted(&count);
    let gateway = start([script.upstream("a")]).await;
    let mut peer = listening(&gateway).await;
    let mut other = listening(&gateway).await;

    count.store(2, Ordering::SeqCst);
    script.notify(CHANGED, &json!({}));
    // The gateway has received it when a later request has its response.
    while script.requests("tools/list").len() < 2 {
        other.request("tools/list", json!({})).await.expect_result();
    }

    peer.expect_notification(CHANGED).await;
    other.expect_notification(CHANGED).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_announced_only_if_the_list_differs() {
    for after in [1, 2] {
        let count = Arc::new(AtomicUsize::new(1));
        let script = counted(&count);
        let gateway = start([script.upstream("a"), counted(&count).upstream("b")]).await;
        let mut peer = listening(&gateway).await;
        count.store(after, Ordering::SeqCst);
        script.set_down(true);
        tokio::time::sleep(Duration::from_secs(1)).await;
        script.set_down(false);
        tokio::time::sleep(Duration::from_secs(20)).await;
        if after == 1 {
            peer.expect_no_message().await;
        } else {
            peer.expect_notification(CHANGED).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lists_come_from_memory() {
    let count = Arc::new(AtomicUsize::new(3));
    let script = counted(&count);
    let gateway = start([script.upstream("a"), counted(&count).upstream("b")]).await;
    for _ in 0..3 {
        let mut peer = Peer::connect(gateway.server()).await;
        for _ in 0..3 {
            let listed = peer.request("tools/list", json!({})).await;
            assert_eq!(members(listed.expect_result(), "tools", "name").len(), 6);
        }
    }
    assert_eq!(script.requests("tools/list").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_a_server_without_announcements_is_kept_for_thirty_seconds() {
    let script = Script::new(|method, _| match method {
        "initialize" => initialized(&json!({ "tools": {} })),
        "tools/list" => tools(&["x"]),
        _ => Value::Null,
    });
    let gateway = start([script.upstream("a"), script.upstream("b")]).await;
    let mut peer = Peer::connect(gateway.server()).await;
    for (wait, expected) in [(0, 2), (29, 2), (2, 4)] {
        tokio::time::sleep(Duration::from_secs(wait)).await;
        peer.request("tools/list", json!({})).await.expect_result();
        assert_eq!(script.requests("tools/list").len(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_the_own_list_have_sealed_cursors() {
    let gateway = Gateway::new("gateway", "1")
        .upstream(counted(&Arc::new(AtomicUsize::new(5))).upstream("a"))
        .upstream(counted(&Arc::new(AtomicUsize::new(2))).upstream("b"))
        .page_size(3);
    let gateway = gateway.start().await.unwrap();
    let mut peer = Peer::connect(gateway.server()).await;
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = peer
            .request("tools/list", json!({ "cursor": cursor }))
            .await;
        let page = page.expect_result().clone();
        names.extend(members(&page, "tools", "name"));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
        let elsewhere = peer
            .request("prompts/list", json!({ "cursor": cursor }))
            .await;
        elsewhere.expect_error(-32602);
    }
    assert_eq!(
        names,
        ["a_t0", "a_t1", "a_t2", "a_t3", "a_t4", "b_t0", "b_t1"]
    );
    let forged = peer.request("tools/list", json!({ "cursor": "3" })).await;
    forged.expect_error(-32602);
}

#[tokio::test(start_paused = true)]
async fn hints_are_the_least_of_all_servers() {
    let with_hint = |name: &str, hint| {
        let server = Server::new(name, "1").cache_lists(hint);
        let server = server.tool(Tool::new("x", async || Ok("x".to_owned())));
        upstream(name, LifecycleMode::Modern, server)
    };
    let (long, short) = (Duration::from_secs(600), Duration::from_secs(60));
    for (other, ttl, scope) in [
        (CacheHint::public(short), 60_000, "public"),
        (CacheHint::private(short), 60_000, "private"),
        (CacheHint::NONE, 0, "private"),
    ] {
        let servers = [
            with_hint("a", CacheHint::public(long)),
            with_hint("b", other),
        ];
        let gateway = start(servers).await;
        let mut peer = Peer::connect(gateway.server()).await;
        let listed = peer.request("tools/list", json!({})).await;
        let listed = listed.expect_result();
        assert_eq!(
            (listed["ttlMs"].as_u64(), &listed["cacheScope"]),
            (Some(ttl), &json!(scope))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_used_costs_only_its_server() {
    let many: Vec<String> = (0..100_000).map(|number| format!("t{number}")).collect();
    let many = tools(&many);
    let endless = Arc::new(AtomicUsize::new(0));
    let bomb = json!({ "tools": [
        { "name": "big", "description": "x".repeat(2_000_000), "inputSchema": { "type": "object" } },
        { "name": "small", "inputSchema": { "type": "object" } },
        { "title": "no name" }, 7, null, { "name": 7 },
    ] });
    let scripts = [
        Script::new(move |method, _| match method {
            "tools/list" => many.clone(),
            _ => Value::Null,
        }),
        Script::new(move |method, _| match method {
            "tools/list" => {
                let cursor = endless.fetch_add(1, Ordering::SeqCst).to_string();
                json!({ "tools": [], "nextCursor": cursor })
            }
            _ => Value::Null,
        }),
        Script::new(move |method, _| match method {
            "tools/list" => bomb.clone(),
            _ => Value::Null,
        }),
        Script::new(|method, _| match method {
            "tools/list" => json!({ "tools": [], "nextCursor": "same" }),
            _ => Value::Null,
        }),
    ];
    let names = ["many", "endless", "bomb", "same"];
    let upstreams = scripts
        .iter()
        .zip(names)
        .map(|(script, name)| script.upstream(name));
    let gateway = start(upstreams).await;
    let mut peer = Peer::connect(gateway.server()).await;
    let listed = peer.request("tools/list", json!({})).await;
    let listed = listed.expect_result();
    assert_eq!(members(listed, "tools", "name"), ["bomb_small"]);
    let listed = peer.request("tools/list", json!({})).await;
    let states = &listed.expect_result()["_meta"]["dev.turnbuckle/servers"];
    for (at, reason) in [
        (0, "20000 entries"),
        (1, "1000 pages"),
        (3, "repeats a cursor"),
    ] {
        let stated = states[at]["reason"].as_str().unwrap_or_default();
        assert!(stated.contains(reason), "{states}");
    }
    assert!(scripts[1].requests("tools/list").len() <= 1_001);
}

/// A modern server with as many tools as the counter says. The tool `end` ends the listen request.
fn announcing_server(count: &Arc<AtomicUsize>, grants: bool) -> Scripted {
    let count = Arc::clone(count);
    let listen = Mutex::new(Value::Null);
    Scripted::new(LifecycleMode::Modern, move |message, _| {
        let complete = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": { "listChanged": true } },
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "a", "version": "1" } },
            }),
            "tools/list" => {
                let names = (0..count.load(Ordering::SeqCst)).map(|number| format!("t{number}"));
                tools(&names.collect::<Vec<_>>())
            }
            "subscriptions/listen" if grants => {
                *listen.lock().unwrap() = message.clone();
                return Step::Default;
            }
            "subscriptions/listen" => {
                let error = json!({ "code": -32603, "message": "not now" });
                let response = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                return Step::Messages(vec![response]);
            }
            _ if is_call(message, "end") => {
                let listen = std::mem::take(&mut *listen.lock().unwrap());
                let ended = result(&listen, &json!({}));
                return Step::Messages(vec![ended, result(message, &text("ended"))]);
            }
            _ => return Step::Default,
        };
        Step::Messages(vec![result(message, &complete)])
    })
}

async fn tool_count(peer: &mut Peer) -> usize {
    let listed = peer.request("tools/list", json!({})).await;
    members(listed.expect_result(), "tools", "name").len()
}

#[tokio::test(start_paused = true)]
async fn a_listen_request_that_ends_is_sent_again_and_changes_are_found() {
    let count = Arc::new(AtomicUsize::new(1));
    let server = announcing_server(&count, true);
    let gateway = start([server.upstream("a")]).await;
    let mut peer = listening(&gateway).await;
    assert_eq!(server.received("subscriptions/listen").len(), 1);
    count.store(2, Ordering::SeqCst);
    assert_eq!(tool_count(&mut peer).await, 1);

    peer.call_tool("end", json!({})).await.expect_result();

    peer.expect_notification(CHANGED).await;
    assert_eq!(tool_count(&mut peer).await, 2);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(server.received("subscriptions/listen").len(), 2);
    let requested = server.received("tools/list").len();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(tool_count(&mut peer).await, 2);
    assert_eq!(server.received("tools/list").len(), requested);
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_changes_are_not_granted_is_kept_for_thirty_seconds() {
    let count = Arc::new(AtomicUsize::new(1));
    let server = announcing_server(&count, false);
    let gateway = start([server.upstream("a")]).await;
    let mut peer = listening(&gateway).await;
    count.store(2, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(tool_count(&mut peer).await, 1);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(tool_count(&mut peer).await, 2);
    assert!(server.received("subscriptions/listen").len() > 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_listen_request_is_acknowledged_before_the_old_one_is_dropped() {
    let declared = json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
    });
    let (upstream, mut server) = scripted_with("scripted", LifecycleMode::Modern, &declared);
    let (gateway, (mut connection, first)) = tokio::join!(start([upstream]), async {
        let mut connection = server.connection().await;
        let first = connection.expect("subscriptions/listen").await;
        acknowledge(&mut connection, &first).await;
        (connection, first)
    });
    let mut peer = Peer::connect(gateway.server()).await;

    let listen = peer.listen(json!({ "resourceSubscriptions": ["x:1"] }));
    let server = async {
        let second = connection.receive().await.unwrap();
        assert_eq!(second["method"], "subscriptions/listen", "{second}");
        let filter = &second["params"]["notifications"];
        assert_eq!(filter["resourceSubscriptions"], json!(["x:1"]), "{second}");
        assert_eq!(filter["toolsListChanged"], true);
        // Until it is acknowledged, the first one stays.
        let quiet = Duration::from_secs(3);
        let next = tokio::time::timeout(quiet, connection.receive()).await;
        assert!(next.is_err(), "{next:?}");
        acknowledge(&mut connection, &second).await;
        let cancelled = connection.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], first["id"]);
    };
    tokio::join!(listen, server);
}

/// Grants everything that a listen request asks for.
async fn acknowledge(connection: &mut ScriptedConnection, request: &Value) {
    let params = json!({
        "notifications": request["params"]["notifications"],
        "_meta": { "io.modelcontextprotocol/subscriptionId": request["id"] },
    });
    let method = "notifications/subscriptions/acknowledged";
    connection.notify(method, params).await;
}
