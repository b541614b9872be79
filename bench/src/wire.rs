//! One keep-alive connection or one pair of pipes, used by one call at a time.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{ChildStdin, ChildStdout},
    time::Duration,
};

use crate::{
    Failure,
    message::{self, Era, Headers},
    response::Response,
    work::Prepared,
};

/// A connection that sends a message and waits for its response.
#[derive(Debug)]
pub enum Wire {
    /// An HTTP connection.
    Http(Http),
    /// Two pipes.
    Stdio(Pipes),
}

/// The messages received for one request.
#[derive(Debug)]
pub struct Received {
    /// The JSON-RPC response.
    pub response: String,
    /// The number of notifications before it.
    pub notifications: usize,
}

impl Wire {
    /// Sends the messages that the era requires before the first call.
    pub fn open(&mut self, era: Era) -> Result<(), Failure> {
        match (era, self) {
            (Era::Modern, _) => Ok(()),
            (Era::Legacy, Wire::Stdio(pipes)) => {
                pipes.request(message::INITIALIZE)?;
                pipes.send(message::INITIALIZED)
            }
            (Era::Legacy, Wire::Http(http)) => {
                let opened = http.exchange(&Headers::new(), message::INITIALIZE)?;
                http.session = opened.header("mcp-session-id").map(str::to_owned);
                let session = http.session.clone();
                http.exchange(
                    &message::session_headers(session.as_deref()),
                    message::INITIALIZED,
                )?;
                Ok(())
            }
        }
    }

    /// Sends a request and waits for its response.
    pub fn request(&mut self, prepared: &Prepared, body: &str) -> Result<Received, Failure> {
        match self {
            Wire::Stdio(pipes) => pipes.request(body),
            Wire::Http(http) => {
                let session = http.session.clone();
                let response = http.exchange(&prepared.headers(session.as_deref()), body)?;
                Ok(Received {
                    response: response.response_text().to_owned(),
                    notifications: response.notifications(),
                })
            }
        }
    }
}

/// A connection that is kept alive.
#[derive(Debug)]
pub struct Http {
    stream: TcpStream,
    path: String,
    host: String,
    session: Option<String>,
    received: Vec<u8>,
}

impl Http {
    /// Connects, without sending a request.
    pub fn connect(address: SocketAddr, path: &str) -> Result<Http, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Http {
            stream,
            path: path.to_owned(),
            host: address.to_string(),
            session: None,
            received: Vec::new(),
        })
    }

    fn exchange(&mut self, headers: &Headers<'_>, body: &str) -> Result<Response, Failure> {
        self.stream
            .write_all(&message::post_to(&self.path, &self.host, headers, body))?;
        let mut chunk = [0; 1 << 16];
        loop {
            if let Some(response) = Response::take(&mut self.received)? {
                return match response.status {
                    200 | 202 => Ok(response),
                    status => Err(format!("status {status}: {}", response.response_text()).into()),
                };
            }
            let length = self.stream.read(&mut chunk)?;
            if length == 0 {
                return Err("the server closed the connection".into());
            }
            self.received.extend_from_slice(&chunk[..length]);
        }
    }
}

/// The pipes of a child process.
#[derive(Debug)]
pub struct Pipes {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pipes {
    /// Uses the child's standard input and output.
    pub fn new(input: ChildStdin, output: ChildStdout) -> Pipes {
        Pipes {
            input,
            output: BufReader::new(output),
        }
    }

    fn send(&mut self, message: &str) -> Result<(), Failure> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes())?)
    }

    fn request(&mut self, request: &str) -> Result<Received, Failure> {
        self.send(request)?;
        let mut notifications = 0;
        loop {
            let line = self.line()?;
            if line.contains(r#""id":"#) {
                return Ok(Received {
                    response: line,
                    notifications,
                });
            }
            notifications += 1;
        }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("the server closed its output".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}
