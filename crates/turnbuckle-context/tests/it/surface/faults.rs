//! What goes wrong, and what a model is told of it.

use std::fs;
use std::time::Duration;

use serde_json::json;
use turnbuckle_context::{Library, Owner, Owners};
use turnbuckle_server::testing::Peer;

use super::place::{Place, call};

#[tokio::test]
async fn a_damaged_file_is_told_without_its_path() {
    let place = Place::new();
    let mut peer = Peer::connect(place.server()).await;
    let save = json!({ "content": "x", "project_path": place.path() });
    call(&mut peer, "checkpoint_save", save.clone()).await;
    drop(peer);
    let folder = place.data.path().join(Owner::user("ada").id());
    for entry in fs::read_dir(folder).unwrap() {
        fs::write(entry.unwrap().path(), "no database".repeat(1_000)).unwrap();
    }
    let mut peer = Peer::connect(place.server()).await;
    for (tool, args) in [
        ("checkpoint_save", save),
        ("checkpoint_list", json!({ "project_path": place.path() })),
        (
            "repository_search",
            json!({ "query": "x", "project_path": place.path() }),
        ),
    ] {
        let failure = peer.call_tool(tool, args).await.expect_failure();
        assert!(
            failure.contains("damaged") && failure.contains("tell the user"),
            "{failure}"
        );
        assert!(
            !failure.contains(place.data.path().to_str().unwrap()),
            "{failure}"
        );
    }
    // One that is broken keeps nobody from seeing the rest.
    peer.request("resources/list", json!({}))
        .await
        .expect_result();
    peer.call_tool("status", json!({})).await.expect_result();
}

#[tokio::test]
async fn folders_that_are_not_allowed_are_refused_by_every_tool() {
    let (place, outside) = (Place::new(), Place::new());
    let library = Library::new(place.data.path()).within([place.repository.path().to_owned()]);
    let owners = Owners::One(Owner::user("ada"));
    let server = turnbuckle_context::ContextServer::new(library, owners).build();
    let mut peer = Peer::connect(server).await;
    let path = outside.path();
    for (tool, args) in [
        (
            "checkpoint_save",
            json!({ "content": "x", "project_path": path }),
        ),
        (
            "checkpoint_search",
            json!({ "query": "x", "project_path": path }),
        ),
        ("checkpoint_list", json!({ "project_path": path })),
        (
            "remediation_save",
            json!({ "error_msg": "x", "solution": "y", "project_path": path }),
        ),
        (
            "remediation_search",
            json!({ "error_msg": "x", "project_path": path }),
        ),
        ("index_repository", json!({ "path": path })),
        (
            "repository_search",
            json!({ "query": "x", "project_path": path }),
        ),
        ("status", json!({ "project_path": path })),
    ] {
        let failure = peer.call_tool(tool, args).await.expect_failure();
        assert!(failure.contains("none of the folders"), "{tool}: {failure}");
    }
    assert_eq!(fs::read_dir(place.data.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_project_that_is_too_large_for_a_search_is_to_be_indexed_first() {
    let place = Place::new();
    place.write("src/lib.rs", "pub fn here() {}\n");
    let owners = Owners::One(Owner::user("ada"));
    let server = place.builder(owners).first_index(Duration::ZERO).build();
    let mut peer = Peer::connect(server).await;
    let search = json!({ "query": "here", "project_path": place.path() });
    let failure = peer
        .call_tool("repository_search", search.clone())
        .await
        .expect_failure();
    assert!(failure.contains("call index_repository first"), "{failure}");
    call(
        &mut peer,
        "index_repository",
        json!({ "path": place.path() }),
    )
    .await;
    let found = call(&mut peer, "repository_search", search).await;
    assert_eq!(found["results"][0]["path"], "src/lib.rs");
}

#[tokio::test]
async fn a_flood_of_calls_is_answered() {
    let place = Place::new();
    let mut peer = Peer::connect(place.server()).await;
    let mut ids = Vec::new();
    for number in 0..60 {
        let arguments =
            json!({ "content": format!("number {number}"), "project_path": place.path() });
        let params = json!({ "name": "checkpoint_save", "arguments": arguments });
        ids.push(peer.start("tools/call", params).await);
    }
    for id in ids {
        let answer = peer.finish(id).await;
        assert_ne!(answer.expect_result()["isError"], true, "{}", answer.text());
    }
    let status = call(&mut peer, "status", json!({ "project_path": place.path() })).await;
    assert_eq!(status["project"]["items"]["checkpoint"], 60);
}

#[tokio::test]
async fn who_only_looks_makes_no_files() {
    let place = Place::new();
    let mut peer = Peer::connect(place.server()).await;
    let path = place.path();
    for (tool, args) in [
        (
            "checkpoint_search",
            json!({ "query": "x", "project_path": path }),
        ),
        ("checkpoint_list", json!({ "project_path": path })),
        (
            "remediation_search",
            json!({ "error_msg": "x", "project_path": path }),
        ),
        ("skill_search", json!({ "query": "x" })),
        ("collection_list", json!({})),
        ("status", json!({ "project_path": path })),
    ] {
        call(&mut peer, tool, args).await;
    }
    for method in ["resources/list", "skills/list", "prompts/list"] {
        peer.request(method, json!({})).await.expect_result();
    }
    let params = json!({ "name": "resume_work", "arguments": { "project_path": path } });
    peer.request("prompts/get", params).await.expect_result();
    assert_eq!(fs::read_dir(place.data.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_above_an_allowed_folder_is_not_read() {
    let place = Place::new();
    place.write("secret.rs", "pub fn hidden_plan() {}\n");
    place.write("open/lib.rs", "pub fn open_plan() {}\n");
    let open = place.repository.path().join("open");
    let library = Library::new(place.data.path()).within([open.clone()]);
    let owners = Owners::One(Owner::user("ada"));
    let server = turnbuckle_context::ContextServer::new(library, owners).build();
    let mut peer = Peer::connect(server).await;
    let args = json!({ "query": "plan", "project_path": open });
    let found = call(&mut peer, "repository_search", args).await;
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["results"][0]["path"], "lib.rs");
}
