//! Tools for collections: the data of one branch of one project.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_server::{Context, Tool};

use super::tool;
use crate::{
    ContextError, Owner,
    app_state::AppState,
    mcp::{
        display::{plural, sanitize},
        tool_response::ToText,
    },
    memory_store::{OperationState, Partition},
    storage::collections::RemovedCounts,
};

pub(super) fn tools(state: &AppState) -> Vec<Tool> {
    vec![
        tool(state, "collection_create", "Create collection", create)
            .description("Create a collection. Rarely needed: saving and indexing create them.")
            .destructive(false)
            .idempotent(),
        tool(state, "collection_delete", "Delete collection", delete)
            .description("Delete all data of a branch: memory and index.")
            .destructive(true)
            .idempotent(),
        tool(state, "collection_list", "List collections", list)
            .description("List the stored data by project and branch.")
            .read_only(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct CollectionCreateArgs {
    /// `owner_<id>/project_<id>/<branch>`, see collection_list.
    collection_name: String,
    /// Dimensions of its embeddings.
    vector_size: u32,
}

#[derive(Serialize, JsonSchema)]
struct CollectionCreated {
    operation_id: String,
    collection_name: String,
    vector_size: u64,
}

async fn create(
    state: AppState,
    args: CollectionCreateArgs,
    cx: Context,
) -> Result<CollectionCreated, ContextError> {
    let owner = state.owner(&cx)?;
    let created = state
        .write_memory(&owner.clone(), async move |state| {
            state.check_quota(&owner).await?;
            let name = &args.collection_name;
            let size = args.vector_size.into();
            let made = state.collections().create(&owner, name, size).await?;
            let result = json!({ "collection_name": made.name, "vector_size": made.vector_size });
            Ok(CollectionCreated {
                operation_id: record_operation(&state, &owner, "collection_create", &result)
                    .await?,
                collection_name: made.name,
                vector_size: made.vector_size,
            })
        })
        .await?;
    state.sync_resources(&cx).await;
    Ok(created)
}

/// Records a completed operation on a collection, and returns its id.
async fn record_operation(
    state: &AppState,
    owner: &Owner,
    kind: &str,
    result: &Value,
) -> Result<String, ContextError> {
    let (shared, completed) = (Partition::shared(owner), OperationState::Completed(result));
    let recorded = state.memory().record_operation(&shared, kind, completed);
    Ok(recorded.await?)
}

#[derive(Deserialize, JsonSchema)]
struct CollectionDeleteArgs {
    /// From collection_list.
    collection_name: String,
}

#[derive(Serialize, JsonSchema)]
struct CollectionDeleted {
    operation_id: String,
    collection_name: String,
    deleted: bool,
    /// Deleted memories.
    items: u64,
    files: u64,
    chunks: u64,
}

async fn delete(
    state: AppState,
    args: CollectionDeleteArgs,
    cx: Context,
) -> Result<CollectionDeleted, ContextError> {
    let owner = state.owner(&cx)?;
    let deleted = state
        .write_memory(&owner.clone(), async move |state| {
            let name = args.collection_name;
            let RemovedCounts {
                items,
                files,
                chunks,
            } = state.collections().delete(&owner, &name).await?;
            let result = json!({ "collection_name": name, "deleted": true });
            Ok(CollectionDeleted {
                operation_id: record_operation(&state, &owner, "collection_delete", &result)
                    .await?,
                collection_name: name,
                deleted: true,
                items,
                files,
                chunks,
            })
        })
        .await?;
    state.sync_resources(&cx).await;
    Ok(deleted)
}

#[derive(Deserialize, JsonSchema)]
struct CollectionListArgs {}

#[derive(Serialize, JsonSchema)]
struct CollectionPage {
    collections: Vec<CollectionView>,
    #[serde(skip_serializing_if = "super::memories::is_zero")]
    left_out: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct CollectionView {
    name: String,
    vector_size: u64,
    point_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    project_path: Option<String>,
}

/// Maximum number of listed collections.
const MAX_LISTED: usize = 100;

async fn list(
    state: AppState,
    _: CollectionListArgs,
    cx: Context,
) -> Result<CollectionPage, ContextError> {
    let owner = state.owner(&cx)?;
    state
        .read_memory(&owner.clone(), async move |state| {
            let all = state.collections().list(&owner).await?;
            let projects = state.memory().projects(&owner).await?;
            let left_out = all.len().saturating_sub(MAX_LISTED);
            let collections = all.into_iter().take(MAX_LISTED).map(|one| {
                let project = projects
                    .iter()
                    .find(|project| one.name.contains(&format!("/project_{}/", project.id)));
                CollectionView {
                    project_path: project.map(|project| project.root.clone()),
                    name: one.name,
                    vector_size: one.vector_size,
                    point_count: one.point_count,
                }
            });
            Ok(CollectionPage {
                collections: collections.collect(),
                left_out,
            })
        })
        .await
}

impl ToText for CollectionCreated {
    fn to_text(&self) -> String {
        format!("Collection {} exists.", sanitize(&self.collection_name))
    }
}

impl ToText for CollectionDeleted {
    fn to_text(&self) -> String {
        let collection_name = sanitize(&self.collection_name);
        let Self {
            items,
            files,
            chunks,
            ..
        } = self;
        format!("Deleted {collection_name}: {items} items, {files} indexed files, {chunks} chunks.")
    }
}

impl ToText for CollectionPage {
    fn to_text(&self) -> String {
        if self.collections.is_empty() {
            return "No data is stored yet.".to_owned();
        }
        let mut text = format!("{}:", plural(self.collections.len(), "collection"));
        for one in &self.collections {
            let path = one.project_path.as_deref().unwrap_or("?");
            let _ = write!(
                text,
                "\n- {} ({}): {} points",
                sanitize(&one.name),
                sanitize(path),
                one.point_count
            );
        }
        if self.left_out > 0 {
            let _ = write!(text, "\n{} more not shown.", self.left_out);
        }
        text
    }
}
