//! A layer between a client and the stage on lines.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, duplex, split};
use turnbuckle_check::MockServerAddress;

use super::{Change, Memory};
use crate::clients::good;

/// How many bytes a direction holds.
const BUFFER: usize = 256 * 1024;

pub(super) async fn run(address: MockServerAddress, change: Change) {
    let (near, middle) = duplex(BUFFER);
    let (from_client, mut to_client) = split(middle);
    let (from_stage, mut to_stage) = split(address.connect().await.unwrap());
    let changing = change.clone();
    let there = tokio::spawn(async move {
        let mut memory = Memory::default();
        let mut lines = BufReader::new(from_client).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            for text in changing.apply_to_sent(message, &mut memory) {
                write(&mut to_stage, &text).await;
            }
        }
        let _ = to_stage.shutdown().await;
    });
    let back = tokio::spawn(async move {
        let mut lines = BufReader::new(from_stage).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            write(&mut to_client, &change.apply_to_received(&line)).await;
        }
        let _ = to_client.shutdown().await;
    });
    good::through_lines(near).await;
    let _ = there.await;
    back.abort();
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), line: &str) {
    let _ = writer.write_all(format!("{line}\n").as_bytes()).await;
}
