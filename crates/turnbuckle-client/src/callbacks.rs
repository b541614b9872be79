//! The callbacks that handle requests of the server.
//!
//! A capability is declared if and only if a callback handles it. Server requests of legacy revisions and input
//! requests of 2026-07-28 results are both handled by [`Callbacks::handle`]. Independent of transports and round trips.

mod form;
mod form_validation;
mod roots;
mod sampling;
#[cfg(test)]
mod tests;
mod url_elicitation;

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use turnbuckle_protocol::{
    Revision, RpcError, VersionedPayload, json,
    types::{
        ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
        ElicitationCapability, EmptyParams, JsonObject, ListRootsResult, RootsCapability,
        SamplingCapability, tasks,
    },
};

pub use crate::callbacks::{
    form::{FormError, FormRequest, FormResponse},
    roots::{IntoRoot, RootError, Roots},
    sampling::SamplingRequest,
    url_elicitation::{ElicitationAction, UrlElicitationRequest},
};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type CallbackFn<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<A> + Send + Sync>;

/// The registered callbacks. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    form: Option<CallbackFn<FormRequest, FormResponse>>,
    url_elicitation: Option<CallbackFn<UrlElicitationRequest, ElicitationAction>>,
    sampling_callback: Option<CallbackFn<SamplingRequest, Result<CreateMessageResult, RpcError>>>,
    sampling_tools: bool,
    roots: Option<Roots>,
}

impl Callbacks {
    /// Sets the callback for form elicitation.
    pub(crate) fn on_form_elicitation<F, A>(
        &mut self,
        callback: impl Fn(FormRequest) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = A> + Send + 'static,
        A: Into<FormResponse>,
    {
        self.form = Some(Arc::new(move |form| {
            let response = callback(form);
            Box::pin(async move { response.await.into() })
        }));
    }

    /// Sets the callback for URL elicitation.
    pub(crate) fn on_url_elicitation<F>(
        &mut self,
        callback: impl Fn(UrlElicitationRequest) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ElicitationAction> + Send + 'static,
    {
        self.url_elicitation = Some(Arc::new(move |url_elicitation| {
            Box::pin(callback(url_elicitation))
        }));
    }

    /// Sets the callback for sampling.
    pub(crate) fn on_sampling<F>(
        &mut self,
        callback: impl Fn(SamplingRequest) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.sampling_callback = Some(Arc::new(move |request| Box::pin(callback(request))));
    }

    /// Allows tools in sampling requests.
    pub(crate) fn sampling_tools(&mut self) {
        self.sampling_tools = true;
    }

    /// Sets the roots.
    pub(crate) fn set_roots(&mut self, roots: Roots) {
        self.roots = Some(roots);
    }

    /// Returns the roots.
    pub(crate) fn roots(&self) -> Option<&Roots> {
        self.roots.as_ref()
    }

    /// Returns the capabilities of the client, in the newest types.
    ///
    /// Tasks are always included: a call that becomes a task is awaited like any other.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::new();
        if self.form.is_some() || self.url_elicitation.is_some() {
            let mut modes = ElicitationCapability::default();
            modes.form = self.form.as_ref().map(|_| JsonObject::new());
            modes.url = self.url_elicitation.as_ref().map(|_| JsonObject::new());
            capabilities = capabilities.elicitation(modes);
        }
        if self.sampling_callback.is_some() {
            let mut sampling = SamplingCapability::default();
            sampling.tools = self.sampling_tools.then(JsonObject::new);
            capabilities = capabilities.sampling(sampling);
        }
        if self.roots.is_some() {
            capabilities = capabilities.roots(RootsCapability::default().list_changed(true));
        }
        let extensions = JsonObject::from_iter([(tasks::EXTENSION.to_owned(), json!({}))]);
        capabilities.extensions(extensions)
    }

    /// Handles a request: a server request of a legacy revision, or an input request of a result.
    ///
    /// A request is rejected if its capability was not declared in this revision.
    pub(crate) async fn handle(
        &self,
        method: &str,
        params: &str,
        revision: Revision,
    ) -> Result<Value, RpcError> {
        let mut declared = self.capabilities();
        declared.downgrade_to(revision);
        match method {
            "elicitation/create" if declared.elicitation.is_some() => {
                let result = self
                    .elicit(read_params(params, revision)?, &declared)
                    .await?;
                write_result(result, revision)
            }
            "sampling/createMessage" if declared.sampling.is_some() => {
                let result = self
                    .sample(read_params(params, revision)?, &declared)
                    .await?;
                write_result(result, revision)
            }
            "roots/list" if declared.roots.is_some() => {
                read_params::<EmptyParams>(params, revision)?;
                write_result(self.list_roots(), revision)
            }
            _ => Err(RpcError::method_not_found(method)),
        }
    }

    async fn elicit(
        &self,
        params: ElicitParams,
        declared: &ClientCapabilities,
    ) -> Result<ElicitResult, RpcError> {
        match (params, &self.form, &self.url_elicitation) {
            (ElicitParams::Form(params), Some(callback), _) if declared.can_elicit_form() => {
                let form = FormRequest::new(params)?;
                let response = run_callback(|| callback(form.clone())).await?;
                form.validate(response)
            }
            (ElicitParams::Url(params), _, Some(callback)) if declared.can_elicit_url() => {
                let url_elicitation = UrlElicitationRequest::new(params)?;
                let action = run_callback(|| callback(url_elicitation)).await?;
                Ok(ElicitResult::new(action.into()))
            }
            _ => {
                let message = "this client did not declare this elicitation mode";
                Err(RpcError::invalid_params(message))
            }
        }
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
        declared: &ClientCapabilities,
    ) -> Result<CreateMessageResult, RpcError> {
        let callback = self
            .sampling_callback
            .as_ref()
            .ok_or_else(|| RpcError::method_not_found("sampling/createMessage"))?;
        let request = SamplingRequest::new(params, declared.can_sample_with_tools())?;
        let choice = request.tool_choice_mode();
        let result = run_callback(|| callback(request)).await??;
        sampling::check_result(&result, choice)?;
        Ok(result)
    }

    fn list_roots(&self) -> ListRootsResult {
        let roots = self.roots.as_ref().map(Roots::list);
        ListRootsResult::new(roots.unwrap_or_default())
    }
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Callbacks")
            .field(&self.capabilities())
            .finish()
    }
}

