//! The tool lock of a server: definitions that differ from the accepted ones are left out of lists and not called.
//!
//! A list is compared when it is received, before it is kept, so that nothing else sees a definition that differs. A
//! call is compared with the definition that the server listed last, on any connection.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use serde_json::json;
use tokio::time::Instant;
use turnbuckle_client::tool_lock::{DefinitionDigests, DefinitionKind, LockState, ServerLock};
use turnbuckle_protocol::RpcError;
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    convert::ListKind,
    gateway::GatewayState,
    lock,
    observation::{Outcome, observe},
    upstream::{Upstream, UpstreamServer, list_cache::ListItem},
};

/// How definitions of a server are locked.
#[derive(Clone, Debug, Default)]
pub(crate) enum LockMode {
    #[default]
    Unlocked,
    /// To these definitions.
    Locked(Arc<ServerLock>),
    /// To those that are listed first.
    AsListed,
}

/// The tool lock of a server.
pub(crate) struct ToolLock {
    is_set: bool,
    locks_instructions: bool,
    allows_added: bool,
    table: Mutex<LockTable>,
}

struct LockTable {
    lock: ServerLock,
    /// The kinds that are locked when they are listed.
    unlocked: HashSet<DefinitionKind>,
    listed: HashMap<DefinitionKind, ListedDefinitions>,
}

/// Maximum number of definitions of a list that are known.
const MAX_LISTED: usize = 100_000;

