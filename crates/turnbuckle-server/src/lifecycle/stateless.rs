//! Requests that stand on their own: everything is said in `_meta`, nothing is remembered.

use serde_json::json;
use turnbuckle_protocol::{
    Revision, RpcError,
    codec::headers,
    jsonrpc::{Excerpt, Request, code},
    meta::RequestMeta,
    method::{Direction, Kind, Method},
    types::{DiscoverResult, LogLevel},
};

use super::{Arrival, Caller, Rules, connected::Description};
use crate::{Server, context::Call, reply::Reply, written::Written};

/// What HTTP headers repeat of a request, for intermediaries to read.
pub(crate) trait Mirror {
    /// The value of a header, if it is there exactly once and is visible ASCII; an error says what is wrong.
    fn header(&self, name: &str) -> Result<Option<&str>, RpcError>;
}

/// A request that is refused before dispatch, with its HTTP status.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: RpcError,
    pub(crate) status: u16,
}

impl Refusal {
    pub(crate) fn bad_request(error: RpcError) -> Self {
        Self { error, status: 400 }
    }
}

/// Checks a request in the order that decisions row 11 fixes, and returns who sent it.
pub(crate) fn admit(
    server: &Server,
    request: &Request<'_>,
    meta: RequestMeta<'_>,
    mirror: Option<&dyn Mirror>,
    arrival: Arrival,
) -> Result<Caller, Refusal> {
    let version = meta
        .protocol_version
        .as_deref()
        .ok_or_else(|| missing("protocolVersion"))?;
    let capabilities = meta
        .client_capabilities
        .ok_or_else(|| missing("clientCapabilities"))?;
    if let Some(mirror) = mirror {
        same_version(mirror, version).map_err(Refusal::bad_request)?;
    }
    if version != Revision::MODERN.as_str() {
        return Err(Refusal::bad_request(unsupported(version)));
    }
    let rules = Rules::of(Revision::MODERN);
    let (is_known, name_member) = match Method::named(&request.method) {
        Some(method) => (is_request_to_server(method), method.name_member),
        None => match server.extension_method(&request.method, rules) {
            Some(added) => (true, added.name_member()),
            None => (false, None),
        },
    };
    if let Some(mirror) = mirror {
        same_method(mirror, request).map_err(Refusal::bad_request)?;
        same_name(mirror, request, name_member).map_err(Refusal::bad_request)?;
    }
    if !is_known {
        return Err(Refusal {
            error: RpcError::method_not_found(&request.method),
            status: 404,
        });
    }
    let trace = super::trace(&meta);
    let log_level = meta
        .log_level
        .as_deref()
        .map(log_level)
        .transpose()
        .map_err(Refusal::bad_request)?;
    let description = Description {
        info: meta.client_info,
        capabilities,
    };
    let client = match &arrival.connected {
        Some(connected) => connected.client(description),
        None => description.read(),
    };
    let client = client.map_err(Refusal::bad_request)?;
    Ok(Caller {
        rules,
        client,
        principal: arrival.principal,
        headers: arrival.headers,
        peer: arrival.peer,
        extensions: arrival.extensions,
        progress_token: meta.progress_token,
        log_level,
        may_be_asked: true,
        live: None,
        says_goodbye: arrival.says_goodbye,
        connected: arrival.connected,
        session: None,
        trace,
    })
}

/// The error for a version that this server does not speak.
pub(crate) fn unsupported(version: &str) -> RpcError {
    let supported: Vec<_> = Revision::ALL
        .iter()
        .map(|revision| revision.as_str())
        .collect();
    RpcError::new(
        code::UNSUPPORTED_VERSION,
        format!(
            "protocol version `{}` is not supported; this server speaks {}",
            Excerpt(version),
            supported.join(", ")
        ),
    )
    .with_data(json!({ "supported": supported, "requested": Excerpt(version).to_string() }))
}

fn missing(key: &str) -> Refusal {
    Refusal::bad_request(RpcError::invalid_params(format!(
        "`_meta` lacks `io.modelcontextprotocol/{key}`, which every request of {} needs; \
         clients of {} and older begin with `initialize`",
        Revision::MODERN,
        Revision::LATEST_LEGACY,
    )))
}

fn same_version(mirror: &dyn Mirror, version: &str) -> Result<(), RpcError> {
    match mirror.header("mcp-protocol-version")? {
        Some(header) if header == version => Ok(()),
        Some(header) => Err(mismatch(format!(
            "`MCP-Protocol-Version` says `{header}`, `_meta` says `{}`",
            Excerpt(version)
        ))),
        None => Err(mismatch(format!(
            "`MCP-Protocol-Version: {}` is missing",
            Excerpt(version)
        ))),
    }
}

fn same_method(mirror: &dyn Mirror, request: &Request<'_>) -> Result<(), RpcError> {
    match mirror.header("mcp-method")? {
        Some(header) if header == request.method => Ok(()),
        Some(header) => Err(mismatch(format!(
            "`Mcp-Method` says `{header}`, the body `{}`",
            Excerpt(&request.method)
        ))),
        None => Err(mismatch(format!(
            "`Mcp-Method: {}` is missing",
            Excerpt(&request.method)
        ))),
    }
}

fn same_name(
    mirror: &dyn Mirror,
    request: &Request<'_>,
    name_member: Option<&str>,
) -> Result<(), RpcError> {
    let Some(member) = name_member else {
        return Ok(());
    };
    // A missing or ill-typed member is judged with the other parameters.
    let Ok(Some(name)) = request.params.string(member) else {
        return Ok(());
    };
    let Some(header) = mirror.header("mcp-name")? else {
        return Err(mismatch(format!(
            "`Mcp-Name` is missing; it repeats `params.{member}`"
        )));
    };
    let decoded =
        headers::decode(header).map_err(|error| mismatch(format!("`Mcp-Name`: {error}")))?;
    if decoded == name {
        Ok(())
    } else {
        Err(mismatch(format!(
            "`Mcp-Name` says `{}`, `params.{member}` `{}`",
            Excerpt(&decoded),
            Excerpt(&name)
        )))
    }
}

fn is_request_to_server(method: &Method) -> bool {
    method.kind == Kind::Request && method.direction(Revision::MODERN) == Some(Direction::ToServer)
}

/// Answers `server/discover`.
pub(crate) fn discover(call: &Call) -> Written {
    let server = &call.server;
    server.attend();
    let capabilities = server.capabilities(call.caller.rules);
    let mut result = DiscoverResult::new(Revision::ALL.map(Revision::as_str), capabilities);
    result.instructions = server.instructions_text().map(str::to_owned);
    Reply::new(call).object(&mut result, Some(server.list_cache()))
}

/// The error for a header that is missing or differs from the body.
pub(crate) fn mismatch(message: String) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, message)
}

fn log_level(level: &str) -> Result<LogLevel, RpcError> {
    level
        .parse()
        .map_err(|_| RpcError::invalid_params(format!("`{}` is no log level", Excerpt(level))))
}
