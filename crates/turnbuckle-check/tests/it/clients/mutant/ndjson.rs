//! The layer between a client and the mock server on ndjson.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, duplex, split};
use turnbuckle_check::MockServerAddress;

use super::{Change, RunState};
use crate::clients::good;

/// The buffer size of each direction.
const BUFFER: usize = 256 * 1024;

pub(super) async fn run(address: MockServerAddress, change: Change) {
    let (near, middle) = duplex(BUFFER);
    let (from_client, mut to_client) = split(middle);
    let (from_server, mut to_server) = split(address.connect().await.unwrap());
    let changing = change.clone();
    let forward_task = tokio::spawn(async move {
        let mut state = RunState::default();
        let mut lines = BufReader::new(from_client).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            for text in changing.apply_to_sent(message, &mut state) {
                write(&mut to_server, &text).await;
            }
        }
        let _ = to_server.shutdown().await;
    });
    let reverse_task = tokio::spawn(async move {
        let mut lines = BufReader::new(from_server).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            write(&mut to_client, &change.apply_to_received(&line)).await;
        }
        let _ = to_client.shutdown().await;
    });
    good::run_on_ndjson(near).await;
    let _ = forward_task.await;
    reverse_task.abort();
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), line: &str) {
    let _ = writer.write_all(format!("{line}\n").as_bytes()).await;
}
