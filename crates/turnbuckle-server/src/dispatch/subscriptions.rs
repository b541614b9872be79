//! `subscriptions/listen`.

use turnbuckle_protocol::types::ListenParams;

use super::Dispatch;
use crate::{
    catalog::subscriptions,
    request::{DispatchOutcome, RunningRequest},
};

impl Dispatch<'_, '_> {
    pub(super) fn listen(self) -> RunningRequest {
        let ListenParams { notifications, .. } = match self.request.params.parse() {
            Ok(params) => params,
            Err(error) => return self.fail(error),
        };
        if let Err(denied) =
            subscriptions::required_scopes(&self.call, &notifications).check(&self.call.origin)
        {
            return self.deny(denied);
        }
        let call = self.call;
        let run = subscriptions::listen(call.clone(), notifications);
        RunningRequest::new(call, DispatchOutcome::Handler(Box::pin(run)))
    }
}
