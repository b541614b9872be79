//! One keep-alive connection or one pair of pipes, used by one call at a time.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{ChildStdin, ChildStdout},
    time::Duration,
};

use turnbuckle_bench::{
    Failure,
    message::{self, Era, Headers},
    response::Response,
};

/// A way to send a message and wait for its answer.
#[derive(Debug)]
pub(crate) enum Wire {
    Http(Http),
    Stdio(Pipes),
}

impl Wire {
    /// Does what the era wants before the first call.
    pub(crate) fn open(&mut self, era: Era) -> Result<(), Failure> {
        match (era, self) {
            (Era::Modern, _) => Ok(()),
            (Era::Legacy, Wire::Stdio(pipes)) => {
                pipes.exchange(message::INITIALIZE)?;
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

    /// Calls `echo` and returns the JSON-RPC answer.
    pub(crate) fn echo(&mut self, era: Era, body: &str) -> Result<String, Failure> {
        match self {
            Wire::Stdio(pipes) => pipes.exchange(body),
            Wire::Http(http) => {
                let session = http.session.clone();
                let headers = message::call_headers(era, "echo", session.as_deref());
                Ok(http.exchange(&headers, body)?.answer().to_owned())
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Http {
    stream: TcpStream,
    host: String,
    session: Option<String>,
    received: Vec<u8>,
}

impl Http {
    pub(crate) fn connect(address: SocketAddr) -> Result<Http, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Http {
            stream,
            host: address.to_string(),
            session: None,
            received: Vec::new(),
        })
    }

    fn exchange(&mut self, headers: &Headers<'_>, body: &str) -> Result<Response, Failure> {
        self.stream
            .write_all(&message::post(&self.host, headers, body))?;
        let mut chunk = [0; 1 << 16];
        loop {
            if let Some(response) = Response::take(&mut self.received)? {
                return match response.status {
                    200 | 202 => Ok(response),
                    status => Err(format!("status {status}: {}", response.answer()).into()),
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

#[derive(Debug)]
pub(crate) struct Pipes {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pipes {
    pub(crate) fn new(input: ChildStdin, output: ChildStdout) -> Pipes {
        Pipes {
            input,
            output: BufReader::new(output),
        }
    }

    fn send(&mut self, message: &str) -> Result<(), Failure> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes())?)
    }

    fn exchange(&mut self, message: &str) -> Result<String, Failure> {
        self.send(message)?;
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("the server closed its output".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}
