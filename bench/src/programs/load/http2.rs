//! Calls that share a connection, for more of them than there are descriptors.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    client::conn::http2::{SendRequest, handshake},
    header::{ACCEPT, CONTENT_TYPE},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use turnbuckle_bench::{Failure, connection::Call, response::response_text};

/// Calls per connection: HTTP/2 recommends that every server allows at least this many.
pub(crate) const STREAMS: usize = 100;

/// One connection for up to [`STREAMS`] calls at once.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    send: SendRequest<Full<Bytes>>,
    address: SocketAddr,
}

impl Shared {
    pub(crate) async fn open(address: SocketAddr) -> Result<Shared, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (send, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Shared { send, address })
    }

    /// Sends a call; the returned future waits for the JSON-RPC response.
    pub(crate) async fn send_call(
        &mut self,
        call: &Call<'_>,
    ) -> Result<impl Future<Output = Result<String, Failure>> + use<>, Failure> {
        let mut request = Request::post(format!("http://{}/mcp", self.address))
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in call.headers() {
            request = request.header(name, value);
        }
        self.send.ready().await?;
        let response = self
            .send
            .send_request(request.body(Full::from(call.body()))?);
        Ok(async move {
            let response = response.await?;
            let content_type = response.headers().get(CONTENT_TYPE).cloned();
            let content_type = content_type.as_ref().and_then(|value| value.to_str().ok());
            let body = response.into_body().collect().await?.to_bytes();
            Ok(response_text(&body, content_type.unwrap_or_default()).to_owned())
        })
    }
}
