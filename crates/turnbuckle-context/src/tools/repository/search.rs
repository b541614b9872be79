//! Search in a repository.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::Context;

use super::state::{IndexState, State, catch_up};
use crate::answer::{ContentMode, Place, Readable, Wanted, cut, one_line, plural, quoted, visible};
use crate::code::{self, ChunkHit, CodeQuery, FileHit};
use crate::dense::Embeddings;
use crate::desk::Desk;
use crate::index::{self, Freshness, IndexOptions, Refreshed, Tree};
use crate::limit::WorkLimit;
use crate::tools::memories::{MOST_QUERY, Page, check_length, rounded};
use crate::{ContextError, Database, Owner, Project};

/// How much longer than its work a search waits for the first index of a project.
const GRACE: Duration = Duration::from_secs(2);
/// The longest name of a language, in bytes.
const MOST_LANGUAGE: usize = 100;
/// How long a search may look for changed files first.
const REFRESH: Duration = Duration::from_millis(150);

#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchArgs {
    /// A question, words or names.
    #[schemars(length(min = 1))]
    query: String,
    /// Absolute path.
    project_path: String,
    /// At most so many.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Such as rust or python.
    language: Option<String>,
    /// Folder or glob below the root.
    path: Option<String>,
    #[serde(flatten)]
    wanted: Wanted,
}

