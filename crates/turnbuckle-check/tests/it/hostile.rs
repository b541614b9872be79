//! Hostile servers: the check still ends.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, copy_bidirectional,
        duplex, split,
    },
    sync::watch,
};
use turnbuckle_check::{
    CheckError, CheckOptions, Report, ServerTarget, check_server,
    report::{RuleOutcome, RuleResult, RuleStatus},
};
use turnbuckle_client::http::HttpTarget;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::{Server, Tool, ToolError, http as server_http};

use crate::good;

/// The buffer size of each direction.
const BUFFER: usize = 64 * 1024;

/// Checks an ndjson server that responds to the handshake and then runs `then`.
async fn check<F>(
    only: &[&str],
    then: impl Fn(BufReader<DuplexStream>) -> F + Copy + Send + Sync + 'static,
) -> Report
where
    F: Future<Output = ()> + Send + 'static,
{
    let target = ServerTarget::streams("hostile", move || async move {
        let (near, far) = duplex(BUFFER);
        tokio::spawn(async move {
            let mut far = BufReader::new(far);
            let mut line = String::new();
            while far.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                let message: Value = serde_json::from_str(&line).unwrap_or_default();
                line.clear();
                if message["method"] == "initialize" {
                    let response = opening(&message["id"]);
                    let _ = far.get_mut().write_all(response.as_bytes()).await;
                    break;
                }
            }
            then(far).await;
        });
        Ok(split(near))
    });
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::V2025_11_25];
    options.only = only.iter().map(|&name| name.to_owned()).collect();
    let checked = check_server(&target, &options).await;
    checked.expect("the server responds to the handshake")
}

fn opening(id: &Value) -> String {
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
        "serverInfo": { "name": "hostile", "version": "1" },
    });
    format!(
        "{}\n",
        json!({ "jsonrpc": "2.0", "id": id, "result": result })
    )
}

/// Sends notifications without end, and no responses.
async fn flood(mut far: BufReader<DuplexStream>) {
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/turnbuckle" });
    let lines = format!("{notification}\n").repeat(100);
    while far.get_mut().write_all(lines.as_bytes()).await.is_ok() {}
}

/// Neither reads nor writes.
async fn stand_still(far: BufReader<DuplexStream>) {
    std::future::pending::<()>().await;
    drop(far);
}

/// Reads, and sends no responses.
async fn only_read(mut far: BufReader<DuplexStream>) {
    let mut line = String::new();
    while far.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        line.clear();
    }
}

