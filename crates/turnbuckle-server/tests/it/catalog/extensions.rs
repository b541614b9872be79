//! Extensions registered by the server's author.

use std::{panic::catch_unwind, time::Duration};

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_server::{
    CacheHint, Context, Elicitation, Extension, ExtensionMethod, RequestError, Server, Tool,
};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::{HttpTestClient, modern, modern_headers},
    ndjson::test_client::{Peer, modern_with},
    spec::revision_client::{EVERY, RevisionClient},
};

const BELLS: &str = "com.example/bells";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RingParams {
    name: String,
}

#[derive(Serialize)]
struct BellSound {
    sound: String,
}

async fn ring(which: RingParams) -> Result<BellSound, RequestError> {
    match which.name.as_str() {
        "broken" => Err(RequestError::not_found()),
        "odd" => Err(RequestError::invalid("the bell lacks a clapper")),
        "rusty" => Err(std::io::Error::other("do not tell").into()),
        name => Ok(BellSound {
            sound: format!("{name} rings"),
        }),
    }
}

fn bells() -> Extension {
    let list = ExtensionMethod::new("bells/list", async || {
        Ok(json!({ "bells": ["big", "small"] }))
    });
    Extension::new(BELLS)
        .settings(json!({ "loud": true }).as_object().unwrap().clone())
        .with(list.cache(CacheHint::public(Duration::from_secs(5))))
        .with(ExtensionMethod::new("bells/ring", ring).named_by("name"))
        .method("bells/silence", async |cx: Context| {
            cx.progress(1, 1).await;
            Ok(())
        })
}

fn server() -> Server {
    Server::new("tower", "1")
        .tool(Tool::new("echo", async || Ok("echo".to_owned())))
        .extension(bells())
}

