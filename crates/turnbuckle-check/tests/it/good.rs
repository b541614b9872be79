//! Our own server, with something of everything: nothing is wrong with it.

mod asking;
mod changing;
pub(crate) mod guarded;
mod prompts;
mod resources;
mod tasks;
mod tools;

use turnbuckle_check::{Options, Report, Target, check_server, report::Grade};
use turnbuckle_client::http::Http;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::{Server, http, lines::Lines};

/// The endpoint on HTTP.
pub(crate) const URL: &str = "http://127.0.0.1/mcp";

/// A server with something of everything.
pub(crate) fn server() -> Server {
    let server = Server::new("good", "1.0").instructions("Is checked.");
    let server = tools::offer(server);
    let server = resources::offer(server);
    let server = prompts::offer(server);
    let server = asking::offer(server);
    let server = changing::offer(server);
    tasks::offer(server)
}

pub(crate) fn on_lines() -> Target {
    Target::streams("good", || async {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(Lines::new(server()).serve(reader, writer));
        Ok(tokio::io::split(near))
    })
}

pub(crate) fn on_http() -> Target {
    let (connector, listener) = http::memory();
    tokio::spawn(http::serve(listener, server()));
    through(connector)
}

fn on_http_sse() -> Target {
    let (connector, listener) = http::memory();
    let both = http::Http::new(server()).http_sse(http::HttpSse::new());
    tokio::spawn(both.serve(listener));
    through_sse(connector)
}

/// A target that is reached by connections within this process.
pub(crate) fn through(connector: http::Connector) -> Target {
    Target::http(URL, dialing(URL, connector), Vec::new())
}

/// The same by HTTP+SSE.
pub(crate) fn through_sse(connector: http::Connector) -> Target {
    let url = "http://127.0.0.1/sse";
    Target::http(url, dialing(url, connector), Vec::new()).http_sse()
}

pub(crate) fn dialing(url: &str, connector: http::Connector) -> Http {
    Http::new(url).through(move || {
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
        assert_eq!(run.not_spoken, None, "{}", run.revision);
        assert!(!run.rulings.is_empty(), "{}", run.revision);
    }
    let bad: Vec<_> = report
        .rulings()
        .filter(|(_, ruling)| {
            matches!(
                ruling.grade(),
                Grade::Fail | Grade::Warn | Grade::Advice | Grade::NotTested
            )
        })
        .map(|(run, ruling)| format!("{} {} {:#?}", run.revision, ruling.rule.id, ruling.verdict))
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn everything_is_right_on_lines() {
    assert_good(
        &check_server(&on_lines(), &Options::default())
            .await
            .expect("the server is there"),
    );
}

#[tokio::test(start_paused = true)]
async fn everything_is_right_on_http() {
    assert_good(
        &check_server(&on_http(), &Options::default())
            .await
            .expect("the server is there"),
    );
}

#[tokio::test(start_paused = true)]
async fn everything_is_right_on_http_sse() {
    let revisions = [Revision::V2024_10_07, Revision::V2024_11_05];
    let mut options = Options::default();
    options.revisions = revisions.into();

    let checked = check_server(&on_http_sse(), &options).await;

    assert_good_in(&checked.expect("the server is there"), &revisions);
}
