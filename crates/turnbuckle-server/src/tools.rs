//! Tools: functions that a model may call.

pub(crate) mod arguments;
mod error;
mod handler;
mod invalid;
mod result;
pub(crate) mod schema;

use std::sync::{Arc, OnceLock};

pub use error::ToolError;
pub(crate) use error::internal_failure;
pub(crate) use handler::InvokeTool;
pub use handler::{BlockingHandler, InfallibleHandler, RawToolHandler, ToolHandler};
pub use invalid::InvalidTool;
pub use result::{IntoToolResult, ToolResult};
pub use schema::SchemaValidator;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use turnbuckle_protocol::{
    codec::headers::{self, PARAM_PREFIX},
    types::{CallToolResult, TaskSupport, Tool as ToolDefinition, ToolAnnotations, ToolExecution},
};

use crate::{
    Server,
    catalog::{CatalogEntry, entry_setters, scopes::RequiredScopes, visibility::Visibility},
    context::Context,
    lifecycle::{RevisionRules, TaskModel},
    request::BoxFuture,
    server::SharedState,
    tools::schema::{CompiledSchema, InputSchema, SchemaCompiler},
};

/// A function that a model may call, with its definition.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use turnbuckle_server::{Tool, ToolError};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Greet {
///     /// The name to greet.
///     name: String,
/// }
///
/// async fn greet(args: Greet) -> Result<String, ToolError> {
///     Ok(format!("Hello, {}!", args.name))
/// }
///
/// let tool = Tool::new("greet", greet).description("Greets someone").read_only();
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(crate) definition: ToolDefinition,
    pub(crate) invoke: Arc<dyn InvokeTool>,
    pub(crate) param_headers: Vec<ToolParamHeader>,
    /// Computed by the first call that may have round trips, to keep startup fast.
    fingerprint: OnceLock<[u8; 16]>,
    pub(crate) visibility: Visibility,
    pub(crate) required_scopes: RequiredScopes,
    /// The state of the mounted servers that the item comes from.
    pub(crate) state: Option<Arc<SharedState>>,
    /// True if deserializing the arguments does not check everything that the input schema requires.
    needs_input_validation: bool,
    /// Compiled when the tool is added to a server that validates, or by the first call that needs it.
    compiled_input: CompiledSchema,
    compiled_output: CompiledSchema,
    /// The task support of calls: forbidden, optional or required.
    pub(crate) task: TaskSupport,
    /// True if the author disallowed tasks, as opposed to the default.
    pub(crate) forbids_tasks: bool,
    /// True if the handler decides when the call becomes a task.
    pub(crate) task_after_input: bool,
}

impl Tool {
    /// Creates a tool from an async function.
    ///
    /// The function takes its arguments, a [`Context`], both or neither, and returns a `Result` with
    /// [`ToolError`]. The input and output
    /// schemas come from its types. A string becomes text; any other type with a schema becomes structured output and
    /// its text form; use [`ToolResult`] for content blocks.
    ///
    /// For invalid arguments the model gets a result with the location and the expected type. Constraints beyond types
    /// (`#[schemars(range(..), length(..), regex(..))]` and the like) are listed; a server with `validate_input`, of the
    /// feature `validation`, also enforces them, and so does one with a [`SchemaValidator`].
    ///
    /// # Panics
    ///
    /// If the name is empty or longer than 128 characters, contains a character other than letters, digits, `_`, `-`
    /// and `.`, or if the arguments are not described by an object schema. For names from a file or plugin use
    /// [`try_new`](Self::try_new).
    pub fn new<M>(name: impl Into<String>, handler: impl ToolHandler<M>) -> Self {
        Self::try_new(name, handler).unwrap_or_else(|error| error.panic())
    }

    /// Like [`Tool::new`], with an error instead of a panic.
    pub fn try_new<M>(
        name: impl Into<String>,
        handler: impl ToolHandler<M>,
    ) -> Result<Self, InvalidTool> {
        let input = handler.input_schema();
        let output = handler.output_schema();
        Self::assemble(name.into(), input, output, handler.invoke())
    }

