//! Requests of HTTP as they are wanted, right or wrong, and responses as they come.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout};
use turnbuckle_protocol::codec::sse::{Decoder, Limits};

use super::{
    channel,
    pool::{Connection, Pool, reason},
};
use crate::outcome::Unmet;
use crate::secret;
use crate::tape::{Entry, EventHead, Head, Tape};
use crate::target::Web;

/// The longest body, and the longest event, that is read.
const LONGEST: usize = 64 * 1024 * 1024;

/// Sends requests to one server; cheap to clone.
#[derive(Clone)]
pub(crate) struct Caller {
    web: Arc<Web>,
    tape: Tape,
    patience: Duration,
}

/// A request that is being made up.
#[derive(Clone)]
pub(crate) struct Draft {
    caller: Caller,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    deliberate: bool,
    /// The number and the entry by which it is on the tape, once it is.
    noted: Option<(usize, usize)>,
}

/// A response: its head is there, its body is read as wanted.
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: u16,
    /// The entry of the request.
    pub(crate) sent: usize,
    /// The entry of the response.
    pub(crate) received: usize,
    /// The number that both have on the tape.
    pub(crate) channel: usize,
    headers: http::HeaderMap,
    body: Incoming,
    decoder: Decoder,
    chunk: Bytes,
    tape: Tape,
    /// Whether it continues another stream.
    resumes: bool,
    /// Why the body ended before its end.
    cut: Option<String>,
    /// Ends with the reply, unless the body was read to its end.
    connection: Option<Connection>,
    pool: Pool,
}

/// What a stream brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An event: its entry on the tape.
    Message(usize),
    /// Nothing for so long.
    Silence,
    /// The stream has ended.
    End,
    /// The stream broke off, and why.
    Cut(String),
}

impl Caller {
    /// Prepares to speak to a server.
    pub(crate) fn new(web: &Web, tape: &Tape, patience: Duration) -> Self {
        Self {
            web: Arc::new(web.clone()),
            tape: tape.clone(),
            patience,
        }
    }

    /// Begins a request to the endpoint.
    pub(crate) fn request(&self, method: &str) -> Draft {
        self.request_to(method, &self.web.path)
    }

    /// Begins a request to another place of the same server.
    pub(crate) fn request_to(&self, method: &str, path: &str) -> Draft {
        let mut headers = vec![("host".to_owned(), self.web.host.clone())];
        headers.extend(self.web.headers.iter().cloned());
        Draft {
            caller: self.clone(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body: Vec::new(),
            deliberate: false,
            noted: None,
        }
    }

    /// Returns the endpoint's path.
    pub(crate) fn path(&self) -> &str {
        &self.web.path
    }

    /// Says whether a header goes with every request.
    pub(crate) fn has_header(&self, name: &str) -> bool {
        let mut headers = self.web.headers.iter();
        headers.any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// Returns the scheme by which every request says who asks.
    pub(crate) fn scheme(&self) -> Option<&str> {
        let mut headers = self.web.headers.iter();
        let own = headers.find(|(name, _)| name.eq_ignore_ascii_case("authorization"))?;
        own.1.split_whitespace().next()
    }

    /// Returns the port, if plain HTTP leads there by the network.
    pub(crate) fn port_on_network(&self) -> Option<u16> {
        self.web.network_port
    }

    /// Returns what `Host` says.
    pub(crate) fn host(&self) -> &str {
        &self.web.host
    }
}

impl Draft {
    /// Sets a header, whatever it was.
    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets headers.
    pub(crate) fn headers(self, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        headers
            .into_iter()
            .fold(self, |draft, (name, value)| draft.header(&name, value))
    }

    /// Takes a header away.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(key, _)| !key.eq_ignore_ascii_case(name));
        self
    }

    /// Takes away what the user gave to go with every request, which may be credentials under any name.
    pub(crate) fn without_credentials(mut self) -> Self {
        let web = self.caller.web.clone();
        let given = |name: &String| {
            web.headers
                .iter()
                .any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        self.headers.retain(|(name, _)| !given(name));
        self.without("authorization")
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Returns the id of the request that is the body.
    pub(crate) fn id(&self) -> Option<serde_json::Value> {
        let message: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        message.get("id").cloned()
    }

    /// Asks for what followed an event of the stream that answered this request.
    pub(crate) fn resume(self, last: &str) -> Self {
        let mut draft = self.without("content-type").header("last-event-id", last);
        draft.noted = None;
        draft.method = "GET".to_owned();
        draft.body = Vec::new();
        draft.header("accept", "text/event-stream")
    }

    /// Says that it is wrong on purpose.
    pub(crate) fn deliberate(mut self) -> Self {
        self.deliberate = true;
        self
    }

    /// Takes it down on the tape as it is now; returns its number there, and its entry.
    pub(crate) fn note(&mut self) -> (usize, usize) {
        if let Some(noted) = self.noted {
            return noted;
        }
        let channel = channel();
        // What the user gave may be a key, whatever its name is, and so may the query of the endpoint.
        let web = &self.caller.web;
        let shown = |(name, value): &(String, String)| {
            let value = match web
                .headers
                .iter()
                .any(|own| own == &(name.clone(), value.clone()))
            {
                true => secret::given(),
                false => secret::header(name, value),
            };
            (name.to_lowercase(), value)
        };
        let path = match self.path == web.path {
            true => secret::path(&self.path),
            false => self.path.clone(),
        };
        let sent = self.caller.tape.push(Entry {
            head: Some(Head {
                line: format!("{} {path}", self.method),
                headers: self.headers.iter().map(shown).collect(),
            }),
            deliberate: self.deliberate,
            ..Entry::sent(channel, String::from_utf8_lossy(&self.body))
        });
        *self.noted.insert((channel, sent))
    }

    /// Sends it, and waits for the head of the response.
    ///
    /// That there is none counts as broken: whoever listens on HTTP answers.
    pub(crate) async fn send(self) -> Result<Reply, Unmet> {
        let patience = self.caller.patience;
        self.send_within(patience).await
    }

    /// Sends it, and waits for the head of the response for so long.
    pub(crate) async fn send_within(mut self, patience: Duration) -> Result<Reply, Unmet> {
        let tape = self.caller.tape.clone();
        let (channel, sent) = self.note();
        let pool = self.caller.web.pool.clone();
        let resumes = self.headers.iter().any(|(name, _)| name == "last-event-id");
        let answered = timeout(patience, self.exchange()).await;
        let (response, connection) = match answered {
            Ok(Ok(answered)) => answered,
            Ok(Err(why)) => return Err(Unmet::broken(format!("no response: {why}"), [sent])),
            Err(_) => {
                let what = format!("no response within {patience:?}");
                return Err(Unmet::broken(what, [sent]));
            }
        };
        let (head, body) = response.into_parts();
        let headers = head.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (
                name.as_str().to_owned(),
                secret::header(name.as_str(), &value),
            )
        });
        let received = tape.push(Entry {
            head: Some(Head {
                line: head.status.as_u16().to_string(),
                headers: headers.collect(),
            }),
            answers: Some(sent),
            ..Entry::received(channel, "")
        });
        Ok(Reply {
            status: head.status.as_u16(),
            sent,
            received,
            channel,
            headers: head.headers,
            body,
            decoder: Decoder::new(Limits {
                line: LONGEST,
                event: LONGEST,
            }),
            chunk: Bytes::new(),
            tape,
            resumes,
            cut: None,
            connection: Some(connection),
            pool,
        })
    }

    async fn exchange(self) -> Result<(Response<Incoming>, Connection), String> {
        let mut request = Request::new(Full::new(Bytes::from(self.body)));
        *request.method_mut() =
            Method::from_bytes(self.method.as_bytes()).map_err(|error| error.to_string())?;
        *request.uri_mut() = self.path.parse().map_err(|_| "no such path".to_owned())?;
        for (name, value) in &self.headers {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
            let value =
                HeaderValue::from_bytes(value.as_bytes()).map_err(|error| error.to_string())?;
            request.headers_mut().append(name, value);
        }
        let web = &self.caller.web;
        web.pool.send(&web.http, request).await
    }
}

impl Reply {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns all values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let values = self.headers.get_all(name).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        values.map(str::to_owned).collect()
    }

