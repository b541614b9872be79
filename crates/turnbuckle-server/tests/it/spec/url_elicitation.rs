//! Required URL elicitations, and sensitive data in them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_protocol::Principal;
use turnbuckle_server::{Context, Elicitation, Prompt, Server, TaskSupport, Tool, ToolError};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::{HttpTestClient, modern, modern_headers},
    ndjson::test_client::Peer,
    spec::{
        client_requests::{call, everything, sent_client_requests},
        revision_client::{EVERY, MODERN, RevisionClient},
    },
    tasks::test_server::request_with_notifications,
};

const PAGES: [&str; 2] = ["https://files.example/link", "https://files.example/terms"];

/// A server with a tool that requires a linked account.
fn server() -> (Server, Arc<AtomicBool>) {
    let linked = Arc::new(AtomicBool::new(false));
    let records = linked.clone();
    let files = Tool::new("files", move |cx: Context| {
        let records = records.clone();
        async move {
            if !records.load(Ordering::SeqCst) {
                cx.require_url_elicitation(
                    "link",
                    PAGES.map(|page| Elicitation::url("Link", page)),
                )
                .await?;
            }
            if !records.load(Ordering::SeqCst) {
                return Err(ToolError::new("not linked yet"));
            }
            Ok("a.txt".to_owned())
        }
    });
    let nowhere = Tool::new("nowhere", async |cx: Context| {
        cx.require_url_elicitation("nowhere", []).await?;
        Ok("here".to_owned())
    });
    let prompt = Prompt::new("linked", async |cx: Context| {
        cx.require_url_elicitation("link", [Elicitation::url("Link", PAGES[0])])
            .await?;
        Ok("linked".to_owned())
    });
    let server = Server::new("files", "1")
        .tool(files)
        .tool(nowhere)
        .prompt(prompt);
    (server, linked)
}

#[tokio::test(start_paused = true)]
async fn the_url_elicitation_required_error_lists_every_elicitation() {
    req!(
        "elicitation.url.required-error",
        "elicitation.url.required-error-std",
        "elicitation.url.required-error-list",
        "elicitation.url.required-error-mode"
    );
    let (server, linked) = server();
    let mut client = RevisionClient::with("2025-11-25", server, everything()).await;
    for (method, params, pages) in [
        ("tools/call", call("files"), &PAGES[..]),
        ("prompts/get", json!({ "name": "linked" }), &PAGES[..1]),
    ] {
        let refused = client.call(method, params).await;

        assert_eq!(refused["error"]["code"], -32042, "{refused}");
        let listed = refused["error"]["data"]["elicitations"].as_array().unwrap();
        assert_eq!(listed.len(), pages.len());
        for (visit, page) in listed.iter().zip(pages) {
            assert_eq!(
                (&visit["mode"], &visit["url"]),
                (&json!("url"), &json!(page))
            );
            assert_eq!(visit["message"], "Link");
            assert!(visit["elicitationId"].is_string(), "{visit}");
        }
    }

    linked.store(true, Ordering::SeqCst);
    let done = client.tool("files", json!({})).await;
    assert_eq!(done["content"][0]["text"], "a.txt");
}

