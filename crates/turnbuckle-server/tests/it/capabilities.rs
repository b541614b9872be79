//! What is declared is there, and what is not declared is not.

use serde_json::{Value, json};
use turnbuckle_ledger::req;
use turnbuckle_server::{
    Completing, Context, Prompt, RequestError, Resource, Server, Tool, ToolError,
};

use crate::lines_peer::{LEGACY, Peer, initialize, modern};

/// Offers one of everything.
fn everything() -> Server {
    let complete = async |typed: Completing, _: Context| {
        Ok::<_, RequestError>(vec![format!("{}!", typed.value)])
    };
    Server::new("everything", "1")
        .tool(Tool::new("hi", async || {
            Ok::<_, ToolError>("hello".to_owned())
        }))
        .resource(Resource::text("note://a", "a", "text"))
        .prompt(
            Prompt::new("greet", async || Ok::<_, RequestError>("Greet me"))
                .complete("name", complete),
        )
}

/// The methods that belong to what is declared, with parameters that work.
fn methods(declared: &Value, revision: &str) -> Vec<(&'static str, Value)> {
    let has = |path: &str| declared.pointer(path).is_some_and(|it| *it != json!(false));
    let legacy = revision != "2026-07-28";
    let mut methods = Vec::new();
    if has("/tools") {
        methods.push(("tools/list", json!({})));
        methods.push(("tools/call", json!({ "name": "hi" })));
    }
    if has("/resources") {
        methods.push(("resources/list", json!({})));
        methods.push(("resources/templates/list", json!({})));
        methods.push(("resources/read", json!({ "uri": "note://a" })));
    }
    if has("/resources/subscribe") && legacy {
        methods.push(("resources/subscribe", json!({ "uri": "note://a" })));
        methods.push(("resources/unsubscribe", json!({ "uri": "note://a" })));
    }
    if has("/prompts") {
        methods.push(("prompts/list", json!({})));
        methods.push(("prompts/get", json!({ "name": "greet" })));
    }
    // The oldest revisions complete without saying so.
    if has("/completions") || revision < "2025-03-26" {
        let argument = json!({ "name": "name", "value": "A" });
        let reference = json!({ "type": "ref/prompt", "name": "greet" });
        methods.push((
            "completion/complete",
            json!({ "ref": reference, "argument": argument }),
        ));
    }
    if has("/logging") && legacy {
        methods.push(("logging/setLevel", json!({ "level": "info" })));
    }
    methods
}

#[tokio::test]
async fn every_method_of_every_declared_capability_answers() {
    req!("lifecycle.capabilities.advertise");
    for revision in LEGACY {
        let mut peer = Peer::new(everything());
        let answer = peer
            .call("initialize", initialize(revision, json!({})))
            .await;
        peer.notify("notifications/initialized", json!({})).await;
        let methods = methods(&answer["result"]["capabilities"], revision);
        assert_eq!(methods.len(), 11, "{revision} declares everything it can");

        for (method, params) in methods {
            let answer = peer.call(method, params).await;
            assert!(
                answer.get("result").is_some(),
                "{revision} {method}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn every_method_of_every_discovered_capability_answers() {
    let mut peer = Peer::new(everything());
    let answer = peer.call_modern("server/discover", json!({})).await;
    let methods = methods(&answer["result"]["capabilities"], "2026-07-28");
    assert_eq!(methods.len(), 8);

    for (method, params) in methods {
        let answer = peer.call_modern(method, params).await;
        assert_eq!(
            answer["result"]["resultType"], "complete",
            "{method}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_server_without_anything_declares_nothing_and_knows_no_method_of_it() {
    let mut peer = Peer::new(Server::new("empty", "1"));
    let answer = peer.call_modern("server/discover", json!({})).await;
    let declared = answer["result"]["capabilities"].as_object().unwrap();

    for capability in ["tools", "resources", "prompts", "completions"] {
        assert!(!declared.contains_key(capability), "{capability}");
    }
    let all = json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {} });
    for (method, params) in methods(&all, "2026-07-28") {
        let answer = peer.call(method, modern(params)).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}
