//! Visibility: hidden items do not exist for a caller, in any method.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    CacheHint, Context, Prompt, Resource, ResourceTemplate, Server, Tool, ndjson::NdjsonServer,
};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::HttpTestClient,
    ndjson::test_client::{Peer, modern},
};

fn tool(name: &str) -> Tool {
    Tool::new(name, async || Ok("done".to_owned()))
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, async || Ok("Do it.")).complete("how", ["fast", "slow"])
}

fn template(uri: &str) -> ResourceTemplate {
    ResourceTemplate::new(
        uri,
        "template",
        async |_: BTreeMap<String, String>, _: Context| Ok("described"),
    )
    .complete("name", ["a", "b"])
}

fn is_admin(principal: Option<&Principal>) -> bool {
    principal.is_some_and(|who| who.scopes.contains("admin"))
}

fn admin() -> Principal {
    let mut admin = Principal::new("https://issuer.example", "ada");
    admin.scopes.insert("admin".to_owned());
    admin
}

fn guest() -> Principal {
    Principal::new("https://issuer.example", "bob")
}

/// A public item and an item for admins, of each kind.
fn server() -> Server {
    let minute = Duration::from_secs(60);
    Server::new("visibility", "1")
        .cache_lists(CacheHint::public(minute))
        .tool(tool("open"))
        .tool(tool("secret").visible_to(is_admin))
        .prompt(prompt("open"))
        .prompt(prompt("secret").visible_to(is_admin))
        .resource(Resource::text("open://a", "a", "text").cache(CacheHint::public(minute)))
        .resource(
            Resource::text("secret://a", "a", "text")
                .cache(CacheHint::public(minute))
                .visible_to(is_admin),
        )
        .template(template("open-template://{name}"))
        .template(template("secret-template://{name}").visible_to(is_admin))
}

fn peer(principal: Option<Principal>) -> Peer {
    peer_of(server(), principal)
}

fn peer_of(server: Server, principal: Option<Principal>) -> Peer {
    let lines = NdjsonServer::new(server);
    Peer::with(match principal {
        Some(principal) => lines.principal(principal),
        None => lines,
    })
}

