//! The connections that are open, and which of them ends when there are too many.

use std::{collections::HashMap, sync::Arc};

use tokio::task::{AbortHandle, Id, JoinSet};

use super::activity::Activity;

/// How many connections are chosen at once, so that not all of them are looked at for each that has to end.
const CHOSEN: usize = 64;

/// All open connections of a listener.
#[derive(Default)]
pub(super) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, Open>,
    /// Connections that were idle for longest when they were last looked at, the longest at the end.
    chosen: Vec<(u64, Id)>,
}

struct Open {
    task: AbortHandle,
    activity: Arc<Activity>,
}

impl Connections {
    /// Serves a connection.
    pub(super) fn spawn(
        &mut self,
        activity: Arc<Activity>,
        serving: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(serving);
        self.open.insert(task.id(), Open { task, activity });
    }

    /// Returns how many are open.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Waits until one ends; `None` if there is none.
    pub(super) async fn next_ended(&mut self) -> Option<()> {
        let id = match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => id,
            Err(error) => error.id(),
        };
        self.open.remove(&id);
        Some(())
    }

    /// Closes the connection that waits for a request since longest; says whether there was one.
    pub(super) fn close_idlest(&mut self) -> bool {
        if self.close_chosen() {
            return true;
        }
        self.choose();
        self.close_chosen()
    }

    fn close_chosen(&mut self) -> bool {
        while let Some((since, id)) = self.chosen.pop() {
            let is_idle = |open: &Open| open.activity.idle_since() == Some(since);
            if self.open.get(&id).is_some_and(is_idle)
                && let Some(open) = self.open.remove(&id)
            {
                open.task.abort();
                return true;
            }
        }
        false
    }

    fn choose(&mut self) {
        let since = |(id, open): (&Id, &Open)| Some((open.activity.idle_since()?, *id));
        let mut idle: Vec<_> = self.open.iter().filter_map(since).collect();
        if idle.len() > CHOSEN {
            idle.select_nth_unstable_by_key(CHOSEN, |(since, _)| *since);
            idle.truncate(CHOSEN);
        }
        idle.sort_unstable_by_key(|(since, _)| std::cmp::Reverse(*since));
        self.chosen = idle;
    }
}
