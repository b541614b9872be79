//! What the tools of all three kinds of memory do alike: save, tell of it, and page through what is found.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::Context;

use crate::{
    ContextError, Database, Owner, Project,
    app_state::AppState,
    embedding::service::EmbeddingStatus,
    mcp::{display::plural, search_cursor::SearchCursor, tool_response::ResponseOptions},
    memory,
    memory::{ItemKind, MemoryHit, MemoryQuery, NewItem, SaveOutcome},
};

// What is told of everything that was saved.
#[derive(Serialize, JsonSchema)]
pub(super) struct SaveResponse {
    operation_id: String,
    status: &'static str,
    /// False: it was there already.
    is_new: bool,
    /// Near duplicates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar_to: Vec<SimilarView>,
    /// Secrets taken out, by rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    redacted: BTreeMap<String, u32>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct SimilarView {
    id: String,
    title: String,
    similarity: f64,
}

/// Saves a draft in the memory of a project, or of all projects, and tells everyone who has to know.
pub(super) async fn save(
    state: &AppState,
    cx: &Context,
    project_path: Option<String>,
    new_item: NewItem,
) -> Result<(String, SaveResponse), ContextError> {
    let owner = state.owner(cx)?;
    let whose = owner.clone();
    let (saved, database) = state
        .run_write(&whose, move |state| {
            state.check_quota(&owner)?;
            let (new_item, database) = match project_path {
                Some(path) => {
                    let (project, database) = state.open(&owner, &path)?;
                    (new_item.branch(project.branch()), database)
                }
                None => (new_item, state.data_dir().open_shared(&owner)?),
            };
            let saved = memory::save(&database, state.redactor(), new_item)?;
            Ok((saved, database))
        })
        .await?;
    state.queue_embedding(&whose, &database);
    state.sync_resources(cx).await;
    log_notes(cx, &saved).await;
    Ok((saved.item.id.clone(), SaveResponse::from_outcome(&saved)))
}

/// Tells a client that listens what is odd about something that was saved.
async fn log_notes(cx: &Context, saved: &SaveOutcome) {
    let id = &saved.item.id;
    if !saved.redacted.is_empty() {
        let data =
            json!({ "message": "secrets were taken out", "id": id, "rules": saved.redacted });
        cx.log_as(LogLevel::Warning, Some("redaction"), data).await;
    }
    if let Some(similar) = saved.similar_to.first() {
        let data = json!({ "message": "much like something saved before", "id": id, "similar_to": similar.id });
        cx.log_as(LogLevel::Notice, Some("memory"), data).await;
    }
}

impl SaveResponse {
    fn from_outcome(saved: &SaveOutcome) -> Self {
        let similar = saved.similar_to.iter().map(|other| SimilarView {
            id: other.id.clone(),
            title: other.title.clone(),
            similarity: round_score(other.similarity),
        });
        Self {
            operation_id: saved.operation.clone(),
            status: "completed",
            is_new: saved.is_new,
            similar_to: similar.collect(),
            redacted: saved.redacted.clone(),
        }
    }

    /// `Saved …`, and what there is to say about it.
    pub(super) fn text(&self, what: &str, id: &str) -> String {
        let mut text = match self.is_new {
            true => format!("Saved {what} {id}."),
            false => format!("The same {what} was saved before: {id}."),
        };
        for similar in &self.similar_to {
            let SimilarView {
                id,
                title,
                similarity,
            } = similar;
            let _ = write!(text, "\nMuch like {id} ({similarity}): {title}");
        }
        if !self.redacted.is_empty() {
            let rules: Vec<_> = self.redacted.keys().map(String::as_str).collect();
            let count: u32 = self.redacted.values().sum();
            let count = plural(usize::try_from(count).unwrap_or(usize::MAX), "secret");
            let _ = write!(
                text,
                "\n{count} taken out before saving: {}.",
                rules.join(", ")
            );
        }
        text
    }
}

/// The longest question, in bytes.
pub(super) const MAX_QUERY_BYTES: usize = 4 * 1024;
/// The longest error message that is looked for, in bytes.
const MAX_ERROR_BYTES: usize = 16 * 1024;

/// Refuses an argument that is too long, and says how long it may be.
pub(super) fn check_length(name: &str, text: &str, most: usize) -> Result<(), ContextError> {
    match text.len() <= most {
        true => Ok(()),
        false => Err(ContextError::invalid(format!(
            "`{name}` has {} bytes, and {most} are allowed; ask with the words that matter",
            text.len()
        ))),
    }
}

