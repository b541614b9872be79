//! The tool `repository_search`.

use std::{
    fmt::Write as _,
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::Context;

use super::state::{CurrentIndex, IndexState, UpdateObstacle, refresh_in_background};
use crate::{
    ContextError, Database, Owner, Project,
    app_state::AppState,
    code_index,
    code_index::{Freshness, IndexOptions, IndexTree},
    code_search,
    code_search::{ChunkHit, CodeQuery, FileHit},
    embedding::service::EmbeddingStatus,
    mcp::{
        display::{one_line, plural, quote_lines, sanitize, truncate},
        tool_response::{ContentMode, ResponseOptions, SearchCursor, ToText},
        tools::memories::{MAX_QUERY_BYTES, PageInfo, check_length, round_score},
    },
    memory_store::{Partition, block_on},
    storage::work_limit::WorkLimit,
};

/// Additional time to wait for a slot before the first index of a project.
const FIRST_INDEX_GRACE: Duration = Duration::from_secs(2);
/// Maximum length of a language name.
const MAX_LANGUAGE_BYTES: usize = 100;
/// Maximum time to refresh the index before a search.
const REFRESH_BUDGET: Duration = Duration::from_millis(150);

#[derive(Deserialize, JsonSchema)]
pub(super) struct RepositorySearchArgs {
    /// A question, words or names.
    #[schemars(length(min = 1))]
    query: String,
    /// Absolute path.
    project_path: String,
    /// Maximum number.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// For example rust or python.
    language: Option<String>,
    /// Folder or glob, relative to the root.
    path: Option<String>,
    #[serde(flatten)]
    response: ResponseOptions,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
pub(super) struct RepositoryHits {
    results: Vec<FileView>,
    index: IndexState,
    embeddings: EmbeddingStatus,
    #[serde(flatten)]
    page: PageInfo,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct FileView {
    path: String,
    language: String,
    score: f64,
    matches: Vec<MatchView>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct MatchView {
    line: u32,
    last_line: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    symbol: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    text: String,
}

pub(super) async fn search(
    state: AppState,
    args: RepositorySearchArgs,
    cx: Context,
) -> Result<RepositoryHits, ContextError> {
    let owner = state.owner(&cx)?;
    let RepositorySearchArgs {
        query,
        project_path,
        limit,
        language,
        path,
        response,
    } = args;
    check_length("query", &query, MAX_QUERY_BYTES)?;
    check_length(
        "language",
        language.as_deref().unwrap_or_default(),
        MAX_LANGUAGE_BYTES,
    )?;
    let filters = [&language, &path].map(|filter| filter.as_deref().unwrap_or_default());
    let parts = ["code", &query, &project_path, filters[0], filters[1]];
    let cursor = SearchCursor::parse(response.cursor.as_deref(), &parts)?;
    let (embedding, embeddings) = state.embed_query(&query).await;
    let (fetch_limit, offset) = (cursor.fetch_limit(limit), cursor.offset());
    let code_query = CodeQuery {
        limit: fetch_limit,
        language,
        path,
        embedding,
        ..CodeQuery::new(&query)
    };
    let (mut current, database, partition) =
        current_index(&state, owner.clone(), project_path).await?;
    let searched = (current.tree.clone(), database.clone());
    let job_owner = owner.clone();
    let (found, known, is_over_quota) = state
        .run_read(&owner, move |state| {
            let (tree, database) = searched;
            let found = code_search::search(&database, &tree, &code_query)?;
            let known = found.len();
            let page = found.into_iter().skip(offset).take(limit);
            let found: Vec<_> = page.map(|file| redact_hit(state, file)).collect();
            Ok((found, known, state.is_over_quota(&job_owner)))
        })
        .await?;
    if is_over_quota {
        current.obstacle = Some(UpdateObstacle::QuotaExhausted);
    }
    let index = IndexState::new(&current);
    if index.needs_update() {
        let data = json!({ "message": "the index is being updated", "state": index.state() });
        cx.log_as(LogLevel::Notice, Some("index"), data).await;
        refresh_in_background(&state, &owner, &database, current.tree);
    }
    state.queue_embedding(partition);
    let words = query_words(&query);
    let results =
        response.fit_to_limit(&found, |file, mode| FileView::from_hit(file, mode, &words));
    Ok(RepositoryHits {
        page: PageInfo {
            left_out: found.len() - results.len(),
            next_cursor: cursor.next_cursor(results.len(), known),
        },
        results,
        index,
        embeddings,
    })
}

/// Returns the index of a project, refreshed as far as time allows. A small project without an index is indexed first.
async fn current_index(
    state: &AppState,
    owner: Owner,
    path: String,
) -> Result<(CurrentIndex, Arc<Database>, Partition), ContextError> {
    let job_owner = owner.clone();
    let (project, known) = state
        .run_write(&owner, move |state| {
            let (project, database) = state.find_project(&job_owner, &path)?;
            project.require_folder()?;
            let Some(database) = database else {
                return Ok((project, None));
            };
            let known = refresh_existing(state, &job_owner, &project, &database)?;
            Ok((project, known.map(|known| (known, database))))
        })
        .await?;
    let partition = Partition::project(&owner, project.id());
    if let Some((current, database)) = known {
        return Ok((current, database, partition));
    }
    let (job_owner, job_partition) = (owner.clone(), partition.clone());
    let work = state.run_long(&owner, move |state, limit| {
        // Check before creating the database, which takes space.
        block_on(state.check_quota(&job_owner))?;
        let root = project.root().to_string_lossy();
        block_on(state.memory().create_project(&job_partition, &root))?;
        let database = state.data_dir().open_project(&job_owner, &project)?;
        let tree = build_first_index(state, &project, &database, limit)?;
        Ok((tree, database))
    });
    // Other index runs may occupy the slots for minutes.
    let waited = tokio::time::timeout(state.first_index_timeout() + FIRST_INDEX_GRACE, work).await;
    match waited.unwrap_or(Err(ContextError::Cancelled)) {
        Ok((tree, database)) => {
            let fresh = CurrentIndex {
                tree,
                freshness: Freshness::Fresh,
                obstacle: None,
            };
            Ok((fresh, database, partition))
        }
        Err(ContextError::Cancelled) => Err(ContextError::invalid(
            "this project is not indexed and too large to be indexed during a search; call index_repository first",
        )),
        Err(error) => Err(error),
    }
}

fn refresh_existing(
    state: &AppState,
    owner: &Owner,
    project: &Project,
    database: &Database,
) -> Result<Option<CurrentIndex>, ContextError> {
    let known = code_index::tree_for(database, project.folder())?;
    let Some(mut tree) = known.filter(|tree| state.data_dir().allows(&tree.root)) else {
        return Ok(None);
    };
    // Another branch may be checked out now.
    project.branch().clone_into(&mut tree.branch);
    CurrentIndex::refresh(state, owner, database, tree, REFRESH_BUDGET).map(Some)
}

fn build_first_index(
    state: &AppState,
    project: &Project,
    database: &Database,
    limit: &WorkLimit,
) -> Result<IndexTree, ContextError> {
    let started = Instant::now();
    let mut watch = |_| {
        if started.elapsed() < state.first_index_timeout() && !limit.is_exceeded() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    // The root of the repository may be above the allowed folders.
    let root = if state.data_dir().allows(project.checkout()) {
        project.checkout()
    } else {
        project.folder()
    };
    let (branch, options) = (project.branch(), IndexOptions::default());
    let (folder, redactor) = (state.data_dir().open_folder(root)?, state.redactor());
    let done = code_index::index_open_dir(
        database, &folder, root, branch, &options, redactor, &mut watch,
    )?;
    Ok(done.tree)
}

/// Redacts a hit again: the rules may have changed since it was indexed.
fn redact_hit(state: &AppState, mut file: FileHit) -> FileHit {
    for chunk in &mut file.chunks {
        for text in [&mut chunk.symbol, &mut chunk.body] {
            *text = state.redactor().redact(text).text.into_owned();
        }
    }
    file
}

impl FileView {
    fn from_hit(file: &FileHit, mode: ContentMode, words: &[String]) -> Self {
        let matches: Vec<_> = match mode {
            ContentMode::Minimal => file.chunks.iter().take(1).collect(),
            ContentMode::Preview => file.chunks.iter().take(2).collect(),
            ContentMode::Full => file.chunks.iter().collect(),
        };
        Self {
            path: file.path.clone(),
            language: file.language.clone(),
            score: round_score(file.score),
            matches: matches
                .into_iter()
                .map(|chunk| MatchView::from_chunk(chunk, mode, words))
                .collect(),
        }
    }
}

/// Number of lines in a preview.
const PREVIEW_LINES: usize = 12;
/// Number of these lines before the best line.
const LINES_BEFORE: usize = 3;

impl MatchView {
    fn from_chunk(chunk: &ChunkHit, mode: ContentMode, words: &[String]) -> Self {
        let (line, text) = match mode {
            ContentMode::Minimal => best_line(chunk, words),
            ContentMode::Preview => preview(chunk, words),
            ContentMode::Full => (chunk.first_line, chunk.body.clone()),
        };
        Self {
            line,
            last_line: chunk.last_line,
            symbol: chunk.symbol.clone(),
            kind: chunk.kind.clone(),
            text,
        }
    }
}

/// Returns the start of a chunk, or the lines around the best line if it comes later.
fn preview(chunk: &ChunkHit, words: &[String]) -> (u32, String) {
    let (best, _) = best_line(chunk, words);
    let before = usize::try_from(best - chunk.first_line).unwrap_or_default();
    let skipped = if before < PREVIEW_LINES {
        0
    } else {
        before - LINES_BEFORE
    };
    let lines = chunk.body.lines().skip(skipped).take(PREVIEW_LINES);
    let lines: Vec<_> = lines.map(|line| truncate(line, 200)).collect();
    let first = chunk.first_line + u32::try_from(skipped).unwrap_or_default();
    (first, lines.join("\n"))
}

/// Returns the first line with the most query words, and its number.
fn best_line(chunk: &ChunkHit, words: &[String]) -> (u32, String) {
    let hits = |line: &str| {
        let line = line.to_lowercase();
        words.iter().filter(|word| line.contains(&**word)).count()
    };
    let lines = (chunk.first_line..).zip(chunk.body.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let best = lines
        .map(|(number, line)| (hits(line), number, line))
        .reduce(|best, other| if other.0 > best.0 { other } else { best });
    best.map_or((chunk.first_line, String::new()), |(_, number, line)| {
        (number, one_line(line, 120))
    })
}

/// Returns the query words that lines are compared with.
fn query_words(query: &str) -> Vec<String> {
    let words = query.split(|char: char| !char.is_alphanumeric() && char != '_');
    let words = words.filter(|word| word.chars().count() > 2);
    words.take(32).map(str::to_lowercase).collect()
}

impl ToText for RepositoryHits {
    fn to_text(&self) -> String {
        let index = self.index.text();
        if self.results.is_empty() {
            return format!("No matches (index: {index}). Try other words or remove filters.")
                + self.embeddings.text();
        }
        let count = plural(self.results.len(), "file");
        let mut text = format!("{count}, best first (index: {index}):");
        for file in &self.results {
            file.write(&mut text);
        }
        text + &self.page.text() + self.embeddings.text()
    }
}

impl FileView {
    fn write(&self, text: &mut String) {
        let (path, score) = (sanitize(&self.path), self.score);
        for (number, found) in self.matches.iter().enumerate() {
            let MatchView {
                line,
                symbol,
                kind,
                text: body,
                ..
            } = found;
            match number {
                0 => {
                    let _ = write!(text, "\n{path}:{line} ({score})");
                }
                _ => {
                    let _ = write!(text, "\n{path}:{line}");
                }
            }
            if !symbol.is_empty() {
                let _ = write!(text, " {kind} {}", sanitize(symbol));
            }
            if body.contains('\n') {
                let _ = write!(text, "\n{}", quote_lines(body));
            } else {
                let _ = write!(text, " | {}", sanitize(body));
            }
        }
    }
}
