//! The MCP interface of the context server: tools, resources, prompts and the call log.

pub(crate) mod call_log;
pub(crate) mod display;
pub(crate) mod error_messages;
pub(crate) mod prompts;
pub(crate) mod resource_sync;
pub(crate) mod resources;
pub(crate) mod tool_response;
pub(crate) mod tool_schema;
pub(crate) mod tools;
