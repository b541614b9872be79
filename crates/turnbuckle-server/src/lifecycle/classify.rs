//! Classifies messages: decides once per message which era it belongs to, and whether it needs a session.

use turnbuckle_protocol::{
    Revision, RpcError,
    jsonrpc::{Incoming, MalformedMessage, Message, Request},
    meta::RequestMeta,
};

use super::{parse_meta, stateless::RequestRejection};

/// The lifecycle that a message belongs to.
pub(crate) enum MessageClass<'m, 'a> {
    /// A request of the modern era, with its `_meta`.
    Stateless(&'m Request<'a>, RequestMeta<'a>),
    /// `initialize`, which creates a session.
    Initialize(&'m Request<'a>),
    /// A message of an existing session, with the `_meta` of a request. Includes malformed messages.
    Session(RequestMeta<'a>),
    /// A message of a legacy revision where sessions are disabled.
    Sessionless(RequestMeta<'a>),
    /// A message of a legacy revision that lacks its session.
    SessionRequired,
    /// A notification of the modern era, which has no effect.
    Ignored,
    /// A message that no lifecycle accepts.
    Invalid(RequestRejection),
}

/// The session that the transport knows for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionPresence {
    /// The message names a session, or its connection has one.
    Present,
    /// The message does not have a session.
    Absent,
    /// The transport does not keep sessions.
    Disabled,
}

/// The error text for a batch in a revision without batches.
pub(crate) const BATCH_UNSUPPORTED: &str =
    "this revision does not support batches; send one message per request";

/// Classifies a message by its content, the `MCP-Protocol-Version` header and its session.
///
/// `session` is evaluated only if it matters.
pub(crate) fn classify<'m, 'a>(
    incoming: &'m Result<Incoming<'a>, MalformedMessage>,
    version_header: Option<&str>,
    session: impl FnOnce() -> SessionPresence,
) -> MessageClass<'m, 'a> {
    if let Ok(Incoming::One(Message::Request(request))) = incoming {
        return classify_request(request, version_header, session);
    }
    if may_be_legacy(version_header) {
        return match (session(), incoming) {
            (SessionPresence::Present, _) => MessageClass::Session(RequestMeta::default()),
            (SessionPresence::Disabled, _) => MessageClass::Sessionless(RequestMeta::default()),
            (SessionPresence::Absent, Ok(_)) => MessageClass::SessionRequired,
            (SessionPresence::Absent, Err(malformed)) => invalid(malformed.error.clone()),
        };
    }
    match incoming {
        Ok(Incoming::One(Message::Notification(_))) => MessageClass::Ignored,
        Ok(Incoming::One(_)) => invalid(RpcError::invalid_request(
            "this revision does not accept responses from clients",
        )),
        Ok(Incoming::Batch(_)) => invalid(RpcError::invalid_request(BATCH_UNSUPPORTED)),
        Err(malformed) => invalid(malformed.error.clone()),
    }
}

/// Classifies a request. A request with `protocolVersion` in `_meta` is stateless.
///
/// The header alone never makes `initialize` stateless: clients of both eras send the newest version with it.
// Inlined, so that the class of a request is never moved in memory.
#[inline(always)]
pub(crate) fn classify_request<'m, 'a>(
    request: &'m Request<'a>,
    version_header: Option<&str>,
    session: impl FnOnce() -> SessionPresence,
) -> MessageClass<'m, 'a> {
    let meta = match parse_meta(request) {
        Ok(meta) => meta,
        Err(error) => return invalid_meta(error, version_header, session),
    };
    if meta.protocol_version.is_some() {
        return MessageClass::Stateless(request, meta);
    }
    if request.method == "initialize" {
        return MessageClass::Initialize(request);
    }
    if !may_be_legacy(version_header) {
        return MessageClass::Stateless(request, meta);
    }
    match session() {
        SessionPresence::Present => MessageClass::Session(meta),
        SessionPresence::Disabled => MessageClass::Sessionless(meta),
        SessionPresence::Absent => MessageClass::SessionRequired,
    }
}

/// Returns whether a peer with this version header may be of the legacy era, so may have a session. Peers of the modern era
/// send their version with every request, except with `initialize`.
pub(crate) fn may_be_legacy(version_header: Option<&str>) -> bool {
    version_header
        .and_then(Revision::stateless_from_name)
        .is_none()
}

fn invalid<'m, 'a>(error: RpcError) -> MessageClass<'m, 'a> {
    MessageClass::Invalid(RequestRejection::bad_request(error))
}

/// Rejects a request with malformed `_meta`. Sessions report errors of requests with status 200.
fn invalid_meta<'m, 'a>(
    error: RpcError,
    version_header: Option<&str>,
    session: impl FnOnce() -> SessionPresence,
) -> MessageClass<'m, 'a> {
    let in_session = may_be_legacy(version_header) && session() == SessionPresence::Present;
    let status = if in_session { 200 } else { 400 };
    MessageClass::Invalid(RequestRejection { error, status })
}

#[cfg(test)]
mod tests {
    use turnbuckle_protocol::jsonrpc;

    use super::{
        SessionPresence::{Absent, Disabled, Present},
        *,
    };

    const LEGACY: Option<&str> = Some("2025-11-25");
    const MODERN: Option<&str> = Some("2026-07-28");

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    const LIST_WITH_META: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":
        {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    const INITIALIZE_WITH_META: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":
        {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    const BAD_META: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":7}}"#;
    const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    const BATCH: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    const MALFORMED: &str = r#"{"jsonrpc":"2.0","id":1}"#;

    fn class(message: &str, version: Option<&str>, session: SessionPresence) -> String {
        match classify(&jsonrpc::parse(message.as_bytes()), version, || session) {
            MessageClass::Stateless(..) => "stateless".to_owned(),
            MessageClass::Initialize(_) => "initialize".to_owned(),
            MessageClass::Session(_) => "session".to_owned(),
            MessageClass::Sessionless(_) => "sessionless".to_owned(),
            MessageClass::SessionRequired => "session required".to_owned(),
            MessageClass::Ignored => "ignored".to_owned(),
            MessageClass::Invalid(rejection) => format!("invalid {}", rejection.status),
        }
    }

    #[test]
    fn messages_are_classified_by_meta_method_header_and_session() {
        // For each message: a legacy or missing version header with a session present, absent or disabled, then the modern
        // header, where the session does not matter.
        let table = [
            (INITIALIZE, ["initialize"; 3], "initialize"),
            (INITIALIZE_WITH_META, ["stateless"; 3], "stateless"),
            (LIST_WITH_META, ["stateless"; 3], "stateless"),
            (
                LIST,
                ["session", "session required", "sessionless"],
                "stateless",
            ),
            (
                BAD_META,
                ["invalid 200", "invalid 400", "invalid 400"],
                "invalid 400",
            ),
            (
                NOTIFICATION,
                ["session", "session required", "sessionless"],
                "ignored",
            ),
            (
                RESPONSE,
                ["session", "session required", "sessionless"],
                "invalid 400",
            ),
            (
                BATCH,
                ["session", "session required", "sessionless"],
                "invalid 400",
            ),
            (
                MALFORMED,
                ["session", "invalid 400", "sessionless"],
                "invalid 400",
            ),
        ];

        for (message, legacy, modern) in table {
            for (session, expected) in [Present, Absent, Disabled].into_iter().zip(legacy) {
                for version in [None, LEGACY, Some("?")] {
                    let class = class(message, version, session);
                    assert_eq!(class, expected, "{message} {version:?} {session:?}");
                }
                assert_eq!(class(message, MODERN, session), modern, "{message}");
            }
        }
    }

    #[test]
    fn a_stateless_request_does_not_look_for_a_session() {
        let incoming = jsonrpc::parse(LIST_WITH_META.as_bytes());

        let class = classify(&incoming, None, || panic!("the session was evaluated"));

        assert!(matches!(class, MessageClass::Stateless(..)));
    }
}
