//! The same server behind a guard.

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

/// What those show whom the guard knows.
pub(crate) const KNOWN: &str = "Bearer a-long-and-random-text";

/// A guard who knows one token.
pub(crate) fn guard() -> ResourceServer {
    let token = KNOWN.trim_start_matches("Bearer ");
    let mut checker = Principal::new("local", "checker");
    checker.scopes = ["mcp".to_owned()].into();
    ResourceServer::new(URL, Arc::new(Offline))
        .unwrap()
        .issuer(TrustedIssuer::jwt("https://auth.example.com"))
        .require_scopes("mcp".parse().unwrap())
        .static_token(Secret::new(token), checker)
}

/// A target that is reached within this process, with these credentials.
pub(crate) fn through(connector: http::MemoryConnector, credentials: &str) -> ServerTarget {
    let headers = match credentials {
        "" => vec![],
        shown => vec![("authorization".to_owned(), shown.to_owned())],
    };
    ServerTarget::http(URL, http_via(URL, connector), headers)
}

/// Nobody can be asked.
struct Offline;

impl Fetch for Offline {
    fn fetch(&self, _: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async { Err(FetchError::Unreachable("nobody is there".into())) })
    }
}

async fn check(credentials: &str) -> Result<Report, CheckError> {
    let (connector, listener) = http::memory();
    let guarded = http::Http::new(server()).authenticator(guard());
    tokio::spawn(guarded.serve(listener));
    check_server(&through(connector, credentials), &CheckOptions::default()).await
}

#[tokio::test(start_paused = true)]
async fn everything_is_right_behind_a_guard() {
    let report = check(KNOWN).await.expect("the guard knows us");

    assert_good(&report);
    let guarded = |id: &str| {
        report
            .results()
            .any(|(_, result)| result.rule.id == id && result.status() == RuleStatus::Pass)
    };
    assert!(guarded("authorization.missing-401"));
    assert!(guarded("authorization.session-is-no-token"));
}

#[tokio::test(start_paused = true)]
async fn a_guard_can_be_judged_from_outside() {
    let Err(CheckError::Unauthorized { status, report }) = check("").await else {
        panic!("the guard does not know us");
    };

    assert_eq!(status, 401);
    assert!(report.findings().is_empty());
    let passed = report
        .results()
        .filter(|(_, result)| result.status() == RuleStatus::Pass);
    assert!(passed.count() > 20);
}
