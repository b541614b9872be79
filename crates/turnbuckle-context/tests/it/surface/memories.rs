//! Remediations and skills, from end to end.

use serde_json::{Value, json};
use turnbuckle_server::testing::{Peer, all_combinations};

use super::place::{Place, call};

const ERROR: &str = "error[E0502]: cannot borrow `list` as mutable because it is also borrowed as immutable\n --> src/main.rs:7:5";

#[tokio::test]
async fn a_fix_is_found_by_an_error_like_it_in_every_way_to_talk() {
    for edge in all_combinations() {
        let place = Place::new();
        let mut peer = edge.connect(place.server()).await;
        let args = json!({
            "error_msg": ERROR,
            "solution": "Clone the element before the push.",
            "project_path": place.path(),
            "context": "a loop over a Vec that grows",
        });
        let saved = peer.call_tool("remediation_save", args).await.text();
        assert!(
            saved.starts_with("Saved remediation rem_"),
            "{edge}: {saved}"
        );
        let error = "error[E0502]: cannot borrow `names` as mutable because it is also borrowed as immutable\n --> src/other.rs:99:1";
        let args =
            json!({ "error_msg": error, "project_path": place.path(), "content_mode": "preview" });
        let found = peer.call_tool("remediation_search", args).await.text();
        assert!(found.contains("Fix: Clone the element"), "{edge}: {found}");
        assert!(found.contains("When: a loop over a Vec"), "{edge}: {found}");
    }
}

#[tokio::test]
async fn a_fix_of_a_project_is_its_own_and_one_without_is_for_all() {
    let (place, other) = (Place::new(), Place::new());
    let mut peer = Peer::connect(place.server()).await;
    for (project, solution) in [(json!(place.path()), "of one"), (Value::Null, "of all")] {
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
        found(&mut peer, json!(place.path())).await,
        ["of all", "of one"]
    );
    assert_eq!(found(&mut peer, json!(other.path())).await, ["of all"]);
    assert_eq!(found(&mut peer, Value::Null).await, ["of all"]);
}

#[tokio::test]
async fn a_skill_is_replaced_by_its_name_and_found_in_every_way_to_talk() {
    for edge in all_combinations() {
        let place = Place::new();
        let mut peer = edge.connect(place.server()).await;
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
async fn nothing_found_says_what_to_do() {
    let place = Place::new();
    let mut peer = Peer::connect(place.server()).await;
    let args = json!({ "error_msg": "segmentation fault" });
    let text = peer.call_tool("remediation_search", args).await.text();
    assert!(text.contains("remediation_save"), "{text}");
    let args = json!({ "query": "anything", "project_path": place.path() });
    let text = peer.call_tool("checkpoint_search", args).await.text();
    assert!(text.contains("checkpoint_list"), "{text}");
}

#[tokio::test]
async fn health_is_told_in_every_way_to_talk() {
    for edge in all_combinations() {
        let mut peer = edge.connect(Place::new().server()).await;
        let text = peer.call_tool("status", json!({})).await.text();
        assert!(text.starts_with("healthy: turnbuckle "), "{edge}: {text}");
    }
}
