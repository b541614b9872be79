//! Servers that other machines reach: on all addresses of this one, or under a name that is not its own.

use tokio::net::TcpListener;
use turnbuckle_check::{Options, Report, Target, check_server, report::Grade};
use turnbuckle_client::http::Http;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::http;

use crate::good;

async fn judged(target: &Target, rule: &str) -> Vec<Grade> {
    let mut options = Options::default();
    options.only = vec![rule.to_owned()];
    options.revisions = vec![Revision::V2025_11_25, Revision::V2026_07_28];
    let report: Report = check_server(target, &options).await.unwrap();
    report.rulings().map(|(_, ruling)| ruling.grade()).collect()
}

/// A server that is bound to an address, reached by loopback.
async fn bound_to(address: &str) -> Target {
    let listener = TcpListener::bind(address).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(http::serve(listener, good::server()));
    let url = format!("http://127.0.0.1:{port}/mcp");
    Target::http(&url, Http::new(&url), Vec::new()).by_network()
}

#[tokio::test]
async fn a_local_server_that_is_open_to_other_machines_is_warned() {
    let closed = judged(&bound_to("127.0.0.1:0").await, "origins.loopback-only").await;
    let open = judged(&bound_to("0.0.0.0:0").await, "origins.loopback-only").await;

    // A machine without a network has no address at which it could be tried.
    if closed == [Grade::NotTested; 2] {
        return;
    }
    assert_eq!(closed, [Grade::Pass; 2]);
    assert_eq!(open, [Grade::Warn; 2]);
}

/// A server on another machine, as far as its URL tells.
fn elsewhere(http: http::Http, headers: Vec<(String, String)>) -> Target {
    let (connector, listener) = http::memory();
    tokio::spawn(http.allow_host("mcp.example").serve(listener));
    let url = "http://mcp.example/mcp";
    Target::http(url, good::dialing(url, connector), headers)
}

#[tokio::test(start_paused = true)]
async fn a_public_server_that_lets_everybody_in_is_warned() {
    let rule = "authorization.required";
    let key = || vec![("x-api-key".to_owned(), "a-key".to_owned())];
    let token = || vec![("authorization".to_owned(), good::guarded::KNOWN.to_owned())];
    let guarded = || http::Http::new(good::server()).guard(good::guarded::guard());

    let open = judged(&elsewhere(http::Http::new(good::server()), key()), rule).await;
    let guarded = judged(&elsewhere(guarded(), token()), rule).await;
    let local = judged(&good::on_http(), rule).await;

    assert_eq!(open, [Grade::Warn; 2]);
    assert_eq!(guarded, [Grade::Pass; 2]);
    assert_eq!(local, [Grade::NotApplicable; 2]);
}
