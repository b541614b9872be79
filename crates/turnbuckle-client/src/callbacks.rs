//! What a server may ask of a client, and who answers.
//!
//! A capability is declared exactly when someone answers for it. Requests of older servers and the questions inside newer
//! results come in by the same door, [`Callbacks::answer`]. Knows neither transports nor rounds.

mod form;
pub(crate) mod guard;
mod roots;
mod sampling;
mod visit;

pub use form::{FormAnswer, FormError, FormRequest};
pub use roots::{IntoRoot, RootError, Roots};
pub use sampling::SampleRequest;
pub use visit::{Consent, VisitRequest};

use std::{pin::Pin, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use turnbuckle_protocol::json;
use turnbuckle_protocol::{
    Revision, RpcError, Versioned,
    types::{
        ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
        ElicitationCapability, EmptyParams, JsonObject, ListRootsResult, RootsCapability,
        SamplingCapability, tasks,
    },
};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Callback<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<A> + Send + Sync>;

/// Who answers what a server asks. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    form: Option<Callback<FormRequest, FormAnswer>>,
    visit: Option<Callback<VisitRequest, Consent>>,
    sample: Option<Callback<SampleRequest, Result<CreateMessageResult, RpcError>>>,
    sampling_tools: bool,
    roots: Option<Roots>,
}

impl Callbacks {
    /// Lets forms be filled in.
    pub(crate) fn on_form<F, A>(
        &mut self,
        callback: impl Fn(FormRequest) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = A> + Send + 'static,
        A: Into<FormAnswer>,
    {
        self.form = Some(Arc::new(move |form| {
            let answer = callback(form);
            Box::pin(async move { answer.await.into() })
        }));
    }

    /// Lets the user be sent to URLs.
    pub(crate) fn on_visit<F>(
        &mut self,
        callback: impl Fn(VisitRequest) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Consent> + Send + 'static,
    {
        self.visit = Some(Arc::new(move |visit| Box::pin(callback(visit))));
    }

    /// Lets the model be asked.
    pub(crate) fn on_sample<F>(
        &mut self,
        callback: impl Fn(SampleRequest) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.sample = Some(Arc::new(move |request| Box::pin(callback(request))));
    }

    /// Lets the model be given tools, where it can be asked at all.
    pub(crate) fn sampling_tools(&mut self) {
        self.sampling_tools = true;
    }

    /// Shows roots.
    pub(crate) fn set_roots(&mut self, roots: Roots) {
        self.roots = Some(roots);
    }

    /// The roots that are shown, for whoever tells of their changes.
    pub(crate) fn roots(&self) -> Option<&Roots> {
        self.roots.as_ref()
    }

    /// What the client can do for a server, in the newest shape.
    ///
    /// Tasks are always among it: a call that becomes one is waited for like any other.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::new();
        if self.form.is_some() || self.visit.is_some() {
            let mut modes = ElicitationCapability::default();
            modes.form = self.form.as_ref().map(|_| JsonObject::new());
            modes.url = self.visit.as_ref().map(|_| JsonObject::new());
            capabilities = capabilities.elicitation(modes);
        }
        if self.sample.is_some() {
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

    /// Answers a question: a request of an older server's, or one inside a newer result.
    ///
    /// What was not declared to a server of this revision is not answered, whatever could be.
    pub(crate) async fn answer(
        &self,
        method: &str,
        params: &str,
        revision: Revision,
    ) -> Result<Value, RpcError> {
        let mut declared = self.capabilities();
        declared.lower(revision);
        match method {
            "elicitation/create" if declared.elicitation.is_some() => {
                let result = self.elicit(read(params, revision)?, &declared).await?;
                write(result, revision)
            }
            "sampling/createMessage" if declared.sampling.is_some() => {
                let result = self.sample(read(params, revision)?, &declared).await?;
                write(result, revision)
            }
            "roots/list" if declared.roots.is_some() => {
                read::<EmptyParams>(params, revision)?;
                write(self.list_roots(), revision)
            }
            _ => Err(RpcError::method_not_found(method)),
        }
    }

    async fn elicit(
        &self,
        params: ElicitParams,
        declared: &ClientCapabilities,
    ) -> Result<ElicitResult, RpcError> {
        match (params, &self.form, &self.visit) {
            (ElicitParams::Form(params), Some(ask), _) if declared.can_elicit_form() => {
                let form = FormRequest::new(params)?;
                let answer = guard::run(|| ask(form.clone())).await?;
                form.check(answer)
            }
            (ElicitParams::Url(params), _, Some(ask)) if declared.can_elicit_url() => {
                let visit = VisitRequest::new(params)?;
                let consent = guard::run(|| ask(visit)).await?;
                Ok(ElicitResult::new(consent.into()))
            }
            _ => {
                let message = "this client did not declare that mode of elicitation";
                Err(RpcError::invalid_params(message))
            }
        }
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
        declared: &ClientCapabilities,
    ) -> Result<CreateMessageResult, RpcError> {
        let ask = self
            .sample
            .as_ref()
            .ok_or_else(|| RpcError::method_not_found("sampling/createMessage"))?;
        let request = SampleRequest::new(params, declared.can_sample_with_tools())?;
        let choice = request.tool_choice_mode();
        let result = guard::run(|| ask(request)).await??;
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

fn read<T: DeserializeOwned + Versioned>(params: &str, from: Revision) -> Result<T, RpcError> {
    let mut params: T = json::from_str(params).map_err(|error| {
        let message = format!("the parameters do not fit: {error}");
        RpcError::invalid_params(message)
    })?;
    params.raise(from);
    Ok(params)
}

fn write<T: serde::Serialize + Versioned>(mut result: T, to: Revision) -> Result<Value, RpcError> {
    result.lower(to);
    serde_json::to_value(result)
        .map_err(|error| RpcError::internal(format!("the answer cannot be written: {error}")))
}

#[cfg(test)]
mod tests;
