//! Resources of several servers.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_gateway::Gateway;
use turnbuckle_server::testing::{Peer, all_combinations};

use crate::{
    scripts::{Script, members, resources, text, tools},
    upstreams::start,
};

/// A server with these resources and templates. Its content is its own name and the URI.
fn with_resources(
    name: &'static str,
    uris: &'static [&'static str],
    templates: &'static [&'static str],
) -> Script {
    Script::new(move |method, params| match method {
        "resources/list" => resources(uris),
        "resources/templates/list" => {
            let templates = templates
                .iter()
                .map(|uri| json!({ "uriTemplate": uri, "name": "x" }));
            json!({ "resourceTemplates": templates.collect::<Vec<_>>() })
        }
        "resources/read" => {
            let uri = params["uri"].as_str().unwrap();
            json!({ "contents": [{ "uri": uri, "text": format!("{name} {uri}") }] })
        }
        "tools/list" => json!({ "tools": [{
            "name": "show", "inputSchema": { "type": "object" },
            "_meta": { "ui": { "resourceUri": "ui://view" }, "other": 1 },
        }] }),
        "tools/call" => json!({ "content": [
            { "type": "resource_link", "uri": "x:shared", "name": "x" },
            { "type": "resource", "resource": { "uri": "x:shared", "text": "x" } },
        ] }),
        "prompts/list" => json!({ "prompts": [{ "name": "p" }] }),
        "prompts/get" => json!({ "messages": [{ "role": "user", "content": {
            "type": "resource", "resource": { "uri": "x:shared", "text": "x" } } }] }),
        _ => Value::Null,
    })
}

async fn read(peer: &mut Peer, uri: &str) -> String {
    let read = peer.request("resources/read", json!({ "uri": uri })).await;
    let content = &read.expect_result()["contents"][0];
    content["text"].as_str().unwrap().to_owned()
}

const SHARED: &[&str] = &["x:shared", "ui://view"];
const TEMPLATES: &[&str] = &["t:{id}"];

#[tokio::test(start_paused = true)]
async fn the_first_server_keeps_a_uri_and_results_have_the_uris_of_lists() {
    for combination in all_combinations() {
        let gateway = start([
            with_resources("a", SHARED, TEMPLATES).upstream("a"),
            with_resources("b", SHARED, TEMPLATES).upstream("b"),
        ])
        .await;
        let mut peer = combination.connect(gateway.server()).await;
        let listed = peer.request("resources/list", json!({})).await;
        let uris = members(listed.expect_result(), "resources", "uri");
        let (own, own_ui) = ("turnbuckle://b/x%3Ashared", "ui://b/ui%3A%2F%2Fview");
        let expected = ["turnbuckle://servers", "x:shared", "ui://view", own, own_ui];
        assert_eq!(uris, expected, "{combination}");
        assert_eq!(read(&mut peer, "x:shared").await, "a x:shared");
        assert_eq!(read(&mut peer, own).await, "b x:shared");
        assert_eq!(read(&mut peer, own_ui).await, "b ui://view");
        // Accepted for every resource of every server.
        assert_eq!(
            read(&mut peer, "turnbuckle://a/x%3Ashared").await,
            "a x:shared"
        );

        for (server, shown, ui) in [("a", "x:shared", "ui://view"), ("b", own, own_ui)] {
            let called = peer.call_tool(&format!("{server}_show"), json!({})).await;
            let content = &called.expect_result()["content"];
            // Old revisions lack links, and get their text.
            assert!(
                content[0].to_string().contains(shown),
                "{combination} {content}"
            );
            assert_eq!(content[1]["resource"]["uri"], shown, "{combination}");
            let prompt = json!({ "name": format!("{server}_p") });
            let prompt = peer.request("prompts/get", prompt).await;
            let resource = &prompt.expect_result()["messages"][0]["content"]["resource"];
            assert_eq!(resource["uri"], shown, "{combination}");
            let tools = peer.request("tools/list", json!({})).await;
            let tools = &tools.expect_result()["tools"];
            let position = usize::from(server == "b");
            let meta = &tools[position]["_meta"];
            // Old revisions have no `_meta` here.
            if combination.revision.is_stateless() || meta.is_object() {
                assert_eq!(meta["ui"]["resourceUri"], ui, "{combination}");
            }
        }
        let templates = peer.request("resources/templates/list", json!({})).await;
        let templates = members(
            templates.expect_result(),
            "resourceTemplates",
            "uriTemplate",
        );
        assert_eq!(
            templates,
            ["t:{id}", "turnbuckle://b/t:{id}"],
            "{combination}"
        );
        assert_eq!(read(&mut peer, "turnbuckle://b/t:7").await, "b t:7");
    }
}

