//! Every feature between clients and servers of all eras: the result is the one without the gateway.

use serde_json::json;
use turnbuckle_gateway::testing::{every_pair, every_pair_with};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{
    Context, Prompt, ResourceTemplate, Server, Variables,
    testing::{ClientFeature, all_combinations, combinations_with},
};

use crate::upstreams::{client, desk};

#[tokio::test(start_paused = true)]
async fn calls_progress_logs_and_errors_pass() {
    every_pair_with(all_combinations(), desk, async |peer, pair| {
        let mut peer = peer.log_level(LogLevel::Debug).await;

        let greeting = peer.call_tool("greet", json!({ "name": "Ada" })).await;
        assert_eq!(greeting.text(), "Hello, Ada!", "{pair}");
        let progress = peer.expect_notification("notifications/progress").await;
        assert_eq!(progress["total"], 2.0, "{pair}");
        let logged = peer.expect_notification("notifications/message").await;
        assert_eq!(logged["data"], "greeting", "{pair}");

        let failure = peer.call_tool("greet", json!({ "name": "" })).await;
        assert_eq!(failure.expect_tool_error(), "the name is empty", "{pair}");
        let missing = peer
            .request("tools/call", json!({ "name": "missing" }))
            .await;
        missing.expect_error(-32602);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn lists_prompts_and_resources_pass() {
    every_pair_with(all_combinations(), desk, async |peer, pair| {
        let mut peer = peer.await;

        let tools = peer.request("tools/list", json!({})).await;
        let tools = tools.expect_result()["tools"].as_array().unwrap().clone();
        let names: Vec<_> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            ["greet", "sign", "roots", "sleep", "change"],
            "{pair}"
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
            "{pair}"
        );
        let prompt = peer
            .request("prompts/get", json!({ "name": "letter" }))
            .await;
        let message = &prompt.expect_result()["messages"][0];
        assert_eq!(message["content"]["text"], "Write a letter.", "{pair}");
        let cursor = peer.request("tools/list", json!({ "cursor": "x" })).await;
        cursor.expect_error(-32602);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_resource_has_the_error_code_of_the_client() {
    every_pair_with(all_combinations(), desk, async |peer, pair| {
        let mut peer = peer.await;
        let code = if pair.client.revision.is_stateless() {
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
    every_pair_with(combinations, desk, async |peer, pair| {
        let mut peer = peer.respond_with(client).await;
        let response = peer.call_tool("sign", json!({})).await;
        assert_eq!(response.text(), "Yours, Ada", "{pair}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_capability_has_the_error_of_the_client() {
    every_pair_with(all_combinations(), desk, async |peer, pair| {
        let mut peer = peer.capabilities(json!({})).await;
        let signed = peer.call_tool("sign", json!({})).await;
        if pair.client.revision.is_stateless() && signed.error().is_some() {
            signed.expect_error(-32021);
        } else {
            let message = signed.expect_tool_error();
            assert!(message.contains("elicitation"), "{pair}: {message}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn roots_pass() {
    let combinations = combinations_with(ClientFeature::Roots);
    every_pair_with(combinations, desk, async |peer, pair| {
        let mut peer = peer.respond_with(client).await;
        let response = peer.call_tool("roots", json!({})).await;
        assert_eq!(response.text(), "file:///home/ada", "{pair}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn changes_pass() {
    every_pair_with(all_combinations(), desk, async |peer, pair| {
        let mut peer = peer.await;
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["desk://note"] });
        peer.listen(filter).await;

        let changed = peer.call_tool("change", json!({})).await;
        assert_eq!(changed.text(), "changed", "{pair}");
        peer.expect_notification("notifications/tools/list_changed")
            .await;
        let updated = peer
            .expect_notification("notifications/resources/updated")
            .await;
        assert_eq!(updated["uri"], "desk://note", "{pair}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_declares_nothing_is_asked_nothing() {
    every_pair_with(all_combinations(), desk, async |peer, pair| {
        let mut peer = peer.capabilities(json!({})).await;
        let response = peer.call_tool("roots", json!({})).await;
        let failed = response.error().is_some() || response.expect_result()["isError"] == true;
        assert!(failed, "{pair}: {:?}", response.json());
        let messages = peer.messages();
        assert!(
            messages
                .iter()
                .all(|message| message.method() != Some("roots/list"))
        );
    })
    .await;
}

fn library() -> Server {
    let text = async |_: Variables, _: Context| Ok("");
    Server::new("library", "1.0.0")
        .prompt(
            Prompt::new("summary", async || Ok("Summarize.".to_owned()))
                .complete("style", ["short", "shorter", "long"]),
        )
        .template(
            ResourceTemplate::new("book://{title}", "book", text)
                .complete("title", ["emma", "emil", "ulysses"]),
        )
}

#[tokio::test(start_paused = true)]
async fn completion_values_pass() {
    let prompt = json!({ "type": "ref/prompt", "name": "summary" });
    let template = json!({ "type": "ref/resource", "uri": "book://{title}" });
    every_pair(library, async |peer, pair| {
        let mut peer = peer.await;
        let mut values = Vec::new();
        for (reference, argument, value) in [
            (&prompt, "style", "sh"),
            (&prompt, "style", ""),
            (&template, "title", "em"),
            (&template, "title", "x"),
        ] {
            let argument = json!({ "name": argument, "value": value });
            let params = json!({ "ref": reference, "argument": argument });
            let response = peer.request("completion/complete", params).await;
            values.push(response.expect_result()["completion"].clone());
        }
        assert_eq!(values[0]["values"], json!(["short", "shorter"]), "{pair}");
        assert_eq!(values[2]["values"], json!(["emma", "emil"]), "{pair}");
        values
    })
    .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "with a gateway the result differs")]
async fn a_result_that_depends_on_the_gateway_is_found() {
    every_pair(desk, async |peer, _| {
        let mut peer = peer.await;
        let tools = peer.request("tools/list", json!({})).await;
        // The name of the server, which the gateway replaces by its own.
        tools.expect_result()["_meta"].clone()
    })
    .await;
}
