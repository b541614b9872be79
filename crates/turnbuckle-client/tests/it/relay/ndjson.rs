//! Relayed calls on ndjson, in both eras.

use std::{borrow::Cow, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle_client::{
    Anomaly, CallError, Client, FormRequest, Roots, Timeouts, TransportError,
    relay::{RelayRequest, RelayResult, RelayedClient},
};
use turnbuckle_protocol::{
    Revision, RpcError,
    types::{ClientCapabilities, ElicitationCapability, Implementation, LogLevel, ResultType},
};

use crate::{
    relay::{Event, Events, recording},
    servers::mock_ndjson::{EVERY, LEGACY, MODERN, MockReply, MockServer},
};

const LATEST_LEGACY: &str = "2025-11-25";

async fn connect(server: &MockServer) -> (Client, Events) {
    let (builder, events) = recording(Client::builder("relay", "2"), None);
    (server.connect_with(builder).await, events)
}

async fn relay(client: &Client, request: RelayRequest) -> Result<RelayResult, CallError> {
    client.relay(client.relay_id(), &request).await
}

/// Returns the last line that the server has received.
fn last_line(server: &MockServer) -> String {
    let received = String::from_utf8(server.received_bytes()).unwrap();
    received.lines().last().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_result_is_returned_byte_for_byte() {
    const RESULT: &str =
        r#"{ "b" : 1.50, "content":[],"a":{"\u00e9":1e400},"_meta":{"x/y" :null}}"#;
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.on("tools/call", |request| {
            let id = &request["id"];
            MockReply::Raw(format!(
                r#"{{"jsonrpc":"2.0","result":{RESULT},"id":{id}}}"#
            ))
        });
        let (client, _events) = connect(&server).await;

        let result = relay(&client, RelayRequest::new("tools/call", r#"{"name":"a"}"#)).await;

        let result = result.unwrap();
        assert_eq!(result.json(), RESULT, "{revision}");
        assert_eq!(*result.kind(), ResultType::Complete, "{revision}");
        assert_eq!(result.revision(), revision.parse::<Revision>().unwrap());
        assert_eq!(result.into_bytes(), RESULT, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_and_meta_are_sent_byte_for_byte_on_one_line() {
    let server = MockServer::legacy(LATEST_LEGACY);
    server.respond("tools/call", json!({}));
    let (client, _events) = connect(&server).await;
    let mut request = RelayRequest::new("tools/call", "\n{ \"name\":\"a\",\r\n\"x\": 1.0}");
    request.meta = r#""b" : 1.50,"a":{"\u00e9":[ ]}"#.to_owned();
    request.progress = true;
    let id = client.relay_id();

    client.relay(id, &request).await.unwrap();

    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{{"progressToken":{id},"b" : 1.50,"a":{{"\u00e9":[ ]}}}},"name":"a",  "x": 1.0}}}}"#
    );
    assert_eq!(last_line(&server), expected);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_meta_has_only_its_parameters() {
    let server = MockServer::legacy(LATEST_LEGACY);
    server.respond("tools/list", json!({ "tools": [] }));
    let (client, _events) = connect(&server).await;
    let id = client.relay_id();

    client
        .relay(id, &RelayRequest::new("tools/list", " {} "))
        .await
        .unwrap();

    let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{}}}}"#);
    assert_eq!(last_line(&server), expected);
}