/// The place of a page in its list.
#[derive(Clone, Copy)]
pub(crate) struct PagePosition {
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

/// The definitions of the last list.
#[derive(Default)]
struct ListedDefinitions {
    states: HashMap<String, LockState>,
    expires: Option<Instant>,
}

impl ToolLock {
    pub(crate) fn new(settings: &Upstream) -> Self {
        let (lock, unlocked) = match &settings.lock {
            LockMode::Unlocked => (ServerLock::new(), HashSet::new()),
            LockMode::Locked(lock) => ((**lock).clone(), HashSet::new()),
            LockMode::AsListed => (ServerLock::new(), DefinitionKind::ALL.into()),
        };
        Self {
            is_set: !matches!(settings.lock, LockMode::Unlocked),
            locks_instructions: matches!(settings.lock, LockMode::Locked(_)),
            allows_added: settings.allows_added,
            table: Mutex::new(LockTable {
                lock,
                unlocked,
                listed: HashMap::new(),
            }),
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set
    }

    /// Returns the lock, and whether all kinds of definitions are locked.
    pub(crate) fn current(&self) -> (ServerLock, bool) {
        let table = lock(&self.table);
        (table.lock.clone(), table.unlocked.is_empty())
    }

    /// Compares a page of a list with the lock, and removes what differs.
    pub(crate) fn filter(
        &self,
        kind: ListKind,
        items: Vec<ListItem>,
        position: PagePosition,
    ) -> Vec<ListItem> {
        let Some(kind) = definition_kind(kind).filter(|_| self.is_set) else {
            return items;
        };
        let digests: Vec<_> = items.iter().map(|item| digests(kind, item)).collect();
        let mut table = lock(&self.table);
        if table.unlocked.contains(&kind) {
            for (item, digests) in items.iter().zip(&digests) {
                if let Some(digests) = digests {
                    table.lock.insert(kind, &*item.name, digests.clone());
                }
            }
        }
        if position.is_last {
            table.unlocked.remove(&kind);
        }
        let mut states = HashMap::new();
        for (item, digests) in items.iter().zip(&digests) {
            let state = match digests {
                Some(digests) => table.lock.state(kind, &item.name, digests),
                None => LockState::Changed(vec!["other"]),
            };
            let known = states.entry(item.name.clone()).or_insert(LockState::Same);
            // Of two definitions with one name, the one that differs counts.
            if *known == LockState::Same {
                *known = state;
            }
        }
        let kept = items
            .into_iter()
            .filter(|item| self.accepts(&states[&item.name]))
            .collect();
        let listed = table.listed.entry(kind).or_default();
        if position.is_first {
            listed.states.clear();
        }
        // Further pages are requested by clients.
        if listed.states.len() < MAX_LISTED {
            listed.states.extend(states);
        }
        kept
    }

    /// Notes until when the comparison of a list is valid, unless the list changes.
    pub(crate) fn listed(&self, kind: ListKind, expires: Option<Instant>) {
        if let Some(kind) = definition_kind(kind).filter(|_| self.is_set) {
            lock(&self.table).listed.entry(kind).or_default().expires = expires;
        }
    }

    /// Forgets a list, because it has changed.
    pub(crate) fn expire(&self, kind: ListKind) {
        if let Some(kind) = definition_kind(kind)
            && let Some(listed) = lock(&self.table).listed.get_mut(&kind)
        {
            listed.expires = Some(Instant::now());
        }
    }

    /// Forgets all lists, because nothing announces their changes any more.
    pub(crate) fn connection_ended(&self) {
        ListKind::ALL.into_iter().for_each(|kind| self.expire(kind));
    }

    /// Returns the names of the definitions that differ.
    pub(crate) fn differing_names(&self, kind: ListKind) -> Vec<String> {
        let Some(kind) = definition_kind(kind).filter(|_| self.is_set) else {
            return Vec::new();
        };
        let table = lock(&self.table);
        let states = table.listed.get(&kind).into_iter();
        let differing = states
            .flat_map(|listed| &listed.states)
            .filter(|(_, state)| !self.accepts(state));
        let mut names: Vec<_> = differing.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the number of definitions that differ.
    pub(crate) fn differing(&self) -> usize {
        let table = lock(&self.table);
        let states = table
            .listed
            .values()
            .flat_map(|listed| listed.states.values());
        states.filter(|state| !self.accepts(state)).count()
    }

    /// Returns whether instructions for models may be shown.
    pub(crate) fn accepts_instructions(&self, instructions: &str) -> bool {
        !self.locks_instructions || lock(&self.table).lock.has_instructions(instructions)
    }

    /// Returns the state of a definition, and whether the list that it was in is current.
    fn state(&self, kind: DefinitionKind, name: &str) -> (Option<LockState>, bool) {
        let table = lock(&self.table);
        let Some(listed) = table.listed.get(&kind) else {
            return (None, false);
        };
        let is_current = listed.expires.is_none_or(|at| Instant::now() < at);
        (listed.states.get(name).cloned(), is_current)
    }

    fn accepts(&self, state: &LockState) -> bool {
        match state {
            LockState::Same => true,
            LockState::Added => self.allows_added,
            LockState::Changed(_) => false,
        }
    }
}

impl GatewayState {
    /// Checks that the definition of an item is the accepted one. Lists the definitions first if they may have changed.
    pub(crate) async fn check_lock(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        kind: ListKind,
        original: &str,
        request: &RelayedRequest,
    ) -> Result<(), RpcError> {
        let tool_lock = &server.tool_lock;
        let Some(definition) = definition_kind(kind).filter(|_| tool_lock.is_set) else {
            return Ok(());
        };
        let (mut state, is_current) = tool_lock.state(definition, original);
        if state.is_none() || !is_current {
            let current = self.list_of(server, kind, request).await?;
            state = tool_lock.state(definition, original).0;
            // Callers may have different lists: this one is that of the caller.
            let mut items = current.list.items.iter();
            if state.is_none() && items.any(|item| item.name == original) {
                return Ok(());
            }
        }
        let reason = match state {
            Some(state) if tool_lock.accepts(&state) => return Ok(()),
            Some(LockState::Changed(members)) => {
                format!("has changed since it was locked: {}", members.join(", "))
            }
            Some(_) => "is not in the tool lock".to_owned(),
            None => "is not listed, so that it cannot be compared with the tool lock".to_owned(),
        };
        observe(request, |record| record.set_refusal(Outcome::Locked));
        let (name, item) = (server.name(), definition.as_str());
        let message = format!(
            "{item} `{original}` of server `{name}` {reason}; after a review, `--lock-update` accepts it"
        );
        tracing::warn!(server = name, item = original, %message, "a locked item was refused");
        let data = json!({ "server": name, "kind": "locked", "effect": "none" });
        Err(RpcError::internal(message).with_data(data))
    }
}

/// Returns what is locked of a list: resources are content, and not locked.
fn definition_kind(kind: ListKind) -> Option<DefinitionKind> {
    match kind {
        ListKind::Tools => Some(DefinitionKind::Tool),
        ListKind::Prompts => Some(DefinitionKind::Prompt),
        ListKind::Templates => Some(DefinitionKind::Template),
        ListKind::Resources => None,
    }
}

/// Returns the digests of an item, or `None` if its JSON cannot be read.
fn digests(kind: DefinitionKind, item: &ListItem) -> Option<DefinitionDigests> {
    let definition = serde_json::from_str(&item.json).ok()?;
    Some(DefinitionDigests::new(kind, &definition))
}
