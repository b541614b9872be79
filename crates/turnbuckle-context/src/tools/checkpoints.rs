//! Checkpoints: where some work stands.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnbuckle_server::{Context, Tool};

use super::memories::{self, Page, Receipt, Search, rounded};
use super::tool;
use crate::ContextError;
use crate::answer::{ContentMode, Readable, Wanted, cut, one_line, plural, tags, time, visible};
use crate::dense::Embeddings;
use crate::desk::Desk;
use crate::memory::{self, Draft, Item, Kind};

pub(super) fn tools(desk: &Desk) -> Vec<Tool> {
    vec![
        tool(desk, "checkpoint_save", "Save checkpoint", save)
            .description(
                "Save where the work stands, to go on later or in another conversation. Secrets are taken out.",
            )
            .destructive(false)
            .idempotent(),
        tool(desk, "checkpoint_search", "Search checkpoints", search)
            .description("Find earlier checkpoints of a project, by words or a question.")
            .read_only()
            .destructive(false)
            .idempotent(),
        tool(desk, "checkpoint_list", "List checkpoints", list)
            .description("Checkpoints of a project, newest first.")
            .read_only()
            .destructive(false)
            .idempotent(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct SaveArgs {
    /// What was done, decided and is next (at most 100 KB).
    content: String,
    /// Absolute path.
    project_path: String,
    /// summary: the title; tags: comma list.
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, JsonSchema)]
struct SavedCheckpoint {
    checkpoint_id: String,
    #[serde(flatten)]
    receipt: Receipt,
}

async fn save(desk: Desk, args: SaveArgs, cx: Context) -> Result<SavedCheckpoint, ContextError> {
    let mut draft = Draft::checkpoint(args.content);
    let mut metadata = args.metadata.unwrap_or_default();
    if let Some(summary) = metadata
        .remove("summary")
        .filter(|text| !text.trim().is_empty())
    {
        draft = draft.title(summary);
    }
    if let Some(tags) = metadata.remove("tags") {
        let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
        draft = draft.tags(tags);
    }
    let rest: Map<_, _> = metadata
        .into_iter()
        .map(|(key, value)| (key, Value::from(value)))
        .collect();
    let (checkpoint_id, receipt) =
        memories::save(&desk, &cx, Some(args.project_path), draft.meta(rest)).await?;
    Ok(SavedCheckpoint {
        checkpoint_id,
        receipt,
    })
}

#[derive(Deserialize, JsonSchema)]
struct SearchArgs {
    /// A question or words.
    #[schemars(length(min = 1))]
    query: String,
    /// Absolute path.
    project_path: String,
    /// At most so many.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    #[serde(flatten)]
    wanted: Wanted,
}

fn ten() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
struct Hits {
    checkpoints: Vec<Hit>,
    embeddings: Embeddings,
    #[serde(flatten)]
    page: Page,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Hit {
    checkpoint: Checkpoint,
    score: f64,
}

async fn search(desk: Desk, args: SearchArgs, cx: Context) -> Result<Hits, ContextError> {
    let search = Search {
        kind: Kind::Checkpoint,
        text: args.query,
        limit: args.limit,
        project_path: Some(args.project_path),
        wanted: &args.wanted,
    };
    let found = memories::search(&desk, &cx, search).await?;
    let root = found.root.as_deref();
    let checkpoints = args.wanted.fit(&found.hits, |hit, mode| Hit {
        checkpoint: Checkpoint::of(&hit.item, root, mode),
        score: rounded(hit.score),
    });
    Ok(Hits {
        page: found.page(checkpoints.len()),
        embeddings: found.embeddings,
        checkpoints,
    })
}

#[derive(Deserialize, JsonSchema)]
struct ListArgs {
    /// Absolute path.
    project_path: String,
    /// At most so many.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    #[serde(flatten)]
    wanted: Wanted,
}

fn twenty() -> usize {
    20
}

#[derive(Default, Serialize, JsonSchema)]
struct Listed {
    checkpoints: Vec<Checkpoint>,
    #[serde(flatten)]
    page: Page,
}

async fn list(desk: Desk, args: ListArgs, cx: Context) -> Result<Listed, ContextError> {
    let owner = desk.owner(&cx)?;
    desk.block_read(&owner.clone(), move |desk| {
        let (project, database) = desk.look(&owner, &args.project_path)?;
        let Some(database) = database else {
            return Ok(Listed::default());
        };
        let root = project.root().to_string_lossy();
        let after = args
            .wanted
            .cursor
            .as_deref()
            .filter(|after| !after.is_empty());
        let page = memory::list(&database, Kind::Checkpoint, args.limit, after)?;
        let items: Vec<_> = page
            .items
            .into_iter()
            .map(|item| desk.clean(item))
            .collect();
        let shape = |item: &Item, mode| Checkpoint::of(item, Some(&root), mode);
        let checkpoints = args.wanted.fit(&items, shape);
        let left_out = items.len() - checkpoints.len();
        let next_cursor = match left_out {
            0 => page.next,
            // The next page begins where this one had to stop.
            _ if checkpoints.is_empty() => None,
            _ => memory::list(&database, Kind::Checkpoint, checkpoints.len(), after)?.next,
        };
        Ok(Listed {
            checkpoints,
            page: Page {
                left_out,
                next_cursor,
            },
        })
    })
    .await
}

// A checkpoint as it is told.
#[derive(Serialize, JsonSchema)]
struct Checkpoint {
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

impl Checkpoint {
    fn of(item: &Item, root: Option<&str>, mode: ContentMode) -> Self {
        let is_full = mode == ContentMode::Full;
        Self {
            id: item.id.clone(),
            summary: match mode {
                ContentMode::Minimal => one_line(item.headline(), 160),
                _ => cut(item.headline(), 500).into_owned(),
            },
            branch: item.branch.clone(),
            created_at: time(item.created),
            updated_at: is_full.then(|| time(item.updated)),
            tags: tags(&item.tags, mode),
            content: match mode {
                ContentMode::Minimal => None,
                ContentMode::Preview => Some(cut(&item.body, 600).into_owned()),
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
        let (day, branch) = (created_at.get(..10).unwrap_or(created_at), visible(branch));
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

impl Readable for SavedCheckpoint {
    fn text(&self) -> String {
        self.receipt.text("checkpoint", &self.checkpoint_id)
    }
}

impl Readable for Hits {
    fn text(&self) -> String {
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

impl Readable for Listed {
    fn text(&self) -> String {
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
