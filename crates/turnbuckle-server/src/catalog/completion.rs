//! Completion of prompt arguments and template variables while the user types.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    context::Context,
    request::{BoxFuture, error::RequestError},
    tools::arguments::{ArgsAndContext, ArgsOnly},
};

/// A request to complete an argument.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The text typed so far.
    pub value: String,
    /// Arguments that already have a value, by name.
    pub arguments: BTreeMap<String, String>,
}

/// Returns completions for a partial value.
pub(crate) type Completer = Arc<
    dyn Fn(CompletionRequest, Context) -> BoxFuture<Result<Vec<String>, RequestError>>
        + Send
        + Sync,
>;

/// Completers by argument name.
#[derive(Clone, Default)]
pub(crate) struct Completers {
    by_name: BTreeMap<String, Completer>,
}

impl Completers {
    pub(crate) fn add<M>(&mut self, name: String, completer: impl IntoCompleter<M>) {
        self.by_name.insert(name, completer.into_completer());
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Completer> {
        self.by_name.get(name)
    }

    /// Returns the completers with each of them replaced.
    pub(crate) fn map(&self, replace: impl Fn(Completer) -> Completer) -> Self {
        let by_name = self.by_name.iter();
        let replaced = by_name.map(|(name, completer)| (name.clone(), replace(completer.clone())));
        Self {
            by_name: replaced.collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// Implemented by completers: a list of values, or an async function of [`CompletionRequest`], or of
/// [`CompletionRequest`] and [`Context`].
///
/// A list returns its values that start with the typed text. At most 100 values are sent.
#[diagnostic::on_unimplemented(
    message = "this value cannot complete an argument",
    label = "a completer is a list of text or an async function `(request)` or `(request, cx)` that returns `Result<Vec<String>, RequestError>`",
    note = "`request` is a `CompletionRequest`, `cx` a `Context`; `?` converts other errors to `RequestError`"
)]
pub trait IntoCompleter<M> {
    #[doc(hidden)]
    fn into_completer(self) -> Completer;
}

/// Marks fixed lists.
#[doc(hidden)]
pub struct FixedValues;

impl<const N: usize> IntoCompleter<FixedValues> for [&'static str; N] {
    fn into_completer(self) -> Completer {
        Vec::from(self.map(str::to_owned)).into_completer()
    }
}

impl IntoCompleter<FixedValues> for Vec<String> {
    fn into_completer(self) -> Completer {
        let values = Arc::new(self);
        (move |request: CompletionRequest, _: Context| {
            let matching = values
                .iter()
                .filter(|value| value.starts_with(&request.value))
                .cloned()
                .collect();
            std::future::ready(Ok(matching))
        })
        .into_completer()
    }
}

impl<F, Fut> IntoCompleter<ArgsOnly<CompletionRequest>> for F
where
    F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<String>, RequestError>> + Send + 'static,
{
    fn into_completer(self) -> Completer {
        Arc::new(move |request, _cx| Box::pin(self(request)))
    }
}

impl<F, Fut> IntoCompleter<ArgsAndContext<CompletionRequest>> for F
where
    F: Fn(CompletionRequest, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<String>, RequestError>> + Send + 'static,
{
    fn into_completer(self) -> Completer {
        Arc::new(move |request, cx| Box::pin(self(request, cx)))
    }
}
