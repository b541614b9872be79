//! Answers that may be used again.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::advance;
use turnbuckle_client::{CallError, Client, ClientLimits};
use turnbuckle_spec_coverage::req;

use crate::fake_lines::{FakeServer, LEGACY, Reply};

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

/// A server that lets everything be used again for a second.
fn second_long() -> FakeServer {
    let server = FakeServer::modern();
    for (method, member) in LISTS {
        server.answer(
            method,
            json!({ member: [], "ttlMs": 1000, "cacheScope": "public" }),
        );
    }
    server.answer("resources/read", read_result(&json!(1000)));
    server
}

fn methods() -> impl Iterator<Item = &'static str> {
    let lists = LISTS.iter().map(|(method, _)| *method);
    lists.chain(["resources/read"])
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_used_as_long_as_it_is_fresh_and_then_asked_for_again() {
    req!(
        "caching.ttl.positive",
        "caching.ttl.fresh",
        "caching.stale.refetch",
        "caching.scope.private",
        "caching.scope.public"
    );
    for method in methods() {
        let server = second_long();
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
async fn nothing_is_asked_for_until_somebody_needs_it() {
    req!("caching.no-poll");
    let server = second_long();
    let client = server.connect().await;
    for method in methods() {
        list(&client, method).await.unwrap();
    }

    for _ in 0..5 {
        server.expect_silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_time_it_is_asked_for_every_time() {
    req!(
        "caching.ttl.zero",
        "caching.ttl.zero-refetch",
        "caching.ttl.absent",
        "caching.ttl.negative"
    );
    for ttl in [json!(0), json!(-5), json!(null)] {
        let server = FakeServer::modern();
        for (method, member) in LISTS {
            let mut result = json!({ member: [], "resultType": "complete" });
            if !ttl.is_null() {
                result["ttlMs"] = ttl.clone();
            }
            server.on(method, move |_| Reply::Exactly(result.clone()));
        }
        let mut result = read_result(&ttl);
        result["resultType"] = json!("complete");
        server.on("resources/read", move |_| Reply::Exactly(result.clone()));
        let client = server.connect().await;
        for method in methods() {
            list(&client, method).await.unwrap();
            list(&client, method).await.unwrap();
            assert_eq!(server.count(method), 2, "{method} {ttl}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn older_revisions_know_no_such_thing() {
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        server.answer("tools/list", json!({ "tools": [], "ttlMs": 60_000 }));
        let client = server.connect().await;

        list(&client, "tools/list").await.unwrap();
        list(&client, "tools/list").await.unwrap();

        assert_eq!(server.count("tools/list"), 2, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_same_question_gets_the_same_answer() {
    req!("caching.key");
    let server = FakeServer::modern();
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
async fn what_goes_along_with_a_question_makes_it_another_one() {
    let server = second_long();
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
async fn a_change_makes_what_it_concerns_stale_at_once() {
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
        let server = second_long();
        let client = server.connect().await;
        for method in methods() {
            list(&client, method).await.unwrap();
        }

        server.notify(notification, params.clone()).await;
        // An answer that comes after it, so that it has arrived.
        client.ping().await.unwrap();

        for method in methods() {
            let before = server.count(method);
            list(&client, method).await.unwrap();
            let asked = server.count(method) > before;
            let expected = concerned.contains(&method);
            assert_eq!(asked, expected, "{notification} {params} {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_a_change_has_overtaken_is_not_kept() {
    let server = second_long();
    server.hold("tools/list");
    let client = server.connect().await;
    let listing = tokio::spawn(client.list_tools(None).into_future());
    let held = server.next("tools/list").await;
    server
        .notify("notifications/tools/list_changed", json!({}))
        .await;
    server
        .reply(&held, json!({ "tools": [], "ttlMs": 1000 }))
        .await;
    listing.await.unwrap().unwrap();

    server.answer("tools/list", json!({ "tools": [], "ttlMs": 1000 }));
    list(&client, "tools/list").await.unwrap();

    assert_eq!(server.count("tools/list"), 2);
}

#[tokio::test(start_paused = true)]
async fn what_took_rounds_is_not_kept() {
    req!("caching.no-mrtr", "caching.hints.not-interim");
    let server = FakeServer::modern();
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
async fn what_is_stale_is_not_used_when_the_server_fails() {
    let server = second_long();
    let client = server.connect().await;
    list(&client, "tools/list").await.unwrap();
    server.refuse("tools/list", -32603, "out of order");

    list(&client, "tools/list").await.unwrap();
    advance(Duration::from_secs(1)).await;

    let error = list(&client, "tools/list").await.unwrap_err();
    assert_eq!(error.rpc().unwrap().code, -32603);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_turned_invalid_drops_all_pages() {
    req!("caching.pages.invalid-cursor", "caching.pages.refetch");
    let server = FakeServer::modern();
    server.on("tools/list", |request| {
        match request["params"]["cursor"].as_str() {
            None => Reply::Result(json!({ "tools": [], "ttlMs": 60_000, "nextCursor": "2" })),
            Some("2") => Reply::Result(json!({ "tools": [], "ttlMs": 1000, "nextCursor": "3" })),
            Some(_) => Reply::error(-32602, "no such cursor"),
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
async fn clients_share_nothing() {
    req!("caching.scope.private-no-share");
    for _ in 0..2 {
        let server = second_long();
        let client = server.connect().await;
        list(&client, "resources/read").await.unwrap();
        assert_eq!(server.count("resources/read"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn keeping_answers_can_be_switched_off() {
    let server = second_long();
    let mut limits = ClientLimits::default();
    limits.max_cached_responses = 0;
    let builder = Client::builder("test", "1").limits(limits);
    let client = server.connect_as(builder).await;

    list(&client, "tools/list").await.unwrap();
    list(&client, "tools/list").await.unwrap();

    assert_eq!(server.count("tools/list"), 2);
}
