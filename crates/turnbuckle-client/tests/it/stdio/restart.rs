//! A server that exits on the probe, and is restarted.

use turnbuckle_client::{Client, Era, stdio::ServerCommand};

/// Responds to the client's ping only after the client responded to its own.
const SCRIPT: &str = r#"
read -r first
case "$first" in *server/discover*) exit 1 ;; esac
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'
read -r initialized
echo '{"jsonrpc":"2.0","id":"there?","method":"ping"}'
while read -r line; do
    case "$line" in
    *'"id":"there?"'*) answered=yes ;;
    *'"id":2'*) break ;;
    esac
done
while [ -z "$answered" ] && read -r line; do
    case "$line" in *'"id":"there?"'*) answered=yes ;; esac
done
echo '{"jsonrpc":"2.0","id":2,"result":{}}'
read -r end
"#;

#[tokio::test]
async fn a_restarted_server_gets_responses() {
    let child = ServerCommand::new("sh").args(["-c", SCRIPT]);

    let client = Client::builder("test", "1").connect(child).await.unwrap();

    assert_eq!(client.server().era, Era::Legacy);
    client.ping().await.unwrap();
    client.close().await;
}
