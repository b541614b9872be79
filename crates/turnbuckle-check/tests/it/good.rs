//! The good server: our own server with all features, which passes all rules.

mod changes;
mod elicitation;
mod prompts;
pub(crate) mod protected;
mod resources;
mod tasks;
mod tools;

use turnbuckle_check::{CheckOptions, Report, ServerTarget, check_server, report::RuleStatus};
use turnbuckle_client::http::HttpTarget;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::{Server, http, ndjson::NdjsonServer};

/// The HTTP endpoint.
pub(crate) const URL: &str = "http://127.0.0.1/mcp";

/// Returns a server with all features.
pub(crate) fn server() -> Server {
    let server = Server::new("good", "1.0")
        .instructions("A server under test.")
        .validate_input(true)
        .validate_output(cfg!(debug_assertions));
    let server = tools::register(server);
    let server = resources::register(server);
    let server = prompts::register(server);
    let server = elicitation::register(server);
    let server = changes::register(server);
    tasks::register(server)
}

pub(crate) fn on_ndjson() -> ServerTarget {
    ServerTarget::streams("good", || async {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(NdjsonServer::new(server()).serve(reader, writer));
        Ok(tokio::io::split(near))
    })
}

pub(crate) fn on_http() -> ServerTarget {
    let (connector, listener) = http::memory();
    tokio::spawn(http::serve(listener, server()));
    target_via(connector)
}

fn on_http_sse() -> ServerTarget {
    let (connector, listener) = http::memory();
    let both = http::Http::new(server()).http_sse(http::HttpSse::new());
    tokio::spawn(both.serve(listener));
    sse_target_via(connector)
}

/// Returns a target with in-process connections.
pub(crate) fn target_via(connector: http::MemoryConnector) -> ServerTarget {
    ServerTarget::http(URL, http_via(URL, connector), Vec::new())
}

/// Returns a target with in-process connections and HTTP+SSE.
pub(crate) fn sse_target_via(connector: http::MemoryConnector) -> ServerTarget {
    let url = "http://127.0.0.1/sse";
    ServerTarget::http(url, http_via(url, connector), Vec::new()).http_sse()
}

pub(crate) fn http_via(url: &str, connector: http::MemoryConnector) -> HttpTarget {
    HttpTarget::new(url).connector(move || {
        let connector = connector.clone();
        async move { connector.connect().await }
    })
}

pub(crate) fn assert_good(report: &Report) {
    assert_good_in(report, &Revision::ALL);
}

fn assert_good_in(report: &Report, revisions: &[Revision]) {
    assert_eq!(report.runs.len(), revisions.len());
    for run in &report.runs {
        assert_eq!(run.unsupported, None, "{}", run.revision);
        assert!(!run.results.is_empty(), "{}", run.revision);
    }
    let failures: Vec<_> = report
        .results()
        .filter(|(_, result)| {
            matches!(
                result.status(),
                RuleStatus::Fail | RuleStatus::Warn | RuleStatus::Advice | RuleStatus::NotTested
            )
        })
        .map(|(run, result)| format!("{} {} {:#?}", run.revision, result.rule.id, result.outcome))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn passes_all_rules_on_ndjson() {
    assert_good(
        &check_server(&on_ndjson(), &CheckOptions::default())
            .await
            .expect("the server is reachable"),
    );
}

#[tokio::test(start_paused = true)]
async fn passes_all_rules_on_http() {
    assert_good(
        &check_server(&on_http(), &CheckOptions::default())
            .await
            .expect("the server is reachable"),
    );
}

#[tokio::test(start_paused = true)]
async fn passes_all_rules_on_http_sse() {
    let revisions = [Revision::V2024_10_07, Revision::V2024_11_05];
    let mut options = CheckOptions::default();
    options.revisions = revisions.into();

    let checked = check_server(&on_http_sse(), &options).await;

    assert_good_in(&checked.expect("the server is reachable"), &revisions);
}
