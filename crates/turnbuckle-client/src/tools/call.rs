//! The requests of tool calls, with parameter headers and pins, and the caching of listed tools.

use http::{HeaderName, HeaderValue};
use serde_json::Value;
use turnbuckle_protocol::{
    codec::headers::{PARAM_PREFIX, ParamHeader, UnencodableArgument, encode_argument},
    method,
    types::{JsonObject, Tool},
};

use crate::{
    call::{CallOptions, SeenCursors},
    client::{Client, ReceivedResult},
    error::CallError,
    inbound::observers::Anomaly,
    tools::{
        ToolCall,
        digest::ToolDigest,
        tool_cache::{ToolCache, ToolPolicy},
    },
    transport::{OutgoingRequest, encode::HeaderList},
};

impl Client {
    /// Creates the request of a tool call, with its parameter headers.
    pub(crate) fn new_tool_request<'c>(
        &self,
        call: &'c ToolCall,
        options: &CallOptions,
    ) -> Result<OutgoingRequest<'c>, CallError> {
        let mut request = self
            .new_request(&method::TOOLS_CALL, options)
            .named(call.tool());
        if self.tool_policy().param_headers_sent {
            request.param_headers = self.param_headers(call)?;
        }
        Ok(request)
    }

    /// Returns whether a tool must be called as a task.
    pub(crate) fn only_as_task(&self, tool: &str) -> bool {
        let cached_tool = self.inner.tools.get(tool);
        cached_tool.is_some_and(|tool| tool.only_as_task)
    }

    /// Caches the tools of a page that was just listed, and removes those that cannot be used.
    ///
    /// Output schemas of a page that is already outdated are not cached.
    pub(crate) fn remember_tools(&self, tools: &mut Vec<Tool>, changes: u64) {
        let mut tool_policy = self.tool_policy();
        let unchanged = changes == self.inner.tools.changes();
        tool_policy.validate_output &= unchanged;
        tool_policy.reissue_lost_requests &= unchanged;
        for changed in self.inner.tools.changed(tools, changes) {
            self.inner.router.report_anomaly(Anomaly::ToolChanged {
                tool: changed.tool,
                before: changed.before,
                now: changed.now,
                members: changed.members,
            });
        }
        for unusable in self.inner.tools.insert_all(tools, tool_policy) {
            self.inner
                .router
                .report_anomaly(Anomaly::InvalidParamHeader {
                    tool: unusable.tool,
                    error: unusable.error,
                });
        }
    }

    /// Removes the tools that cannot be used from a cached page.
    pub(crate) fn drop_unusable_tools(&self, tools: &mut Vec<Tool>) {
        ToolCache::drop_unusable(tools, self.tool_policy());
    }

    /// Returns the properties of tools that matter on this connection.
    pub(crate) fn tool_policy(&self) -> ToolPolicy {
        let negotiated = self.inner.negotiated_ref();
        let http = self.inner.transport.is_http();
        ToolPolicy {
            param_headers_sent: negotiated.rules.mcp_headers && http,
            validate_output: negotiated.rules.validate_output
                && self.inner.settings.validate_output,
            reissue_lost_requests: negotiated.rules.reissue_lost_requests && http,
        }
    }

    /// Lists the tools again and retries the call, because the server rejected its headers: its tools have changed.
    pub(crate) async fn retry_with_new_headers(
        &self,
        rejected: Result<ReceivedResult, CallError>,
        sent: OutgoingRequest<'_>,
        call: &ToolCall,
        options: &CallOptions,
    ) -> Result<ReceivedResult, CallError> {
        self.refresh_tool(call.tool()).await;
        self.ensure_pinned(call.tool()).await?;
        let mut request = self.new_tool_request(call, options)?;
        if request.param_headers == sent.param_headers {
            rejected
        } else {
            self.send_with_input(&mut request, call, options).await
        }
    }

    fn param_headers(&self, call: &ToolCall) -> Result<HeaderList, CallError> {
        let cached_tool = self.inner.tools.get(call.tool());
        let Some(tool) = cached_tool.filter(|tool| !tool.param_headers.is_empty()) else {
            return Ok(HeaderList::new());
        };
        encode_param_headers(&tool.param_headers, call.arguments().as_ref()).map_err(|error| {
            CallError::UnsendableArgument {
                tool: call.tool().to_owned(),
                argument: error.argument,
                source: error.source,
            }
        })
    }

    /// Lists tools until this one is found; if listing fails, the cached tool stays.
    async fn refresh_tool(&self, name: &str) {
        let mut seen = SeenCursors::default();
        let mut cursor = None;
        while seen.len() < self.inner.settings.limits.max_list_pages {
            let page = match self.list_tools(cursor).bypass_cache().await {
                Ok(page) => page,
                Err(error) => {
                    tracing::debug!(%error, tool = name, "the tool was not listed again");
                    return;
                }
            };
            if page.tools.iter().any(|tool| tool.name == name) {
                return;
            }
            cursor = page.next_cursor.filter(|next| seen.insert(next));
            if cursor.is_none() {
                return;
            }
        }
    }

    /// Returns an error if a tool does not match its pin.
    ///
    /// The most recent listing counts, because that is what the caller saw. The tools are listed if this one never was,
    /// or if the server announced a change.
    pub(crate) async fn ensure_pinned(&self, tool: &str) -> Result<(), CallError> {
        let Some(&pinned) = self.inner.settings.pinned.get(tool) else {
            return Ok(());
        };
        let listed = match self.inner.tools.digest(tool) {
            Some(digest) => Some(digest),
            None => Box::pin(self.relist(tool)).await?,
        };
        if listed == Some(pinned) {
            Ok(())
        } else {
            Err(CallError::PinMismatch {
                tool: tool.to_owned(),
                pinned,
                listed,
            })
        }
    }

    async fn relist(&self, name: &str) -> Result<Option<ToolDigest>, CallError> {
        let mut tools = self.tools();
        while let Some(tool) = tools.next().await {
            let tool = tool?;
            if tool.name == name {
                return Ok(Some(ToolDigest::for_tool(&tool)));
            }
        }
        Ok(None)
    }
}

