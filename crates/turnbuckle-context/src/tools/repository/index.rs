//! Indexing: long work that tells how far it is, and stops when nobody wants it any longer.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::ops::ControlFlow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Duration, Instant};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::Context;

use super::begun::Begun;
use super::state::left_out;
use crate::answer::{Readable, visible};
use crate::desk::Desk;
use crate::index::{self, IndexOptions, Indexed, Step};
use crate::{ContextError, Database, Owner, Project, failure, operations};

/// How often it is noted that an operation is still being done; one that is silent for an hour is taken for dead.
const BEAT: Duration = Duration::from_secs(10 * 60);

#[derive(Deserialize, JsonSchema)]
pub(super) struct IndexArgs {
    /// Absolute path of the folder.
    #[schemars(with = "String")]
    project_path: Option<String>,
    // Some callers know it by this name.
    #[schemars(skip)]
    path: Option<String>,
    /// Globs; all files by default.
    include_patterns: Option<Vec<String>>,
    /// Globs, beside what .gitignore names.
    exclude_patterns: Option<Vec<String>>,
    /// In bytes; default 1048576, at most 10485760.
    max_file_size: Option<u64>,
    /// Read unchanged files again.
    force: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct IndexAnswer {
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
    /// Files not indexed, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<&'static str, u64>,
    /// Secrets taken out, by rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    redacted: BTreeMap<String, usize>,
}

pub(super) async fn index(
    desk: Desk,
    args: IndexArgs,
    cx: Context,
) -> Result<IndexAnswer, ContextError> {
    let owner = desk.owner(&cx)?;
    let path = args.project_path.or(args.path).ok_or_else(|| {
        ContextError::refused("`project_path` is missing: the absolute path of the folder")
    })?;
    let options = IndexOptions {
        include: args.include_patterns.unwrap_or_default(),
        exclude: args.exclude_patterns.unwrap_or_default(),
        max_file_size: args.max_file_size.unwrap_or(1 << 20),
        force: args.force.unwrap_or(false),
    };
    let whose = owner.clone();
    let (project, database, begun) = desk
        .block(&owner, move |desk| {
            desk.check_quota(&whose)?;
            let (project, database) = desk.open(&whose, &path)?;
            let begun = Begun::new(&database, "index_repository")?;
            Ok((project, database, begun))
        })
        .await?;
    // Whoever asks by this id learns how it ended, also if the answer is lost.
    let data = json!({ "message": "indexing", "operation_id": begun.id() });
    cx.log_as(LogLevel::Info, Some("index"), data).await;
    let answer = run(&desk, &cx, &owner, project, &database, begun, options).await?;
    desk.embed_soon(&owner, &database);
    desk.publish(&cx).await;
    Ok(answer)
}

/// Indexes on a thread, and tells from here how far it is.
///
/// If the call is cancelled, this is dropped, and with it the end of the channel that hears of the work. The work sees
/// that nobody listens, and leaves the index as it was.
async fn run(
    desk: &Desk,
    cx: &Context,
    owner: &Owner,
    project: Project,
    database: &Arc<Database>,
    begun: Begun,
    options: IndexOptions,
) -> Result<IndexAnswer, ContextError> {
    let (tell, mut heard) = watch::channel(Step::default());
    let (kept, id) = (database.clone(), begun.id().to_owned());
    let database = database.clone();
    let whose = owner.clone();
    let mut work = Box::pin(desk.block_long(owner, move |desk, limit| {
        let mut has_room = desk.room_watch(&whose);
        let mut watch = |step| match tell.send(step).is_ok() && !limit.is_over() && has_room() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let (root, branch) = (project.folder(), project.branch());
        let redactor = desk.redactor();
        let folder = desk.library().open_folder(root);
        let done = folder.and_then(|folder| {
            index::index_folder(
                &database, &folder, root, branch, &options, redactor, &mut watch,
            )
        });
        let done = match done {
            // It was stopped for one of these reasons.
            Err(ContextError::Cancelled) => limit
                .check()
                .and_then(|()| desk.check_quota(&whose))
                .and(Err(ContextError::Cancelled)),
            done => done,
        };
        close(begun, done, options)
    }));
    let mut beat = tokio::time::interval_at(Instant::now() + BEAT, BEAT);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Ok(()) = heard.changed() => {
                let step = *heard.borrow_and_update();
                report(cx, step).await;
            }
            _ = beat.tick() => {
                let (database, id) = (kept.clone(), id.clone());
                // Whether or not it could be noted, the work goes on.
                let _ = desk
                    .block(owner, move |_| operations::touch(&database, &id))
                    .await;
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody indexes 2^53 files")]
async fn report(cx: &Context, step: Step) {
    let (done, total) = (step.files_done as f64, step.files_total);
    let of = total
        .map(|total| format!(" of {total}"))
        .unwrap_or_default();
    let message = format!("{}{of} files, {} chunks", step.files_done, step.chunks);
    cx.progress_message(done, total.map(|total| total as f64), message)
        .await;
}

/// Writes down how the operation ended.
fn close(
    begun: Begun,
    done: Result<Indexed, ContextError>,
    options: IndexOptions,
) -> Result<IndexAnswer, ContextError> {
    match done {
        Ok(indexed) => {
            let answer = IndexAnswer::of(begun.id().to_owned(), indexed, options);
            let result = serde_json::to_value(&answer).unwrap_or_default();
            begun.finish(&result)?;
            Ok(answer)
        }
        Err(error) => {
            begun.fail(&failure::message(&error));
            Err(error)
        }
    }
}

impl IndexAnswer {
    fn of(operation_id: String, indexed: Indexed, options: IndexOptions) -> Self {
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
            left_out: left_out(tree),
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

/// `2 binary, 1 huge`.
fn counted<C: Display>(counts: &BTreeMap<impl Display, C>) -> String {
    let counts = counts.iter().map(|(what, count)| format!("{count} {what}"));
    counts.collect::<Vec<_>>().join(", ")
}

impl Readable for IndexAnswer {
    fn text(&self) -> String {
        let path = visible(&self.path);
        let Self {
            files_indexed,
            chunks,
            read,
            unchanged,
            removed,
            ..
        } = self;
        let mut text = format!(
            "Indexed {path}: {files_indexed} files, {chunks} chunks ({read} read, {unchanged} unchanged, {removed} gone)."
        );
        if !self.left_out.is_empty() {
            let _ = write!(text, "\nLeft out: {}.", counted(&self.left_out));
        }
        if !self.redacted.is_empty() {
            let _ = write!(text, "\nSecrets taken out: {}.", counted(&self.redacted));
        }
        text
    }
}
