//! End-to-end tests of remediations and skills.

use std::{fs, path::Path};

use serde_json::{Value, json};
use turnbuckle_server::testing::{Peer, all_combinations};

use super::test_project::{TestProject, call};

const ERROR: &str = "error[E0502]: cannot borrow `list` as mutable because it is also borrowed as immutable\n --> src/main.rs:7:5";

#[tokio::test]
async fn a_fix_is_found_by_a_similar_error_in_every_revision() {
    for edge in all_combinations() {
        let test_project = TestProject::new();
        let mut peer = edge.connect(test_project.server()).await;
        let args = json!({
            "error_msg": ERROR,
            "solution": "Clone the element before the push.",
            "project_path": test_project.path(),
            "context": "a loop over a Vec that grows",
        });
        let saved = peer.call_tool("remediation_save", args).await.text();
        assert!(
            saved.starts_with("Saved remediation rem_"),
            "{edge}: {saved}"
        );
        let error = "error[E0502]: cannot borrow `names` as mutable because it is also borrowed as immutable\n --> src/other.rs:99:1";
        let args = json!({ "error_msg": error, "project_path": test_project.path(), "content_mode": "preview" });
        let found = peer.call_tool("remediation_search", args).await.text();
        assert!(found.contains("Fix: Clone the element"), "{edge}: {found}");
        assert!(found.contains("When: a loop over a Vec"), "{edge}: {found}");
    }
}

#[tokio::test]
async fn a_fix_belongs_to_its_project_or_to_all_projects() {
    let (test_project, other) = (TestProject::new(), TestProject::new());
    let mut peer = Peer::connect(test_project.server()).await;
    for (project, solution) in [
        (json!(test_project.path()), "of one"),
        (Value::Null, "of all"),
    ] {
        let args = json!({ "error_msg": ERROR, "solution": solution, "project_path": project });
        call(&mut peer, "remediation_save", args).await;
    }
    let found = async |peer: &mut Peer, project: Value| {
        let args = json!({ "error_msg": ERROR, "project_path": project });
        let found = call(peer, "remediation_search", args).await;
        let hits = found["remediations"].as_array().unwrap().clone();
        let solution = |hit: &Value| hit["remediation"]["solution"].as_str().unwrap().to_owned();
        let mut solutions: Vec<_> = hits.iter().map(solution).collect();
        solutions.sort();
        solutions
    };
    assert_eq!(
        found(&mut peer, json!(test_project.path())).await,
        ["of all", "of one"]
    );
    assert_eq!(found(&mut peer, json!(other.path())).await, ["of all"]);
    assert_eq!(found(&mut peer, Value::Null).await, ["of all"]);
}

#[tokio::test]
async fn a_skill_is_replaced_by_name_and_found_in_every_revision() {
    for edge in all_combinations() {
        let test_project = TestProject::new();
        let mut peer = edge.connect(test_project.server()).await;
        for content in ["Push the tag.", "Push the tag. Then announce it."] {
            let args = json!({
                "name": "Release a version",
                "description": "How to release. Use it when a version is done.",
                "content": content,
                "tags": ["release"],
            });
            let saved = peer.call_tool("skill_save", args).await;
            assert_ne!(
                saved.expect_result()["isError"],
                true,
                "{edge}: {}",
                saved.text()
            );
        }
        let args = json!({ "query": "how do I release?", "content_mode": "full" });
        let found = peer.call_tool("skill_search", args).await.text();
        assert!(found.starts_with("1 skill, best first:"), "{edge}: {found}");
        assert!(found.contains("Then announce it."), "{edge}: {found}");
    }
}

#[tokio::test]
async fn an_empty_result_tells_what_to_do() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let args = json!({ "error_msg": "segmentation fault" });
    let text = peer.call_tool("remediation_search", args).await.text();
    assert!(text.contains("remediation_save"), "{text}");
    let args = json!({ "query": "anything", "project_path": test_project.path() });
    let text = peer.call_tool("checkpoint_search", args).await.text();
    assert!(text.contains("checkpoint_list"), "{text}");
}

#[tokio::test]
async fn health_is_reported_in_every_revision() {
    for edge in all_combinations() {
        let mut peer = edge.connect(TestProject::new().server()).await;
        let text = peer.call_tool("status", json!({})).await.text();
        assert!(text.starts_with("healthy: turnbuckle "), "{edge}: {text}");
    }
}

/// Returns whether any file below a folder contains a text.
fn is_on_disk(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_on_disk(&path, text);
        }
        let bytes = fs::read(path).unwrap();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

#[tokio::test]
async fn a_forgotten_memory_is_deleted_from_the_disk() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let path = test_project.path();
    let (wrong, right) = ("The-parser-is-recursive-descent", "The-parser-is-a-table");
    let mut ids = Vec::new();
    for (tool, args) in [
        (
            "checkpoint_save",
            json!({ "content": wrong, "project_path": path }),
        ),
        (
            "remediation_save",
            json!({ "error_msg": "E1", "solution": wrong, "project_path": path }),
        ),
        (
            "remediation_save",
            json!({ "error_msg": "E2", "solution": wrong }),
        ),
        (
            "skill_save",
            json!({ "name": "parse", "description": "how", "content": wrong }),
        ),
    ] {
        let saved = call(&mut peer, tool, args).await;
        let id = ["checkpoint_id", "remediation_id", "skill_id"].map(|key| saved[key].clone());
        ids.extend(id.into_iter().filter(Value::is_string));
    }
    let args = json!({ "content": right, "project_path": path });
    call(&mut peer, "checkpoint_save", args).await;
    assert!(is_on_disk(test_project.data.path(), wrong));

    for id in &ids {
        let forgotten = call(&mut peer, "memory_forget", json!({ "id": id })).await;
        assert_eq!(forgotten, json!({ "id": id, "traceless": true }));
    }

    assert!(!is_on_disk(test_project.data.path(), wrong));
    assert!(is_on_disk(test_project.data.path(), right));
    let args = json!({ "project_path": path, "content_mode": "full" });
    let listed = call(&mut peer, "checkpoint_list", args).await;
    assert_eq!(listed["checkpoints"].as_array().map(Vec::len), Some(1));
    let again = peer
        .call_tool("memory_forget", json!({ "id": ids[0] }))
        .await;
    let failure = again.expect_tool_error();
    assert!(failure.starts_with("not found: item `ckpt_"), "{failure}");
}