#[tokio::test(start_paused = true)]
async fn updates_have_the_uris_of_lists() {
    let second = with_resources("b", SHARED, &[]);
    let gateway = start([
        with_resources("a", SHARED, &[]).upstream("a"),
        second.upstream("b"),
    ])
    .await;
    let mut peer = Peer::connect(gateway.server()).await;
    let own = "turnbuckle://b/x%3Ashared";
    peer.listen(json!({ "resourceSubscriptions": [own] })).await;
    let subscribed = second.requests("resources/subscribe");
    assert_eq!(subscribed.len(), 1);
    assert_eq!(subscribed[0]["uri"], "x:shared");
    second.notify(
        "notifications/resources/updated",
        &json!({ "uri": "x:shared" }),
    );
    let updated = peer
        .expect_notification("notifications/resources/updated")
        .await;
    assert_eq!(updated["uri"], own);
}

#[tokio::test(start_paused = true)]
async fn an_unlisted_uri_reaches_a_template_or_the_only_server_of_its_scheme() {
    let gateway = start([
        with_resources("a", &["x:1"], &["t:{id}"]).upstream("a"),
        with_resources("b", &["x:2", "y:1"], &["t:{id}/more"]).upstream("b"),
    ])
    .await;
    let mut peer = Peer::connect(gateway.server()).await;
    assert_eq!(read(&mut peer, "t:7").await, "a t:7");
    assert_eq!(read(&mut peer, "t:7/more").await, "b t:7/more");
    assert_eq!(read(&mut peer, "y:2").await, "b y:2");
    assert_eq!(read(&mut peer, "Y:2").await, "b Y:2");
    let ambiguous = peer
        .request("resources/read", json!({ "uri": "x:3" }))
        .await;
    let candidates = &ambiguous.expect_error(-32602)["data"]["candidates"];
    assert_eq!(
        *candidates,
        json!(["turnbuckle://a/x%3A3", "turnbuckle://b/x%3A3"])
    );
    let completed = json!({
        "ref": { "type": "ref/resource", "uri": "t:{id}/more" },
        "argument": { "name": "id", "value": "" },
    });
    peer.request("completion/complete", completed)
        .await
        .expect_result();
}

