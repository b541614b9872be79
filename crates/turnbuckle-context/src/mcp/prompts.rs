//! Prompts that start a task with the relevant data from memory.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, sync::Arc};

use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use turnbuckle_protocol::types::{ContentBlock, PromptMessage};
use turnbuckle_server::{CompletionRequest, Context, Messages, Prompt, RequestError};

use super::{
    display::{format_time, one_line, quote_lines, sanitize, truncate},
    error_messages::request_error,
    resources,
    resources::{complete_id, complete_project, complete_skill},
};
use crate::{
    ContextError, DataDir, Database, Owner,
    app_state::{AppState, ItemRef},
    code_index, memory,
    memory::{ItemKind, MemoryItem, MemoryQuery},
    memory_store::{Partition, Scope},
};

/// Maximum number of other checkpoints listed with the one to resume.
const MAX_EARLIER_CHECKPOINTS: usize = 5;
/// Maximum size of an error message.
const MAX_ERROR_BYTES: usize = 16 * 1024;
/// Maximum number of known fixes included.
const MAX_KNOWN_FIXES: usize = 3;

/// Returns all prompts of the context server.
pub(crate) fn all(state: &AppState) -> Vec<Prompt> {
    vec![
        prompt(state, "resume_work", resume_work)
            .title("Resume work")
            .description("Continue from the last checkpoint of a project")
            .complete(
                "checkpoint",
                completer(state, CompletionSource::Checkpoints),
            ),
        prompt(state, "record_fix", record_fix)
            .title("Record a fix")
            .description("Save the fix for an error, with known fixes for comparison"),
        prompt(state, "explain_repository", explain_repository)
            .title("Explain a repository")
            .description("Explain a repository, starting from its index"),
    ]
}

fn prompt<A, W>(state: &AppState, name: &'static str, write: fn(AppState, Owner, A) -> W) -> Prompt
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    W: Future<Output = Result<Vec<PromptMessage>, ContextError>> + Send + 'static,
{
    let at = state.clone();
    let make = move |args: A, cx: Context| {
        let state = at.clone();
        async move {
            let owner = state.owner(&cx).map_err(prompt_error)?;
            let job_owner = owner.clone();
            let write = move |state| write(state, job_owner, args);
            let messages = state.read_memory(&owner, write).await;
            messages.map(Messages::new).map_err(prompt_error)
        }
    };
    Prompt::new(name, make)
        .complete("project_path", completer(state, CompletionSource::Projects))
        .complete("skill", completer(state, CompletionSource::Skills))
}

/// Converts an error for `prompts/get`. A missing object is an invalid argument here, because the user named it.
fn prompt_error(error: ContextError) -> RequestError {
    match error {
        ContextError::NotFound(_) => RequestError::invalid(error.to_string()),
        error => request_error(error),
    }
}

#[derive(Clone, Copy)]
enum CompletionSource {
    Projects,
    Checkpoints,
    Skills,
}

type CompletionFuture =
    std::pin::Pin<Box<dyn Future<Output = Result<Vec<String>, RequestError>> + Send>>;

fn completer(
    state: &AppState,
    what: CompletionSource,
) -> impl Fn(CompletionRequest, Context) -> CompletionFuture + Send + Sync + 'static {
    let state = Arc::new(state.clone());
    move |typed, cx| {
        let state = state.clone();
        Box::pin(async move {
            match what {
                CompletionSource::Projects => complete_project(&state, typed, &cx).await,
                CompletionSource::Checkpoints => {
                    complete_id(&state, ItemKind::Checkpoint, typed, &cx).await
                }
                CompletionSource::Skills => complete_skill(&state, typed, &cx).await,
            }
        })
    }
}

#[derive(Deserialize, JsonSchema)]
struct ResumeWorkArgs {
    /// Absolute path of the project.
    project_path: String,
    /// Id of the checkpoint; default: the newest.
    checkpoint: Option<String>,
    /// Name of a saved skill to follow.
    skill: Option<String>,
}

