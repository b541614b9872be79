//! The cache of listed tools.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;
use turnbuckle_protocol::{
    codec::headers::{InvalidParamHeader, ParamHeader, param_headers},
    types::{CallToolResult, TaskSupport, Tool, ToolAnnotations},
};

use crate::{
    sync::{read, write},
    tools::{
        definitions::{ChangedTool, ToolDefinitions},
        digest::ToolDigest,
        output_validation::{OutputSchema, OutputValidators},
    },
};

/// Maximum number of cached tools; the oldest is evicted.
const MAX_TOOLS: usize = 10_000;
/// Maximum size of the cache in bytes.
const MAX_BYTES: usize = 32 << 20;

/// The listed tools that need special handling: parameter headers, an output schema, a required task, or repeatable
/// calls.
#[derive(Debug, Default)]
pub(crate) struct ToolCache {
    state: RwLock<ToolCacheState>,
    definitions: ToolDefinitions,
    validators: OutputValidators,
    /// The number of announced changes.
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct ToolCacheState {
    by_name: HashMap<String, (u64, Arc<CachedTool>)>,
    /// The names in the order of their listing, oldest first.
    order: BTreeMap<u64, String>,
    sequence: u64,
    bytes: usize,
}

/// The cached properties of one tool.
#[derive(Debug)]
pub(super) struct CachedTool {
    pub(super) param_headers: Vec<ParamHeader>,
    pub(super) output_schema: Option<OutputSchema>,
    /// The tool must be called as a task (2025-11-25).
    pub(super) only_as_task: bool,
    /// The annotations declare the tool read-only or idempotent.
    pub(super) repeatable: bool,
}

/// The properties of tools that matter, depending on revision and transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolPolicy {
    /// Parameter headers are sent.
    pub(crate) param_headers_sent: bool,
    /// Output is validated.
    pub(crate) validate_output: bool,
    /// A call may have to be sent again.
    pub(crate) reissue_lost_requests: bool,
}

/// A tool that cannot be used, and the reason.
#[derive(Debug)]
pub(crate) struct UnusableTool {
    pub(crate) tool: String,
    pub(crate) error: InvalidParamHeader,
}

impl ToolCache {
    /// Caches the tools of a page, and removes those that cannot be used.
    pub(crate) fn insert_all(
        &self,
        tools: &mut Vec<Tool>,
        tool_policy: ToolPolicy,
    ) -> Vec<UnusableTool> {
        let mut unusable = Vec::new();
        tools.retain(|tool| match CachedTool::for_tool(tool, tool_policy) {
            Ok(state) => {
                self.remember(&tool.name, state);
                true
            }
            Err(error) => {
                self.remember(&tool.name, None);
                let tool = tool.name.clone();
                unusable.push(UnusableTool { tool, error });
                false
            }
        });
        unusable
    }

    /// Returns the tools of a page that differ from their previous listing. `changes` is the number of announced
    /// changes before the page was requested.
    pub(super) fn changed(&self, tools: &[Tool], changes: u64) -> Vec<ChangedTool> {
        let changed = tools.iter();
        let changed = changed.filter_map(|tool| self.definitions.record(tool, changes));
        changed.collect()
    }

    /// Returns the digest of a listed tool, unless the tools may have changed since.
    pub(super) fn digest(&self, name: &str) -> Option<ToolDigest> {
        self.definitions.digest(name, self.changes())
    }

