//! An HTTP server that responds as a test specifies, and records every request.

use std::{
    io::{BufRead, BufReader, Read, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// The time that a test waits for a request.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The server. Its threads end with the process of the test.
pub(crate) struct FakeHttp {
    /// The URL of its endpoint.
    pub(crate) url: String,
    log: Arc<RequestLog>,
}

type Responder = dyn Fn(&RecordedRequest) -> FakeResponse + Send + Sync;

#[derive(Default)]
struct RequestLog {
    requests: Mutex<Vec<RecordedRequest>>,
    changed: Condvar,
}

/// A recorded request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    headers: Vec<(String, String)>,
    /// The body as JSON; null if there is none.
    pub(crate) body: Value,
    /// The body as text.
    pub(crate) text: String,
}

/// A response.
pub(crate) enum FakeResponse {
    /// A status without a body.
    Status(u16),
    /// A status without a body, and a header.
    StatusWith(u16, &'static str, String),
    /// A JSON body with an optional header.
    Json(Value, Option<(&'static str, &'static str)>),
    /// A page.
    Html(&'static str),
    /// An event stream that ends after this text.
    Events(&'static str),
    /// No response until the client disconnects.
    Silence,
}

impl FakeHttp {
    /// Listens on a free port.
    pub(crate) fn start(
        respond: impl Fn(&RecordedRequest) -> FakeResponse + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let log = Arc::<RequestLog>::default();
        let (respond, record) = (
            Arc::<Responder>::from(Box::new(respond) as Box<Responder>),
            Arc::clone(&log),
        );
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (respond, record) = (Arc::clone(&respond), Arc::clone(&record));
                thread::spawn(move || serve(stream.unwrap(), &*respond, &record));
            }
        });
        Self { url, log }
    }

    /// Returns all requests so far.
    pub(crate) fn seen(&self) -> Vec<RecordedRequest> {
        self.log.requests.lock().unwrap().clone()
    }

    /// Waits for a matching request.
    pub(crate) fn wait_for(&self, matches: impl Fn(&RecordedRequest) -> bool) {
        let requests = self.log.requests.lock().unwrap();
        let missing = |requests: &mut Vec<RecordedRequest>| !requests.iter().any(&matches);
        let (requests, waited) = self
            .log
            .changed
            .wait_timeout_while(requests, EVENT_TIMEOUT, missing)
            .unwrap();
        assert!(!waited.timed_out(), "{requests:?}");
    }
}

impl RecordedRequest {
    /// Returns the JSON-RPC method; empty if there is none.
    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// Returns a header by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns a response with a result.
    pub(crate) fn result(&self, result: &Value) -> FakeResponse {
        FakeResponse::Json(
            json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }),
            None,
        )
    }
}

fn serve(stream: TcpStream, respond: &Responder, log: &RequestLog) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some(seen) = read(&mut reader) {
        let reply = respond(&seen);
        log.requests.lock().unwrap().push(seen);
        log.changed.notify_all();
        let (head, body) = match reply {
            FakeResponse::Status(status) => (format!("{status} Status"), String::new()),
            FakeResponse::StatusWith(status, name, value) => {
                (format!("{status} Status\r\n{name}: {value}"), String::new())
            }
            FakeResponse::Json(body, header) => {
                let header = header.map(|(name, value)| format!("\r\n{name}: {value}"));
                let head = format!(
                    "200 OK\r\ncontent-type: application/json{}",
                    header.unwrap_or_default()
                );
                (head, body.to_string())
            }
            FakeResponse::Html(text) => {
                let head = "200 OK\r\ncontent-type: text/html";
                (head.to_owned(), text.to_owned())
            }
            FakeResponse::Events(text) => {
                let head = "200 OK\r\ncontent-type: text/event-stream";
                (head.to_owned(), text.to_owned())
            }
            FakeResponse::Silence => {
                let _ = reader.fill_buf();
                return;
            }
        };
        let length = body.len();
        let response = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
        if writer.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a request; `None` if the client has disconnected.
fn read(reader: &mut BufReader<TcpStream>) -> Option<RecordedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let mut seen = RecordedRequest {
        method: words.next().filter(|word| !word.is_empty())?.to_owned(),
        ..RecordedRequest::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        seen.headers
            .push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = seen
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    seen.body = serde_json::from_slice(&body).unwrap_or_default();
    seen.text = String::from_utf8_lossy(&body).into_owned();
    Some(seen)
}
