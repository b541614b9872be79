//! What an index has, and how true it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{plural, time, visible};
use crate::desk::Desk;
use crate::index::{self, Freshness, Tree};
use crate::{Database, Owner};

/// How long a refresh may go on when nobody waits for it.
const AFTERWARDS: Duration = Duration::from_secs(120);

// How true an index is. Unchecked: too many files to look at in time, so it is as of `refreshed_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(in crate::tools) enum State {
    Fresh,
    Stale,
    Unchecked,
}

// What is told of an index with every search.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(in crate::tools) struct IndexState {
    branch: String,
    files: u64,
    state: State,
    #[serde(skip_serializing_if = "is_zero")]
    stale_files: u64,
    refreshed_at: String,
    /// It stays as it is, because its owner may keep no more.
    #[serde(skip)]
    is_full: bool,
}

impl IndexState {
    pub(in crate::tools) fn of(tree: &Tree, freshness: Freshness) -> Self {
        let (state, stale_files) = match freshness {
            Freshness::Fresh => (State::Fresh, 0),
            Freshness::Stale(files) => (State::Stale, files),
            Freshness::Unknown => (State::Unchecked, 0),
        };
        Self {
            branch: tree.branch.clone(),
            files: tree.counts.files,
            state,
            stale_files,
            refreshed_at: time(tree.refreshed),
            is_full: false,
        }
    }

    /// Notes whether its owner may keep no more, so that it is not brought up to date.
    pub(in crate::tools) fn full(mut self, is_full: bool) -> Self {
        self.is_full = is_full;
        self
    }

    pub(in crate::tools) fn state(&self) -> State {
        self.state
    }

    /// `120 files, fresh`, or how old it is.
    pub(in crate::tools) fn text(&self) -> String {
        let files = plural(usize::try_from(self.files).unwrap_or(usize::MAX), "file");
        let (stale, at) = (self.stale_files, &self.refreshed_at);
        match self.state {
            State::Fresh => format!("{files}, fresh"),
            State::Stale | State::Unchecked if self.is_full => {
                format!(
                    "{files}, as of {at}; not brought up to date: your data has reached its limit"
                )
            }
            State::Stale => format!("{files}; {stale} changed since and are being read"),
            State::Unchecked => format!("{files}, as of {at}; being brought up to date"),
        }
    }
}

// What is told of an index to who asks about it.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(in crate::tools) struct IndexDetails {
    root: String,
    chunks: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    state: IndexState,
}

impl IndexDetails {
    pub(in crate::tools) fn of(tree: &Tree, freshness: Freshness) -> Self {
        Self {
            root: tree.root.to_string_lossy().into_owned(),
            chunks: tree.counts.chunks,
            left_out: left_out(tree),
            state: IndexState::of(tree, freshness),
        }
    }

    pub(in crate::tools) fn text(&self) -> String {
        let Self {
            root,
            chunks,
            state,
            ..
        } = self;
        let root = visible(root);
        let reasons = self.left_out.iter();
        let reasons = reasons.map(|(reason, count)| format!("{count} {reason}"));
        let left_out = match reasons.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => none,
            reasons => format!(" (left out: {reasons})"),
        };
        format!("{root}: {}, {chunks} chunks{left_out}", state.text())
    }
}

/// How many files were left out, by the reason.
pub(super) fn left_out(tree: &Tree) -> BTreeMap<&'static str, u64> {
    let tally = tree.counts.left_out.iter();
    tally
        .map(|(reason, count)| (reason.as_str(), *count))
        .collect()
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Reads the rest of what a refresh had no time for, while nobody waits.
pub(in crate::tools) fn catch_up(desk: &Desk, owner: &Owner, database: &Arc<Database>, tree: Tree) {
    let Some(turn) = desk.take_turn(&tree.root) else {
        return;
    };
    let (desk, owner, database) = (desk.clone(), owner.clone(), database.clone());
    tokio::spawn(async move {
        let whose = owner.clone();
        let work = desk.block_long(&owner, move |desk, _| {
            let _turn = turn;
            let folder = desk.library().open_folder(&tree.root)?;
            let redactor = desk.redactor();
            let mut go_on = desk.room_watch(&whose);
            index::refresh_folder(&database, &folder, &tree, redactor, AFTERWARDS, &mut go_on)
        });
        if let Err(error) = work.await {
            tracing::warn!(%error, "an index could not be brought up to date");
        }
    });
}
