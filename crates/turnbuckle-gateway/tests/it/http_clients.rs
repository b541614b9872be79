//! Legacy clients on HTTP: batches, and connections that break in a call.

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::Sharing;
use turnbuckle_server::testing::http;

use crate::{
    scripted::scripted,
    upstreams::{ERAS, gateway, start},
};

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_without_its_client_and_its_result_can_be_fetched() {
    for mode in ERAS {
        let (upstream, mut server) = scripted(mode);
        let gateway = start([upstream.sharing(Sharing::All)]).await;
        let mut connection = server.connection().await;
        let client = http(gateway.server()).in_session("2025-11-25").await;
        let params = json!({
            "name": "x", "arguments": {}, "_meta": { "progressToken": 5 },
        });
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });

        let (response, request) = tokio::join!(client.post(&call), async {
            let request = connection.expect("tools/call").await;
            let token = &request["params"]["_meta"]["progressToken"];
            let progress = json!({ "progressToken": token, "progress": 1 });
            connection.notify("notifications/progress", progress).await;
            request
        });
        let mut events = response.events();
        let progress = events.message().await.unwrap();
        assert_eq!(progress["params"]["progressToken"], 5, "{mode:?}");
        let last_event = events.last_event_id().to_owned();
        assert!(!last_event.is_empty(), "{mode:?}");
        drop(events);

        // The server gets no cancellation, and the result is kept.
        let quiet = std::time::Duration::from_secs(5);
        let next = tokio::time::timeout(quiet, connection.receive()).await;
        assert!(next.is_err(), "{mode:?}: {next:?}");
        connection.respond_text(&request, "done").await;
        let mut resumed = client.get(Some(&last_event)).await.events();
        let result = resumed.message().await.unwrap();
        assert_eq!(result["id"], 7, "{mode:?}: {result}");
        assert_eq!(result["result"]["content"][0]["text"], "done", "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_messages_of_a_batch_are_relayed_one_by_one() {
    for mode in ERAS {
        let gateway = gateway(mode).await;
        let client = http(gateway.server()).in_session("2025-03-26").await;
        let call = |id: i64, name: &str| {
            let params = json!({ "name": "greet", "arguments": { "name": name } });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        };
        let batch = json!([
            call(1, "Ada"),
            { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 99 } },
            { "jsonrpc": "2.0", "id": 2, "method": "tools/list" },
            call(3, "Bo"),
            { "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": { "name": "missing" } },
        ]);

        let response = client.post(&batch).await;
        let responses = if response.is_stream() {
            let mut events = response.events();
            let mut responses = Vec::new();
            while let Some(message) = events.message().await {
                match message {
                    Value::Array(several) => responses.extend(several),
                    one => responses.push(one),
                }
            }
            responses.retain(|message| message.get("id").is_some());
            responses
        } else {
            response.json().await.as_array().unwrap().clone()
        };

        let of = |id: i64| {
            let mut found = responses.iter().filter(|message| message["id"] == id);
            let first = found.next().unwrap_or_else(|| panic!("{mode:?}: {id}"));
            assert!(found.next().is_none(), "{mode:?}: {id}");
            first
        };
        assert_eq!(responses.len(), 4, "{mode:?}: {responses:?}");
        assert_eq!(of(1)["result"]["content"][0]["text"], "Hello, Ada!");
        assert_eq!(of(2)["result"]["tools"][0]["name"], "greet");
        assert_eq!(of(3)["result"]["content"][0]["text"], "Hello, Bo!");
        assert_eq!(of(4)["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_that_disconnects_cancels_its_call() {
    let (upstream, mut server) = scripted(LifecycleMode::Modern);
    let gateway = start([upstream]).await;
    let mut connection = server.connection().await;
    let client = http(gateway.server());
    let params = json!({
        "name": "x",
        "arguments": {},
        "_meta": {
            "progressToken": 5,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let mut events = client.post(&call).await.events();
    let (progress, request) = tokio::join!(events.message(), async {
        let request = connection.expect("tools/call").await;
        let token = &request["params"]["_meta"]["progressToken"];
        let progress = json!({ "progressToken": token, "progress": 1 });
        connection.notify("notifications/progress", progress).await;
        request
    });
    assert_eq!(progress.unwrap()["params"]["progressToken"], 5);

    drop(events);

    let cancelled = connection.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}
