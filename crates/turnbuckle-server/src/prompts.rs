//! Prompts: message templates that a user can select, with arguments.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use turnbuckle_protocol::types::{
    GetPromptResult, Prompt as PromptDefinition, PromptArgument, PromptMessage,
};

use crate::{
    catalog::{
        CatalogEntry,
        completion::{Completers, IntoCompleter},
        entry_setters,
        scopes::RequiredScopes,
        visibility::Visibility,
    },
    context::Context,
    lifecycle::RevisionRules,
    request::{BoxFuture, error::RequestError},
    server::SharedState,
    tools::{
        arguments,
        arguments::{ArgsAndContext, ArgsOnly, ContextOnly, NoArgsHandler},
        schema,
    },
};

/// A type-erased prompt handler: takes the raw arguments and the context, returns a future of the messages.
pub(crate) type PromptFn = Arc<
    dyn Fn(&str, Context) -> Result<BoxFuture<Result<Messages, RequestError>>, String>
        + Send
        + Sync,
>;

/// A message template that a user can select, with arguments.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use turnbuckle_server::Prompt;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Review {
///     /// The file to look at.
///     file: String,
/// }
///
/// let review = Prompt::new("review", async |args: Review| {
///     Ok(format!("Review {} line by line.", args.file))
/// })
/// .description("Reviews a file")
/// .complete("file", ["src/lib.rs", "src/main.rs"]);
/// ```
#[derive(Clone)]
pub struct Prompt {
    pub(crate) definition: PromptDefinition,
    pub(crate) prompt_fn: PromptFn,
    pub(crate) completers: Completers,
    pub(crate) visibility: Visibility,
    pub(crate) required_scopes: RequiredScopes,
    /// The state of the mounted servers that the item comes from.
    pub(crate) state: Option<Arc<SharedState>>,
}

impl Prompt {
    /// Creates a prompt from an async function of its arguments, a [`Context`], both or neither.
    ///
    /// Arguments are text; their names and descriptions come from the fields of their type. The function returns text
    /// (one user message), messages, or [`Messages`].
    pub fn new<M>(name: impl Into<String>, handler: impl PromptHandler<M>) -> Self {
        let mut definition = PromptDefinition::new(name);
        definition.arguments = Some(handler.arguments()).filter(|arguments| !arguments.is_empty());
        Self {
            definition,
            prompt_fn: handler.into_prompt_fn(),
            completers: Completers::default(),
            visibility: Visibility::default(),
            required_scopes: RequiredScopes::default(),
            state: None,
        }
    }

    /// Describes an argument, or overrides the description from its type.
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        let arguments = self.definition.arguments.get_or_insert_default();
        match arguments
            .iter_mut()
            .find(|existing| existing.name == argument.name)
        {
            Some(existing) => *existing = argument,
            None => arguments.push(argument),
        }
        self
    }

    /// Completes an argument while the user types it.
    #[must_use]
    pub fn complete<M>(
        mut self,
        argument: impl Into<String>,
        completer: impl IntoCompleter<M>,
    ) -> Self {
        self.completers.add(argument.into(), completer);
        self
    }
}

entry_setters!(Prompt {
    /// Describes the prompt.
    description,
    /// Restricts the prompt to callers that match `predicate`; see [`Tool::visible_to`](crate::Tool::visible_to).
    ///
    /// ```
    /// use turnbuckle_server::Prompt;
    ///
    /// let review = Prompt::new("review", async || Ok("Review the salaries."))
    ///     .visible_to(|principal| principal.is_some_and(|who| who.subject == "ada"));
    /// ```
    visible_to,
    /// Requires all of these scopes to get the prompt or complete its arguments; see [`Tool::scopes`](crate::Tool::scopes).
    ///
    /// # Panics
    ///
    /// As [`Tool::scopes`](crate::Tool::scopes).
    scopes,
});

