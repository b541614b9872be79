//! The errors of invalid requests, in every revision.

use serde_json::{Value, json};
use turnbuckle_protocol::RpcError;
use turnbuckle_server::{
    Context, Prompt, RequestError, Resource, SamplingBuilder, Server, Tool, ToolError,
};
use turnbuckle_spec_coverage::req;

use crate::{
    ndjson::test_client::{modern, modern_with},
    spec::revision_client::{EVERY, MODERN, RevisionClient},
};

fn server() -> Server {
    let fail = Tool::new("fail", async || -> Result<String, ToolError> {
        Err(std::io::Error::other("the disk is at /dev/secret").into())
    });
    let panics = Tool::new("panics", async || -> Result<String, ToolError> {
        panic!("at /dev/secret")
    });
    let think = Tool::new("think", async |cx: Context| {
        Ok(cx.sample("s", SamplingBuilder::text("?")).await?.model)
    });
    let broken = Prompt::new("broken", async || -> Result<String, RequestError> {
        Err(std::io::Error::other("the disk is at /dev/secret").into())
    })
    .complete(
        "a",
        async |_, _: Context| -> Result<Vec<String>, RequestError> {
            Err(std::io::Error::other("the disk is at /dev/secret").into())
        },
    );
    let unreadable = Resource::new("note://broken", "broken", async || {
        Err::<String, RequestError>(std::io::Error::other("the disk is at /dev/secret").into())
    });
    Server::new("errors", "1")
        .tool(fail)
        .tool(panics)
        .tool(think)
        .prompt(broken)
        .resource(unreadable)
        .resource(Resource::text("note://a", "a", "A"))
}

