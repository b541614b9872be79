//! Relays HTTP between clients and one server.
//!
//! Each connection of a client gets its own connection to the server. Methods, paths, headers, statuses and bodies are
//! passed on as they arrive; only `Host` and `Accept-Encoding` are replaced, and headers of a single connection (RFC 9110 §7.6.1) are left out.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri,
    header::{ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, TE, UPGRADE},
    request,
};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Full};
use hyper::{
    body::Incoming, client::conn::http1::SendRequest, server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpListener,
    sync::{Mutex, Semaphore},
    time::sleep,
};
use turnbuckle_client::http::HttpTarget;
use turnbuckle_protocol::recording::{
    CloseEntry, EndEntry, EntryKind, HttpPhases, MessageSide, OpenEntry, RequestEntry,
    ResponseEntry,
};
use turnbuckle_text::{error_chain, url::HttpUrl};

use super::{
    RecordingSink,
    host_check::HostCheck,
    sink::StreamSink,
    streams::{BodyContent, RecordedStream},
};
use crate::{
    error::{CliError, Result},
    signals::ShutdownSignals,
};

/// Headers that are for a single connection, apart from the framing of the body.
const CONNECTION_HEADERS: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    UPGRADE,
];

/// The maximum number of connections; further ones wait.
const MAX_CONNECTIONS: usize = 256;
/// The time that a connection may be idle.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The delay after a connection could not be accepted, such as while too many files are open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

type RelayResponse = Response<Either<RecordedBody, Full<Bytes>>>;

/// A relay to one server.
#[derive(Debug)]
pub(crate) struct HttpRelay {
    upstream: HttpTarget,
    url: String,
    /// The `Host` header for the server.
    host: HeaderValue,
    sink: RecordingSink,
    exchanges: AtomicU64,
    connections: AtomicU64,
    hosts: HostCheck,
}

impl HttpRelay {
    /// Creates a relay to the server at a URL.
    pub(crate) fn new(url: &str, hosts: HostCheck, sink: RecordingSink) -> Result<Self> {
        let authority = authority(url)?;
        let host = HeaderValue::from_str(authority);
        Ok(Self {
            upstream: HttpTarget::new(url),
            url: url.to_owned(),
            host: host.map_err(|error| CliError::could_not_run(error.to_string()))?,
            sink,
            exchanges: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            hosts,
        })
    }

    /// Accepts connections until a signal arrives.
    pub(crate) async fn serve(self, listener: TcpListener) -> Result {
        let relay = Arc::new(self);
        let mut signals = ShutdownSignals::new()?;
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let accept = async {
            // The semaphore is never closed.
            while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
                let Ok((stream, _)) = listener.accept().await else {
                    sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                };
                let _ = stream.set_nodelay(true);
                let served = Arc::clone(&relay).serve_connection(stream);
                tokio::spawn(async move {
                    served.await;
                    drop(slot);
                });
            }
        };
        tokio::select! {
            () = signals.recv() => {}
            () = accept => {}
        }
        Ok(())
    }

    async fn serve_connection(self: Arc<Self>, stream: tokio::net::TcpStream) {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let open = OpenEntry::url(self.url.as_str());
        self.sink.entry(number, EntryKind::Open(open));
        let connection = Arc::new(RelayedConnection {
            relay: self,
            number,
            sender: Mutex::new(None),
        });
        let service = {
            let connection = Arc::clone(&connection);
            service_fn(move |request| {
                let connection = Arc::clone(&connection);
                async move { Ok::<_, Infallible>(connection.relay_request(request).await) }
            })
        };
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .preserve_header_case(true)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = served.await {
            tracing::debug!(%error, "a relayed connection ended");
        }
        let close = EntryKind::Close(CloseEntry::default());
        connection.relay.sink.entry(number, close);
    }
}

/// Returns the authority of a URL, with its port if there is one.
fn authority(url: &str) -> Result<&str> {
    let parsed = HttpUrl::parse(url).map_err(|error| CliError::could_not_run(error.to_string()))?;
    let authority = parsed.origin.split_once("://");
    Ok(authority.map_or("", |(_, authority)| authority))
}

