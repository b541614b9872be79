//! Parses bytes to messages: collects the envelope during the scan, then classifies it.
//!
//! The order matters: input that is not JSON is -32700, even if an earlier part of it is not a valid message. So
//! everything is collected first.

use std::borrow::Cow;

use super::{
    Incoming, MalformedMessage, Message, Notification, Params, RawObject, Request, RequestId,
    Response, RpcError,
    json_string::{string_value, unescape},
    scan::{ScanError, Scanner, Span},
};
use crate::{json, types::ResultType};

/// The maximum number of messages in a batch.
pub const MAX_BATCH: usize = 100;

/// Parses one message or a batch in a single validating pass.
///
/// Errors: -32700 for input that is not JSON or exceeds [`MAX_DEPTH`](super::MAX_DEPTH), -32600 for JSON that is not
/// a message, -32602 for a duplicate member of `params`, because two readers could disagree about its value.
///
/// ```
/// use turnbuckle_protocol::jsonrpc::{Incoming, Message, parse};
///
/// let bytes = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}"#;
/// let Ok(Incoming::One(Message::Request(request))) = parse(bytes) else {
///     panic!("this is a request");
/// };
/// assert_eq!(request.method, "tools/call");
/// assert_eq!(request.params.get("name"), Some(r#""echo""#));
/// ```
#[expect(
    clippy::result_large_err,
    reason = "an error is not larger than a message"
)]
pub fn parse(bytes: &[u8]) -> Result<Incoming<'_>, MalformedMessage> {
    let not_json = |error: ScanError| MalformedMessage::new(None, error.into());
    let mut scanner = Scanner::new(bytes).map_err(not_json)?;
    match scanner.peek() {
        Some(b'{') => {
            let mut envelope = Envelope::default();
            let scanned = envelope.fill(&mut scanner, 0);
            scanned.and_then(|()| scanner.finish()).map_err(not_json)?;
            envelope.classify().map(Incoming::One)
        }
        Some(b'[') => {
            let mut batch = Batch::default();
            let scanned = batch.fill(&mut scanner);
            scanned.and_then(|()| scanner.finish()).map_err(not_json)?;
            batch.classify().map(Incoming::Batch)
        }
        _ => {
            let skipped = scanner.skip_value(0);
            skipped.and_then(|_| scanner.finish()).map_err(not_json)?;
            Err(rejected(NOT_AN_OBJECT))
        }
    }
}

const NOT_AN_OBJECT: &str = "a message must be an object";
const PARAMS: &str = "`params` must be an object";

fn rejected(message: &str) -> MalformedMessage {
    MalformedMessage::new(None, RpcError::invalid_request(message))
}

/// A batch of messages.
#[derive(Default)]
struct Batch<'a> {
    /// The entries up to the limit; `None` is not an object.
    entries: Vec<Option<Envelope<'a>>>,
    total: usize,
}

impl<'a> Batch<'a> {
    fn fill(&mut self, scanner: &mut Scanner<'a>) -> Result<(), ScanError> {
        let mut more = scanner.first_entry()?;
        while more {
            self.total += 1;
            // Entries above the limit are checked but not stored, so that memory stays bounded.
            if self.total <= MAX_BATCH && scanner.peek() == Some(b'{') {
                let mut envelope = Envelope::default();
                envelope.fill(scanner, 1)?;
                self.entries.push(Some(envelope));
            } else {
                scanner.skip_value(1)?;
                if self.total <= MAX_BATCH {
                    self.entries.push(None);
                }
            }
            more = scanner.next_entry()?;
        }
        Ok(())
    }

    #[expect(clippy::result_large_err, reason = "as for `parse`")]
    fn classify(self) -> Result<Vec<Result<Message<'a>, MalformedMessage>>, MalformedMessage> {
        match self.total {
            0 => Err(rejected("an array of messages must not be empty")),
            1..=MAX_BATCH => Ok(self.entries.into_iter().map(classify_entry).collect()),
            _ => Err(rejected("an array must not have more than 100 messages")),
        }
    }
}

#[expect(clippy::result_large_err, reason = "as for `parse`")]
fn classify_entry(entry: Option<Envelope<'_>>) -> Result<Message<'_>, MalformedMessage> {
    match entry {
        Some(mut envelope) => envelope.classify(),
        None => Err(rejected(NOT_AN_OBJECT)),
    }
}

/// The members of a message, as raw JSON text.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Params<'a>,
    /// The JSON type of `params`, if present.
    params_kind: Option<ParamsKind>,
    result: Option<ScannedResult<'a>>,
    error: Option<&'a str>,
    duplicate: Option<MemberName>,
}

/// The JSON type of a value.
#[derive(Clone, Copy)]
enum ParamsKind {
    Object,
    Array,
    Null,
    Other,
}

#[derive(Clone, Copy, PartialEq)]
enum MemberName {
    Jsonrpc,
    ParsedId,
    Method,
    Params,
    Result,
    Error,
}

