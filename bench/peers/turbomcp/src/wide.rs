//! A server with many generated tools.
//!
//! They are listed as `#[server]` lists its own: each is described once, and cloned for every response.

use std::sync::Arc;

use schemars::schema_for;
use turbomcp::{neutral, prelude::*};

use crate::contract::{FOUND, Order, extra_tools};

/// A server with this many more tools.
#[derive(Clone)]
pub struct Wide<S> {
    server: S,
    extra: Arc<[neutral::Tool]>,
}

impl<S> Wide<S> {
    /// Adds the tools to those of `server`.
    pub fn new(server: S, extra: usize) -> Wide<S> {
        let schema = schema_for!(Order).to_value();
        let tool = |(name, description)| {
            neutral::Tool::new(name, schema.clone()).with_description(description)
        };
        Wide {
            server,
            extra: extra_tools(extra).map(tool).collect(),
        }
    }

    fn find(&self, name: &str) -> Option<&neutral::Tool> {
        self.extra.iter().find(|tool| tool.name == name)
    }
}

impl<S: McpServerCore> McpServerCore for Wide<S> {
    fn server_info(&self) -> Implementation {
        self.server.server_info()
    }
}

impl<S: WithTools> WithTools for Wide<S> {
    async fn lookup_tool(
        &self,
        context: &ListToolsContext,
        name: String,
    ) -> McpResult<Option<neutral::Tool>> {
        match self.find(&name) {
            Some(tool) => Ok(Some(tool.clone())),
            None => self.server.lookup_tool(context, name).await,
        }
    }

    async fn list_tools(
        &self,
        context: &ListToolsContext,
        params: neutral::ListParams,
    ) -> McpResult<neutral::ListToolsResult> {
        let mut list = self.server.list_tools(context, params).await?;
        list.tools.extend_from_slice(&self.extra);
        Ok(list)
    }

    async fn call_tool(
        &self,
        context: &CallToolContext,
        params: neutral::CallToolParams,
    ) -> McpResult<neutral::CallToolResult> {
        match self.find(&params.name) {
            Some(_) => Ok(neutral::CallToolResult::text(FOUND)),
            None => self.server.call_tool(context, params).await,
        }
    }
}
