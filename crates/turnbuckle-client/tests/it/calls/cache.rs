//! The response cache.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::advance;
use turnbuckle_client::{CallError, Client, ClientLimits};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{LEGACY, MockReply, MockServer};

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

async fn list(client: &Client, method: &str) -> Result<(), CallError> {
    match method {
        "tools/list" => client.list_tools(None).await.map(drop),
        "prompts/list" => client.list_prompts(None).await.map(drop),
        "resources/list" => client.list_resources(None).await.map(drop),
        "resources/templates/list" => client.list_resource_templates(None).await.map(drop),
        _ => client.read_resource("file:///a").await.map(drop),
    }
}

fn read_result(ttl_ms: &Value) -> Value {
    let contents = json!([{ "uri": "file:///a", "text": "a" }]);
    json!({ "contents": contents, "ttlMs": ttl_ms, "cacheScope": "private" })
}

/// A server with a TTL of one second for all results.
fn server_with_ttl() -> MockServer {
    let server = MockServer::modern();
    for (method, member) in LISTS {
        server.respond(
            method,
            json!({ member: [], "ttlMs": 1000, "cacheScope": "public" }),
        );
    }
    server.respond("resources/read", read_result(&json!(1000)));
    server
}

fn methods() -> impl Iterator<Item = &'static str> {
    let lists = LISTS.iter().map(|(method, _)| *method);
    lists.chain(["resources/read"])
}