#[tokio::test(start_paused = true)]
async fn only_a_required_url_elicitation_has_its_error_code() {
    req!("elicitation.url.required-error-only");
    for revision in EVERY {
        let (server, _) = server();
        let mut client = RevisionClient::with(revision, server.clone(), everything()).await;
        let here = client.tool("nowhere", json!({})).await;
        assert_eq!(here["content"][0]["text"], "here", "{revision}");

        // A client without URL elicitation gets the missing capability, never the URL.
        let mut client = RevisionClient::with(revision, server, json!({ "elicitation": {} })).await;
        for (method, params) in [
            ("tools/call", call("files")),
            ("tools/call", call("unknown")),
            ("prompts/get", json!({ "name": "linked" })),
            ("prompts/get", json!({})),
            ("no/such", json!({})),
        ] {
            let refused = client.call(method, params).await;
            assert_ne!(refused["error"]["code"], -32042, "{revision} {refused}");
            assert!(
                refused["error"].is_object() || refused["result"]["isError"] == true,
                "{revision} {refused}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn modern_calls_request_urls_one_by_one() {
    req!("elicitation.url.accept-meaning");
    let (server, linked) = server();
    let mut client = RevisionClient::with(MODERN, server, everything()).await;
    let mut state = Value::Null;
    let mut responses = json!({});
    for page in PAGES {
        let mut params = call("files");
        if state.is_string() {
            params["requestState"] = state;
            params["inputResponses"] = responses;
        }
        let round = client.result("tools/call", params).await;
        let (key, client_request) = round["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        assert_eq!(client_request["params"]["url"], page);
        responses = json!({ key: { "action": "accept" } });
        state = round["requestState"].clone();
    }
    let mut last = call("files");
    last["requestState"] = state;
    last["inputResponses"] = responses;

    let agreed = client.result("tools/call", last.clone()).await;
    assert_eq!(agreed["isError"], true, "to agree is not to have done it");
    assert_eq!(agreed["content"][0]["text"], "not linked yet");

    linked.store(true, Ordering::SeqCst);
    let done = client.result("tools/call", last.clone()).await;
    assert_eq!(done["content"][0]["text"], "a.txt");

    linked.store(false, Ordering::SeqCst);
    for response in last["inputResponses"].as_object_mut().unwrap().values_mut() {
        *response = json!({ "action": "decline" });
    }
    let declined = client.result("tools/call", last).await;
    assert_eq!(declined["isError"], true);
    assert_ne!(declined["content"][0]["text"], "not linked yet");
}

/// A server that sends a URL elicitation and returns its id.
fn visiting() -> Server {
    let visit = Tool::new("visit", async |cx: Context| {
        let page = Elicitation::url("Sign in", "https://a.example/");
        let id = page.id().unwrap().to_owned();
        cx.elicit(page.key("visit")).await?;
        Ok(id)
    });
    let wait = Tool::new("wait", async |cx: Context| {
        let page = Elicitation::url("Sign in", "https://a.example/").with_id("of my own");
        cx.elicit(page.key("visit")).await?;
        cx.elicitation_complete("of my own").await;
        cx.elicitation_complete("of my own").await;
        Ok("done".to_owned())
    });
    Server::new("visiting", "1").tool(visit).tool(wait)
}

/// Calls a tool, accepts the elicitation, and returns its id and the next message.
async fn agree(client: &mut RevisionClient, tool: &str) -> (Value, Value) {
    let client_request = sent_client_requests(client, call(tool)).await.remove(0);
    let result = json!({ "action": "accept" });
    let response = json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result });
    client.peer.send(response).await;
    let next = client.peer.next().await;
    (client_request["params"]["elicitationId"].clone(), next)
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_url_elicitation_is_announced_once_by_id_to_its_client() {
    req!(
        "elicitation.url.complete",
        "elicitation.url.complete-id",
        "elicitation.url.complete-target",
        "elicitation.url.accept-meaning"
    );
    let server = visiting();
    let mut client = RevisionClient::with("2025-11-25", server.clone(), everything()).await;
    let mut other = RevisionClient::with("2025-11-25", server.clone(), everything()).await;
    let (id, response) = agree(&mut client, "visit").await;
    assert_eq!(response["result"]["content"][0]["text"], id);
    // Acceptance is not completion.
    client.peer.expect_no_message().await;

    server.elicitation_complete("some other visit");
    server.elicitation_complete(id.as_str().unwrap());
    server.elicitation_complete(id.as_str().unwrap());

    let ended = client.peer.next().await;
    assert_eq!(ended["method"], "notifications/elicitation/complete");
    assert_eq!(ended["params"], json!({ "elicitationId": id }));
    client.peer.expect_no_message().await;
    other.peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_awaits_an_elicitation_announces_its_end_before_the_response() {
    req!("elicitation.url.complete-id");
    let mut client = RevisionClient::with("2025-11-25", visiting(), everything()).await;

    let (id, ended) = agree(&mut client, "wait").await;

    assert_eq!(id, "of my own");
    assert_eq!(ended["method"], "notifications/elicitation/complete");
    assert_eq!(ended["params"], json!({ "elicitationId": id }));
    let response = client.peer.next().await;
    assert_eq!(response["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_required_url_elicitation_is_announced_on_the_open_stream() {
    req!("elicitation.url.complete-id");
    let (server, _) = server();
    let mut caller = HttpTestClient::new(server.clone());
    let mut hello = crate::http::test_client::initialize("2025-11-25");
    hello["params"]["capabilities"] = everything();
    let http_response = caller.post(&hello).await;
    caller.session = http_response.header("mcp-session-id").map(str::to_owned);
    caller.version = Some("2025-11-25".to_owned());
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    caller.post(&ready).await;
    let mut stream = caller.get(None).await.stream();
    stream.prime().await;

    let refused = caller.tool(1, "files", json!({})).await.json().await;
    let id = &refused["error"]["data"]["elicitations"][1]["elicitationId"];
    server.elicitation_complete(id.as_str().unwrap());

    let ended = stream.message().await.unwrap();
    assert_eq!(ended["method"], "notifications/elicitation/complete");
    assert_eq!(&ended["params"]["elicitationId"], id);
}

#[tokio::test(start_paused = true)]
async fn only_2025_11_25_announces_the_end_of_a_url_elicitation() {
    req!("elicitation.url.complete-removed");
    let server = visiting();
    let mut client = RevisionClient::with(MODERN, server.clone(), everything()).await;
    let mut params = call("wait");
    let round = client.result("tools/call", params.clone()).await;
    params["requestState"] = round["requestState"].clone();
    params["inputResponses"] = json!({ "visit": { "action": "accept" } });

    let done = client.result("tools/call", params).await;
    server.elicitation_complete("of my own");

    assert_eq!(done["content"][0]["text"], "done");
    client.peer.expect_no_message().await;
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the form is never filled in")]
struct Login {
    name: String,
    password: String,
}

#[derive(Deserialize, JsonSchema)]
struct UrlArguments {
    url: String,
}

/// A server that requests sensitive data in a form, and by URL.
fn curious() -> Server {
    let form = Tool::new("form", async |cx: Context| {
        cx.elicit(Elicitation::form::<Login>("Log in").key("login"))
            .await?;
        Ok("asked".to_owned())
    });
    let page = Tool::new("page", async |place: UrlArguments, cx: Context| {
        cx.elicit(Elicitation::url("Log in", place.url).key("login"))
            .await?;
        Ok("asked".to_owned())
    });
    Server::new("curious", "1").tool(form).tool(page)
}

#[tokio::test(start_paused = true)]
async fn a_form_with_a_secret_is_not_sent_and_a_url_elicitation_is() {
    req!(
        "elicitation.form.no-sensitive",
        "elicitation.no-sensitive-2025-06-18",
        "elicitation.url.sensitive"
    );
    for revision in ["2025-06-18", "2025-11-25", MODERN] {
        let mut client = RevisionClient::with(revision, curious(), everything()).await;

        let refused = client.tool("form", json!({})).await;

        assert_eq!(refused["isError"], true, "{revision}");
        let why = refused["content"][0]["text"].as_str().unwrap();
        assert!(why.contains("`password`") && why.contains("URL"), "{why}");
    }
    for revision in ["2025-11-25", MODERN] {
        let mut client = RevisionClient::with(revision, curious(), everything()).await;
        let page = json!({ "name": "page", "arguments": { "url": "https://a.example/login" } });
        let client_request = sent_client_requests(&mut client, page).await.remove(0);
        assert_eq!(client_request["params"]["mode"], "url", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_url_is_sent_unchanged_and_names_no_user() {
    req!("elicitation.url.no-user-data");
    for revision in ["2025-11-25", MODERN] {
        let mut client = RevisionClient::with(revision, curious(), everything()).await;
        for url in ["https://ada:secret@a.example/", "https://ada@a.example/"] {
            let refused = client.tool("page", json!({ "url": url })).await;
            assert_eq!(refused["isError"], true, "{revision} {url}");
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }

        let url = "https://a.example/login?flow=1";
        let page = json!({ "name": "page", "arguments": { "url": url } });
        let client_request = sent_client_requests(&mut client, page).await.remove(0);
        assert_eq!(client_request["params"]["url"], url, "{revision}");
    }

    // Data about the user and the token is not part of any request.
    let mut caller = HttpTestClient::new(curious());
    caller.principal = Some(Principal::new("https://login.example", "lovelace"));
    let url = "https://a.example/login?flow=1";
    let mut message = modern(
        "tools/call",
        json!({ "name": "page", "arguments": { "url": url } }),
    );
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/clientCapabilities"] = everything();
    meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "lovelace's", "version": "1" });
    let request = modern_headers(caller.request(Method::POST), &message)
        .header("authorization", "Bearer lovelace-token");
    let sent_client_requests = caller.send(request, message.to_string()).await.json().await;
    let questions = sent_client_requests["result"]["inputRequests"]
        .as_object()
        .unwrap();
    for client_request in questions.values() {
        assert_eq!(client_request["params"]["url"], url);
        assert!(
            !client_request.to_string().contains("lovelace"),
            "{client_request}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_announces_the_end_of_a_url_elicitation() {
    let link = Tool::new("link", async |cx: Context| {
        let page = Elicitation::url("Link", PAGES[0]).with_id("visit");
        cx.elicit(page.key("link")).await?;
        cx.elicitation_complete("visit").await;
        Ok("linked".to_owned())
    });
    let server = Server::new("files", "1").tool(link.task(TaskSupport::Optional));
    let capabilities = json!({ "elicitation": { "url": {} } });
    let mut peer = Peer::initialized(server, "2025-11-25", capabilities).await;
    let params = json!({ "name": "link", "task": {} });
    let (response, _) = request_with_notifications(&mut peer, "tools/call", params).await;
    let task = json!({ "taskId": response["result"]["task"]["taskId"] });

    peer.request("tasks/result", task).await;
    let mut ended = 0;
    let result = loop {
        let message = peer.next().await;
        match message["method"].as_str() {
            Some("elicitation/create") => {
                let result = json!({ "action": "accept" });
                peer.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
                    .await;
            }
            Some("notifications/elicitation/complete") => ended += 1,
            Some(_) => {}
            None => break message,
        }
    };
    assert_eq!(result["result"]["content"][0]["text"], "linked");
    while let Ok(message) = tokio::time::timeout(SECOND, peer.next()).await {
        ended += usize::from(message["method"] == "notifications/elicitation/complete");
    }
    assert_eq!(ended, 1);
}

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);
