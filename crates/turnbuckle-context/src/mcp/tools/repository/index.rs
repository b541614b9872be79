//! The tool `index_repository`: long work with progress notifications, stopped when the call is cancelled.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write as _},
    ops::ControlFlow,
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Duration, Instant},
};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::Context;

use super::{OperationGuard, state::skipped_counts};
use crate::{
    ContextError, Database, Owner, Project,
    app_state::AppState,
    code_index,
    code_index::{IndexOptions, IndexProgress, IndexReport},
    mcp::{display::sanitize, error_messages, tool_response::ToText},
    memory_store::{OperationState, Partition, block_on},
};

/// Interval between updates of the operation, which is considered failed after an hour without one.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10 * 60);

#[derive(Deserialize, JsonSchema)]
pub(super) struct IndexArgs {
    /// Absolute path of the folder.
    #[schemars(with = "String")]
    project_path: Option<String>,
    // An alias that some callers use.
    #[schemars(skip)]
    path: Option<String>,
    /// Globs; default: all files.
    include_patterns: Option<Vec<String>>,
    /// Globs, in addition to .gitignore.
    exclude_patterns: Option<Vec<String>>,
    /// In bytes; default 1048576, at most 10485760.
    max_file_size: Option<u64>,
    /// Also read unchanged files.
    force: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct IndexResponse {
    operation_id: String,
    status: &'static str,
    path: String,
    files_indexed: u64,
    chunks: u64,
    read: u64,
    unchanged: u64,
    removed: u64,
    include_patterns: Vec<String>,
    exclude_patterns: Vec<String>,
    max_file_size: u64,
    /// Skipped files by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<&'static str, u64>,
    /// Redacted secrets by rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    redacted: BTreeMap<String, usize>,
}

pub(super) async fn index(
    state: AppState,
    args: IndexArgs,
    cx: Context,
) -> Result<IndexResponse, ContextError> {
    let owner = state.owner(&cx)?;
    let path = args.project_path.or(args.path).ok_or_else(|| {
        ContextError::invalid("`project_path` is missing; pass the absolute path of the folder")
    })?;
    let options = IndexOptions {
        include: args.include_patterns.unwrap_or_default(),
        exclude: args.exclude_patterns.unwrap_or_default(),
        max_file_size: args.max_file_size.unwrap_or(1 << 20),
        force: args.force.unwrap_or(false),
    };
    let owner_for_job = owner.clone();
    let (project, database, operation) = state
        .write_memory(&owner, async move |state| {
            state.check_quota(&owner_for_job).await?;
            let (project, partition) = state.find_partition(&owner_for_job, &path)?;
            project.require_folder()?;
            let root = project.root().to_string_lossy();
            state.memory().create_project(&partition, &root).await?;
            let database = state.data_dir().open_project(&owner_for_job, &project)?;
            let operation = OperationGuard::new(state.memory(), partition, "index_repository");
            Ok((project, database, operation.await?))
        })
        .await?;
    // With this id the caller can query the result even if the response is lost.
    let data = json!({ "message": "indexing", "operation_id": operation.id() });
    cx.log_as(LogLevel::Info, Some("index"), data).await;
    let partition = Partition::project(&owner, project.id());
    let response = run(&state, &cx, &owner, project, &database, operation, options).await?;
    state.queue_embedding(partition);
    state.sync_resources(&cx).await;
    Ok(response)
}

/// Indexes on a blocking thread and sends progress notifications.
///
/// If the call is cancelled, this future is dropped with the receiver of the progress channel. The thread notices that the
/// receiver is gone and stops; the index stays unchanged.
async fn run(
    state: &AppState,
    cx: &Context,
    owner: &Owner,
    project: Project,
    database: &Arc<Database>,
    operation: OperationGuard,
    options: IndexOptions,
) -> Result<IndexResponse, ContextError> {
    let (progress_sender, mut progress_receiver) = watch::channel(IndexProgress::default());
    let (partition, id) = (
        Partition::project(owner, project.id()),
        operation.id().to_owned(),
    );
    let database = database.clone();
    let owner_for_job = owner.clone();
    let mut work = Box::pin(state.run_long(owner, move |state, limit| {
        let mut has_room = state.quota_watch(&owner_for_job);
        let mut watch = |progress| {
            if progress_sender.send(progress).is_ok() && !limit.is_exceeded() && has_room() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let (root, branch) = (project.folder(), project.branch());
        let redactor = state.redactor();
        let folder = state.data_dir().open_folder(root);
        let done = folder.and_then(|folder| {
            code_index::index_open_dir(
                &database, &folder, root, branch, &options, redactor, &mut watch,
            )
        });
        let done = match done {
            // Find out which limit stopped the run.
            Err(ContextError::Cancelled) => limit
                .check()
                .and_then(|()| block_on(state.check_quota(&owner_for_job)))
                .and(Err(ContextError::Cancelled)),
            done => done,
        };
        finish_operation(operation, done, options)
    }));
    let mut heartbeat =
        tokio::time::interval_at(Instant::now() + HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Ok(()) = progress_receiver.changed() => {
                let progress = *progress_receiver.borrow_and_update();
                report_progress(cx, progress).await;
            }
            _ = heartbeat.tick() => {
                let (partition, id) = (partition.clone(), id.clone());
                // Indexing continues even if this fails.
                let _ = state
                    .write_memory(owner, async move |state| {
                        let running = OperationState::Running;
                        Ok(state.memory().update_operation(&partition, &id, running).await?)
                    })
                    .await;
            }
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a repository has fewer than 2^53 files"
)]
async fn report_progress(cx: &Context, progress: IndexProgress) {
    let (done, total) = (progress.files_done as f64, progress.files_total);
    let of = total
        .map(|total| format!(" of {total}"))
        .unwrap_or_default();
    let message = format!(
        "{}{of} files, {} chunks",
        progress.files_done, progress.chunks
    );
    cx.progress_message(done, total.map(|total| total as f64), message)
        .await;
}

/// Stores the result of the operation.
fn finish_operation(
    operation: OperationGuard,
    done: Result<IndexReport, ContextError>,
    options: IndexOptions,
) -> Result<IndexResponse, ContextError> {
    match done {
        Ok(indexed) => {
            let response = IndexResponse::new(operation.id().to_owned(), indexed, options);
            let result = serde_json::to_value(&response).unwrap_or_default();
            block_on(operation.finish(&result))?;
            Ok(response)
        }
        Err(error) => {
            block_on(operation.fail(&error_messages::error_message(&error)));
            Err(error)
        }
    }
}

impl IndexResponse {
    fn new(operation_id: String, indexed: IndexReport, options: IndexOptions) -> Self {
        let tree = &indexed.tree;
        Self {
            operation_id,
            status: "completed",
            path: tree.root.to_string_lossy().into_owned(),
            files_indexed: tree.counts.files,
            chunks: tree.counts.chunks,
            read: indexed.read,
            unchanged: indexed.unchanged,
            removed: indexed.removed,
            include_patterns: options.include,
            exclude_patterns: options.exclude,
            max_file_size: options.max_file_size,
            left_out: skipped_counts(tree),
            redacted: by_rule(indexed.redacted),
        }
    }
}

fn by_rule(findings: BTreeMap<Arc<str>, usize>) -> BTreeMap<String, usize> {
    let named = findings.into_iter();
    named
        .map(|(rule, count)| (rule.to_string(), count))
        .collect()
}

/// Formats counts as `2 binary, 1 huge`.
fn join_counts<C: Display>(counts: &BTreeMap<impl Display, C>) -> String {
    let counts = counts.iter().map(|(what, count)| format!("{count} {what}"));
    counts.collect::<Vec<_>>().join(", ")
}

impl ToText for IndexResponse {
    fn to_text(&self) -> String {
        let path = sanitize(&self.path);
        let Self {
            files_indexed,
            chunks,
            read,
            unchanged,
            removed,
            ..
        } = self;
        let mut text = format!(
            "Indexed {path}: {files_indexed} files, {chunks} chunks ({read} read, {unchanged} unchanged, {removed} removed)."
        );
        if !self.left_out.is_empty() {
            let _ = write!(text, "\nSkipped files: {}.", join_counts(&self.left_out));
        }
        if !self.redacted.is_empty() {
            let _ = write!(text, "\nRedacted secrets: {}.", join_counts(&self.redacted));
        }
        text
    }
}
