//! Information that a server must not reveal.

use std::io;

use http::Method;
use serde_json::{Value, json};
use turnbuckle_protocol::{Principal, types::LogLevel};
use turnbuckle_server::{Context, Prompt, RequestError, Resource, Server, Tool, ToolError};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::{HttpTestClient, SESSIONS, modern, modern_headers},
    spec::revision_client::{EVERY, RevisionClient},
};

/// Text inside of every failure, which no client may see.
const INSIDE: &str = "postgres://ada:hunter2@db.internal/prod";

fn fault() -> io::Error {
    io::Error::other(INSIDE)
}

/// A server that fails in every way, with one message of its own.
fn server() -> Server {
    Server::new("discreet", "1")
        .tool(Tool::new("fails", async |cx: Context| {
            cx.log(LogLevel::Error, "the database is away").await;
            Err::<String, _>(ToolError::internal(fault()))
        }))
        .tool(Tool::new("explains", async || {
            Err::<String, _>(ToolError::new("try later").caused_by(fault()))
        }))
        .tool(Tool::new("asks", async || {
            Err::<String, ToolError>(fault().into())
        }))
        .tool(Tool::new("panics", async |cx: Context| {
            if cx.request_id().to_string().is_empty() {
                return Ok(String::new());
            }
            panic!("{INSIDE}")
        }))
        .prompt(Prompt::new("fails", async || {
            Err::<String, _>(RequestError::internal(fault()))
        }))
        .resource(Resource::new("note://fails", "fails", async || {
            Err::<String, RequestError>(fault().into())
        }))
}

fn requests() -> Vec<(&'static str, Value)> {
    let level = json!({ "io.modelcontextprotocol/logLevel": "debug", "progressToken": 1 });
    let tool = |name| ("tools/call", json!({ "name": name, "_meta": level }));
    vec![
        tool("fails"),
        tool("explains"),
        tool("asks"),
        tool("panics"),
        ("prompts/get", json!({ "name": "fails", "_meta": level })),
        (
            "resources/read",
            json!({ "uri": "note://fails", "_meta": level }),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_failure_reveals_only_the_message_of_the_handler() {
    req!(
        "logging.security.no-secrets",
        "logging.security.no-internals"
    );
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        if !client.is_modern() {
            client
                .call("logging/setLevel", json!({ "level": "debug" }))
                .await;
        }
        let mut logged = Vec::new();
        for (method, params) in requests() {
            let id = client.request(method, params).await;
            for message in client.until_answered(id).await {
                let text = message.to_string();
                for inside in ["postgres", "hunter2", "db.internal", ".rs"] {
                    assert!(!text.contains(inside), "{revision} {method} {text}");
                }
                if message["method"] == "notifications/message" {
                    logged.push(message["params"]["data"].clone());
                }
            }
        }
        assert_eq!(logged, ["the database is away"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_principal_data_is_echoed() {
    req!("logging.security.no-pii", "meta.trace.format");
    let mut caller = HttpTestClient::new(server());
    caller.principal = Some(Principal::new("https://login.example", "lovelace"));
    for revision in SESSIONS {
        let session = caller.clone().in_session(revision).await;
        session.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": { "level": "debug" } })).await;
        for (method, params) in requests() {
            let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
            let request = session
                .request(Method::POST)
                .header("authorization", "Bearer lovelace-token")
                .header("cookie", "user=lovelace");
            let http_response = session.send(request, message.to_string()).await;
            let body = String::from_utf8(http_response.bytes().await.to_vec()).unwrap();
            assert!(body.contains("jsonrpc"), "{body}");
            assert!(!body.contains("lovelace"), "{revision} {method} {body}");
        }
    }
    let mut oldest = RevisionClient::with(
        "2024-11-05",
        server(),
        json!({ "experimental": { "lovelace": {} } }),
    )
    .await;
    for (method, params) in requests() {
        let id = oldest.request(method, params).await;
        for message in oldest.until_answered(id).await {
            assert!(
                !message.to_string().contains("lovelace"),
                "{method} {message}"
            );
        }
    }
    for (method, mut params) in requests() {
        let level = params["_meta"].take();
        let mut message = modern(method, params);
        let meta = message["params"]["_meta"].as_object_mut().unwrap();
        meta.extend(level.as_object().unwrap().clone());
        meta.insert(
            "io.modelcontextprotocol/clientInfo".into(),
            json!({ "name": "lovelace's notebook", "version": "1" }),
        );
        // Not a trace context, so it must not be forwarded as one.
        meta.insert("traceparent".into(), json!("lovelace-not-a-trace"));
        meta.insert("baggage".into(), json!("user=lovelace\r\n"));
        let request = modern_headers(caller.request(Method::POST), &message)
            .header("authorization", "Bearer lovelace-token")
            .header("cookie", "user=lovelace")
            .header("traceparent", "lovelace-not-a-trace");

        let http_response = caller.send(request, message.to_string()).await;

        let headers = format!("{:?}", http_response.headers());
        let body = String::from_utf8(http_response.bytes().await.to_vec()).unwrap();
        assert!(body.contains("jsonrpc"), "{body}");
        // Long words: request state is random text that may contain short ones.
        for personal in ["lovelace", "trace", "baggage"] {
            assert!(!body.contains(personal), "{method} {body}");
            assert!(!headers.contains(personal), "{method} {headers}");
        }
    }
}
