//! From bytes to messages: collects the envelope during the scan, then judges it.
//!
//! The order matters: whatever is not JSON is -32700, even if an earlier part of it was already wrong
//! as a message. So everything is collected first.

use std::borrow::Cow;

use super::scan::{Fault, Scanner};
use super::scanned_result::ScannedResult;
use super::text::{string_value, unescape};
use super::{
    Incoming, Malformed, Message, Notification, Object, Params, Request, RequestId, Response,
    RpcError,
};
use crate::json;

/// How many messages an array may hold.
pub const MAX_BATCH: usize = 100;

/// Reads one message, or an array of them, in a single validating pass.
///
/// Not JSON, or beyond [`MAX_DEPTH`](super::MAX_DEPTH): -32700. JSON but not a message: -32600. A member that occurs
/// twice in `params`: -32602, since two readers of it could disagree about what was asked.
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
    reason = "an error carries no more than a message does"
)]
pub fn parse(bytes: &[u8]) -> Result<Incoming<'_>, Malformed> {
    let not_json = |fault: Fault| Malformed::new(None, fault.into());
    let mut scanner = Scanner::new(bytes).map_err(not_json)?;
    match scanner.peek() {
        Some(b'{') => {
            let mut envelope = Envelope::default();
            let scanned = envelope.fill(&mut scanner, 0);
            scanned.and_then(|()| scanner.finish()).map_err(not_json)?;
            envelope.judge().map(Incoming::One)
        }
        Some(b'[') => {
            let mut batch = Batch::default();
            let scanned = batch.fill(&mut scanner);
            scanned.and_then(|()| scanner.finish()).map_err(not_json)?;
            batch.judge().map(Incoming::Batch)
        }
        _ => {
            let skipped = scanner.skip_value(0);
            skipped.and_then(|_| scanner.finish()).map_err(not_json)?;
            Err(refused(NOT_AN_OBJECT))
        }
    }
}

const NOT_AN_OBJECT: &str = "a message must be an object";
const PARAMS: &str = "`params` must be an object";

fn refused(message: &str) -> Malformed {
    Malformed::new(None, RpcError::invalid_request(message))
}

/// An array of messages.
#[derive(Default)]
struct Batch<'a> {
    /// The first of them; `None` is no object.
    entries: Vec<Option<Envelope<'a>>>,
    total: usize,
}

impl<'a> Batch<'a> {
    fn fill(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        let mut more = scanner.first_entry()?;
        while more {
            self.total += 1;
            // Beyond the limit the rest is checked but not kept, so that memory stays bounded.
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
    fn judge(self) -> Result<Vec<Result<Message<'a>, Malformed>>, Malformed> {
        match self.total {
            0 => Err(refused("an array of messages must not be empty")),
            1..=MAX_BATCH => Ok(self.entries.into_iter().map(judge_entry).collect()),
            _ => Err(refused("an array may hold at most 100 messages")),
        }
    }
}

#[expect(clippy::result_large_err, reason = "as for `parse`")]
fn judge_entry(entry: Option<Envelope<'_>>) -> Result<Message<'_>, Malformed> {
    match entry {
        Some(mut envelope) => envelope.judge(),
        None => Err(refused(NOT_AN_OBJECT)),
    }
}

/// The members that make a message, as raw JSON text.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Params<'a>,
    /// What `params` is in JSON, if it is there.
    params_are: Option<Sort>,
    result: Option<ScannedResult<'a>>,
    error: Option<&'a str>,
    duplicate: Option<Name>,
}

/// What a value is in JSON.
#[derive(Clone, Copy)]
enum Sort {
    Object,
    Array,
    Null,
    Other,
}

#[derive(Clone, Copy, PartialEq)]
enum Name {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl Name {
    fn find(raw: &str, escaped: bool) -> Option<Self> {
        match escaped {
            true => Self::exact(&unescape(raw)),
            false => Self::exact(raw),
        }
    }

