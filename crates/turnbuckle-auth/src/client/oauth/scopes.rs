//! What to ask for.

use crate::{AuthorizationServer, Challenge, Scopes, client::authorization::with_offline_access};

/// What brings refresh tokens; nothing that a resource has a say in.
const OFFLINE: &str = "offline_access";

/// What is known about the scopes of a login.
#[derive(Clone, Copy, Default)]
pub(super) struct Known<'a> {
    /// What the server wants for the request that it refused.
    pub(super) wanted: Option<&'a Scopes>,
    /// All that the server says it has.
    pub(super) offered: Option<&'a Scopes>,
    /// What the user wants in any case.
    pub(super) configured: Option<&'a Scopes>,
    /// What was asked for before.
    pub(super) before: Option<&'a Scopes>,
}

impl Known<'_> {
    /// Returns what to ask for; nothing if the choice is left to the authorization server.
    ///
    /// What the server wants comes before all that it offers. What was configured, and what was asked for before, is asked
    /// for in any case.
    pub(super) fn to_ask_for(self, server: &AuthorizationServer) -> Option<Scopes> {
        let offered = self.offered.map(without_offline);
        let first = self.wanted.or(self.configured).or(offered.as_ref());
        let all = [first, self.configured, self.before].into_iter().flatten();
        let all = all.cloned().reduce(|all, more| all.union(&more));
        with_offline_access(all.filter(|all| !all.is_empty()), server)
    }
}

/// Returns what the server wants a token to be good for, as far as it can be understood.
pub(super) fn challenged(challenges: &[Challenge]) -> Option<Scopes> {
    let scopes = ours(challenges).find_map(|challenge| challenge.parameter("scope"))?;
    let scopes = without_offline(&scopes.parse().ok()?);
    (!scopes.is_empty()).then_some(scopes)
}

/// Returns the first error that the server names.
pub(super) fn error(challenges: &[Challenge]) -> Option<&str> {
    ours(challenges).find_map(|challenge| challenge.parameter("error"))
}

fn without_offline(scopes: &Scopes) -> Scopes {
    let others = scopes.iter().filter(|scope| *scope != OFFLINE);
    others.map(str::to_owned).collect()
}

fn ours(challenges: &[Challenge]) -> impl Iterator<Item = &Challenge> {
    let is_ours = |challenge: &&Challenge| challenge.is("Bearer") || challenge.is("DPoP");
    challenges.iter().filter(is_ours)
}

#[cfg(test)]
mod tests {
    use turnbuckle_ledger::req;

    use super::*;

    fn scopes(text: &str) -> Scopes {
        text.parse().unwrap()
    }

    #[test]
    fn what_the_server_wants_comes_before_what_it_offers() {
        req!("auth.scope.order");
        req!("auth.scope.least");
        let (wanted, offered) = (scopes("a"), scopes("a b offline_access"));
        let server = AuthorizationServer::default();
        let known = Known {
            wanted: Some(&wanted),
            offered: Some(&offered),
            ..Known::default()
        };

        assert_eq!(known.to_ask_for(&server), Some(scopes("a")));
        let known = Known {
            wanted: None,
            ..known
        };
        assert_eq!(known.to_ask_for(&server), Some(scopes("a b")));
        assert_eq!(Known::default().to_ask_for(&server), None);
    }

    #[test]
    fn what_was_configured_or_asked_for_before_is_asked_for_in_any_case() {
        req!("auth.scope.keep");
        let [wanted, offered, configured, before] = ["w", "o", "c", "b"].map(scopes);
        let server = AuthorizationServer::default();
        let known = Known {
            wanted: Some(&wanted),
            offered: Some(&offered),
            configured: Some(&configured),
            before: Some(&before),
        };

        assert_eq!(known.to_ask_for(&server), Some(scopes("b c w")));
        let known = Known {
            wanted: None,
            before: None,
            ..known
        };
        assert_eq!(known.to_ask_for(&server), Some(scopes("c")));
    }

    #[test]
    fn offline_access_is_for_the_authorization_server_to_offer() {
        req!("auth.refresh.offline");
        let wanted = challenged(&[Challenge::bearer().scope(&scopes("a offline_access"))]);
        let known = Known {
            wanted: wanted.as_ref(),
            ..Known::default()
        };
        let mut server = AuthorizationServer::default();

        assert_eq!(known.to_ask_for(&server), Some(scopes("a")));
        server.scopes_supported = vec!["offline_access".to_owned()];
        assert_eq!(known.to_ask_for(&server), Some(scopes("a offline_access")));
    }

    #[test]
    fn a_challenge_of_another_scheme_or_with_no_scope_in_it_wants_nothing() {
        let read = |header: &str| challenged(&Challenge::parse(header).unwrap());

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
