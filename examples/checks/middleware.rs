//! The self-check of the example `middleware`: a client that calls it and compares the results.
#![expect(clippy::print_stdout, reason = "the check prints what it does")]

use std::error::Error;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use turnbuckle::{Server, middleware::RateLimit};

use super::{Night, kitchen};

pub(super) async fn run() -> Result<(), Box<dyn Error>> {
    let menu = json!({ "name": "menu" });
    let order = json!({ "name": "order" });
    let day = request(
        kitchen(std::io::stdout()),
        false,
        &[&menu, &order, &menu, &menu],
    )
    .await?;
    let night = request(kitchen(std::io::stdout()), true, &[&order]).await?;
    let as_expected = day[0]["result"]["content"][0]["text"] == "soup, pie"
        && day[1]["result"]["isError"] == true
        && day[3]["error"]["code"] == RateLimit::CODE
        && night[0]["error"]["code"] == 423;
    as_expected
        .then_some(())
        .ok_or_else(|| "the answers are not as expected".into())
}

/// Calls tools one after the other, in memory.
async fn request(
    server: Server,
    night: bool,
    calls: &[&Value],
) -> Result<Vec<Value>, Box<dyn Error>> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let mut lines = turnbuckle::ndjson::NdjsonServer::new(server);
    if night {
        lines = lines.extension(Night);
    }
    let serving = tokio::spawn(lines.serve(reader, writer));
    let (answers, mut requests) = tokio::io::split(ours);
    let mut answers = BufReader::new(answers).lines();
    let mut got = Vec::new();
    for call in calls {
        let mut params = (*call).clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        requests
            .write_all(format!("{request}\n").as_bytes())
            .await?;
        let line = answers.next_line().await?.ok_or("the server hung up")?;
        println!("{line}");
        got.push(serde_json::from_str(&line)?);
    }
    requests.shutdown().await?;
    serving.await??;
    Ok(got)
}