/// The messages of a prompt.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    pub(crate) result: GetPromptResult,
}

impl Messages {
    /// Creates a list of messages.
    pub fn new(messages: impl Into<Vec<PromptMessage>>) -> Self {
        Self {
            result: GetPromptResult::new(messages),
        }
    }

    /// Describes the messages.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.result.description = Some(description.into());
        self
    }
}

impl From<String> for Messages {
    fn from(text: String) -> Self {
        Self::new([PromptMessage::user(text)])
    }
}

impl From<&str> for Messages {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Vec<PromptMessage>> for Messages {
    fn from(messages: Vec<PromptMessage>) -> Self {
        Self::new(messages)
    }
}

impl From<PromptMessage> for Messages {
    fn from(message: PromptMessage) -> Self {
        Self::new([message])
    }
}

impl From<GetPromptResult> for Messages {
    fn from(result: GetPromptResult) -> Self {
        Self { result }
    }
}

/// Implemented by the async functions of [`Prompt::new`]. `M` distinguishes the function signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a prompt",
    label = "a prompt is an async function `(args)`, `(cx)`, `(args, cx)` or `()` that returns `Result<T, RequestError>`",
    note = "`args` implements `serde::Deserialize` and `schemars::JsonSchema`; `cx` is a `Context`; `T` is text, `PromptMessage`s or `Messages`",
    note = "`?` converts other errors to `RequestError`"
)]
pub trait PromptHandler<M> {
    #[doc(hidden)]
    fn arguments(&self) -> Vec<PromptArgument>;
    #[doc(hidden)]
    fn into_prompt_fn(self) -> PromptFn;
}

/// Implements the handler for one function signature.
macro_rules! impl_prompt_handler {
    ([$($generic:ident)?] $marker:ty, $read:ty, ($($input:ty),*), |$args:ident, $cx:ident| ($($pass:ident),*)) => {
        impl<$($generic,)? F, Fut, T> PromptHandler<$marker> for F
        where
            $($generic: DeserializeOwned + JsonSchema + Send + 'static,)?
            F: Fn($($input),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<T, RequestError>> + Send + 'static,
            T: Into<Messages>,
        {
            fn arguments(&self) -> Vec<PromptArgument> {
                argument_definitions::<$read>()
            }

            fn into_prompt_fn(self) -> PromptFn {
                Arc::new(move |json, $cx| {
                    let $args: $read = arguments::read(json)?;
                    let run = self($($pass),*);
                    Ok(Box::pin(async move { run.await.map(Into::into) }))
                })
            }
        }
    };
}

impl_prompt_handler!([A] ArgsAndContext<A>, A, (A, Context), |args, cx| (args, cx));
impl_prompt_handler!([A] ArgsOnly<A>, A, (A), |args, _cx| (args));
impl_prompt_handler!([] ContextOnly, arguments::NoArguments, (Context), |_args, cx| (cx));
impl_prompt_handler!([] NoArgsHandler, arguments::NoArguments, (), |_args, _cx| ());

/// Returns the argument definitions from the fields of a type.
fn argument_definitions<A: JsonSchema>() -> Vec<PromptArgument> {
    let schema = schema::input_schema_for::<A>().listed;
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return Vec::new();
    };
    let describe = |(name, property): (&String, &Value)| {
        let mut argument = PromptArgument::new(name);
        argument.description = property
            .get("description")
            .and_then(Value::as_str)
            .map(str::to_owned);
        argument.required = Some(required.iter().any(|one| one == name));
        argument
    };
    properties.iter().map(describe).collect()
}

impl CatalogEntry for Prompt {
    const MEMBER: &'static str = "prompts";

    fn key(&self) -> &str {
        &self.definition.name
    }

    fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    fn write(&self, rules: &RevisionRules, out: &mut Vec<u8>) {
        rules.write(&mut self.definition.clone(), out);
    }
}

impl std::fmt::Debug for Prompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prompt")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}
