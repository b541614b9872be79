//! A login that is kept, in the hands of a command that asks nobody.

use turnbuckle_auth::client::OAuth;
use turnbuckle_auth::{Authorize, Credentials, Failure, Next, Refused, Sending, Step};
use turnbuckle_protocol::guard::BoxFuture;

use crate::target::Target;
use crate::trust::quoted;

/// Uses a login and renews it; where somebody would have to log in, says how that is done.
pub(super) struct Kept {
    oauth: OAuth,
    target: Target,
}

impl Kept {
    pub(super) fn new(oauth: OAuth, target: &Target) -> Self {
        let target = target.clone();
        Self { oauth, target }
    }

    async fn renew(&self, refused: Refused<'_>) -> Result<Next, Failure> {
        let next = self.oauth.refused(refused).await;
        next.map_err(|failure| match failure.step() {
            Step::Authorization => self.somebody_has_to_log_in(refused),
            _ => failure,
        })
    }

    fn somebody_has_to_log_in(&self, refused: Refused<'_>) -> Failure {
        let parameter = |name| {
            refused
                .challenges
                .iter()
                .find_map(|one| one.parameter(name))
        };
        let error = parameter("error");
        let scope = parameter("scope").filter(|_| error == Some("insufficient_scope"));
        let reason = match scope {
            Some(scope) => format!("the login is not good for `{scope}`"),
            None => "the login is over, and cannot be renewed".to_owned(),
        };
        let words = scope.map(|scope| format!("--scope {}", quoted(scope)));
        let login = self
            .target
            .command_line("login", &words.unwrap_or_default());
        let place = refused.sending.url.split('?').next().unwrap_or_default();
        let answer = format!("{} {}", refused.status, error.unwrap_or_default());
        Failure::new(Step::Use, reason)
            .request(format_args!("{} {place}", refused.sending.method))
            .answer(answer.trim_end())
            .cure(format!("log in again with `{login}`"))
    }
}

impl Authorize for Kept {
    fn credentials<'a>(
        &'a self,
        sending: Sending<'a>,
    ) -> BoxFuture<'a, Result<Credentials, Failure>> {
        self.oauth.credentials(sending)
    }

    fn refused<'a>(&'a self, refused: Refused<'a>) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(self.renew(refused))
    }

    fn nonce(&self, nonce: &str) {
        self.oauth.nonce(nonce);
    }
}
