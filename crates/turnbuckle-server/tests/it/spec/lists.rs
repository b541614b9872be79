//! Lists: content, order and cache hints.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_server::{
    CacheHint, Context, Prompt, Resource, ResourceTemplate, Server, Tool, Variables,
};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::HttpTestClient,
    ndjson::test_client::Peer,
    spec::revision_client::{EVERY, MODERN, RevisionClient},
};

/// The list methods, and the member with the items.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

fn tool(name: impl Into<String>) -> Tool {
    Tool::new(name, async |cx: Context| {
        cx.tools_changed();
        Ok("called".to_owned())
    })
}

/// Five items of every kind.
fn server() -> Server {
    (0..5).fold(Server::new("lists", "1"), |server, at| {
        let prompt = Prompt::new(format!("p{at}"), async || Ok("hi"));
        let template = ResourceTemplate::new(
            format!("t{at}://{{a}}"),
            "t",
            async |_: Variables, _: Context| Ok("t"),
        );
        server
            .tool(tool(format!("z{}", 9 - at)))
            .prompt(prompt)
            .resource(Resource::text(format!("r://{at}"), "r", "r"))
            .template(template)
    })
}

/// Every page of a list.
async fn pages(client: &mut RevisionClient, method: &str) -> Vec<Value> {
    let mut pages = Vec::new();
    let mut params = json!({});
    loop {
        let page = client.result(method, params).await;
        let cursor = page.get("nextCursor").cloned();
        pages.push(page);
        match cursor {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return pages,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_list_comes_in_pages_in_every_revision() {
    req!("pagination.operations");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server().page_size(2)).await;
        for (method, member) in LISTS {
            let whole = RevisionClient::new(revision, server())
                .await
                .result(method, json!({}))
                .await;

            let pages = pages(&mut client, method).await;

            let parts = pages
                .iter()
                .flat_map(|page| page[member].as_array().unwrap());
            let parts: Vec<_> = parts.cloned().collect();
            assert_eq!(pages.len(), 3, "{revision} {method}");
            assert_eq!(json!(parts), whole[member], "{revision} {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_one_list_is_rejected_by_another() {
    let mut client = RevisionClient::new(MODERN, server().page_size(2)).await;
    let page = client.result("tools/list", json!({})).await;
    for (method, _) in &LISTS[1..] {
        let cursor = json!({ "cursor": page["nextCursor"] });
        assert_eq!(client.code(method, cursor).await, -32602, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn declared_items_are_listed_in_order() {
    req!(
        "tools.list.respond",
        "tools.list.deterministic",
        "resources.list.respond",
        "prompts.list.respond"
    );
    let mut client = RevisionClient::new(MODERN, server()).await;
    let found = client.result("server/discover", json!({})).await;
    for capability in ["tools", "resources", "prompts"] {
        assert!(found["capabilities"][capability].is_object());
    }
    for (method, member) in LISTS {
        let first = client.result(method, json!({})).await;
        assert_eq!(first[member].as_array().unwrap().len(), 5, "{method}");
        for _ in 0..5 {
            assert_eq!(client.result(method, json!({})).await, first, "{method}");
        }
    }
    let tools = client.result("tools/list", json!({})).await;
    assert_eq!(
        tools["tools"][0]["name"], "z9",
        "in the order of registration"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_does_not_depend_on_the_connection_or_earlier_requests() {
    req!(
        "tools.list.not-per-connection",
        "resources.list.not-per-connection",
        "prompts.list.not-per-connection"
    );
    let server = server();
    let mut fresh = RevisionClient::new(MODERN, server.clone()).await;
    let mut worn = Peer::initialized(server, "2025-03-26", json!({ "roots": {} })).await;
    worn.call("resources/subscribe", json!({ "uri": "r://1" }))
        .await;
    worn.call("logging/setLevel", json!({ "level": "emergency" }))
        .await;
    worn.call_modern("resources/read", json!({ "uri": "r://2" }))
        .await;
    worn.call_modern("tools/call", json!({ "name": "missing" }))
        .await;
    for (method, _) in LISTS {
        let result = fresh.result(method, json!({})).await;

        assert_eq!(worn.call_modern(method, json!({})).await["result"], result);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_may_change_while_the_server_runs() {
    req!("tools.list.empty-or-changing");
    let server = server();
    let mut client = RevisionClient::new(MODERN, server.clone()).await;

    server.add_tool(tool("late"));

    let tools = client.result("tools/list", json!({})).await;
    assert_eq!(tools["tools"][5]["name"], "late");
    let called = client.tool("late", json!({})).await;
    assert_eq!(called["content"][0]["text"], "called");

    assert!(server.remove_tool("late"));
    assert!(!server.remove_tool("late"));

    let tools = client.result("tools/list", json!({})).await;
    assert_eq!(tools["tools"].as_array().unwrap().len(), 5);
    let params = json!({ "name": "late" });
    assert_eq!(client.code("tools/call", params).await, -32602);
}

#[tokio::test(start_paused = true)]
async fn an_emptied_list_is_still_advertised() {
    for revision in EVERY {
        let server = Server::new("lists", "1")
            .tool(tool("only"))
            .prompt(Prompt::new("only", async || Ok("hi")))
            .resource(Resource::text("r://only", "r", "r"));
        let mut client = RevisionClient::new(revision, server.clone()).await;

        server.remove_tool("only");
        server.remove_prompt("only");
        server.remove_resource("r://only");

        for (method, member) in LISTS {
            let result = client.result(method, json!({})).await;
            assert_eq!(result[member], json!([]), "{revision} {method}");
        }
        let params = json!({ "name": "only" });
        assert_eq!(client.code("tools/call", params).await, -32602);
    }
}

/// Cacheable methods, with parameters.
fn cacheable() -> Vec<(&'static str, Value)> {
    let mut all: Vec<_> = LISTS
        .iter()
        .map(|(method, _)| (*method, json!({})))
        .collect();
    all.push(("server/discover", json!({})));
    all.push(("resources/read", json!({ "uri": "r://1" })));
    all
}

#[tokio::test(start_paused = true)]
async fn cacheable_results_have_ttl_and_scope() {
    req!(
        "caching.hints.required",
        "caching.ttl.non-negative",
        "caching.ttl.integer",
        "caching.scope.value"
    );
    let public = CacheHint::public(Duration::from_micros(1_500_999));
    let forever = CacheHint::private(Duration::MAX);
    for (server, ttl, scope) in [
        (server(), json!(0), "private"),
        (server().cache_lists(public), json!(1_500), "public"),
        (server().cache_lists(forever), json!(u64::MAX), "private"),
    ] {
        let mut client = RevisionClient::new(MODERN, server).await;
        for (method, params) in cacheable() {
            let result = client.result(method, params).await;
            assert!(result["ttlMs"].is_u64(), "{method} {result}");
            let scopes = [json!("public"), json!("private")];
            assert!(scopes.contains(&result["cacheScope"]), "{method} {result}");
            if method != "resources/read" {
                assert_eq!(result["ttlMs"], ttl, "{method}");
                assert_eq!(result["cacheScope"], scope, "{method}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn results_in_sessions_have_no_cache_hints() {
    for revision in &EVERY[..5] {
        let hint = CacheHint::public(Duration::from_secs(9));
        let mut client = RevisionClient::new(revision, server().cache_lists(hint)).await;
        for (method, params) in cacheable() {
            if method != "server/discover" {
                let result = client.result(method, params).await;
                assert_eq!(result.get("ttlMs"), None, "{revision} {method}");
                assert_eq!(result.get("cacheScope"), None, "{revision} {method}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_a_list_have_one_scope() {
    req!("caching.scope.same-pages");
    for (hint, scope) in [
        (CacheHint::NONE, "private"),
        (CacheHint::public(Duration::from_secs(9)), "public"),
    ] {
        let server = server().page_size(2).cache_lists(hint);
        let mut client = RevisionClient::new(MODERN, server).await;
        for (method, _) in LISTS {
            for page in pages(&mut client, method).await {
                assert_eq!(page["cacheScope"], scope, "{method}");
            }
        }
    }
}

#[tokio::test]
async fn a_long_list_is_complete_on_every_transport() {
    let server = || {
        (0..200).fold(Server::new("long", "1"), |server, at| {
            server.tool(tool(format!("tool{at:03}")).description("one of many, in a long list"))
        })
    };
    let names = |response: &Value| -> Vec<String> {
        let tools = response["result"]["tools"]
            .as_array()
            .expect("a list")
            .iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let wanted: Vec<_> = (0..200).map(|at| format!("tool{at:03}")).collect();

    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let id = client.request("tools/list", json!({})).await;
        let response = client.peer.next().await;
        assert_eq!(response["id"], id);
        assert_eq!(names(&response), wanted, "{revision}");
    }
    let request = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" });
    let http_response = HttpTestClient::new(server())
        .modern("tools/list", json!({}))
        .await;
    let response = http_response.json().await;
    assert_eq!(names(&response), wanted);
    assert_eq!(response["result"]["resultType"], "complete");
    let caller = HttpTestClient::new(server()).in_session("2025-03-26").await;
    assert_eq!(names(&caller.post(&request).await.json().await), wanted);
    let batch = caller.post(&json!([request])).await.json().await;
    assert_eq!(names(&batch[0]), wanted);
}