#[tokio::test(start_paused = true)]
async fn a_modern_request_declares_its_own_client_and_capabilities() {
    let server = MockServer::modern();
    server.respond("tools/call", json!({}));
    let (client, _events) = connect(&server).await;
    let mut request = RelayRequest::new("tools/call", r#"{"name":"a"}"#);
    let capabilities = ClientCapabilities::new().elicitation(ElicitationCapability::default());
    request.client = Some(RelayedClient::new(
        Implementation::new("front", "7"),
        capabilities,
    ));
    request.log_level = Some(LogLevel::Warning);
    request.meta = r#""traceparent":"kept""#.to_owned();

    relay(&client, request).await.unwrap();
    relay(&client, RelayRequest::new("tools/call", r#"{"name":"a"}"#))
        .await
        .unwrap();

    let own = server.next("tools/call").await;
    assert_eq!(
        own["params"]["_meta"],
        json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": "front", "version": "7" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
            "io.modelcontextprotocol/logLevel": "warning",
            "traceparent": "kept",
        })
    );
    let common = server.next("tools/call").await;
    assert_eq!(
        common["params"]["_meta"],
        json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": "relay", "version": "2" },
            "io.modelcontextprotocol/clientCapabilities": { "roots": {} },
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_legacy_request_declares_nothing() {
    let server = MockServer::legacy(LATEST_LEGACY);
    server.respond("tools/call", json!({}));
    let (client, _events) = connect(&server).await;
    let mut request = RelayRequest::new("tools/call", r#"{"name":"a"}"#);
    let info = Implementation::new("front", "7");
    request.client = Some(RelayedClient::new(info, ClientCapabilities::new()));
    request.log_level = Some(LogLevel::Warning);

    relay(&client, request).await.unwrap();

    let call = server.next("tools/call").await;
    assert_eq!(call["params"], json!({ "name": "a" }));
}

#[tokio::test(start_paused = true)]
async fn exactly_the_capabilities_of_the_relay_are_declared_in_initialize() {
    let server = MockServer::legacy(LATEST_LEGACY);
    let builder = Client::builder("relay", "2")
        .roots(Roots::new(["file:///a"]).unwrap())
        .on_form_elicitation(|form: FormRequest| async move { form.accept_defaults() });
    let (builder, _events) = recording(builder, None);

    let _client = server.connect_with(builder).await;

    let initialize = server.next("initialize").await;
    assert_eq!(initialize["params"]["capabilities"], json!({ "roots": {} }));
}

#[tokio::test(start_paused = true)]
async fn a_server_request_and_its_response_pass_raw() {
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let response = Ok("{\"roots\": [],\n\"x/y\":1.50}".to_owned());
        let (builder, mut events) = recording(Client::builder("relay", "2"), Some(response));
        let _client = server.connect_with(builder).await;

        let params = r#"{"later":1.50, "_meta":{"a" :1}}"#;
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":"x","method":"new/thing","params":{params}}}"#);
        server.send_line(&request).await;
        server.next_response("x").await;

        let sent = r#"{"jsonrpc":"2.0","id":"x","result":{"roots": [], "x/y":1.50}}"#;
        assert_eq!(last_line(&server), sent);
        let expected = Event::Request("new/thing".to_owned(), params.to_owned(), None);
        assert_eq!(events.take(), [expected]);

        server
            .send_line(r#"{"jsonrpc":"2.0","id":"y","method":"roots/list"}"#)
            .await;
        server.next_response("y").await;

        let expected = Event::Request("roots/list".to_owned(), "{}".to_owned(), None);
        assert_eq!(events.take(), [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_response_keeps_its_code_message_and_data() {
    let server = MockServer::legacy(LATEST_LEGACY);
    let mut error = RpcError::new(-1, "declined");
    error.data = Some(json!({ "reason": ["user", 1] }));
    let (builder, _events) = recording(Client::builder("relay", "2"), Some(Err(error)));
    let _client = server.connect_with(builder).await;

    let response = server
        .call_client("sampling/createMessage", json!({}))
        .await;

    assert_eq!(
        response["error"],
        json!({ "code": -1, "message": "declined", "data": { "reason": ["user", 1] } })
    );
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_without_the_handler() {
    let server = MockServer::legacy(LATEST_LEGACY);
    let (_client, mut events) = connect(&server).await;

    let response = server.call_client("ping", json!({})).await;

    assert_eq!(response["result"], json!({}));
    assert_eq!(events.take(), []);
}

#[tokio::test(start_paused = true)]
async fn a_server_request_is_dropped_when_the_server_cancels_it() {
    let server = MockServer::legacy(LATEST_LEGACY);
    let (_client, mut events) = connect(&server).await;

    let id = server.request("elicitation/create", json!({})).await;
    assert!(matches!(events.next().await, Event::Request(..)));
    let params = json!({ "requestId": id });
    server
        .notify("notifications/cancelled", params.clone())
        .await;

    let method = "notifications/cancelled".to_owned();
    let expected = Event::Notification(method, params.to_string(), None);
    assert_eq!(events.next().await, expected);
    assert_eq!(events.next().await, Event::Dropped);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_drops_server_requests_and_is_reported_once() {
    let server = MockServer::legacy(LATEST_LEGACY);
    let (client, mut events) = connect(&server).await;
    server.request("elicitation/create", json!({})).await;
    assert!(matches!(events.next().await, Event::Request(..)));

    server.close().await;

    let mut ended = [events.next().await, events.next().await];
    ended.sort_by_key(|event| *event == Event::End);
    assert_eq!(ended, [Event::Dropped, Event::End]);
    client.close().await;
    assert_eq!(events.take(), []);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_handler_becomes_an_internal_error() {
    struct Panics;
    impl turnbuckle_client::relay::RelayHandler for Panics {
        fn on_request(
            &self,
            _: turnbuckle_client::relay::ServerRequest,
        ) -> std::pin::Pin<Box<dyn Future<Output = Result<String, RpcError>> + Send>> {
            panic!("a test of a panic")
        }
        fn on_notification(&self, _: turnbuckle_client::relay::ServerNotification<'_>) {
            panic!("a test of a panic")
        }
    }
    let server = MockServer::legacy(LATEST_LEGACY);
    let builder = Client::builder("relay", "2");
    let builder = builder.relay(std::sync::Arc::new(Panics), ClientCapabilities::new());
    let _client = server.connect_with(builder).await;

    server.notify("notifications/message", json!({})).await;
    let response = server.call_client("roots/list", json!({})).await;

    assert_eq!(response["error"]["code"], -32603);
}

#[tokio::test(start_paused = true)]
async fn notifications_come_in_order_and_before_the_result() {
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        let (client, mut events) = connect(&server).await;
        let id = client.relay_id();
        let mut request = RelayRequest::new("tools/call", r#"{"name":"a"}"#);
        request.progress = true;
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.relay(id, &request).await }
        });
        let call_message = server.next("tools/call").await;
        assert_eq!(call_message["id"], id.as_i64());
        let progress = format!(r#"{{"progressToken":{id},"progress":1,"new":1.50}}"#);
        let other = r#"{"progressToken":"x","progress":1}"#;
        let log = r#"{"level":"info","data":1.50}"#;

        // In one write, so that all of it is read before the caller runs.
        let mut bytes = String::new();
        for (method, params) in [
            ("notifications/progress", &*progress),
            ("notifications/progress", other),
            ("notifications/message", log),
            ("notifications/new", "{}"),
        ] {
            bytes += &format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
            bytes.push('\n');
        }
        bytes += &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        bytes.push('\n');
        server.send_bytes(bytes.as_bytes()).await;
        call.await.unwrap().unwrap();

        let notification = |method: &str, params: &str, call| {
            Event::Notification(format!("notifications/{method}"), params.to_owned(), call)
        };
        assert_eq!(
            events.take(),
            [
                notification("progress", &progress, Some(id)),
                notification("progress", other, None),
                notification("message", log, None),
                notification("new", "{}", None),
            ],
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn progress_after_the_call_is_no_anomaly() {
    let server = MockServer::legacy(LATEST_LEGACY);
    server.respond("tools/call", json!({}));
    let (sender, mut anomalies) = tokio::sync::mpsc::unbounded_channel::<Anomaly>();
    let builder = Client::builder("relay", "2").on_anomaly(move |anomaly| {
        let _ = sender.send(anomaly);
    });
    let (builder, mut events) = recording(builder, None);
    let client = server.connect_with(builder).await;
    let id = client.relay_id();
    let mut request = RelayRequest::new("tools/call", "{}");
    request.progress = true;
    client.relay(id, &request).await.unwrap();

    let call = server.next("tools/call").await;
    server.progress(&call, 1.0).await;

    let received = events.next().await;
    assert!(matches!(received, Event::Notification(_, _, Some(call)) if call == id));
    assert!(anomalies.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it_by_its_id() {
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        let (client, _events) = connect(&server).await;
        let id = client.relay_id();
        let call = tokio::spawn({
            let client = client.clone();
            async move {
                client
                    .relay(id, &RelayRequest::new("tools/call", "{}"))
                    .await
            }
        });
        server.next("tools/call").await;

        call.abort();

        let cancelled = server.next("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], id.as_i64(), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_restarts_the_idle_timeout() {
    let server = MockServer::legacy(LATEST_LEGACY);
    server.withhold("tools/call");
    let (client, _events) = connect(&server).await;
    let mut request = RelayRequest::new("tools/call", "{}");
    request.progress = true;
    request.timeouts = Timeouts {
        idle: Duration::from_secs(10),
        total: Duration::from_secs(100),
    };
    let started_at = Instant::now();
    let call = tokio::spawn(async move { relay(&client, request).await });
    let call_message = server.next("tools/call").await;
    tokio::time::advance(Duration::from_secs(9)).await;
    server.progress(&call_message, 1.0).await;

    let error = call.await.unwrap().unwrap_err();

    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    assert_eq!(started_at.elapsed().as_secs(), 19);
    server.next("notifications/cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn the_idle_timeout_does_not_run_while_a_server_request_is_open() {
    let server = MockServer::legacy(LATEST_LEGACY);
    server.withhold("tools/call");
    let (client, mut events) = connect(&server).await;
    let mut request = RelayRequest::new("tools/call", "{}");
    request.timeouts.idle = Duration::from_secs(10);
    let call = tokio::spawn(async move { relay(&client, request).await });
    let call_message = server.next("tools/call").await;
    server.request("elicitation/create", json!({})).await;
    assert!(matches!(events.next().await, Event::Request(..)));

    tokio::time::advance(Duration::from_secs(60)).await;
    server.reply(&call_message, json!({})).await;

    assert_eq!(call.await.unwrap().unwrap().json(), "{}");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_server_is_returned_with_its_data() {
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        let error = json!({ "code": -32042, "message": "a\nb", "data": { "n": [1.5, null] } });
        let reply = error.clone();
        server.on("tools/call", move |_| MockReply::Error(reply.clone()));
        let (client, _events) = connect(&server).await;

        let rejected = relay(&client, RelayRequest::new("tools/call", "{}")).await;

        let rejected = rejected.unwrap_err();
        let received = serde_json::to_value(rejected.rpc().unwrap()).unwrap();
        assert_eq!(received, error, "{revision}");
        assert!(!rejected.is_unsent(), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn unfinished_results_are_returned_with_their_kind() {
    for (kind, result_type) in [
        (ResultType::InputRequired, "input_required"),
        (ResultType::Task, "task"),
        (ResultType::Unknown("later".to_owned()), "later"),
    ] {
        let server = MockServer::modern();
        let result = json!({ "resultType": result_type, "requestState": "s", "taskId": "t" });
        let reply = result.clone();
        server.on("tools/call", move |_| MockReply::Exactly(reply.clone()));
        let (client, _events) = connect(&server).await;

        let received = relay(&client, RelayRequest::new("tools/call", "{}")).await;

        let received = received.unwrap();
        assert_eq!(*received.kind(), kind);
        assert_eq!(received.json(), result.to_string());
        assert_eq!(server.count("tools/call"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn any_method_is_sent_whatever_the_server_supports() {
    for revision in EVERY {
        for method in [
            "com.example/\"é\"",
            "tasks/list",
            "logging/setLevel",
            "subscriptions/listen",
        ] {
            let server = MockServer::for_revision(revision);
            server.on(method, |_| MockReply::Exactly(json!({ "x": 1 })));
            let (client, _events) = connect(&server).await;

            let request = RelayRequest::new(Cow::Owned(method.to_owned()), r#"{"a":1}"#);
            let result = relay(&client, request).await.unwrap();

            assert_eq!(result.json(), r#"{"x":1}"#, "{revision}");
            assert_eq!(server.next(method).await["params"]["a"], 1, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn initialize_and_parameters_that_are_no_object_are_not_sent() {
    let server = MockServer::legacy(LATEST_LEGACY);
    let (client, _events) = connect(&server).await;
    let before = server.received().len();

    for (method, params) in [
        ("initialize", "{}"),
        ("tools/call", "[]"),
        ("tools/call", ""),
    ] {
        let error = relay(&client, RelayRequest::new(method, params)).await;

        let error = error.unwrap_err();
        assert!(matches!(error, CallError::Unsendable { .. }), "{error}");
        assert!(error.is_unsent());
    }
    assert_eq!(server.received().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_no_object_is_invalid() {
    let server = MockServer::legacy(LATEST_LEGACY);
    server.on("tools/call", |_| MockReply::Exactly(json!([1])));
    let (client, _events) = connect(&server).await;

    let error = relay(&client, RelayRequest::new("tools/call", "{}")).await;

    let error = error.unwrap_err();
    assert!(
        matches!(error, CallError::InvalidResponse { .. }),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_is_known_to_be_unsent_only_if_the_connection_had_ended() {
    let server = MockServer::legacy(LATEST_LEGACY);
    server.withhold("tools/call");
    let (client, mut events) = connect(&server).await;
    let call = tokio::spawn({
        let client = client.clone();
        async move { relay(&client, RelayRequest::new("tools/call", "{}")).await }
    });
    server.next("tools/call").await;

    server.close().await;
    let interrupted = call.await.unwrap().unwrap_err();
    assert_eq!(events.next().await, Event::End);
    let late = relay(&client, RelayRequest::new("tools/call", "{}")).await;

    assert!(
        matches!(
            interrupted,
            CallError::Disconnected {
                source: TransportError::Closed,
                ..
            }
        ),
        "{interrupted}"
    );
    assert!(!interrupted.is_unsent());
    let late = late.unwrap_err();
    assert!(
        matches!(
            late,
            CallError::NotConnected {
                source: TransportError::Closed,
                ..
            }
        ),
        "{late}"
    );
    assert!(late.is_unsent());
}

#[tokio::test(start_paused = true)]
async fn a_notification_is_sent_raw_on_one_line() {
    let server = MockServer::legacy(LATEST_LEGACY);
    let (client, _events) = connect(&server).await;

    client
        .relay_notification("notifications/x", "{\"a\" : 1.50,\n\"_meta\":{}}")
        .await
        .unwrap();
    server.next("notifications/x").await;
    let with_params = last_line(&server);
    client
        .relay_notification("notifications/y", "{}")
        .await
        .unwrap();
    let without: Value = server.next("notifications/y").await;

    assert_eq!(
        with_params,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a" : 1.50, "_meta":{}}}"#
    );
    assert_eq!(without.get("params"), None);
    client.close().await;
    let closed = client.relay_notification("notifications/y", "{}").await;
    assert!(matches!(closed, Err(TransportError::ClientClosed)));
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_request_does_not_reach_the_handler() {
    let server = MockServer::modern();
    server.respond("tools/call", json!({}));
    let (client, mut events) = connect(&server).await;

    server.request("roots/list", json!({})).await;
    relay(&client, RelayRequest::new("tools/call", "{}"))
        .await
        .unwrap();

    assert_eq!(events.take(), []);
}
