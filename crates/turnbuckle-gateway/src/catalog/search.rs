//! Search mode: clients get four tools to find, describe and call the tools of all servers, instead of their list.
//!
//! There are two tools to call others, so that a host can approve calls by annotation: one calls only tools that declare
//! themselves read-only.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{Params, RawObject},
};
use turnbuckle_server::relay::{RelayedRequest, RelayedResult};

use crate::{
    calls::running::tool_error,
    catalog::{lists::ClientHint, merged_list::MergedList},
    convert::{self, ListKind},
    gateway::GatewayState,
    lifecycle::RevisionPair,
    raw_json::{edit, quote},
    upstream::UpstreamServer,
};

const SEARCH: &str = "search_tools";
const DESCRIBE: &str = "describe_tool";
const CALL_READ_ONLY: &str = "call_read_only_tool";
const CALL: &str = "call_tool";

/// The number of results of a search.
const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 50;
/// Maximum length of a description in the results of a search, in characters.
const MAX_SUMMARY: usize = 200;

/// Instructions for models in search mode.
pub(crate) const INSTRUCTIONS: &str = "The tools of all servers are found with `search_tools`, described with \
     `describe_tool`, and called with `call_read_only_tool` or `call_tool`.";

impl GatewayState {
    /// Returns the list of the tools of search mode.
    pub(crate) fn list_search_tools(
        &self,
        request: &RelayedRequest,
    ) -> Result<RelayedResult, RpcError> {
        let revision = request.revision();
        let pair = RevisionPair::from_newest(revision);
        let tools = definitions();
        let tools = tools
            .iter()
            .map(|tool| ListKind::Tools.item(&tool.to_string(), pair))
            .collect::<Result<Vec<_>, _>>()?;
        let head = format!(
            "{{\"tools\":[{}]{}",
            tools.join(","),
            self.list_members(revision)
        );
        Ok(self.list_result(Bytes::from(head), None, ClientHint::unlimited(), revision))
    }

