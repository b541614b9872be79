//! Changes of lists: one new list per burst of notifications, and clients get a notification only if they would see a
//! difference on the connection that they use.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{task::JoinSet, time::Instant};
use turnbuckle_server::relay::ChangeTarget;

use crate::{
    convert::ListKind,
    gateway::{GatewayState, SERVER_TIMEOUT},
    lock,
    upstream::{
        UpstreamServer,
        list_cache::{ServerList, ShownList},
    },
};

/// Time without another change that ends a burst.
const QUIET_TIME: Duration = Duration::from_millis(100);
/// Maximum time from the first change of a burst to its end.
const MAX_BURST_TIME: Duration = Duration::from_secs(1);

/// The changes that have not been announced yet. Resources and templates are announced together.
#[derive(Default)]
pub(crate) struct ChangeBursts {
    kinds: [Mutex<Burst>; 3],
}

#[derive(Default)]
struct Burst {
    changes: Vec<ListChange>,
    /// The times of the first and the last change.
    times: Option<(Instant, Instant)>,
    is_running: bool,
}

/// A list of a server that may have changed.
struct ListChange {
    server: Arc<UpstreamServer>,
    kind: ListKind,
    /// Whether the server said so; otherwise it was connected again, or is down.
    is_announced: bool,
    /// The clients for which it may have changed.
    target: ChangeTarget,
}

/// A server, and the clients that see a difference in its list.
type VisibleChange = (Arc<UpstreamServer>, HashSet<ChangeTarget>);

fn announced_as(kind: ListKind) -> ListKind {
    match kind {
        ListKind::Templates => ListKind::Resources,
        kind => kind,
    }
}

