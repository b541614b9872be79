//! How many files and connections the server may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// What macOS grants at most, whatever the hard limit says.
const MODEST: u64 = 10_240;

/// Raises the limit as far as the system lets us. Where it does not, the server makes do with what there is.
pub(super) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    for wanted in [limit.maximum, Some(MODEST)] {
        let mut raised = limit;
        raised.current = wanted;
        let is_more = match (limit.current, wanted) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(current), Some(wanted)) => wanted > current,
        };
        if !is_more || setrlimit(Resource::Nofile, raised).is_ok() {
            return;
        }
    }
    tracing::debug!(current = ?limit.current, "the limit of open files stays as it is");
}
