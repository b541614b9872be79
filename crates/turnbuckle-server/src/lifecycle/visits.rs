//! Which URL visits a session was asked for and has not been told the end of.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// Visits that are remembered; of older ones the client is not told.
const MOST: usize = 64;

/// The open visits of one session, oldest first.
#[derive(Default)]
pub(crate) struct Visits {
    open: Mutex<VecDeque<String>>,
}

impl Visits {
    /// Notes that the client is asked for a visit.
    pub(crate) fn begin(&self, id: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() == MOST {
            open.pop_front();
        }
        open.push_back(id.to_owned());
    }

    /// Forgets a visit; says whether this client was asked for it.
    pub(crate) fn end(&self, id: &str) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().position(|known| known == id);
        at.and_then(|at| open.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_ends_once_and_only_where_it_began() {
        let visits = Visits::default();
        visits.begin("a");

        assert!(!visits.end("b"));
        assert!(visits.end("a"));
        assert!(!visits.end("a"));
    }

    #[test]
    fn visits_that_never_end_are_forgotten() {
        let visits = Visits::default();
        for id in 0..=MOST {
            visits.begin(&id.to_string());
        }

        assert!(!visits.end("0"));
        assert!(visits.end("1"));
        assert!(visits.end(&MOST.to_string()));
    }
}