/// A connection of a client, and the one to the server that belongs to it.
struct RelayedConnection {
    relay: Arc<HttpRelay>,
    number: u64,
    sender: Mutex<Option<SendRequest<RecordedBody>>>,
}

impl RelayedConnection {
    async fn relay_request(&self, request: Request<Incoming>) -> RelayResponse {
        let (mut parts, body) = request.into_parts();
        if !self.relay.hosts.allows(&parts) {
            let text = "this host or origin is not allowed; allow it with `--allow-host`\n";
            return error_response(StatusCode::FORBIDDEN, text.to_owned());
        }
        let exchange = self.record_request(&parts);
        let body = RecordedBody::new(body, exchange.body(MessageSide::Client, &parts.headers));
        remove_connection_headers(&mut parts.headers);
        parts.headers.insert(HOST, self.relay.host.clone());
        // Secrets in a compressed body cannot be redacted.
        let identity = HeaderValue::from_static("identity");
        parts.headers.insert(ACCEPT_ENCODING, identity);
        parts.version = http::Version::HTTP_11;
        parts.uri = origin_form(&parts.uri);
        let request = Request::from_parts(parts, body);
        match self.send(request, &exchange).await {
            Ok(response) => relayed_response(response, exchange),
            Err(reason) => {
                let text = format!("the server cannot be reached: {reason}\n");
                exchange.fail(reason);
                error_response(StatusCode::BAD_GATEWAY, text)
            }
        }
    }

    fn record_request(&self, parts: &request::Parts) -> RelayedExchange {
        let number = self.relay.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        let mut request = RequestEntry::new(number, parts.method.as_str(), parts.uri.to_string());
        for (name, value) in &parts.headers {
            request.add_header(name.as_str(), text_of(value));
        }
        let exchange = RelayedExchange {
            sink: self.relay.sink.clone(),
            connection: self.number,
            number,
            started_at: Instant::now(),
            failure: None,
            is_complete: false,
        };
        exchange.record(EntryKind::Request(request));
        exchange
    }

    /// Sends a request on the connection to the server. If that was closed in the meantime, opens another one.
    async fn send(
        &self,
        mut request: Request<RecordedBody>,
        exchange: &RelayedExchange,
    ) -> std::result::Result<Response<Incoming>, String> {
        let mut slot = self.sender.lock().await;
        let mut phases = HttpPhases::default();
        let response = loop {
            let is_new = slot.is_none();
            let sender = match slot.as_mut() {
                Some(sender) => sender,
                None => {
                    let started_at = Instant::now();
                    let sender = self.connect().await?;
                    phases.connect = Some(micros_since(started_at));
                    slot.insert(sender)
                }
            };
            if sender.ready().await.is_err() && !is_new {
                *slot = None;
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => break response,
                Err(mut error) => {
                    *slot = None;
                    match error.take_message() {
                        Some(unsent) if !is_new => request = unsent,
                        _ => return Err(error_chain(&error.into_error())),
                    }
                }
            }
        };
        let waited = micros_since(exchange.started_at);
        phases.first_byte = Some(waited - phases.connect.unwrap_or_default().min(waited));
        let mut entry = ResponseEntry::new(exchange.number, response.status().as_u16());
        entry.phases = phases;
        for (name, value) in response.headers() {
            entry.add_header(name.as_str(), text_of(value));
        }
        exchange.record(EntryKind::Response(entry));
        Ok(response)
    }

    async fn connect(&self) -> std::result::Result<SendRequest<RecordedBody>, String> {
        let stream = self.relay.upstream.dial().await;
        let stream = stream.map_err(|error| error_chain(&error))?;
        let connected = hyper::client::conn::http1::Builder::new()
            .preserve_header_case(true)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, driver) = connected.map_err(|error| error_chain(&error))?;
        tokio::spawn(driver);
        Ok(sender)
    }
}

