//! Declared capabilities work, and undeclared ones do not.

use serde_json::{Value, json};
use turnbuckle_server::{CompletionRequest, Context, Prompt, Resource, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::{
    ndjson::test_client::{LEGACY, Peer, initialize, modern},
    spec::revision_client::{EVERY, MODERN, RevisionClient},
};

/// Registers one item of every kind.
fn everything() -> Server {
    let complete =
        async |typed: CompletionRequest, _: Context| Ok(vec![format!("{}!", typed.value)]);
    Server::new("everything", "1")
        .tool(Tool::new("hi", async || Ok("hello".to_owned())))
        .resource(Resource::text("note://a", "a", "text"))
        .prompt(Prompt::new("greet", async || Ok("Greet me")).complete("name", complete))
}

/// The methods of the declared capabilities, with valid parameters.
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
    // The oldest revisions have completion without a capability.
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
async fn every_method_of_every_declared_capability_responds() {
    req!("lifecycle.capabilities.advertise");
    for revision in LEGACY {
        let mut peer = Peer::new(everything());
        let response = peer
            .call("initialize", initialize(revision, json!({})))
            .await;
        peer.notify("notifications/initialized", json!({})).await;
        let methods = methods(&response["result"]["capabilities"], revision);
        assert_eq!(methods.len(), 11, "{revision} declares everything it can");

        for (method, params) in methods {
            let response = peer.call(method, params).await;
            assert!(
                response.get("result").is_some(),
                "{revision} {method}: {response}"
            );
        }
    }
}

#[tokio::test]
async fn every_method_of_every_discovered_capability_responds() {
    req!("lifecycle.capabilities.advertise");
    let mut peer = Peer::new(everything());
    let response = peer.call_modern("server/discover", json!({})).await;
    let methods = methods(&response["result"]["capabilities"], "2026-07-28");
    assert_eq!(methods.len(), 8);

    for (method, params) in methods {
        let response = peer.call_modern(method, params).await;
        assert_eq!(
            response["result"]["resultType"], "complete",
            "{method}: {response}"
        );
    }
}

#[tokio::test]
async fn an_empty_server_declares_no_capability_and_has_none_of_the_methods() {
    let mut peer = Peer::new(Server::new("empty", "1"));
    let response = peer.call_modern("server/discover", json!({})).await;
    let declared = response["result"]["capabilities"].as_object().unwrap();

    for capability in ["tools", "resources", "prompts", "completions"] {
        assert!(!declared.contains_key(capability), "{capability}");
    }
    let all = json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {} });
    for (method, params) in methods(&all, "2026-07-28") {
        let response = peer.call(method, modern(params)).await;
        assert_eq!(response["error"]["code"], -32601, "{method}: {response}");
    }
}

/// The server's identity and capabilities.
async fn declared(server: Server, revision: &str) -> (Value, Value) {
    let mut peer = Peer::new(server);
    if revision == MODERN {
        let mut response = peer.call_modern("server/discover", json!({})).await;
        let result = response["result"].take();
        let info = result["_meta"]["io.modelcontextprotocol/serverInfo"].clone();
        return (info, result["capabilities"].clone());
    }
    let response = peer
        .call("initialize", initialize(revision, json!({})))
        .await;
    let result = &response["result"];
    (result["serverInfo"].clone(), result["capabilities"].clone())
}

#[tokio::test]
async fn registered_features_are_declared_in_every_revision() {
    req!(
        "tools.capability",
        "tools.list-changed.declare",
        "resources.capability",
        "resources.subscribe.declare",
        "resources.list-changed.declare",
        "prompts.capability",
        "prompts.capability-modern",
        "prompts.list-changed.declare",
        "completion.capability",
        "logging.capability"
    );
    for revision in EVERY {
        let (_, declared) = declared(everything(), revision).await;

        assert_eq!(
            declared["tools"],
            json!({ "listChanged": true }),
            "{revision}"
        );
        assert_eq!(
            declared["prompts"],
            json!({ "listChanged": true }),
            "{revision}"
        );
        let resources = json!({ "listChanged": true, "subscribe": true });
        assert_eq!(declared["resources"], resources, "{revision}");
        assert!(declared["logging"].is_object(), "{revision}");
        let completes = revision >= "2025-03-26";
        assert_eq!(
            declared.get("completions").is_some(),
            completes,
            "{revision}"
        );
    }
}

#[tokio::test]
async fn the_server_info_has_the_members_of_the_revision() {
    req!("lifecycle.info.shape");
    for revision in EVERY {
        let server = everything().title("Everything").description("All of it");

        let (info, _) = declared(server, revision).await;

        assert_eq!(info["name"], "everything", "{revision}");
        assert_eq!(info["version"], "1", "{revision}");
        assert_eq!(
            info.get("title").is_some(),
            revision >= "2025-06-18",
            "{revision}"
        );
        assert_eq!(
            info.get("description").is_some(),
            revision >= "2025-11-25",
            "{revision}"
        );
    }
}

#[tokio::test]
async fn a_server_may_register_nothing_in_every_revision() {
    req!("tools.optional", "resources.optional", "prompts.optional");
    for revision in EVERY {
        let (_, declared) = declared(Server::new("empty", "1"), revision).await;
        for capability in ["tools", "resources", "prompts", "completions"] {
            assert_eq!(declared.get(capability), None, "{revision} {capability}");
        }
        let mut client = RevisionClient::new(revision, Server::new("empty", "1")).await;
        for method in ["tools/list", "resources/list", "prompts/list"] {
            assert_eq!(
                client.code(method, json!({})).await,
                -32601,
                "{revision} {method}"
            );
        }
    }
}