    /// Creates a tool from an async function that does not return a `Result`.
    ///
    /// ```
    /// use turnbuckle_server::Tool;
    ///
    /// let tool = Tool::infallible("version", async || "1.0.0".to_owned());
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Tool::new`].
    pub fn infallible<M>(name: impl Into<String>, handler: impl InfallibleHandler<M>) -> Self {
        let input = handler.input_schema();
        let output = handler.output_schema();
        Self::assemble(name.into(), input, output, handler.invoke())
            .unwrap_or_else(|error| error.panic())
    }

    /// Creates a tool from a synchronous function, which runs on the pool of blocking threads.
    ///
    /// For work that computes or blocks; it does not delay other calls. If the call is cancelled, the function still
    /// runs to completion.
    ///
    /// # Panics
    ///
    /// As [`Tool::new`].
    pub fn blocking<M>(name: impl Into<String>, handler: impl BlockingHandler<M>) -> Self {
        Self::try_blocking(name, handler).unwrap_or_else(|error| error.panic())
    }

    /// Like [`Tool::blocking`], with an error instead of a panic.
    pub fn try_blocking<M>(
        name: impl Into<String>,
        handler: impl BlockingHandler<M>,
    ) -> Result<Self, InvalidTool> {
        let input = handler.input_schema();
        let output = handler.output_schema();
        Self::assemble(name.into(), input, output, handler.invoke())
    }

    /// Creates a tool with a custom JSON Schema, from an async function with the signatures of [`Tool::new`].
    ///
    /// The arguments are deserialized into the type of the function's parameter, often a JSON object.
    ///
    /// The schema is listed unchanged. A server with `validate_input`, of the feature `validation`, enforces it (JSON
    /// Schema 2020-12 unless `$schema` specifies another; formats are checked; nothing is fetched). **Other servers do
    /// not check arguments against it**, except by deserialization.
    ///
    /// # Panics
    ///
    /// As [`Tool::new`], and if `input_schema` is not an object.
    pub fn raw<M>(
        name: impl Into<String>,
        input_schema: Value,
        handler: impl RawToolHandler<M>,
    ) -> Self {
        Self::try_raw(name, input_schema, handler).unwrap_or_else(|error| error.panic())
    }

    /// Like [`Tool::raw`], with an error instead of a panic.
    pub fn try_raw<M>(
        name: impl Into<String>,
        input_schema: Value,
        handler: impl RawToolHandler<M>,
    ) -> Result<Self, InvalidTool> {
        let Value::Object(input) = input_schema else {
            return Err(InvalidTool::SchemaNotAnObject { which: "input" });
        };
        let output = handler.output_schema();
        let input = InputSchema::from_value(input);
        Self::assemble(name.into(), input, output, handler.invoke())
    }

    fn assemble(
        name: String,
        input: InputSchema,
        output: Option<Map<String, Value>>,
        invoke: Arc<dyn InvokeTool>,
    ) -> Result<Self, InvalidTool> {
        let InputSchema {
            listed: mut input,
            needs_validation,
        } = input;
        if !is_valid_name(&name) {
            return Err(InvalidTool::Name { name });
        }
        if let Err(found) = schema::require_object(&mut input) {
            return Err(InvalidTool::ArgumentsNotAnObject { tool: name, found });
        }
        let marks = match headers::param_headers(&Value::Object(input.clone())) {
            Ok(marks) => marks,
            Err(error) => {
                let reason = error.to_string();
                return Err(InvalidTool::ParamHeader { tool: name, reason });
            }
        };
        let param_headers = marks.iter().map(ToolParamHeader::from).collect();
        let mut definition = ToolDefinition::new(name, input);
        definition.output_schema = output;
        Ok(Self {
            definition,
            invoke,
            param_headers,
            fingerprint: OnceLock::new(),
            visibility: Visibility::default(),
            required_scopes: RequiredScopes::default(),
            state: None,
            needs_input_validation: needs_validation,
            compiled_input: CompiledSchema::default(),
            compiled_output: CompiledSchema::default(),
            task: TaskSupport::Forbidden,
            forbids_tasks: false,
            task_after_input: false,
        })
    }

    /// Sets a custom output schema, for a handler that returns [`ToolResult`].
    ///
    /// A server with [`validate_output_with`](Server::validate_output_with) or `validate_output`, of the feature
    /// `validation`, validates results.
    ///
    /// # Panics
    ///
    /// If it is not a JSON object.
    #[must_use]
    pub fn output_schema(self, schema: Value) -> Self {
        self.try_output_schema(schema)
            .unwrap_or_else(|error| error.panic())
    }

    /// Like [`output_schema`](Self::output_schema), with an error instead of a panic.
    pub fn try_output_schema(mut self, schema: Value) -> Result<Self, InvalidTool> {
        let Value::Object(schema) = schema else {
            return Err(InvalidTool::SchemaNotAnObject { which: "output" });
        };
        self.definition.output_schema = Some(schema);
        self.compiled_output = CompiledSchema::default();
        Ok(self)
    }

    /// Sets `readOnlyHint`: the tool changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.annotate(|hints| hints.read_only_hint = Some(true))
    }

    /// Sets `destructiveHint`: whether the tool may delete or overwrite.
    #[must_use]
    pub fn destructive(self, destructive: bool) -> Self {
        self.annotate(|hints| hints.destructive_hint = Some(destructive))
    }

    /// Sets `idempotentHint`: repeating a call changes nothing more.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.annotate(|hints| hints.idempotent_hint = Some(true))
    }

    /// Sets `openWorldHint`: whether the tool interacts with external systems.
    #[must_use]
    pub fn open_world(self, open: bool) -> Self {
        self.annotate(|hints| hints.open_world_hint = Some(open))
    }

    /// Sets whether calls may or must run as tasks, with results delivered later.
    ///
    /// The handler is the same: as a task it runs while the client polls, its client requests wait for the client, and
    /// its result is stored for a while. With `Optional`, a call becomes a task if the client requests or supports
    /// tasks; with `Required`, other calls are rejected.
    #[must_use]
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.task = support;
        self.forbids_tasks = support == TaskSupport::Forbidden;
        self
    }

    /// Lets the handler send client requests before it becomes a task, by
    /// [`Context::into_task`](crate::Context::into_task), in revisions where the server decides.
    ///
    /// Allows tasks, if [`task`](Self::task) was not called.
    #[must_use]
    pub fn task_after_input(mut self) -> Self {
        if self.task == TaskSupport::Forbidden && !self.forbids_tasks {
            self.task = TaskSupport::Optional;
        }
        self.task_after_input = true;
        self
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The definition, as `tools/list` of the newest revision has it.
    pub fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Returns the tool under another name.
    pub(crate) fn renamed(mut self, name: String) -> Self {
        self.fingerprint = OnceLock::new();
        self.definition.name = name;
        self
    }

    /// Identifies the tool for open round trips: if it has changed, the call starts over.
    pub(crate) fn fingerprint(&self) -> [u8; 16] {
        *self.fingerprint.get_or_init(|| {
            let input = serde_json::to_vec(&self.definition.input_schema).unwrap_or_default();
            let hash = Sha256::new()
                .chain_update(&self.definition.name)
                .chain_update([0])
                .chain_update(input)
                .finalize();
            let mut fingerprint = [0; 16];
            fingerprint.copy_from_slice(&hash[..16]);
            fingerprint
        })
    }

    /// Validates the arguments if the server does so, reads them, and returns the future of the handler. The error is
    /// for the model.
    pub(crate) fn invoke(
        &self,
        arguments: &str,
        cx: Context,
    ) -> Result<BoxFuture<Result<ToolResult, ToolError>>, String> {
        if self.needs_input_validation
            && let Some(compiler) = cx.call.server.input_compiler()
        {
            self.validate_input(arguments, compiler)?;
        }
        self.invoke.invoke(arguments, cx)
    }

    /// Validates the arguments of a call. The error is for the model, like that of [`arguments::read`].
    fn validate_input(&self, arguments: &str, compiler: SchemaCompiler) -> Result<(), String> {
        let validator = self.input_validator(compiler)?;
        let value = arguments::read::<Value>(arguments)?;
        validator
            .check("arguments", &value)
            .map_err(|violations| format!("invalid arguments: {violations}"))
    }

    /// Validates a result against the output schema if the server does so. Returns the violation.
    pub(crate) fn validate_output(
        &self,
        result: &CallToolResult,
        server: &Server,
    ) -> Option<String> {
        let compiler = server.output_compiler()?;
        if result.is_error == Some(true) {
            return None;
        }
        let validator = match self.output_validator(compiler)? {
            Ok(validator) => validator,
            Err(error) => return Some(error),
        };
        match &result.structured_content {
            Some(value) => validator.check("structuredContent", value).err(),
            // `None` of an `Option` handler is valid if the schema allows null.
            None => validator
                .check("structuredContent", &Value::Null)
                .err()
                .map(|_| "`structuredContent` is missing".to_owned()),
        }
    }

    /// Compiles the schemas that the server validates by, so that the first call does not have to.
    pub(crate) fn compile_schemas(&self, server: &Server) -> Result<(), InvalidTool> {
        let invalid = |which, reason| {
            let tool = self.name().to_owned();
            InvalidTool::Schema {
                which,
                tool,
                reason,
            }
        };
        if self.needs_input_validation
            && let Some(compiler) = server.input_compiler()
        {
            self.input_validator(compiler)
                .map_err(|reason| invalid("input", reason))?;
        }
        if let Some(compiler) = server.output_compiler()
            && let Some(Err(reason)) = self.output_validator(compiler)
        {
            return Err(invalid("output", reason));
        }
        Ok(())
    }

    fn input_validator(&self, compiler: SchemaCompiler) -> Result<&dyn SchemaValidator, String> {
        let schema = &self.definition.input_schema;
        self.compiled_input.validator(compiler, schema)
    }

    fn output_validator(
        &self,
        compiler: SchemaCompiler,
    ) -> Option<Result<&dyn SchemaValidator, String>> {
        let schema = self.definition.output_schema.as_ref()?;
        Some(self.compiled_output.validator(compiler, schema))
    }

    fn annotate(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.definition.annotations.get_or_insert_default());
        self
    }
}

entry_setters!(Tool {
    /// Sets the description for the model.
    description,
    /// Restricts the tool to callers that match `predicate`. For others it does not exist.
    ///
    /// The predicate gets the authenticated caller, if known, and nothing else of the request, so the visibility is
    /// stable per caller. Repeated calls must all agree. Lists with such items have a private cache scope.
    ///
    /// ```
    /// use turnbuckle_server::Tool;
    ///
    /// let restart = Tool::new("restart", async || Ok("restarted".to_owned()))
    ///     .visible_to(|principal| principal.is_some_and(|who| who.scopes.contains("admin")));
    /// ```
    visible_to,
    /// Requires all of these scopes to call the tool. Repeated calls add scopes.
    ///
    /// Over HTTP, a call without them gets status 403 with the challenge of the [authenticator](crate::http::Http::authenticator),
    /// before the handler runs; so does every call without an authenticated caller. On stdio and other pipes the scopes
    /// apply if a [principal is set](crate::ndjson::NdjsonServer::principal); otherwise the caller is the local user,
    /// who may do everything. To hide the tool as well, use [`visible_to`](Self::visible_to).
    ///
    /// ```
    /// use turnbuckle_server::Tool;
    ///
    /// let restart = Tool::new("restart", async || Ok("restarted".to_owned()))
    ///     .scopes(["printers:operate"]);
    /// ```
    ///
    /// # Panics
    ///
    /// If a scope is invalid: empty, or with a space, quotation mark, backslash or non-ASCII character.
    scopes,
});

