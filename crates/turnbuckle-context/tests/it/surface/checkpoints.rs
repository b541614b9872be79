//! End-to-end tests of checkpoints.

use serde_json::{Value, json};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::testing::{Peer, all_combinations};

use super::test_project::{TestProject, call};

/// A generated key in a form that the rules recognize.
const SECRET: &str = concat!("ghp", "_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5");

async fn save(peer: &mut Peer, test_project: &TestProject, content: &str, summary: &str) -> String {
    let args = json!({
        "content": content,
        "project_path": test_project.path(),
        "metadata": { "summary": summary, "tags": "build, ci" },
    });
    let saved = call(peer, "checkpoint_save", args).await;
    saved["checkpoint_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn checkpoints_are_found_and_listed_in_every_revision() {
    for edge in all_combinations() {
        let test_project = TestProject::new();
        let mut peer = edge.connect(test_project.server()).await;
        let args = json!({
            "content": "Moved the retry loop into the client. Next: back-off.",
            "project_path": test_project.path(),
            "metadata": { "summary": "Retry loop moved", "tags": "client, retry", "ticket": "T-7" },
        });
        let answer = peer.call_tool("checkpoint_save", args).await;
        assert!(
            answer.text().starts_with("Saved checkpoint ckpt_"),
            "{edge}"
        );
        let args = json!({
            "content": "Wrote the documentation.",
            "project_path": test_project.path(),
            "metadata": { "summary": "Docs" },
        });
        peer.call_tool("checkpoint_save", args).await;

        let args =
            json!({ "query": "where is the retry loop?", "project_path": test_project.path() });
        let answer = peer.call_tool("checkpoint_search", args).await;
        let text = answer.text();
        assert!(text.contains("Retry loop moved"), "{edge}: {text}");
        assert!(
            text.contains("[main]") && text.contains("#client #retry"),
            "{text}"
        );

        let args = json!({ "project_path": test_project.path(), "content_mode": "full" });
        let text = peer.call_tool("checkpoint_list", args).await.text();
        let (docs, retry) = (text.find("Docs").unwrap(), text.find("Retry").unwrap());
        assert!(docs < retry, "newest first: {text}");
        assert!(text.contains("Next: back-off."), "{text}");
    }
}

#[tokio::test]
async fn results_have_the_documented_members() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let id = save(&mut peer, &test_project, "The whole story.", "Story").await;
    let args =
        json!({ "query": "story", "project_path": test_project.path(), "content_mode": "full" });
    let found = call(&mut peer, "checkpoint_search", args).await;
    let hit = &found["checkpoints"][0];
    let score = hit["score"].as_f64().unwrap();
    assert!(score > 0.0 && score <= 1.0);
    let checkpoint = &hit["checkpoint"];
    assert_eq!(checkpoint["id"], id);
    assert_eq!(checkpoint["project_path"], test_project.path());
    assert_eq!(checkpoint["summary"], "Story");
    assert_eq!(checkpoint["content"], "The whole story.");
    assert_eq!(checkpoint["tags"], json!(["build", "ci"]));
    assert_eq!(checkpoint["branch"], "main");
    for time in ["created_at", "updated_at"] {
        assert!(checkpoint[time].as_str().unwrap().ends_with('Z'));
    }
    assert_eq!(found["embeddings"], "off");
}

#[tokio::test]
async fn an_operation_can_be_queried_later() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let args = json!({ "content": "x", "project_path": test_project.path(), "metadata": null });
    let saved = call(&mut peer, "checkpoint_save", args).await;
    let args = json!({ "operation_id": saved["operation_id"] });
    let status = call(&mut peer, "status", args).await;
    assert_eq!(status["status"], "completed");
    assert_eq!(status["result"]["checkpoint_id"], saved["checkpoint_id"]);
    assert!(status["created_at"].is_string() && status["updated_at"].is_string());

    let args = json!({ "operation_id": "op_0000000000000000" });
    let failure = peer.call_tool("status", args).await.expect_tool_error();
    assert_eq!(failure, "not found: operation `op_0000000000000000`");
}

#[tokio::test]
async fn duplicates_are_stored_once_and_near_duplicates_are_named() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let text = "Rewrote the parser of configuration files so that unknown keys are reported with their line";
    let first = save(&mut peer, &test_project, text, "Parser").await;
    let args = json!({ "content": text, "project_path": test_project.path() });
    let again = peer.call_tool("checkpoint_save", args).await;
    assert!(again.text().contains(&first), "{}", again.text());
    assert_eq!(again.structured::<Value>()["is_new"], false);

    let args = json!({ "content": format!("{text} number"), "project_path": test_project.path() });
    let alike = call(&mut peer, "checkpoint_save", args).await;
    assert_eq!(alike["is_new"], true);
    assert_eq!(alike["similar_to"][0]["id"], first);
}