fn ten() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Hits {
    results: Vec<File>,
    index: IndexState,
    embeddings: Embeddings,
    #[serde(flatten)]
    page: Page,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct File {
    path: String,
    language: String,
    score: f64,
    matches: Vec<Match>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Match {
    line: u32,
    last_line: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    symbol: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    text: String,
}

pub(super) async fn search(
    desk: Desk,
    args: SearchArgs,
    cx: Context,
) -> Result<Hits, ContextError> {
    let owner = desk.owner(&cx)?;
    let SearchArgs {
        query,
        project_path,
        limit,
        language,
        path,
        wanted,
    } = args;
    check_length("query", &query, MOST_QUERY)?;
    check_length(
        "language",
        language.as_deref().unwrap_or_default(),
        MOST_LANGUAGE,
    )?;
    let filters = [&language, &path].map(|filter| filter.as_deref().unwrap_or_default());
    let parts = ["code", &query, &project_path, filters[0], filters[1]];
    let place = Place::of(wanted.cursor.as_deref(), &parts)?;
    let (dense, embeddings) = desk.dense(&query).await;
    let (reach, offset) = (place.reach(limit), place.offset());
    let asked = CodeQuery {
        limit: reach,
        language,
        path,
        dense,
        ..CodeQuery::new(&query)
    };
    let (tree, freshness, database) = current(&desk, owner.clone(), project_path).await?;
    let searched = (tree.clone(), database.clone());
    let whose = owner.clone();
    let (found, known, is_full) = desk
        .block_read(&owner, move |desk| {
            let (tree, database) = searched;
            let found = code::search(&database, &tree, &asked)?;
            let known = found.len();
            let page = found.into_iter().skip(offset).take(limit);
            let found: Vec<_> = page.map(|file| clean(desk, file)).collect();
            Ok((found, known, desk.is_full(&whose)))
        })
        .await?;
    let index = IndexState::of(&tree, freshness).full(is_full);
    if index.state() != State::Fresh && !is_full {
        let data =
            json!({ "message": "the index is being brought up to date", "state": index.state() });
        cx.log_as(LogLevel::Notice, Some("index"), data).await;
        catch_up(&desk, &owner, &database, tree);
    }
    desk.embed_soon(&owner, &database);
    let words = words(&query);
    let results = wanted.fit(&found, |file, mode| File::of(file, mode, &words));
    Ok(Hits {
        page: Page {
            left_out: found.len() - results.len(),
            next_cursor: place.next(results.len(), known),
        },
        results,
        index,
        embeddings,
    })
}

/// The index of a project, brought up to date as far as there is time. A small project that has none gets one.
async fn current(
    desk: &Desk,
    owner: Owner,
    path: String,
) -> Result<(Tree, Freshness, Arc<Database>), ContextError> {
    let whose = owner.clone();
    let (project, known) = desk
        .block(&owner, move |desk| {
            let (project, database) = desk.look(&whose, &path)?;
            let Some(database) = database else {
                return Ok((project, None));
            };
            let known = refreshed(desk, &whose, &project, &database)?;
            Ok((project, known.map(|known| (known, database))))
        })
        .await?;
    if let Some((known, database)) = known {
        return Ok((known.tree, known.freshness, database));
    }
    let whose = owner.clone();
    let work = desk.block_long(&owner, move |desk, limit| {
        // Before the database is created, which takes room.
        desk.check_quota(&whose)?;
        let database = desk.library().open(&whose, &project)?;
        let tree = first_index(desk, &project, &database, limit)?;
        Ok((tree, database))
    });
    // Others may be indexing for minutes before it is this one's turn.
    let waited = tokio::time::timeout(desk.first_index() + GRACE, work).await;
    match waited.unwrap_or(Err(ContextError::Cancelled)) {
        Ok((tree, database)) => Ok((tree, Freshness::Fresh, database)),
        Err(ContextError::Cancelled) => Err(ContextError::refused(
            "this project is not indexed yet and too large to do it within a search; call index_repository first",
        )),
        Err(error) => Err(error),
    }
}

fn refreshed(
    desk: &Desk,
    owner: &Owner,
    project: &Project,
    database: &Database,
) -> Result<Option<Refreshed>, ContextError> {
    let known = index::tree_for(database, project.folder())?;
    let Some(mut tree) = known.filter(|tree| desk.library().allows(&tree.root)) else {
        return Ok(None);
    };
    // Another branch may have been checked out since.
    project.branch().clone_into(&mut tree.branch);
    if desk.is_full(owner) {
        return Ok(Some(Refreshed::unchecked(tree)));
    }
    let folder = desk.library().open_folder(&tree.root)?;
    let mut go_on = || true;
    index::refresh_folder(
        database,
        &folder,
        &tree,
        desk.redactor(),
        REFRESH,
        &mut go_on,
    )
    .map(Some)
}

fn first_index(
    desk: &Desk,
    project: &Project,
    database: &Database,
    limit: &WorkLimit,
) -> Result<Tree, ContextError> {
    let begun = Instant::now();
    let mut watch = |_| match begun.elapsed() < desk.first_index() && !limit.is_over() {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    // The repository may begin above the folders that may be used.
    let root = match desk.library().allows(project.checkout()) {
        true => project.checkout(),
        false => project.folder(),
    };
    let (branch, options) = (project.branch(), IndexOptions::default());
    let (folder, redactor) = (desk.library().open_folder(root)?, desk.redactor());
    let done = index::index_folder(
        database, &folder, root, branch, &options, redactor, &mut watch,
    )?;
    Ok(done.tree)
}

/// A file without secrets that were none to the rules of the day on which it was indexed.
fn clean(desk: &Desk, mut file: FileHit) -> FileHit {
    for chunk in &mut file.chunks {
        for text in [&mut chunk.symbol, &mut chunk.body] {
            *text = desk.redactor().redact(text).text.into_owned();
        }
    }
    file
}

impl File {
    fn of(file: &FileHit, mode: ContentMode, words: &[String]) -> Self {
        let matches: Vec<_> = match mode {
            ContentMode::Minimal => file.chunks.iter().take(1).collect(),
            ContentMode::Preview => file.chunks.iter().take(2).collect(),
            ContentMode::Full => file.chunks.iter().collect(),
        };
        Self {
            path: file.path.clone(),
            language: file.language.clone(),
            score: rounded(file.score),
            matches: matches
                .into_iter()
                .map(|chunk| Match::of(chunk, mode, words))
                .collect(),
        }
    }
}

/// Lines of a place that a preview shows.
const PREVIEW_LINES: usize = 12;
/// Lines of them before the best one.
const LINES_BEFORE: usize = 3;

impl Match {
    fn of(chunk: &ChunkHit, mode: ContentMode, words: &[String]) -> Self {
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

/// The beginning of a place, or what is around its best line if that comes later.
fn preview(chunk: &ChunkHit, words: &[String]) -> (u32, String) {
    let (best, _) = best_line(chunk, words);
    let before = usize::try_from(best - chunk.first_line).unwrap_or_default();
    let skipped = match before < PREVIEW_LINES {
        true => 0,
        false => before - LINES_BEFORE,
    };
    let lines = chunk.body.lines().skip(skipped).take(PREVIEW_LINES);
    let lines: Vec<_> = lines.map(|line| cut(line, 200)).collect();
    let first = chunk.first_line + u32::try_from(skipped).unwrap_or_default();
    (first, lines.join("\n"))
}

/// The line that has most of the words, and its number; of several the first.
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

/// The words of a question, as lines are compared with.
fn words(query: &str) -> Vec<String> {
    let words = query.split(|char: char| !char.is_alphanumeric() && char != '_');
    let words = words.filter(|word| word.chars().count() > 2);
    words.take(32).map(str::to_lowercase).collect()
}

impl Readable for Hits {
    fn text(&self) -> String {
        let index = self.index.text();
        if self.results.is_empty() {
            return format!("Nothing found (index: {index}). Other words, or no filter, may help.")
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

impl File {
    fn write(&self, text: &mut String) {
        let (path, score) = (visible(&self.path), self.score);
        for (number, place) in self.matches.iter().enumerate() {
            let Match {
                line,
                symbol,
                kind,
                text: body,
                ..
            } = place;
            match number {
                0 => {
                    let _ = write!(text, "\n{path}:{line} ({score})");
                }
                _ => {
                    let _ = write!(text, "\n{path}:{line}");
                }
            }
            if !symbol.is_empty() {
                let _ = write!(text, " {kind} {}", visible(symbol));
            }
            match body.contains('\n') {
                true => {
                    let _ = write!(text, "\n{}", quoted(body));
                }
                false => {
                    let _ = write!(text, " | {}", visible(body));
                }
            }
        }
    }
}
