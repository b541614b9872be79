//! `resources/read`.

use turnbuckle_protocol::{RpcError, jsonrpc::Params};

use super::{Dispatch, required};
use crate::{
    CacheHint,
    input::RequestIdentity,
    request::{DispatchOutcome, RunningRequest, error, response::ResponseWriter},
};

impl Dispatch<'_, '_> {
    pub(super) fn read_resource(self) -> RunningRequest {
        let uri = match required(&self.request.params, "uri") {
            Ok(uri) => uri.into_owned(),
            Err(error) => return self.fail(error),
        };
        let catalog = self.server.catalog();
        if !catalog.has_resources() {
            let error = RpcError::method_not_found(&self.request.method);
            return self.fail(error);
        }
        let Some(resolved) = catalog.find_resource(&uri, self.principal()) else {
            let not_found = error::not_found(self.call.origin.rules, &uri);
            return self.fail(not_found);
        };
        if let Err(denied) = resolved.required_scopes().check(&self.call.origin) {
            return self.deny(denied);
        }
        let about = uri.clone();
        let identity = |_: &Params<'_>| RequestIdentity {
            method: "resources/read",
            name: about,
            arguments: String::new(),
            fingerprint: [0; 16],
        };
        // A result that depends on the user's input must not be cached.
        let params = &self.request.params;
        let has_input =
            params.get("inputResponses").is_some() || params.get("requestState").is_some();
        self.run_handler(identity, "", move |_, cx| {
            let cache = if has_input {
                CacheHint::NONE
            } else {
                resolved.cache()
            };
            let mime_type = resolved.mime_type();
            match resolved.read(&uri, cx.clone()) {
                Ok(run) => DispatchOutcome::Handler(Box::pin(async move {
                    let contents = run
                        .await
                        .map_err(|error| error.into_rpc_error(cx.call.origin.rules, &uri))?;
                    let mut result = contents.into_result(&uri, mime_type.as_deref());
                    if result.contents.is_empty() {
                        // An empty list would mean that the resource exists and is empty.
                        return Err(error::not_found(cx.call.origin.rules, &uri));
                    }
                    Ok(ResponseWriter::new(&cx.call).with_meta(
                        &mut result,
                        |result| &mut result.meta,
                        Some(cache),
                    ))
                })),
                Err(error) => {
                    DispatchOutcome::Ready(Err(error.into_rpc_error(cx.call.origin.rules, &uri)))
                }
            }
        })
    }
}
