//! Any bytes on HTTP connections: the server responds or closes, and keeps serving others.
//!
//! The input is written unchanged, except for command lines: `%% connect` continues with another connection and leaves
//! the one before open, `%% close` closes first, `%% wait` lets a second pass, `%% hour` an hour. `@length@` in a head
//! is the length of the text up to the next such line.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::oneshot,
    time::{sleep, timeout},
};
use turnbuckle_fuzz::{bounded, full_server, marks::Marks, response::Responses};
use turnbuckle_server::http::{self, Http, HttpSse, MemoryConnector};

/// Paused time advances only when every task is idle; then no more output follows.
const QUIET: Duration = Duration::from_millis(1);

fuzz_target!(|input: &[u8]| bounded::run(serve(input)));

async fn serve(input: &[u8]) {
    let (connector, listener) = http::memory();
    let (stop, stopped) = oneshot::channel::<()>();
    let http = Http::new(full_server::server()).http_sse(HttpSse::new());
    let serving = tokio::spawn(http.serve_until(listener, async { drop(stopped.await) }));

    let mut client = Client::new(connector).await;
    for segment in segments(input) {
        client.run(segment).await;
    }
    client.expect_health().await;

    drop(client);
    drop(stop);
    let served = serving.await.expect("serving is not cancelled");
    served.expect("nothing that a client sends is an error of serving");
}

struct Client {
    connector: MemoryConnector,
    connections: Vec<(DuplexStream, Responses)>,
    marks: Marks,
}

impl Client {
    async fn new(connector: MemoryConnector) -> Self {
        let mut client = Self {
            connector,
            connections: Vec::new(),
            marks: Marks::default(),
        };
        client.connect().await;
        client
    }

    async fn connect(&mut self) {
        let connected = self.connector.connect().await;
        let connection = connected.expect("the server listens");
        self.connections.push((connection, Responses::default()));
    }

    async fn run(&mut self, segment: Segment<'_>) {
        match segment {
            Segment::Bytes(bytes) => self.write(bytes).await,
            Segment::Connect => self.connect().await,
            Segment::Close => {
                self.connections.pop();
                self.connect().await;
            }
            Segment::Wait(time) => sleep(time).await,
        }
        self.read().await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        let bytes = with_length(&self.marks.fill(bytes));
        let (connection, responses) = self.connections.last_mut().expect("one is always open");
        responses.bodies_unknown |= bytes.windows(4).any(|word| word == b"HEAD");
        // Fails if the server has closed, and takes longer if it does not read: both are allowed.
        let _ = timeout(QUIET, connection.write_all(&bytes)).await;
    }

    /// Reads the received bytes of every connection.
    async fn read(&mut self) {
        let mut chunk = [0; 16 * 1024];
        for (connection, responses) in &mut self.connections {
            while let Ok(Ok(length @ 1..)) = timeout(QUIET, connection.read(&mut chunk)).await {
                responses.push(&chunk[..length], &mut self.marks);
            }
        }
    }

    /// Checks that a new client is served, whatever the others have sent.
    async fn expect_health(&mut self) {
        self.connect().await;
        let (connection, _) = self.connections.last_mut().expect("just opened");
        let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let written = connection.write_all(request).await;
        written.expect("a new connection takes a request");
        let mut answer = Vec::new();
        let read = connection.read_to_end(&mut answer).await;
        read.expect("reading from memory does not fail");
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
}

enum Segment<'a> {
    Bytes(&'a [u8]),
    Connect,
    Close,
    Wait(Duration),
}

/// Cuts the input at the lines that are commands.
fn segments(input: &[u8]) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        let end = at + line.len();
        if let Some(command) = command(line) {
            segments.push(Segment::Bytes(&input[start..at]));
            segments.push(command);
            start = end;
        }
        at = end;
    }
    segments.push(Segment::Bytes(&input[start..]));
    segments
}

fn command(line: &[u8]) -> Option<Segment<'static>> {
    match line.strip_prefix(b"%% ")?.trim_ascii_end() {
        b"connect" => Some(Segment::Connect),
        b"close" => Some(Segment::Close),
        b"wait" => Some(Segment::Wait(Duration::from_secs(1))),
        b"hour" => Some(Segment::Wait(Duration::from_secs(3600))),
        _ => None,
    }
}

/// Replaces the mark with the length of the text after the blank line.
fn with_length(bytes: &[u8]) -> Vec<u8> {
    let mark = b"@length@";
    let Some(at) = bytes.windows(mark.len()).position(|word| word == mark) else {
        return bytes.to_vec();
    };
    let (before, after) = (&bytes[..at], &bytes[at + mark.len()..]);
    let blank = after.windows(4).position(|word| word == b"\r\n\r\n");
    let length = blank.map_or(0, |blank| after.len() - blank - 4);
    [before, length.to_string().as_bytes(), after].concat()
}
