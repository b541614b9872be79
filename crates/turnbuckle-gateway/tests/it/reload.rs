//! Servers that are added, changed and removed while the gateway runs.

use std::time::Duration;

use serde_json::json;
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{RunningGateway, Sharing, StartError, Upstream};
use turnbuckle_server::{Server, Tool, testing::Peer};

use crate::upstreams::{ConnectionCount, ERAS, counted, start};

/// A server with a tool that takes ten seconds, and one that never ends.
fn slow(name: &str) -> Server {
    Server::new(name, "1.0.0")
        .tool(Tool::new("slow", async || {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok("done".to_owned())
        }))
        .tool(Tool::new("hang", async || {
            std::future::pending::<()>().await;
            Ok(String::new())
        }))
}

fn server(name: &str, mode: LifecycleMode, count: &ConnectionCount) -> Upstream {
    counted(name, mode, slow(name), count).sharing(Sharing::All)
}

async fn tool_names(peer: &mut Peer) -> Vec<String> {
    let tools = peer.request("tools/list", json!({})).await;
    let tools = tools.expect_result()["tools"].as_array().unwrap().clone();
    let name = |tool: &serde_json::Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

async fn reload(gateway: &RunningGateway, servers: &[Upstream]) -> String {
    let reload = gateway.reload(servers.iter().cloned()).await.unwrap();
    format!(
        "added {:?}, changed {:?}, removed {:?}",
        reload.added, reload.changed, reload.removed
    )
}

#[tokio::test(start_paused = true)]
async fn unchanged_servers_keep_their_connections() {
    for mode in ERAS {
        let (kept, new) = (ConnectionCount::default(), ConnectionCount::default());
        let a = server("a", mode, &kept).fingerprint("1");
        let gateway = start([a]).await;
        let mut peer = Peer::connect(gateway.server()).await;
        assert_eq!(tool_names(&mut peer).await, ["slow", "hang"]);

        let same = server("a", mode, &ConnectionCount::default()).fingerprint("1");
        let other = server("b", mode, &new);
        let changes = reload(&gateway, &[same, other]).await;

        assert_eq!(changes, r#"added ["b"], changed [], removed []"#);
        let names = tool_names(&mut peer).await;
        assert_eq!(names, ["a_slow", "a_hang", "b_slow", "b_hang"]);
        let called = peer.call_tool("a_slow", json!({})).await;
        assert_eq!(called.text(), "done");
        assert_eq!((kept.opened(), new.opened()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_changed_server_ends_before_its_connection() {
    for mode in ERAS {
        let (old, new) = (ConnectionCount::default(), ConnectionCount::default());
        let other = || server("other", mode, &ConnectionCount::default()).fingerprint("1");
        let gateway = start([server("a", mode, &old).fingerprint("1"), other()]).await;
        let mut peer = Peer::connect(gateway.server()).await;
        let mut second = Peer::connect(gateway.server()).await;
        tool_names(&mut peer).await;
        let (calling, changing) = tokio::join!(peer.call_tool("a_slow", json!({})), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let changed = [server("a", mode, &new).fingerprint("2"), other()];
            let changes = reload(&gateway, &changed).await;
            let called = second.call_tool("a_slow", json!({})).await;
            assert_eq!(called.text(), "done");
            changes
        });

        assert_eq!(changing, r#"added [], changed ["a"], removed []"#);
        assert_eq!(calling.text(), "done");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!((old.open(), new.open()), (0, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_is_ended_after_thirty_seconds() {
    for mode in ERAS {
        let count = ConnectionCount::default();
        let other = || server("other", mode, &ConnectionCount::default()).fingerprint("1");
        let gateway = start([server("a", mode, &count), other()]).await;
        let mut peer = Peer::connect(gateway.server()).await;
        tool_names(&mut peer).await;
        let started = tokio::time::Instant::now();
        let (calling, removed) = tokio::join!(
            peer.request("tools/call", json!({ "name": "a_hang" })),
            async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                reload(&gateway, &[other()]).await
            }
        );

        assert_eq!(removed, r#"added [], changed [], removed ["a"]"#);
        calling.expect_error(-32603);
        let elapsed = started.elapsed().as_secs();
        assert!((30..35).contains(&elapsed), "{elapsed}");
        // The server gives a running call five more seconds.
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(count.open(), 0);
        // The names of the only server are not prefixed.
        assert_eq!(tool_names(&mut peer).await, ["slow", "hang"]);
    }
}

#[tokio::test(start_paused = true)]
async fn clients_hear_once_of_a_reload_and_never_of_one_without_changes() {
    let mode = LifecycleMode::Legacy;
    let count = ConnectionCount::default();
    let a = || server("a", mode, &count).fingerprint("1");
    let gateway = start([a()]).await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    tool_names(&mut peer).await;

    assert!(gateway.reload([a()]).await.unwrap().is_empty());
    tokio::time::sleep(Duration::from_secs(2)).await;
    peer.expect_no_message().await;

    reload(&gateway, &[a(), server("b", mode, &count)]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    // Reads what came before the response.
    peer.request("ping", json!({})).await.expect_result();
    let heard: Vec<_> = peer
        .notifications()
        .iter()
        .filter(|message| message["method"] == "notifications/tools/list_changed")
        .cloned()
        .collect();
    assert_eq!(heard.len(), 1, "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_reload_changes_nothing() {
    let count = ConnectionCount::default();
    let a = || server("a", LifecycleMode::Modern, &count).fingerprint("1");
    let gateway = start([a()]).await;
    let mut peer = Peer::connect(gateway.server()).await;

    let twice = gateway.reload([a(), a()]).await;
    assert!(matches!(twice, Err(StartError::DuplicateName(_))));
    let none = gateway.reload([]).await;
    assert!(matches!(none, Err(StartError::NoUpstream)));
    let pattern = gateway.reload([a().fingerprint("2").deny(["["])]).await;
    assert!(matches!(pattern, Err(StartError::Pattern { .. })));

    assert_eq!(tool_names(&mut peer).await, ["slow", "hang"]);
    assert_eq!(count.opened(), 1);
}