#[tokio::test(start_paused = true)]
async fn an_unknown_or_unadvertised_method_is_not_found_in_every_revision() {
    req!("base.error.method-not-found");
    for revision in EVERY {
        let mut nothing = RevisionClient::new(revision, Server::new("nothing", "1")).await;
        for (method, params) in [
            ("no/such", json!({})),
            ("tools/list", json!({})),
            ("tools/call", json!({ "name": "a" })),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({ "uri": "note://a" })),
            ("prompts/list", json!({})),
            ("prompts/get", json!({ "name": "a" })),
            // Methods that only the server sends.
            ("roots/list", json!({})),
            ("sampling/createMessage", json!({})),
        ] {
            assert_eq!(
                nothing.code(method, params).await,
                -32601,
                "{revision} {method}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_of_the_wrong_shape_are_invalid_in_every_revision() {
    req!("base.error.invalid-params");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        for (method, params) in [
            ("tools/list", json!({ "cursor": 7 })),
            ("tools/call", json!({})),
            ("tools/call", json!({ "name": 7 })),
            ("tools/call", json!({ "name": "fail", "arguments": [] })),
            ("tools/call", json!({ "name": "fail", "arguments": "{}" })),
            ("resources/read", json!({})),
            ("resources/read", json!({ "uri": ["note://a"] })),
            ("prompts/get", json!({ "name": null })),
            ("prompts/get", json!({ "name": "broken", "arguments": 1 })),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/moon" } }),
            ),
            ("tools/list", json!({ "_meta": { "progressToken": 1.5 } })),
            ("tools/list", json!({ "_meta": { "progressToken": {} } })),
        ] {
            let shown = params.to_string();
            assert_eq!(
                client.code(method, params).await,
                -32602,
                "{revision} {method} {shown}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_internal_failure_is_reported_without_details() {
    req!(
        "resources.error.internal",
        "prompts.error.internal",
        "completion.error.internal"
    );
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let reference = json!({ "type": "ref/prompt", "name": "broken" });
        for (method, params) in [
            ("resources/read", json!({ "uri": "note://broken" })),
            ("prompts/get", json!({ "name": "broken" })),
            (
                "completion/complete",
                json!({ "ref": reference, "argument": { "name": "a", "value": "" } }),
            ),
        ] {
            let response = client.call(method, params).await;
            assert_eq!(response["error"]["code"], -32603, "{revision} {method}");
            assert!(!response.to_string().contains("secret"), "{response}");
        }
    }
}

/// Invalid stateless requests of every kind, with their error codes.
async fn modern_codes() -> Vec<i64> {
    let mut client = RevisionClient::new(MODERN, server()).await;
    let mut unsupported = modern(json!({}));
    unsupported["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let state = json!({ "name": "think", "requestState": "forged" });
    let mut codes = Vec::new();
    for (method, params) in [
        ("no/such", modern(json!({}))),
        ("ping", modern(json!({}))),
        ("tools/list", unsupported),
        ("tools/list", json!({})),
        ("tools/list", modern(json!({ "cursor": "forged" }))),
        ("tools/list", modern_with(json!({}), json!(7))),
        ("tools/call", modern(json!({ "name": "missing" }))),
        ("tools/call", modern(json!({ "name": "panics" }))),
        ("tools/call", modern(json!({ "name": "think" }))),
        ("tools/call", modern_with(state, json!({ "sampling": {} }))),
        ("resources/read", modern(json!({ "uri": "note://missing" }))),
        ("resources/read", modern(json!({ "uri": "note://broken" }))),
        ("prompts/get", modern(json!({ "name": "missing" }))),
        ("prompts/get", modern(json!({ "name": "broken" }))),
        ("completion/complete", modern(json!({ "ref": {} }))),
        ("subscriptions/listen", modern(json!({}))),
    ] {
        let response = client.peer.call(method, params).await;
        codes.push(response["error"]["code"].as_i64().unwrap());
    }
    for line in [
        "{",
        "[]",
        "7",
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
    ] {
        client.peer.send_line(line).await;
        codes.push(client.peer.next().await["error"]["code"].as_i64().unwrap());
    }
    codes
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_sees_only_codes_that_are_defined_for_it() {
    req!(
        "base.error.legacy-range-no-new",
        "base.error.legacy-range-avoid",
        "base.error.reserved-range-undefined",
        "base.error.reserved-range-meaning",
        "base.error.retired-codes"
    );

    let codes = modern_codes().await;

    let count = |code: i64| codes.iter().filter(|one| **one == code).count();
    assert_eq!(count(-32022), 1, "only for the unknown version: {codes:?}");
    assert_eq!(
        count(-32021),
        1,
        "only for the missing capability: {codes:?}"
    );
    assert_eq!(
        count(-32020),
        0,
        "ndjson lacks headers that could differ: {codes:?}"
    );
    let plain = [-32700, -32600, -32601, -32602, -32603];
    let known: usize = plain.into_iter().map(count).sum();
    assert_eq!(known + 2, codes.len(), "{codes:?}");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_handler_keeps_its_code_and_any_data() {
    req!("base.error.data-any");
    for data in [
        json!(null),
        json!(true),
        json!(1.5),
        json!("x"),
        json!([1]),
        json!({ "a": {} }),
    ] {
        let given = data.clone();
        let tool = Tool::new("own", move || {
            let error = RpcError::new(1_234, "my own").with_data(&given);
            std::future::ready(Err::<String, _>(ToolError::protocol(error)))
        });
        let mut client = RevisionClient::new(MODERN, Server::new("own", "1").tool(tool)).await;

        let response = client.call("tools/call", json!({ "name": "own" })).await;

        assert_eq!(response["error"]["code"], 1_234);
        assert_eq!(response["error"].get("data"), Some(&data));
    }
}

#[tokio::test(start_paused = true)]
async fn every_modern_result_is_complete_or_input_required() {
    req!("base.result-type.allowed-set");
    let mut client = RevisionClient::with(MODERN, server(), json!({ "sampling": {} })).await;
    for (method, params, expected) in [
        ("server/discover", json!({}), "complete"),
        ("tools/list", json!({}), "complete"),
        ("resources/list", json!({}), "complete"),
        ("resources/templates/list", json!({}), "complete"),
        ("resources/read", json!({ "uri": "note://a" }), "complete"),
        ("prompts/list", json!({}), "complete"),
        ("tools/call", json!({ "name": "fail" }), "complete"),
        ("tools/call", json!({ "name": "think" }), "input_required"),
    ] {
        let result: Value = client.result(method, params).await;
        assert_eq!(result["resultType"], expected, "{method}");
    }
}