    fn exact(name: &str) -> Option<Self> {
        Some(match name {
            "jsonrpc" => Self::Jsonrpc,
            "id" => Self::Id,
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
            Self::Id => "id",
            Self::Method => "method",
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

impl<'a> Envelope<'a> {
    /// Passes the object at hand, which lies inside `depth` open containers, and notes what it finds.
    fn fill(&mut self, scanner: &mut Scanner<'a>, depth: usize) -> Result<(), Fault> {
        let mut key = scanner.first_key()?;
        while let Some(name) = key {
            let name = Name::find(scanner.slice(name.span), name.escaped);
            self.scan_member(name, scanner, depth + 1)?;
            key = scanner.next_key()?;
        }
        Ok(())
    }

    fn scan_member(
        &mut self,
        name: Option<Name>,
        scanner: &mut Scanner<'a>,
        depth: usize,
    ) -> Result<(), Fault> {
        let occurred = match name {
            Some(Name::Params) => {
                let sort = self.scan_params(scanner, depth)?;
                self.params_are.replace(sort).is_some()
            }
            Some(Name::Result) => {
                let result = ScannedResult::scan(scanner, depth)?;
                self.result.replace(result).is_some()
            }
            Some(Name::Jsonrpc) => self.jsonrpc.replace(scanner.pass(depth)?).is_some(),
            Some(Name::Id) => self.id.replace(scanner.pass(depth)?).is_some(),
            Some(Name::Method) => self.method.replace(scanner.pass(depth)?).is_some(),
            Some(Name::Error) => self.error.replace(scanner.pass(depth)?).is_some(),
            None => {
                scanner.skip_value(depth)?;
                false
            }
        };
        if let Some(name) = name {
            self.note(name, occurred);
        }
        Ok(())
    }

    fn scan_params(&mut self, scanner: &mut Scanner<'a>, depth: usize) -> Result<Sort, Fault> {
        let sort = match scanner.peek() {
            Some(b'{') => {
                self.params.fill(scanner, depth)?;
                return Ok(Sort::Object);
            }
            Some(b'n') => Sort::Null,
            Some(b'[') => Sort::Array,
            _ => Sort::Other,
        };
        scanner.skip_value(depth)?;
        Ok(sort)
    }

    /// Remembers a duplicate; that of the id outlives all others, since it makes the id doubtful.
    fn note(&mut self, name: Name, occurred: bool) {
        if occurred && self.duplicate != Some(Name::Id) {
            self.duplicate = Some(name);
        }
    }

    #[expect(clippy::result_large_err, reason = "as for `parse`")]
    fn judge(&mut self) -> Result<Message<'a>, Malformed> {
        let id = self.read_id();
        if self.method.is_none() && (self.result.is_some() || self.error.is_some()) {
            let known = id.known();
            return self
                .judge_answer(id)
                .map_err(|error| Malformed::answer(known, error));
        }
        match (self.judge_call(&id), id) {
            (Ok(method), Id::Valid(id)) => Ok(Message::Request(Request {
                id,
                method,
                params: std::mem::take(&mut self.params),
            })),
            (Ok(method), _) => Ok(Message::Notification(Notification {
                method,
                params: std::mem::take(&mut self.params),
            })),
            (Err(error), id) => Err(Malformed::new(id.known(), error)),
        }
    }

    fn read_id(&self) -> Id {
        match self.id {
            None => Id::Absent,
            Some(_) if self.duplicate == Some(Name::Id) => Id::Invalid,
            Some("null") => Id::Null,
            Some(json) => RequestId::from_scanned(json).map_or(Id::Invalid, Id::Valid),
        }
    }

    /// Checks what holds for every message.
    fn judge_frame(&self) -> Result<(), RpcError> {
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
    fn judge_call(&self, id: &Id) -> Result<Cow<'a, str>, RpcError> {
        self.judge_frame()?;
        if matches!(id, Id::Null | Id::Invalid) {
            let message = "`id` must be a string or an integer";
            return Err(RpcError::invalid_request(message));
        }
        if self.result.is_some() || self.error.is_some() {
            let message = "a message has either `method` or `result` or `error`";
            return Err(RpcError::invalid_request(message));
        }
        let method = self.read_method()?;
        self.judge_params(id)?;
        Ok(method)
    }

    fn judge_params(&self, id: &Id) -> Result<(), RpcError> {
        match (self.params_are, id) {
            (None, _) => Ok(()),
            (Some(Sort::Object), _) => match self.params.object().and_then(Object::duplicate) {
                Some(error) => Err(error),
                None => Ok(()),
            },
            // Some clients write it in notifications, where a refusal could not be answered anyway.
            (Some(Sort::Null), Id::Absent) => Ok(()),
            // JSON-RPC knows parameters by position, MCP has no method that takes them.
            (Some(Sort::Array), _) => Err(RpcError::invalid_params(PARAMS)),
            _ => Err(RpcError::invalid_request(PARAMS)),
        }
    }

    fn read_method(&self) -> Result<Cow<'a, str>, RpcError> {
        let json = self
            .method
            .ok_or_else(|| RpcError::invalid_request("`method` is missing"))?;
        string_value(json).ok_or_else(|| RpcError::invalid_request("`method` must be a string"))
    }

    fn judge_answer(&self, id: Id) -> Result<Message<'a>, RpcError> {
        self.judge_frame()?;
        let (kind, outcome) = match (&self.result, self.error) {
            (Some(result), None) => (result.kind(), Ok(result.json)),
            (None, Some(error)) => (None, Err(read_error(error)?)),
            _ => {
                let message = "an answer has either `result` or `error`";
                return Err(RpcError::invalid_request(message));
            }
        };
        match (id, outcome) {
            (Id::Valid(id), outcome) => Ok(Message::Response(Response { id, kind, outcome })),
            (Id::Absent | Id::Null, Err(error)) => Ok(Message::Complaint(error)),
            _ => Err(RpcError::invalid_request(
                "`id` must be a string or an integer",
            )),
        }
    }
}

enum Id {
    Absent,
    Null,
    Invalid,
    Valid(RequestId),
}

impl Id {
    fn known(&self) -> Option<RequestId> {
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
