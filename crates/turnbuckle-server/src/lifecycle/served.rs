//! The eras that a server serves.

use turnbuckle_protocol::Revision;

/// The eras of the protocol that a server serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServedEras {
    /// Every client is served in its own revision.
    #[default]
    Both,
    /// Only sessions that begin with `initialize`.
    Legacy,
    /// Only stateless requests.
    Modern,
}

impl ServedEras {
    /// Returns whether clients can begin sessions.
    pub(super) fn has_sessions(self) -> bool {
        self != Self::Modern
    }

    /// Returns whether clients can send stateless requests.
    pub(super) fn has_stateless_requests(self) -> bool {
        self != Self::Legacy
    }

    /// Returns the names of the revisions, oldest first.
    pub(super) fn revisions(self) -> Vec<&'static str> {
        let all = Revision::ALL.into_iter();
        let served = all.filter(|revision| {
            if revision.is_stateless() {
                self.has_stateless_requests()
            } else {
                self.has_sessions()
            }
        });
        served.map(Revision::as_str).collect()
    }
}
