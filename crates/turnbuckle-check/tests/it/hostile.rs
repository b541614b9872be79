//! Hostile servers: the check still ends.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split,
};
use turnbuckle_check::{
    CheckError, CheckOptions, Report, ServerTarget, check_server, report::RuleStatus,
};
use turnbuckle_client::http::HttpTarget;
use turnbuckle_protocol::revision::Revision;

/// The buffer size of each direction.
const BUFFER: usize = 64 * 1024;

/// Checks an ndjson server that responds to the handshake and then runs `then`.
async fn check<F>(only: &[&str], then: fn(BufReader<DuplexStream>) -> F) -> Report
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
