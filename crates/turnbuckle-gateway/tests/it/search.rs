//! Search mode: four tools instead of all.

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{Gateway, RunningGateway};
use turnbuckle_server::testing::{ClientFeature, Peer, all_combinations, combinations_with};

use crate::{
    scripts::{Script, members, text},
    upstreams::{ERAS, client, desk, upstream},
};

fn notes() -> Script {
    Script::new(|method, params| match method {
        "tools/list" => json!({ "tools": [
            { "name": "find_note", "description": "Find notes by words", "inputSchema": { "type": "object" },
              "annotations": { "readOnlyHint": true } },
            { "name": "delete_note", "description": "Delete a note", "inputSchema": { "type": "object" } },
            { "name": "hidden_note", "description": "Delete notes", "inputSchema": { "type": "object" } },
        ] }),
        "tools/call" => text(&format!("{} {}", params["name"], params["arguments"])),
        _ => Value::Null,
    })
}

async fn gateway(mode: LifecycleMode) -> RunningGateway {
    let gateway = Gateway::new("gateway", "1")
        .upstream(upstream("desk", mode, desk()))
        .upstream(notes().upstream("notes").deny(["hidden_*"]))
        .search_mode(true);
    gateway.start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn tools_are_found_described_and_called() {
    for combination in all_combinations() {
        let gateway = gateway(LifecycleMode::Modern).await;
        let mut peer = combination.connect(gateway.server()).await;
        let listed = peer.request("tools/list", json!({})).await;
        let names = members(listed.expect_result(), "tools", "name");
        let expected = [
            "search_tools",
            "describe_tool",
            "call_read_only_tool",
            "call_tool",
        ];
        assert_eq!(names, expected, "{combination}");

        let found = peer
            .call_tool("search_tools", json!({ "query": "Delete a NOTE" }))
            .await;
        let found: Value = serde_json::from_str(&found.text()).unwrap();
        let names = members(&found, "tools", "name");
        assert_eq!(
            names,
            ["notes_delete_note", "notes_find_note"],
            "{combination}"
        );
        assert_eq!(found["tools"][1]["readOnly"], true, "{combination}");

        let described = peer
            .call_tool("describe_tool", json!({ "name": "notes_find_note" }))
            .await;
        let described: Value = serde_json::from_str(&described.text()).unwrap();
        assert_eq!(described["name"], "notes_find_note", "{combination}");
        assert_eq!(described["inputSchema"]["type"], "object", "{combination}");

        let call = json!({ "name": "notes_find_note", "arguments": { "n": 1.5 } });
        for tool in ["call_read_only_tool", "call_tool"] {
            let called = peer.call_tool(tool, call.clone()).await;
            assert_eq!(
                called.text(),
                r#""find_note" {"n":1.5}"#,
                "{combination} {tool}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_read_only_needs_the_other_call() {
    let gateway = gateway(LifecycleMode::Modern).await;
    let mut peer = Peer::connect(gateway.server()).await;
    let call = json!({ "name": "notes_delete_note" });
    let refused = peer.call_tool("call_read_only_tool", call.clone()).await;
    assert!(refused.expect_tool_error().contains("use `call_tool`"));
    let called = peer.call_tool("call_tool", call).await;
    assert_eq!(called.text(), r#""delete_note" {}"#);
}

#[tokio::test(start_paused = true)]
async fn the_policy_applies_to_the_tool_that_is_called() {
    let gateway = gateway(LifecycleMode::Modern).await;
    let mut peer = Peer::connect(gateway.server()).await;
    let hidden = json!({ "name": "call_tool", "arguments": { "name": "notes_hidden_note" } });
    peer.request("tools/call", hidden)
        .await
        .expect_error(-32602);
    for tool in ["describe_tool", "call_read_only_tool"] {
        let refused = peer
            .call_tool(tool, json!({ "name": "notes_hidden_note" }))
            .await;
        assert!(
            refused.expect_tool_error().contains("unknown tool"),
            "{tool}"
        );
    }
    let direct = json!({ "name": "notes_find_note" });
    peer.request("tools/call", direct)
        .await
        .expect_error(-32602);
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_are_explained() {
    let gateway = gateway(LifecycleMode::Modern).await;
    let mut peer = Peer::connect(gateway.server()).await;
    for (tool, arguments, expected) in [
        ("search_tools", json!({}), "`query` is missing"),
        (
            "search_tools",
            json!({ "query": 7 }),
            "`query` must be a string",
        ),
        ("search_tools", json!({ "query": " " }), "`query` is empty"),
        (
            "search_tools",
            json!({ "query": "x", "limit": 0 }),
            "integer from 1 to 50",
        ),
        ("describe_tool", json!({ "name": "x" }), "unknown tool `x`"),
        ("call_tool", json!({ "arguments": {} }), "`name` is missing"),
        (
            "call_tool",
            json!({ "name": "notes_find_note", "arguments": [] }),
            "must be an object",
        ),
    ] {
        let failed = peer.call_tool(tool, arguments).await;
        let message = failed.expect_tool_error();
        assert!(message.contains(expected), "{tool}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_and_client_requests_pass_through_a_call() {
    for combination in combinations_with(ClientFeature::FormElicitation) {
        for mode in ERAS {
            let gateway = gateway(mode).await;
            let mut peer = combination
                .connect(gateway.server())
                .respond_with(client)
                .await;
            let greeting = json!({ "name": "desk_greet", "arguments": { "name": "Ada" } });
            let greeting = peer.call_tool("call_tool", greeting).await;
            assert_eq!(greeting.text(), "Hello, Ada!", "{combination}");
            peer.expect_notification("notifications/progress").await;
            let signed = peer
                .call_tool("call_tool", json!({ "name": "desk_sign" }))
                .await;
            assert_eq!(signed.text(), "Yours, Ada", "{combination}");
        }
    }
}
