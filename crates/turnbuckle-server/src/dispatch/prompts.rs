//! `prompts/get`.

use std::sync::Arc;

use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{Params, Truncated},
};

use super::{Dispatch, required};
use crate::{
    catalog::scopes::RequestDenied,
    input::RequestIdentity,
    request::{DispatchOutcome, RunningRequest, response::ResponseWriter},
};

impl Dispatch<'_, '_> {
    pub(super) fn get_prompt(self) -> RunningRequest {
        let (prompt, arguments) = match self.find_prompt() {
            Ok(resolved) => resolved,
            Err(denied) => return self.deny(denied),
        };
        let about = prompt.clone();
        let identity = |_: &Params<'_>| RequestIdentity {
            method: "prompts/get",
            name: about.definition.name.clone(),
            arguments: arguments.to_owned(),
            fingerprint: [0; 16],
        };
        self.run_handler(identity, arguments, move |arguments, cx| {
            let name = prompt.definition.name.clone();
            match (prompt.prompt_fn)(arguments, cx.clone()) {
                Ok(run) => DispatchOutcome::Handler(Box::pin(async move {
                    let messages = run
                        .await
                        .map_err(|error| error.into_rpc_error(cx.call.origin.rules, &name))?;
                    let mut result = messages.result;
                    Ok(ResponseWriter::new(&cx.call).with_meta(
                        &mut result,
                        |result| &mut result.meta,
                        None,
                    ))
                })),
                Err(message) => DispatchOutcome::Ready(Err(RpcError::invalid_params(message))),
            }
        })
    }

    fn find_prompt<'c>(&self) -> Result<(Arc<crate::Prompt>, &'c str), RequestDenied>
    where
        Self: 'c,
    {
        let catalog = self.server.catalog();
        if !catalog.prompts.is_advertised() {
            return Err(RpcError::method_not_found(&self.request.method).into());
        }
        let name = required(&self.request.params, "name")?;
        let prompt = catalog
            .prompts
            .get(&name, self.principal())
            .ok_or_else(|| {
                RpcError::invalid_params(format!("unknown prompt `{}`", Truncated(&name)))
            })?;
        prompt.required_scopes.check(&self.call.origin)?;
        Ok((prompt.clone(), self.arguments()?))
    }
}
