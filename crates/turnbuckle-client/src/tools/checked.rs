//! Outputs are checked against the schemas that tools declare for them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use turnbuckle_protocol::types::{CallToolResult, JsonObject};
use turnbuckle_schema::{SchemaError, Validator};

use super::known::KnownTool;

/// So many schemas are kept compiled.
const COMPILED: usize = 32;

/// What a tool said about its output: a schema, as JSON text.
#[derive(Debug)]
pub(super) struct Promise {
    schema: Box<str>,
}

impl Promise {
    pub(super) fn new(schema: &JsonObject) -> Option<Self> {
        let schema = serde_json::to_string(schema).ok()?.into();
        Some(Self { schema })
    }

    pub(super) fn size(&self) -> usize {
        self.schema.len()
    }

    fn compile(&self) -> Result<Validator, SchemaError> {
        let schema: Map<String, Value> =
            serde_json::from_str(&self.schema).expect("it was written as an object");
        Validator::lenient(&schema)
    }
}

/// The schemas that were needed last, compiled when they were needed first.
#[derive(Default)]
pub(super) struct Validators {
    recent: Mutex<VecDeque<(Arc<KnownTool>, Compiled)>>,
}

type Compiled = Arc<Result<Validator, SchemaError>>;

impl Validators {
    /// Says what is wrong with an output.
    pub(super) fn broken_promise(
        &self,
        tool: &Arc<KnownTool>,
        result: &CallToolResult,
    ) -> Option<String> {
        let validator = self.of(tool)?;
        let validator = match &*validator {
            Ok(validator) => validator,
            Err(error) => return Some(format!("its output schema cannot be used: {error}")),
        };
        let check = |value| validator.check("structuredContent", value);
        match &result.structured_content {
            Some(value) => check(value).err().map(String::from),
            // Revisions before 2026-07-28 cannot say null but by leaving it out.
            None => check(&Value::Null)
                .err()
                .map(|_| "`structuredContent` is missing".to_owned()),
        }
    }

    fn of(&self, tool: &Arc<KnownTool>) -> Option<Compiled> {
        if let Some(compiled) = self.find(tool) {
            return Some(compiled);
        }
        // Two callers may both compile it once; neither waits for the other.
        let compiled = Arc::new(tool.promise.as_ref()?.compile());
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back((Arc::clone(tool), Arc::clone(&compiled)));
        if recent.len() > COMPILED {
            recent.pop_front();
        }
        Some(compiled)
    }

    fn find(&self, tool: &Arc<KnownTool>) -> Option<Compiled> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recent.iter().position(|(it, _)| Arc::ptr_eq(it, tool))?;
        let found = recent.remove(at)?;
        let compiled = Arc::clone(&found.1);
        recent.push_back(found);
        Some(compiled)
    }
}

impl fmt::Debug for Validators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validators").finish_non_exhaustive()
    }
}
