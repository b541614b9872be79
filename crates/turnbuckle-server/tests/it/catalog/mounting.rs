//! Mounted servers.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::{Value, json};
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Context, MountError, Prompt, Resource, Server, TaskSupport, Tool, ndjson::NdjsonServer,
};
use turnbuckle_store::Store;

use crate::{
    http::test_client::HttpTestClient,
    ndjson::test_client::{Peer, modern, modern_with},
};

/// A tool that returns the name of its server.
fn tool(name: &str) -> Tool {
    Tool::new(name, async |cx: Context| {
        Ok(format!("on {}", cx.server().name()))
    })
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, async || Ok("Look it up.")).complete("what", ["a", "b"])
}

fn notes() -> Server {
    Server::new("notes", "1")
        .tool(tool("search"))
        .prompt(prompt("review"))
        .resource(Resource::text("notes://a", "a", "of notes"))
}

fn desk() -> Server {
    Server::new("desk", "1").tool(tool("clock"))
}

async fn names(peer: &mut Peer, list: &str) -> Vec<String> {
    let response = peer.call(&format!("{list}/list"), modern(json!({}))).await;
    let items = response["result"][list].as_array().unwrap();
    let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
    items.iter().map(name).collect()
}

async fn tools_of(server: &Server) -> Vec<String> {
    names(&mut Peer::new(server.clone()), "tools").await
}

/// A session that receives change notifications.
async fn session(server: &Server) -> Peer {
    let mut peer = Peer::initialized(server.clone(), "2025-11-25", json!({})).await;
    peer.call("ping", json!({})).await;
    peer
}

#[tokio::test(start_paused = true)]
async fn a_list_emptied_by_a_mount_is_still_advertised() {
    let desk = Server::new("desk", "1");
    let notes = Server::new("notes", "1").tool(tool("search").task(TaskSupport::Optional));
    desk.add_mount("notes", notes.clone()).unwrap();
    assert_eq!(tools_of(&desk).await, ["notes_search"]);

    notes.remove_tool("search");
    assert!(tools_of(&desk).await.is_empty());
    desk.remove_mount("notes");

    assert!(tools_of(&desk).await.is_empty());
    // Running tasks can still be queried.
    let mut peer = Peer::new(desk);
    let declared = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let params = modern_with(json!({ "taskId": "unknown" }), declared);
    assert_eq!(
        peer.call("tasks/get", params).await["error"]["code"],
        -32602
    );
}

#[tokio::test(start_paused = true)]
async fn tools_and_prompts_get_the_prefix_and_resources_keep_their_uri() {
    let server = desk().mount("notes", notes());
    let mut peer = session(&server).await;

    assert_eq!(names(&mut peer, "tools").await, ["clock", "notes_search"]);
    assert_eq!(names(&mut peer, "prompts").await, ["notes_review"]);
    let called = peer.call_tool("notes_search", json!({})).await;
    let prompted = peer
        .call("prompts/get", json!({ "name": "notes_review" }))
        .await;
    let completed = peer
        .call(
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": "notes_review" },
                "argument": { "name": "what", "value": "a" },
            }),
        )
        .await;
    let read = peer
        .call("resources/read", json!({ "uri": "notes://a" }))
        .await;
    let unprefixed = peer.call_tool("search", json!({})).await;

    assert_eq!(called["result"]["content"][0]["text"], "on desk");
    assert!(prompted["result"]["messages"][0].is_object());
    assert_eq!(completed["result"]["completion"]["values"], json!(["a"]));
    assert_eq!(read["result"]["contents"][0]["text"], "of notes");
    assert_eq!(unprefixed["error"]["code"], -32602);
}

