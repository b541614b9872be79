//! Validation of tool output against the output schema that the server listed.
//!
//! It is a setting of the client, which the feature `validation` provides. Without it, schemas are not stored.

#[cfg(not(feature = "validation"))]
pub(super) use disabled::{OutputSchema, OutputValidators};
#[cfg(feature = "validation")]
pub(super) use enabled::{OutputSchema, OutputValidators};

#[cfg(feature = "validation")]
mod enabled {
    use std::{
        collections::VecDeque,
        fmt,
        sync::{Arc, Mutex},
    };

    use serde_json::{Map, Value};
    use turnbuckle_protocol::types::{CallToolResult, JsonObject};
    use turnbuckle_schema::{SchemaError, SchemaValidator};

    use super::super::tool_cache::CachedTool;
    use crate::{ClientBuilder, sync::lock};

    impl ClientBuilder {
        /// Sets whether structured output is validated against the output schema that the server listed for the tool.
        /// Off by default.
        ///
        /// Output that violates its schema is the error [`CallError::InvalidOutput`](crate::CallError::InvalidOutput),
        /// which contains it. Revisions before 2025-06-18 do not have output schemas.
        ///
        /// ```
        /// use turnbuckle_client::Client;
        ///
        /// let builder = Client::builder("agent", "1.0").validate_output(true);
        /// ```
        pub fn validate_output(mut self, validate: bool) -> Self {
            self.validate_output = validate;
            self
        }
    }

    /// Maximum number of compiled schemas.
    const MAX_COMPILED_SCHEMAS: usize = 32;

    /// An output schema, as JSON text.
    #[derive(Debug)]
    pub(in crate::tools) struct OutputSchema {
        schema: Box<str>,
    }

    impl OutputSchema {
        pub(in crate::tools) fn new(schema: &JsonObject) -> Option<Self> {
            let schema = serde_json::to_string(schema).ok()?.into();
            Some(Self { schema })
        }

        pub(in crate::tools) fn size(&self) -> usize {
            self.schema.len()
        }

        fn compile(&self) -> Result<SchemaValidator, SchemaError> {
            let schema: Map<String, Value> =
                serde_json::from_str(&self.schema).expect("it was serialized from an object");
            SchemaValidator::lenient(&schema)
        }
    }

    /// The most recently used schemas, compiled on first use.
    #[derive(Default)]
    pub(in crate::tools) struct OutputValidators {
        recent: Mutex<VecDeque<(Arc<CachedTool>, CompiledSchema)>>,
    }

    type CompiledSchema = Arc<Result<SchemaValidator, SchemaError>>;

    impl OutputValidators {
        /// Returns the violation of an output schema, if any.
        pub(in crate::tools) fn check_output(
            &self,
            tool: &Arc<CachedTool>,
            result: &CallToolResult,
        ) -> Option<String> {
            let validator = self.compiled(tool)?;
            let validator = match &*validator {
                Ok(validator) => validator,
                Err(error) => return Some(format!("the output schema is invalid: {error}")),
            };
            let check = |value| validator.check("structuredContent", value);
            match &result.structured_content {
                Some(value) => check(value).err().map(String::from),
                // Revisions before 2026-07-28 express null by omitting the member.
                None => check(&Value::Null)
                    .err()
                    .map(|_| "`structuredContent` is missing".to_owned()),
            }
        }

        fn compiled(&self, tool: &Arc<CachedTool>) -> Option<CompiledSchema> {
            if let Some(compiled) = self.find(tool) {
                return Some(compiled);
            }
            // Concurrent callers may both compile it; neither waits for the other.
            let compiled = Arc::new(tool.output_schema.as_ref()?.compile());
            let mut recent = lock(&self.recent);
            recent.push_back((Arc::clone(tool), Arc::clone(&compiled)));
            if recent.len() > MAX_COMPILED_SCHEMAS {
                recent.pop_front();
            }
            Some(compiled)
        }

        fn find(&self, tool: &Arc<CachedTool>) -> Option<CompiledSchema> {
            let mut recent = lock(&self.recent);
            let at = recent.iter().position(|(it, _)| Arc::ptr_eq(it, tool))?;
            let found = recent.remove(at)?;
            let compiled = Arc::clone(&found.1);
            recent.push_back(found);
            Some(compiled)
        }
    }

    impl fmt::Debug for OutputValidators {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("OutputValidators").finish_non_exhaustive()
        }
    }
}

#[cfg(not(feature = "validation"))]
mod disabled {
    use std::sync::Arc;

    use turnbuckle_protocol::types::{CallToolResult, JsonObject};

    use super::super::tool_cache::CachedTool;

    /// Without values, because schemas are not stored.
    #[derive(Debug)]
    pub(in crate::tools) enum OutputSchema {}

    impl OutputSchema {
        pub(in crate::tools) fn new(_schema: &JsonObject) -> Option<Self> {
            None
        }

        pub(in crate::tools) fn size(&self) -> usize {
            match *self {}
        }
    }

    #[derive(Debug, Default)]
    pub(in crate::tools) struct OutputValidators;

    impl OutputValidators {
        #[expect(clippy::unused_self, reason = "same interface as `enabled`")]
        pub(in crate::tools) fn check_output(
            &self,
            _tool: &Arc<CachedTool>,
            _result: &CallToolResult,
        ) -> Option<String> {
            None
        }
    }
}
