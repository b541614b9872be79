//! Servers that other machines can reach: bound to all addresses, or under a public name.

use tokio::net::TcpListener;
use turnbuckle_check::{CheckOptions, Report, ServerTarget, check_server, report::RuleStatus};
use turnbuckle_client::http::HttpTarget;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::http;

use crate::good;

async fn statuses(target: &ServerTarget, rule: &str) -> Vec<RuleStatus> {
    let mut options = CheckOptions::default();
    options.only = vec![rule.to_owned()];
    options.revisions = vec![Revision::V2025_11_25, Revision::V2026_07_28];
    let report: Report = check_server(target, &options).await.unwrap();
    report
        .results()
        .map(|(_, result)| result.status())
        .collect()
}

/// Returns a server that is bound to an address and reached through loopback.
async fn bound_to(address: &str) -> ServerTarget {
    let listener = TcpListener::bind(address).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(http::serve(listener, good::server()));
    let url = format!("http://127.0.0.1:{port}/mcp");
    ServerTarget::http(&url, HttpTarget::new(&url), Vec::new()).by_network()
}

#[tokio::test]
async fn local_server_on_all_addresses_gets_a_warning() {
    let closed = statuses(&bound_to("127.0.0.1:0").await, "origins.loopback-only").await;
    let open = statuses(&bound_to("0.0.0.0:0").await, "origins.loopback-only").await;

    // A machine without a network only has loopback addresses.
    if closed == [RuleStatus::NotTested; 2] {
        return;
    }
    assert_eq!(closed, [RuleStatus::Pass; 2]);
    assert_eq!(open, [RuleStatus::Warn; 2]);
}

/// Returns a server with a public URL.
fn public_server(http: http::Http, headers: Vec<(String, String)>) -> ServerTarget {
    let (connector, listener) = http::memory();
    tokio::spawn(http.allow_host("mcp.example").serve(listener));
    let url = "http://mcp.example/mcp";
    ServerTarget::http(url, good::http_via(url, connector), headers)
}

#[tokio::test(start_paused = true)]
async fn public_server_without_authorization_gets_a_warning() {
    let rule = "authorization.required";
    let key = || vec![("x-api-key".to_owned(), "a-key".to_owned())];
    let token = || {
        vec![(
            "authorization".to_owned(),
            good::protected::CREDENTIALS.to_owned(),
        )]
    };
    let protected =
        || http::Http::new(good::server()).authenticator(good::protected::authenticator());

    let open = statuses(&public_server(http::Http::new(good::server()), key()), rule).await;
    let protected = statuses(&public_server(protected(), token()), rule).await;
    let local = statuses(&good::on_http(), rule).await;

    assert_eq!(open, [RuleStatus::Warn; 2]);
    assert_eq!(protected, [RuleStatus::Pass; 2]);
    assert_eq!(local, [RuleStatus::NotApplicable; 2]);
}
