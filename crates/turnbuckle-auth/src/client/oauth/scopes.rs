//! The scopes to request.

use crate::{AuthorizationServer, Challenge, Scopes, client::authorization::with_offline_access};

/// Scope for refresh tokens; not a scope of the resource.
const OFFLINE_ACCESS: &str = "offline_access";

/// The scopes that are known at a login.
#[derive(Clone, Copy, Default)]
pub(super) struct ScopeSources<'a> {
    /// Scopes of the challenge.
    pub(super) challenged: Option<&'a Scopes>,
    /// Scopes listed in the metadata of the server.
    pub(super) advertised: Option<&'a Scopes>,
    /// Scopes configured by the user.
    pub(super) configured: Option<&'a Scopes>,
    /// Scopes of the previous login.
    pub(super) previous: Option<&'a Scopes>,
}

impl ScopeSources<'_> {
    /// Returns the scopes to request; `None` leaves the choice to the authorization server.
    ///
    /// The scopes of the challenge take precedence over the advertised ones. Configured and previous scopes are always
    /// included.
    pub(super) fn to_request(self, server: &AuthorizationServer) -> Option<Scopes> {
        let advertised = self.advertised.map(without_offline_access);
        let first = self.challenged.or(self.configured).or(advertised.as_ref());
        let all = [first, self.configured, self.previous]
            .into_iter()
            .flatten();
        let all = all.cloned().reduce(|all, more| all.union(&more));
        with_offline_access(all.filter(|all| !all.is_empty()), server)
    }
}

/// Returns the scopes of the challenge, if they are valid.
pub(super) fn challenge_scopes(challenges: &[Challenge]) -> Option<Scopes> {
    let scopes = token_challenges(challenges).find_map(|challenge| challenge.parameter("scope"))?;
    let scopes = without_offline_access(&scopes.parse().ok()?);
    (!scopes.is_empty()).then_some(scopes)
}

/// Returns the first error code of the challenges.
pub(super) fn challenge_error(challenges: &[Challenge]) -> Option<&str> {
    token_challenges(challenges).find_map(|challenge| challenge.parameter("error"))
}

fn without_offline_access(scopes: &Scopes) -> Scopes {
    let others = scopes.iter().filter(|scope| *scope != OFFLINE_ACCESS);
    others.map(str::to_owned).collect()
}

fn token_challenges(challenges: &[Challenge]) -> impl Iterator<Item = &Challenge> {
    let is_ours =
        |challenge: &&Challenge| challenge.is_scheme("Bearer") || challenge.is_scheme("DPoP");
    challenges.iter().filter(is_ours)
}

#[cfg(test)]
mod tests {
    use turnbuckle_spec_coverage::req;

    use super::*;

    fn scopes(text: &str) -> Scopes {
        text.parse().unwrap()
    }

    #[test]
    fn challenged_scopes_precede_advertised_scopes() {
        req!("auth.scope.order");
        req!("auth.scope.least");
        let (challenged, advertised) = (scopes("a"), scopes("a b offline_access"));
        let server = AuthorizationServer::default();
        let sources = ScopeSources {
            challenged: Some(&challenged),
            advertised: Some(&advertised),
            ..ScopeSources::default()
        };

        assert_eq!(sources.to_request(&server), Some(scopes("a")));
        let sources = ScopeSources {
            challenged: None,
            ..sources
        };
        assert_eq!(sources.to_request(&server), Some(scopes("a b")));
        assert_eq!(ScopeSources::default().to_request(&server), None);
    }

    #[test]
    fn configured_and_earlier_scopes_are_always_requested() {
        req!("auth.scope.keep");
        let [challenged, advertised, configured, previous] = ["w", "o", "c", "b"].map(scopes);
        let server = AuthorizationServer::default();
        let sources = ScopeSources {
            challenged: Some(&challenged),
            advertised: Some(&advertised),
            configured: Some(&configured),
            previous: Some(&previous),
        };

        assert_eq!(sources.to_request(&server), Some(scopes("b c w")));
        let sources = ScopeSources {
            challenged: None,
            previous: None,
            ..sources
        };
        assert_eq!(sources.to_request(&server), Some(scopes("c")));
    }

    #[test]
    fn offline_access_of_the_resource_server_is_ignored() {
        req!("auth.refresh.offline");
        let challenged =
            challenge_scopes(&[Challenge::bearer().scope(&scopes("a offline_access"))]);
        let sources = ScopeSources {
            challenged: challenged.as_ref(),
            ..ScopeSources::default()
        };
        let mut server = AuthorizationServer::default();

        assert_eq!(sources.to_request(&server), Some(scopes("a")));
        server.scopes_supported = vec!["offline_access".to_owned()];
        assert_eq!(
            sources.to_request(&server),
            Some(scopes("a offline_access"))
        );
    }

    #[test]
    fn a_challenge_of_another_scheme_or_without_scope_adds_no_scopes() {
        let read = |header: &str| challenge_scopes(&Challenge::parse(header).unwrap());

        let header = r#"Basic scope="x", Bearer scope="a""#;
        assert_eq!(read(header), Some(scopes("a")));
        for header in [
            "Bearer",
            r#"Bearer scope="""#,
            r#"Basic scope="a""#,
            r#"Bearer scope="a\"b""#,
        ] {
            assert_eq!(read(header), None, "{header}");
        }
    }
}