impl MemberName {
    fn parse(raw: &str, escaped: bool) -> Option<Self> {
        if escaped {
            Self::exact(&unescape(raw))
        } else {
            Self::exact(raw)
        }
    }

    fn exact(name: &str) -> Option<Self> {
        Some(match name {
            "jsonrpc" => Self::Jsonrpc,
            "id" => Self::ParsedId,
            "method" => Self::Method,
            "params" => Self::Params,
            "result" => Self::Result,
            "error" => Self::Error,
            _ => return None,
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Jsonrpc => "jsonrpc",
            Self::ParsedId => "id",
            Self::Method => "method",
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

impl<'a> Envelope<'a> {
    /// Scans the current object, which is inside `depth` open containers, and records its members.
    fn fill(&mut self, scanner: &mut Scanner<'a>, depth: usize) -> Result<(), ScanError> {
        let mut key = scanner.first_key()?;
        while let Some(name) = key {
            let name = MemberName::parse(scanner.slice(name.span), name.escaped);
            self.scan_member(name, scanner, depth + 1)?;
            key = scanner.next_key()?;
        }
        Ok(())
    }

    fn scan_member(
        &mut self,
        name: Option<MemberName>,
        scanner: &mut Scanner<'a>,
        depth: usize,
    ) -> Result<(), ScanError> {
        let occurred = match name {
            Some(MemberName::Params) => {
                let kind = self.scan_params(scanner, depth)?;
                self.params_kind.replace(kind).is_some()
            }
            Some(MemberName::Result) => {
                let result = ScannedResult::scan(scanner, depth)?;
                self.result.replace(result).is_some()
            }
            Some(MemberName::Jsonrpc) => self.jsonrpc.replace(scanner.pass(depth)?).is_some(),
            Some(MemberName::ParsedId) => self.id.replace(scanner.pass(depth)?).is_some(),
            Some(MemberName::Method) => self.method.replace(scanner.pass(depth)?).is_some(),
            Some(MemberName::Error) => self.error.replace(scanner.pass(depth)?).is_some(),
            None => {
                scanner.skip_value(depth)?;
                false
            }
        };
        if let Some(name) = name {
            self.record_duplicate(name, occurred);
        }
        Ok(())
    }

    fn scan_params(
        &mut self,
        scanner: &mut Scanner<'a>,
        depth: usize,
    ) -> Result<ParamsKind, ScanError> {
        let kind = match scanner.peek() {
            Some(b'{') => {
                self.params.fill(scanner, depth)?;
                return Ok(ParamsKind::Object);
            }
            Some(b'n') => ParamsKind::Null,
            Some(b'[') => ParamsKind::Array,
            _ => ParamsKind::Other,
        };
        scanner.skip_value(depth)?;
        Ok(kind)
    }

    /// Records a duplicate. A duplicate id takes precedence, because it makes the id ambiguous.
    fn record_duplicate(&mut self, name: MemberName, occurred: bool) {
        if occurred && self.duplicate != Some(MemberName::ParsedId) {
            self.duplicate = Some(name);
        }
    }

    #[expect(clippy::result_large_err, reason = "as for `parse`")]
    fn classify(&mut self) -> Result<Message<'a>, MalformedMessage> {
        let id = self.read_id();
        if self.method.is_none() && (self.result.is_some() || self.error.is_some()) {
            let valid_id = id.valid();
            return self
                .classify_response(id)
                .map_err(|error| MalformedMessage::for_response(valid_id, error));
        }
        match (self.classify_call(&id), id) {
            (Ok(method), ParsedId::Valid(id)) => Ok(Message::Request(Request {
                id,
                method,
                params: std::mem::take(&mut self.params),
            })),
            (Ok(method), _) => Ok(Message::Notification(Notification {
                method,
                params: std::mem::take(&mut self.params),
            })),
            (Err(error), id) => Err(MalformedMessage::new(id.valid(), error)),
        }
    }

    fn read_id(&self) -> ParsedId {
        match self.id {
            None => ParsedId::Absent,
            Some(_) if self.duplicate == Some(MemberName::ParsedId) => ParsedId::Invalid,
            Some("null") => ParsedId::Null,
            Some(json) => RequestId::from_scanned(json).map_or(ParsedId::Invalid, ParsedId::Valid),
        }
    }

    /// Checks the members that all messages have.
    fn check_common(&self) -> Result<(), RpcError> {
        if let Some(name) = self.duplicate {
            let message = format!("member `{}` occurs twice", name.as_str());
            return Err(RpcError::invalid_request(message));
        }
        let version = self.jsonrpc.unwrap_or_default();
        if version != r#""2.0""# && string_value(version).as_deref() != Some("2.0") {
            return Err(RpcError::invalid_request("`jsonrpc` must be \"2.0\""));
        }
        Ok(())
    }

    /// Checks a request or a notification, and returns its method.
    fn classify_call(&self, id: &ParsedId) -> Result<Cow<'a, str>, RpcError> {
        self.check_common()?;
        if matches!(id, ParsedId::Null | ParsedId::Invalid) {
            let message = "`id` must be a string or an integer";
            return Err(RpcError::invalid_request(message));
        }
        if self.result.is_some() || self.error.is_some() {
            let message = "a message must have exactly one of `method`, `result` and `error`";
            return Err(RpcError::invalid_request(message));
        }
        let method = self.read_method()?;
        self.check_params(id)?;
        Ok(method)
    }

    fn check_params(&self, id: &ParsedId) -> Result<(), RpcError> {
        match (self.params_kind, id) {
            (None, _) => Ok(()),
            (Some(ParamsKind::Object), _) => {
                match self.params.object().and_then(RawObject::duplicate) {
                    Some(error) => Err(error),
                    None => Ok(()),
                }
            }
            // Some clients send it in notifications, where an error could not be returned.
            (Some(ParamsKind::Null), ParsedId::Absent) => Ok(()),
            // JSON-RPC allows positional parameters; MCP does not use them.
            (Some(ParamsKind::Array), _) => Err(RpcError::invalid_params(PARAMS)),
            _ => Err(RpcError::invalid_request(PARAMS)),
        }
    }

    fn read_method(&self) -> Result<Cow<'a, str>, RpcError> {
        let json = self
            .method
            .ok_or_else(|| RpcError::invalid_request("`method` is missing"))?;
        string_value(json).ok_or_else(|| RpcError::invalid_request("`method` must be a string"))
    }