#[tokio::test(start_paused = true)]
async fn a_response_is_cached_until_its_ttl_ends() {
    req!(
        "caching.ttl.positive",
        "caching.ttl.fresh",
        "caching.stale.refetch",
        "caching.scope.private",
        "caching.scope.public"
    );
    for method in methods() {
        let server = server_with_ttl();
        let client = server.connect().await;

        list(&client, method).await.unwrap();
        advance(Duration::from_millis(900)).await;
        list(&client, method).await.unwrap();
        assert_eq!(server.count(method), 1, "{method}");

        advance(Duration::from_millis(100)).await;
        list(&client, method).await.unwrap();
        assert_eq!(server.count(method), 2, "{method}");
        list(&client, method).await.unwrap();
        assert_eq!(server.count(method), 2, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_requested_before_it_is_needed() {
    req!("caching.no-poll");
    let server = server_with_ttl();
    let client = server.connect().await;
    for method in methods() {
        list(&client, method).await.unwrap();
    }

    for _ in 0..5 {
        server.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_without_ttl_is_not_cached() {
    req!(
        "caching.ttl.zero",
        "caching.ttl.zero-refetch",
        "caching.ttl.absent",
        "caching.ttl.negative"
    );
    for ttl in [json!(0), json!(-5), json!(null)] {
        let server = MockServer::modern();
        for (method, member) in LISTS {
            let mut result = json!({ member: [], "resultType": "complete" });
            if !ttl.is_null() {
                result["ttlMs"] = ttl.clone();
            }
            server.on(method, move |_| MockReply::Exactly(result.clone()));
        }
        let mut result = read_result(&ttl);
        result["resultType"] = json!("complete");
        server.on("resources/read", move |_| {
            MockReply::Exactly(result.clone())
        });
        let client = server.connect().await;
        for method in methods() {
            list(&client, method).await.unwrap();
            list(&client, method).await.unwrap();
            assert_eq!(server.count(method), 2, "{method} {ttl}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn legacy_responses_are_not_cached() {
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        server.respond("tools/list", json!({ "tools": [], "ttlMs": 60_000 }));
        let client = server.connect().await;

        list(&client, "tools/list").await.unwrap();
        list(&client, "tools/list").await.unwrap();

        assert_eq!(server.count("tools/list"), 2, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_an_equal_request_uses_the_cache() {
    req!("caching.key");
    let server = MockServer::modern();
    server.on("resources/read", |request| {
        let mut result = read_result(&json!(1000));
        result["contents"][0]["uri"] = request["params"]["uri"].clone();
        result
    });
    server.on("tools/list", |request| {
        let name = request["params"]["cursor"].as_str().unwrap_or("first");
        let tool = json!({ "name": name, "inputSchema": { "type": "object" } });
        json!({ "tools": [tool], "ttlMs": 1000 })
    });
    let client = server.connect().await;

    for _ in 0..2 {
        for uri in ["file:///a", "file:///b"] {
            let read = client.read_resource(uri).await.unwrap();
            assert_eq!(serde_json::to_value(&read.contents[0]).unwrap()["uri"], uri);
        }
        for (cursor, name) in [(None, "first"), (Some(""), ""), (Some("2"), "2")] {
            let page = client.list_tools(cursor.map(str::to_owned)).await.unwrap();
            assert_eq!(page.tools[0].name, name);
        }
    }

    assert_eq!(server.count("resources/read"), 2);
    assert_eq!(server.count("tools/list"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_with_meta_bypasses_the_cache() {
    let server = server_with_ttl();
    let client = server.connect().await;
    list(&client, "tools/list").await.unwrap();

    let mut meta = turnbuckle_protocol::meta::Meta::default();
    meta.insert("example.com/locale", "nb").unwrap();
    client.list_tools(None).meta(meta).await.unwrap();
    client.list_tools(None).bypass_cache().await.unwrap();
    assert_eq!(server.count("tools/list"), 3);

    list(&client, "tools/list").await.unwrap();
    assert_eq!(server.count("tools/list"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_change_notification_invalidates_the_changed_entries() {
    req!("caching.notify.invalidate");
    const TOOLS: &str = "notifications/tools/list_changed";
    const PROMPTS: &str = "notifications/prompts/list_changed";
    const RESOURCES: &str = "notifications/resources/list_changed";
    const UPDATED: &str = "notifications/resources/updated";
    let cases: [(&str, Value, &[&str]); 5] = [
        (TOOLS, json!({}), &["tools/list"]),
        (PROMPTS, json!({}), &["prompts/list"]),
        (
            RESOURCES,
            json!({}),
            &["resources/list", "resources/templates/list"],
        ),
        (UPDATED, json!({ "uri": "file:///a" }), &["resources/read"]),
        (UPDATED, json!({ "uri": "file:///b" }), &[]),
    ];
    for (notification, params, concerned) in cases {
        let server = server_with_ttl();
        let client = server.connect().await;
        for method in methods() {
            list(&client, method).await.unwrap();
        }

        server.notify(notification, params.clone()).await;
        // A later response shows that the notification has arrived.
        client.ping().await.unwrap();

        for method in methods() {
            let before = server.count(method);
            list(&client, method).await.unwrap();
            let is_requested = server.count(method) > before;
            let expected = concerned.contains(&method);
            assert_eq!(is_requested, expected, "{notification} {params} {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_older_than_a_change_is_not_cached() {
    let server = server_with_ttl();
    server.withhold("tools/list");
    let client = server.connect().await;
    let listing = tokio::spawn(client.list_tools(None).into_future());
    let withheld = server.next("tools/list").await;
    server
        .notify("notifications/tools/list_changed", json!({}))
        .await;
    server
        .reply(&withheld, json!({ "tools": [], "ttlMs": 1000 }))
        .await;
    listing.await.unwrap().unwrap();

    server.respond("tools/list", json!({ "tools": [], "ttlMs": 1000 }));
    list(&client, "tools/list").await.unwrap();

    assert_eq!(server.count("tools/list"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_response_after_round_trips_is_not_cached() {
    req!("caching.no-mrtr", "caching.hints.not-interim");
    let server = MockServer::modern();
    server.on("resources/read", |request| {
        if request["params"]["requestState"] == "once more" {
            read_result(&json!(60_000))
        } else {
            json!({ "resultType": "input_required", "requestState": "once more" })
        }
    });
    let client = server.connect().await;

    client.read_resource("file:///a").await.unwrap();
    assert_eq!(server.count("resources/read"), 2);
    client.read_resource("file:///a").await.unwrap();
    assert_eq!(server.count("resources/read"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_stale_entry_is_not_used_when_the_server_fails() {
    let server = server_with_ttl();
    let client = server.connect().await;
    list(&client, "tools/list").await.unwrap();
    server.reject("tools/list", -32603, "out of order");

    list(&client, "tools/list").await.unwrap();
    advance(Duration::from_secs(1)).await;

    let error = list(&client, "tools/list").await.unwrap_err();
    assert_eq!(error.rpc().unwrap().code, -32603);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_cursor_invalidates_all_pages() {
    req!("caching.pages.invalid-cursor", "caching.pages.refetch");
    let server = MockServer::modern();
    server.on("tools/list", |request| {
        match request["params"]["cursor"].as_str() {
            None => MockReply::Result(json!({ "tools": [], "ttlMs": 60_000, "nextCursor": "2" })),
            Some("2") => {
                MockReply::Result(json!({ "tools": [], "ttlMs": 1000, "nextCursor": "3" }))
            }
            Some(_) => MockReply::error(-32602, "no such cursor"),
        }
    });
    let client = server.connect().await;
    client.list_tools(None).await.unwrap();
    client.list_tools(Some("2".to_owned())).await.unwrap();

    // The second page expires alone, and is fetched by its cursor.
    advance(Duration::from_secs(2)).await;
    client.list_tools(None).await.unwrap();
    client.list_tools(Some("2".to_owned())).await.unwrap();
    assert_eq!(server.count("tools/list"), 3);

    client.list_tools(Some("3".to_owned())).await.unwrap_err();
    client.list_tools(None).await.unwrap();
    client.list_tools(Some("2".to_owned())).await.unwrap();
    assert_eq!(server.count("tools/list"), 6);
}

#[tokio::test(start_paused = true)]
async fn clients_do_not_share_a_cache() {
    req!("caching.scope.private-no-share");
    for _ in 0..2 {
        let server = server_with_ttl();
        let client = server.connect().await;
        list(&client, "resources/read").await.unwrap();
        assert_eq!(server.count("resources/read"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_cache_can_be_disabled() {
    let server = server_with_ttl();
    let mut limits = ClientLimits::default();
    limits.max_cached_responses = 0;
    let builder = Client::builder("test", "1").limits(limits);
    let client = server.connect_with(builder).await;

    list(&client, "tools/list").await.unwrap();
    list(&client, "tools/list").await.unwrap();

    assert_eq!(server.count("tools/list"), 2);
}