/// An argument that cannot be encoded as a header value.
#[derive(Debug)]
pub(crate) struct ParamHeaderError {
    pub(crate) argument: String,
    pub(crate) source: UnencodableArgument,
}

/// Returns the parameter headers of a call; a missing or null argument has none.
pub(crate) fn encode_param_headers(
    param_headers: &[ParamHeader],
    arguments: Option<&JsonObject>,
) -> Result<HeaderList, ParamHeaderError> {
    let mut headers = HeaderList::with_capacity(param_headers.len());
    for header in param_headers {
        let Some(argument) = arguments.and_then(|all| find_argument(all, &header.path)) else {
            continue;
        };
        let text = argument.to_string();
        let value = encode_argument(&text).map_err(|source| ParamHeaderError {
            argument: header.path.join("."),
            source,
        })?;
        let name = format!("{PARAM_PREFIX}{}", header.header).parse::<HeaderName>();
        // The header name is a token and the encoded value is printable, so both are always accepted.
        if let (Ok(name), Some(Ok(value))) = (name, value.map(|it| HeaderValue::from_str(&it))) {
            headers.push((name, value));
        }
    }
    Ok(headers)
}

fn find_argument<'a>(arguments: &'a JsonObject, path: &[String]) -> Option<&'a Value> {
    let (last, parents) = path.split_last()?;
    let mut object = arguments;
    for name in parents {
        object = object.get(name)?.as_object()?;
    }
    object.get(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle_spec_coverage::req;

    use super::*;

    fn header(header: &str, path: &[&str]) -> ParamHeader {
        ParamHeader {
            header: header.to_owned(),
            path: path.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    fn sent(value: &Value) -> Option<String> {
        let arguments = json!({ "a": value });
        let headers = encode_param_headers(&[header("A", &["a"])], arguments.as_object()).unwrap();
        let (_, value) = headers.iter().find(|(name, _)| name == "mcp-param-a")?;
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn values_are_encoded_by_type() {
        req!(
            "http.value.types",
            "http.value.encode",
            "http.value.base64",
            "http.value.markers",
            "http.value.sentinel-collision",
            "http.param.present",
            "http.param.null-omit",
            in: ["2026-07-28"]
        );
        for (value, expected) in [
            (json!("us-west1"), Some("us-west1")),
            (json!(""), Some("")),
            (json!(42), Some("42")),
            (json!(42.0), Some("42")),
            (json!(-7), Some("-7")),
            (json!(true), Some("true")),
            (json!(false), Some("false")),
            (json!("Grüße"), Some("=?base64?R3LDvMOfZQ==?=")),
            (json!(" a "), Some("=?base64?IGEg?=")),
            (json!("a\nb"), Some("=?base64?YQpi?=")),
            (
                json!("=?base64?YQ==?="),
                Some("=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ),
            (json!(null), None),
        ] {
            assert_eq!(sent(&value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn an_argument_is_found_at_its_exact_path() {
        req!("http.param.extract-path", "http.param.absent-omit", in: ["2026-07-28"]);
        let param_headers = [header("Zone", &["place", "zone"])];
        let found = |arguments: Value| {
            let headers = encode_param_headers(&param_headers, arguments.as_object()).unwrap();
            let found = headers
                .into_iter()
                .find(|(name, _)| name == "mcp-param-zone");
            found.map(|(_, value)| value)
        };

        assert_eq!(
            found(json!({ "place": { "zone": "x" }, "zone": "y" })).unwrap(),
            "x"
        );
        for elsewhere in [
            json!({}),
            json!({ "zone": "x" }),
            json!({ "place": "zone" }),
            json!({ "place": [{ "zone": "x" }] }),
            json!({ "place.zone": "x" }),
        ] {
            assert_eq!(found(elsewhere.clone()), None, "{elsewhere}");
        }
        assert!(
            encode_param_headers(&param_headers, None)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn an_argument_that_cannot_be_a_header_is_named() {
        for (value, expected) in [
            (
                json!(9_007_199_254_740_992_u64),
                UnencodableArgument::OutOfRange,
            ),
            (json!(0.5), UnencodableArgument::Kind),
            (json!([1]), UnencodableArgument::Kind),
            (json!({}), UnencodableArgument::Kind),
        ] {
            let arguments = json!({ "a": { "b": value } });

            let error = encode_param_headers(&[header("B", &["a", "b"])], arguments.as_object())
                .unwrap_err();

            assert_eq!((error.argument.as_str(), error.source), ("a.b", expected));
        }
    }
}
