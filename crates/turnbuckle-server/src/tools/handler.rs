//! Converts functions to tool handlers.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{IntoToolResult, ToolError, ToolResult};
use crate::{
    context::Context,
    request::BoxFuture,
    tools::{
        arguments,
        arguments::{ArgsAndContext, ArgsOnly, ContextOnly, NoArgsHandler},
        schema::{self, InputSchema},
    },
};

/// A type-erased tool handler: takes raw JSON, returns a future of the result.
pub trait InvokeTool: Send + Sync {
    /// Reads the arguments and returns the future. The error is for the model.
    fn invoke(
        &self,
        arguments: &str,
        cx: Context,
    ) -> Result<BoxFuture<Result<ToolResult, ToolError>>, String>;
}

impl<F> InvokeTool for F
where
    F: Fn(&str, Context) -> Result<BoxFuture<Result<ToolResult, ToolError>>, String> + Send + Sync,
{
    fn invoke(
        &self,
        arguments: &str,
        cx: Context,
    ) -> Result<BoxFuture<Result<ToolResult, ToolError>>, String> {
        self(arguments, cx)
    }
}

/// Implemented by the async functions of [`Tool::new`](crate::Tool::new). `M` distinguishes the function signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool",
    label = "a tool is an async function `(args)`, `(cx)`, `(args, cx)` or `()` that returns `Result<T, ToolError>`",
    note = "`args` implements `serde::Deserialize` and `schemars::JsonSchema`; `cx` is a `Context`; `T` is a `String`, `ToolResult`, or implements `serde::Serialize` and `schemars::JsonSchema`",
    note = "`?` converts other errors to `ToolError`; for a function that returns no `Result`, use `Tool::infallible`"
)]
pub trait ToolHandler<M>: Sized {
    #[doc(hidden)]
    fn input_schema(&self) -> InputSchema;
    #[doc(hidden)]
    fn output_schema(&self) -> Option<Map<String, Value>>;
    #[doc(hidden)]
    fn invoke(self) -> Arc<dyn InvokeTool>;
}

/// Implemented by the async functions of [`Tool::infallible`](crate::Tool::infallible). `M` distinguishes the function
/// signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot be an infallible tool",
    label = "an infallible tool is an async function `(args)`, `(cx)`, `(args, cx)` or `()` that returns no `Result`",
    note = "`args` implements `serde::Deserialize` and `schemars::JsonSchema`; `cx` is a `Context`; the result is a `String`, `ToolResult`, or implements `serde::Serialize` and `schemars::JsonSchema`"
)]
pub trait InfallibleHandler<M>: Sized {
    #[doc(hidden)]
    fn input_schema(&self) -> InputSchema;
    #[doc(hidden)]
    fn output_schema(&self) -> Option<Map<String, Value>>;
    #[doc(hidden)]
    fn invoke(self) -> Arc<dyn InvokeTool>;
}

/// Implemented by the async functions of [`Tool::raw`](crate::Tool::raw). `M` distinguishes the function signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a raw tool",
    label = "a raw tool is an async function `(args)`, `(cx)`, `(args, cx)` or `()` that returns `Result<T, ToolError>`",
    note = "`args` implements `serde::Deserialize`; `cx` is a `Context`; a closure declares the types of its parameters"
)]
pub trait RawToolHandler<M>: Sized {
    #[doc(hidden)]
    fn output_schema(&self) -> Option<Map<String, Value>>;
    #[doc(hidden)]
    fn invoke(self) -> Arc<dyn InvokeTool>;
}

/// Implemented by the synchronous functions of [`Tool::blocking`](crate::Tool::blocking). `M` distinguishes the function
/// signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a blocking tool",
    label = "a blocking tool is a function `(args)`, `(cx)`, `(args, cx)` or `()` that returns `Result<T, ToolError>`",
    note = "`args` implements `serde::Deserialize` and `schemars::JsonSchema`; `cx` is a `Context`; `?` converts other errors to `ToolError`"
)]
pub trait BlockingHandler<M>: Sized {
    #[doc(hidden)]
    fn input_schema(&self) -> InputSchema;
    #[doc(hidden)]
    fn output_schema(&self) -> Option<Map<String, Value>>;
    #[doc(hidden)]
    fn invoke(self) -> Arc<dyn InvokeTool>;
}

