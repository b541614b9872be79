//! Arguments that are repeated in headers.
#![expect(
    clippy::needless_pass_by_value,
    reason = "tests pass `json!` values directly"
)]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle_client::{Anomaly, CallError, Client, LifecycleMode, ToolDigest, http::HttpTarget};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    mock_ndjson::{MockServer, discover_result, initialize_result},
};

/// A modern server with the given tools and responses to calls.
fn modern(
    tools: impl Fn(&RecordedRequest) -> Value + Send + Sync + 'static,
    call: impl Fn(&RecordedRequest) -> Option<Value> + Send + Sync + 'static,
) -> MockHttpServer {
    MockHttpServer::in_memory(move |request| match request.rpc().as_str() {
        "server/discover" => MockResponse::result(request, &complete(discover_result())),
        "tools/list" => MockResponse::result(request, &complete(tools(request))),
        "tools/call" => match call(request) {
            None => MockResponse::result(request, &complete(json!({ "content": [] }))),
            Some(error) => {
                let response =
                    json!({ "jsonrpc": "2.0", "id": request.json()["id"], "error": error });
                MockResponse::json(&response).with_status(400)
            }
        },
        other => panic!("unexpected request `{other}`"),
    })
}

fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(60_000);
    result["cacheScope"] = json!("private");
    result
}

fn tool(name: &str, properties: Value) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } })
}

async fn connect(mock: &MockHttpServer) -> Client {
    let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Modern);
    builder.connect(at(mock)).await.unwrap()
}

fn at(mock: &MockHttpServer) -> HttpTarget {
    HttpTarget::new(mock.url("/mcp")).connector(mock.dial())
}

fn posted_messages(mock: &MockHttpServer, method: &str) -> Vec<RecordedRequest> {
    let mut requests = mock.requests();
    requests.retain(|request| request.rpc() == method);
    requests
}

/// Returns the `Mcp-Param-*` headers of a request, by name.
fn params(request: &RecordedRequest) -> Vec<(String, String)> {
    let mut params: Vec<_> = request
        .headers
        .iter()
        .filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix("mcp-param-")?;
            Some((name.to_owned(), value.to_str().unwrap().to_owned()))
        })
        .collect();
    params.sort();
    params
}

fn booking_tool() -> Value {
    let place = json!({ "type": "object", "properties": {
        "zone": { "type": "string", "x-mcp-header": "Zone" },
    } });
    tool(
        "trip",
        json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "days": { "type": "integer", "x-mcp-header": "Days" },
            "dry": { "type": "boolean", "x-mcp-header": "Dry" },
            "place": place,
            "zone": { "type": "string" },
        }),
    )
}

#[tokio::test(start_paused = true)]
async fn annotated_arguments_are_repeated_in_headers() {
    req!(
        "http.param.client-support",
        "http.param.extract-path",
        "http.param.present",
        "http.param.null-omit",
        "http.param.absent-omit",
        "http.header.extract-from-body",
        "http.header.mcp-method",
        "http.header.mcp-name",
        "http.value.encode",
        "http.value.types",
        "http.value.base64"
    );
    let mock = modern(|_| json!({ "tools": [booking_tool()] }), |_| None);
    let client = connect(&mock).await;
    client.tools().all().await.unwrap();

    for arguments in [
        json!({ "region": "us-west1", "days": 3, "dry": false, "place": { "zone": "a" }, "zone": "b" }),
        json!({ "region": "Hello, 世界", "days": null }),
        json!({ "region": "", "zone": "b" }),
        json!({}),
    ] {
        client.call_tool("trip", arguments).await.unwrap();
    }

    let calls = posted_messages(&mock, "tools/call");
    let expected: [&[(&str, &str)]; 4] = [
        &[
            ("days", "3"),
            ("dry", "false"),
            ("region", "us-west1"),
            ("zone", "a"),
        ],
        &[("region", "=?base64?SGVsbG8sIOS4lueVjA==?=")],
        &[("region", "")],
        &[],
    ];
    for (call, expected) in calls.iter().zip(expected) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(params(call), expected);
        assert_eq!(call.header("mcp-name"), "trip");
        assert_eq!(call.header("mcp-method"), "tools/call");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_an_invalid_param_header_is_left_out_and_reported() {
    req!(
        "http.param.reject-tool",
        "http.param.reject-exclude",
        "http.param.reject-log"
    );
    let bad = tool(
        "bad",
        json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
    );
    let good = tool(
        "good",
        json!({ "a": { "type": "string", "x-mcp-header": "A" } }),
    );
    let mock = modern(move |_| json!({ "tools": [bad, good] }), |_| None);
    let anomalies = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&anomalies);
    let builder = Client::builder("test", "1")
        .lifecycle_mode(LifecycleMode::Modern)
        .on_anomaly(move |anomaly| recorded.lock().unwrap().push(anomaly));
    let client = builder.connect(at(&mock)).await.unwrap();

    // The second response comes from the cache.
    for _ in 0..2 {
        let tools = client.tools().all().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good"]);
    }

    assert_eq!(posted_messages(&mock, "tools/list").len(), 1);
    let anomalies = anomalies.lock().unwrap();
    assert_eq!(anomalies.len(), 1, "{anomalies:?}");
    assert!(matches!(&anomalies[0], Anomaly::InvalidParamHeader { tool, .. } if tool == "bad"));
    assert!(anomalies[0].to_string().contains("/properties/a"));
}