/// An argument that HTTP clients repeat in a header.
#[derive(Clone, Debug)]
pub(crate) struct ToolParamHeader {
    /// In lower case, for header lookup.
    pub(crate) header: String,
    pub(crate) path: Vec<String>,
}

impl From<&headers::ParamHeader> for ToolParamHeader {
    fn from(param_header: &headers::ParamHeader) -> Self {
        Self {
            header: format!("{PARAM_PREFIX}{}", param_header.header).to_ascii_lowercase(),
            path: param_header.path.clone(),
        }
    }
}

/// Returns whether the name is a valid tool name.
pub(crate) fn is_valid_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

impl CatalogEntry for Tool {
    const MEMBER: &'static str = "tools";

    fn key(&self) -> &str {
        &self.definition.name
    }

    fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    fn write(&self, rules: &RevisionRules, out: &mut Vec<u8>) {
        let mut definition = self.definition.clone();
        if rules.tasks == TaskModel::ClientRequested && self.task != TaskSupport::Forbidden {
            definition.execution = Some(ToolExecution::default().task_support(self.task));
        }
        rules.write(&mut definition, out);
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_made_when_it_is_asked_for_and_again_for_another_name() {
        let tool = Tool::new("now", async || Ok(String::new()));
        assert!(tool.fingerprint.get().is_none());

        let before = tool.fingerprint();
        let renamed = tool.clone().renamed("then".to_owned());

        assert_eq!(tool.fingerprint(), before);
        assert_ne!(renamed.fingerprint(), before);
    }
}
