//! Our own server, with something of everything: nothing is wrong with it.

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

/// The endpoint on HTTP.
pub(crate) const URL: &str = "http://127.0.0.1/mcp";

/// A server with something of everything.
pub(crate) fn server() -> Server {
    let server = Server::new("good", "1.0").instructions("Is checked.");
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
    through(connector)
}

fn on_http_sse() -> ServerTarget {
    let (connector, listener) = http::memory();
    let both = http::Http::new(server()).http_sse(http::HttpSse::new());
    tokio::spawn(both.serve(listener));
    through_sse(connector)
}

/// A target that is reached by connections within this process.
pub(crate) fn through(connector: http::MemoryConnector) -> ServerTarget {
    ServerTarget::http(URL, http_via(URL, connector), Vec::new())
}

/// The same by HTTP+SSE.
pub(crate) fn through_sse(connector: http::MemoryConnector) -> ServerTarget {
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
    let bad: Vec<_> = report
        .results()
        .filter(|(_, result)| {
            matches!(
                result.status(),
                RuleStatus::Fail | RuleStatus::Warn | RuleStatus::Advice | RuleStatus::NotTested
            )
        })
        .map(|(run, result)| format!("{} {} {:#?}", run.revision, result.rule.id, result.outcome))
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn everything_is_right_on_lines() {
    assert_good(
        &check_server(&on_ndjson(), &CheckOptions::default())
            .await
            .expect("the server is there"),
    );
}

#[tokio::test(start_paused = true)]
async fn everything_is_right_on_http() {
    assert_good(
        &check_server(&on_http(), &CheckOptions::default())
            .await
            .expect("the server is there"),
    );
}

#[tokio::test(start_paused = true)]
async fn everything_is_right_on_http_sse() {
    let revisions = [Revision::V2024_10_07, Revision::V2024_11_05];
    let mut options = CheckOptions::default();
    options.revisions = revisions.into();

    let checked = check_server(&on_http_sse(), &options).await;

    assert_good_in(&checked.expect("the server is there"), &revisions);
}
