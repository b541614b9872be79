//! The `Mcp-Param-*` headers of a relayed request.

use turnbuckle_protocol::{RpcError, codec::headers::ParamHeader};

use super::RelayedRequest;
use crate::{dispatch::tools::check_param_headers, tools::ToolParamHeader};

impl RelayedRequest {
    /// Returns whether the client repeats arguments in headers: over HTTP since 2026-07-28.
    pub fn has_param_headers(&self) -> bool {
        let origin = &self.call.origin;
        origin.headers.is_some() && !origin.rules.has_sessions()
    }

    /// Compares the `Mcp-Param-*` headers with the arguments. Does nothing if the client
    /// [repeats none](Self::has_param_headers).
    ///
    /// # Errors
    ///
    /// -32020 if a header is missing or differs from its argument.
    pub fn check_param_headers(&self, expected: &[ParamHeader]) -> Result<(), RpcError> {
        let headers = self.call.origin.headers.as_deref();
        let Some(headers) = headers.filter(|_| self.has_param_headers()) else {
            return Ok(());
        };
        let expected: Vec<_> = expected.iter().map(ToolParamHeader::from).collect();
        let params = self.parsed_params();
        check_param_headers(headers, &expected, params.get("arguments").unwrap_or("{}"))
    }
}
