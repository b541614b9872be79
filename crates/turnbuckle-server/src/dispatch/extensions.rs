//! Methods that extensions register.

use std::sync::Arc;

use turnbuckle_protocol::jsonrpc::{Params, RawObject};

use super::Dispatch;
use crate::{
    input::RequestIdentity,
    request::{DispatchOutcome, RunningRequest, response::ResponseWriter},
    server::extension::{ExtensionResponse, RegisteredMethod},
};

impl Dispatch<'_, '_> {
    /// Runs the handler of an extension method.
    pub(super) fn call_extension(self, registered: Arc<RegisteredMethod>) -> RunningRequest {
        let method = self.request.method.clone().into_owned();
        let arguments = params_json(&self.request.params);
        // The subject of error messages: the named target if the method has one, else the method.
        let named = registered
            .name_member()
            .map(|member| self.request.params.string(member));
        let about = match named {
            Some(Ok(Some(name))) => name.into_owned(),
            _ => method.clone(),
        };
        let identity = |_: &Params<'_>| RequestIdentity {
            method: "an extension",
            name: method,
            arguments: arguments.clone(),
            fingerprint: [0; 16],
        };
        self.run_handler(
            identity,
            &arguments.clone(),
            move |arguments, cx| match (registered.method.respond)(arguments, cx.clone()) {
                Ok(run) => DispatchOutcome::Handler(Box::pin(async move {
                    let response = run
                        .await
                        .map_err(|error| error.into_rpc_error(cx.call.origin.rules, &about))?;
                    let writer = ResponseWriter::new(&cx.call);
                    Ok(match response {
                        ExtensionResponse::Object(object) => {
                            writer.extension_result(object, registered.method.cache)
                        }
                        ExtensionResponse::Encoded(page, cache) => {
                            writer.shared_object(page, Some(cache))
                        }
                    })
                })),
                Err(error) => DispatchOutcome::Ready(Err(error)),
            },
        )
    }
}

/// Returns the parameters as a JSON object, without the members that the protocol adds to every method.
fn params_json(params: &Params<'_>) -> String {
    const ADDED: [&str; 3] = ["_meta", "inputResponses", "requestState"];
    let mut own = String::from("{");
    let members = params
        .object()
        .map(RawObject::members)
        .into_iter()
        .flatten();
    for (name, value) in members.filter(|(name, _)| !ADDED.contains(&&**name)) {
        if own.len() > 1 {
            own.push(',');
        }
        own.push_str(&serde_json::Value::from(&*name).to_string());
        own.push(':');
        own.push_str(value);
    }
    own.push('}');
    own
}