#[tokio::test]
async fn a_mounted_tool_is_called_over_http_in_both_eras() {
    let caller = HttpTestClient::new(Server::new("desk", "1").mount("notes", notes()));

    let modern = caller.modern_tool("notes_search", json!({})).await;
    let session = caller.in_session("2025-06-18").await;
    let legacy = session.tool(1, "notes_search", json!({})).await;

    for http_response in [modern, legacy] {
        let response = http_response.json().await;
        assert_eq!(response["result"]["content"][0]["text"], "on desk");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_a_mounted_server_are_visible_and_announced() {
    let inner = notes();
    let middle = Server::new("middle", "1").mount("notes", inner.clone());
    let outer = desk().mount("middle", middle);
    let mut peer = session(&outer).await;

    inner.add_tool(tool("write"));
    assert_eq!(
        peer.next().await["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(
        names(&mut peer, "tools").await,
        ["clock", "middle_notes_search", "middle_notes_write"]
    );
    assert!(inner.remove_tool("search"));
    peer.next().await;
    assert_eq!(
        names(&mut peer, "tools").await,
        ["clock", "middle_notes_write"]
    );
    assert!(inner.remove_prompt("review"));
    assert_eq!(
        peer.next().await["method"],
        "notifications/prompts/list_changed"
    );
    inner.add_resource(Resource::text("notes://b", "b", ""));
    assert_eq!(
        peer.next().await["method"],
        "notifications/resources/list_changed"
    );
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn updates_of_a_mounted_server_reach_subscribers_of_its_parent() {
    let inner = notes();
    let outer = desk().mount("notes", inner.clone());
    let mut peer = Peer::new(outer);
    let filter = json!({ "notifications": { "resourceSubscriptions": ["notes://a"] } });
    peer.request("subscriptions/listen", modern(filter)).await;
    peer.next().await;

    inner.resource_updated("notes://a");

    assert_eq!(peer.next().await["params"]["uri"], "notes://a");
}

#[tokio::test(start_paused = true)]
async fn servers_that_share_a_bus_announce_a_change_once() {
    let store = Store::memory();
    let inner = notes().store(store.clone());
    let outer = desk().mount("notes", inner.clone()).store(store);
    let mut peer = session(&outer).await;

    inner.tools_changed();

    peer.next().await;
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_is_mounted_and_unmounted_at_runtime() {
    let outer = desk();
    let mut peer = session(&outer).await;

    assert_eq!(outer.add_mount("notes", notes()), Ok(()));
    for list in ["tools", "prompts", "resources"] {
        let received = peer.next().await;
        assert_eq!(
            received["method"],
            format!("notifications/{list}/list_changed")
        );
    }
    assert_eq!(names(&mut peer, "tools").await, ["clock", "notes_search"]);
    assert!(outer.remove_mount("notes"));
    for _ in 0..3 {
        peer.next().await;
    }
    assert_eq!(names(&mut peer, "tools").await, ["clock"]);
    assert!(!outer.remove_mount("notes"));
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn an_unmounted_server_sends_no_more_changes_to_its_parent() {
    let inner = notes();
    let outer = desk()
        .mount("one", inner.clone())
        .mount("two", inner.clone());
    let mut peer = session(&outer).await;

    assert!(outer.remove_mount("one"));
    for _ in 0..3 {
        peer.next().await;
    }
    inner.add_tool(tool("write"));
    peer.next().await;
    assert_eq!(
        names(&mut peer, "tools").await,
        ["clock", "two_search", "two_write"]
    );
    assert!(outer.remove_mount("two"));
    for _ in 0..3 {
        peer.next().await;
    }
    inner.remove_tool("write");

    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_with_the_same_prefix_is_replaced() {
    let (first, second) = (notes(), Server::new("other", "1").tool(tool("find")));
    let outer = Server::new("desk", "1").mount("notes", first.clone());
    assert_eq!(outer.add_mount("notes", second), Ok(()));
    let mut peer = session(&outer).await;

    first.add_tool(tool("write"));

    peer.expect_no_message().await;
    assert_eq!(tools_of(&outer).await, ["notes_find"]);
}

#[tokio::test(start_paused = true)]
async fn items_of_the_parent_server_take_precedence_over_mounted_ones() {
    let outer = Server::new("desk", "1")
        .mount("notes", notes())
        .resource(Resource::text("notes://a", "a", "of desk"));
    let mut peer = Peer::new(outer.clone());
    let read = modern(json!({ "uri": "notes://a" }));

    let own = peer.call("resources/read", read.clone()).await;
    outer.remove_resource("notes://a");
    let mounted = peer.call("resources/read", read).await;

    assert_eq!(own["result"]["contents"][0]["text"], "of desk");
    assert_eq!(mounted["result"]["contents"][0]["text"], "of notes");
}

#[tokio::test(start_paused = true)]
async fn of_two_mounts_the_first_wins() {
    let shadowed =
        Server::new("shadowed", "1").resource(Resource::text("notes://a", "a", "second"));
    let server = desk().mount("notes", notes()).mount("shadowed", shadowed);
    let mut peer = Peer::new(server);

    let read = peer
        .call_modern("resources/read", json!({ "uri": "notes://a" }))
        .await;

    assert_eq!(read["result"]["contents"][0]["text"], "of notes");
}

#[tokio::test(start_paused = true)]
async fn the_builder_continues_after_a_mount_and_clones_are_independent() {
    let inner = notes();
    let outer = Server::new("desk", "1").mount("notes", inner.clone());
    let copy = outer.clone().tool(tool("clock")).page_size(50);

    inner.add_tool(tool("write"));

    assert_eq!(tools_of(&outer).await, ["notes_search", "notes_write"]);
    assert_eq!(
        tools_of(&copy).await,
        ["clock", "notes_search", "notes_write"]
    );
    // Changes of a clone do not affect the mounted server.
    let built = inner.clone().tool(tool("third"));
    assert_eq!(tools_of(&built).await, ["search", "write", "third"]);
    assert_eq!(tools_of(&outer).await, ["notes_search", "notes_write"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_mounted_in_its_copy_is_not_a_cycle() {
    let desk = desk();
    let twice = desk.clone().mount("again", desk.clone());

    desk.add_tool(tool("lamp"));

    assert_eq!(
        tools_of(&twice).await,
        ["clock", "again_clock", "again_lamp"]
    );
}

#[test]
fn a_mount_cycle_is_rejected() {
    let (one, two, three) = (desk(), notes(), desk());
    two.add_mount("three", three.clone()).unwrap();
    one.add_mount("two", two).unwrap();

    assert_eq!(one.add_mount("one", one.clone()), Err(MountError::Cycle));
    assert_eq!(three.add_mount("one", one.clone()), Err(MountError::Cycle));
    three.add_tool(tool("lamp"));
    // Mounting the same server twice is not a cycle.
    assert_eq!(one.add_mount("three", three), Ok(()));
}

#[test]
fn of_two_servers_mounted_into_each_other_at_once_one_is_refused() {
    for _ in 0..50 {
        let (one, two) = (desk(), notes());

        let refused = std::thread::scope(|scope| {
            let first = scope.spawn(|| one.add_mount("two", two.clone()));
            let second = scope.spawn(|| two.add_mount("one", one.clone()));
            [first.join().unwrap(), second.join().unwrap()]
        });

        let refused = refused.iter().filter(|mounted| mounted.is_err()).count();
        assert_eq!(refused, 1);
        one.add_tool(tool("lamp"));
        two.add_tool(tool("lamp"));
    }
}

#[tokio::test(start_paused = true)]
async fn names_stay_names_behind_a_prefix() {
    let long = "x".repeat(123);
    let server = notes().tool(tool(&long));
    let panics = |prefix: &'static str| {
        let mount = AssertUnwindSafe(|| desk().mount(prefix, server.clone()));
        let panic = catch_unwind(mount).expect_err("a panic");
        panic.downcast_ref::<String>().unwrap().clone()
    };

    assert!(panics("").contains("is not a valid prefix"));
    assert!(panics("a b").contains("`a b` is not a valid prefix"));
    assert!(panics("notes").contains("is too long for a tool"));
    assert_eq!(desk().add_mount("note", server.clone()), Ok(()));
    assert!(matches!(
        desk().add_mount("notes", server),
        Err(MountError::TooLong { name }) if name.len() == 129
    ));

    let later = notes();
    let outer = desk().mount("notes", later.clone());
    later.add_tool(tool(&long));
    later.add_tool(tool("write"));
    assert_eq!(
        tools_of(&outer).await,
        ["clock", "notes_search", "notes_write"]
    );
}

#[tokio::test(start_paused = true)]
async fn hidden_items_stay_hidden_in_a_mount() {
    let hidden = tool("secret").visible_to(|principal| principal.is_some());
    let server = desk().mount("notes", Server::new("notes", "1").tool(hidden));
    let known = NdjsonServer::new(server.clone()).principal(Principal::new("issuer", "ada"));

    assert_eq!(tools_of(&server).await, ["clock"]);
    assert_eq!(
        names(&mut Peer::with(known), "tools").await,
        ["clock", "notes_secret"]
    );
}

#[test]
fn mounts_do_not_keep_servers_alive() {
    let alive = Arc::new(());
    let holding = |name: &str| {
        let alive = alive.clone();
        let tool = Tool::new("hold", move || {
            let alive = alive.clone();
            async move {
                drop(alive);
                Ok(())
            }
        });
        Server::new(name, "1").tool(tool)
    };

    let inner = notes();
    drop(holding("outer").mount("inner", inner.clone()));
    assert_eq!(Arc::strong_count(&alive), 1, "the outer server is gone");

    let outer = desk().mount("inner", holding("inner"));
    assert!(Arc::strong_count(&alive) > 1);
    outer.remove_mount("inner");
    assert_eq!(Arc::strong_count(&alive), 1, "the inner server is gone");
    inner.add_tool(tool("write"));
}
