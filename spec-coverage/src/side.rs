//! The two sides of a connection: which one a requirement binds, and which one a test proves.

use std::fmt;

use crate::{report::TestName, table::Requirement};

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The server.
    Server,
    /// The client.
    Client,
}

impl Side {
    /// Both sides.
    pub const ALL: [Self; 2] = [Self::Server, Self::Client];

    /// Returns whether a requirement binds this side.
    pub fn is_bound_by(self, row: &Requirement) -> bool {
        match row.role {
            "both" => true,
            "server" => self == Self::Server,
            "client" => self == Self::Client,
            _ => false,
        }
    }

    /// Returns whether a test counts for this side. A test of a package that [`sides_of`] does not list counts for none.
    pub fn is_tested_by(self, test: &TestName) -> bool {
        sides_of(test).is_some_and(|sides| sides.contains(&self))
    }
}

/// Returns the sides that a test counts for, or `None` if its package is not in this table.
///
/// Both sides use the protocol and schema crates, so tests of those count for both. So do tests of authorization outside of the
/// `client` and `server` modules.
pub fn sides_of(test: &TestName) -> Option<&'static [Side]> {
    Some(match test.package() {
        "turnbuckle-protocol" | "turnbuckle-schema" => &Side::ALL,
        "turnbuckle-client" => &[Side::Client],
        "turnbuckle-server" | "turnbuckle-conformance" => &[Side::Server],
        "turnbuckle-auth" => match test.test.split("::").next() {
            Some("client") => &[Side::Client],
            Some("server") => &[Side::Server],
            _ => &Side::ALL,
        },
        _ => return None,
    })
}

/// Returns whether a test proves a requirement in every revision that names it, because its package behaves the same in all of them.
///
/// `arch-tests/` checks that the sources of these packages compare no revisions.
pub fn is_revision_independent(test: &TestName) -> bool {
    REVISION_INDEPENDENT.contains(&test.package())
}

/// The packages that behave the same in every revision.
pub const REVISION_INDEPENDENT: [&str; 2] = ["turnbuckle-auth", "turnbuckle-schema"];

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_counts_for_the_side_of_its_package() {
        let sides = |binary| {
            let test = TestName::new(binary, "a_test");
            Side::ALL.map(|side| side.is_tested_by(&test))
        };

        assert_eq!(sides("turnbuckle-server::it"), [true, false]);
        assert_eq!(sides("turnbuckle-conformance::it"), [true, false]);
        assert_eq!(sides("turnbuckle-client"), [false, true]);
        assert_eq!(sides("turnbuckle-client::it"), [false, true]);
        assert_eq!(sides("turnbuckle-protocol::it"), [true, true]);
        assert_eq!(sides("turnbuckle-schema"), [true, true]);
    }

    #[test]
    fn a_test_of_an_unlisted_package_counts_for_no_side() {
        let test = TestName::new("a-new-package::it", "a_test");

        assert_eq!(sides_of(&test), None);
        assert_eq!(Side::ALL.map(|side| side.is_tested_by(&test)), [false; 2]);
    }

    #[test]
    fn a_test_of_authorization_counts_for_the_side_of_its_module() {
        let sides = |test| {
            let test = TestName::new("turnbuckle-auth", test);
            Side::ALL.map(|side| side.is_tested_by(&test))
        };

        assert_eq!(sides("client::token::tests::a_test"), [false, true]);
        assert_eq!(sides("server::tests::a_test"), [true, false]);
        assert_eq!(sides("challenge::tests::a_test"), [true, true]);
    }
}
