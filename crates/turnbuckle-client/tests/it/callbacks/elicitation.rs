//! Form and URL elicitation.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use turnbuckle_client::{
    CallError, Client, ClientBuilder, ElicitationAction, FormRequest, LifecycleMode,
    UrlElicitationRequest,
};
use turnbuckle_protocol::types::elicitation::{
    BooleanSchema, ElicitSchema, NumberSchema, StringSchema,
};
use turnbuckle_server::{Context, Elicitation, ElicitationOutcome, Server, Tool, ToolError};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_ndjson::{LEGACY, MODERN, MockReply, MockServer},
    turnbuckle::connect,
};

const URL_REQUIRED: i64 = -32042;

fn client() -> ClientBuilder {
    Client::builder("test", "1")
}

fn name_form() -> Value {
    json!({
        "message": "who?",
        "requestedSchema": {
            "type": "object",
            "properties": { "name": { "type": "string", "default": "Ada" } },
            "required": ["name"],
        },
    })
}

fn url_elicitation(id: &str) -> Value {
    let url = format!("https://example.com/{id}");
    json!({ "mode": "url", "message": "go", "url": url, "elicitationId": id })
}

/// A server with a tool that requests a form.
fn form_server() -> Server {
    async fn register(_: Value, cx: Context) -> Result<String, ToolError> {
        let form = ElicitSchema::new()
            .required("name", StringSchema::new().default("Ada"))
            .optional("age", NumberSchema::integer().default(30.0))
            .optional("member", BooleanSchema::new().default(true));
        let response = cx
            .elicit(Elicitation::raw_form("who are you?", form).key("who"))
            .await?;
        Ok(match response {
            ElicitationOutcome::Accepted(content) => Value::Object(content).to_string(),
            ElicitationOutcome::Declined => "declined".to_owned(),
            ElicitationOutcome::Cancelled => "cancelled".to_owned(),
        })
    }
    Server::new("forms", "1.0").tool(Tool::raw("register", json!({ "type": "object" }), register))
}

async fn call_register(client: &Client) -> String {
    let output = client.call_tool("register", json!({})).await.unwrap();
    output.content[0].as_text().unwrap().to_owned()
}

#[tokio::test]
async fn a_form_is_accepted_with_its_defaults_in_both_eras() {
    for era in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let builder =
            client()
                .lifecycle_mode(era)
                .on_form_elicitation(|form: FormRequest| async move {
                    assert_eq!(form.message(), "who are you?");
                    form.accept(json!({ "age": 31 }))
                });
        let client = connect(builder, form_server()).await;

        let text = call_register(&client).await;

        let text: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text, json!({ "age": 31, "name": "Ada", "member": true }));
    }
}

