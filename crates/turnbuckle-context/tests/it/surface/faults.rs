//! Tests of errors and of their messages for models.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};
use turnbuckle_context::{DataDir, Owner, OwnershipPolicy};
use turnbuckle_server::testing::Peer;

use super::test_project::{TestProject, call};

#[tokio::test]
async fn a_damaged_file_is_reported_without_its_path() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let save = json!({ "content": "x", "project_path": test_project.path() });
    call(&mut peer, "checkpoint_save", save.clone()).await;
    drop(peer);
    let folder = test_project.data.path().join(Owner::for_user("ada").id());
    for entry in fs::read_dir(folder).unwrap() {
        fs::write(entry.unwrap().path(), "no database".repeat(1_000)).unwrap();
    }
    let mut peer = Peer::connect(test_project.server()).await;
    for (tool, args) in [
        ("checkpoint_save", save),
        (
            "checkpoint_list",
            json!({ "project_path": test_project.path() }),
        ),
        (
            "repository_search",
            json!({ "query": "x", "project_path": test_project.path() }),
        ),
    ] {
        let failure = peer.call_tool(tool, args).await.expect_tool_error();
        assert!(
            failure.contains("damaged") && failure.contains("tell the user"),
            "{failure}"
        );
        assert!(
            !failure.contains(test_project.data.path().to_str().unwrap()),
            "{failure}"
        );
    }
    // A damaged database does not hide the others.
    peer.request("resources/list", json!({}))
        .await
        .expect_result();
    peer.call_tool("status", json!({})).await.expect_result();
}

/// Makes a database read-only, even for a superuser: SQLite writes no file with a newer write version (byte 18).
fn make_read_only(database: &Path) {
    let mut bytes = fs::read(database).unwrap();
    bytes[18] = 3;
    fs::write(database, bytes).unwrap();
}

#[tokio::test]
async fn an_index_on_a_read_only_disk_is_searched_as_it_is() {
    let test_project = TestProject::new();
    test_project.write("a.rs", "fn weather() {}\n");
    let search = json!({ "query": "weather", "project_path": test_project.path() });
    let mut peer = Peer::connect(test_project.server()).await;
    call(&mut peer, "repository_search", search.clone()).await;
    peer.close().await.unwrap();
    let folder = test_project.data.path().join(Owner::for_user("ada").id());
    for entry in fs::read_dir(folder).unwrap() {
        make_read_only(&entry.unwrap().path());
    }
    test_project.write("b.rs", "fn weather_again() {}\n");

    let mut peer = Peer::connect(test_project.server()).await;
    let found = peer.call_tool("repository_search", search).await;
    let status = json!({ "project_path": test_project.path() });
    let status = peer.call_tool("status", status).await;

    let structured: Value = found.structured();
    assert_eq!(structured["results"][0]["path"], "a.rs");
    assert_eq!(structured["index"]["not_updated"], "not_writable");
    for text in [found.text(), status.text()] {
        let hint = "not updated because the data folder of this server is not writable";
        assert!(text.contains(hint), "{text}");
    }
}

