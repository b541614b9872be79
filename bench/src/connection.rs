//! An HTTP/1.1 connection that carries one call at a time.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::{
    Failure,
    message::{self, Era, Headers},
    response::Response,
};

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    host: String,
    path: String,
    received: Vec<u8>,
}

impl Connection {
    /// Connects from the default local address.
    pub async fn open(address: SocketAddr) -> Result<Connection, Failure> {
        // The socket is not bound first: a port can then be used again although another server once had it.
        Connection::over(TcpStream::connect(address).await?, address)
    }

    /// Connects to a server with this path.
    pub async fn open_at(address: SocketAddr, path: &str) -> Result<Connection, Failure> {
        let mut connection = Connection::open(address).await?;
        path.clone_into(&mut connection.path);
        Ok(connection)
    }

    /// Connects from a source address, since one address has ports for only some 28,000 connections.
    pub async fn open_from(source: Ipv4Addr, address: SocketAddr) -> Result<Connection, Failure> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        Connection::over(socket.connect(address).await?, address)
    }

    fn over(stream: TcpStream, address: SocketAddr) -> Result<Connection, Failure> {
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            host: address.to_string(),
            path: "/mcp".to_owned(),
            received: Vec::new(),
        })
    }

    /// Sends to this path from now on, instead of `/mcp`.
    pub fn at(mut self, path: &str) -> Connection {
        path.clone_into(&mut self.path);
        self
    }

    /// Calls a tool and returns the JSON-RPC response.
    pub async fn call(&mut self, call: &Call<'_>) -> Result<String, Failure> {
        self.send_call(call).await?;
        self.response_text().await
    }

    /// Sends a call and does not wait for its response.
    pub async fn send_call(&mut self, call: &Call<'_>) -> Result<(), Failure> {
        self.send(&call.headers(), &call.body()).await
    }

    /// Waits for the response to the last request.
    pub async fn response_text(&mut self) -> Result<String, Failure> {
        Ok(self.response().await?.response_text().to_owned())
    }

    /// Sends a message and waits for the response to it.
    pub async fn exchange(
        &mut self,
        headers: &Headers<'_>,
        body: &str,
    ) -> Result<Response, Failure> {
        self.send(headers, body).await?;
        self.response().await
    }

    /// Returns the host of the server, for the header `Host`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the socket, for a caller that reads it in another way.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    async fn send(&mut self, headers: &Headers<'_>, body: &str) -> Result<(), Failure> {
        Ok(self
            .stream
            .write_all(&message::post_to(&self.path, &self.host, headers, body))
            .await?)
    }

    async fn response(&mut self) -> Result<Response, Failure> {
        loop {
            if let Some(response) = Response::take(&mut self.received)? {
                return match response.status {
                    200 | 202 => Ok(response),
                    status => Err(format!("status {status}: {}", response.response_text()).into()),
                };
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err("the server closed the connection".into());
            }
        }
    }
}

/// A tool call, ready for any connection.
#[derive(Debug)]
pub struct Call<'a> {
    /// Its id.
    pub id: u64,
    /// The name of the tool.
    pub tool: &'a str,
    /// The arguments, a JSON object.
    pub arguments: String,
    /// The session of a legacy call; a modern one has none.
    pub session: Option<&'a str>,
}

impl Call<'_> {
    /// Returns the headers that it needs.
    pub fn headers(&self) -> Headers<'_> {
        message::call_headers(self.era(), self.tool, self.session)
    }

    /// Returns it as JSON.
    pub fn body(&self) -> String {
        message::call(self.era(), self.id, self.tool, &self.arguments)
    }

    fn era(&self) -> Era {
        match self.session {
            Some(_) => Era::Legacy,
            None => Era::Modern,
        }
    }
}

/// Returns the text of a response, if the response has this id and is a success.
pub fn text_of(response: &str, id: u64) -> Result<String, Failure> {
    let value: serde_json::Value = serde_json::from_str(response).unwrap_or_default();
    let result = &value["result"];
    let text = result["content"][0]["text"].as_str();
    match text {
        Some(text) if value["id"] == id && result["isError"] != true => Ok(text.to_owned()),
        _ => Err(format!("wrong response to call {id}: {response:.300}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_counts_only_with_its_id_and_without_an_error() {
        let right = r#"{"id":7,"result":{"content":[{"type":"text","text":"a"}]}}"#;
        let failed = r#"{"id":7,"result":{"isError":true,"content":[{"type":"text","text":"a"}]}}"#;

        assert_eq!(text_of(right, 7).unwrap(), "a");
        assert!(text_of(right, 8).is_err());
        assert!(text_of(failed, 7).is_err());
        assert!(text_of(r#"{"id":7,"error":{"code":1}}"#, 7).is_err());
        assert!(text_of("", 7).is_err());
    }
}
