//! Forms and visits that servers ask for.

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

use crate::{
    fake_lines::{FakeServer, LEGACY, MODERN, Reply},
    own_server::connect,
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

fn visit(id: &str) -> Value {
    let url = format!("https://example.com/{id}");
    json!({ "mode": "url", "message": "go", "url": url, "elicitationId": id })
}

/// A tool that asks for a form, whatever the era.
fn registrar() -> Server {
    async fn register(_: Value, cx: Context) -> Result<String, ToolError> {
        let form = ElicitSchema::new()
            .required("name", StringSchema::new().default("Ada"))
            .optional("age", NumberSchema::integer().default(30.0))
            .optional("member", BooleanSchema::new().default(true));
        let answer = cx
            .elicit("who", Elicitation::form("who are you?", form))
            .await?;
        Ok(match answer {
            ElicitationOutcome::Accepted(content) => Value::Object(content).to_string(),
            ElicitationOutcome::Declined => "declined".to_owned(),
            ElicitationOutcome::Cancelled => "cancelled".to_owned(),
        })
    }
    Server::new("registrar", "1.0").tool(Tool::raw(
        "register",
        json!({ "type": "object" }),
        register,
    ))
}

async fn register(client: &Client) -> String {
    let output = client.call_tool("register", json!({})).await.unwrap();
    output.content[0].as_text().unwrap().to_owned()
}

#[tokio::test]
async fn a_form_is_filled_in_from_its_defaults_in_both_eras() {
    for era in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let builder =
            client()
                .lifecycle_mode(era)
                .on_form_elicitation(|form: FormRequest| async move {
                    assert_eq!(form.message(), "who are you?");
                    form.accept(json!({ "age": 31 }))
                });
        let client = connect(builder, registrar()).await;

        let said = register(&client).await;

        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said, json!({ "age": 31, "name": "Ada", "member": true }));
    }
}

