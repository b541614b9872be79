//! A client and a server in one program, with nothing between them but memory.

use turnbuckle_client::lines::Lines;
use turnbuckle_client::{Client, ClientBuilder, ConnectError};
use turnbuckle_server::{Server, lines};

/// How many bytes may be on their way before the sender has to wait.
const ON_THE_WAY: usize = 64 * 1024;

/// Joins a client to a server; the server runs as long as the client does.
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
    connect_as(client, server).await
}

/// Joins a client that answers questions, or behaves otherwise than usual.
pub async fn connect_as(client: ClientBuilder, server: Server) -> Result<Client, ConnectError> {
    let (near, far) = tokio::io::duplex(ON_THE_WAY);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(lines::serve_lines(reader, writer, server));
    let (reader, writer) = tokio::io::split(near);
    client.connect(Lines::new(reader, writer)).await
}
