//! Tools for checkpoints: the state of some work.

use std::{collections::BTreeMap, fmt::Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnbuckle_server::{Context, Tool};

use super::{
    memories,
    memories::{MemorySearch, PageInfo, SaveResponse, round_score},
    tool,
};
use crate::{
    ContextError,
    app_state::AppState,
    embedding::service::EmbeddingStatus,
    mcp::{
        display::{format_time, one_line, plural, sanitize, truncate},
        tool_response::{ContentMode, ResponseOptions, ToText, tags_for_mode},
    },
    memory,
    memory::{ItemKind, ItemPage, MemoryItem, NewItem},
    memory_store::Partition,
};

pub(super) fn tools(state: &AppState) -> Vec<Tool> {
    vec![
        tool(state, "checkpoint_save", "Save checkpoint", save)
            .description(
                "Save the state of the work, to continue later or in another conversation. Secrets are redacted.",
            )
            .destructive(false)
            .idempotent(),
        tool(state, "checkpoint_search", "Search checkpoints", search)
            .description("Find earlier checkpoints of a project by words or a question.")
            .read_only(),
        tool(state, "checkpoint_list", "List checkpoints", list)
            .description("List the checkpoints of a project, newest first.")
            .read_only(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct CheckpointSaveArgs {
    /// Done, decided and next steps (at most 100 KB).
    content: String,
    /// Absolute path.
    project_path: String,
    /// summary: title; tags: comma-separated.
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, JsonSchema)]
struct SavedCheckpoint {
    checkpoint_id: String,
    #[serde(flatten)]
    save_response: SaveResponse,
}

async fn save(
    state: AppState,
    args: CheckpointSaveArgs,
    cx: Context,
) -> Result<SavedCheckpoint, ContextError> {
    let mut new_item = NewItem::checkpoint(args.content);
    let mut metadata = args.metadata.unwrap_or_default();
    if let Some(summary) = metadata
        .remove("summary")
        .filter(|text| !text.trim().is_empty())
    {
        new_item = new_item.title(summary);
    }
    if let Some(tags) = metadata.remove("tags") {
        let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
        new_item = new_item.tags(tags);
    }
    let rest: Map<_, _> = metadata
        .into_iter()
        .map(|(key, value)| (key, Value::from(value)))
        .collect();
    let (checkpoint_id, save_response) =
        memories::save(&state, &cx, Some(args.project_path), new_item.meta(rest)).await?;
    Ok(SavedCheckpoint {
        checkpoint_id,
        save_response,
    })
}

#[derive(Deserialize, JsonSchema)]
struct CheckpointSearchArgs {
    /// A question or words.
    #[schemars(length(min = 1))]
    query: String,
    /// Absolute path.
    project_path: String,
    /// Maximum number.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    #[serde(flatten)]
    response: ResponseOptions,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
struct CheckpointHits {
    checkpoints: Vec<CheckpointHit>,
    embeddings: EmbeddingStatus,
    #[serde(flatten)]
    page: PageInfo,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct CheckpointHit {
    checkpoint: CheckpointView,
    score: f64,
}

async fn search(
    state: AppState,
    args: CheckpointSearchArgs,
    cx: Context,
) -> Result<CheckpointHits, ContextError> {
    let search = MemorySearch {
        kind: ItemKind::Checkpoint,
        text: args.query,
        limit: args.limit,
        project_path: Some(args.project_path),
        response: &args.response,
    };
    let found = memories::search(&state, &cx, search).await?;
    let root = found.root.as_deref();
    let checkpoints = args
        .response
        .fit_to_limit(&found.hits, |hit, mode| CheckpointHit {
            checkpoint: CheckpointView::from_item(&hit.item, root, mode),
            score: round_score(hit.score),
        });
    Ok(CheckpointHits {
        page: found.page(checkpoints.len()),
        embeddings: found.embeddings,
        checkpoints,
    })
}

#[derive(Deserialize, JsonSchema)]
struct CheckpointListArgs {
    /// Absolute path.
    project_path: String,
    /// Maximum number.
    #[serde(default = "default_list_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    #[serde(flatten)]
    response: ResponseOptions,
}

fn default_list_limit() -> usize {
    20
}

#[derive(Default, Serialize, JsonSchema)]
struct CheckpointPage {
    checkpoints: Vec<CheckpointView>,
    #[serde(flatten)]
    page: PageInfo,
}

async fn list(
    state: AppState,
    args: CheckpointListArgs,
    cx: Context,
) -> Result<CheckpointPage, ContextError> {
    let owner = state.owner(&cx)?;
    let path = state.project_path(&cx, args.project_path);
    state
        .read_memory(&owner.clone(), async move |state| {
            let (project, partition) = state.find_partition(&owner, &path)?;
            let root = project.root().to_string_lossy();
            let after = args
                .response
                .cursor
                .as_deref()
                .filter(|after| !after.is_empty());
            let page = list_page(&state, &partition, args.limit, after).await?;
            let items: Vec<_> = page
                .items
                .into_iter()
                .map(|item| state.redact_item(item))
                .collect();
            let shape =
                |item: &MemoryItem, mode| CheckpointView::from_item(item, Some(&root), mode);
            let checkpoints = args.response.fit_to_limit(&items, shape);
            let left_out = items.len() - checkpoints.len();
            let next_cursor = match left_out {
                0 => page.next,
                // The next page starts after the last returned item.
                _ if checkpoints.is_empty() => None,
                _ => {
                    list_page(&state, &partition, checkpoints.len(), after)
                        .await?
                        .next
                }
            };
            Ok(CheckpointPage {
                checkpoints,
                page: PageInfo {
                    left_out,
                    next_cursor,
                },
            })
        })
        .await
}

/// Returns checkpoints of a project, newest first.
async fn list_page(
    state: &AppState,
    partition: &Partition,
    limit: usize,
    after: Option<&str>,
) -> Result<ItemPage, ContextError> {
    memory::list(
        &**state.memory(),
        partition,
        ItemKind::Checkpoint,
        limit,
        after,
    )
    .await
}

// A checkpoint in a result.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Checkpoint")]
struct CheckpointView {
    id: String,
    summary: String,
    branch: String,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    updated_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    project_path: Option<String>,
}

impl CheckpointView {
    fn from_item(item: &MemoryItem, root: Option<&str>, mode: ContentMode) -> Self {
        let is_full = mode == ContentMode::Full;
        Self {
            id: item.id.clone(),
            summary: match mode {
                ContentMode::Minimal => one_line(item.headline(), 160),
                _ => truncate(item.headline(), 500).into_owned(),
            },
            branch: item.branch.clone(),
            created_at: format_time(item.created),
            updated_at: is_full.then(|| format_time(item.updated)),
            tags: tags_for_mode(&item.tags, mode),
            content: match mode {
                ContentMode::Minimal => None,
                ContentMode::Preview => Some(truncate(&item.body, 600).into_owned()),
                ContentMode::Full => Some(item.body.clone()),
            },
            metadata: item.meta.clone().into_iter().filter(|_| is_full).collect(),
            project_path: root.filter(|_| is_full).map(str::to_owned),
        }
    }

    fn write(&self, text: &mut String, score: Option<f64>) {
        let Self {
            id,
            summary,
            branch,
            created_at,
            ..
        } = self;
        let (day, branch) = (created_at.get(..10).unwrap_or(created_at), sanitize(branch));
        let _ = write!(text, "\n- {id} ");
        if let Some(score) = score {
            let _ = write!(text, "({score}) ");
        }
        let _ = write!(text, "{day} [{branch}] {summary}");
        if !self.tags.is_empty() {
            let _ = write!(text, " #{}", self.tags.join(" #"));
        }
        if let Some(content) = &self.content {
            let _ = write!(text, "\n{content}\n");
        }
    }
}

impl ToText for SavedCheckpoint {
    fn to_text(&self) -> String {
        self.save_response.text("checkpoint", &self.checkpoint_id)
    }
}

impl ToText for CheckpointHits {
    fn to_text(&self) -> String {
        if self.checkpoints.is_empty() {
            return "No checkpoint matches. checkpoint_list shows the newest.".to_owned();
        }
        let mut text = format!(
            "{}, best first:",
            plural(self.checkpoints.len(), "checkpoint")
        );
        for hit in &self.checkpoints {
            hit.checkpoint.write(&mut text, Some(hit.score));
        }
        text + &self.page.text() + self.embeddings.text()
    }
}

impl ToText for CheckpointPage {
    fn to_text(&self) -> String {
        if self.checkpoints.is_empty() {
            return "No checkpoints here yet.".to_owned();
        }
        let mut text = format!(
            "{}, newest first:",
            plural(self.checkpoints.len(), "checkpoint")
        );
        for checkpoint in &self.checkpoints {
            checkpoint.write(&mut text, None);
        }
        text + &self.page.text()
    }
}
