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
    let seen = scan(bytes).map_err(|error| Malformed::new(None, error))?;
    match seen {
        Seen::One(envelope) => envelope.judge().map(Incoming::One),
        Seen::Batch { entries, total } if (1..=MAX_BATCH).contains(&total) => Ok(Incoming::Batch(
            entries.into_iter().map(Entry::judge).collect(),
        )),
        Seen::Batch { total: 0, .. } => Err(refused("an array of messages must not be empty")),
        Seen::Batch { .. } => Err(refused("an array may hold at most 100 messages")),
        Seen::Other => Err(refused(NOT_AN_OBJECT)),
    }
}

const NOT_AN_OBJECT: &str = "a message must be an object";

fn refused(message: &str) -> Malformed {
    Malformed::new(None, RpcError::invalid_request(message))
}

/// What the bytes are, before anyone asks whether it makes a message.
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the usual one, and lives for a moment"
)]
enum Seen<'a> {
    One(Envelope<'a>),
    Batch {
        entries: Vec<Entry<'a>>,
        total: usize,
    },
    Other,
}

/// An entry of an array; `None` if it is not an object.
struct Entry<'a>(Option<Envelope<'a>>);

impl<'a> Entry<'a> {
    #[expect(clippy::result_large_err, reason = "as for `parse`")]
    fn judge(self) -> Result<Message<'a>, Malformed> {
        match self.0 {
            Some(envelope) => envelope.judge(),
            None => Err(refused(NOT_AN_OBJECT)),
        }
    }
}

fn scan(bytes: &[u8]) -> Result<Seen<'_>, RpcError> {
    let mut scanner = Scanner::new(bytes)?;
    let seen = match scanner.peek() {
        Some(b'{') => Seen::One(Envelope::scan(&mut scanner, 0)?),
        Some(b'[') => scan_batch(&mut scanner)?,
        _ => {
            scanner.skip_value(0)?;
            Seen::Other
        }
    };
    scanner.finish()?;
    Ok(seen)
}

fn scan_batch<'a>(scanner: &mut Scanner<'a>) -> Result<Seen<'a>, Fault> {
    let mut entries = Vec::new();
    let mut total = 0;
    let mut more = scanner.first_entry()?;
    while more {
        total += 1;
        // Beyond the limit the rest is checked but not kept, so that memory stays bounded.
        if total <= MAX_BATCH && scanner.peek() == Some(b'{') {
            entries.push(Entry(Some(Envelope::scan(scanner, 1)?)));
        } else {
            scanner.skip_value(1)?;
            if total <= MAX_BATCH {
                entries.push(Entry(None));
            }
        }
        more = scanner.next_entry()?;
    }
    Ok(Seen::Batch { entries, total })
}

/// The members that make a message, as raw JSON text.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<RawParams<'a>>,
    result: Option<ScannedResult<'a>>,
    error: Option<&'a str>,
    duplicate: Option<Name>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and nearly always the large one"
)]
enum RawParams<'a> {
    Object(Params<'a>),
    Null,
    Other,
}

impl<'a> RawParams<'a> {
    fn scan(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, Fault> {
        let other = match scanner.peek() {
            Some(b'{') => return Params::scan(scanner, depth).map(Self::Object),
            Some(b'n') => Self::Null,
            _ => Self::Other,
        };
        scanner.skip_value(depth)?;
        Ok(other)
    }
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
    fn scan(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, Fault> {
        let mut envelope = Self::default();
        let mut key = scanner.first_key()?;
        while let Some(name) = key {
            let name = Name::find(scanner.slice(name.span), name.escaped);
            envelope.scan_member(name, scanner, depth + 1)?;
            key = scanner.next_key()?;
        }
        Ok(envelope)
    }

    fn scan_member(
        &mut self,
        name: Option<Name>,
        scanner: &mut Scanner<'a>,
        depth: usize,
    ) -> Result<(), Fault> {
        let occurred = match name {
            Some(Name::Params) => {
                let params = RawParams::scan(scanner, depth)?;
                self.params.replace(params).is_some()
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

    /// Remembers a duplicate; that of the id outlives all others, since it makes the id doubtful.
    fn note(&mut self, name: Name, occurred: bool) {
        if occurred && self.duplicate != Some(Name::Id) {
            self.duplicate = Some(name);
        }
    }

    #[expect(clippy::result_large_err, reason = "as for `parse`")]
    fn judge(self) -> Result<Message<'a>, Malformed> {
        let id = self.read_id();
        let known = match &id {
            Id::Valid(id) => Some(id.clone()),
            Id::Absent | Id::Null | Id::Invalid => None,
        };
        let answers = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        let judged = if answers {
            self.judge_answer(id)
        } else {
            self.judge_call(id)
        };
        judged.map_err(|error| match answers {
            true => Malformed::answer(known, error),
            false => Malformed::new(known, error),
        })
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

    fn judge_call(self, id: Id) -> Result<Message<'a>, RpcError> {
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
        match id {
            Id::Valid(id) => Ok(Message::Request(Request {
                id,
                method,
                params: read_params(self.params, Null::Refused)?,
            })),
            _ => Ok(Message::Notification(Notification {
                method,
                params: read_params(self.params, Null::MeansAbsent)?,
            })),
        }
    }

    fn read_method(&self) -> Result<Cow<'a, str>, RpcError> {
        let json = self
            .method
            .ok_or_else(|| RpcError::invalid_request("`method` is missing"))?;
        string_value(json).ok_or_else(|| RpcError::invalid_request("`method` must be a string"))
    }

    fn judge_answer(self, id: Id) -> Result<Message<'a>, RpcError> {
        self.judge_frame()?;
        let (kind, outcome) = match (self.result, self.error) {
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

/// What `"params": null` means.
#[derive(Clone, Copy, PartialEq)]
enum Null {
    Refused,
    /// Some clients write it in notifications, where a refusal could not be answered anyway.
    MeansAbsent,
}

fn read_params(params: Option<RawParams<'_>>, null: Null) -> Result<Params<'_>, RpcError> {
    match params {
        None => Ok(Params::absent()),
        Some(RawParams::Null) if null == Null::MeansAbsent => Ok(Params::absent()),
        Some(RawParams::Object(params)) => match params.object().and_then(Object::duplicate) {
            Some(error) => Err(error),
            None => Ok(params),
        },
        Some(_) => Err(RpcError::invalid_request("`params` must be an object")),
    }
}

fn read_error(json: &str) -> Result<RpcError, RpcError> {
    serde_json::from_str(json).map_err(|error| {
        let message = format!("`error` must have an integer code and a message: {error}");
        RpcError::invalid_request(message)
    })
}
