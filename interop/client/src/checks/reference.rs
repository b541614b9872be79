//! Reference servers that have only tools.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Checks, Outcome, ServerFacts, equal, holds, refused, unknown};

pub(super) const FILESYSTEM: ServerFacts = ServerFacts {
    name: "secure-filesystem-server",
    tools: &[
        "read_text_file",
        "write_file",
        "list_directory",
        "list_allowed_directories",
    ],
    needs_arguments: "read_text_file",
};

pub(super) const MEMORY: ServerFacts = ServerFacts {
    name: "memory-server",
    tools: &["create_entities", "read_graph", "search_nodes"],
    needs_arguments: "create_entities",
};

pub(super) const TIME: ServerFacts = ServerFacts {
    name: "mcp-time",
    tools: &["get_current_time", "convert_time"],
    needs_arguments: "get_current_time",
};

pub(super) async fn filesystem(checks: &Checks, check: &str) -> Outcome {
    match check {
        "text" => {
            let path = note(checks).await?;
            let arguments = json!({ "path": path, "content": "kept\n" });
            checks.said("write_file", arguments).await?;
            let read = checks.said("read_text_file", json!({ "path": path }));
            equal(read.await?, "kept\n".to_owned())
        }
        "structured" => {
            let arguments = json!({ "path": note(checks).await? });
            let result = checks.call("read_text_file", arguments).await?;
            equal(
                result.structured::<Value>()?,
                json!({ "content": "kept\n" }),
            )
        }
        "roots" => roots(checks).await,
        "tool_error" => {
            let outcome = checks.call("read_text_file", json!({ "path": "/etc/hostname" }));
            refused(outcome.await)
        }
        _ => unknown(check),
    }
}

/// A file that the server may write, once it has listed our roots.
async fn note(checks: &Checks) -> Result<String, Box<dyn std::error::Error>> {
    let folder = std::env::current_dir()?.display().to_string();
    allowed(checks, &folder).await?;
    Ok(format!("{folder}/note.txt"))
}

/// This server works in the roots of its client, and lists them again when they change.
async fn roots(checks: &Checks) -> Outcome {
    let folder = std::env::current_dir()?.join("more");
    std::fs::create_dir_all(&folder)?;
    checks.roots.add(format!("file://{}", folder.display()))?;
    allowed(checks, "/more").await
}

/// Waits until the server works in a folder of this name.
async fn allowed(checks: &Checks, part: &str) -> Outcome {
    let mut allowed = String::new();
    for _ in 0..60 {
        allowed = checks.said("list_allowed_directories", json!({})).await?;
        if allowed.contains(part) {
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    Err(format!("{part} is not among {allowed:?}").into())
}

pub(super) async fn memory(checks: &Checks, check: &str) -> Outcome {
    match check {
        "text" => {
            let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["counts"] });
            let arguments = json!({ "entities": [ada] });
            checks.said("create_entities", arguments).await?;
            let found = checks.said("search_nodes", json!({ "query": "counts" }));
            holds(&found.await?, "Ada")
        }
        "structured" => {
            let result = checks.call("read_graph", json!({})).await?;
            let graph = result.structured::<Value>()?;
            equal(graph["entities"][0]["name"].clone(), json!("Ada"))
        }
        _ => unknown(check),
    }
}

pub(super) async fn time(checks: &Checks, check: &str) -> Outcome {
    match check {
        "text" => {
            let text = checks.said("get_current_time", json!({ "timezone": "Etc/UTC" }));
            holds(&text.await?, "Etc/UTC")
        }
        "tool_error" => {
            let outcome = checks.call("get_current_time", json!({ "timezone": "Nowhere/At_All" }));
            refused(outcome.await)
        }
        _ => unknown(check),
    }
}
