//! From functions to something dispatch can call.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{IntoOutput, Output, ToolError};
use crate::{
    arguments,
    context::Context,
    exchange::BoxFuture,
    schema::{self, InputSchema},
    shape::{Arguments, Both, Contextual, Nothing},
    validate::Validator,
};

/// A tool's function behind one pointer: raw JSON in, a future of the output back.
pub trait Invoke: Send + Sync {
    /// Reads the arguments and makes the future; the error tells the model what is wrong with them.
    fn invoke(
        &self,
        arguments: &str,
        cx: Context,
    ) -> Result<BoxFuture<Result<Output, ToolError>>, String>;
}

impl<F> Invoke for F
where
    F: Fn(&str, Context) -> Result<BoxFuture<Result<Output, ToolError>>, String> + Send + Sync,
{
    fn invoke(
        &self,
        arguments: &str,
        cx: Context,
    ) -> Result<BoxFuture<Result<Output, ToolError>>, String> {
        self(arguments, cx)
    }
}

/// Implemented by the async functions of [`Tool::new`](crate::Tool::new); `M` keeps their shapes apart.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool",
    label = "a tool is an async function `(args)`, `(cx)`, `(args, cx)` or `()` that returns a `Result`",
    note = "arguments implement `serde::Deserialize` and `schemars::JsonSchema`; the error converts into `ToolError`"
)]
pub trait ToolHandler<M>: Sized {
    #[doc(hidden)]
    fn input_schema(&self) -> InputSchema;
    #[doc(hidden)]
    fn output_schema(&self) -> Option<Map<String, Value>>;
    #[doc(hidden)]
    fn invoke(self) -> Arc<dyn Invoke>;
}

/// Implemented by the synchronous functions of [`Tool::blocking`](crate::Tool::blocking).
#[diagnostic::on_unimplemented(
    message = "this function cannot be a blocking tool",
    label = "a blocking tool is a function `(args)`, `(args, cx)` or `()` that returns a `Result`",
    note = "arguments implement `serde::Deserialize` and `schemars::JsonSchema`; the error converts into `ToolError`"
)]
pub trait BlockingHandler<M>: Sized {
    #[doc(hidden)]
    fn input_schema(&self) -> InputSchema;
    #[doc(hidden)]
    fn output_schema(&self) -> Option<Map<String, Value>>;
    #[doc(hidden)]
    fn invoke(self) -> Arc<dyn Invoke>;
}

/// Reads typed arguments and boxes the future that `start` makes of them.
fn typed<A, S, Fut, T, E>(start: S) -> Arc<dyn Invoke>
where
    A: DeserializeOwned + Send + 'static,
    S: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: IntoOutput,
    E: Into<ToolError>,
{
    let promised = T::output_schema().is_some();
    Arc::new(move |arguments: &str, cx: Context| {
        let run = start(arguments::read(arguments)?, cx);
        let future: BoxFuture<_> =
            Box::pin(async move { run.await.map_err(Into::into)?.into_output(promised) });
        Ok(future)
    })
}

/// The handler of [`Tool::raw`](crate::Tool::raw).
pub(super) fn raw<A, F, Fut, T, E>(handler: F) -> Arc<dyn Invoke>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: IntoOutput,
    E: Into<ToolError>,
{
    typed(handler)
}

/// Checks arguments against a schema before they are read.
///
/// A handler around the handler, so that a tool whose types say all pays nothing for it.
pub(super) fn checked(validator: Validator, handler: Arc<dyn Invoke>) -> Arc<dyn Invoke> {
    Arc::new(move |arguments: &str, cx: Context| {
        validator.check(arguments)?;
        handler.invoke(arguments, cx)
    })
}

/// Runs a synchronous function on the pool of blocking threads.
async fn block<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, ToolError>
where
    T: IntoOutput,
    E: Into<ToolError>,
{
    let span = tracing::Span::current();
    let mut running = AbortOnDrop(tokio::task::spawn_blocking(move || {
        span.in_scope(work).map_err(Into::into)
    }));
    match (&mut running.0).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(ToolError::internal(error)),
        },
    }
}

/// Takes work that has not begun out of the queue when nobody waits for it any more.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Implements both kinds of handler for one shape of function.
macro_rules! shape {
    ([$($generic:ident)?] $marker:ty, $read:ty, ($($input:ty),*), |$args:ident, $cx:ident| ($($pass:ident),*)) => {
        impl<$($generic,)? F, Fut, T, E> ToolHandler<$marker> for F
        where
            $($generic: DeserializeOwned + JsonSchema + Send + 'static,)?
            F: Fn($($input),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<T, E>> + Send + 'static,
            T: IntoOutput,
            E: Into<ToolError>,
        {
            fn input_schema(&self) -> InputSchema {
                schema::of_input::<$read>()
            }

            fn output_schema(&self) -> Option<Map<String, Value>> {
                T::output_schema()
            }

            fn invoke(self) -> Arc<dyn Invoke> {
                typed(move |$args: $read, $cx: Context| self($($pass),*))
            }
        }

        impl<$($generic,)? F, T, E> BlockingHandler<$marker> for F
        where
            $($generic: DeserializeOwned + JsonSchema + Send + 'static,)?
            F: Fn($($input),*) -> Result<T, E> + Clone + Send + Sync + 'static,
            T: IntoOutput,
            E: Into<ToolError> + 'static,
        {
            fn input_schema(&self) -> InputSchema {
                schema::of_input::<$read>()
            }

            fn output_schema(&self) -> Option<Map<String, Value>> {
                T::output_schema()
            }

            fn invoke(self) -> Arc<dyn Invoke> {
                typed(move |$args: $read, $cx: Context| {
                    let work = self.clone();
                    block(move || work($($pass),*))
                })
            }
        }
    };
}

shape!([A] Both<A>, A, (A, Context), |args, cx| (args, cx));
shape!([A] Arguments<A>, A, (A), |args, _cx| (args));
shape!([] Contextual, arguments::Any, (Context), |_args, cx| (cx));
shape!([] Nothing, arguments::Any, (), |_args, _cx| ());
