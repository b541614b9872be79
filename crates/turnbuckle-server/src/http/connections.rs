//! The connections that are open, and which of them ends when there are too many.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{
    task::{AbortHandle, Id, JoinSet},
    time::Instant,
};

use super::activity::Activity;

/// How many connections are chosen at once, so that not all of them are looked at for each that has to end.
const CHOSEN: usize = 64;

/// How long after none was idle all of them are looked at again, so that this is not done for each connection that is refused.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// All open connections of a listener.
#[derive(Default)]
pub(super) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, Open>,
    /// Connections that were idle for longest when they were last looked at, the longest at the end.
    chosen: Vec<(u64, Id)>,
    /// None was idle a moment ago: until then they are not looked at again.
    none_idle_until: Option<Instant>,
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
        let now = Instant::now();
        if self.none_idle_until.is_some_and(|until| now < until) {
            return false;
        }
        self.choose();
        let has_closed = self.close_chosen();
        self.none_idle_until = (!has_closed).then(|| now + LOOK_AGAIN);
        has_closed
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_are_not_looked_at_for_each_that_is_refused() {
        let mut connections = Connections::default();
        let activity = Arc::new(Activity::new(Instant::now()));
        activity.begin();
        connections.spawn(activity.clone(), std::future::pending());
        assert!(!connections.close_idlest());
        activity.wait(Instant::now());

        assert!(!connections.close_idlest(), "it was just looked at");

        tokio::time::advance(LOOK_AGAIN).await;
        assert!(connections.close_idlest());
        assert_eq!(connections.len(), 0);
    }
}