#[tokio::test]
async fn every_tool_rejects_folders_that_are_not_allowed() {
    let (test_project, outside) = (TestProject::new(), TestProject::new());
    let data_dir = DataDir::new(test_project.data.path())
        .restrict_to([test_project.repository.path().to_owned()]);
    let owners = OwnershipPolicy::Single(Owner::for_user("ada"));
    let server = turnbuckle_context::ContextServer::new(data_dir, owners).build();
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
        let failure = peer.call_tool(tool, args).await.expect_tool_error();
        assert!(failure.contains("none of the folders"), "{tool}: {failure}");
    }
    assert_eq!(fs::read_dir(test_project.data.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_search_in_a_large_project_requires_an_index() {
    let test_project = TestProject::new();
    test_project.write("src/lib.rs", "pub fn here() {}\n");
    let owners = OwnershipPolicy::Single(Owner::for_user("ada"));
    let server = test_project
        .builder(owners)
        .first_index_timeout(Duration::ZERO)
        .build();
    let mut peer = Peer::connect(server).await;
    let search = json!({ "query": "here", "project_path": test_project.path() });
    let failure = peer
        .call_tool("repository_search", search.clone())
        .await
        .expect_tool_error();
    assert!(failure.contains("call index_repository first"), "{failure}");
    call(
        &mut peer,
        "index_repository",
        json!({ "path": test_project.path() }),
    )
    .await;
    let found = call(&mut peer, "repository_search", search).await;
    assert_eq!(found["results"][0]["path"], "src/lib.rs");
}

#[tokio::test]
async fn many_concurrent_calls_succeed() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let mut ids = Vec::new();
    for number in 0..60 {
        let arguments =
            json!({ "content": format!("number {number}"), "project_path": test_project.path() });
        let params = json!({ "name": "checkpoint_save", "arguments": arguments });
        ids.push(peer.start("tools/call", params).await);
    }
    for id in ids {
        let answer = peer.finish(id).await;
        assert_ne!(answer.expect_result()["isError"], true, "{}", answer.text());
    }
    let status = call(
        &mut peer,
        "status",
        json!({ "project_path": test_project.path() }),
    )
    .await;
    assert_eq!(status["project"]["items"]["checkpoint"], 60);
}

#[tokio::test]
async fn read_only_tools_create_no_files() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let path = test_project.path();
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
    assert_eq!(fs::read_dir(test_project.data.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn files_above_an_allowed_folder_are_not_read() {
    let test_project = TestProject::new();
    test_project.write("secret.rs", "pub fn hidden_plan() {}\n");
    test_project.write("open/lib.rs", "pub fn open_plan() {}\n");
    let open = test_project.repository.path().join("open");
    let data_dir = DataDir::new(test_project.data.path()).restrict_to([open.clone()]);
    let owners = OwnershipPolicy::Single(Owner::for_user("ada"));
    let server = turnbuckle_context::ContextServer::new(data_dir, owners).build();
    let mut peer = Peer::connect(server).await;
    let args = json!({ "query": "plan", "project_path": open });
    let found = call(&mut peer, "repository_search", args).await;
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["results"][0]["path"], "lib.rs");
}

#[tokio::test]
async fn too_long_and_too_complex_arguments_are_named() {
    let test_project = TestProject::new();
    test_project.write("a.rs", "fn a() {}\n");
    let mut peer = Peer::connect(test_project.server()).await;
    let path = test_project.path();
    let (long, stars) = ("word ".repeat(820), "*a".repeat(33));
    for (tool, args, hint) in [
        (
            "repository_search",
            json!({ "query": long, "project_path": path }),
            "`query` has 4100 bytes; at most 4096 are allowed",
        ),
        (
            "checkpoint_search",
            json!({ "query": long, "project_path": path }),
            "`query` has 4100 bytes",
        ),
        ("skill_search", json!({ "query": long }), "`query` has 4100"),
        (
            "remediation_search",
            json!({ "error_msg": long.repeat(4) }),
            "`error_msg` has 16400 bytes; at most 16384 are allowed",
        ),
        (
            "repository_search",
            json!({ "query": "a", "project_path": path, "path": stars }),
            "`path` has more than 32",
        ),
        (
            "repository_search",
            json!({ "query": "a", "project_path": path, "language": long }),
            "`language` has",
        ),
        (
            "index_repository",
            json!({ "path": path, "include_patterns": [stars] }),
            "more than 32",
        ),
        (
            "index_repository",
            json!({ "path": path, "exclude_patterns": vec!["x".repeat(400); 26] }),
            "10000 bytes together",
        ),
    ] {
        let failure = peer.call_tool(tool, args).await.expect_tool_error();
        assert!(failure.contains(hint), "{hint}: {failure}");
    }
    let args = json!({ "query": &long[..4095], "project_path": path });
    let found = peer.call_tool("repository_search", args).await;
    assert_ne!(found.expect_result()["isError"], true);
}

#[tokio::test]
async fn a_search_over_the_timeout_is_stopped_with_an_error() {
    let test_project = TestProject::new();
    test_project.write("a.rs", "fn weather() {}\n");
    let search = json!({ "query": "weather", "project_path": test_project.path() });
    let mut peer = Peer::connect(test_project.server()).await;
    call(&mut peer, "repository_search", search.clone()).await;
    let one = OwnershipPolicy::Single(Owner::for_user("ada"));
    let hasty = test_project
        .builder(one)
        .call_timeout(Duration::from_nanos(1))
        .build();
    let mut peer = Peer::connect(hasty).await;
    let args = json!({ "query": "weather", "project_path": test_project.path() });
    let failure = peer.call_tool("checkpoint_search", args).await;
    let failure = failure.expect_tool_error();
    assert!(failure.contains("longer than 1ns"), "{failure}");
    let one = OwnershipPolicy::Single(Owner::for_user("ada"));
    let builder = test_project.builder(one);
    let hasty = builder.index_timeout(Duration::from_nanos(1)).build();
    let mut peer = Peer::connect(hasty).await;
    let args = json!({ "path": test_project.path(), "force": true });
    let failure = peer.call_tool("index_repository", args).await;
    let failure = failure.expect_tool_error();
    assert!(failure.contains("longer than 1ns"), "{failure}");
}

#[tokio::test]
async fn an_owner_over_quota_can_read_and_delete_but_not_add() {
    let test_project = TestProject::new();
    test_project.write("a.rs", "fn weather() {}\n");
    let path = test_project.path();
    let one = || OwnershipPolicy::Single(Owner::for_user("ada"));
    let mut peer = Peer::connect(test_project.server()).await;
    call(
        &mut peer,
        "index_repository",
        json!({ "path": test_project.path() }),
    )
    .await;
    let save = |content: String| json!({ "content": content, "project_path": path });
    let kept = call(&mut peer, "checkpoint_save", save("kept".to_owned())).await;
    assert_eq!(kept["is_new"], true);
    // Each text has its own words, which take space in the index.
    for number in 0..20 {
        let words: Vec<_> = (0..2_000).map(|word| format!("w{number}x{word}")).collect();
        call(&mut peer, "checkpoint_save", save(words.join(" "))).await;
    }
    let full = test_project.builder(one()).quota(Some(400_000)).build();
    let mut peer = Peer::connect(full).await;
    for (tool, args) in [
        ("checkpoint_save", save("another".to_owned())),
        ("index_repository", json!({ "path": path })),
        (
            "skill_save",
            json!({ "name": "a", "description": "b", "content": "c" }),
        ),
    ] {
        let failure = peer.call_tool(tool, args).await.expect_tool_error();
        assert!(
            failure.contains("quota on this server is exhausted"),
            "{tool}: {failure}"
        );
        assert!(failure.contains("of 400 kB used"), "{tool}: {failure}");
    }
    let search = json!({ "query": "kept", "project_path": path });
    let found = call(&mut peer, "checkpoint_search", search).await;
    assert_eq!(found["checkpoints"].as_array().unwrap().len(), 1, "{found}");
    test_project.write("b.rs", "fn weather_again() {}\n");
    let search = json!({ "query": "weather", "project_path": path });
    let text = peer.call_tool("repository_search", search).await.text();
    assert!(text.contains("a.rs"), "{text}");
    assert!(
        text.contains("not updated because your quota is exhausted"),
        "{text}"
    );

    let data_dir = DataDir::new(test_project.data.path());
    let databases = || data_dir.project_ids(&Owner::for_user("ada")).unwrap().len();
    let before = databases();
    let elsewhere = tempfile::tempdir().unwrap();
    let search = json!({ "query": "weather", "project_path": elsewhere.path() });
    let failure = peer.call_tool("repository_search", search).await;
    let failure = failure.expect_tool_error();
    assert!(
        failure.contains("quota on this server is exhausted"),
        "{failure}"
    );
    assert_eq!(databases(), before, "a search made a database");

    let listed = call(&mut peer, "collection_list", json!({})).await;
    let name = listed["collections"][0]["name"].clone();
    let args = json!({ "collection_name": name });
    call(&mut peer, "collection_delete", args).await;
    // The file has the same size, but free pages.
    call(&mut peer, "checkpoint_save", save("another".to_owned())).await;
}
