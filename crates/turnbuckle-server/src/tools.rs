//! Tools: functions that a model may call.

mod error;
mod handler;
mod output;

use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use turnbuckle_protocol::{
    codec::headers::{self, PARAM_PREFIX},
    types::{
        CallToolResult, Icon, TaskSupport, Tool as Definition, ToolAnnotations, ToolExecution,
    },
};

pub use error::ToolError;
pub(crate) use error::ToolErrorKind;
pub use handler::{BlockingHandler, ToolHandler};
pub use output::{IntoOutput, Output};

pub(crate) use handler::Invoke;

use crate::{
    Server,
    catalog::Listed,
    context::Context,
    lifecycle::{Rules, TaskDesign},
    schema::{self, InputSchema},
    scopes::Needs,
    validate::Validator,
    visibility::Visibility,
};

/// A function that a model may call, with what the model is told about it.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use turnbuckle_server::{Tool, ToolError};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Greet {
///     /// Whom to greet.
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
    pub(crate) definition: Definition,
    pub(crate) invoke: Arc<dyn Invoke>,
    pub(crate) param_headers: Vec<MirroredParam>,
    /// Made by the first call that may have rounds: a start has better things to do.
    fingerprint: OnceLock<[u8; 16]>,
    pub(crate) visibility: Visibility,
    pub(crate) needs: Needs,
    /// Checks structured output against the schema that is declared for it.
    promise: Option<Validator>,
    /// Whether a call may or must become a task.
    pub(crate) task: TaskSupport,
    /// Whether the author said that no call may, rather than nothing.
    pub(crate) forbids_tasks: bool,
    /// Whether the handler says itself when it becomes one.
    pub(crate) asks_first: bool,
}

impl Tool {
    /// Makes a tool of an async function.
    ///
    /// The function takes its arguments, a [`Context`], both or nothing, and returns a `Result`. Input schema and
    /// output schema come from its types. A string becomes text; anything else that has a schema becomes structured
    /// output and its text form; [`Output`] is for content blocks.
    ///
    /// Arguments that do not fit give the model a result that names the place and what was expected there. What types
    /// cannot say (`#[schemars(range(..), length(..), regex(..))]` and the like) is listed; the feature `validation`
    /// enforces it too.
    ///
    /// # Panics
    ///
    /// If the name is empty or longer than 128 characters, has a character other than letters, digits, `_`, `-` and
    /// `.`, or if the arguments are not described by an object schema: mistakes that the first start shows.
    ///
    /// With the feature `validation` also if a schema is none, refers to something outside itself, has a pattern that
    /// cannot be matched in linear time (one with look-around or back-references), or leads back to itself without
    /// going any deeper.
    pub fn new<M>(name: impl Into<String>, handler: impl ToolHandler<M>) -> Self {
        let input = handler.input_schema();
        let output = handler.output_schema();
        Self::assemble(name.into(), input, output, handler.invoke())
    }

    /// Makes a tool of a synchronous function, which runs on the pool of blocking threads.
    ///
    /// For work that computes or waits without yielding; it delays no other caller. A cancelled call frees its caller
    /// at once; the function itself runs to its end.
    ///
    /// # Panics
    ///
    /// As [`Tool::new`].
    pub fn blocking<M>(name: impl Into<String>, handler: impl BlockingHandler<M>) -> Self {
        let input = handler.input_schema();
        let output = handler.output_schema();
        Self::assemble(name.into(), input, output, handler.invoke())
    }

    /// Makes a tool with a JSON Schema of your own; the arguments arrive as you declare them, often as a JSON object.
    ///
    /// The schema is listed as it is given. With the feature `validation` it is enforced: the handler sees only arguments
    /// that fit (JSON Schema 2020-12 unless `$schema` says otherwise; formats are asserted; nothing is ever fetched).
    /// **Without that feature nothing checks arguments against it**, except reading them into `A`.
    ///
    /// # Panics
    ///
    /// As [`Tool::new`], and if `input_schema` is not an object.
    pub fn raw<A, F, Fut, T, E>(name: impl Into<String>, input_schema: Value, handler: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        F: Fn(A, Context) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: IntoOutput,
        E: Into<ToolError>,
    {
        let Value::Object(input) = input_schema else {
            panic!("an input schema is a JSON object")
        };
        Self::assemble(
            name.into(),
            InputSchema::by_hand(input),
            T::output_schema(),
            handler::raw(handler),
        )
    }

    fn assemble(
        name: String,
        input: InputSchema,
        output: Option<Map<String, Value>>,
        mut invoke: Arc<dyn Invoke>,
    ) -> Self {
        let InputSchema {
            listed: mut input,
            asks_more,
        } = input;
        assert!(
            is_name(&name),
            "`{name}` is no tool name: 1 to 128 letters, digits, `_`, `-` or `.`"
        );
        schema::require_object(&mut input, &name);
        if asks_more && let Some(validator) = compile("input", &name, &input) {
            invoke = handler::checked(validator, invoke);
        }
        let marks = headers::marks(&Value::Object(input.clone())).unwrap_or_else(|error| {
            panic!("the input schema of `{name}` marks a header wrongly: {error}")
        });
        let param_headers = marks.into_iter().map(MirroredParam::from).collect();
        let tool = Self {
            definition: Definition::new(name, input),
            invoke,
            param_headers,
            fingerprint: OnceLock::new(),
            visibility: Visibility::default(),
            needs: Needs::default(),
            promise: None,
            task: TaskSupport::Forbidden,
            forbids_tasks: false,
            asks_first: false,
        };
        match output {
            Some(schema) => tool.promise(schema),
            None => tool,
        }
    }

    fn promise(mut self, schema: Map<String, Value>) -> Self {
        self.promise = compile("output", self.name(), &schema);
        self.definition.output_schema = Some(schema);
        self
    }

    /// Says what the tool does: the model reads this.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Gives the tool a name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.definition.icons.push(icon);
        self
    }

