//! Repositories: their index, and the search in it.

mod begun;
mod index;
mod search;
mod state;

use turnbuckle_server::{TaskSupport, Tool};

pub(super) use self::state::IndexDetails;
use super::tool;
use crate::desk::AppState;

pub(super) fn tools(state: &AppState) -> Vec<Tool> {
    vec![
        tool(state, "index_repository", "Index repository", index::index)
            .description("Index a folder for repository_search. Only changed files are read again.")
            .destructive(false)
            .idempotent()
            .task(TaskSupport::Optional),
        tool(
            state,
            "repository_search",
            "Search repository",
            search::search,
        )
        .description("Find code and text in a repository by words, names or a question.")
        .read_only()
        .destructive(false)
        .idempotent(),
    ]
}
