//! Servers that are processes, on real pipes.
//!
//! The process is this test binary itself, told by an environment variable to be a server. What the test runner prints
//! goes to standard error; the server writes to what was standard output before.
#![cfg(unix)]

use std::{env, fs::File, time::Duration};

use turnbuckle_check::{CheckOptions, Report, ServerTarget, check_server, report::RuleStatus};
use turnbuckle_client::stdio::ServerCommand;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::ndjson::NdjsonServer;

use crate::good;

const ROLE: &str = "TURNBUCKLE_TEST_IS_SERVER";

#[test]
fn be_the_server() {
    if env::var(ROLE).is_err() {
        return;
    }
    let output = File::create("/dev/fd/3").expect("the shell keeps standard output as 3");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let output = tokio::fs::File::from_std(output);
    let _ = runtime.block_on(NdjsonServer::new(good::server()).serve(tokio::io::stdin(), output));
    std::process::exit(0);
}

/// Starts the server by a script, in which `serve` stands for it.
fn target(script: &str) -> ServerTarget {
    let exe = env::current_exe().expect("a test runs in a file");
    let serve = "serve() { \"$0\" --exact process::be_the_server --nocapture 3>&1 1>&2; }";
    let child = ServerCommand::new("sh")
        .args(["-c", &format!("{serve}\n{script}")])
        .arg(exe)
        .env(ROLE, "yes")
        .kill_timeout(Duration::from_millis(100));
    ServerTarget::child("process", child)
}

async fn check(script: &str, only: &str, response_timeout: Duration) -> Report {
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::MODERN];
    options.only = vec![only.to_owned()];
    options.response_timeout = response_timeout;
    check_server(&target(script), &options)
        .await
        .expect("the server speaks")
}

fn broken(report: &Report) -> Vec<(&'static str, RuleStatus)> {
    let results = report.results().map(|(_, result)| result);
    let graded = results.map(|result| (result.rule.id, result.status()));
    graded
        .filter(|(_, grade)| *grade != RuleStatus::Pass)
        .collect()
}

#[tokio::test]
async fn everything_about_the_process_is_right() {
    let report = check("serve", "stdio", Duration::from_secs(20)).await;

    assert_eq!(broken(&report), []);
    assert_eq!(report.results().count(), 6);
}

#[tokio::test]
async fn a_banner_on_standard_output_is_seen() {
    let report = check(
        "echo Starting...; serve",
        "stdio.only-messages",
        Duration::from_secs(20),
    )
    .await;

    assert_eq!(broken(&report), [("stdio.only-messages", RuleStatus::Fail)]);
}

#[tokio::test]
async fn a_process_that_stays_after_its_input_is_seen() {
    let report = check(
        "serve; sleep 60",
        "stdio.ends-with-input",
        Duration::from_secs(3),
    )
    .await;

    assert_eq!(
        broken(&report),
        [("stdio.ends-with-input", RuleStatus::Warn)]
    );
}

#[tokio::test]
async fn a_process_that_does_not_listen_to_signals_is_seen() {
    let report = check(
        "trap '' TERM; serve",
        "stdio.ends-on-request",
        Duration::from_secs(3),
    )
    .await;

    assert_eq!(
        broken(&report),
        [("stdio.ends-on-request", RuleStatus::Advice)]
    );
}
