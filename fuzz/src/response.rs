//! Parses and checks HTTP/1 responses.

use serde_json::Value;
use turnbuckle_protocol::codec::sse::{SseDecoder, SseLimits};

use crate::{line_peer::message, marks::Marks};

/// The bytes that a server wrote on one connection.
#[derive(Default)]
pub struct Responses {
    bytes: Vec<u8>,
    /// Whether a request was HEAD: then the presence of a body is not known from the response.
    pub bodies_unknown: bool,
}

impl Responses {
    /// Appends received bytes, checks every complete response, and records its values.
    pub fn push(&mut self, bytes: &[u8], marks: &mut Marks) {
        self.bytes.extend_from_slice(bytes);
        let start = &self.bytes[..self.bytes.len().min(7)];
        assert!(
            b"HTTP/1.".starts_with(start),
            "no response: {:?}",
            self.text()
        );
        while !self.bodies_unknown
            && let Some(response) = Response::read(&self.bytes)
        {
            response.check(marks);
            if !response.is_complete {
                break;
            }
            self.bytes.drain(..response.length);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// One response, possibly incomplete.
struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    length: usize,
    is_complete: bool,
}

impl Response {
    /// Reads a response after its head.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Response::new(&mut headers);
        let parsed = head.parse(bytes).expect("the server writes sound heads");
        let httparse::Status::Complete(head_length) = parsed else {
            return None;
        };
        let headers = head.headers.iter().map(|header| {
            let value = String::from_utf8_lossy(header.value).into_owned();
            (header.name.to_ascii_lowercase(), value)
        });
        let mut response = Self {
            status: head.code.expect("a complete head has a status"),
            headers: headers.collect(),
            body: Vec::new(),
            length: head_length,
            is_complete: true,
        };
        response.read_body(&bytes[head_length..]);
        Some(response)
    }

    fn read_body(&mut self, bytes: &[u8]) {
        if matches!(self.status, 100..=199 | 204 | 304) {
            return;
        }
        if self.header("transfer-encoding") == Some("chunked") {
            return self.read_chunks(bytes);
        }
        let declared = self.header("content-length");
        let declared =
            declared.map(|length| length.parse::<usize>().expect("a length is a number"));
        // Without a length it ends with the connection.
        let length = declared.unwrap_or(usize::MAX);
        self.is_complete = bytes.len() >= length;
        self.body
            .extend_from_slice(&bytes[..length.min(bytes.len())]);
        self.length += self.body.len();
    }

    fn read_chunks(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        self.is_complete = loop {
            let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(rest)
            else {
                break false;
            };
            let end = start + usize::try_from(size).expect("a chunk fits into memory");
            let Some(chunk) = rest.get(start..end).filter(|_| rest.len() >= end + 2) else {
                break false;
            };
            self.body.extend_from_slice(chunk);
            assert_eq!(
                &rest[end..end + 2],
                b"\r\n",
                "a chunk has the length it says"
            );
            rest = &rest[end + 2..];
            if size == 0 {
                break true;
            }
        };
        self.length += bytes.len() - rest.len();
    }

    fn check(&self, marks: &mut Marks) {
        assert!(matches!(self.status, 100 | 200..=503), "{}", self.status);
        assert_ne!(
            self.status,
            500,
            "{:?}",
            String::from_utf8_lossy(&self.body)
        );
        if let Some(session) = self.header("mcp-session-id") {
            marks.note("session", session);
        }
        match self.header("content-type") {
            Some("application/json") if self.is_complete => self.note(&self.body, marks),
            Some("text/event-stream") => self.check_events(marks),
            _ => {}
        }
    }

    fn check_events(&self, marks: &mut Marks) {
        let mut decoder = SseDecoder::new(SseLimits::default());
        let mut rest = &self.body[..];
        while let Some(event) = decoder.next(&mut rest).expect("events keep to the limits") {
            if !event.last_event_id.is_empty() {
                marks.note("event", &event.last_event_id);
            }
            match &*event.name {
                "endpoint" => marks.note("messages", &event.data),
                _ if event.data.is_empty() => {}
                _ => self.note(event.data.as_bytes(), marks),
            }
        }
    }

    fn note(&self, json: &[u8], marks: &mut Marks) {
        match message(json) {
            Value::Array(entries) => entries.iter().for_each(|entry| marks.note_message(entry)),
            one => marks.note_message(&one),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| &**value);
        assert!(
            found.next().is_none() || name == "vary",
            "two headers {name}"
        );
        value
    }
}