/// Requests by name or URI, in pairs: for a hidden item, and for a missing one.
fn ways() -> [(&'static str, Value, Value); 5] {
    [
        (
            "tools/call",
            json!({ "name": "secret" }),
            json!({ "name": "absent" }),
        ),
        (
            "prompts/get",
            json!({ "name": "secret" }),
            json!({ "name": "absent" }),
        ),
        (
            "resources/read",
            json!({ "uri": "secret://a" }),
            json!({ "uri": "absent://a" }),
        ),
        (
            "resources/read",
            json!({ "uri": "secret-template://a" }),
            json!({ "uri": "absent-template://a" }),
        ),
        (
            "resources/subscribe",
            json!({ "uri": "secret://a" }),
            json!({ "uri": "absent://a" }),
        ),
    ]
}

fn completions() -> [(Value, Value); 2] {
    let prompt = |name: &str| {
        json!({
            "ref": { "type": "ref/prompt", "name": name },
            "argument": { "name": "how", "value": "f" },
        })
    };
    let resource = |uri: &str| {
        json!({
            "ref": { "type": "ref/resource", "uri": uri },
            "argument": { "name": "name", "value": "a" },
        })
    };
    [
        (prompt("secret"), prompt("absent")),
        (
            resource("secret-template://{name}"),
            resource("absent-template://{name}"),
        ),
    ]
}

/// The names or URIs in the four lists.
async fn lists(peer: &mut Peer, wrap: fn(Value) -> Value) -> Vec<Vec<String>> {
    let mut lists = Vec::new();
    for (method, member, key) in [
        ("tools/list", "tools", "name"),
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
        (
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
        ),
    ] {
        let response = peer.call(method, wrap(json!({}))).await;
        let items = response["result"][member].as_array().unwrap();
        let key = |item: &Value| item[key].as_str().unwrap().to_owned();
        lists.push(items.iter().map(key).collect());
    }
    lists
}

/// Returns an error message without the requested name.
fn error(response: &Value) -> String {
    let error = &response["error"];
    assert!(error.is_object(), "{response}");
    error.to_string().replace("secret", "absent")
}

#[tokio::test(start_paused = true)]
async fn lists_omit_hidden_items_in_both_eras() {
    req!(
        "tools.list.by-authorization",
        "resources.list.by-authorization",
        "prompts.list.by-authorization"
    );
    let open = [
        vec!["open"],
        vec!["open"],
        vec!["open://a"],
        vec!["open-template://{name}"],
    ];
    let all = [
        vec!["open", "secret"],
        vec!["open", "secret"],
        vec!["open://a", "secret://a"],
        vec!["open-template://{name}", "secret-template://{name}"],
    ];
    let server = server();

    for (principal, seen) in [
        (None, &open),
        (Some(guest()), &open),
        (Some(admin()), &all),
        (Some(guest()), &open),
    ] {
        let mut peer = peer_of(server.clone(), principal);
        assert_eq!(lists(&mut peer, modern).await, *seen);
        peer.initialize_session("2025-06-18", json!({})).await;
        assert_eq!(lists(&mut peer, |params| params).await, *seen);
    }
}

#[tokio::test(start_paused = true)]
async fn hidden_items_are_answered_like_missing_ones() {
    req!("caching.scope.access-control", "caching.scope.not-security");
    let mut guest = peer(Some(guest()));
    guest.initialize_session("2025-11-25", json!({})).await;

    for (method, hidden, absent) in ways() {
        let legacy = (
            guest.call(method, hidden.clone()).await,
            guest.call(method, absent.clone()).await,
        );
        assert_eq!(error(&legacy.0), error(&legacy.1), "{method}");
        if method != "resources/subscribe" {
            let modern = (
                guest.call_modern(method, hidden).await,
                guest.call_modern(method, absent).await,
            );
            assert_eq!(error(&modern.0), error(&modern.1), "{method}");
        }
    }
    for (hidden, absent) in completions() {
        let hidden = guest.call("completion/complete", hidden).await;
        let absent = guest.call("completion/complete", absent).await;
        assert_eq!(error(&hidden), error(&absent));
    }
}

#[tokio::test(start_paused = true)]
async fn a_permitted_caller_reaches_an_item_by_every_method() {
    let mut admin = peer(Some(admin()));
    admin.initialize_session("2025-11-25", json!({})).await;

    for (method, params, _) in ways() {
        let response = admin.call(method, params).await;
        assert!(response["result"].is_object(), "{method}: {response}");
    }
    for (params, _) in completions() {
        let response = admin.call("completion/complete", params).await;
        assert_eq!(response["result"]["completion"]["values"][1], Value::Null);
        assert!(response["result"]["completion"]["values"][0].is_string());
    }
}

#[tokio::test]
async fn on_http_the_principal_of_each_request_decides() {
    let mut caller = HttpTestClient::new(server());
    for (principal, found) in [(Some(admin()), true), (Some(guest()), false), (None, false)] {
        caller.principal = principal;

        let called = caller.modern_tool("secret", json!({})).await.json().await;
        let listed = caller.modern("tools/list", json!({})).await.json().await;

        assert_eq!(called.get("result").is_some(), found, "{called}");
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 1 + usize::from(found));
    }
}

#[tokio::test]
async fn lists_that_depend_on_the_caller_are_private() {
    let mut caller = HttpTestClient::new(server().tool(tool("third")));
    caller.principal = Some(admin());

    for (method, params, scope) in [
        ("tools/list", json!({}), "private"),
        ("resources/read", json!({ "uri": "open://a" }), "public"),
        ("resources/read", json!({ "uri": "secret://a" }), "private"),
    ] {
        let response = caller.modern(method, params).await.json().await;
        assert_eq!(response["result"]["cacheScope"], scope, "{method}");
        assert_eq!(response["result"]["ttlMs"], 60_000);
    }
    let open = Server::new("open", "1")
        .cache_lists(CacheHint::public(Duration::from_secs(60)))
        .tool(tool("open"));
    let response = HttpTestClient::new(open)
        .modern("tools/list", json!({}))
        .await;
    assert_eq!(response.json().await["result"]["cacheScope"], "public");
}