fn read_params<T: DeserializeOwned + VersionedPayload>(
    params: &str,
    from: Revision,
) -> Result<T, RpcError> {
    let mut params: T = json::from_str(params).map_err(|error| {
        let message = format!("invalid parameters: {error}");
        RpcError::invalid_params(message)
    })?;
    params.upgrade_from(from);
    Ok(params)
}

fn write_result<T: serde::Serialize + VersionedPayload>(
    mut result: T,
    to: Revision,
) -> Result<Value, RpcError> {
    result.downgrade_to(to);
    serde_json::to_value(result)
        .map_err(|error| RpcError::internal(format!("the result cannot be serialized: {error}")))
}

/// Runs a callback; a panic becomes an internal error.
///
/// The callback starts at once; the returned future waits for its response.
pub(crate) fn run_callback<T, F>(start: F) -> impl Future<Output = Result<T, RpcError>>
where
    F: FnOnce() -> BoxFuture<T>,
{
    // State that a panic leaves inconsistent is dropped with the future; it holds no state of the client.
    let started = catch_unwind(AssertUnwindSafe(start));
    async move {
        let mut running = started.map_err(|_| panicked())?;
        poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
            match polled {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(response)) => Poll::Ready(Ok(response)),
                Err(_) => Poll::Ready(Err(panicked())),
            }
        })
        .await
    }
}

/// Calls an observer; a panic is logged.
pub(crate) fn notify_observer(observer: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(observer)).is_err() {
        tracing::error!("an observer callback panicked");
    }
}

fn panicked() -> RpcError {
    tracing::error!("a callback panicked");
    RpcError::internal("the client failed to handle the request")
}