#[tokio::test]
async fn a_user_may_decline_or_dismiss_in_both_eras() {
    for era in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let no = client()
            .lifecycle_mode(era)
            .on_form_elicitation(|form| async move { form.decline() });
        assert_eq!(register(&connect(no, registrar()).await).await, "declined");
        let away = client()
            .lifecycle_mode(era)
            .on_form_elicitation(|form| async move { form.cancel() });
        assert_eq!(
            register(&connect(away, registrar()).await).await,
            "cancelled"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn elicitation_is_declared_as_far_as_it_goes() {
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
        let server = FakeServer::legacy(revision);
        server.answer(
            "server/discover",
            json!({ "supportedVersions": [revision], "capabilities": {} }),
        );
        let both = client()
            .on_form_elicitation(|form| async move { form.decline() })
            .on_url_elicitation(|_| async { ElicitationAction::Decline });
        let _client = server.connect_as(both).await;

        let hello = server.next("initialize").await;

        assert_eq!(
            hello["params"]["capabilities"]["elicitation"], declared,
            "{revision}"
        );
    }
    let server = FakeServer::modern();
    server.answer("tools/call", json!({ "content": [] }));
    let only_urls = client().on_url_elicitation(|_| async { ElicitationAction::Decline });
    let client = server.connect_as(only_urls).await;
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
    let url = format!("http://{}/visit", page.local_addr().unwrap());
    let visit = json!({ "mode": "url", "message": "go", "url": url, "elicitationId": "1" });
    for consent in [ElicitationAction::Accept, ElicitationAction::Decline] {
        let shown = Arc::new(AtomicUsize::new(0));
        let counted = shown.clone();
        let visitor = move || {
            let counted = counted.clone();
            client().on_url_elicitation(move |visit: UrlElicitationRequest| {
                assert!(visit.url().ends_with("/visit"));
                counted.fetch_add(1, Ordering::SeqCst);
                async move { consent }
            })
        };

        let server = FakeServer::legacy("2025-11-25");
        let legacy = server.connect_as(visitor()).await;
        server.ask("elicitation/create", visit.clone()).await;
        legacy.close().await;

        let server = FakeServer::modern();
        let question = json!({ "method": "elicitation/create", "params": visit });
        let asks = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
        server.answer_in_turn("tools/call", [asks, json!({ "content": [] })]);
        let modern = server.connect_as(visitor()).await;
        modern.call_tool("ask", json!({})).await.unwrap();
        modern.close().await;

        assert_eq!(shown.load(Ordering::SeqCst), 2);
        let called = page.accept().map(drop).unwrap_err();
        assert_eq!(called.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_declared_is_refused_and_nobody_is_asked() {
    req!(
        "elicitation.mode.undeclared-error",
        "elicitation.capability.empty-form"
    );
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        let _client = server.connect().await;
        let answer = server.ask("elicitation/create", name_form()).await;
        assert_eq!(answer["error"]["code"], -32601, "{revision}");
    }
    // What older revisions are told, `elicitation: {}`, means forms and nothing else.
    let server = FakeServer::legacy("2025-06-18");
    let both = client()
        .on_form_elicitation(|form| async move { form.accept_defaults() })
        .on_url_elicitation(|_| async { ElicitationAction::Accept });
    let _client = server.connect_as(both).await;
    let answer = server.ask("elicitation/create", visit("a")).await;
    assert_eq!(answer["error"]["code"], -32602);

    let server = FakeServer::legacy("2025-11-25");
    let forms = client().on_form_elicitation(|form| async move { form.accept_defaults() });
    let _client = server.connect_as(forms).await;
    let answer = server.ask("elicitation/create", visit("a")).await;
    assert_eq!(answer["error"]["code"], -32602);
    let answer = server.ask("elicitation/create", name_form()).await;
    assert_eq!(
        answer["result"],
        json!({ "action": "accept", "content": { "name": "Ada" } })
    );

    let server = FakeServer::modern();
    let question = json!({ "method": "elicitation/create", "params": visit("a") });
    let asks = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
    server.answer("tools/call", asks);
    let forms = client().on_form_elicitation(|form| async move { form.accept_defaults() });
    let client = server.connect_as(forms).await;
    client.call_tool("ask", json!({})).await.unwrap_err();
    assert_eq!(server.count("tools/call"), 1, "there is no answer to bring");
}

#[tokio::test(start_paused = true)]
async fn urls_that_lead_anywhere_but_the_web_are_never_shown() {
    req!("elicitation.url.no-prefetch");
    let shown = Arc::new(AtomicUsize::new(0));
    let builder = || {
        let shown = shown.clone();
        client().on_url_elicitation(move |_| {
            shown.fetch_add(1, Ordering::Relaxed);
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
        let question = json!({ "mode": "url", "message": "go", "url": url, "elicitationId": "1" });
        let legacy = FakeServer::legacy("2025-11-25");
        let _client = legacy.connect_as(builder()).await;
        let answer = legacy.ask("elicitation/create", question.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{url}");

        let modern = FakeServer::modern();
        let asks = json!({ "method": "elicitation/create", "params": question });
        modern.answer(
            "tools/call",
            json!({ "resultType": "input_required", "inputRequests": { "q": asks } }),
        );
        let client = modern.connect_as(builder()).await;
        let error = client.call_tool("any", json!({})).await.unwrap_err();
        assert!(
            matches!(&error, CallError::InputFailed { source, .. } if source.code == -32602),
            "{url}: {error}"
        );
        assert_eq!(modern.count("tools/call"), 1, "{url}");
    }
    assert_eq!(shown.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_server_takes_back_is_dropped() {
    let server = FakeServer::legacy("2025-11-25");
    let (asked, mut was_asked) = mpsc::channel(1);
    let open = Arc::new(());
    let held = open.clone();
    let slow = client().on_form_elicitation(move |form: FormRequest| {
        let (asked, held) = (asked.clone(), held.clone());
        async move {
            asked.send(()).await.unwrap();
            std::future::pending::<()>().await;
            drop(held);
            form.decline()
        }
    });
    let _client = server.connect_as(slow).await;
    let id = server.request("elicitation/create", name_form()).await;
    was_asked.recv().await.unwrap();
    assert_eq!(Arc::strong_count(&open), 3);

    let gone = json!({ "requestId": id });
    server.notify("notifications/cancelled", gone).await;

    server.expect_silence().await;
    assert_eq!(Arc::strong_count(&open), 2, "nobody is asked any more");
}

/// A server of 2025-11-25 that refuses calls until the visit is over.
fn gatekeeper(open: Arc<Mutex<bool>>, ids: &'static [&'static str]) -> FakeServer {
    let server = FakeServer::legacy("2025-11-25");
    server.on("tools/call", move |_| if *open.lock().unwrap() { Reply::Result(json!({ "content": [{ "type": "text", "text": "in" }] })) } else { 
            let visits: Vec<_> = ids.iter().map(|id| visit(id)).collect();
            Reply::Error(json!({ "code": URL_REQUIRED, "message": "visit first", "data": { "elicitations": visits } }))
         });
    server
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_when_its_visits_are_over() {
    req!(
        "elicitation.url.complete-wait",
        "elicitation.url.complete-unknown"
    );
    let open = Arc::new(Mutex::new(false));
    let server = gatekeeper(open.clone(), &["a", "b"]);
    let (asked, mut was_asked) = mpsc::unbounded_channel();
    let visitor = client().on_url_elicitation(move |visit: UrlElicitationRequest| {
        asked
            .send(visit.elicitation_id().unwrap().to_owned())
            .unwrap();
        assert_eq!(visit.host(), "example.com");
        async { ElicitationAction::Accept }
    });
    let client = server.connect_as(visitor).await;
    let call = tokio::spawn(client.call_tool("enter", json!({})).into_future());
    let first = server.next("tools/call").await;
    assert_eq!(was_asked.recv().await.as_deref(), Some("a"));
    assert_eq!(was_asked.recv().await.as_deref(), Some("b"));

    let over = async |id: &str| {
        let params = json!({ "elicitationId": id });
        server
            .notify("notifications/elicitation/complete", params)
            .await;
    };
    over("unknown").await;
    over("a").await;
    over("a").await;
    server.expect_silence().await;
    *open.lock().unwrap() = true;
    over("b").await;

    let output = call.await.unwrap().unwrap();
    assert_eq!(output.content[0].as_text(), Some("in"));
    let again = server.next("tools/call").await;
    assert_ne!(first["id"], again["id"]);
    assert_eq!(first["params"]["name"], again["params"]["name"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_says_that_a_visit_is_over_is_asked_again() {
    let open = Arc::new(Mutex::new(false));
    let server = gatekeeper(open.clone(), &["a"]);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let visitor = client().on_url_elicitation(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { ElicitationAction::Accept }
    });
    let client = server.connect_as(visitor).await;
    let later = open.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(150)).await;
        *later.lock().unwrap() = true;
    });

    let output = client.call_tool("enter", json!({})).await.unwrap();

    assert_eq!(output.content[0].as_text(), Some("in"));
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the user was asked once");
    assert_eq!(server.count("tools/call"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_visit_that_is_declined_ends_the_call() {
    let server = gatekeeper(Arc::default(), &["a"]);
    let visitor = client().on_url_elicitation(|_| async { ElicitationAction::Decline });
    let client = server.connect_as(visitor).await;

    let error = client.call_tool("enter", json!({})).await.unwrap_err();

    assert!(
        matches!(error, CallError::UrlElicitationDeclined { .. }),
        "{error}"
    );
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_visit_that_nobody_can_make_is_an_error_of_the_server() {
    let server = gatekeeper(Arc::default(), &["a"]);
    let client = server.connect().await;

    let error = client.call_tool("enter", json!({})).await.unwrap_err();

    assert_eq!(error.rpc().unwrap().code, URL_REQUIRED);
}

#[tokio::test(start_paused = true)]
async fn the_newest_revision_knows_no_refusal_by_visit() {
    let server = FakeServer::modern();
    server.on("tools/call", |_| {
        Reply::Error(json!({ "code": URL_REQUIRED, "message": "no", "data": { "elicitations": [visit("a")] } }))
    });
    let visitor = client().on_url_elicitation(|_| async { ElicitationAction::Accept });
    let client = server.connect_as(visitor).await;

    let error = client.call_tool("enter", json!({})).await.unwrap_err();

    assert_eq!(error.rpc().unwrap().code, URL_REQUIRED);
    assert_eq!(client.server().revision.as_str(), MODERN);
}