#[tokio::test(start_paused = true)]
async fn param_headers_are_sent_only_on_modern_http() {
    req!("http.param.other-transport");
    let listed = || {
        let bad = tool(
            "bad",
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
        );
        json!({ "tools": [bad, booking_tool()] })
    };
    let lines = MockServer::modern();
    lines.respond("tools/list", listed());
    lines.respond("tools/call", json!({ "content": [] }));
    let session = MockHttpServer::in_memory(move |request| match request.rpc().as_str() {
        "initialize" => MockResponse::result(request, &initialize_result("2025-11-25")),
        "tools/list" => MockResponse::result(request, &listed()),
        "tools/call" => MockResponse::result(request, &json!({ "content": [] })),
        _ if request.method == "GET" => MockResponse::status(405),
        _ => MockResponse::status(202),
    });
    let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Legacy);
    let clients = [
        lines.connect().await,
        builder.connect(at(&session)).await.unwrap(),
    ];
    for client in clients {
        assert_eq!(client.tools().all().await.unwrap().len(), 2);
        let arguments = json!({ "region": "us", "days": 1.5 });
        client.call_tool("trip", arguments).await.unwrap();
    }
    for call in posted_messages(&session, "tools/call") {
        assert!(params(&call).is_empty());
        assert_eq!(call.header("mcp-name"), "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_name_has_no_name_header() {
    let mock = modern(|_| json!({ "tools": [booking_tool()] }), |_| None);
    let client = connect(&mock).await;

    client.tools().all().await.unwrap();
    client.ping().await.unwrap();

    for request in mock.requests() {
        assert_eq!(request.header("mcp-method"), request.rpc());
        assert_eq!(request.header("mcp-name"), "", "{}", request.rpc());
    }
}

#[tokio::test(start_paused = true)]
async fn an_argument_that_is_invalid_in_a_header_is_not_sent() {
    let mock = modern(|_| json!({ "tools": [booking_tool()] }), |_| None);
    let client = connect(&mock).await;
    client.tools().all().await.unwrap();

    for (arguments, argument) in [
        (json!({ "days": 9_007_199_254_740_993_u64 }), "days"),
        (json!({ "days": 0.5 }), "days"),
        (json!({ "place": { "zone": ["a"] } }), "place.zone"),
    ] {
        let error = client.call_tool("trip", arguments).await.unwrap_err();

        match error {
            CallError::UnsendableArgument { argument: at, .. } => assert_eq!(at, argument),
            other => panic!("{other:?}"),
        }
    }
    assert!(posted_messages(&mock, "tools/call").is_empty());
}

fn mismatch() -> Value {
    json!({ "code": -32020, "message": "Header mismatch" })
}

/// Rejects a call unless it has the header of the newest definition.
fn requires_header(
    header: &'static str,
) -> impl Fn(&RecordedRequest) -> Option<Value> + Send + Sync + 'static {
    move |request| request.header(header).is_empty().then(mismatch)
}