    /// Declares an output schema of your own, for a handler that returns [`Output`].
    ///
    /// [`Server::validate_output`](crate::Server::validate_output) says when results are checked against it.
    ///
    /// # Panics
    ///
    /// If it is not a JSON object; with the feature `validation` also as [`Tool::new`] says of schemas.
    #[must_use]
    pub fn output_schema(self, schema: Value) -> Self {
        let Value::Object(schema) = schema else {
            panic!("an output schema is a JSON object")
        };
        self.promise(schema)
    }

    /// Hints that the tool changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.annotate(|hints| hints.read_only_hint = Some(true))
    }

    /// Hints whether the tool may destroy something or only adds.
    #[must_use]
    pub fn destructive(self, destructive: bool) -> Self {
        self.annotate(|hints| hints.destructive_hint = Some(destructive))
    }

    /// Hints that calling it again with the same arguments changes nothing more.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.annotate(|hints| hints.idempotent_hint = Some(true))
    }

    /// Hints whether the tool reaches beyond this server's own world.
    #[must_use]
    pub fn open_world(self, open: bool) -> Self {
        self.annotate(|hints| hints.open_world_hint = Some(open))
    }

    /// Adds to the tool's `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: turnbuckle_protocol::Meta) -> Self {
        self.definition.meta = meta;
        self
    }

    /// Says whether a call may or must become a task, which is answered later.
    ///
    /// The handler is the same: as a task it runs on while the client looks in on it now and then, its questions wait
    /// for the client, and its result is kept for a while. `Optional` makes a task of every call whose client wants
    /// one or can use one; all others are answered as usual. `Required` refuses the others.
    #[must_use]
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.task = support;
        self.forbids_tasks = support == TaskSupport::Forbidden;
        self
    }

    /// Says that the tool asks something before it becomes a task, by
    /// [`Context::into_task`](crate::Context::into_task), where the client leaves that to the server.
    ///
    /// A tool that says nothing else about tasks may then become one.
    #[must_use]
    pub fn asks_first(mut self) -> Self {
        if self.task == TaskSupport::Forbidden && !self.forbids_tasks {
            self.task = TaskSupport::Optional;
        }
        self.asks_first = true;
        self
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The same tool under another name.
    pub(crate) fn renamed(mut self, name: String) -> Self {
        self.fingerprint = OnceLock::new();
        self.definition.name = name;
        self
    }

    /// What must stay the same for a half-finished call to go on: a changed tool starts over.
    pub(crate) fn fingerprint(&self) -> [u8; 16] {
        *self.fingerprint.get_or_init(|| {
            let input = serde_json::to_vec(&self.definition.input_schema).unwrap_or_default();
            let hash = Sha256::new()
                .chain_update(&self.definition.name)
                .chain_update([0])
                .chain_update(input)
                .finalize();
            let mut short = [0; 16];
            short.copy_from_slice(&hash[..16]);
            short
        })
    }

    /// Why a result is not what the output schema promises, if anyone wants to know.
    pub(crate) fn broken_promise(
        &self,
        result: &CallToolResult,
        server: &Server,
    ) -> Option<String> {
        let promise = self.promise.as_ref()?;
        // A debug build is where the author of a tool finds out.
        let wanted = cfg!(debug_assertions) || server.validates_output();
        if !wanted || result.is_error == Some(true) {
            return None;
        }
        match &result.structured_content {
            Some(value) => promise.check_value("structuredContent", value).err(),
            // A handler that returns an `Option` promises nothing or something, and returned nothing.
            None => promise
                .check_value("structuredContent", &Value::Null)
                .err()
                .map(|_| "`structuredContent` is missing".to_owned()),
        }
    }

    fn annotate(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.definition.annotations.get_or_insert_default());
        self
    }
}

/// An argument that HTTP clients repeat in a header.
#[derive(Clone, Debug)]
pub(crate) struct MirroredParam {
    /// In lower case, as header maps look it up.
    pub(crate) header: String,
    pub(crate) path: Vec<String>,
}

impl From<headers::Mark> for MirroredParam {
    fn from(mark: headers::Mark) -> Self {
        Self {
            header: format!("{PARAM_PREFIX}{}", mark.header).to_ascii_lowercase(),
            path: mark.path,
        }
    }
}

/// Compiles a schema that the author of a tool wrote, in types or by hand.
fn compile(what: &str, tool: &str, schema: &Map<String, Value>) -> Option<Validator> {
    Validator::new(schema)
        .unwrap_or_else(|error| panic!("the {what} schema of `{tool}` cannot be enforced: {error}"))
}

/// Says whether a tool may be called this.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

impl Listed for Tool {
    const MEMBER: &'static str = "tools";

    fn key(&self) -> &str {
        &self.definition.name
    }

    fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    fn write(&self, rules: &Rules, out: &mut Vec<u8>) {
        let mut definition = self.definition.clone();
        if rules.tasks == TaskDesign::Asked && self.task != TaskSupport::Forbidden {
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
        let tool = Tool::new("now", async || Ok::<_, ToolError>(String::new()));
        assert!(tool.fingerprint.get().is_none());

        let before = tool.fingerprint();
        let renamed = tool.clone().renamed("then".to_owned());

        assert_eq!(tool.fingerprint(), before);
        assert_ne!(renamed.fingerprint(), before);
    }
}
