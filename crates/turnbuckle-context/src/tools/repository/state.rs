//! What an index has, and how true it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Database;
use crate::answer::{plural, time};
use crate::desk::Desk;
use crate::index::{self, Freshness, Tree};

/// How long a refresh may go on when nobody waits for it.
const AFTERWARDS: Duration = Duration::from_secs(120);

/// How true an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(in crate::tools) enum State {
    Fresh,
    Stale,
    /// Too many files to look at in time: as of `refreshed_at`.
    Unchecked,
}

// What is told of an index.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(in crate::tools) struct IndexState {
    root: String,
    branch: String,
    files: u64,
    chunks: u64,
    state: State,
    #[serde(skip_serializing_if = "is_zero")]
    stale_files: u64,
    refreshed_at: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<&'static str, u64>,
}

impl IndexState {
    pub(in crate::tools) fn of(tree: &Tree, freshness: Freshness) -> Self {
        let (state, stale_files) = match freshness {
            Freshness::Fresh => (State::Fresh, 0),
            Freshness::Stale(files) => (State::Stale, files),
            Freshness::Unknown => (State::Unchecked, 0),
        };
        Self {
            root: tree.root.to_string_lossy().into_owned(),
            branch: tree.branch.clone(),
            files: tree.counts.files,
            chunks: tree.counts.chunks,
            state,
            stale_files,
            refreshed_at: time(tree.refreshed),
            left_out: left_out(tree),
        }
    }

    pub(in crate::tools) fn state(&self) -> State {
        self.state
    }

    /// Why files are not in the index is told where one asks about the index, not with every search.
    pub(in crate::tools) fn without_reasons(mut self) -> Self {
        self.left_out.clear();
        self
    }

    /// `120 files, fresh`, and how to go on if it is not.
    pub(in crate::tools) fn text(&self) -> String {
        let files = plural(usize::try_from(self.files).unwrap_or(usize::MAX), "file");
        match self.state {
            State::Fresh => format!("{files}, fresh"),
            State::Stale => format!(
                "{files}; {} changed since and are being read",
                self.stale_files
            ),
            State::Unchecked => format!(
                "{files}, as of {}; being brought up to date",
                self.refreshed_at
            ),
        }
    }
}

impl IndexState {
    /// The same with the folder and what is not in the index.
    pub(in crate::tools) fn full_text(&self) -> String {
        let Self { root, chunks, .. } = self;
        let reasons = self.left_out.iter();
        let reasons: Vec<_> = reasons
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        let left_out = match reasons.is_empty() {
            true => String::new(),
            false => format!(" (left out: {})", reasons.join(", ")),
        };
        format!("{root}: {}, {chunks} chunks{left_out}", self.text())
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
pub(in crate::tools) fn catch_up(desk: &Desk, database: &Arc<Database>, tree: Tree) {
    let Some(turn) = desk.take_turn(&tree.root) else {
        return;
    };
    let (desk, database) = (desk.clone(), database.clone());
    tokio::spawn(async move {
        let work = desk.block_long(move |desk| {
            let _turn = turn;
            index::refresh(&database, &tree, index::Redactor::standard(), AFTERWARDS)
        });
        if let Err(error) = work.await {
            tracing::warn!(%error, "an index could not be brought up to date");
        }
    });
}