#[tokio::test]
async fn a_secret_is_counted_reported_and_not_stored() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server())
        .log_level(LogLevel::Notice)
        .await;
    let args =
        json!({ "content": format!("token {SECRET} works"), "project_path": test_project.path() });
    let answer = peer.call_tool("checkpoint_save", args).await;
    let text = answer.text();
    assert!(text.contains("1 secret redacted before saving"), "{text}");
    let message = peer.expect_notification("notifications/message").await;
    assert_eq!(message["logger"], "redaction");

    let args = json!({ "project_path": test_project.path(), "content_mode": "full" });
    let text = peer.call_tool("checkpoint_list", args).await.text();
    assert!(text.contains("[REDACTED:"), "{text}");
    assert!(!text.contains(SECRET) && !peer.transcript().replacen(SECRET, "", 1).contains(SECRET));
}

#[tokio::test]
async fn a_result_respects_content_mode_and_max_tokens() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    for number in 0..12 {
        let content = format!("note {number} {}", "about the weather ".repeat(100));
        save(
            &mut peer,
            &test_project,
            &content,
            &format!("Note {number}"),
        )
        .await;
    }
    let list = |args: Value| {
        let mut all = json!({ "project_path": test_project.path() });
        all.as_object_mut()
            .unwrap()
            .extend(args.as_object().unwrap().clone());
        all
    };
    let answer = peer.call_tool("checkpoint_list", list(json!({}))).await;
    assert!(
        !answer.text().contains("weather"),
        "by default one line each"
    );

    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let args = list(json!({ "content_mode": "full", "max_tokens": 1200, "cursor": cursor }));
        let answer = peer.call_tool("checkpoint_list", args).await;
        assert!(answer.text().len() < 4 * 1200);
        let page: Value = answer.structured();
        for checkpoint in page["checkpoints"].as_array().unwrap() {
            seen.push(checkpoint["summary"].as_str().unwrap().to_owned());
        }
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
        assert!(
            answer.text().contains("omitted because of max_tokens"),
            "{}",
            answer.text()
        );
    }
    let all: Vec<_> = (0..12)
        .rev()
        .map(|number| format!("Note {number}"))
        .collect();
    assert_eq!(seen, all, "every one once, newest first");
}

#[tokio::test]
async fn search_results_are_paged() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    for number in 0..7 {
        let content = format!("weather report number {number} of station {}", number * 31);
        save(
            &mut peer,
            &test_project,
            &content,
            &format!("Report {number}"),
        )
        .await;
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = Value::Null;
    for page in 0.. {
        let args = json!({ "query": "weather", "project_path": test_project.path(), "limit": 3, "cursor": cursor });
        let found = call(&mut peer, "checkpoint_search", args).await;
        let hits = found["checkpoints"].as_array().unwrap();
        assert_eq!(hits.len(), if page < 2 { 3 } else { 1 });
        seen.extend(hits.iter().map(|hit| hit["checkpoint"]["id"].to_string()));
        cursor = found["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen.len(), 7);

    let args = json!({ "query": "weather", "project_path": test_project.path(), "limit": 3 });
    let found = call(&mut peer, "checkpoint_search", args).await;
    let args = json!({ "query": "other", "project_path": test_project.path(), "cursor": found["next_cursor"] });
    let failure = peer
        .call_tool("checkpoint_search", args)
        .await
        .expect_tool_error();
    assert!(
        failure.contains("does not belong to this search"),
        "{failure}"
    );
}

#[tokio::test]
async fn errors_tell_what_to_do() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let too_long = "x".repeat(101 * 1024);
    let cases = [
        (
            json!({ "content": "x", "project_path": "relative" }),
            "is not absolute",
        ),
        (
            json!({ "content": "x", "project_path": "/no/such/folder" }),
            "absolute path of an existing folder",
        ),
        (
            json!({ "content": " ", "project_path": test_project.path() }),
            "content",
        ),
        (
            json!({ "content": too_long, "project_path": test_project.path() }),
            "102400 are allowed",
        ),
        (json!({ "project_path": test_project.path() }), "content"),
    ];
    for (args, hint) in cases {
        let failure = peer
            .call_tool("checkpoint_save", args)
            .await
            .expect_tool_error();
        assert!(failure.contains(hint), "{hint}: {failure}");
    }
    let args = json!({ "query": "x", "project_path": test_project.path(), "limit": 1000 });
    let failure = peer
        .call_tool("checkpoint_search", args)
        .await
        .expect_tool_error();
    assert!(failure.contains("limit"), "{failure}");
}

#[tokio::test]
async fn a_checkpoint_without_a_summary_is_shown_by_its_first_line() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let args = json!({
        "content": "\n## The parser is done  \n\nNext: the printer.",
        "project_path": test_project.path(),
    });
    call(&mut peer, "checkpoint_save", args).await;
    let args = json!({ "project_path": test_project.path() });
    let listed = call(&mut peer, "checkpoint_list", args).await;
    assert_eq!(listed["checkpoints"][0]["summary"], "The parser is done");
}
