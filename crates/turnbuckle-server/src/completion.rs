//! Completion of prompt arguments and template variables while the user types.

use std::{collections::BTreeMap, sync::Arc};

use crate::{context::Context, exchange::BoxFuture, request_error::RequestError};

/// What the user has typed so far.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Completing {
    /// The beginning of the value.
    pub value: String,
    /// Arguments that are already settled, by name.
    pub arguments: BTreeMap<String, String>,
}

/// Completes what was typed.
pub(crate) type Completer =
    Arc<dyn Fn(Completing, Context) -> BoxFuture<Result<Vec<String>, RequestError>> + Send + Sync>;

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

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// What can complete an argument: a list of values, or an async function of [`Completing`] and [`Context`].
///
/// A list offers the values that begin with what was typed. Only the first 100 values are sent.
pub trait IntoCompleter<M> {
    #[doc(hidden)]
    fn into_completer(self) -> Completer;
}

/// Marks fixed lists.
#[doc(hidden)]
pub struct Fixed;
/// Marks functions.
#[doc(hidden)]
pub struct Function;

impl<const N: usize> IntoCompleter<Fixed> for [&'static str; N] {
    fn into_completer(self) -> Completer {
        Vec::from(self.map(str::to_owned)).into_completer()
    }
}

impl IntoCompleter<Fixed> for Vec<String> {
    fn into_completer(self) -> Completer {
        let values = Arc::new(self);
        (move |typed: Completing, _: Context| {
            let matching = values
                .iter()
                .filter(|value| value.starts_with(&typed.value))
                .cloned()
                .collect();
            std::future::ready(Ok::<Vec<String>, RequestError>(matching))
        })
        .into_completer()
    }
}

impl<F, Fut, E> IntoCompleter<Function> for F
where
    F: Fn(Completing, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<String>, E>> + Send + 'static,
    E: Into<RequestError>,
{
    fn into_completer(self) -> Completer {
        Arc::new(move |typed, cx| {
            let run = self(typed, cx);
            Box::pin(async move { run.await.map_err(Into::into) })
        })
    }
}
