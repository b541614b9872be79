//! The tool `status`: health of the server, data and index of a project, result of an operation.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnbuckle_server::{Context, Tool};

use super::{
    repository::{CurrentIndex, IndexDetails},
    tool,
};
use crate::{
    ContextError, Database, Owner,
    app_state::AppState,
    code_index,
    mcp::{
        display::{format_time, plural, sanitize},
        tool_response::ToText,
    },
    memory::ItemKind,
    memory_store::{OperationRecord, OperationStatus, Partition, block_on},
};

/// Maximum time to refresh the indexes of a project.
const REFRESH_BUDGET: Duration = Duration::from_millis(500);

pub(super) fn tools(state: &AppState) -> Vec<Tool> {
    vec![
        tool(state, "status", "Status", status)
            .description(
                "Server health; with operation_id the result of a call; with project_path the data and index of a project.",
            )
            .read_only(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct StatusArgs {
    /// From an earlier result.
    operation_id: Option<String>,
    /// Absolute path.
    project_path: Option<String>,
}

#[derive(Default, Serialize, JsonSchema)]
struct StatusResponse {
    /// healthy; for an operation pending, running, completed or failed.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    service: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    version: Option<&'static str>,
    /// Embedding model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    embeddings: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ProjectStatus")]
    project: Option<ProjectStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    operation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    updated_at: Option<String>,
}

#[derive(Default, Serialize, JsonSchema)]
#[schemars(inline)]
struct ProjectStatus {
    root: String,
    branch: String,
    /// Stored checkpoints and remediations.
    items: BTreeMap<String, u64>,
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    indexes: Vec<IndexDetails>,
    /// Running operations.
    running: Vec<String>,
}

async fn status(
    state: AppState,
    args: StatusArgs,
    cx: Context,
) -> Result<StatusResponse, ContextError> {
    let owner = state.owner(&cx)?;
    let job_owner = owner.clone();
    if let Some(id) = args.operation_id {
        let operation = state
            .read_memory(&owner.clone(), async move |state| {
                state.find_operation(&owner, &id).await
            })
            .await?;
        return Ok(StatusResponse::from_operation(operation));
    }
    let project = match args.project_path {
        None => None,
        Some(path) => {
            let work = move |state: &AppState| project(state, &owner, &path);
            Some(state.run_write(&job_owner, work).await?)
        }
    };
    Ok(StatusResponse {
        project,
        status: "healthy",
        service: Some("turnbuckle"),
        version: Some(env!("CARGO_PKG_VERSION")),
        embeddings: state.embedder().map(|embedder| embedder.model().to_owned()),
        ..StatusResponse::default()
    })
}

fn project(state: &AppState, owner: &Owner, path: &str) -> Result<ProjectStatus, ContextError> {
    let (project, database) = state.find_project(owner, path)?;
    let mut status = ProjectStatus {
        root: project.root().to_string_lossy().into_owned(),
        branch: project.branch().to_owned(),
        ..ProjectStatus::default()
    };
    if let Some(database) = database {
        status.indexes = indexes(state, owner, &database)?;
    }
    let partition = Partition::project(owner, project.id());
    let memory = state.memory();
    status.running = block_on(memory.running_operations(&partition))?;
    let stats = block_on(memory.stats(&partition))?;
    let named = |(kind, count): (ItemKind, u64)| (kind.to_string(), count);
    status.items = stats.items.into_iter().map(named).collect();
    Ok(status)
}

/// Returns the indexes of a project, refreshed as long as there is time.
fn indexes(
    state: &AppState,
    owner: &Owner,
    database: &Arc<Database>,
) -> Result<Vec<IndexDetails>, ContextError> {
    let (started, data_dir) = (Instant::now(), state.data_dir());
    let mut indexes = Vec::new();
    let trees = code_index::trees(database)?.into_iter();
    for tree in trees.filter(|tree| data_dir.allows(&tree.root)) {
        let left = REFRESH_BUDGET.saturating_sub(started.elapsed());
        let index = if left.is_zero() {
            CurrentIndex::stored(tree, None)
        } else {
            CurrentIndex::refresh(state, owner, database, tree, left)?
        };
        indexes.push(IndexDetails::new(&index));
    }
    Ok(indexes)
}

impl StatusResponse {
    fn from_operation(operation: OperationRecord) -> Self {
        Self {
            status: match operation.status {
                OperationStatus::Pending => "pending",
                OperationStatus::Running => "running",
                OperationStatus::Completed => "completed",
                OperationStatus::Failed => "failed",
            },
            operation_id: Some(operation.id),
            result: operation.result,
            error: operation.error,
            created_at: Some(format_time(operation.created)),
            updated_at: Some(format_time(operation.updated)),
            ..Self::default()
        }
    }
}

impl ToText for StatusResponse {
    fn to_text(&self) -> String {
        let mut text = match &self.operation_id {
            Some(id) => format!("{id}: {}", self.status),
            None => self.status.to_owned(),
        };
        if let (Some(service), Some(version)) = (self.service, self.version) {
            let embeddings = self.embeddings.as_deref().unwrap_or("off");
            let _ = write!(text, ": {service} {version}, embeddings {embeddings}");
        }
        if let Some(project) = &self.project {
            project.write(&mut text);
        }
        if let Some(result) = &self.result {
            let _ = write!(text, "\n{}", sanitize(&result.to_string()));
        }
        if let Some(error) = &self.error {
            let _ = write!(text, "\n{}", sanitize(error));
        }
        text
    }
}

impl ProjectStatus {
    fn write(&self, text: &mut String) {
        let (root, branch) = (sanitize(&self.root), sanitize(&self.branch));
        let _ = write!(text, "\n{root} [{branch}]:");
        for (kind, count) in &self.items {
            let count = plural(usize::try_from(*count).unwrap_or_default(), kind);
            let _ = write!(text, " {count},");
        }
        match self.indexes.len() {
            0 => text.push_str(" no index"),
            _ => text.push_str(" index:"),
        }
        for index in &self.indexes {
            let _ = write!(text, "\n- {}", index.text());
        }
        for id in &self.running {
            let _ = write!(text, "\n{id} is running");
        }
    }
}
