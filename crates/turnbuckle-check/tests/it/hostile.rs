//! Servers that nobody should be able to learn anything from: a check comes to its end all the same.

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

/// How many bytes a direction holds.
const BUFFER: usize = 64 * 1024;

/// Checks a server on lines that answers the handshake, and then does as `then` says.
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
                    let answer = opening(&message["id"]);
                    let _ = far.get_mut().write_all(answer.as_bytes()).await;
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
    checked.expect("the server answers the handshake")
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

/// Talks without end, and answers nothing.
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

/// Reads, and answers nothing.
async fn only_read(mut far: BufReader<DuplexStream>) {
    let mut line = String::new();
    while far.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        line.clear();
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_listened_to_without_end() {
    let report = check(&["base.same-id", "base.ping"], flood).await;

    assert_eq!(report.results().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_for_ever() {
    let report = check(&["robustness.long-text"], stand_still).await;

    assert_eq!(report.results().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_silence_is_held_against_few_rules() {
    let report = check(&[], only_read).await;

    let failed = report
        .results()
        .filter(|(_, result)| result.status() == RuleStatus::Fail);
    assert!(failed.count() <= 12, "one for each conversation, and some");
    assert!(
        report.duration < Duration::from_secs(600),
        "{:?}",
        report.duration
    );
}

#[tokio::test(start_paused = true)]
async fn who_is_to_be_found_elsewhere_is_not_taken_for_one_who_speaks_nothing() {
    const ELSEWHERE: &[u8] =
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /mcp/\r\ncontent-length: 0\r\n\r\n";
    let url = "http://127.0.0.1/mcp";
    let http = HttpTarget::new(url).connector(|| async {
        let (near, mut far) = duplex(BUFFER);
        tokio::spawn(async move {
            let mut request = vec![0; BUFFER];
            while far.read(&mut request).await.is_ok_and(|read| read > 0) {
                let _ = far.write_all(ELSEWHERE).await;
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