impl GatewayState {
    /// Notes that a list of a server may have changed, and announces it at the end of the burst.
    pub(crate) fn note_change(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        kind: ListKind,
        is_announced: bool,
        target: &ChangeTarget,
    ) {
        self.invalidate(server, kind);
        let group = announced_as(kind);
        let mut burst = lock(&self.catalog.bursts.kinds[group as usize]);
        let now = Instant::now();
        let first = burst.times.map_or(now, |(first, _)| first);
        burst.times = Some((first, now));
        let known = burst.changes.iter_mut().find(|change| {
            change.kind == kind && change.target == *target && Arc::ptr_eq(&change.server, server)
        });
        match known {
            Some(change) => change.is_announced |= is_announced,
            None => burst.changes.push(ListChange {
                server: Arc::clone(server),
                kind,
                is_announced,
                target: target.clone(),
            }),
        }
        if !burst.is_running
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            burst.is_running = true;
            runtime.spawn(Arc::clone(self).run_bursts(group));
        }
    }

    /// Waits for the end of each burst, until there are no more changes.
    async fn run_bursts(self: Arc<Self>, group: ListKind) {
        let burst = &self.catalog.bursts.kinds[group as usize];
        loop {
            let end = {
                let mut burst = lock(burst);
                let Some((first, last)) = burst.times else {
                    burst.is_running = false;
                    return;
                };
                (first + MAX_BURST_TIME).min(last + QUIET_TIME)
            };
            if Instant::now() < end {
                tokio::time::sleep_until(end).await;
                continue;
            }
            let changes = {
                let mut burst = lock(burst);
                burst.times = None;
                std::mem::take(&mut burst.changes)
            };
            let changes = self.visible_changes(changes).await;
            for (server, targets) in &changes {
                for view in self.views.of_server(server) {
                    view.announce_to(group, targets);
                }
            }
            let all = changes.into_iter().flat_map(|(_, targets)| targets);
            self.announce_to(group, &all.collect());
        }
    }

    /// Returns the clients that would see a difference after some changes, for each server.
    async fn visible_changes(self: &Arc<Self>, changes: Vec<ListChange>) -> Vec<VisibleChange> {
        let mut checks = JoinSet::new();
        for change in changes {
            let state = Arc::clone(self);
            checks.spawn(async move {
                let targets = state.targets_of(&change).await;
                (change.server, targets)
            });
        }
        let mut visible: Vec<VisibleChange> = Vec::new();
        for (server, targets) in checks.join_all().await {
            match visible
                .iter_mut()
                .find(|(known, _)| Arc::ptr_eq(known, &server))
            {
                Some((_, known)) => known.extend(targets),
                None => visible.push((server, targets)),
            }
        }
        visible
    }

    /// Tells some clients that a list has changed, each of them once.
    fn announce_to(&self, kind: ListKind, targets: &HashSet<ChangeTarget>) {
        if targets.contains(&ChangeTarget::Everyone) {
            return self.announce(kind, ChangeTarget::Everyone);
        }
        for target in targets {
            self.announce(kind, target.clone());
        }
    }

    /// Requests a list again on the connections where it may have changed, and returns the clients that would see a
    /// difference.
    async fn targets_of(self: &Arc<Self>, change: &ListChange) -> HashSet<ChangeTarget> {
        let ListChange {
            server,
            kind,
            is_announced,
            target,
        } = change;
        let all_if = |visible: bool| visible.then(|| target.clone()).into_iter().collect();
        let shown = server.lists.shown(*kind);
        if !server.is_up() {
            let is_gone = self.servers().len() > 1
                && server
                    .down_time()
                    .is_some_and(|time| time >= super::server_states::DOWN_LIST_LIFETIME);
            let was_listed =
                matches!(&shown, ShownList::List(list) if has_items(server, *kind, list));
            if is_gone && was_listed {
                server.lists.set_shown(*kind, ShownList::Absent);
            }
            return all_if(is_gone && was_listed);
        }
        if matches!(shown, ShownList::Never) {
            // Nothing to compare with: another instance may have shown the list.
            return all_if(*is_announced);
        }
        let mut connections = self.pool.open_connections(server);
        if *target != ChangeTarget::Everyone {
            connections.retain(|connection| connection.change_target() == Some(target));
        }
        if connections.is_empty() {
            return all_if(*is_announced || matches!(shown, ShownList::Absent));
        }
        let mut checks = JoinSet::new();
        for connection in connections {
            let (server, shown, kind) = (Arc::clone(server), shown.clone(), *kind);
            checks.spawn(async move {
                let before = match (connection.lists().announced(kind), shown) {
                    (_, ShownList::Absent) => None,
                    (Some(before), _) | (None, ShownList::List(before)) => Some(before),
                    (None, ShownList::Never) => None,
                };
                let listed = tokio::time::timeout(SERVER_TIMEOUT, connection.list(kind)).await;
                let differs = match listed {
                    Ok(Ok(now)) => {
                        let differs = differs(&server, kind, before.as_deref(), &now.list);
                        connection.lists().set_announced(kind, now.list);
                        differs
                    }
                    // The list cannot be used, so it will be left out.
                    Ok(Err(_)) => before.is_some_and(|list| has_items(&server, kind, &list)),
                    Err(_) => false,
                };
                connection.change_target().filter(|_| differs).cloned()
            });
        }
        checks.join_all().await.into_iter().flatten().collect()
    }
}

fn visible<'a>(
    server: &'a UpstreamServer,
    kind: ListKind,
    list: &'a ServerList,
) -> impl Iterator<Item = &'a crate::upstream::list_cache::ListItem> {
    list.items
        .iter()
        .filter(move |item| server.permits(kind, item))
}

fn has_items(server: &UpstreamServer, kind: ListKind, list: &ServerList) -> bool {
    visible(server, kind, list).next().is_some()
}

/// Returns whether clients see a difference between two lists. Further pages of resources are not known.
fn differs(
    server: &UpstreamServer,
    kind: ListKind,
    before: Option<&ServerList>,
    now: &ServerList,
) -> bool {
    match before {
        None => has_items(server, kind, now) || !now.is_complete,
        Some(before) => {
            let is_same =
                before.id == now.id || visible(server, kind, before).eq(visible(server, kind, now));
            !is_same || !now.is_complete
        }
    }
}