#[tokio::test(start_paused = true)]
async fn after_a_header_mismatch_the_tools_are_listed_and_the_call_is_retried() {
    req!(
        "http.param.refresh",
        "http.param.latest-schema",
        "caching.early-refetch"
    );
    let city = |header: &str| {
        let city = json!({ "city": { "type": "string", "x-mcp-header": header } });
        json!({ "tools": [tool("forecast", city)] })
    };
    let turn = Mutex::new(0);
    let tools = move |_: &RecordedRequest| {
        let mut turn = turn.lock().unwrap();
        *turn += 1;
        city(if *turn == 1 { "Old" } else { "City" })
    };
    let mock = modern(tools, requires_header("mcp-param-city"));
    let client = connect(&mock).await;
    client.tools().all().await.unwrap();

    let output = client
        .call_tool("forecast", json!({ "city": "Oslo" }))
        .await;

    output.unwrap();
    let calls = posted_messages(&mock, "tools/call");
    let sent: Vec<_> = calls.iter().map(params).collect();
    let header = |name: &str| vec![(name.to_owned(), "Oslo".to_owned())];
    assert_eq!(sent, [header("old"), header("city")]);
    assert_ne!(calls[0].json()["id"], calls[1].json()["id"]);
    assert_eq!(posted_messages(&mock, "tools/list").len(), 2);

    // The definition is cached from now on.
    let again = client
        .call_tool("forecast", json!({ "city": "Oslo" }))
        .await;
    again.unwrap();
    assert_eq!(posted_messages(&mock, "tools/call").len(), 3);
}

/// A server with other headers cannot replace a pinned tool.
#[tokio::test(start_paused = true)]
async fn a_header_mismatch_does_not_bypass_a_pin() {
    let turn = Mutex::new(0);
    let city = |header: &str| {
        let city = json!({ "city": { "type": "string", "x-mcp-header": header } });
        tool("forecast", city)
    };
    let old = serde_json::from_value(city("Old")).unwrap();
    let tools = move |_: &RecordedRequest| {
        let mut turn = turn.lock().unwrap();
        *turn += 1;
        json!({ "tools": [city(if *turn == 1 { "Old" } else { "City" })] })
    };
    let mock = modern(tools, requires_header("mcp-param-city"));
    let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Modern);
    let builder = builder.pinned_tools([("forecast", ToolDigest::for_tool(&old))]);
    let client = builder.connect(at(&mock)).await.unwrap();

    let call = client.call_tool("forecast", json!({ "city": "Oslo" }));
    let error = call.await.unwrap_err();

    assert!(matches!(error, CallError::PinMismatch { .. }), "{error:?}");
    assert_eq!(posted_messages(&mock, "tools/call").len(), 1);
    assert_eq!(posted_messages(&mock, "tools/list").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unlisted_tool_is_listed_after_a_header_mismatch() {
    req!("http.param.refresh");
    let tools = |request: &RecordedRequest| match request.json()["params"]["cursor"].as_str() {
        None => json!({ "tools": [tool("other", json!({}))], "nextCursor": "2" }),
        Some(_) => json!({ "tools": [booking_tool()], "nextCursor": "3" }),
    };
    let mock = modern(tools, requires_header("mcp-param-region"));
    let client = connect(&mock).await;

    client
        .call_tool("trip", json!({ "region": "us" }))
        .await
        .unwrap();

    // The third page was not needed.
    assert_eq!(posted_messages(&mock, "tools/list").len(), 2);
    assert_eq!(posted_messages(&mock, "tools/call").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_header_mismatch_that_remains_after_listing_is_an_error() {
    for tools in [
        json!({ "tools": [booking_tool()] }),
        json!({ "tools": [] }),
        json!({ "tools": [], "nextCursor": "again" }),
    ] {
        let mock = modern(move |_| tools.clone(), |_| Some(mismatch()));
        let client = connect(&mock).await;
        client.list_tools(None).await.unwrap();

        let error = client.call_tool("trip", json!({ "region": "us" })).await;

        let error = error.unwrap_err();
        assert_eq!(error.rpc().unwrap().code, -32020);
        assert_eq!(error.status().unwrap(), 400);
        assert_eq!(posted_messages(&mock, "tools/call").len(), 1);
        assert!(posted_messages(&mock, "tools/list").len() <= 3);
    }
}

#[tokio::test(start_paused = true)]
async fn param_header_names_are_case_insensitive() {
    req!("http.header.case-insensitive-names");
    let mock = MockHttpServer::in_memory(|request| {
        let session = MockResponse::result(request, &initialize_result("2025-11-25"));
        match request.rpc().as_str() {
            "initialize" => session.header("mCP-sESSION-iD", "one"),
            "tools/call" => {
                let result = json!({ "content": [] });
                let reply = MockResponse::result(request, &result).without_type();
                reply.header("CONTENT-TYPE", "application/json")
            }
            _ if request.method == "GET" => MockResponse::status(405),
            _ => MockResponse::status(202),
        }
    });
    let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Legacy);
    let client = builder.connect(at(&mock)).await.unwrap();

    client.call_tool("a", json!({})).await.unwrap();

    let calls = posted_messages(&mock, "tools/call");
    assert_eq!(calls[0].header("mcp-session-id"), "one");
}
