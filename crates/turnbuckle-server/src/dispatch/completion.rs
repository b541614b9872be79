//! `completion/complete`.

use turnbuckle_protocol::{
    RpcError,
    types::{CompleteParams, CompleteResult, Completion, CompletionReference},
};

use super::Dispatch;
use crate::{
    catalog::completion::CompletionRequest,
    context::Context,
    request::{
        BoxFuture, DispatchOutcome, ResponseResult, RunningRequest, response::ResponseWriter,
    },
};

impl Dispatch<'_, '_> {
    pub(super) fn complete(self) -> RunningRequest {
        let catalog = self.server.catalog();
        if !catalog.has_completers() {
            let error = RpcError::method_not_found(&self.request.method);
            return self.fail(error);
        }
        let params = match self.request.params.parse::<CompleteParams>() {
            Ok(params) => params,
            Err(error) => return self.fail(error),
        };
        let completers = match &params.reference {
            CompletionReference::Prompt { name, .. } => {
                let prompt = catalog.prompts.get(name, self.principal());
                prompt.map(|prompt| (&prompt.completers, &prompt.required_scopes))
            }
            CompletionReference::Resource { uri } => catalog
                .templates
                .get(uri, self.principal())
                .map(|template| (&template.completers, &template.required_scopes)),
            _ => None,
        };
        let Some((completers, required_scopes)) = completers else {
            return self.fail(RpcError::invalid_params("unknown completion reference"));
        };
        if let Err(denied) = required_scopes.check(&self.call.origin) {
            return self.deny(denied);
        }
        let completer = completers.get(&params.argument.name).cloned();
        let typed = CompletionRequest {
            value: params.argument.value,
            arguments: params
                .context
                .and_then(|context| context.arguments)
                .unwrap_or_default(),
        };
        let call = self.call;
        let cx = Context { call: call.clone() };
        let run: BoxFuture<ResponseResult> = Box::pin(async move {
            let values = match completer {
                Some(completer) => completer(typed, cx.clone()).await,
                None => Ok(Vec::new()),
            };
            let values =
                values.map_err(|error| error.into_rpc_error(cx.call.origin.rules, "completion"))?;
            let mut result = CompleteResult::new(Completion::new(values));
            Ok(ResponseWriter::new(&cx.call).object(&mut result, None))
        });
        RunningRequest::new(call, DispatchOutcome::Handler(run))
    }
}
