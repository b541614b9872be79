//! `subscriptions/listen`.

use std::{future::pending, sync::Arc, time::Duration};

use tokio::{select, time::sleep};
use turnbuckle_protocol::types::ListenParams;

use super::Dispatch;
use crate::{
    catalog::subscriptions,
    request::{
        DispatchOutcome, RequestContext, ResponseResult, RunningRequest,
        timestamp::credential_lifetime,
    },
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
        let run = match credential_lifetime(call.origin.principal.as_deref()) {
            Some(lifetime) => {
                DispatchOutcome::Handler(Box::pin(limited(call.clone(), lifetime, run)))
            }
            None => DispatchOutcome::Handler(Box::pin(run)),
        };
        RunningRequest::new(call, run)
    }
}

/// Runs a subscription until the credentials of its caller expire.
///
/// Then it ends without a response, which would tell the client not to listen again. So it does, with new credentials.
async fn limited(
    call: Arc<RequestContext>,
    lifetime: Duration,
    run: impl Future<Output = ResponseResult>,
) -> ResponseResult {
    select! {
        biased;
        done = run => done,
        () = sleep(lifetime) => {
            call.outbox.cancel();
            pending().await
        }
    }
}