    /// Returns what the body is, without parameters, in lower case.
    pub(crate) fn content_type(&self) -> String {
        let kind = self.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().to_ascii_lowercase()
    }

    /// Says whether the body is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.content_type() == "text/event-stream"
    }

    /// Returns the two entries of the exchange.
    pub(crate) fn entries(&self) -> [usize; 2] {
        [self.sent, self.received]
    }

    /// Reads the whole body, for so long at most; what came by then counts.
    pub(crate) async fn text(&mut self, patience: Duration) -> String {
        let mut body = self.chunk.to_vec();
        let until = Instant::now() + patience;
        while let Some(chunk) = self.chunk(until).await {
            if body.len() + chunk.len() > LONGEST {
                break;
            }
            body.extend_from_slice(&chunk);
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        let shown = text.clone();
        self.tape.amend(self.received, |entry| entry.text = shown);
        text
    }

    /// Waits for the next event of a stream. Events without data, such as one that only names an id, count too.
    pub(crate) async fn event(&mut self, patience: Duration) -> Event {
        self.event_until(Instant::now() + patience).await
    }

    /// Waits for the next event until then, whatever else the stream brings meanwhile.
    pub(crate) async fn event_until(&mut self, until: Instant) -> Event {
        loop {
            if self.tape.is_full() {
                return Event::Cut(Tape::too_much());
            }
            let mut rest: &[u8] = &self.chunk;
            let next = self.decoder.next(&mut rest);
            let used = self.chunk.len() - rest.len();
            let _ = self.chunk.split_to(used);
            if let Ok(Some(event)) = next {
                let known = || self.tape.has_event(&event.last_event_id, &event.data);
                let replayed = self.resumes && known();
                let number = self.tape.push(Entry {
                    event: Some(EventHead {
                        id: event.last_event_id,
                        name: event.name,
                    }),
                    answers: Some(self.sent),
                    replayed,
                    ..Entry::received(self.channel, event.data)
                });
                return Event::Message(number);
            }
            match self.chunk(until).await {
                Some(chunk) => self.chunk = chunk,
                None if self.cut.is_some() => {
                    return Event::Cut(self.cut.clone().unwrap_or_default());
                }
                None if self.connection.is_some() => return Event::Silence,
                None => return Event::End,
            }
        }
    }

    /// Returns how long the stream asked to wait before connecting again.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }

    /// Says why the body ended before its end, if it did.
    pub(crate) fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// Returns the next piece of the body; `None` at its end, and if there is none in time.
    async fn chunk(&mut self, until: Instant) -> Option<Bytes> {
        loop {
            // Whoever never stops would otherwise be listened to for ever: what is there comes before the time is looked at.
            if Instant::now() >= until {
                return None;
            }
            let frame = tokio::time::timeout_at(until, self.body.frame()).await;
            match frame.ok()? {
                None => {
                    self.let_go();
                    return None;
                }
                Some(Err(error)) => {
                    self.cut = Some(reason(&error));
                    self.connection = None;
                    return None;
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Some(data),
                    Err(_trailers) => {}
                },
            }
        }
    }

    fn let_go(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.keep(connection);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.let_go();
        }
    }
}
