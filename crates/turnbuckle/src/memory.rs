//! Connects a client to a server in the same process.

use turnbuckle_client::{Client, ClientBuilder, ConnectError, ndjson::NdjsonClient};
use turnbuckle_server::{Server, ndjson};

/// The buffer size of each direction, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// Connects a client to a server. The server runs as long as the client.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::json;
/// use turnbuckle::{Server, Tool, ToolError, memory};
///
/// async fn hello() -> Result<String, ToolError> {
///     Ok("Hello!".to_owned())
/// }
///
/// let server = Server::new("hello", "1.0.0").tool(Tool::new("hello", hello));
/// let client = memory::connect(server).await?;
///
/// assert_eq!(client.call_tool("hello", json!({})).await?.text(), "Hello!");
/// # Ok(())
/// # }
/// ```
pub async fn connect(server: Server) -> Result<Client, ConnectError> {
    let client = Client::builder("turnbuckle", env!("CARGO_PKG_VERSION"));
    connect_with(client, server).await
}

/// Connects a client with its own callbacks or options to a server.
pub async fn connect_with(client: ClientBuilder, server: Server) -> Result<Client, ConnectError> {
    let (near, far) = tokio::io::duplex(BUFFER_BYTES);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(ndjson::serve(reader, writer, server));
    let (reader, writer) = tokio::io::split(near);
    client.connect(NdjsonClient::new(reader, writer)).await
}
