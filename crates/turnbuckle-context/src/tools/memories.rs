//! What the tools of all three kinds of memory do alike: save, tell of it, and page through what is found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::Context;

use crate::answer::{Place, Wanted, plural};
use crate::dense::Embeddings;
use crate::desk::Desk;
use crate::memory::{self, Draft, Hit, Kind, MemoryQuery, Saved};
use crate::{ContextError, Database, Owner, Project};

// What is told of everything that was saved.
#[derive(Serialize, JsonSchema)]
pub(super) struct Receipt {
    operation_id: String,
    status: &'static str,
    /// False: it was there already.
    is_new: bool,
    /// Near duplicates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar_to: Vec<Similar>,
    /// Secrets taken out, by rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    redacted: BTreeMap<String, u32>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Similar {
    id: String,
    title: String,
    similarity: f64,
}

/// Saves a draft in the memory of a project, or of all projects, and tells everyone who has to know.
pub(super) async fn save(
    desk: &Desk,
    cx: &Context,
    project_path: Option<String>,
    draft: Draft,
) -> Result<(String, Receipt), ContextError> {
    let owner = desk.owner(cx)?;
    let whose = owner.clone();
    let (saved, database) = desk
        .block(&whose, move |desk| {
            desk.check_quota(&owner)?;
            let (draft, database) = match project_path {
                Some(path) => {
                    let (project, database) = desk.open(&owner, &path)?;
                    (draft.branch(project.branch()), database)
                }
                None => (draft, desk.library().shared(&owner)?),
            };
            let saved = memory::save(&database, desk.redactor(), draft)?;
            Ok((saved, database))
        })
        .await?;
    desk.embed_soon(&whose, &database);
    desk.publish(cx).await;
    log(cx, &saved).await;
    Ok((saved.item.id.clone(), Receipt::of(&saved)))
}

/// Tells a client that listens what is odd about something that was saved.
async fn log(cx: &Context, saved: &Saved) {
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

impl Receipt {
    fn of(saved: &Saved) -> Self {
        let similar = saved.similar_to.iter().map(|other| Similar {
            id: other.id.clone(),
            title: other.title.clone(),
            similarity: rounded(other.similarity),
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
            let Similar {
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
pub(super) const MOST_QUERY: usize = 4 * 1024;
/// The longest error message that is looked for, in bytes.
const MOST_ERROR: usize = 16 * 1024;

/// Refuses an argument that is too long, and says how long it may be.
pub(super) fn check_length(name: &str, text: &str, most: usize) -> Result<(), ContextError> {
    match text.len() <= most {
        true => Ok(()),
        false => Err(ContextError::refused(format!(
            "`{name}` has {} bytes, and {most} are allowed; ask with the words that matter",
            text.len()
        ))),
    }
}

/// What a search in memory asks for.
pub(super) struct Search<'a> {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) limit: usize,
    pub(super) project_path: Option<String>,
    pub(super) wanted: &'a Wanted,
}

/// Hits from the place that the cursor names, and whether there are more.
pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    pub(super) place: Place,
    /// Items that are known to be there, with those before the place.
    known: usize,
    pub(super) embeddings: Embeddings,
    /// The project's folder, if one was asked about.
    pub(super) root: Option<String>,
}

/// Looks for what was saved. With a project its memory is searched; what all projects share is searched for all but
/// checkpoints, which belong to one.
pub(super) async fn search(
    desk: &Desk,
    cx: &Context,
    search: Search<'_>,
) -> Result<Found, ContextError> {
    let owner = desk.owner(cx)?;
    let Search {
        kind,
        text,
        limit,
        project_path,
        wanted,
    } = search;
    let (name, most) = match kind {
        // It is pasted as a program printed it.
        Kind::Remediation => ("error_msg", MOST_ERROR),
        Kind::Checkpoint | Kind::Skill => ("query", MOST_QUERY),
    };
    check_length(name, &text, most)?;
    let path = project_path.as_deref().unwrap_or_default();
    let place = Place::of(wanted.cursor.as_deref(), &[kind.as_str(), &text, path])?;
    let reach = place.reach(limit);
    let (dense, embeddings) = desk.dense(&text).await;
    let offset = place.offset();
    let (hits, known, root) = desk
        .block_read(&owner.clone(), move |desk| {
            let (project, databases) = searched(desk, &owner, kind, project_path.as_deref())?;
            let query = MemoryQuery {
                limit: reach,
                half_life: desk.half_life(),
                dense,
                ..MemoryQuery::new(kind, text)
            };
            let databases: Vec<&Database> = databases.iter().map(|one| &**one).collect();
            let found = memory::search(&databases, &query)?;
            let known = found.len();
            let page = found.into_iter().skip(offset).take(limit);
            let hits = page
                .map(|hit| Hit {
                    item: desk.clean(hit.item),
                    ..hit
                })
                .collect();
            let root = project.map(|project| project.root().to_string_lossy().into_owned());
            Ok((hits, known, root))
        })
        .await?;
    Ok(Found {
        hits,
        place,
        known,
        embeddings,
        root,
    })
}

type Searched = (Option<Project>, Vec<Arc<Database>>);

fn searched(
    desk: &Desk,
    owner: &Owner,
    kind: Kind,
    path: Option<&str>,
) -> Result<Searched, ContextError> {
    let mut databases = Vec::new();
    let mut project = None;
    if let Some(path) = path {
        let (found, database) = desk.look(owner, path)?;
        project = Some(found);
        databases.extend(database);
    }
    if kind != Kind::Checkpoint {
        databases.extend(desk.library().known_shared(owner)?);
    }
    Ok((project, databases))
}

impl Found {
    /// What is told of the page that shows `shown` of the hits.
    pub(super) fn page(&self, shown: usize) -> Page {
        Page {
            left_out: self.hits.len() - shown,
            next_cursor: self.place.next(shown, self.known),
        }
    }
}

// What is told of everything that comes in pages.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Page {
    /// More than max_tokens has room for.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) left_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(super) next_cursor: Option<String>,
}

impl Page {
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
pub(super) fn rounded(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}