    fn classify_response(&self, id: ParsedId) -> Result<Message<'a>, RpcError> {
        self.check_common()?;
        let (kind, outcome) = match (&self.result, self.error) {
            (Some(result), None) => (result.kind(), Ok(result.json)),
            (None, Some(error)) => (None, Err(read_error(error)?)),
            _ => {
                let message = "a response must have either `result` or `error`";
                return Err(RpcError::invalid_request(message));
            }
        };
        match (id, outcome) {
            (ParsedId::Valid(id), outcome) => Ok(Message::Response(Response { id, kind, outcome })),
            (ParsedId::Absent | ParsedId::Null, Err(error)) => Ok(Message::ErrorWithoutId(error)),
            _ => Err(RpcError::invalid_request(
                "`id` must be a string or an integer",
            )),
        }
    }
}

enum ParsedId {
    Absent,
    Null,
    Invalid,
    Valid(RequestId),
}

impl ParsedId {
    fn valid(&self) -> Option<RequestId> {
        match self {
            Self::Valid(id) => Some(id.clone()),
            Self::Absent | Self::Null | Self::Invalid => None,
        }
    }
}

fn read_error(text: &str) -> Result<RpcError, RpcError> {
    json::from_str(text).map_err(|error| {
        let message = format!("`error` must have an integer code and a message: {error}");
        RpcError::invalid_request(message)
    })
}

const RESULT_TYPE: &str = "resultType";

/// A result as raw JSON text.
struct ScannedResult<'a> {
    json: &'a str,
    kind: ScannedKind<'a>,
}

/// The `resultType` of a result.
enum ScannedKind<'a> {
    Absent,
    Present(&'a str),
    /// Duplicate, or the result is not an object.
    Ambiguous,
}

impl<'a> ScannedResult<'a> {
    /// Scans the current value, which is inside `depth` open containers.
    fn scan(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, ScanError> {
        let start = scanner.position();
        let kind = match scanner.peek() {
            Some(b'{') => ScannedKind::scan(scanner, depth + 1)?,
            _ => {
                scanner.skip_value(depth)?;
                ScannedKind::Ambiguous
            }
        };
        let end = scanner.position();
        let json = scanner.slice(Span { start, end });
        Ok(Self { json, kind })
    }

    /// Returns the kind, unless it is ambiguous.
    fn kind(&self) -> Option<ResultType> {
        match self.kind {
            ScannedKind::Absent => Some(ResultType::Complete),
            ScannedKind::Present(json) => string_value(json).map(ResultType::named),
            ScannedKind::Ambiguous => None,
        }
    }
}

impl<'a> ScannedKind<'a> {
    /// Scans the members of the current object; each is inside `depth` open containers.
    fn scan(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, ScanError> {
        let mut kind = Self::Absent;
        let mut key = scanner.first_key()?;
        while let Some(name) = key {
            let raw = scanner.slice(name.span);
            let is_result_type = raw == RESULT_TYPE || name.escaped && unescape(raw) == RESULT_TYPE;
            let value = scanner.pass(depth)?;
            if is_result_type {
                kind = match kind {
                    Self::Absent => Self::Present(value),
                    Self::Present(_) | Self::Ambiguous => Self::Ambiguous,
                };
            }
            key = scanner.next_key()?;
        }
        Ok(kind)
    }
}
