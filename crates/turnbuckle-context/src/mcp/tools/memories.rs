//! Saving, searching, paging and forgetting, the same for all three kinds of memory.

use std::{collections::BTreeMap, fmt::Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, Tool};

use super::tool;
use crate::{
    ContextError, Owner, Project,
    app_state::AppState,
    embedding::service::EmbeddingStatus,
    mcp::{
        display::{plural, sanitize},
        tool_response::{ResponseOptions, SearchCursor, ToText},
    },
    memory,
    memory::{ItemKind, MemoryHit, MemoryQuery, NewItem, SaveOutcome},
    memory_store::Partition,
    transfer,
    transfer::DeleteRequest,
};

pub(super) fn tools(state: &AppState) -> Vec<Tool> {
    vec![
        tool(state, "memory_forget", "Forget memory", forget)
            .description("Delete one wrong or outdated checkpoint, remediation or skill for good.")
            .destructive(true)
            .idempotent(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct ForgetArgs {
    /// From a search or list: ckpt_…, rem_… or skill_….
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct ForgetResponse {
    id: String,
    /// False: another process still reads old pages of the file.
    traceless: bool,
}

/// Maximum size of an id.
const MAX_ID_BYTES: usize = 100;

/// Deletes one item and its traces on the disk, as `turnbuckle context forget` does.
async fn forget(
    state: AppState,
    args: ForgetArgs,
    cx: Context,
) -> Result<ForgetResponse, ContextError> {
    let owner = state.owner(&cx)?;
    let ForgetArgs { id } = args;
    check_length("id", &id, MAX_ID_BYTES)?;
    let item = DeleteRequest::Item(id.clone());
    let report = state
        .run_write(&owner.clone(), move |state| {
            transfer::delete(state.data(), &owner, &item)
        })
        .await?;
    state.sync_resources(&cx).await;
    Ok(ForgetResponse {
        id,
        traceless: report.traceless,
    })
}

impl ToText for ForgetResponse {
    fn to_text(&self) -> String {
        let id = sanitize(&self.id);
        if self.traceless {
            format!("Forgot {id}: it is deleted from the disk.")
        } else {
            format!(
                "Forgot {id}. Its text stays in the file until another process stops reading it."
            )
        }
    }
}

// The common part of the results of all save tools.
#[derive(Serialize, JsonSchema)]
pub(super) struct SaveResponse {
    operation_id: String,
    status: &'static str,
    /// False: it existed before.
    is_new: bool,
    /// Near duplicates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar_to: Vec<SimilarView>,
    /// Redacted secrets by rule.
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

/// Saves an item for a project or for all projects, and notifies clients.
pub(super) async fn save(
    state: &AppState,
    cx: &Context,
    project_path: Option<String>,
    new_item: NewItem,
) -> Result<(String, SaveResponse), ContextError> {
    let owner = state.owner(cx)?;
    let project_path = project_path.map(|path| state.project_path(cx, path));
    let job_owner = owner.clone();
    let (saved, partition) = state
        .write_memory(&job_owner, async move |state| {
            state.check_quota(&owner).await?;
            let (new_item, partition) = match project_path {
                Some(path) => {
                    let (project, partition) = state.create_partition(&owner, &path).await?;
                    (new_item.branch(project.branch()), partition)
                }
                None => (new_item, Partition::shared(&owner)),
            };
            let saved =
                memory::save(&**state.memory(), &partition, state.redactor(), new_item).await?;
            Ok((saved, partition))
        })
        .await?;
    state.queue_embedding(partition);
    state.sync_resources(cx).await;
    log_notes(cx, &saved).await;
    Ok((saved.item.id.clone(), SaveResponse::from_outcome(&saved)))
}

/// Sends log messages about redactions and near duplicates to the client.
async fn log_notes(cx: &Context, saved: &SaveOutcome) {
    let id = &saved.item.id;
    if !saved.redacted.is_empty() {
        let data = json!({ "message": "secrets were redacted", "id": id, "rules": saved.redacted });
        cx.log_as(LogLevel::Warning, Some("redaction"), data).await;
    }
    if let Some(similar) = saved.similar_to.first() {
        let data =
            json!({ "message": "similar to an existing item", "id": id, "similar_to": similar.id });
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

    /// Returns the text form: `Saved …` with notes.
    pub(super) fn text(&self, what: &str, id: &str) -> String {
        let mut text = if self.is_new {
            format!("Saved {what} {id}.")
        } else {
            format!("The same {what} exists: {id}.")
        };
        for similar in &self.similar_to {
            let SimilarView {
                id,
                title,
                similarity,
            } = similar;
            let _ = write!(text, "\nSimilar to {id} ({similarity}): {title}");
        }
        if !self.redacted.is_empty() {
            let rules: Vec<_> = self.redacted.keys().map(String::as_str).collect();
            let count: u32 = self.redacted.values().sum();
            let count = plural(usize::try_from(count).unwrap_or(usize::MAX), "secret");
            let _ = write!(
                text,
                "\n{count} redacted before saving: {}.",
                rules.join(", ")
            );
        }
        text
    }
}

/// Maximum size of a query.
pub(super) const MAX_QUERY_BYTES: usize = 4 * 1024;
/// Maximum size of an error message in a search.
const MAX_ERROR_BYTES: usize = 16 * 1024;

/// Rejects an argument that is too long.
pub(super) fn check_length(name: &str, text: &str, most: usize) -> Result<(), ContextError> {
    if text.len() <= most {
        Ok(())
    } else {
        Err(ContextError::invalid(format!(
            "`{name}` has {} bytes; at most {most} are allowed: keep the significant words",
            text.len()
        )))
    }
}

/// Parameters of a search in memory.
pub(super) struct MemorySearch<'a> {
    pub(super) kind: ItemKind,
    pub(super) text: String,
    pub(super) limit: usize,
    pub(super) project_path: Option<String>,
    pub(super) response: &'a ResponseOptions,
}

/// The hits after the cursor.
pub(super) struct MemoryMatches {
    pub(super) hits: Vec<MemoryHit>,
    pub(super) cursor: SearchCursor,
    /// Number of items found, including those before the cursor.
    known: usize,
    pub(super) embeddings: EmbeddingStatus,
    /// The folder of the project, if the search has one.
    pub(super) root: Option<String>,
}

/// Searches the memory of the project, if there is one, and the shared memory, except for checkpoints: these always belong to a
/// project.
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
    let project_path = project_path.map(|path| state.project_path(cx, path));
    let (name, most) = match kind {
        // An error is pasted as printed and may be long.
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
        .read_memory(&owner.clone(), async move |state| {
            let (project, partitions) =
                search_targets(&state, &owner, kind, project_path.as_deref())?;
            let query = MemoryQuery {
                limit: fetch_limit,
                half_life: state.half_life(),
                embedding,
                ..MemoryQuery::new(kind, text)
            };
            let found = memory::search(&**state.memory(), &partitions, &query).await?;
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

type SearchTargets = (Option<Project>, Vec<Partition>);

fn search_targets(
    state: &AppState,
    owner: &Owner,
    kind: ItemKind,
    path: Option<&str>,
) -> Result<SearchTargets, ContextError> {
    let mut partitions = Vec::new();
    let mut project = None;
    if let Some(path) = path {
        let (found, partition) = state.find_partition(owner, path)?;
        project = Some(found);
        partitions.push(partition);
    }
    if kind != ItemKind::Checkpoint {
        partitions.push(Partition::shared(owner));
    }
    Ok((project, partitions))
}

impl MemoryMatches {
    /// Returns the page info if `shown` of the hits are returned.
    pub(super) fn page(&self, shown: usize) -> PageInfo {
        PageInfo {
            left_out: self.hits.len() - shown,
            next_cursor: self.cursor.next_cursor(shown, self.known),
        }
    }
}

// The common part of paged results.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct PageInfo {
    /// Omitted because of max_tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) left_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(super) next_cursor: Option<String>,
}

impl PageInfo {
    /// Returns the text form, each sentence on its own line.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if self.left_out > 0 {
            let _ = write!(text, "\n{} omitted because of max_tokens.", self.left_out);
        }
        if let Some(cursor) = &self.next_cursor {
            let _ = write!(text, "\nPass cursor \"{cursor}\" to get the next page.");
        }
        text
    }
}

pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Rounds a score to three decimal places.
pub(super) fn round_score(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}
