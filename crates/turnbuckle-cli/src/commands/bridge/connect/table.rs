//! The open logins: limited in number and time, and each for one user.

use std::{sync::Arc, time::Duration};

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use turnbuckle_auth::{
    Secret,
    client::{PendingLogin, UserCredentials},
};
use turnbuckle_gateway::{CallerLogin, LoginCompletion, UpstreamCaller};
use turnbuckle_text::percent::form_pairs;

use super::identity::IdentityRequest;

/// Time from the offer of a link to the end of the login.
pub(super) const LIFETIME: Duration = Duration::from_secs(600);
/// Maximum number of open logins of a user. Beyond it, the oldest link of the user that was not opened ends.
pub(super) const MAX_PER_USER: usize = 8;
/// Maximum number of open logins.
pub(super) const MAX_TOTAL: usize = 1_024;

/// A user: all clients of the user are the same. Both are empty for the user of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct User {
    pub(super) issuer: String,
    pub(super) subject: String,
}

impl User {
    pub(super) fn of_caller(caller: &UpstreamCaller) -> Self {
        let principal = caller.principal();
        Self {
            issuer: principal.issuer.clone(),
            subject: principal.subject.clone(),
        }
    }

    /// Returns a text that differs for each user.
    pub(super) fn key(&self) -> String {
        format!("{:?}", (&self.issuer, &self.subject))
    }
}

/// 128 random bits, as hexadecimal digits.
pub(super) struct RandomId(Secret);

impl RandomId {
    /// Returns `None` without randomness.
    pub(super) fn new() -> Option<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Self(Secret::new(digits)))
    }

    pub(super) fn expose(&self) -> &str {
        self.0.expose()
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        digest(self.expose())
    }
}

/// Digests are compared, so that the time of a comparison says nothing about a secret.
fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// What a login waits for.
pub(super) enum Step {
    /// A browser opens the link with this id.
    Offered { id: [u8; 32] },
    /// The user logs in at the issuer of the callers.
    AtIssuer {
        cookie: [u8; 32],
        request: Box<IdentityRequest>,
    },
    /// The user logs in at the server.
    AtServer {
        cookie: [u8; 32],
        login: Box<PendingLogin>,
    },
    /// A request of the browser is being processed.
    Busy,
}

impl Step {
    /// Returns whether a browser has the cookie of the login.
    pub(super) fn is_of_browser(&self, cookie: Option<&str>) -> bool {
        match self {
            Self::AtIssuer { cookie: own, .. } | Self::AtServer { cookie: own, .. } => {
                cookie.is_some_and(|cookie| digest(cookie) == *own)
            }
            Self::Offered { .. } | Self::Busy => false,
        }
    }

    /// Returns the redirect URI of an authorization response; `identity_uri` is that of the issuer of the callers.
    pub(super) fn redirect_uri<'a>(&'a self, identity_uri: &'a str) -> Option<&'a str> {
        match self {
            Self::AtIssuer { .. } => Some(identity_uri),
            Self::AtServer { login, .. } => Some(login.redirect_uri()),
            Self::Offered { .. } | Self::Busy => None,
        }
    }

    fn has_state(&self, state: &Secret) -> bool {
        match self {
            Self::AtIssuer { request, .. } => request.state().constant_time_eq(state),
            Self::AtServer { login, .. } => login.state().constant_time_eq(state),
            Self::Offered { .. } | Self::Busy => false,
        }
    }
}

/// An open login.
struct OpenLogin {
    number: u64,
    user: User,
    server: Arc<str>,
    credentials: UserCredentials,
    login: CallerLogin,
    completion: LoginCompletion,
    expires: Instant,
    step: Step,
}

impl OpenLogin {
    /// After a reload, another server can have the same name.
    fn is_of(&self, user: &User, server: &Arc<str>) -> bool {
        self.user == *user && Arc::ptr_eq(&self.server, server)
    }
}

/// A login that is being processed.
pub(super) struct TakenLogin {
    pub(super) number: u64,
    pub(super) user: User,
    pub(super) server: Arc<str>,
    pub(super) credentials: UserCredentials,
}

/// The open logins, oldest first.
#[derive(Default)]
pub(super) struct LoginTable {
    logins: Vec<OpenLogin>,
    last_number: u64,
}

