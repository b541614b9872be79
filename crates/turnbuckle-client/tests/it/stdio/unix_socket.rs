//! Servers on Unix sockets.

use std::{env, process};

use serde_json::json;
use tokio::net::UnixListener;
use turnbuckle_client::{Client, ConnectError, Era, LifecycleMode, TransportError, unix};
use turnbuckle_server::{Server, Tool, ndjson::serve};

#[tokio::test]
async fn a_server_on_a_unix_socket_works_in_both_eras() {
    let path = env::temp_dir().join(format!("turnbuckle-{}.unix", process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (reader, writer) = stream.into_split();
            tokio::spawn(serve(reader, writer, server()));
        }
    });

    let found = unix::connect(&path).await.unwrap();
    let builder = Client::builder("test", "1").lifecycle_mode(LifecycleMode::Legacy);
    let explicit = builder.connect(unix::UnixTarget::new(&path)).await.unwrap();

    assert_eq!(found.server().era, Era::Modern);
    assert_eq!(explicit.server().era, Era::Legacy);
    for client in [found, explicit] {
        let output = client.call_tool("hello", json!({})).await.unwrap();
        assert_eq!(output.content[0].as_text(), Some("hello"));
        assert!(client.process().is_none());
        client.close().await;
    }
    serving.abort();
    std::fs::remove_file(path).unwrap();
}

#[tokio::test]
async fn a_unix_socket_without_a_listener_is_an_error() {
    let error = unix::connect("/no/such.sock").await.unwrap_err();

    assert!(matches!(
        error,
        ConnectError::Unreachable(TransportError::Io(_))
    ));
}

fn server() -> Server {
    let handshake = Tool::new("hello", async || Ok("hello".to_owned()));
    Server::new("socket", "1").tool(handshake)
}
