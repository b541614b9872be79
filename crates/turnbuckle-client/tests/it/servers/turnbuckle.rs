//! A turnbuckle server in memory.

use turnbuckle_client::{Client, ClientBuilder, LifecycleMode, ndjson::NdjsonClient};
use turnbuckle_server::Server;
use turnbuckle_spec_coverage::ran_in;

/// Connects a client to a server by two pipes in memory.
pub(crate) async fn connect(builder: ClientBuilder, server: Server) -> Client {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(async move { turnbuckle_server::ndjson::serve(reader, writer, server).await });
    let (reader, writer) = tokio::io::split(near);
    let client = builder.connect(NdjsonClient::new(reader, writer)).await;
    let client = client.expect("the server accepts connections");
    ran_in(client.server().revision.as_str());
    client
}

/// Connects one client of each era to the same server.
pub(crate) async fn both_eras(server: impl Fn() -> Server) -> [Client; 2] {
    let mut clients = Vec::new();
    for mode in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let builder = Client::builder("test", "1.0").lifecycle_mode(mode);
        clients.push(connect(builder, server()).await);
    }
    clients.try_into().expect("two clients")
}