impl LoginTable {
    /// Returns the login of a user at a server if its link was not opened, or offers one. `None` if there are too many.
    pub(super) fn offer(
        &mut self,
        user: User,
        server: &Arc<str>,
        credentials: UserCredentials,
        url: impl FnOnce(&str) -> String,
    ) -> Option<CallerLogin> {
        self.remove_expired();
        // A server that was replaced by a reload gets no more logins.
        let is_replaced = |other: &Arc<str>| *other == *server && !Arc::ptr_eq(other, server);
        self.logins.retain(|open| !is_replaced(&open.server));
        let is_offered = |open: &&OpenLogin| {
            open.is_of(&user, server) && matches!(open.step, Step::Offered { .. })
        };
        if let Some(open) = self.logins.iter().find(is_offered) {
            return Some(open.login.clone());
        }
        self.make_room_for(&user);
        if self.logins.len() >= MAX_TOTAL {
            return None;
        }
        let id = RandomId::new()?;
        let (login, completion) = CallerLogin::new(url(id.expose()));
        self.last_number += 1;
        self.logins.push(OpenLogin {
            number: self.last_number,
            user,
            server: Arc::clone(server),
            credentials,
            login: login.clone(),
            completion,
            expires: Instant::now() + LIFETIME,
            step: Step::Offered { id: id.digest() },
        });
        Some(login)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.logins.len()
    }

    #[cfg(test)]
    pub(super) fn pass(&mut self, time: Duration) {
        self.logins.iter_mut().for_each(|open| open.expires -= time);
    }

    /// Returns the newest open login of a user at a server.
    pub(super) fn open_login(&mut self, user: &User, server: &Arc<str>) -> Option<CallerLogin> {
        self.remove_expired();
        let mut logins = self.logins.iter().rev();
        let open = logins.find(|open| open.is_of(user, server))?;
        Some(open.login.clone())
    }

    /// Takes the login of a link. It cannot be taken again.
    pub(super) fn take_offered(&mut self, id: &str) -> Option<TakenLogin> {
        let given = digest(id);
        let taken = self.take(|step| matches!(step, Step::Offered { id } if *id == given));
        taken.map(|(login, _)| login)
    }

    /// Takes the login that an authorization response belongs to, with the step that it answers.
    pub(super) fn take_by_response(&mut self, query: &str) -> Option<(TakenLogin, Step)> {
        let state = form_pairs(query).find(|(name, _)| name == "state");
        let state = Secret::new(state?.1);
        self.take(|step| step.has_state(&state))
    }

    fn take(&mut self, is_wanted: impl Fn(&Step) -> bool) -> Option<(TakenLogin, Step)> {
        self.remove_expired();
        let open = self.logins.iter_mut().find(|open| is_wanted(&open.step))?;
        let step = std::mem::replace(&mut open.step, Step::Busy);
        let taken = TakenLogin {
            number: open.number,
            user: open.user.clone(),
            server: Arc::clone(&open.server),
            credentials: open.credentials.clone(),
        };
        Some((taken, step))
    }

    /// Sets the next step of a taken login. Returns `false` if it has expired.
    pub(super) fn set_step(&mut self, number: u64, step: Step) -> bool {
        self.remove_expired();
        let open = self.logins.iter_mut().find(|open| open.number == number);
        open.map(|open| open.step = step).is_some()
    }

    /// Removes a login, which ends without success.
    pub(super) fn remove(&mut self, number: u64) {
        self.logins.retain(|open| open.number != number);
    }

    /// Completes all open logins of a user at a server: the user needs no other one.
    pub(super) fn complete(&mut self, user: &User, server: &Arc<str>) {
        let of_user = |open: &mut OpenLogin| open.is_of(user, server);
        for open in self.logins.extract_if(.., of_user) {
            open.completion.complete();
        }
    }

    fn remove_expired(&mut self) {
        let now = Instant::now();
        self.logins.retain(|open| now < open.expires);
    }

    /// Removes a login of a user that has too many: one that was not opened, if there is one.
    fn make_room_for(&mut self, user: &User) {
        let of_user: Vec<_> = self
            .logins
            .iter()
            .filter(|open| open.user == *user)
            .collect();
        if of_user.len() < MAX_PER_USER {
            return;
        }
        let offered = of_user
            .iter()
            .find(|open| matches!(open.step, Step::Offered { .. }));
        let oldest = offered.or(of_user.first()).map(|open| open.number);
        if let Some(oldest) = oldest {
            self.remove(oldest);
        }
    }
}
