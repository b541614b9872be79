//! Servers that run as processes, with real pipes.
//!
//! The process is this test binary, which an environment variable turns into a server. Output of the test runner
//! goes to standard error; the server writes to the original standard output.
#![cfg(unix)]

use std::{env, fs::File, time::Duration};

use turnbuckle_check::{CheckOptions, Report, ServerTarget, check_server, report::RuleStatus};
use turnbuckle_client::stdio::ServerCommand;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::ndjson::NdjsonServer;

use crate::good;

const ROLE: &str = "TURNBUCKLE_TEST_IS_SERVER";

#[test]
fn run_server_process() {
    if env::var(ROLE).is_err() {
        return;
    }
    let output = File::create("/dev/fd/3").expect("the shell duplicates standard output as 3");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let output = tokio::fs::File::from_std(output);
    let _ = runtime.block_on(NdjsonServer::new(good::server()).serve(tokio::io::stdin(), output));
    std::process::exit(0);
}

/// Returns a target that runs a script; `serve` in the script runs the server.
fn target(script: &str) -> ServerTarget {
    let exe = env::current_exe().expect("the test binary has a path");
    let serve = "serve() { \"$0\" --exact process::run_server_process --nocapture 3>&1 1>&2; }";
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
        .expect("the server supports the revision")
}

fn violated(report: &Report) -> Vec<(&'static str, RuleStatus)> {
    let results = report.results().map(|(_, result)| result);
    let results_with = results.map(|result| (result.rule.id, result.status()));
    results_with
        .filter(|(_, status)| *status != RuleStatus::Pass)
        .collect()
}

#[tokio::test]
async fn process_passes_all_stdio_rules() {
    let report = check("serve", "stdio", Duration::from_secs(20)).await;

    assert_eq!(violated(&report), []);
    assert_eq!(report.results().count(), 6);
}

#[tokio::test]
async fn banner_on_standard_output_is_a_violation() {
    let report = check(
        "echo Starting...; serve",
        "stdio.only-messages",
        Duration::from_secs(20),
    )
    .await;

    assert_eq!(
        violated(&report),
        [("stdio.only-messages", RuleStatus::Fail)]
    );
}

#[tokio::test]
async fn process_that_outlives_its_input_gets_a_warning() {
    let report = check(
        "serve; sleep 60",
        "stdio.ends-with-input",
        Duration::from_secs(3),
    )
    .await;

    assert_eq!(
        violated(&report),
        [("stdio.ends-with-input", RuleStatus::Warn)]
    );
}

#[tokio::test]
async fn process_that_ignores_sigterm_gets_advice() {
    let report = check(
        "trap '' TERM; serve",
        "stdio.ends-on-request",
        Duration::from_secs(3),
    )
    .await;

    assert_eq!(
        violated(&report),
        [("stdio.ends-on-request", RuleStatus::Advice)]
    );
}

/// A server of 2025-11-25 with the tool `boom`, which ends it.
const CRASHING: &str = r#"
result() { echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) result '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
  *tools/list*) result '{"tools":[{"name":"boom","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
  *tools/call*) echo "no barometer" >&2; exit 3 ;;
  *) [ -z "$id" ] || result '{}' ;;
  esac
done"#;

#[tokio::test]
async fn process_that_crashes_in_a_tool_gets_one_finding() {
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::V2025_11_25];
    options.only = vec!["tools.output-fits".to_owned()];

    let report = check_server(&target(CRASHING), &options).await.unwrap();

    let findings = report.findings();
    let [finding] = &findings[..] else {
        panic!("{findings:#?}");
    };
    assert_eq!(finding.rule.id, "robustness.stays-alive");
    assert_eq!(
        finding.observed,
        "the server process exited with code 3 after `tools/call` of the tool `boom`; last lines of stderr:\nno barometer"
    );
    assert!(finding.evidence[0].text.contains("tools/call"));
    assert_eq!(report.count(RuleStatus::Fail), 0);
}

/// Checks a server that exits without a response to its first `lost` pings.
async fn check_with_lost_responses(lost: u32) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("pings");
    let script = format!(
        r#"
result() {{ echo '{{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}}'; }}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) result '{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}' ;;
  *'"ping"'*)
    echo >>'{count}'
    [ "$(wc -l <'{count}')" -gt {lost} ] || exit 0
    result '{{}}' ;;
  esac
done"#,
        count = count.display()
    );
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::V2025_11_25];
    options.only = vec!["stdio.answers-before-leaving".to_owned()];
    check_server(&target(&script), &options).await.unwrap()
}

#[tokio::test]
async fn two_responses_that_are_lost_at_the_end_of_input_are_no_finding() {
    let report = check_with_lost_responses(2).await;

    assert_eq!(violated(&report), []);
    assert_eq!(report.results().count(), 1);
}

#[tokio::test]
async fn a_third_response_that_is_lost_at_the_end_of_input_is_a_finding() {
    let report = check_with_lost_responses(3).await;

    assert_eq!(
        violated(&report),
        [("stdio.answers-before-leaving", RuleStatus::Advice)]
    );
}
