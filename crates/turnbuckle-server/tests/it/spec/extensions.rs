//! Declared and required extensions.

use std::panic::catch_unwind;

use serde_json::{Value, json};
use turnbuckle_server::{Context, Extension, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::spec::revision_client::{EVERY, MODERN, RevisionClient};

const LAYERS: &str = "com.example/layers";

/// A server with an extension that one tool requires and another can use.
fn server() -> Server {
    let needs = Tool::new("needs", async |cx: Context| {
        cx.require_extension(LAYERS)?;
        Ok("layered".to_owned())
    });
    let likes = Tool::new("likes", async |cx: Context| {
        let layered = cx.client_capabilities().has_extension(LAYERS);
        Ok(if layered { "layered" } else { "flat" }.to_owned())
    });
    let depth = json!({ "depth": 3 }).as_object().unwrap().clone();
    Server::new("maps", "1")
        .extension(Extension::new(LAYERS))
        .extension(Extension::new("com.example/relief").settings(depth))
        .tool(needs)
        .tool(likes)
}

#[tokio::test(start_paused = true)]
async fn an_extension_is_declared_by_its_settings_or_by_an_empty_object() {
    req!("versioning.extension.empty-object");
    let mut client = RevisionClient::new(MODERN, server()).await;

    let declared = client.result("server/discover", json!({})).await;

    assert_eq!(
        declared["capabilities"]["extensions"],
        json!({ LAYERS: {}, "com.example/relief": { "depth": 3 } })
    );
}

#[test]
fn an_extension_is_named_by_a_prefix_and_a_name() {
    req!("versioning.extension.id-format", in: ["2026-07-28"]);
    let declares = |identifier: &'static str| catch_unwind(|| Extension::new(identifier)).is_ok();
    for identifier in [
        LAYERS,
        "io.modelcontextprotocol/tasks",
        "a/b",
        "x-y.z9/b_c.d-e",
    ] {
        assert!(declares(identifier), "{identifier}");
    }
    for identifier in [
        "",
        "layers",
        "/layers",
        "com.example/",
        "com..example/a",
        "9com/a",
        "com-/a",
        "com.example/a b",
        "com.example/-a",
        "com.example/a/b",
    ] {
        assert!(!declares(identifier), "{identifier:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_extension_there_is_the_core_or_an_error() {
    req!("versioning.extension.fallback");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;

        let refused = client
            .call("tools/call", json!({ "name": "needs", "arguments": {} }))
            .await;
        let flat = client.tool("likes", json!({})).await;

        if client.is_modern() {
            assert_eq!(refused["error"]["code"], -32021, "{refused}");
            let needed = &refused["error"]["data"]["requiredCapabilities"];
            assert_eq!(needed["extensions"], json!({ LAYERS: {} }));
        } else {
            assert_eq!(refused["result"]["isError"], true, "{revision} {refused}");
        }
        assert_eq!(flat["content"][0]["text"], "flat", "{revision}");
    }
    let offers: Value = json!({ "extensions": { LAYERS: {} } });
    let mut client = RevisionClient::with(MODERN, server(), offers).await;
    for tool in ["needs", "likes"] {
        let result = client.tool(tool, json!({})).await;
        assert_eq!(result["content"][0]["text"], "layered");
    }
}
