//! Servers that other machines reach: on all addresses of this one, or under a name that is not its own.

use tokio::net::TcpListener;
use turnbuckle_check::{CheckOptions, Report, ServerTarget, check_server, report::RuleStatus};
use turnbuckle_client::http::HttpTarget;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::http;

use crate::good;

async fn judged(target: &ServerTarget, rule: &str) -> Vec<RuleStatus> {
    let mut options = CheckOptions::default();
    options.only = vec![rule.to_owned()];
    options.revisions = vec![Revision::V2025_11_25, Revision::V2026_07_28];
    let report: Report = check_server(target, &options).await.unwrap();
    report
        .results()
        .map(|(_, result)| result.status())
        .collect()
}

/// A server that is bound to an address, reached by loopback.
async fn bound_to(address: &str) -> ServerTarget {
    let listener = TcpListener::bind(address).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(http::serve(listener, good::server()));
    let url = format!("http://127.0.0.1:{port}/mcp");
    ServerTarget::http(&url, HttpTarget::new(&url), Vec::new()).by_network()
}

#[tokio::test]
async fn a_local_server_that_is_open_to_other_machines_is_warned() {
    let closed = judged(&bound_to("127.0.0.1:0").await, "origins.loopback-only").await;
    let open = judged(&bound_to("0.0.0.0:0").await, "origins.loopback-only").await;

    // A machine without a network has no address at which it could be tried.
    if closed == [RuleStatus::NotTested; 2] {
        return;
    }
    assert_eq!(closed, [RuleStatus::Pass; 2]);
    assert_eq!(open, [RuleStatus::Warn; 2]);
}

/// A server on another machine, as far as its URL tells.
fn elsewhere(http: http::Http, headers: Vec<(String, String)>) -> ServerTarget {
    let (connector, listener) = http::memory();
    tokio::spawn(http.allow_host("mcp.example").serve(listener));
    let url = "http://mcp.example/mcp";
    ServerTarget::http(url, good::http_via(url, connector), headers)
}

#[tokio::test(start_paused = true)]
async fn a_public_server_that_lets_everybody_in_is_warned() {
    let rule = "authorization.required";
    let key = || vec![("x-api-key".to_owned(), "a-key".to_owned())];
    let token = || {
        vec![(
            "authorization".to_owned(),
            good::protected::KNOWN.to_owned(),
        )]
    };
    let guarded = || http::Http::new(good::server()).authenticator(good::protected::guard());

    let open = judged(&elsewhere(http::Http::new(good::server()), key()), rule).await;
    let guarded = judged(&elsewhere(guarded(), token()), rule).await;
    let local = judged(&good::on_http(), rule).await;

    assert_eq!(open, [RuleStatus::Warn; 2]);
    assert_eq!(guarded, [RuleStatus::Pass; 2]);
    assert_eq!(local, [RuleStatus::NotApplicable; 2]);
}
