//! What the gateway needs to know about the tools of a server: headers that repeat arguments, and support for tasks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use turnbuckle_protocol::{
    RpcError,
    codec::headers::{InvalidParamHeader, ParamHeader, param_headers},
    json,
};

use crate::{
    convert::ListKind,
    lock,
    upstream::{connection::Connection, list_cache::ListItem},
};

/// The traits of a tool that is more than a name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolTraits {
    /// The arguments that are repeated in headers. Empty if the schema marks them in an invalid way.
    pub(crate) param_headers: Vec<ParamHeader>,
    pub(crate) task_support: ToolTaskSupport,
}

/// Whether calls of a tool run as tasks that the client requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ToolTaskSupport {
    #[default]
    Forbidden,
    Optional,
    Required,
}

/// The tools of a server that have traits.
#[derive(Debug, Default)]
pub(crate) struct ToolIndex(HashMap<String, Arc<ToolTraits>>);

/// The index of the last list.
#[derive(Default)]
pub(crate) struct CachedToolIndex(Mutex<Option<(u64, Arc<ToolIndex>)>>);

impl ToolIndex {
    fn new(tools: &[ListItem]) -> Self {
        let traits = tools.iter().filter_map(|tool| {
            let traits = ToolTraits::of_definition(&tool.json)?;
            Some((tool.name.clone(), Arc::new(traits)))
        });
        Self(traits.collect())
    }
}

impl ToolTraits {
    /// Returns the traits of a definition, or `None` if it has none.
    pub(crate) fn of_definition(tool: &str) -> Option<Self> {
        // Most tools have none, so most definitions are not parsed. An escape may hide a name.
        if !["x-mcp-header", "taskSupport", "\\u"]
            .iter()
            .any(|name| tool.contains(name))
        {
            return None;
        }
        let tool: Value = json::from_str(tool).ok()?;
        let task_support = match tool["execution"]["taskSupport"].as_str() {
            Some("optional") => ToolTaskSupport::Optional,
            Some("required") => ToolTaskSupport::Required,
            _ => ToolTaskSupport::Forbidden,
        };
        let traits = Self {
            param_headers: param_headers(&tool["inputSchema"]).unwrap_or_default(),
            task_support,
        };
        (traits != Self::default()).then_some(traits)
    }
}

/// Checks the arguments that a definition repeats in headers. With invalid ones a tool cannot be called over HTTP.
pub(super) fn check_param_headers(tool: &str) -> Result<(), InvalidParamHeader> {
    if !tool.contains("x-mcp-header") && !tool.contains("\\u") {
        return Ok(());
    }
    let tool: Value = json::from_str(tool).unwrap_or_default();
    param_headers(&tool["inputSchema"]).map(drop)
}

impl Connection {
    /// Returns the traits of a tool, from the list of tools.
    pub(crate) async fn tool_traits(
        self: &Arc<Self>,
        name: &str,
    ) -> Result<Arc<ToolTraits>, RpcError> {
        let tools = self.list(ListKind::Tools).await?.list;
        let mut cached = lock(&self.lists().tool_index.0);
        let index = match &*cached {
            Some((id, index)) if *id == tools.id => Arc::clone(index),
            _ => {
                let index = Arc::new(ToolIndex::new(&tools.items));
                *cached = Some((tools.id, Arc::clone(&index)));
                index
            }
        };
        drop(cached);
        Ok(index.0.get(name).cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_without_traits_are_not_kept() {
        assert_eq!(
            ToolTraits::of_definition(r#"{"name":"a","inputSchema":{}}"#),
            None
        );
        assert_eq!(
            ToolTraits::of_definition(r#"{"name":"x-mcp-header"}"#),
            None
        );
        assert_eq!(ToolTraits::of_definition("taskSupport [["), None);
    }

    #[test]
    fn an_escaped_name_is_found() {
        let tool = r#"{"name":"a","execution":{"task\u0053upport":"required"}}"#;
        let traits = ToolTraits::of_definition(tool).unwrap();
        assert_eq!(traits.task_support, ToolTaskSupport::Required);
    }

    #[test]
    fn a_schema_with_invalid_headers_has_none() {
        let tool = r#"{"name":"a","inputSchema":{"properties":{
            "b":{"type":"object","x-mcp-header":"B"},"c":{"type":"string","x-mcp-header":"C"}}}}"#;
        assert_eq!(ToolTraits::of_definition(tool), None);
        assert!(check_param_headers(tool).is_err());
        let escaped = tool.replace("x-mcp-header", "x-mcp-\\u0068eader");
        assert!(check_param_headers(&escaped).is_err());
    }
}