#[tokio::test(start_paused = true)]
async fn a_list_with_only_hidden_items_is_empty() {
    let server = Server::new("hidden", "1").tool(tool("secret").visible_to(is_admin));
    let mut peer = Peer::new(server);

    let response = peer.call_modern("tools/list", json!({})).await;

    assert_eq!(response["result"]["tools"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn updates_of_hidden_resources_are_sent_only_to_permitted_callers() {
    let server = server().resource(Resource::text("secret://dir", "dir", "").visible_to(is_admin));
    let watched = json!(["open://a", "secret://a", "secret://dir"]);
    for (principal, received) in [
        (guest(), vec!["open://a"]),
        (
            admin(),
            vec!["secret://a", "secret://dir/below", "open://a"],
        ),
    ] {
        let mut listener = peer_of(server.clone(), Some(principal));
        let params = modern(json!({ "notifications": { "resourceSubscriptions": watched } }));
        listener.request("subscriptions/listen", params).await;
        let acknowledged = listener.next().await;
        assert_eq!(
            acknowledged["params"]["notifications"]["resourceSubscriptions"],
            watched
        );

        for uri in ["secret://a", "secret://dir/below", "open://a"] {
            server.resource_updated(uri);
        }

        for uri in received {
            assert_eq!(listener.next().await["params"]["uri"], uri);
        }
        listener.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_gets_no_notifications_of_hidden_resources() {
    let server = server();
    let mut guest = peer_of(server.clone(), Some(guest()));
    guest.initialize_session("2025-11-25", json!({})).await;
    guest
        .call("resources/subscribe", json!({ "uri": "open://a" }))
        .await;

    server.resource_updated("open://a");
    assert_eq!(
        guest.next().await["method"],
        "notifications/resources/updated"
    );
    server.add_resource(Resource::text("open://a", "a", "text").visible_to(is_admin));
    assert_eq!(
        guest.next().await["method"],
        "notifications/resources/list_changed"
    );
    server.resource_updated("open://a");

    guest.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_visible_still_describes_a_hidden_resource() {
    let server = Server::new("both", "1")
        .resource(Resource::text("notes://a", "a", "exact").visible_to(is_admin))
        .template(template("notes://{name}"));
    let mut guest = peer_of(server, Some(guest()));

    let response = guest
        .call_modern("resources/read", json!({ "uri": "notes://a" }))
        .await;

    assert_eq!(response["result"]["contents"][0]["text"], "described");
}

#[tokio::test(start_paused = true)]
async fn pages_contain_each_visible_item_once() {
    let server = numbered(7);
    let mut admin = peer_of(server.clone(), Some(admin()));
    let mut guest = peer_of(server, Some(guest()));

    assert_eq!(pages(&mut admin).await, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(pages(&mut guest).await, [0, 2, 4, 6]);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_another_caller_continues_with_the_visible_items() {
    let server = numbered(7);
    let mut admin = peer_of(server.clone(), Some(admin()));
    let mut guest = peer_of(server.clone(), Some(guest()));
    let admins = admin.call_modern("tools/list", json!({})).await["result"]["nextCursor"].clone();
    let guests = guest.call_modern("tools/list", json!({})).await["result"]["nextCursor"].clone();

    let after_one = page(&mut guest, &admins).await;
    let after_two = page(&mut admin, &guests).await;
    server.remove_tool("tool1");
    server.remove_tool("tool2");
    let after_removed_one = page(&mut guest, &admins).await;

    assert_eq!(after_one, [2, 4]);
    assert_eq!(after_two, [3, 4]);
    // After a removal the position is estimated; nothing is invented and nothing fails.
    assert_eq!(after_removed_one, [4, 6]);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_predicate_hides_the_item() {
    let broken = tool("broken").visible_to(|_| panic!("no idea"));
    let server = Server::new("panics", "1").tool(tool("open")).tool(broken);
    let mut peer = Peer::new(server);

    let listed = peer.call_modern("tools/list", json!({})).await;
    let called = peer
        .call_modern("tools/call", json!({ "name": "broken" }))
        .await;

    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(called["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn two_predicates_must_agree() {
    let narrowed = tool("narrowed")
        .visible_to(|principal| principal.is_some())
        .visible_to(is_admin);
    let server = Server::new("narrowed", "1").tool(narrowed);
    for (principal, found) in [(None, 0), (Some(guest()), 0), (Some(admin()), 1)] {
        let mut peer = peer_of(server.clone(), principal);

        let listed = peer.call_modern("tools/list", json!({})).await;

        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), found);
    }
}

#[tokio::test(start_paused = true)]
async fn every_caller_gets_its_own_list() {
    let server = (0..60).fold(Server::new("many", "1"), |server, at| {
        let subject = at.to_string();
        server.tool(
            tool(&format!("tool{at}"))
                .visible_to(move |principal| principal.is_some_and(|who| who.subject == subject)),
        )
    });
    let mut caller = HttpTestClient::new(server);

    for at in (0..60).chain(0..60) {
        caller.principal = Some(Principal::new("https://issuer.example", at.to_string()));
        let response = caller.modern("tools/list", json!({})).await.json().await;
        let tools = response["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 1);
        assert_eq!(tools[0]["name"], format!("tool{at}"));
    }
}

/// Numbered tools in pages of two, the odd ones hidden.
fn numbered(count: usize) -> Server {
    (0..count).fold(Server::new("pages", "1").page_size(2), |server, at| {
        let tool = tool(&format!("tool{at}"));
        server.tool(if at % 2 == 0 {
            tool
        } else {
            tool.visible_to(is_admin)
        })
    })
}

fn numbers(response: &Value) -> Vec<usize> {
    let tools = response["result"]["tools"].as_array().expect("a page");
    let number = |tool: &Value| {
        let name = tool["name"].as_str().unwrap();
        name.trim_start_matches("tool").parse().unwrap()
    };
    tools.iter().map(number).collect()
}

async fn page(peer: &mut Peer, cursor: &Value) -> Vec<usize> {
    numbers(
        &peer
            .call_modern("tools/list", json!({ "cursor": cursor }))
            .await,
    )
}

async fn pages(peer: &mut Peer) -> Vec<usize> {
    let mut all = Vec::new();
    let mut params = json!({});
    loop {
        let response = peer.call_modern("tools/list", params).await;
        all.extend(numbers(&response));
        match response["result"].get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return all,
        }
    }
}

/// Selects the view of the tests.
#[derive(Clone)]
struct ShortList;

#[tokio::test]
async fn a_view_changes_the_list_and_not_the_calls() {
    let server = server().tool_view(
        |attached| attached.get::<ShortList>().is_some(),
        |tool| {
            tool.description = Some("short".to_owned());
            tool.name == "secret"
        },
    );
    let names = |listed: &Value| {
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| format!("{} {}", tool["name"], tool["description"]))
            .collect::<Vec<_>>()
    };
    let all = peer_of(server.clone(), Some(admin()))
        .call_modern("tools/list", json!({}))
        .await;
    assert_eq!(names(&all), ["\"open\" null", "\"secret\" null"]);

    let lines = NdjsonServer::new(server.clone()).extension(ShortList);
    let mut peer = Peer::with(lines.principal(admin()));
    let short = peer.call_modern("tools/list", json!({})).await;
    assert_eq!(names(&short), ["\"secret\" \"short\""]);
    let called = peer
        .call_modern("tools/call", json!({ "name": "open" }))
        .await;
    assert_eq!(called["result"]["content"][0]["text"], "done");

    // A view does not show what is hidden from the caller.
    let mut other = Peer::with(NdjsonServer::new(server).extension(ShortList));
    let hidden = other.call_modern("tools/list", json!({})).await;
    assert_eq!(names(&hidden), [""; 0]);
}

#[tokio::test]
async fn a_panic_of_a_view_is_an_internal_error() {
    let server = server().tool_view(|_| panic!("broken view"), |_| true);
    let mut peer = peer_of(server, None);

    let listed = peer.call_modern("tools/list", json!({})).await;

    assert_eq!(listed["error"]["code"], -32603, "{listed}");
}
