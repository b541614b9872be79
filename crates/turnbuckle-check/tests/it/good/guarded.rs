//! The same server behind a guard.

use std::sync::Arc;

use turnbuckle_auth::{
    Secret,
    fetch::{Fetch, FetchError, Request, Response},
    server::{Issuer, ResourceServer},
};
use turnbuckle_check::{
    NotChecked, Options, Target, check_server,
    report::{Grade, Report},
};
use turnbuckle_protocol::{Principal, guard::BoxFuture};
use turnbuckle_server::http;

use super::{URL, assert_good, dialing, server};

/// What those show whom the guard knows.
pub(crate) const KNOWN: &str = "Bearer a-long-and-random-text";

/// A guard who knows one token.
pub(crate) fn guard() -> ResourceServer {
    let token = KNOWN.trim_start_matches("Bearer ");
    let mut checker = Principal::new("local", "checker");
    checker.scopes = ["mcp".to_owned()].into();
    ResourceServer::new(URL, Arc::new(Offline))
        .unwrap()
        .issuer(Issuer::jwt("https://auth.example.com"))
        .require("mcp".parse().unwrap())
        .token(Secret::new(token), checker)
}

/// A target that is reached within this process, with these credentials.
pub(crate) fn through(connector: http::Connector, credentials: &str) -> Target {
    let headers = match credentials {
        "" => vec![],
        shown => vec![("authorization".to_owned(), shown.to_owned())],
    };
    Target::http(URL, dialing(URL, connector), headers)
}

/// Nobody can be asked.
struct Offline;

impl Fetch for Offline {
    fn fetch(&self, _: Request) -> BoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async { Err(FetchError::Unreachable("nobody is there".into())) })
    }
}

async fn check(credentials: &str) -> Result<Report, NotChecked> {
    let (connector, listener) = http::memory();
    let guarded = http::Http::new(server()).guard(guard());
    tokio::spawn(guarded.serve(listener));
    check_server(&through(connector, credentials), &Options::default()).await
}

#[tokio::test(start_paused = true)]
async fn everything_is_right_behind_a_guard() {
    let report = check(KNOWN).await.expect("the guard knows us");

    assert_good(&report);
    let guarded = |id: &str| {
        report
            .rulings()
            .any(|(_, ruling)| ruling.rule.id == id && ruling.grade() == Grade::Pass)
    };
    assert!(guarded("authorization.missing-401"));
    assert!(guarded("authorization.session-is-no-token"));
}

#[tokio::test(start_paused = true)]
async fn a_guard_can_be_judged_from_outside() {
    let Err(NotChecked::Denied { status, report }) = check("").await else {
        panic!("the guard does not know us");
    };

    assert_eq!(status, 401);
    assert!(report.findings().is_empty());
    let passed = report
        .rulings()
        .filter(|(_, ruling)| ruling.grade() == Grade::Pass);
    assert!(passed.count() > 20);
}
