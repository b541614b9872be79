//! The test client, on every combination.

use std::time::Duration;

use serde_json::json;
use turnbuckle_protocol::{Revision, types::LogLevel};
use turnbuckle_server::{
    Context, Server, Tool, ToolError,
    ndjson::serve,
    testing::{
        ChangeRecorder, ClientFeature, Combination, MessageDirection, Peer, PeerBuilder,
        TransportKind, all_combinations, combinations_with,
    },
};
use turnbuckle_store::ServerChange;

use crate::testing::test_server::{Sum, client, test_server};

#[tokio::test(start_paused = true)]
async fn a_tool_is_called_in_the_newest_revision() {
    let mut peer = Peer::connect(test_server()).await;

    let response = peer.call_tool("greet", json!({ "name": "Ada" })).await;

    assert_eq!(response.text(), "Hello, Ada!");
    assert_eq!(peer.revision(), Revision::MODERN);
}

#[tokio::test(start_paused = true)]
async fn results_errors_and_notifications_are_equal_in_every_combination() {
    for combination in all_combinations() {
        let mut peer = combination
            .connect(test_server())
            .log_level(LogLevel::Debug)
            .await;

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
        assert_eq!(peer.notifications().len(), 2, "{combination}");

        peer.request("nothing/there", json!({}))
            .await
            .expect_error(-32601);
        peer.expect_no_message().await;
        peer.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn client_requests_are_answered_in_every_mode() {
    for combination in combinations_with(ClientFeature::FormElicitation) {
        let mut peer = combination
            .connect(test_server())
            .respond_with(client)
            .await;
        let response = peer.call_tool("sign", json!({})).await;
        assert_eq!(response.text(), "Yours, Ada", "{combination}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_are_received_in_every_combination() {
    for combination in all_combinations() {
        let server = test_server();
        let mut changes = ChangeRecorder::new(&server);
        let mut peer = combination.connect(server).await;
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["desk://note"] });
        peer.listen(filter).await;

        peer.call_tool("rename", json!({})).await;

        peer.expect_notification("notifications/tools/list_changed")
            .await;
        let updated = peer
            .expect_notification("notifications/resources/updated")
            .await;
        assert_eq!(updated["uri"], "desk://note", "{combination}");
        let uri = "desk://note".into();
        assert_eq!(
            changes.take(),
            [
                ServerChange::ToolsChanged,
                ServerChange::ResourceUpdated { uri }
            ]
        );
        assert!(changes.take().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_cancelled_in_every_combination() {
    for combination in all_combinations() {
        let mut peer = combination.connect(test_server()).await;
        let id = peer.start("tools/call", json!({ "name": "sleep" })).await;
        peer.cancel(id).await;
        tokio::time::sleep(Duration::from_secs(90)).await;
        peer.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_run_concurrently_in_every_combination() {
    for combination in all_combinations() {
        let mut peer = combination.connect(test_server()).await;
        let slow = peer.start("tools/call", json!({ "name": "sleep" })).await;
        let sum = peer.call_tool("sum", json!({})).await.text();
        assert_eq!(sum, r#"{"sum":3}"#, "{combination}");
        assert_eq!(peer.finish(slow).await.text(), "awake", "{combination}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_started_call_reports_its_progress_in_every_combination() {
    async fn count(cx: Context) -> Result<String, ToolError> {
        cx.progress(1, 2).await;
        cx.progress(2, 2).await;
        Ok("counted".to_owned())
    }
    for combination in all_combinations() {
        let server = Server::new("counter", "1").tool(Tool::new("count", count));
        let mut peer = combination.connect(server).await;

        let first = peer.start_tool("count", json!({})).await;
        let second = peer.start_tool("count", json!({})).await;

        for id in [second, first] {
            assert_eq!(
                peer.expect_progress(id).await["progress"],
                1,
                "{combination}"
            );
            assert_eq!(
                peer.expect_progress(id).await["progress"],
                2,
                "{combination}"
            );
            assert_eq!(peer.finish(id).await.text(), "counted", "{combination}");
        }
        peer.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_asks_only_in_the_combinations_with_the_feature() {
    async fn list_roots(cx: Context) -> Result<String, ToolError> {
        let roots = cx.roots("roots").await?;
        Ok(roots.len().to_string())
    }
    for combination in combinations_with(ClientFeature::Roots) {
        let server = Server::new("roots", "1").tool(Tool::new("roots", list_roots));
        let mut peer = combination
            .connect(server)
            .respond_with(|_, _| json!({ "roots": [] }))
            .await;
        let response = peer.call_tool("roots", json!({})).await;
        assert_eq!(response.text(), "0", "{combination}");
    }
    let with_forms =
        |combination: &Combination| combination.supports(ClientFeature::FormElicitation);
    for combination in all_combinations().filter(|combination| !with_forms(combination)) {
        let mut peer = combination
            .connect(test_server())
            .respond_with(client)
            .await;
        peer.call_tool("sign", json!({})).await.expect_tool_error();
    }
    let counts = ClientFeature::ALL.map(|feature| combinations_with(feature).count());
    assert_eq!(counts, [12, 12, 4, 6, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_call_as_a_task_is_polled_until_it_ends() {
    for combination in
        all_combinations().filter(|combination| combination.revision >= Revision::V2025_11_25)
    {
        let mut peer = combination
            .connect(test_server())
            .tasks()
            .respond_with(client)
            .await;
        let response = peer.call_tool("sign", json!({})).await;
        assert_eq!(response.text(), "Yours, Ada", "{combination}");
        let recorded = peer.transcript();
        assert!(recorded.contains(r#""taskId":"task-1""#), "{recorded}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_request_can_be_answered_manually() {
    for transport in TransportKind::ALL {
        let combination = Combination::new(transport, Revision::LATEST_LEGACY);
        let abilities = json!({ "elicitation": {}, "sampling": {} });
        let mut peer = combination
            .connect(test_server())
            .capabilities(abilities)
            .await;
        let id = peer.start("tools/call", json!({ "name": "sign" })).await;

        let client_request = peer.expect_request("elicitation/create").await;
        assert_eq!(client_request.params["message"], "Who signs?");
        peer.respond(&client_request, json!({ "action": "decline" }))
            .await;
        let client_request = peer.expect_request("sampling/createMessage").await;
        peer.respond_error(&client_request, -1, "not today").await;

        let failure = peer.finish(id).await.expect_tool_error();
        assert!(failure.contains("not today"), "{combination}: {failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_requests_are_visible_without_a_responder() {
    let abilities = json!({ "elicitation": {}, "sampling": {} });
    let mut peer = Peer::connect(test_server()).capabilities(abilities).await;

    let asks = peer.call_tool("sign", json!({})).await;

    let client_requests = &asks.expect_result()["inputRequests"];
    assert_eq!(client_requests["name"]["method"], "elicitation/create");
}

#[tokio::test]
async fn time_need_not_be_paused() {
    for combination in all_combinations() {
        let mut peer = combination.connect(test_server()).await;
        let sum = peer.call_tool("sum", json!({})).await.text();
        assert_eq!(sum, r#"{"sum":3}"#, "{combination}");
    }
}

#[tokio::test(start_paused = true)]
async fn structured_content_is_read_into_its_type() {
    let mut peer = Peer::connect(test_server()).await;
    let sum: Sum = peer.call_tool("sum", json!({})).await.structured();
    assert_eq!(sum.sum, 3);
}

#[tokio::test(start_paused = true)]
async fn the_test_client_connects_to_any_byte_streams() {
    let (near, far) = tokio::io::duplex(1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(serve(reader, writer, test_server()));
    let (reader, writer) = tokio::io::split(near);

    let mut peer = PeerBuilder::streams(reader, writer)
        .legacy("2024-11-05")
        .await;

    assert_eq!(
        peer.call_tool("sum", json!({})).await.text(),
        r#"{"sum":3}"#
    );
}

#[tokio::test(start_paused = true)]
async fn every_message_is_recorded_unchanged() {
    let mut peer = Peer::connect(test_server()).legacy("2025-11-25").await;
    peer.call_tool("greet", json!({ "name": "Ada" })).await;

    let messages = peer.messages();

    let directions: Vec<_> = messages.iter().map(|message| message.direction).collect();
    let (sent, got) = (MessageDirection::Sent, MessageDirection::Received);
    assert_eq!(directions, [sent, got, sent, sent, got, got, got]);
    assert_eq!(messages[2].method(), Some("notifications/initialized"));
    assert!(messages[4].is_notification());
    assert_eq!(messages[0].json["params"]["protocolVersion"], "2025-11-25");
}

#[tokio::test(start_paused = true)]
async fn a_recorded_session_is_readable() {
    let mut peer = Peer::connect(test_server())
        .legacy("2025-06-18")
        .respond_with(client)
        .await;
    peer.call_tool("sign", json!({})).await;

    let recorded = peer.transcript();
    let after_handshake: Vec<_> = recorded.lines().skip(2).collect();

    assert_eq!(
        after_handshake,
        [
            r#"→ notifications/initialized"#,
            r#"→ tools/call #2 {"name":"sign","arguments":{},"_meta":{"progressToken":2}}"#,
            r#"← elicitation/create ?1 {"_meta":{"progressToken":"?1"},"message":"Who signs?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","description":"Your name."}},"required":["name"]}}"#,
            r#"→ ?1 {"action":"accept","content":{"name":"Ada"}}"#,
            r#"← sampling/createMessage ?2 {"_meta":{"progressToken":"?2"},"messages":[{"role":"user","content":{"type":"text","text":"Dear all"}}],"maxTokens":1000}"#,
            r#"→ ?2 {"role":"assistant","model":"m","content":{"type":"text","text":"Yours"}}"#,
            r#"← #2 {"content":[{"type":"text","text":"Yours, Ada"}]}"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn recorded_round_trips_are_readable() {
    let refuse = |_: &str, _: &serde_json::Value| json!({ "action": "decline" });
    let abilities = json!({ "elicitation": {} });
    let connect = Peer::connect(test_server()).capabilities(abilities);
    let mut peer = connect.respond_with(refuse).await;
    peer.call_tool("sign", json!({})).await;
    peer.request("tools/call", json!({ "name": "missing" }))
        .await;

    assert_eq!(
        peer.transcript().lines().collect::<Vec<_>>(),
        [
            r#"→ tools/call #1 {"name":"sign","arguments":{},"_meta":{"progressToken":1}}"#,
            r#"← #1 {"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"message":"Who signs?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","description":"Your name."}},"required":["name"]}}}},"requestState":"…"}"#,
            r#"→ tools/call #2 {"name":"sign","arguments":{},"_meta":{"progressToken":1},"inputResponses":{"name":{"action":"decline"}},"requestState":"…"}"#,
            r#"← #2 error {"code":-32021,"message":"the client does not support `sampling`","data":{"requiredCapabilities":{"sampling":{}}}}"#,
            r#"→ tools/call #3 {"name":"missing"}"#,
            r#"← #3 error {"code":-32602,"message":"unknown tool `missing`"}"#,
        ]
    );
}
