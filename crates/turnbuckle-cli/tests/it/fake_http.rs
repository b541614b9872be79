//! An HTTP server that answers as a test says, and records every request.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long a test waits for a request before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server. Its threads end with the test's process.
pub(crate) struct FakeHttp {
    /// The URL of its endpoint.
    pub(crate) url: String,
    recorded: Arc<Recorded>,
}

type Answer = dyn Fn(&Seen) -> Reply + Send + Sync;

#[derive(Default)]
struct Recorded {
    requests: Mutex<Vec<Seen>>,
    changed: Condvar,
}

/// A request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) method: String,
    headers: Vec<(String, String)>,
    /// The body as JSON; null if it is none.
    pub(crate) body: Value,
}

/// A response.
pub(crate) enum Reply {
    /// A status without a body.
    Status(u16),
    /// A JSON body, and a header where one is given.
    Json(Value, Option<(&'static str, &'static str)>),
    /// A stream of events, which ends after this text.
    Events(&'static str),
    /// No response until the client has gone.
    Silence,
}

impl FakeHttp {
    /// Listens on a free port.
    pub(crate) fn start(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let recorded = Arc::<Recorded>::default();
        let (answer, record) = (
            Arc::<Answer>::from(Box::new(answer) as Box<Answer>),
            Arc::clone(&recorded),
        );
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, record) = (Arc::clone(&answer), Arc::clone(&record));
                thread::spawn(move || serve(stream.unwrap(), &*answer, &record));
            }
        });
        Self { url, recorded }
    }

    /// Returns every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.recorded.requests.lock().unwrap().clone()
    }

    /// Waits for a request.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&Seen) -> bool) {
        let requests = self.recorded.requests.lock().unwrap();
        let missing = |requests: &mut Vec<Seen>| !requests.iter().any(&wanted);
        let (requests, waited) = self
            .recorded
            .changed
            .wait_timeout_while(requests, PATIENCE, missing)
            .unwrap();
        assert!(!waited.timed_out(), "{requests:?}");
    }
}

impl Seen {
    /// Returns the method of the message; empty if there is none.
    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// Returns a header, whose name is given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Answers the request with a result.
    pub(crate) fn result(&self, result: &Value) -> Reply {
        Reply::Json(
            json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }),
            None,
        )
    }
}

fn serve(stream: TcpStream, answer: &Answer, recorded: &Recorded) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some(seen) = read(&mut reader) {
        let reply = answer(&seen);
        recorded.requests.lock().unwrap().push(seen);
        recorded.changed.notify_all();
        let (head, body) = match reply {
            Reply::Status(status) => (format!("{status} Status"), String::new()),
            Reply::Json(body, header) => {
                let header = header.map(|(name, value)| format!("\r\n{name}: {value}"));
                let head = format!(
                    "200 OK\r\ncontent-type: application/json{}",
                    header.unwrap_or_default()
                );
                (head, body.to_string())
            }
            Reply::Events(text) => {
                let head = "200 OK\r\ncontent-type: text/event-stream";
                (head.to_owned(), text.to_owned())
            }
            Reply::Silence => {
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

/// Reads a request; there is none once the client has gone.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut seen = Seen {
        method: line
            .split(' ')
            .next()
            .filter(|word| !word.is_empty())?
            .to_owned(),
        ..Seen::default()
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
    Some(seen)
}