    /// Calls a tool of search mode.
    pub(crate) async fn call_search_tool(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = request.parsed_params();
        let missing = || RpcError::invalid_params("`name` is missing");
        let name = params.string("name")?.ok_or_else(missing)?;
        let arguments = match params.get("arguments") {
            None | Some("null") => "{}",
            Some(arguments) => arguments,
        };
        let arguments = RawObject::parse(arguments)
            .map_err(|_| RpcError::invalid_params("`arguments` must be an object"))?;
        let outcome = match &*name {
            SEARCH => self.search(&arguments, request).await,
            DESCRIBE => self.describe(&arguments, request).await,
            CALL_READ_ONLY => return self.call_found(&params, &arguments, true, request).await,
            CALL => return self.call_found(&params, &arguments, false, request).await,
            _ => {
                return Err(RpcError::invalid_params(format!(
                    "unknown tool `{name}`: tools of servers are called with `{CALL}`"
                )));
            }
        };
        match outcome {
            Ok(text) => {
                let block = format!(r#"{{"type":"text","text":{}}}"#, quote(&text));
                self.own_result(&format!(r#"{{"content":[{block}]}}"#), request)
            }
            Err(message) => self.own_result(&tool_error(&message), request),
        }
    }

    async fn search(
        self: &Arc<Self>,
        arguments: &RawObject<'_>,
        request: &RelayedRequest,
    ) -> Result<String, String> {
        let query = text_argument(arguments, "query", "words to search for")?;
        let limit = match arguments.get("limit") {
            None => DEFAULT_LIMIT,
            Some(limit) => {
                let limit = limit
                    .parse()
                    .ok()
                    .filter(|limit| (1..=MAX_LIMIT).contains(limit));
                limit.ok_or_else(|| format!("`limit` must be an integer from 1 to {MAX_LIMIT}"))?
            }
        };
        let list = self.collect(ListKind::Tools, request).await.list;
        let found = list.index().find(&query);
        let tools = found.iter().take(limit).map(|at| summary(&list, *at));
        let tools: Vec<Value> = tools.collect();
        let mut text = json!({ "tools": tools, "matches": found.len(), "of": list.len() });
        let servers = self.servers();
        let down = servers.iter().filter(|server| !server.is_up());
        let down: Vec<_> = down.map(|server| server.name()).collect();
        if !down.is_empty() {
            text["serversDown"] = json!(down);
        }
        Ok(text.to_string())
    }

    async fn describe(
        self: &Arc<Self>,
        arguments: &RawObject<'_>,
        request: &RelayedRequest,
    ) -> Result<String, String> {
        let name = text_argument(arguments, "name", "the name of a tool")?;
        let list = self.collect(ListKind::Tools, request).await.list;
        let at = list.position(&name).ok_or_else(|| unknown(&name))?;
        let map_uri =
            |server: &UpstreamServer, uri: &str| self.shown_uri(ListKind::Resources, server, uri);
        let described = list.write_item(at, request.revision(), &map_uri);
        described.map_err(|_| format!("the definition of `{name}` is invalid"))
    }

    /// Calls a tool by the name that a search returned, as a call of the client itself.
    async fn call_found(
        self: &Arc<Self>,
        params: &Params<'_>,
        arguments: &RawObject<'_>,
        is_read_only: bool,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let name = match text_argument(arguments, "name", "the name of a tool") {
            Ok(name) => name,
            Err(message) => return self.own_result(&tool_error(&message), request),
        };
        let inner = arguments.get("arguments").unwrap_or("{}");
        if RawObject::parse(inner).is_err() {
            let message = format!("`arguments` must be an object: the arguments of `{name}`");
            return self.own_result(&tool_error(&message), request);
        }
        if is_read_only {
            let list = self.collect(ListKind::Tools, request).await.list;
            let refused = match list.position(&name) {
                Some(at) if declares_read_only(list.definition(at)) => None,
                Some(_) => Some(format!(
                    "`{name}` does not declare that it is read-only: use `{CALL}`"
                )),
                None => Some(unknown(&name)),
            };
            if let Some(message) = refused {
                return self.own_result(&tool_error(&message), request);
            }
        }
        let set = [("name", quote(&name)), ("arguments", inner.to_owned())];
        let call = request.with_params(&edit(params.raw(), &[], &set)?)?;
        self.relay_named(ListKind::Tools, "name", &call).await
    }

    /// Writes a result of the gateway itself for the client.
    pub(crate) fn own_result(
        &self,
        result: &str,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let pair = RevisionPair::of_own_result(request.revision());
        convert::result(request.method(), result, pair, &self.identity)
    }
}

fn unknown(name: &str) -> String {
    format!("unknown tool `{name}`: `{SEARCH}` returns the names of tools")
}

/// Reads an argument that must be a text.
fn text_argument(arguments: &RawObject<'_>, name: &str, meaning: &str) -> Result<String, String> {
    match arguments.string(name) {
        Ok(Some(text)) if !text.trim().is_empty() => Ok(text.into_owned()),
        Ok(Some(_)) => Err(format!("`{name}` is empty; expected {meaning}")),
        Ok(None) => Err(format!("`{name}` is missing; expected {meaning}")),
        Err(_) => Err(format!("`{name}` must be a string: {meaning}")),
    }
}

fn declares_read_only(definition: &str) -> bool {
    let hint = || {
        let definition = RawObject::parse(definition).ok()?;
        let annotations = RawObject::parse(definition.get("annotations")?).ok()?;
        Some(annotations.get("readOnlyHint")? == "true")
    };
    hint() == Some(true)
}

/// Returns what a search says about a tool.
fn summary(list: &MergedList, at: usize) -> Value {
    let definition = list.definition(at);
    let text = RawObject::parse(definition).ok().and_then(|tool| {
        let text = tool.string("description").ok().flatten();
        let text = text.or_else(|| tool.string("title").ok().flatten())?;
        Some(text.chars().take(MAX_SUMMARY).collect::<String>())
    });
    json!({
        "name": list.name(at),
        "description": text,
        "readOnly": declares_read_only(definition),
    })
}

/// The definitions of the four tools.
fn definitions() -> [Value; 4] {
    let name = json!({ "type": "string", "description": "A name that search_tools returned" });
    let call = json!({
        "type": "object",
        "properties": {
            "name": name,
            "arguments": { "type": "object", "description": "The arguments of the tool" },
        },
        "required": ["name"],
    });
    let read_only = json!({ "readOnlyHint": true });
    [
        json!({
            "name": SEARCH,
            "description": "Search for tools by words of their names and descriptions, the best matches first",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "Words to search for" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT },
                },
                "required": ["query"],
            },
            "annotations": read_only,
        }),
        json!({
            "name": DESCRIBE,
            "description": "Return the definition of a tool, with the schema of its arguments",
            "inputSchema": {
                "type": "object",
                "properties": { "name": name },
                "required": ["name"],
            },
            "annotations": read_only,
        }),
        json!({
            "name": CALL_READ_ONLY,
            "description": "Call a tool that declares itself read-only",
            "inputSchema": call,
            "annotations": read_only,
        }),
        json!({
            "name": CALL,
            "description": "Call any tool",
            "inputSchema": call,
            "annotations": { "readOnlyHint": false, "destructiveHint": true },
        }),
    ]
}
