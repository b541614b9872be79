//! Requests whose response was lost: sent again where that is safe.
//!
//! Since 2026-07-28 a response stream that breaks cannot be resumed, and its request has to be sent again under a new id
//! (`2026-07-28/basic/patterns`, changelog). The first request may have taken effect, though, so only those are sent again
//! that change nothing, or nothing more when they come twice. All others end with [`CallError::EffectUnknown`].

use std::sync::Arc;

use turnbuckle_protocol::method::{self, Method};

use super::{Begun, Beside, Client, Reply};
use crate::call::Options;
use crate::error::{CallError, TransportError};
use crate::http::HttpError;
use crate::lifecycle::{Agreed, Rules};
use crate::lowered::Lowered;

/// The methods that only read. Methods of an extension that is not known here may do anything, whatever their name.
const READS: [&str; 13] = [
    method::SERVER_DISCOVER.name,
    method::TOOLS_LIST.name,
    method::RESOURCES_LIST.name,
    method::RESOURCES_TEMPLATES_LIST.name,
    method::RESOURCES_READ.name,
    method::PROMPTS_LIST.name,
    method::PROMPTS_GET.name,
    method::COMPLETION_COMPLETE.name,
    method::TASKS_GET.name,
    method::TASKS_LIST.name,
    "resources/directory/read",
    "skills/get",
    "skills/list",
];

impl Client {
    /// Says whether the server may have received a request, and its response will never come.
    pub(super) fn lost_response(&self, error: &TransportError, rules: &Rules) -> bool {
        rules.reissues && self.inner.transport.is_http() && is_lost_response(error)
    }

    /// Sends a request again whose response was lost, once and only if that is safe.
    pub(super) async fn reissue<P: Lowered>(
        &self,
        agreed: Arc<Agreed>,
        lost: TransportError,
        method: &'static Method,
        params: &P,
        beside: &Beside<'_>,
        // Both requests have one total.
        options: Options,
    ) -> Result<Reply, CallError> {
        if !self.is_repeatable(method, beside.name) {
            return Err(CallError::EffectUnknown {
                method: method.name,
                source: lost,
            });
        }
        tracing::debug!(method = method.name, %lost, "sent again, as its response was lost");
        let mut request = self.request(&agreed, method, params, beside, &options)?;
        let begun = Begun::now(&options);
        self.exchange(&mut request, &options, &begun).await
    }

    /// Says whether a request does no more when it is received twice.
    ///
    /// What a tool says of itself may be wrong. But it is its own server that gets the call twice, and that server could do
    /// as much by itself.
    fn is_repeatable(&self, method: &Method, name: Option<&str>) -> bool {
        if method.name == method::TOOLS_CALL.name {
            return name.is_some_and(|tool| self.inner.tools.is_repeatable(tool));
        }
        is_read(method)
    }
}

/// Says whether a method changes nothing.
fn is_read(method: &Method) -> bool {
    READS.contains(&method.name)
}

/// Says whether a request on HTTP was sent, and the connection broke before there was a response to it.
pub(crate) fn is_lost_response(error: &TransportError) -> bool {
    match error {
        TransportError::Closed => true,
        TransportError::Http(error) => matches!(**error, HttpError::Broken(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_methods_are_taken_to_change_nothing() {
        for read in [
            &method::TOOLS_LIST,
            &method::TASKS_LIST,
            &method::PROMPTS_GET,
        ] {
            assert!(is_read(read), "{}", read.name);
        }
        assert!(is_read(&Method::of_extension("skills/list")));
        for unknown in ["queue/list", "com.example/list", "tasks/cancel"] {
            assert!(!is_read(&Method::of_extension(unknown)), "{unknown}");
        }
    }
}
