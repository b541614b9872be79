//! The layer between the checker and an ndjson server.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, duplex, split},
    sync::Mutex as AsyncMutex,
};
use turnbuckle_check::ServerTarget;
use turnbuckle_server::{Server, ndjson::NdjsonServer};

use super::{Change, INVALID_UTF8};

/// The buffer size of each direction.
const BUFFER: usize = 256 * 1024;

pub(super) fn target(server: fn() -> Server, change: Change) -> ServerTarget {
    ServerTarget::streams("mutant", move || {
        let change = change.clone();
        async move {
            let (near, middle) = duplex(BUFFER);
            let (other_middle, far) = duplex(BUFFER);
            let (reader, writer) = split(far);
            tokio::spawn(NdjsonServer::new(server()).serve(reader, writer));
            let (from_checker, to_checker) = split(middle);
            let (from_server, mut to_server) = split(other_middle);
            let to_checker = Arc::new(AsyncMutex::new(to_checker));
            let requests = Arc::new(Mutex::new(HashMap::<String, Value>::new()));

            let (sent_requests, responses, incoming_change) =
                (requests.clone(), to_checker.clone(), change.clone());
            tokio::spawn(async move {
                let mut lines = BufReader::new(from_checker).lines();
                let mut earlier = Vec::new();
                while let Ok(Some(line)) = lines.next_line().await {
                    let Ok(message) = serde_json::from_str::<Value>(&line) else {
                        write(&mut to_server, &line).await;
                        continue;
                    };
                    if let (Some(id), Some(_)) = (message.get("id"), message.get("method")) {
                        sent_requests
                            .lock()
                            .unwrap()
                            .insert(id.to_string(), message.clone());
                    }
                    let incoming = incoming_change.apply_to_received(message.clone(), &earlier);
                    earlier.push(message);
                    if let Some(response) = incoming.response {
                        write(&mut *responses.lock().await, &response.to_string()).await;
                    }
                    if !incoming.message.is_null() {
                        write(&mut to_server, &incoming.message.to_string()).await;
                    }
                }
                let _ = to_server.shutdown().await;
            });
            tokio::spawn(async move {
                let mut lines = BufReader::new(from_server).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    let message: Value = serde_json::from_str(&line).unwrap();
                    let requests = match message.get("method") {
                        Some(_) => None,
                        None => requests
                            .lock()
                            .unwrap()
                            .get(&message["id"].to_string())
                            .cloned(),
                    };
                    for text in change.apply_to_sent(message, requests) {
                        write(&mut *to_checker.lock().await, &text).await;
                    }
                }
                let _ = to_checker.lock().await.shutdown().await;
            });
            Ok(split(near))
        }
    })
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), line: &str) {
    let mut bytes = Vec::new();
    for (at, part) in line.split(INVALID_UTF8).enumerate() {
        bytes.extend_from_slice(if at == 0 { b"" } else { b"\xff" });
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes.push(b'\n');
    let _ = writer.write_all(&bytes).await;
}
