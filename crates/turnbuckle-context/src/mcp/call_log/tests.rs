use serde_json::{Value, json};
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Server, Tool, ToolError,
    ndjson::NdjsonServer,
    testing::{Peer, PeerBuilder},
};

use super::*;
use crate::mcp::tools::debug;

/// Returns a server with a tool that succeeds, one that fails, and the debug tools.
fn server(owners: OwnershipPolicy) -> Server {
    let call_log = CallLog::new(owners);
    let work = async || {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        Ok("done".to_owned())
    };
    let fail = async || Err::<String, _>(ToolError::new("not today"));
    let mut server = Server::new("notes", "1")
        .layer(call_log.clone())
        .tool(Tool::new("work", work))
        .tool(Tool::new("fail", fail));
    for tool in debug::all(&call_log) {
        server = server.tool(tool);
    }
    for resource in resources(&call_log) {
        server = server.resource(resource);
    }
    server
}

fn one() -> OwnershipPolicy {
    OwnershipPolicy::Single(Owner::for_user("ada"))
}

async fn call(peer: &mut Peer, tool: &str, arguments: Value) -> Value {
    peer.call_tool(tool, arguments).await.structured()
}

async fn recorded(peer: &mut Peer) -> Vec<String> {
    let found = call(peer, "debug_log_query", json!({})).await;
    let line = |entry: &Value| {
        let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
        format!(
            "{} {} {}",
            text("entry_type"),
            text("function_name"),
            text("message")
        )
    };
    found["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_query_shows_the_calls_just_made_with_their_durations() {
    let mut peer = Peer::connect(server(one())).await;
    peer.call_tool("work", json!({ "city": "Oslo" })).await;
    peer.call_tool("fail", json!({})).await;

    let found = call(
        &mut peer,
        "debug_log_query",
        json!({ "entry_type": "exit" }),
    )
    .await;

    assert_eq!(found["count"], 2);
    let [work, fail] = [&found["entries"][0], &found["entries"][1]];
    assert_eq!(work["function_name"], "work");
    assert_eq!(work["package_path"], "tools");
    assert_eq!(work["message"], "completed");
    assert_eq!(work["duration_ms"].as_f64().unwrap().round(), 20.0);
    assert_eq!(fail["message"], "tool_error");
}

#[tokio::test(start_paused = true)]
async fn calls_have_start_and_end_entries_and_debug_calls_are_not_recorded() {
    let mut peer = Peer::connect(server(one())).await;
    peer.call_tool("work", json!({})).await;
    peer.request("resources/list", json!({})).await;
    let uri = json!({ "uri": "debuglog://status" });
    peer.request("resources/read", uri).await;

    assert_eq!(
        recorded(&mut peer).await,
        [
            "enter work tools/call",
            "exit work completed",
            "enter list resources/list",
            "exit list completed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn only_matching_calls_are_recorded_and_debug_calls_on_request() {
    let mut peer = Peer::connect(server(one())).await;
    let enabled = call(&mut peer, "debug_log_enable", json!({ "pattern": "w*k" })).await;
    assert_eq!(
        enabled,
        json!({ "status": "enabled", "filter_pattern": "w*k" })
    );
    peer.call_tool("work", json!({})).await;
    peer.call_tool("fail", json!({})).await;
    assert_eq!(recorded(&mut peer).await.len(), 2);

    call(
        &mut peer,
        "debug_log_enable",
        json!({ "pattern": "debug_*" }),
    )
    .await;
    call(&mut peer, "debug_log_status", json!({})).await;
    assert!(
        recorded(&mut peer)
            .await
            .contains(&"exit debug_log_status completed".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn recording_can_be_disabled_and_the_log_cleared() {
    let mut peer = Peer::connect(server(one())).await;
    peer.call_tool("work", json!({})).await;
    let status = peer.call_tool("debug_log_status", json!({})).await;
    assert!(
        status.text().contains("\"enabled\":true"),
        "{}",
        status.text()
    );

    call(&mut peer, "debug_log_disable", json!({})).await;
    peer.call_tool("fail", json!({})).await;
    let status = call(&mut peer, "debug_log_status", json!({})).await;
    assert_eq!(
        status,
        json!({ "enabled": false, "filter_pattern": "*", "entry_count": 2, "current_depth": 0 })
    );

    let cleared = call(&mut peer, "debug_log_clear", json!({})).await;
    assert_eq!(cleared, json!({ "status": "cleared", "entry_count": 0 }));
    assert!(recorded(&mut peer).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn calls_are_grouped_under_their_session() {
    let mut peer = Peer::connect(server(one())).await;
    let session = call(
        &mut peer,
        "debug_create_session",
        json!({ "program": "build" }),
    )
    .await;
    assert_eq!(session["target_type"], "interpreter");
    assert_eq!(session["state"], "recording");
    peer.call_tool("work", json!({})).await;
    let status = call(&mut peer, "debug_log_status", json!({})).await;
    assert_eq!(status["current_depth"], 1);
    let id = &session["session_id"];
    let sessions = call(&mut peer, "debug_list_sessions", json!({})).await;
    assert_eq!(&sessions["sessions"][0]["session_id"], id);
    let closed = call(
        &mut peer,
        "debug_close_session",
        json!({ "session_id": id }),
    )
    .await;
    assert_eq!(closed, json!({ "closed": id, "status": "ok" }));
    peer.call_tool("fail", json!({})).await;

    let tree = call(&mut peer, "debug_log_tree", json!({})).await;
    assert_eq!(
        tree["tree"].as_str().unwrap().lines().collect::<Vec<_>>(),
        [
            "#1 debug build 20.0 ms closed [interpreter]",
            "  #2 tools work 20.0 ms completed [test] {}",
            "#3 tools fail 0.0 ms tool_error [test] {}",
        ]
    );

    let folded = json!({ "format": "json", "expanded_groups": [] });
    let folded = call(&mut peer, "debug_log_tree", folded).await;
    assert_eq!(folded["tree"][0]["hidden"], 1);
    let flat = call(
        &mut peer,
        "debug_log_tree",
        json!({ "format": "json", "max_depth": 0 }),
    )
    .await;
    assert_eq!(flat["tree"][0]["hidden"], 1);

    let again = peer
        .call_tool("debug_close_session", json!({ "session_id": id }))
        .await;
    assert!(again.expect_tool_error().contains("debug_list_sessions"));
}

#[tokio::test(start_paused = true)]
async fn sessions_are_limited() {
    let mut peer = Peer::connect(server(one())).await;
    for _ in 0..16 {
        call(&mut peer, "debug_create_session", json!({ "program": "p" })).await;
    }
    let more = peer
        .call_tool("debug_create_session", json!({ "program": "p" }))
        .await;
    assert!(more.expect_tool_error().contains("debug_close_session"));
}

#[tokio::test(start_paused = true)]
async fn a_query_continues_after_the_last_entry() {
    let mut peer = Peer::connect(server(one())).await;
    for _ in 0..5 {
        peer.call_tool("fail", json!({})).await;
    }
    let ids = |found: &Value| -> Vec<u64> {
        let entries = found["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| entry["entry_id"].as_u64().unwrap())
            .collect()
    };
    let newest = call(&mut peer, "debug_log_query", json!({ "max_results": 3 })).await;
    assert_eq!(ids(&newest), [8, 9, 10]);
    let next = json!({ "max_results": 3, "since_id": 4 });
    let next = call(&mut peer, "debug_log_query", next).await;
    assert_eq!(ids(&next), [5, 6, 7]);
    let none = json!({ "function_pattern": "w*" });
    assert_eq!(call(&mut peer, "debug_log_query", none).await["count"], 0);
}

#[tokio::test(start_paused = true)]
async fn callers_see_only_their_own_calls() {
    let server = server(OwnershipPolicy::PerPrincipal);
    let connect = |name: &str| {
        let lines =
            NdjsonServer::new(server.clone()).principal(Principal::new("https://issuer", name));
        PeerBuilder::ndjson(lines)
    };
    let (mut ada, mut bob) = (connect("ada").await, connect("bob").await);
    ada.call_tool("work", json!({})).await;

    assert_eq!(recorded(&mut ada).await.len(), 2);
    assert!(recorded(&mut bob).await.is_empty());
    call(&mut bob, "debug_log_disable", json!({})).await;
    call(&mut bob, "debug_log_clear", json!({})).await;
    assert_eq!(recorded(&mut ada).await.len(), 2);

    let mut unauthenticated = Peer::connect(server.clone()).await;
    unauthenticated.call_tool("work", json!({})).await;
    let rejected = unauthenticated
        .call_tool("debug_log_query", json!({}))
        .await;
    assert!(rejected.expect_tool_error().contains("sign in"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_ends_as_cancelled() {
    let server = server(one());
    let mut peer = Peer::connect(server.clone()).await;
    let call = json!({
        "jsonrpc": "2.0", "id": "slow", "method": "tools/call",
        "params": { "name": "work", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    });
    peer.send(call).await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    peer.notify("notifications/cancelled", json!({ "requestId": "slow" }))
        .await;
    peer.expect_no_message().await;

    assert_eq!(
        recorded(&mut peer).await,
        ["enter work tools/call", "exit work cancelled"]
    );
}

#[tokio::test(start_paused = true)]
async fn resources_and_tools_return_the_same_data() {
    let mut peer = Peer::connect(server(one())).await;
    peer.call_tool("work", json!({})).await;
    let mut read = async |name: &str| {
        let uri = json!({ "uri": format!("debuglog://{name}") });
        let answer = peer.request("resources/read", uri).await;
        let text = &answer.expect_result()["contents"][0]["text"];
        text.as_str().unwrap().to_owned()
    };
    assert!(read("text").await.starts_with("#1 tools work"));
    assert!(read("status").await.contains("\"entry_count\":2"));
    let entries: Value = serde_json::from_str(&read("entries").await).unwrap();
    assert_eq!(entries[1]["message"], "completed");
    let tree: Value = serde_json::from_str(&read("tree").await).unwrap();
    assert_eq!(tree[0]["name"], "tools work");
}

#[test]
fn the_log_is_limited_in_entries_and_bytes() {
    let mut log = OwnerLog::new(1);
    let call = |function: String| CallNames {
        package: "tools".to_owned(),
        class: "someone".to_owned(),
        function,
        method: "tools/call".to_owned(),
    };
    for _ in 0..3_000 {
        let open_call = log.enter(call("work".to_owned()), "p".repeat(400));
        log.exit(&open_call, OperationOutcome::Completed);
    }
    assert!(log.len() <= 2_000);
    let bytes: usize = log.entries().map(LogEntry::bytes).sum();
    assert!(bytes <= 512 * 1024, "{bytes}");
    assert_eq!(log.entries().last().unwrap().entry_id, 6_000);
}

#[test]
fn the_least_recently_used_log_is_removed_first() {
    let call_log = CallLog::new(OwnershipPolicy::PerPrincipal);
    for caller in 0..1_000 {
        let principal = Principal::new("https://issuer", format!("caller {caller}"));
        call_log
            .with_log(Some(&principal), OwnerLog::disable)
            .unwrap();
    }
    assert_eq!(
        call_log.shared.logs.lock().unwrap().by_owner.len(),
        MAX_OWNERS
    );
    let newest = Principal::new("https://issuer", "caller 999");
    assert!(
        !call_log
            .with_log(Some(&newest), |log| log.is_enabled())
            .unwrap()
    );
    let oldest = Principal::new("https://issuer", "caller 0");
    assert!(
        call_log
            .with_log(Some(&oldest), |log| log.is_enabled())
            .unwrap()
    );
}