#[tokio::test(start_paused = true)]
async fn methods_are_answered_in_every_revision() {
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;

        let list = client.result("bells/list", json!({})).await;
        let rung = client.result("bells/ring", json!({ "name": "big" })).await;
        let silent = client.result("bells/silence", json!({})).await;

        assert_eq!(list["bells"], json!(["big", "small"]), "{revision}");
        assert_eq!(rung["sound"], "big rings", "{revision}");
        if client.is_modern() {
            assert_eq!(list["resultType"], "complete");
            assert_eq!(list["ttlMs"], 5000);
            assert_eq!(list["cacheScope"], "public");
            assert_eq!(rung.get("ttlMs"), None);
            let identity = &silent["_meta"]["io.modelcontextprotocol/serverInfo"];
            assert_eq!(identity["name"], "tower");
        } else {
            assert_eq!(list, json!({ "bells": ["big", "small"] }), "{revision}");
            assert_eq!(silent, json!({}), "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_extension_is_declared_where_the_revision_supports_it() {
    req!(
        "versioning.extension.empty-object",
        "versioning.extension.off-by-default"
    );
    let server = || server().extension(Extension::new("com.example/plain"));
    for revision in EVERY {
        let mut peer = Peer::new(server());
        let response = if revision == "2026-07-28" {
            peer.call_modern("server/discover", json!({})).await
        } else {
            let params = crate::ndjson::test_client::initialize(revision, json!({}));
            peer.call("initialize", params).await
        };

        let declared = &response["result"]["capabilities"]["extensions"];

        if revision >= "2025-11-25" {
            let expected = json!({ BELLS: { "loud": true }, "com.example/plain": {} });
            assert_eq!(declared, &expected, "{revision}");
        } else {
            assert_eq!(declared, &Value::Null, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stateless_only_method_is_unknown_to_sessions() {
    let server = || Server::new("tower", "1").extension(bells().stateless_only());
    let mut session = RevisionClient::new("2025-11-25", server()).await;
    let mut modern = RevisionClient::new("2026-07-28", server()).await;

    assert_eq!(session.code("bells/list", json!({})).await, -32601);
    modern.result("bells/list", json!({})).await;

    let params = crate::ndjson::test_client::initialize("2025-11-25", json!({}));
    let response = Peer::new(server()).call("initialize", params).await;
    assert_eq!(response["result"]["capabilities"].get("extensions"), None);
}

#[tokio::test(start_paused = true)]
async fn unregistered_methods_are_unknown() {
    let bare = || Server::new("tower", "1");
    for revision in EVERY {
        let mut without = RevisionClient::new(revision, bare()).await;
        let mut with = RevisionClient::new(revision, server()).await;

        assert_eq!(without.code("bells/list", json!({})).await, -32601);
        assert_eq!(with.code("bells/melt", json!({})).await, -32601);
        assert_eq!(with.code("Bells/list", json!({})).await, -32601);
    }
    let refused = HttpTestClient::new(bare())
        .modern("bells/list", json!({}))
        .await;
    assert_eq!(refused.status_and_code().await, (404, -32601));
}

#[tokio::test(start_paused = true)]
async fn extension_methods_have_params_and_errors_like_any_method() {
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let missing = if client.is_modern() { -32602 } else { -32002 };
        for (params, code) in [
            (json!({}), -32602),
            (json!({ "name": 7 }), -32602),
            (json!({ "name": "big", "loud": true }), -32602),
            (json!({ "name": "odd" }), -32602),
            (json!({ "name": "broken" }), missing),
            (json!({ "name": "rusty" }), -32603),
        ] {
            let response = client.call("bells/ring", params.clone()).await;
            assert_eq!(response["error"]["code"], code, "{revision} {params}");
            assert!(!response.to_string().contains("do not tell"), "{response}");
        }
    }
}

#[tokio::test]
async fn a_named_parameter_is_compared_with_its_header() {
    let caller = HttpTestClient::new(server());
    let message = modern("bells/ring", json!({ "name": "big" }));
    let bare = || {
        caller
            .request(Method::POST)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "bells/ring")
    };

    let right = caller.modern("bells/ring", json!({ "name": "big" })).await;
    let missing = caller.send(bare(), message.to_string()).await;
    let wrong = bare().header("mcp-name", "small");
    let wrong = caller.send(wrong, message.to_string()).await;
    let unnamed = modern("bells/list", json!({}));
    let headers = modern_headers(caller.request(Method::POST), &unnamed);
    let unnamed = caller.send(headers, unnamed.to_string()).await;

    assert_eq!(right.status(), 200);
    assert_eq!(missing.status_and_code().await, (400, -32020));
    assert_eq!(wrong.status_and_code().await, (400, -32020));
    assert_eq!(unnamed.status(), 200);
}

#[tokio::test]
async fn extension_methods_work_in_http_sessions() {
    let caller = HttpTestClient::new(server()).in_session("2025-06-18").await;
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "bells/ring", "params": { "name": "big" } });

    let response = caller.post(&message).await.json().await;

    assert_eq!(response["result"], json!({ "sound": "big rings" }));
}

#[tokio::test(start_paused = true)]
async fn a_method_may_send_client_requests_in_both_eras() {
    #[derive(Deserialize, JsonSchema)]
    struct Name {
        name: String,
    }
    async fn cast(cx: Context) -> Result<Value, RequestError> {
        let name = cx
            .elicit(Elicitation::form::<Name>("Which name?").key("name"))
            .await?;
        let name = name
            .accepted()
            .map_or("missing".to_owned(), |name| name.name);
        Ok(json!({ "cast": name }))
    }
    let server =
        || Server::new("tower", "1").extension(Extension::new(BELLS).method("bells/cast", cast));
    let capabilities = json!({ "elicitation": { "form": {} } });
    let ada = json!({ "action": "accept", "content": { "name": "Ada" } });

    let mut session = Peer::initialized(server(), "2025-11-25", capabilities.clone()).await;
    session.request("bells/cast", json!({})).await;
    let client_request = session.next().await;
    session
        .send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": ada }))
        .await;
    let waited = session.next().await;

    let mut rounds = Peer::new(server());
    let params = modern_with(json!({}), capabilities.clone());
    let asked = rounds.call("bells/cast", params).await;
    let state = asked["result"]["requestState"].clone();
    let again = json!({ "requestState": state, "inputResponses": { "name": ada } });
    let returned = rounds
        .call("bells/cast", modern_with(again, capabilities))
        .await;

    assert_eq!(waited["result"]["cast"], "Ada");
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert_eq!(returned["result"]["cast"], "Ada", "{returned}");
}

#[tokio::test(start_paused = true)]
async fn members_set_by_an_extension_result_are_not_duplicated() {
    let extension = Extension::new(BELLS).with(
        ExtensionMethod::new("bells/own", async || {
            Ok(json!({ "resultType": "bell", "ttlMs": 1, "_meta": { "com.example/a": 1 } }))
        })
        .cache(CacheHint::NONE),
    );
    let mut peer = Peer::new(Server::new("tower", "1").extension(extension));

    let params = crate::ndjson::test_client::modern(json!({}));
    peer.request("bells/own", params).await;
    let line = peer.next_line().await;

    assert_eq!(line.matches("resultType").count(), 1, "{line}");
    assert_eq!(line.matches("ttlMs").count(), 1, "{line}");
    assert_eq!(line.matches("_meta").count(), 1, "{line}");
    assert!(line.contains("com.example/a") && line.contains("serverInfo"));
}

#[test]
fn no_method_of_the_protocol_can_be_replaced() {
    req!("versioning.extension.id-format", in: ["2026-07-28"]);
    let add =
        |name: &'static str| catch_unwind(|| ExtensionMethod::new(name, async || Ok(()))).is_ok();

    for name in [
        "tools/list",
        "tools/call",
        "initialize",
        "server/discover",
        "tasks/get",
        "sampling/createMessage",
        "notifications/initialized",
        "notifications/bells",
        "",
    ] {
        assert!(!add(name), "{name}");
    }
    assert!(add("bells/list"));
    for identifier in [
        "",
        "bells",
        "/bells",
        "com.example/",
        "a/b/c",
        "com example/x",
        "com..a/x",
        "9a/x",
        "a/-x",
        "com.a-/x",
    ] {
        assert!(catch_unwind(|| Extension::new(identifier)).is_err());
    }
}
