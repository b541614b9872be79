//! The good server with authorization.

use std::sync::Arc;

use turnbuckle_auth::{
    Secret,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
    server::{ResourceServer, TrustedIssuer},
};
use turnbuckle_check::{
    CheckError, CheckOptions, ServerTarget, check_server,
    report::{Report, RuleStatus},
};
use turnbuckle_protocol::{Principal, authenticator::BoxFuture};
use turnbuckle_server::http;

use super::{URL, assert_good, http_via, server};

/// The valid credentials.
pub(crate) const CREDENTIALS: &str = "Bearer a-long-and-random-text";

/// Returns an authenticator that accepts one token.
pub(crate) fn authenticator() -> ResourceServer {
    let token = CREDENTIALS.trim_start_matches("Bearer ");
    let mut checker = Principal::new("local", "checker");
    checker.scopes = ["mcp".to_owned()].into();
    ResourceServer::new(URL, Arc::new(Offline))
        .unwrap()
        .issuer(TrustedIssuer::jwt("https://auth.example.com"))
        .require_scopes("mcp".parse().unwrap())
        .static_token(Secret::new(token), checker)
}

/// Returns an in-process target with these credentials.
pub(crate) fn target_via(connector: http::MemoryConnector, credentials: &str) -> ServerTarget {
    let headers = match credentials {
        "" => vec![],
        credentials => vec![("authorization".to_owned(), credentials.to_owned())],
    };
    ServerTarget::http(URL, http_via(URL, connector), headers)
}

/// Fetches nothing.
struct Offline;

impl Fetch for Offline {
    fn fetch(&self, _: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async { Err(FetchError::Unreachable("offline".into())) })
    }
}

async fn check(credentials: &str) -> Result<Report, CheckError> {
    let (connector, listener) = http::memory();
    let protected = http::Http::new(server()).authenticator(authenticator());
    tokio::spawn(protected.serve(listener));
    check_server(
        &target_via(connector, credentials),
        &CheckOptions::default(),
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn passes_all_rules_with_authorization() {
    let report = check(CREDENTIALS).await.expect("the token is valid");

    assert_good(&report);
    let protected = |id: &str| {
        report
            .results()
            .any(|(_, result)| result.rule.id == id && result.status() == RuleStatus::Pass)
    };
    assert!(protected("authorization.missing-401"));
    assert!(protected("authorization.session-is-no-token"));
}

#[tokio::test(start_paused = true)]
async fn authorization_is_checked_without_a_token() {
    let Err(CheckError::Unauthorized { status, report }) = check("").await else {
        panic!("the token is invalid");
    };

    assert_eq!(status, 401);
    assert!(report.findings().is_empty());
    let passed = report
        .results()
        .filter(|(_, result)| result.status() == RuleStatus::Pass);
    assert!(passed.count() > 20);
}
