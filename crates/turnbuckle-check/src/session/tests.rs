use std::time::Duration;

use serde_json::json;
use turnbuckle_client::http::HttpTarget;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::{Resource, Server, http};

use crate::{
    engine::{check_context::CheckContext, run::check_server},
    options::CheckOptions,
    target::ServerTarget,
};

const URL: &str = "http://127.0.0.1/mcp";

fn on_http(server: &Server) -> ServerTarget {
    let (connector, listener) = http::memory();
    tokio::spawn(http::serve(listener, server.clone()));
    let http = HttpTarget::new(URL).connector(move || {
        let connector = connector.clone();
        async move { connector.connect().await }
    });
    ServerTarget::http(URL, http, Vec::new())
}

fn server() -> Server {
    Server::new("notes", "1.0").resource(Resource::text("note://a", "a", "Hello."))
}

fn ctx(target: &ServerTarget, revision: Revision) -> CheckContext {
    CheckContext::new(target, &CheckOptions::default(), revision)
}

#[tokio::test(start_paused = true)]
async fn server_messages_are_received_on_the_get_stream() {
    let server = server();
    let ctx = ctx(&on_http(&server), Revision::V2025_11_25);
    let session = ctx.session().await.unwrap();
    let subscribed = session.request("resources/subscribe", json!({ "uri": "note://a" }));
    subscribed.await.unwrap().result().unwrap();
    session.open_get_stream().await;

    server.resource_updated("note://a");
    let received = session.listen(Duration::from_millis(150)).await;

    let methods: Vec<_> = received
        .iter()
        .map(|&number| ctx.transcript.entry(number).json().unwrap()["method"].clone())
        .collect();
    assert_eq!(methods, ["notifications/resources/updated"]);
}

#[tokio::test(start_paused = true)]
async fn server_messages_are_received_while_waiting_for_a_response() {
    let server = server();
    let ctx = ctx(&on_http(&server), Revision::V2025_06_18);
    let session = ctx.session().await.unwrap();
    let subscribed = session.request("resources/subscribe", json!({ "uri": "note://a" }));
    subscribed.await.unwrap().result().unwrap();
    session.open_get_stream().await;

    server.resource_updated("note://a");
    tokio::time::sleep(Duration::from_millis(1)).await;
    session.request("ping", json!({})).await.unwrap();

    assert_eq!(session.unsolicited().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn get_stream_is_requested_once() {
    let (connector, listener) = http::memory();
    let stateless = http::Http::new(server()).sessions(http::SessionMode::Off);
    tokio::spawn(stateless.serve(listener));
    let http = HttpTarget::new(URL).connector(move || {
        let connector = connector.clone();
        async move { connector.connect().await }
    });
    let ctx = ctx(
        &ServerTarget::http(URL, http, Vec::new()),
        Revision::V2025_11_25,
    );
    let session = ctx.session().await.unwrap();

    assert!(session.listen(Duration::from_millis(150)).await.is_empty());
    let entries = ctx.transcript.len();
    assert!(session.listen(Duration::from_millis(150)).await.is_empty());

    assert_eq!(ctx.transcript.len(), entries);
}

#[tokio::test(start_paused = true)]
async fn http_sse_responses_arrive_on_the_stream() {
    let (connector, listener) = http::memory();
    let both = http::Http::new(server()).http_sse(http::HttpSse::new());
    tokio::spawn(both.serve(listener));
    let url = "http://127.0.0.1/sse";
    let http = HttpTarget::new(url).connector(move || {
        let connector = connector.clone();
        async move { connector.connect().await }
    });
    let target = ServerTarget::http(url, http, Vec::new()).http_sse();
    let ctx = ctx(&target, Revision::V2024_11_05);

    let session = ctx.session().await.unwrap();
    let response = session.request("resources/list", json!({})).await.unwrap();

    assert_eq!(response.status, Some(202));
    assert_eq!(
        response.result().unwrap()["resources"][0]["uri"],
        "note://a"
    );
}

#[tokio::test(start_paused = true)]
async fn http_sse_is_detected() {
    for (url, transport) in [("http://127.0.0.1/sse", "http+sse"), (URL, "http")] {
        let (connector, listener) = http::memory();
        let both = http::Http::new(server()).http_sse(http::HttpSse::new());
        tokio::spawn(both.serve(listener));
        let http = HttpTarget::new(url).connector(move || {
            let connector = connector.clone();
            async move { connector.connect().await }
        });

        let mut options = CheckOptions::default();
        options.revisions = vec![Revision::V2024_11_05];
        options.only = vec!["base.unknown-method".into()];

        let report = check_server(&ServerTarget::http(url, http, Vec::new()), &options).await;

        assert_eq!(report.unwrap().runs[0].transport, transport);
    }
}