/// What a search in memory asks for.
pub(super) struct MemorySearch<'a> {
    pub(super) kind: ItemKind,
    pub(super) text: String,
    pub(super) limit: usize,
    pub(super) project_path: Option<String>,
    pub(super) response: &'a ResponseOptions,
}

/// Hits from the place that the cursor names, and whether there are more.
pub(super) struct MemoryMatches {
    pub(super) hits: Vec<MemoryHit>,
    pub(super) cursor: SearchCursor,
    /// Items that are known to be there, with those before the place.
    known: usize,
    pub(super) embeddings: EmbeddingStatus,
    /// The project's folder, if one was asked about.
    pub(super) root: Option<String>,
}

/// Looks for what was saved. With a project its memory is searched; what all projects share is searched for all but
/// checkpoints, which belong to one.
pub(super) async fn search(
    state: &AppState,
    cx: &Context,
    search: MemorySearch<'_>,
) -> Result<MemoryMatches, ContextError> {
    let owner = state.owner(cx)?;
    let MemorySearch {
        kind,
        text,
        limit,
        project_path,
        response,
    } = search;
    let (name, most) = match kind {
        // It is pasted as a program printed it.
        ItemKind::Remediation => ("error_msg", MAX_ERROR_BYTES),
        ItemKind::Checkpoint | ItemKind::Skill => ("query", MAX_QUERY_BYTES),
    };
    check_length(name, &text, most)?;
    let path = project_path.as_deref().unwrap_or_default();
    let cursor = SearchCursor::parse(response.cursor.as_deref(), &[kind.as_str(), &text, path])?;
    let fetch_limit = cursor.fetch_limit(limit);
    let (embedding, embeddings) = state.embed_query(&text).await;
    let offset = cursor.offset();
    let (hits, known, root) = state
        .run_read(&owner.clone(), move |state| {
            let (project, databases) =
                search_targets(state, &owner, kind, project_path.as_deref())?;
            let query = MemoryQuery {
                limit: fetch_limit,
                half_life: state.half_life(),
                embedding,
                ..MemoryQuery::new(kind, text)
            };
            let databases: Vec<&Database> = databases.iter().map(|one| &**one).collect();
            let found = memory::search(&databases, &query)?;
            let known = found.len();
            let page = found.into_iter().skip(offset).take(limit);
            let hits = page
                .map(|hit| MemoryHit {
                    item: state.redact_item(hit.item),
                    ..hit
                })
                .collect();
            let root = project.map(|project| project.root().to_string_lossy().into_owned());
            Ok((hits, known, root))
        })
        .await?;
    Ok(MemoryMatches {
        hits,
        cursor,
        known,
        embeddings,
        root,
    })
}

type SearchTargets = (Option<Project>, Vec<Arc<Database>>);

fn search_targets(
    state: &AppState,
    owner: &Owner,
    kind: ItemKind,
    path: Option<&str>,
) -> Result<SearchTargets, ContextError> {
    let mut databases = Vec::new();
    let mut project = None;
    if let Some(path) = path {
        let (found, database) = state.find_project(owner, path)?;
        project = Some(found);
        databases.extend(database);
    }
    if kind != ItemKind::Checkpoint {
        databases.extend(state.data_dir().open_shared_if_exists(owner)?);
    }
    Ok((project, databases))
}

impl MemoryMatches {
    /// What is told of the page that shows `shown` of the hits.
    pub(super) fn page(&self, shown: usize) -> PageInfo {
        PageInfo {
            left_out: self.hits.len() - shown,
            next_cursor: self.cursor.next_cursor(shown, self.known),
        }
    }
}

// What is told of everything that comes in pages.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct PageInfo {
    /// More than max_tokens has room for.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) left_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(super) next_cursor: Option<String>,
}

impl PageInfo {
    /// A sentence about what is not shown, on a line of its own.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if self.left_out > 0 {
            let _ = write!(
                text,
                "\n{} left out to stay within max_tokens.",
                self.left_out
            );
        }
        if let Some(cursor) = &self.next_cursor {
            let _ = write!(text, "\nMore: call again with cursor \"{cursor}\".");
        }
        text
    }
}

pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A score as people read it.
pub(super) fn round_score(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}