fn relayed_response(response: Response<Incoming>, exchange: RelayedExchange) -> RelayResponse {
    let (mut parts, body) = response.into_parts();
    remove_connection_headers(&mut parts.headers);
    let mut copy = exchange.body(MessageSide::Server, &parts.headers);
    copy.exchange = Some(exchange);
    Response::from_parts(parts, Either::Left(RecordedBody::new(body, copy)))
}

fn error_response(status: StatusCode, text: String) -> RelayResponse {
    let mut response = Response::new(Either::Right(Full::from(text)));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn remove_connection_headers(headers: &mut HeaderMap) {
    for name in CONNECTION_HEADERS {
        headers.remove(name);
    }
}

/// Returns path and query, without the authority that a client sends to a proxy.
fn origin_form(uri: &Uri) -> Uri {
    let target = uri.path_and_query().cloned();
    target.map_or_else(|| Uri::from_static("/"), Uri::from)
}

/// Returns whether a body is compressed, or encoded in another way.
fn is_encoded(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn text_of(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn micros_since(started_at: Instant) -> u64 {
    started_at
        .elapsed()
        .as_micros()
        .try_into()
        .unwrap_or(u64::MAX)
}

/// A request and its response. Their end is recorded when this is dropped.
struct RelayedExchange {
    sink: RecordingSink,
    connection: u64,
    number: u64,
    started_at: Instant,
    failure: Option<String>,
    /// Whether the whole response was passed on.
    is_complete: bool,
}

impl RelayedExchange {
    /// Begins the recording of a body.
    fn body(&self, from: MessageSide, headers: &HeaderMap) -> BodyCopy {
        let media_type = headers.get(CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok());
        let stream = RecordedStream::Body {
            from,
            exchange: self.number,
            content: if is_encoded(headers) {
                BodyContent::Encoded
            } else {
                BodyContent::from_media_type(media_type)
            },
        };
        BodyCopy {
            stream: Some(self.sink.stream(self.connection, stream)),
            exchange: None,
        }
    }

    fn fail(mut self, reason: String) {
        self.failure = Some(reason);
    }

    fn record(&self, kind: EntryKind) {
        self.sink.entry(self.connection, kind);
    }
}

impl Drop for RelayedExchange {
    fn drop(&mut self) {
        let end = match self.failure.take() {
            Some(reason) => EndEntry::failed(self.number, reason),
            None if self.is_complete => EndEntry::new(self.number),
            None => EndEntry::failed(self.number, "interrupted before the end of the response"),
        };
        self.record(EntryKind::End(end));
    }
}

/// The recording of a body, and of the end of the exchange if it is the response.
struct BodyCopy {
    stream: Option<StreamSink>,
    exchange: Option<RelayedExchange>,
}

impl BodyCopy {
    fn fail(&mut self, error: &hyper::Error) {
        if let Some(exchange) = &mut self.exchange {
            exchange.failure = Some(error_chain(error));
        }
    }

    /// Ends the body first, so that its message is recorded before the end of the exchange.
    fn end(&mut self) {
        self.stream = None;
        if let Some(exchange) = &mut self.exchange {
            exchange.is_complete = true;
        }
        self.exchange = None;
    }
}

/// A body that is passed on, with a copy for the recording.
struct RecordedBody {
    body: Incoming,
    copy: BodyCopy,
}

impl RecordedBody {
    fn new(body: Incoming, copy: BodyCopy) -> Self {
        let mut recorded = Self { body, copy };
        if recorded.body.is_end_stream() {
            recorded.copy.end();
        }
        recorded
    }
}

impl Body for RecordedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(stream)) = (frame.data_ref(), &self.copy.stream) {
                    stream.write(data);
                }
            }
            Some(Err(error)) => self.copy.fail(error),
            None => {}
        }
        if frame.is_none() || self.body.is_end_stream() {
            self.copy.end();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Binds the port of a relay.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        CliError::could_not_run(format!("cannot listen on {address}: {error}"))
            .hint("choose another address with `--listen`")
    })
}
