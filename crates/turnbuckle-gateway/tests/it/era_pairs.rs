//! Every feature between clients and servers of all eras: the result is the one without the gateway.

use serde_json::json;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{
    Server,
    testing::{ClientFeature, Combination, all_combinations, combinations_with},
};

use crate::upstreams::{ERAS, client, desk, gateway};

/// Runs a test for every client: with the server itself, and with both eras of it behind a gateway.
async fn every_pair(
    combinations: impl Iterator<Item = Combination>,
    test: impl AsyncFn(Combination, Server),
) {
    for combination in combinations {
        test(combination, desk()).await;
        for mode in ERAS {
            let gateway = gateway(mode).await;
            test(combination, gateway.server()).await;
            gateway.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_progress_logs_and_errors_pass() {
    every_pair(all_combinations(), async |combination, server| {
        let mut peer = combination.connect(server).log_level(LogLevel::Debug).await;

        let greeting = peer.call_tool("greet", json!({ "name": "Ada" })).await;
        assert_eq!(greeting.text(), "Hello, Ada!", "{combination}");
        let progress = peer.expect_notification("notifications/progress").await;
        assert_eq!(progress["total"], 2.0, "{combination}");
        let logged = peer.expect_notification("notifications/message").await;
        assert_eq!(logged["data"], "greeting", "{combination}");

        let failure = peer.call_tool("greet", json!({ "name": "" })).await;
        assert_eq!(
            failure.expect_tool_error(),
            "the name is empty",
            "{combination}"
        );
        let missing = peer
            .request("tools/call", json!({ "name": "missing" }))
            .await;
        missing.expect_error(-32602);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn lists_prompts_and_resources_pass() {
    every_pair(all_combinations(), async |combination, server| {
        let mut peer = combination.connect(server).await;

        let tools = peer.request("tools/list", json!({})).await;
        let tools = tools.expect_result()["tools"].as_array().unwrap().clone();
        let names: Vec<_> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            ["greet", "sign", "roots", "sleep", "change"],
            "{combination}"
        );
        let resources = peer.request("resources/list", json!({})).await;
        assert_eq!(
            resources.expect_result()["resources"][0]["uri"],
            "desk://note"
        );
        let read = peer
            .request("resources/read", json!({ "uri": "desk://note" }))
            .await;
        assert_eq!(
            read.expect_result()["contents"][0]["text"],
            "buy milk",
            "{combination}"
        );
        let prompt = peer
            .request("prompts/get", json!({ "name": "letter" }))
            .await;
        let message = &prompt.expect_result()["messages"][0];
        assert_eq!(
            message["content"]["text"], "Write a letter.",
            "{combination}"
        );
        let cursor = peer.request("tools/list", json!({ "cursor": "x" })).await;
        cursor.expect_error(-32602);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_resource_has_the_error_code_of_the_client() {
    every_pair(all_combinations(), async |combination, server| {
        let mut peer = combination.connect(server).await;
        let code = if combination.revision.is_stateless() {
            -32602
        } else {
            -32002
        };
        let read = peer
            .request("resources/read", json!({ "uri": "desk://none" }))
            .await;
        read.expect_error(code);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn elicitation_and_sampling_pass() {
    let combinations = combinations_with(ClientFeature::FormElicitation);
    every_pair(combinations, async |combination, server| {
        let mut peer = combination.connect(server).respond_with(client).await;
        let response = peer.call_tool("sign", json!({})).await;
        assert_eq!(response.text(), "Yours, Ada", "{combination}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_capability_has_the_error_of_the_client() {
    every_pair(all_combinations(), async |combination, server| {
        let mut peer = combination.connect(server).capabilities(json!({})).await;
        let signed = peer.call_tool("sign", json!({})).await;
        if combination.revision.is_stateless() && signed.error().is_some() {
            signed.expect_error(-32021);
        } else {
            let message = signed.expect_tool_error();
            assert!(message.contains("elicitation"), "{combination}: {message}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn roots_pass() {
    let combinations = combinations_with(ClientFeature::Roots);
    every_pair(combinations, async |combination, server| {
        let mut peer = combination.connect(server).respond_with(client).await;
        let response = peer.call_tool("roots", json!({})).await;
        assert_eq!(response.text(), "file:///home/ada", "{combination}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn changes_pass() {
    every_pair(all_combinations(), async |combination, server| {
        let mut peer = combination.connect(server).await;
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["desk://note"] });
        peer.listen(filter).await;

        let changed = peer.call_tool("change", json!({})).await;
        assert_eq!(changed.text(), "changed", "{combination}");
        peer.expect_notification("notifications/tools/list_changed")
            .await;
        let updated = peer
            .expect_notification("notifications/resources/updated")
            .await;
        assert_eq!(updated["uri"], "desk://note", "{combination}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_declares_nothing_is_asked_nothing() {
    every_pair(all_combinations(), async |combination, server| {
        let mut peer = combination.connect(server).capabilities(json!({})).await;
        let response = peer.call_tool("roots", json!({})).await;
        let failed = response.error().is_some() || response.expect_result()["isError"] == true;
        assert!(failed, "{combination}: {:?}", response.json());
        let messages = peer.messages();
        assert!(
            messages
                .iter()
                .all(|message| message.method() != Some("roots/list"))
        );
    })
    .await;
}