/// Reads typed arguments and boxes the future that `start` returns.
fn typed<A, S, Fut, T>(start: S) -> Arc<dyn InvokeTool>
where
    A: DeserializeOwned + Send + 'static,
    S: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
    T: IntoToolResult,
{
    let has_output_schema = T::output_schema().is_some();
    Arc::new(move |arguments: &str, cx: Context| {
        let run = start(arguments::read(arguments)?, cx);
        let future: BoxFuture<_> =
            Box::pin(async move { run.await?.into_tool_result(has_output_schema) });
        Ok(future)
    })
}

/// Runs a synchronous function on the pool of blocking threads.
async fn run_blocking<T: IntoToolResult>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let span = tracing::Span::current();
    let mut running = AbortOnDrop(tokio::task::spawn_blocking(move || span.in_scope(work)));
    match (&mut running.0).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(ToolError::internal(error)),
        },
    }
}

/// Removes work from the queue if it is dropped before it starts.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Implements the handler traits for one function signature.
macro_rules! impl_tool_handler {
    ([$($generic:ident)?] $marker:ty, $read:ty, ($($input:ty),*), |$args:ident, $cx:ident| ($($pass:ident),*)) => {
        impl<$($generic,)? F, Fut, T> ToolHandler<$marker> for F
        where
            $($generic: DeserializeOwned + JsonSchema + Send + 'static,)?
            F: Fn($($input),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
            T: IntoToolResult,
        {
            fn input_schema(&self) -> InputSchema {
                schema::input_schema_for::<$read>()
            }

            fn output_schema(&self) -> Option<Map<String, Value>> {
                T::output_schema()
            }

            fn invoke(self) -> Arc<dyn InvokeTool> {
                typed(move |$args: $read, $cx: Context| self($($pass),*))
            }
        }

        impl<$($generic,)? F, Fut, T> InfallibleHandler<$marker> for F
        where
            $($generic: DeserializeOwned + JsonSchema + Send + 'static,)?
            F: Fn($($input),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = T> + Send + 'static,
            T: IntoToolResult,
        {
            fn input_schema(&self) -> InputSchema {
                schema::input_schema_for::<$read>()
            }

            fn output_schema(&self) -> Option<Map<String, Value>> {
                T::output_schema()
            }

            fn invoke(self) -> Arc<dyn InvokeTool> {
                typed(move |$args: $read, $cx: Context| {
                    let run = self($($pass),*);
                    async move { Ok(run.await) }
                })
            }
        }

        impl<$($generic,)? F, Fut, T> RawToolHandler<$marker> for F
        where
            $($generic: DeserializeOwned + Send + 'static,)?
            F: Fn($($input),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
            T: IntoToolResult,
        {
            fn output_schema(&self) -> Option<Map<String, Value>> {
                T::output_schema()
            }

            fn invoke(self) -> Arc<dyn InvokeTool> {
                typed(move |$args: $read, $cx: Context| self($($pass),*))
            }
        }

        impl<$($generic,)? F, T> BlockingHandler<$marker> for F
        where
            $($generic: DeserializeOwned + JsonSchema + Send + 'static,)?
            F: Fn($($input),*) -> Result<T, ToolError> + Clone + Send + Sync + 'static,
            T: IntoToolResult,
        {
            fn input_schema(&self) -> InputSchema {
                schema::input_schema_for::<$read>()
            }

            fn output_schema(&self) -> Option<Map<String, Value>> {
                T::output_schema()
            }

            fn invoke(self) -> Arc<dyn InvokeTool> {
                typed(move |$args: $read, $cx: Context| {
                    let work = self.clone();
                    run_blocking(move || work($($pass),*))
                })
            }
        }
    };
}

impl_tool_handler!([A] ArgsAndContext<A>, A, (A, Context), |args, cx| (args, cx));
impl_tool_handler!([A] ArgsOnly<A>, A, (A), |args, _cx| (args));
impl_tool_handler!([] ContextOnly, arguments::NoArguments, (Context), |_args, cx| (cx));
impl_tool_handler!([] NoArgsHandler, arguments::NoArguments, (), |_args, _cx| ());