    /// Removes the tools that cannot be used from a page that is already cached.
    pub(crate) fn drop_unusable(tools: &mut Vec<Tool>, tool_policy: ToolPolicy) {
        tools.retain(|tool| !tool_policy.param_headers_sent || param_headers_of(tool).is_ok());
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<CachedTool>> {
        let state = read(&self.state);
        state.by_name.get(name).map(|(_, tool)| Arc::clone(tool))
    }

    /// Returns whether a call of a tool may be sent twice; `false` if the tool was not listed, or may have changed
    /// since.
    pub(crate) fn is_repeatable(&self, name: &str) -> bool {
        self.get(name).is_some_and(|tool| tool.repeatable)
    }

    /// Returns the number of announced changes; read it before tools are listed, see
    /// [`invalidate_output_schemas`](Self::invalidate_output_schemas).
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Removes cached output schemas, because the tools may have changed. Parameter headers are kept: the server
    /// rejects outdated ones.
    pub(crate) fn invalidate_output_schemas(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        let mut state = write(&self.state);
        state.invalidate_output_schemas();
    }

    /// Returns the violation of the cached output schema, if any.
    pub(crate) fn check_output(&self, name: &str, result: &CallToolResult) -> Option<String> {
        let tool = self.get(name)?;
        tool.output_schema.as_ref()?;
        // The output of a failed tool does not have to match the schema.
        if result.failed() {
            return None;
        }
        self.validators.check_output(&tool, result)
    }

    fn remember(&self, name: &str, tool: Option<CachedTool>) {
        // The common case: the tool needs no special handling.
        if tool.is_none() && self.get(name).is_none() {
            return;
        }
        let mut state = write(&self.state);
        state.forget(name);
        if let Some(tool) = tool {
            state.insert(name.to_owned(), tool);
        }
    }
}

impl ToolCacheState {
    fn insert(&mut self, name: String, tool: CachedTool) {
        self.bytes += size(&name, &tool);
        self.sequence += 1;
        self.order.insert(self.sequence, name.clone());
        self.by_name.insert(name, (self.sequence, Arc::new(tool)));
        while self.by_name.len() > MAX_TOOLS || self.bytes > MAX_BYTES {
            let Some((_, oldest)) = self.order.pop_first() else {
                return;
            };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some((sequence, tool)) = self.by_name.remove(name) {
            self.bytes -= size(name, &tool);
            self.order.remove(&sequence);
        }
    }

    fn invalidate_output_schemas(&mut self) {
        for (_, tool) in self.by_name.values_mut() {
            if tool.output_schema.is_some() || tool.repeatable {
                let param_headers = tool.param_headers.clone();
                *tool = Arc::new(CachedTool {
                    param_headers,
                    output_schema: None,
                    only_as_task: tool.only_as_task,
                    repeatable: false,
                });
            }
        }
        self.by_name
            .retain(|_, (_, tool)| !tool.param_headers.is_empty() || tool.only_as_task);
        self.order.retain(|_, name| self.by_name.contains_key(name));
        let sizes = self.by_name.iter();
        self.bytes = sizes.map(|(name, (_, tool))| size(name, tool)).sum();
    }
}

impl CachedTool {
    /// Returns the properties of a tool that need special handling, if any.
    fn for_tool(tool: &Tool, tool_policy: ToolPolicy) -> Result<Option<Self>, InvalidParamHeader> {
        let param_headers = if tool_policy.param_headers_sent {
            param_headers_of(tool)?
        } else {
            Vec::new()
        };
        let schema = tool
            .output_schema
            .as_ref()
            .filter(|_| tool_policy.validate_output);
        let output_schema = schema.and_then(OutputSchema::new);
        let execution = tool.execution.as_ref();
        let support = execution.and_then(|execution| execution.task_support);
        let only_as_task = support == Some(TaskSupport::Required);
        let repeatable = tool_policy.reissue_lost_requests
            && tool.annotations.as_ref().is_some_and(is_repeatable);
        let something =
            !param_headers.is_empty() || output_schema.is_some() || only_as_task || repeatable;
        Ok(something.then_some(Self {
            param_headers,
            output_schema,
            only_as_task,
            repeatable,
        }))
    }

    fn size(&self) -> usize {
        let path = |header: &ParamHeader| header.path.iter().map(String::len).sum::<usize>();
        let param_headers = self
            .param_headers
            .iter()
            .map(|header| header.header.len() + path(header));
        let output_schema = self.output_schema.as_ref().map_or(0, OutputSchema::size);
        param_headers.sum::<usize>() + output_schema
    }
}

/// Returns the size of an entry; its name is stored twice.
fn size(name: &str, tool: &CachedTool) -> usize {
    2 * name.len() + tool.size()
}

fn is_repeatable(annotations: &ToolAnnotations) -> bool {
    annotations.read_only_hint == Some(true) || annotations.idempotent_hint == Some(true)
}

fn param_headers_of(tool: &Tool) -> Result<Vec<ParamHeader>, InvalidParamHeader> {
    param_headers(&Value::Object(tool.input_schema.clone()))
}
