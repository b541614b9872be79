//! Tests of prompts and of the completion of their arguments.

use serde_json::{Value, json};
use turnbuckle_server::testing::{Peer, all_combinations};

use super::test_project::{TestProject, call};

async fn prompt(peer: &mut Peer, name: &str, arguments: Value) -> Vec<Value> {
    let params = json!({ "name": name, "arguments": arguments });
    let got = peer.request("prompts/get", params).await;
    got.expect_result()["messages"].as_array().unwrap().clone()
}

fn text(message: &Value) -> &str {
    let content = &message["content"];
    content["text"]
        .as_str()
        .or(content["resource"]["text"].as_str())
        .unwrap()
}

async fn complete(
    peer: &mut Peer,
    prompt: &str,
    argument: &str,
    value: &str,
    settled: Value,
) -> Value {
    let params = json!({
        "ref": { "type": "ref/prompt", "name": prompt },
        "argument": { "name": argument, "value": value },
        "context": { "arguments": settled },
    });
    let completed = peer.request("completion/complete", params).await;
    completed.expect_result()["completion"]["values"].clone()
}

#[tokio::test]
async fn work_is_resumed_from_the_newest_checkpoint_in_every_revision() {
    for edge in all_combinations() {
        let test_project = TestProject::new();
        let mut peer = edge.connect(test_project.server()).await;
        let begin = prompt(
            &mut peer,
            "resume_work",
            json!({ "project_path": test_project.path() }),
        )
        .await;
        assert!(text(&begin[0]).contains("No checkpoint exists"), "{edge}");

        for (content, summary) in [("First half.", "Half"), ("Second half.", "Whole")] {
            let args = json!({ "content": content, "project_path": test_project.path(), "metadata": { "summary": summary } });
            peer.call_tool("checkpoint_save", args).await;
        }
        let messages = prompt(
            &mut peer,
            "resume_work",
            json!({ "project_path": test_project.path() }),
        )
        .await;
        assert!(text(&messages[0]).contains(&test_project.path()), "{edge}");
        assert!(
            text(&messages[0]).contains("[main] Half"),
            "{edge}: {}",
            text(&messages[0])
        );
        let resource = &messages[1]["content"]["resource"];
        assert!(
            resource["uri"]
                .as_str()
                .unwrap()
                .starts_with("checkpoint://ckpt_")
        );
        assert!(text(&messages[1]).contains("Second half."), "{edge}");
    }
}

#[tokio::test]
async fn a_checkpoint_and_a_skill_can_be_named() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let mut ids = Vec::new();
    for content in ["First half.", "Something else altogether."] {
        let args = json!({ "content": content, "project_path": test_project.path() });
        let saved = call(&mut peer, "checkpoint_save", args).await;
        ids.push(saved["checkpoint_id"].clone());
    }
    let args = json!({ "name": "Tidy up", "description": "When work ends.", "content": "Sweep the floor." });
    call(&mut peer, "skill_save", args).await;
    let args =
        json!({ "project_path": test_project.path(), "checkpoint": ids[0], "skill": "tidy up" });
    let messages = prompt(&mut peer, "resume_work", args).await;
    assert!(text(&messages[1]).contains("First half."));
    assert!(text(&messages[2]).contains("Sweep the floor."));

    let args =
        json!({ "project_path": test_project.path(), "checkpoint": "ckpt_0000000000000000" });
    let params = json!({ "name": "resume_work", "arguments": args });
    let rejected = peer.request("prompts/get", params).await;
    let error = rejected.expect_error(-32602);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("ckpt_0000000000000000")
    );
}

#[tokio::test]
async fn a_fix_is_recorded_with_known_fixes() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let error = "linker `cc` not found";
    let args = json!({ "error_msg": error, "solution": "Install gcc." });
    call(&mut peer, "remediation_save", args).await;
    let args = json!({ "error_msg": error, "project_path": test_project.path() });
    let messages = prompt(&mut peer, "record_fix", args).await;
    assert!(text(&messages[0]).contains(error) && text(&messages[0]).contains("remediation_save"));
    assert!(text(&messages[1]).contains("Install gcc."));
}

#[tokio::test]
async fn arguments_are_completed_from_stored_data() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let args = json!({ "content": "x", "project_path": test_project.path() });
    let id = call(&mut peer, "checkpoint_save", args).await["checkpoint_id"].clone();
    let args = json!({ "name": "Tidy up", "description": "When work ends.", "content": "Sweep." });
    call(&mut peer, "skill_save", args).await;

    let none = json!({});
    for name in ["resume_work", "record_fix", "explain_repository"] {
        let values = complete(&mut peer, name, "project_path", "", none.clone()).await;
        assert_eq!(values, json!([test_project.path()]), "{name}");
    }
    let settled = json!({ "project_path": test_project.path() });
    let values = complete(
        &mut peer,
        "resume_work",
        "checkpoint",
        "ck",
        settled.clone(),
    )
    .await;
    assert_eq!(values, json!([id]));
    let values = complete(&mut peer, "resume_work", "checkpoint", "x", settled).await;
    assert_eq!(values, json!([]));
    let values = complete(&mut peer, "resume_work", "skill", "tidy", none).await;
    assert_eq!(values, json!(["Tidy up"]));
}