async fn resume_work(
    state: AppState,
    owner: Owner,
    args: ResumeWorkArgs,
) -> Result<Vec<PromptMessage>, ContextError> {
    let (project, partition) = state.find_partition(&owner, &args.project_path)?;
    let root = project.root().to_string_lossy().into_owned();
    let most = MAX_EARLIER_CHECKPOINTS + 1;
    let newest = state
        .memory()
        .list(&partition, ItemKind::Checkpoint, None, most);
    let newest = newest.await?;
    let chosen = match non_empty(args.checkpoint) {
        Some(id) => Some(find_checkpoint(&state, &partition, &id).await?),
        None => {
            let mut here = newest.iter().filter(|item| item.branch == project.branch());
            here.next().or(newest.first()).cloned()
        }
    };
    let (branch, shown_root) = (sanitize(project.branch()), sanitize(&root));
    let Some(chosen) = chosen else {
        return Ok(vec![PromptMessage::user(format!(
            "Start work in {shown_root} (branch {branch}). No checkpoint exists yet: look at the repository, ask the user what \
            to do, and call checkpoint_save whenever a step is done."
        ))]);
    };
    let skill = skill_message(&state, &owner, args.skill).await?;
    let mut text = format!(
        "Resume the work in {shown_root} (branch {branch}) from the checkpoint below, saved {} on branch {}. \
        First check what has changed since then. Summarize the state and the next step in a few sentences, \
        then continue. Call checkpoint_save whenever a step is done.",
        format_time(chosen.updated),
        sanitize(&chosen.branch),
    );
    let mut earlier = newest.iter().filter(|item| item.id != chosen.id).peekable();
    if earlier.peek().is_some() {
        text.push_str("\n\nOther checkpoints (read checkpoint://<id>):");
    }
    for item in earlier.take(MAX_EARLIER_CHECKPOINTS) {
        let title = one_line(state.redact_item(item.clone()).headline(), 120);
        let _ = write!(
            text,
            "\n- {} {} [{}] {title}",
            item.id,
            format_time(item.updated),
            sanitize(&item.branch)
        );
    }
    let mut messages = vec![
        PromptMessage::user(text),
        item_message(&state, chosen, Some(root)),
    ];
    messages.extend(skill);
    Ok(messages)
}

#[derive(Deserialize, JsonSchema)]
struct RecordFixArgs {
    /// The error message.
    error_msg: String,
    /// Absolute path of the project; omit it for a fix that applies to all projects.
    project_path: Option<String>,
}

async fn record_fix(
    state: AppState,
    owner: Owner,
    args: RecordFixArgs,
) -> Result<Vec<PromptMessage>, ContextError> {
    if args.error_msg.len() > MAX_ERROR_BYTES {
        return Err(ContextError::invalid(format!(
            "`error_msg` has {} bytes; at most {MAX_ERROR_BYTES} are allowed: keep the lines that name the error",
            args.error_msg.len()
        )));
    }
    let project = non_empty(args.project_path);
    let mut partitions = vec![Partition::shared(&owner)];
    let mut target = "omit project_path, so that all projects share it".to_owned();
    let mut root = None;
    if let Some(path) = project {
        let (project, partition) = state.find_partition(&owner, &path)?;
        partitions.push(partition);
        let path = project.root().to_string_lossy().into_owned();
        target = format!("project_path is {}", sanitize(&path));
        root = Some(path);
    }
    let query = MemoryQuery {
        limit: MAX_KNOWN_FIXES,
        half_life: state.half_life(),
        ..MemoryQuery::new(ItemKind::Remediation, &args.error_msg)
    };
    let known = memory::search(&**state.memory(), &partitions, &query).await?;
    let error = state.redactor().redact(&args.error_msg).text;
    let mut text = format!(
        "This error was solved in our conversation:\n\n```\n{error}\n```\n\n\
        Save the fix with remediation_save ({target}). error_msg: the error message without parts that vary. \
        solution: the cause and the steps that solved it, understandable without this conversation. context: when it \
        happens. Save only a fix that was verified."
    );
    if !known.is_empty() {
        text.push_str(
            "\n\nBelow are known fixes for similar errors. If one of them is the same, do not save another.",
        );
    }
    let mut messages = vec![PromptMessage::user(text)];
    messages.extend(known.into_iter().map(|hit| {
        let root = root.clone().filter(|_| hit.source > 0);
        item_message(&state, hit.item, root)
    }));
    Ok(messages)
}

#[derive(Deserialize, JsonSchema)]
struct ExplainRepositoryArgs {
    /// Absolute path of the repository.
    project_path: String,
    /// Focus of the explanation: a feature, a folder or a question.
    focus: Option<String>,
    /// Name of a saved skill to follow.
    skill: Option<String>,
}

async fn explain_repository(
    state: AppState,
    owner: Owner,
    args: ExplainRepositoryArgs,
) -> Result<Vec<PromptMessage>, ContextError> {
    let (project, database) = state.find_project(&owner, &args.project_path)?;
    project.require_folder()?;
    let root = project.checkout().to_string_lossy();
    let mut text = format!(
        "Explain the repository {} (branch {}).",
        sanitize(&root),
        sanitize(project.branch())
    );
    match non_empty(args.focus) {
        Some(focus) => {
            let _ = write!(text, " Focus on: {focus}");
        }
        None => text.push_str(
            " Describe its purpose, how it is built, its parts and how they work together, and where a newcomer should \
            start to read.",
        ),
    }
    text.push_str(
        " Find the relevant code with repository_search, read it, and cite files and lines.",
    );
    let overview =
        database.map(|database| repository_overview(state.data_dir(), &database, project.folder()));
    match overview.transpose()?.flatten() {
        Some(overview) => {
            let _ = write!(text, "\n\n{}", state.redactor().redact(&overview).text);
        }
        None => text.push_str("\n\nThe repository is not indexed: call index_repository first."),
    }
    let mut messages = vec![PromptMessage::user(text)];
    messages.extend(skill_message(&state, &owner, args.skill).await?);
    Ok(messages)
}

