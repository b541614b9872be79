//! End-to-end tests of collections.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnbuckle_server::testing::{Peer, all_combinations};

use super::test_project::{TestProject, call};

#[tokio::test]
async fn a_collection_is_listed_and_deleted_in_every_revision() {
    for edge in all_combinations() {
        let test_project = TestProject::new();
        let mut peer = edge.connect(test_project.server()).await;
        let text = peer.call_tool("collection_list", json!({})).await.text();
        assert_eq!(
            text.lines().next(),
            Some("No data is stored yet."),
            "{edge}"
        );
        let args = json!({ "content": "x", "project_path": test_project.path() });
        peer.call_tool("checkpoint_save", args).await;
        let text = peer.call_tool("collection_list", json!({})).await.text();
        assert!(
            text.contains(&test_project.path()) && text.contains(": 1 point"),
            "{edge}: {text}"
        );
        let name = text
            .split_whitespace()
            .find(|word| word.starts_with("owner_"))
            .unwrap();
        let args = json!({ "collection_name": name });
        let text = peer
            .call_tool("collection_delete", args.clone())
            .await
            .text();
        assert!(text.contains("1 items"), "{edge}: {text}");
        let failure = peer
            .call_tool("collection_delete", args)
            .await
            .expect_tool_error();
        assert!(
            failure.starts_with("not found: collection"),
            "{edge}: {failure}"
        );
    }
}

#[tokio::test]
async fn a_collection_is_created_by_name_and_only_for_its_owner() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let args = json!({ "content": "x", "project_path": test_project.path() });
    call(&mut peer, "checkpoint_save", args).await;
    let listed = call(&mut peer, "collection_list", json!({})).await;
    let name = listed["collections"][0]["name"].as_str().unwrap();
    let other = name.replace("/main", "/feature_x");
    let args = json!({ "collection_name": other, "vector_size": 384 });
    let made = call(&mut peer, "collection_create", args).await;
    assert_eq!(made["collection_name"], other);
    assert_eq!(made["vector_size"], 384);
    let args = json!({ "operation_id": made["operation_id"] });
    assert_eq!(call(&mut peer, "status", args).await["status"], "completed");

    let foreign = "owner_0000000000000000/project_0000000000000000/main";
    for (tool, args) in [
        (
            "collection_create",
            json!({ "collection_name": foreign, "vector_size": 384 }),
        ),
        ("collection_delete", json!({ "collection_name": foreign })),
        (
            "collection_create",
            json!({ "collection_name": other, "vector_size": 0 }),
        ),
    ] {
        peer.call_tool(tool, args).await.expect_tool_error();
    }
}

#[tokio::test]
async fn the_json_of_the_data_is_in_a_text_block_in_every_revision() {
    for edge in all_combinations() {
        let test_project = TestProject::new();
        let mut peer = edge.connect(test_project.server()).await;
        for (tool, data) in [
            ("collection_list", json!({ "collections": [] })),
            ("debug_list_sessions", json!({ "sessions": [] })),
        ] {
            let answer = peer.call_tool(tool, json!({})).await;

            let result = answer.expect_result();
            let blocks = result["content"].as_array().unwrap();
            let copies = blocks.iter().filter(|block| {
                let text = block["text"].as_str().unwrap();
                serde_json::from_str::<Value>(text).is_ok_and(|said| said == data)
            });
            assert_eq!(copies.count(), 1, "{edge}: {result}");
            assert_eq!(blocks.len(), 2, "{edge}: {result}");
        }
        // The text of this result is JSON, which is not sent twice.
        let status = peer.call_tool("debug_log_status", json!({})).await;
        let blocks = status.expect_result()["content"].as_array();
        assert_eq!(blocks.map(Vec::len), Some(1), "{edge}");
    }
}

#[tokio::test]
async fn tool_titles_are_unique() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;

    let listed = peer.request("tools/list", json!({})).await;

    let tools = listed.expect_result()["tools"].as_array().unwrap().clone();
    let titles: BTreeSet<_> = tools
        .iter()
        .map(|tool| tool["title"].as_str().unwrap_or_else(|| panic!("{tool}")))
        .collect();
    assert_eq!(titles.len(), tools.len());
}
