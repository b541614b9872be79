//! Repositories: their index, and the search in it.

mod begun;
mod index;
mod search;
mod state;

use turnbuckle_server::{TaskSupport, Tool};

pub(super) use self::state::IndexDetails;
use super::tool;
use crate::desk::Desk;

pub(super) fn tools(desk: &Desk) -> Vec<Tool> {
    vec![
        tool(desk, "index_repository", "Index repository", index::index)
            .description("Index a folder for repository_search. Only changed files are read again.")
            .destructive(false)
            .idempotent()
            .task(TaskSupport::Optional),
        tool(
            desk,
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