#[tokio::test(start_paused = true)]
async fn pages_of_resources_are_requested_one_at_a_time() {
    let paged = Script::new(|method, params| match (method, params["cursor"].as_str()) {
        ("resources/list", None) => {
            json!({ "resources": [{ "uri": "p:0", "name": "x" }], "nextCursor": "1" })
        }
        ("resources/list", Some(cursor)) => {
            let mut page = resources(&[&format!("p:{cursor}")]);
            if cursor == "1" {
                page["nextCursor"] = "2".into();
            }
            page
        }
        _ => Value::Null,
    });
    let gateway = start([
        with_resources("a", &["a:1"], &[]).upstream("a"),
        paged.upstream("paged"),
        with_resources("c", &["c:1"], &[]).upstream("c"),
    ])
    .await;
    let mut peer = Peer::connect(gateway.server()).await;
    let (mut pages, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = peer
            .request("resources/list", json!({ "cursor": cursor }))
            .await;
        let page = page.expect_result().clone();
        pages.push(members(&page, "resources", "uri").join(" "));
        assert_eq!(paged.requests("resources/list").len(), pages.len());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(pages, ["turnbuckle://servers a:1 p:0", "p:1", "p:2 c:1"]);
    let forged = peer
        .request("resources/list", json!({ "cursor": "1" }))
        .await;
    forged.expect_error(-32602);
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_counted_and_only_granted_ones_are_acknowledged() {
    let script = with_resources("a", &["a:1", "a:2"], &[]);
    let gateway = start([
        script.upstream("a"),
        with_resources("b", &["b:1"], &[]).upstream("b"),
    ])
    .await;
    let mut peers = Vec::new();
    for _ in 0..3 {
        let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
        let subscribed = peer
            .request("resources/subscribe", json!({ "uri": "a:1" }))
            .await;
        subscribed.expect_result();
        peers.push(peer);
    }
    assert_eq!(script.requests("resources/subscribe").len(), 1);
    for peer in &mut peers {
        assert_eq!(script.requests("resources/unsubscribe").len(), 0);
        let ended = peer
            .request("resources/unsubscribe", json!({ "uri": "a:1" }))
            .await;
        ended.expect_result();
    }
    assert_eq!(script.requests("resources/unsubscribe").len(), 1);

    let mut peer = Peer::connect(gateway.server()).await;
    let filter = json!({ "resourceSubscriptions": ["a:2", "z:1"], "toolsListChanged": true });
    peer.start("subscriptions/listen", json!({ "notifications": filter }))
        .await;
    let acknowledged = peer
        .expect_notification("notifications/subscriptions/acknowledged")
        .await;
    let granted = &acknowledged["notifications"];
    assert_eq!(
        granted["resourceSubscriptions"],
        json!(["a:2"]),
        "{acknowledged}"
    );
    assert_eq!(granted["toolsListChanged"], true);
}

#[tokio::test(start_paused = true)]
async fn the_last_session_that_ends_unsubscribes_and_the_connection_can_end() {
    let script = with_resources("a", &["a:1", "a:2"], &[]);
    let gateway = Gateway::new("gateway", "1").upstream(script.upstream("a"));
    let gateway = gateway.idle_timeout(Duration::from_secs(60));
    let gateway = gateway.start().await.unwrap();
    let mut peers = Vec::new();
    for _ in 0..3 {
        let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
        for uri in ["a:1", "a:2"] {
            let subscribed = peer.request("resources/subscribe", json!({ "uri": uri }));
            subscribed.await.expect_result();
        }
        peers.push(peer);
    }
    assert_eq!(script.requests("resources/subscribe").len(), 2);
    let last = peers.pop();
    drop(peers);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(script.requests("resources/unsubscribe").len(), 0);

    drop(last);

    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(script.requests("resources/unsubscribe").len(), 2);
    assert_eq!(script.open_connections(), 1);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(script.open_connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_cannot_take_the_uris_of_others() {
    let imitation: &[&str] = &[
        "turnbuckle://servers",
        "turnbuckle://a/x%3A1",
        "ui://a/ui%3A%2F%2Fx",
    ];
    let second = Script::new(move |method, _| match method {
        "resources/list" => resources(imitation),
        "resources/read" => json!({ "contents": [{ "uri": "x:1", "text": "imitation" }] }),
        "tools/list" => tools(&["x"]),
        "tools/call" => text("x"),
        _ => Value::Null,
    });
    let gateway = start([
        with_resources("a", &["x:1", "ui://x"], &[]).upstream("a"),
        second.upstream("b"),
    ])
    .await;
    let mut peer = Peer::connect(gateway.server()).await;
    let listed = peer.request("resources/list", json!({})).await;
    let uris = members(listed.expect_result(), "resources", "uri");
    assert!(
        uris[3..].iter().all(|uri| uri.contains("://b/")),
        "{uris:?}"
    );
    assert_eq!(read(&mut peer, "turnbuckle://a/x%3A1").await, "a x:1");
    assert_eq!(read(&mut peer, "ui://a/ui%3A%2F%2Fx").await, "a ui://x");
    assert!(
        read(&mut peer, "turnbuckle://servers")
            .await
            .contains("\"state\":\"up\"")
    );
    for uri in &uris[3..] {
        assert_eq!(read(&mut peer, uri).await, "imitation");
    }
}
