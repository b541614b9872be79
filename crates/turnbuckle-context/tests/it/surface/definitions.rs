//! Tests of the tool definitions, which are part of every conversation.

use serde_json::{Value, json};
use turnbuckle_context::{Owner, OwnershipPolicy, ToolSet};
use turnbuckle_server::testing::{Peer, all_combinations};

use super::test_project::{TestProject, call};

async fn tools() -> Vec<Value> {
    let mut peer = Peer::connect(TestProject::new().server()).await;
    let listed = peer.request("tools/list", json!({})).await;
    listed.expect_result()["tools"].as_array().unwrap().clone()
}

/// Returns the definitions without the debug tools.
async fn own_tools() -> Vec<Value> {
    let mut tools = tools().await;
    tools.retain(|tool| !tool["name"].as_str().unwrap().starts_with("debug_"));
    tools
}

#[tokio::test]
async fn the_definitions_stay_small() {
    let mut all = 0;
    for tool in own_tools().await {
        let size = tool.to_string().len();
        println!(
            "{:>6} {} (input {}, output {})",
            size,
            tool["name"],
            tool["inputSchema"].to_string().len(),
            tool["outputSchema"].to_string().len()
        );
        all += size;
    }
    println!("{all:>6} bytes in all");
    assert!(all < 15 * 1024, "{all} bytes");
}

#[tokio::test]
async fn the_core_tools_take_at_most_2000_tokens_in_every_revision() {
    for edge in all_combinations() {
        let owners = OwnershipPolicy::Single(Owner::for_user("ada"));
        let builder = TestProject::new().builder(owners);
        let mut peer = edge.connect(builder.tool_set(ToolSet::Core).build()).await;

        let listed = peer.request("tools/list", json!({})).await;

        let tools = &listed.expect_result()["tools"];
        // Four characters of JSON are about one token of the tokenizers in use.
        let tokens = tools.to_string().len() / 4;
        println!("{edge}: {tokens} tokens");
        assert!(tokens <= 2_000, "{edge}: {tokens} tokens");
        let tools = tools.as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str()).collect();
        assert!(names.contains(&Some("memory_forget")), "{edge}: {names:?}");
        assert_eq!(names.len(), 10, "{edge}: {names:?}");
    }
}

#[tokio::test]
async fn every_definition_is_complete() {
    for tool in own_tools().await {
        let name = &tool["name"];
        assert!(tool["description"].as_str().unwrap().len() > 10, "{name}");
        assert!(tool["title"].is_string(), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        let hints = &tool["annotations"];
        // The other two hints have a meaning only for a tool that may write.
        for hint in ["destructiveHint", "idempotentHint"] {
            let is_read_only = hints["readOnlyHint"] == true;
            assert_eq!(hints[hint].is_boolean(), !is_read_only, "{name}: {hint}");
        }
        assert_eq!(hints["openWorldHint"], false, "{name}");
    }
}

#[tokio::test]
async fn every_argument_is_described() {
    for tool in tools().await {
        let arguments = tool["inputSchema"]["properties"].as_object();
        for (argument, schema) in arguments.into_iter().flatten() {
            let what = schema["description"].as_str().unwrap_or_default();
            assert!(what.len() > 5, "{argument} of {}", tool["name"]);
        }
    }
}

#[tokio::test]
async fn an_unknown_argument_is_an_error_with_the_nearest_name() {
    let test_project = TestProject::new();
    let mut peer = Peer::connect(test_project.server()).await;
    let path = test_project.path();
    for (tool, args, expected) in [
        (
            "checkpoint_list",
            json!({ "project_path": path, "limits": 3 }),
            "unknown argument `limits`: did you mean `limit`? `checkpoint_list` has `",
        ),
        (
            "checkpoint_save",
            json!({ "projectPath": path, "project_path": path, "content": "x" }),
            "unknown argument `projectPath`: did you mean `project_path`?",
        ),
        (
            "debug_log_status",
            json!({ "a": 1 }),
            "unknown argument `a`: `debug_log_status` takes no arguments",
        ),
        (
            "skill_search",
            json!({ "query": "x", "zzz": 1 }),
            "unknown argument `zzz`: `skill_search` has `",
        ),
    ] {
        let failure = peer.call_tool(tool, args).await.expect_tool_error();

        assert!(failure.starts_with(expected), "{failure}");
    }
    let list = json!({ "project_path": path });
    let listed = call(&mut peer, "checkpoint_list", list).await;
    assert_eq!(listed["checkpoints"], json!([]), "nothing was saved");
}
