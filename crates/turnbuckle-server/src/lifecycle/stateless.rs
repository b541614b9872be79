//! Stateless requests: `_meta` contains everything, and no session exists.

use serde_json::json;
use turnbuckle_protocol::{
    Revision, RpcError,
    codec::headers,
    jsonrpc::{Request, Truncated, code},
    meta::RequestMeta,
    method::Method,
    types::{DiscoverResult, LogLevel},
};

use super::{RequestOrigin, RevisionRules, TransportInfo, connection::RawClientInfo};
use crate::{
    Server,
    request::{
        RequestContext,
        response::{EncodedResponse, ResponseWriter},
    },
};

/// The MCP headers that repeat parts of a request for intermediaries.
pub(crate) trait RequestHeaders {
    /// Returns the value of a header, if it occurs once and is visible ASCII.
    fn header(&self, name: &str) -> Result<Option<&str>, RpcError>;
}

/// A request rejected before dispatch, with its HTTP status.
#[derive(Debug)]
pub(crate) struct RequestRejection {
    pub(crate) error: RpcError,
    pub(crate) status: u16,
}

impl RequestRejection {
    pub(crate) fn bad_request(error: RpcError) -> Self {
        Self { error, status: 400 }
    }
}

/// Validates a request in the order fixed by row 11 of the decisions, and returns its origin.
pub(crate) fn validate(
    server: &Server,
    request: &Request<'_>,
    meta: RequestMeta<'_>,
    request_headers: Option<&dyn RequestHeaders>,
    transport_info: TransportInfo,
) -> Result<RequestOrigin, RequestRejection> {
    let version = meta
        .protocol_version
        .as_deref()
        .ok_or_else(|| missing_meta("protocolVersion"))?;
    let capabilities = meta
        .client_capabilities
        .ok_or_else(|| missing_meta("clientCapabilities"))?;
    if let Some(request_headers) = request_headers {
        check_version_header(request_headers, version).map_err(RequestRejection::bad_request)?;
    }
    let rules = RevisionRules::for_stateless_version(version);
    let is_served = server.era_restriction().has_stateless_requests();
    let Some(rules) = rules.filter(|_| is_served) else {
        let error = unsupported_version(server, version);
        return Err(RequestRejection::bad_request(error));
    };
    let (is_supported, name_member) = match Method::from_name(&request.method) {
        Some(method) => (rules.accepts_request(method), method.name_member),
        None => match server.extension_method(&request.method, rules) {
            Some(registered) => (true, registered.name_member()),
            None => (server.relayed_to(&request.method).is_some(), None),
        },
    };
    if let Some(request_headers) = request_headers {
        check_method_header(request_headers, request).map_err(RequestRejection::bad_request)?;
        check_name_header(request_headers, request, name_member)
            .map_err(RequestRejection::bad_request)?;
    }
    if !is_supported {
        return Err(RequestRejection {
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
        .map_err(RequestRejection::bad_request)?;
    let client_info = RawClientInfo {
        info: meta.client_info,
        capabilities,
    };
    let client = match &transport_info.connection {
        Some(connection) => connection.client(client_info),
        None => client_info.read(),
    };
    let client = client.map_err(RequestRejection::bad_request)?;
    Ok(RequestOrigin {
        rules,
        client,
        principal: transport_info.principal,
        headers: transport_info.headers,
        peer: transport_info.peer,
        extensions: transport_info.extensions,
        progress_token: meta.progress_token,
        log_level,
        accepts_client_requests: true,
        runtime: None,
        announces_subscription_end: transport_info.announces_subscription_end,
        connection: transport_info.connection,
        session: None,
        trace,
    })
}

/// The error for an unsupported protocol version.
pub(crate) fn unsupported_version(server: &Server, version: &str) -> RpcError {
    let supported = server.era_restriction().revisions();
    RpcError::new(
        code::UNSUPPORTED_VERSION,
        format!(
            "protocol version `{}` is not supported; supported are {}",
            Truncated(version),
            supported.join(", ")
        ),
    )
    .with_data(json!({ "supported": supported, "requested": Truncated(version).to_string() }))
}

/// The error for a request with neither a protocol version nor a session.
pub(crate) fn version_required() -> RpcError {
    missing_meta("protocolVersion").error
}

fn missing_meta(key: &str) -> RequestRejection {
    RequestRejection::bad_request(RpcError::invalid_params(format!(
        "`_meta` lacks `io.modelcontextprotocol/{key}`, which every request of {} requires; \
         clients of {} and older begin with `initialize`",
        Revision::STATELESS[0],
        Revision::LATEST_LEGACY,
    )))
}

fn check_version_header(
    request_headers: &dyn RequestHeaders,
    version: &str,
) -> Result<(), RpcError> {
    match request_headers.header("mcp-protocol-version")? {
        Some(header) if header == version => Ok(()),
        Some(header) => Err(header_mismatch(format!(
            "`MCP-Protocol-Version` says `{header}`, `_meta` says `{}`",
            Truncated(version)
        ))),
        None => Err(header_mismatch(format!(
            "`MCP-Protocol-Version: {}` is missing",
            Truncated(version)
        ))),
    }
}

fn check_method_header(
    request_headers: &dyn RequestHeaders,
    request: &Request<'_>,
) -> Result<(), RpcError> {
    match request_headers.header("mcp-method")? {
        Some(header) if header == request.method => Ok(()),
        Some(header) => Err(header_mismatch(format!(
            "`Mcp-Method` says `{header}`, the body `{}`",
            Truncated(&request.method)
        ))),
        None => Err(header_mismatch(format!(
            "`Mcp-Method: {}` is missing",
            Truncated(&request.method)
        ))),
    }
}

fn check_name_header(
    request_headers: &dyn RequestHeaders,
    request: &Request<'_>,
    name_member: Option<&str>,
) -> Result<(), RpcError> {
    let Some(member) = name_member else {
        return Ok(());
    };
    // A missing or mistyped member is reported with the other parameters.
    let Ok(Some(name)) = request.params.string(member) else {
        return Ok(());
    };
    let Some(header) = request_headers.header("mcp-name")? else {
        return Err(header_mismatch(format!(
            "`Mcp-Name` is missing; it repeats `params.{member}`"
        )));
    };
    let decoded =
        headers::decode(header).map_err(|error| header_mismatch(format!("`Mcp-Name`: {error}")))?;
    if decoded == name {
        Ok(())
    } else {
        Err(header_mismatch(format!(
            "`Mcp-Name` says `{}`, `params.{member}` `{}`",
            Truncated(&decoded),
            Truncated(&name)
        )))
    }
}

/// Handles `server/discover`.
pub(crate) fn discover(call: &RequestContext) -> Result<EncodedResponse, RpcError> {
    let server = &call.server;
    server.check_available()?;
    server.start_providers();
    let capabilities = server.capabilities(call.origin.rules);
    let mut result = DiscoverResult::new(server.era_restriction().revisions(), capabilities);
    result.instructions = server.instructions_text();
    result.meta = server.relay_meta();
    let writer = ResponseWriter::new(call);
    Ok(writer.with_meta(
        &mut result,
        |result| &mut result.meta,
        Some(server.list_cache()),
    ))
}

/// The error for a header that is missing or differs from the body.
pub(crate) fn header_mismatch(message: String) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, message)
}

fn log_level(level: &str) -> Result<LogLevel, RpcError> {
    level
        .parse()
        .map_err(|_| RpcError::invalid_params(format!("`{}` is not a log level", Truncated(level))))
}