#[tokio::test(start_paused = true)]
async fn flood_of_notifications_does_not_block_the_check() {
    let report = check(&["base.same-id", "base.ping"], flood).await;

    assert_eq!(report.results().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn writes_to_a_server_that_does_not_read_time_out() {
    let report = check(&["robustness.long-text"], stand_still).await;

    assert_eq!(report.results().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn unresponsive_server_fails_few_rules() {
    let report = check(&[], only_read).await;

    let failed = report
        .results()
        .filter(|(_, result)| result.status() == RuleStatus::Fail);
    assert!(failed.count() <= 12, "about one per session");
    assert!(
        report.duration < Duration::from_secs(600),
        "{:?}",
        report.duration
    );
}

#[tokio::test(start_paused = true)]
async fn redirect_is_reported_with_its_location() {
    const REDIRECT: &[u8] =
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /mcp/\r\ncontent-length: 0\r\n\r\n";
    let url = "http://127.0.0.1/mcp";
    let http = HttpTarget::new(url).connector(|| async {
        let (near, mut far) = duplex(BUFFER);
        tokio::spawn(async move {
            let mut request = vec![0; BUFFER];
            while far.read(&mut request).await.is_ok_and(|read| read > 0) {
                let _ = far.write_all(REDIRECT).await;
            }
        });
        Ok(near)
    });

    let checked = check_server(
        &ServerTarget::http(url, http, Vec::new()),
        &CheckOptions::default(),
    )
    .await;

    let Err(CheckError::Redirected { status, location }) = checked else {
        panic!("{checked:?}");
    };
    assert_eq!((status, &*location), (307, "/mcp/"));
}

/// Responds to every request with an empty result; `id` changes the id, and the response to `ping` is late.
async fn respond(mut far: BufReader<DuplexStream>, id: fn(&Value) -> Value, delay: Duration) {
    let mut line = String::new();
    while far.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        line.clear();
        if message["method"] == "ping" {
            tokio::time::sleep(delay).await;
        }
        if message.get("id").is_some() {
            let response = json!({ "jsonrpc": "2.0", "id": id(&message["id"]), "result": {} });
            let response = format!("{response}\n");
            let _ = far.get_mut().write_all(response.as_bytes()).await;
        }
    }
}

fn statuses(report: &Report) -> Vec<(&'static str, RuleStatus)> {
    let results = report.results().map(|(_, result)| result);
    results
        .map(|result| (result.rule.id, result.status()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn late_response_is_waited_for_again() {
    let late = Duration::from_secs(8);
    assert!(late > CheckOptions::default().response_timeout);

    let report = check(&["base.ping"], move |far| {
        respond(far, Value::clone, Duration::from_secs(8))
    })
    .await;

    assert_eq!(statuses(&report), [("base.ping", RuleStatus::Pass)]);
}

#[tokio::test(start_paused = true)]
async fn server_that_is_slow_everywhere_is_not_tested() {
    let report = check_then_silent(&["base.ping"]).await;

    assert_eq!(statuses(&report), [("base.ping", RuleStatus::NotTested)]);
}

/// Checks a server that responds to the first handshake, and to nothing else.
async fn check_then_silent(only: &[&str]) -> Report {
    let sessions = Arc::new(AtomicUsize::new(0));
    let target = ServerTarget::streams("silent", move || {
        let is_first = sessions.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            let (near, far) = duplex(BUFFER);
            tokio::spawn(async move {
                let mut far = BufReader::new(far);
                let mut line = String::new();
                if is_first && far.read_line(&mut line).await.is_ok() {
                    let message: Value = serde_json::from_str(&line).unwrap_or_default();
                    let response = opening(&message["id"]);
                    let _ = far.get_mut().write_all(response.as_bytes()).await;
                }
                only_read(far).await;
            });
            Ok(split(near))
        }
    });
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::V2025_11_25];
    options.only = only.iter().map(|&name| name.to_owned()).collect();
    let checked = check_server(&target, &options).await;
    checked.expect("the server responds to the handshake")
}

#[tokio::test(start_paused = true)]
async fn id_of_another_type_is_reported_once_and_at_once() {
    let report = check(&["base.same-id", "base.ping", "base.many-at-once"], |far| {
        respond(far, |id| id.to_string().into(), Duration::ZERO)
    })
    .await;

    let expected = [
        ("base.same-id", RuleStatus::Fail),
        ("base.many-at-once", RuleStatus::Pass),
        ("base.ping", RuleStatus::Pass),
    ];
    assert_eq!(statuses(&report), expected);
    let findings = report.findings();
    assert_eq!(
        findings[0].observed,
        "the id \"7\" in the response to the request 7"
    );
    assert!(report.duration < CheckOptions::default().response_timeout);
}

/// Closes the connection at the first call of its tool.
async fn close_at_call(mut far: BufReader<DuplexStream>) {
    let tools = json!({ "tools": [{
        "name": "boom", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true },
    }] });
    let mut line = String::new();
    while far.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        line.clear();
        let result = match message["method"].as_str() {
            Some("tools/call") if message["params"]["name"] == "boom" => return,
            Some("tools/list") => tools.clone(),
            _ => json!({}),
        };
        if message.get("id").is_some() {
            let response = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            let response = format!("{response}\n");
            let _ = far.get_mut().write_all(response.as_bytes()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_ends_gets_one_finding_that_names_the_tool() {
    let report = check(&[], close_at_call).await;

    let about_the_end: Vec<_> = report
        .findings()
        .into_iter()
        .filter(|finding| finding.observed.contains("closed the connection"))
        .map(|finding| {
            (
                finding.rule.id,
                finding.status(),
                finding.observed.to_owned(),
            )
        })
        .collect();
    let observed = "the server closed the connection after `tools/call` of the tool `boom`";
    let expected = (
        "robustness.stays-alive",
        RuleStatus::Warn,
        observed.to_owned(),
    );
    assert_eq!(about_the_end, [expected]);
    assert_eq!(report.server_end(), Some(observed));
    let not_tested = report.reasons_for(RuleStatus::NotTested);
    assert!(
        not_tested
            .iter()
            .any(|reason| reason.why == observed && reason.rules.len() > 20),
        "{not_tested:#?}"
    );
}

/// Returns an HTTP target of which the server ends at the first call of its tool `boom`: all connections close, and new ones are
/// refused.
fn target_that_ends_at_call() -> ServerTarget {
    let ended = watch::Sender::new(false);
    let end = ended.clone();
    let boom = move || {
        end.send_replace(true);
        std::future::pending::<Result<String, ToolError>>()
    };
    let (server, listener) = server_http::memory();
    let tool = Tool::new("boom", boom).read_only();
    tokio::spawn(server_http::serve(
        listener,
        Server::new("fragile", "1").tool(tool),
    ));
    let http = HttpTarget::new(good::URL).connector(move || {
        let (server, mut ended) = (server.clone(), ended.subscribe());
        async move {
            if *ended.borrow() {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let mut to_server = server.connect().await?;
            let (near, mut far) = duplex(BUFFER);
            tokio::spawn(async move {
                tokio::select! {
                    _ = ended.wait_for(|ended| *ended) => {}
                    _ = copy_bidirectional(&mut far, &mut to_server) => {}
                }
            });
            Ok(near)
        }
    });
    ServerTarget::http(good::URL, http, Vec::new())
}

#[tokio::test(start_paused = true)]
async fn http_server_that_ends_gets_one_finding_in_all_revisions_together() {
    let checked = check_server(&target_that_ends_at_call(), &CheckOptions::default()).await;

    let report = checked.expect("the server supports all revisions");
    let observed = "the server no longer accepts connections after `tools/call` of the tool `boom`";
    let violations: Vec<_> = report
        .results()
        .filter(|(_, result)| matches!(result.outcome, RuleOutcome::Violated { .. }))
        .map(|(_, result)| (result.rule.id, result.status()))
        .collect();
    assert_eq!(violations, [("robustness.stays-alive", RuleStatus::Warn)]);
    let findings = report.findings();
    assert!(findings[0].observed.starts_with(observed), "{findings:#?}");
    assert!(
        findings[0].evidence[0].text.contains("boom"),
        "{findings:#?}"
    );
    assert!(
        report
            .server_end()
            .is_some_and(|end| end.starts_with(observed))
    );
    for run in &report.runs {
        let statuses = run.results.iter().map(RuleResult::status);
        let not_tested = statuses.filter(|status| *status == RuleStatus::NotTested);
        assert!(not_tested.count() > 10, "{}", run.revision);
    }
}