#[tokio::test]
async fn a_form_can_be_declined_or_cancelled_in_both_eras() {
    for era in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let declining = client()
            .lifecycle_mode(era)
            .on_form_elicitation(|form| async move { form.decline() });
        assert_eq!(
            call_register(&connect(declining, form_server()).await).await,
            "declined"
        );
        let cancelling = client()
            .lifecycle_mode(era)
            .on_form_elicitation(|form| async move { form.cancel() });
        assert_eq!(
            call_register(&connect(cancelling, form_server()).await).await,
            "cancelled"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_elicitation_modes_with_a_callback_are_declared() {
    req!(
        "elicitation.capability",
        "elicitation.capability-modern",
        "elicitation.capability.mode"
    );
    for (revision, declared) in [
        ("2025-03-26", Value::Null),
        ("2025-06-18", json!({})),
        ("2025-11-25", json!({ "form": {}, "url": {} })),
    ] {
        let server = MockServer::legacy(revision);
        server.respond(
            "server/discover",
            json!({ "supportedVersions": [revision], "capabilities": {} }),
        );
        let both = client()
            .on_form_elicitation(|form| async move { form.decline() })
            .on_url_elicitation(|_| async { ElicitationAction::Decline });
        let _client = server.connect_with(both).await;

        let handshake = server.next("initialize").await;

        assert_eq!(
            handshake["params"]["capabilities"]["elicitation"], declared,
            "{revision}"
        );
    }
    let server = MockServer::modern();
    server.respond("tools/call", json!({ "content": [] }));
    let only_urls = client().on_url_elicitation(|_| async { ElicitationAction::Decline });
    let client = server.connect_with(only_urls).await;
    for _ in 0..2 {
        client.call_tool("any", json!({})).await.unwrap();
        let call = server.next("tools/call").await;
        let meta = &call["params"]["_meta"];
        let declared = &meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"];
        assert_eq!(*declared, json!({ "url": {} }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_url_is_not_fetched_by_the_client() {
    req!("elicitation.url.no-prefetch");
    let page = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    page.set_nonblocking(true).unwrap();
    let url = format!("http://{}/confirm", page.local_addr().unwrap());
    let url_elicitation =
        json!({ "mode": "url", "message": "go", "url": url, "elicitationId": "1" });
    for action in [ElicitationAction::Accept, ElicitationAction::Decline] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let url_client = move || {
            let counted = counted.clone();
            client().on_url_elicitation(move |url_elicitation: UrlElicitationRequest| {
                assert!(url_elicitation.url().ends_with("/confirm"));
                counted.fetch_add(1, Ordering::SeqCst);
                async move { action }
            })
        };

        let server = MockServer::legacy("2025-11-25");
        let legacy = server.connect_with(url_client()).await;
        server
            .call_client("elicitation/create", url_elicitation.clone())
            .await;
        legacy.close().await;

        let server = MockServer::modern();
        let input_request = json!({ "method": "elicitation/create", "params": url_elicitation });
        let input_required =
            json!({ "resultType": "input_required", "inputRequests": { "q": input_request } });
        server.respond_in_order("tools/call", [input_required, json!({ "content": [] })]);
        let modern = server.connect_with(url_client()).await;
        modern.call_tool("ask", json!({})).await.unwrap();
        modern.close().await;

        assert_eq!(calls.load(Ordering::SeqCst), 2);
        let called = page.accept().map(drop).unwrap_err();
        assert_eq!(called.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[tokio::test(start_paused = true)]
async fn undeclared_elicitation_is_rejected_without_a_callback() {
    req!(
        "elicitation.mode.undeclared-error",
        "elicitation.capability.empty-form"
    );
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let _client = server.connect().await;
        let response = server.call_client("elicitation/create", name_form()).await;
        assert_eq!(response["error"]["code"], -32601, "{revision}");
    }
    // In older revisions, `elicitation: {}` means forms only.
    let server = MockServer::legacy("2025-06-18");
    let both = client()
        .on_form_elicitation(|form| async move { form.accept_defaults() })
        .on_url_elicitation(|_| async { ElicitationAction::Accept });
    let _client = server.connect_with(both).await;
    let response = server
        .call_client("elicitation/create", url_elicitation("a"))
        .await;
    assert_eq!(response["error"]["code"], -32602);

    let server = MockServer::legacy("2025-11-25");
    let forms = client().on_form_elicitation(|form| async move { form.accept_defaults() });
    let _client = server.connect_with(forms).await;
    let response = server
        .call_client("elicitation/create", url_elicitation("a"))
        .await;
    assert_eq!(response["error"]["code"], -32602);
    let response = server.call_client("elicitation/create", name_form()).await;
    assert_eq!(
        response["result"],
        json!({ "action": "accept", "content": { "name": "Ada" } })
    );

    let server = MockServer::modern();
    let input_request = json!({ "method": "elicitation/create", "params": url_elicitation("a") });
    let input_required =
        json!({ "resultType": "input_required", "inputRequests": { "q": input_request } });
    server.respond("tools/call", input_required);
    let forms = client().on_form_elicitation(|form| async move { form.accept_defaults() });
    let client = server.connect_with(forms).await;
    client.call_tool("ask", json!({})).await.unwrap_err();
    assert_eq!(server.count("tools/call"), 1, "the call is not sent again");
}

#[tokio::test(start_paused = true)]
async fn urls_without_http_or_https_never_reach_the_callback() {
    req!("elicitation.url.no-prefetch");
    let calls = Arc::new(AtomicUsize::new(0));
    let builder = || {
        let calls = calls.clone();
        client().on_url_elicitation(move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            async { ElicitationAction::Accept }
        })
    };
    for url in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "https://bank.example@evil.example/",
        "https://example.com/\u{202e}",
    ] {
        let input_request =
            json!({ "mode": "url", "message": "go", "url": url, "elicitationId": "1" });
        let legacy = MockServer::legacy("2025-11-25");
        let _client = legacy.connect_with(builder()).await;
        let response = legacy
            .call_client("elicitation/create", input_request.clone())
            .await;
        assert_eq!(response["error"]["code"], -32602, "{url}");

        let modern = MockServer::modern();
        let input_required = json!({ "method": "elicitation/create", "params": input_request });
        modern.respond(
            "tools/call",
            json!({ "resultType": "input_required", "inputRequests": { "q": input_required } }),
        );
        let client = modern.connect_with(builder()).await;
        let error = client.call_tool("any", json!({})).await.unwrap_err();
        assert!(
            matches!(&error, CallError::InputFailed { source, .. } if source.code == -32602),
            "{url}: {error}"
        );
        assert_eq!(modern.count("tools/call"), 1, "{url}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_server_request_is_aborted() {
    let server = MockServer::legacy("2025-11-25");
    let (sender, mut receiver) = mpsc::channel(1);
    let open = Arc::new(());
    let open_form = open.clone();
    let slow = client().on_form_elicitation(move |form: FormRequest| {
        let (sender, open_form) = (sender.clone(), open_form.clone());
        async move {
            sender.send(()).await.unwrap();
            std::future::pending::<()>().await;
            drop(open_form);
            form.decline()
        }
    });
    let _client = server.connect_with(slow).await;
    let id = server.request("elicitation/create", name_form()).await;
    receiver.recv().await.unwrap();
    assert_eq!(Arc::strong_count(&open), 3);

    let gone = json!({ "requestId": id });
    server.notify("notifications/cancelled", gone).await;

    server.expect_no_message().await;
    assert_eq!(Arc::strong_count(&open), 2, "the callback was dropped");
}

/// A server of 2025-11-25 that rejects calls until the URL elicitation is complete.
fn url_required_server(open: Arc<Mutex<bool>>, ids: &'static [&'static str]) -> MockServer {
    let server = MockServer::legacy("2025-11-25");
    server.on("tools/call", move |_| if *open.lock().unwrap() { MockReply::Result(json!({ "content": [{ "type": "text", "text": "in" }] })) } else { 
            let visits: Vec<_> = ids.iter().map(|id| url_elicitation(id)).collect();
            MockReply::Error(json!({ "code": URL_REQUIRED, "message": "open the URLs first", "data": { "elicitations": visits } }))
         });
    server
}

#[tokio::test(start_paused = true)]
async fn a_call_is_retried_when_its_url_elicitations_are_complete() {
    req!(
        "elicitation.url.complete-wait",
        "elicitation.url.complete-unknown"
    );
    let open = Arc::new(Mutex::new(false));
    let server = url_required_server(open.clone(), &["a", "b"]);
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let url_client = client().on_url_elicitation(move |url_elicitation: UrlElicitationRequest| {
        sender
            .send(url_elicitation.elicitation_id().unwrap().to_owned())
            .unwrap();
        assert_eq!(url_elicitation.host(), "example.com");
        async { ElicitationAction::Accept }
    });
    let client = server.connect_with(url_client).await;
    let call = tokio::spawn(client.call_tool("enter", json!({})).into_future());
    let first = server.next("tools/call").await;
    assert_eq!(receiver.recv().await.as_deref(), Some("a"));
    assert_eq!(receiver.recv().await.as_deref(), Some("b"));

    let over = async |id: &str| {
        let params = json!({ "elicitationId": id });
        server
            .notify("notifications/elicitation/complete", params)
            .await;
    };
    over("unknown").await;
    over("a").await;
    over("a").await;
    server.expect_no_message().await;
    *open.lock().unwrap() = true;
    over("b").await;

    let output = call.await.unwrap().unwrap();
    assert_eq!(output.content[0].as_text(), Some("in"));
    let again = server.next("tools/call").await;
    assert_ne!(first["id"], again["id"]);
    assert_eq!(first["params"]["name"], again["params"]["name"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_retried_after_the_idle_timeout_without_a_completion_notification() {
    let open = Arc::new(Mutex::new(false));
    let server = url_required_server(open.clone(), &["a"]);
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let url_client = client().on_url_elicitation(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { ElicitationAction::Accept }
    });
    let client = server.connect_with(url_client).await;
    let later = open.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(150)).await;
        *later.lock().unwrap() = true;
    });

    let output = client.call_tool("enter", json!({})).await.unwrap();

    assert_eq!(output.content[0].as_text(), Some("in"));
    assert_eq!(
        calls.load(Ordering::Relaxed),
        1,
        "the callback is called once"
    );
    assert_eq!(server.count("tools/call"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_declined_url_elicitation_ends_the_call() {
    let server = url_required_server(Arc::default(), &["a"]);
    let url_client = client().on_url_elicitation(|_| async { ElicitationAction::Decline });
    let client = server.connect_with(url_client).await;

    let error = client.call_tool("enter", json!({})).await.unwrap_err();

    assert!(
        matches!(error, CallError::UrlElicitationDeclined { .. }),
        "{error}"
    );
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_url_callback_the_error_is_returned() {
    let server = url_required_server(Arc::default(), &["a"]);
    let client = server.connect().await;

    let error = client.call_tool("enter", json!({})).await.unwrap_err();

    assert_eq!(error.rpc().unwrap().code, URL_REQUIRED);
}

#[tokio::test(start_paused = true)]
async fn the_modern_era_does_not_define_url_elicitation_required() {
    let server = MockServer::modern();
    server.on("tools/call", |_| {
        MockReply::Error(json!({ "code": URL_REQUIRED, "message": "no", "data": { "elicitations": [url_elicitation("a")] } }))
    });
    let url_client = client().on_url_elicitation(|_| async { ElicitationAction::Accept });
    let client = server.connect_with(url_client).await;

    let error = client.call_tool("enter", json!({})).await.unwrap_err();

    assert_eq!(error.rpc().unwrap().code, URL_REQUIRED);
    assert_eq!(client.server().revision.as_str(), MODERN);
}
