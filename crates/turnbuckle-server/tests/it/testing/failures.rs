//! Failure messages of the test kit.

use std::time::Duration;

use serde_json::json;
use turnbuckle_server::testing::Peer;

use crate::testing::test_server::test_server;

/// Returns the message of a failing test.
async fn failure(test: impl Future<Output = ()> + Send + 'static) -> String {
    let failed = tokio::spawn(test).await.expect_err("the test fails");
    let panic = failed.into_panic();
    *panic.downcast::<String>().expect("it says why")
}

#[tokio::test(start_paused = true)]
async fn a_missing_message_is_reported_with_all_received_ones() {
    let message = failure(async {
        let mut peer = Peer::connect(test_server()).await;
        peer.call_tool("sum", json!({})).await;
        peer.expect_notification("notifications/nothing").await;
    });

    let message = message.await;

    assert_eq!(
        message.lines().collect::<Vec<_>>(),
        [
            "notifications/nothing was not received within 100s",
            "",
            "over ndjson, 2026-07-28:",
            r#"→ tools/call #1 {"name":"sum","arguments":{},"_meta":{"progressToken":1}}"#,
            r#"← #1 {"content":[{"type":"text","text":"{\"sum\":3}"}],"structuredContent":{"sum":3},"resultType":"complete"}"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_test_client_fails_after_its_timeout() {
    let message = failure(async {
        let connect = Peer::connect(test_server()).timeout(Duration::from_secs(5));
        connect.await.call_tool("sleep", json!({})).await;
    });

    let message = message.await;

    assert!(
        message.starts_with("the response to #1 was not received within 5s"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_request_without_a_responder_fails_at_once() {
    let message = failure(async {
        let connect = Peer::connect(test_server()).legacy("2025-11-25");
        let mut peer = connect.capabilities(json!({ "elicitation": {} })).await;
        peer.call_tool("sign", json!({})).await;
    });

    let message = message.await;

    assert!(
        message.starts_with(r#"the server sent "elicitation/create", but no responder is set"#),
        "{message}"
    );
    assert!(message.contains("← elicitation/create ?1"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_unexpected_response_is_shown() {
    for (code, expected) in [
        (-32602, "expected error -32602, got error -32601"),
        (-32601, ""),
    ] {
        let message = failure(async move {
            let mut peer = Peer::connect(test_server()).legacy("2025-11-25").await;
            let response = peer.request("nothing/there", json!({})).await;
            response.expect_error(code);
            response.expect_result();
        });
        let message = message.await;
        let expected = match expected {
            "" => "expected a result, got an error",
            expected => expected,
        };
        assert!(message.starts_with(expected), "{message}");
        assert!(message.contains("→ nothing/there #2"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn unread_messages_fail_an_expectation_of_no_message() {
    let message = failure(async {
        let mut peer = Peer::connect(test_server()).await;
        peer.call_tool("greet", json!({ "name": "Ada" })).await;
        peer.expect_no_message().await;
    });

    let message = message.await;

    assert!(
        message.starts_with("expected no message, got `notifications/progress`"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_is_explained() {
    let message = failure(async {
        let (near, far) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(near);
        let mut peer = turnbuckle_server::testing::PeerBuilder::streams(reader, writer).await;
        drop(far);
        peer.next().await;
    });

    assert!(
        message.await.starts_with(
            "the server closed the connection\n\nover ndjson, 2026-07-28:\nno messages"
        )
    );
}