/// Returns the argument unless it is empty: forms send empty strings for omitted arguments.
fn non_empty(argument: Option<String>) -> Option<String> {
    argument.filter(|text| !text.trim().is_empty())
}

async fn find_checkpoint(
    state: &AppState,
    partition: &Partition,
    id: &str,
) -> Result<MemoryItem, ContextError> {
    let found = state.memory().find(Scope::Partition(partition), id).await?;
    let found = found.map(|(_, item)| item);
    let found = found.filter(|item| item.kind == ItemKind::Checkpoint);
    found.ok_or_else(|| {
        ContextError::not_found(format!("checkpoint `{}` in this project", one_line(id, 80)))
    })
}

/// Returns the message with a skill, if one was named.
async fn skill_message(
    state: &AppState,
    owner: &Owner,
    name: Option<String>,
) -> Result<Option<PromptMessage>, ContextError> {
    let Some(name) = non_empty(name) else {
        return Ok(None);
    };
    let shared = Partition::shared(owner);
    let found = memory::find_skill(&**state.memory(), &shared, &name).await?;
    let found =
        found.ok_or_else(|| ContextError::not_found(format!("skill `{}`", one_line(&name, 80))))?;
    Ok(Some(item_message(state, found, None)))
}

/// Returns the message with an item.
fn item_message(state: &AppState, item: MemoryItem, root: Option<String>) -> PromptMessage {
    let item = state.redact_item(item);
    PromptMessage::user(ContentBlock::resource(resources::item_contents(&ItemRef {
        item,
        root,
    })))
}

/// Maximum number of listed languages and folders.
const MAX_LISTED: usize = 12;
/// Maximum number of characters of the README.
const MAX_README_CHARS: usize = 3_000;

/// Returns languages, folders and the start of the README, if the folder is indexed.
pub(super) fn repository_overview(
    data_dir: &DataDir,
    database: &Database,
    folder: &Path,
) -> Result<Option<String>, ContextError> {
    let tree = code_index::tree_for(database, folder)?;
    let Some(tree) = tree.filter(|tree| data_dir.allows(&tree.root)) else {
        return Ok(None);
    };
    let (languages, folders, readme) = database.read(|db| {
        let languages = count_files_by(db, "language", tree.id)?;
        // The top-level folder of each file.
        let top =
            "CASE instr(path, '/') WHEN 0 THEN '(top)' ELSE substr(path, 1, instr(path, '/')) END";
        Ok((
            languages,
            count_files_by(db, top, tree.id)?,
            readme(db, tree.id)?,
        ))
    })?;
    let mut text = format!(
        "The index has {} files.\nLanguages: {}\nFolders: {}",
        tree.counts.files,
        ranked_list(languages),
        ranked_list(folders)
    );
    if let Some(readme) = readme {
        let _ = write!(
            text,
            "\n\nStart of the README:\n\n{}",
            quote_lines(&truncate(&readme, MAX_README_CHARS))
        );
    }
    Ok(Some(text))
}

fn count_files_by(
    db: &Transaction<'_>,
    what: &str,
    tree: i64,
) -> rusqlite::Result<BTreeMap<String, i64>> {
    let select = format!("SELECT {what}, count(*) FROM file WHERE tree = ?1 GROUP BY 1");
    let mut select = db.prepare_cached(&select)?;
    let rows = select.query_map([tree], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn readme(db: &Transaction<'_>, tree: i64) -> rusqlite::Result<Option<String>> {
    let mut select = db.prepare_cached(
        "SELECT chunk.body FROM file JOIN chunk ON chunk.file = file.id \
         WHERE tree = ?1 AND path LIKE 'readme%' AND instr(path, '/') = 0 \
         ORDER BY path, first_line LIMIT 20",
    )?;
    let bodies = select.query_map([tree], |row| row.get(0))?;
    let bodies = bodies.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(Some(bodies.join("\n")).filter(|text| !text.is_empty()))
}

/// Formats counts as `rust 120, toml 9`, the most frequent first.
fn ranked_list(counts: BTreeMap<String, i64>) -> String {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = counts.len().saturating_sub(MAX_LISTED);
    let named = counts.into_iter().take(MAX_LISTED);
    let mut named: Vec<_> = named
        .map(|(what, count)| format!("{} {count}", sanitize(&what)))
        .collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named.join(", ")
}
