//! Skills: how something is done. They belong to the owner, not to a project.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnbuckle_server::{Context, Tool};

use super::memories::{self, Page, Receipt, Search, rounded};
use super::tool;
use crate::ContextError;
use crate::answer::{ContentMode, Readable, Wanted, cut, one_line, plural, tags, time};
use crate::dense::Embeddings;
use crate::desk::Desk;
use crate::memory::{Draft, Item, Kind};

pub(super) fn tools(desk: &Desk) -> Vec<Tool> {
    vec![
        tool(desk, "skill_save", "Save skill", save)
            .description("Save instructions for a task that comes again. The same name replaces.")
            .destructive(true)
            .idempotent(),
        tool(desk, "skill_search", "Search skills", search)
            .description("Find saved instructions for a task.")
            .read_only()
            .destructive(false)
            .idempotent(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct SaveArgs {
    /// At most 200 characters.
    name: String,
    /// What it does and when to use it (at most 2000 characters).
    description: String,
    /// The instructions, Markdown (at most 50000 characters).
    content: String,
    /// Words to find it by.
    tags: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct SavedSkill {
    skill_id: String,
    #[serde(flatten)]
    receipt: Receipt,
}

async fn save(desk: Desk, args: SaveArgs, cx: Context) -> Result<SavedSkill, ContextError> {
    let draft =
        Draft::skill(args.name, args.description, args.content).tags(args.tags.unwrap_or_default());
    let (skill_id, receipt) = memories::save(&desk, &cx, None, draft).await?;
    Ok(SavedSkill { skill_id, receipt })
}

#[derive(Deserialize, JsonSchema)]
struct SearchArgs {
    /// A question or words.
    #[schemars(length(min = 1))]
    query: String,
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
    skills: Vec<Hit>,
    embeddings: Embeddings,
    #[serde(flatten)]
    page: Page,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Hit {
    skill: Skill,
    score: f64,
}

async fn search(desk: Desk, args: SearchArgs, cx: Context) -> Result<Hits, ContextError> {
    let search = Search {
        kind: Kind::Skill,
        text: args.query,
        limit: args.limit,
        project_path: None,
        wanted: &args.wanted,
    };
    let found = memories::search(&desk, &cx, search).await?;
    let skills = args.wanted.fit(&found.hits, |hit, mode| Hit {
        skill: Skill::of(&hit.item, mode),
        score: rounded(hit.score),
    });
    Ok(Hits {
        page: found.page(skills.len()),
        embeddings: found.embeddings,
        skills,
    })
}

// A skill as it is told.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Skill {
    id: String,
    name: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
}

impl Skill {
    fn of(item: &Item, mode: ContentMode) -> Self {
        let is_full = mode == ContentMode::Full;
        Self {
            id: item.id.clone(),
            name: item.title.clone(),
            description: match mode {
                ContentMode::Minimal => one_line(&item.detail, 160),
                _ => item.detail.clone(),
            },
            content: match mode {
                ContentMode::Minimal => None,
                ContentMode::Preview => Some(cut(&item.body, 600).into_owned()),
                ContentMode::Full => Some(item.body.clone()),
            },
            tags: tags(&item.tags, mode),
            created_at: time(item.created),
            updated_at: time(item.updated),
            metadata: item.meta.clone().into_iter().filter(|_| is_full).collect(),
        }
    }
}

impl Readable for SavedSkill {
    fn text(&self) -> String {
        self.receipt.text("skill", &self.skill_id)
    }
}

impl Readable for Hits {
    fn text(&self) -> String {
        if self.skills.is_empty() {
            return "No skill matches.".to_owned();
        }
        let mut text = format!("{}, best first:", plural(self.skills.len(), "skill"));
        for Hit { skill, score } in &self.skills {
            let Skill {
                id,
                name,
                description,
                ..
            } = skill;
            let _ = write!(text, "\n- {name} ({score}, {id}): {description}");
            if let Some(content) = &skill.content {
                let _ = write!(text, "\n{content}\n");
            }
        }
        text + &self.page.text() + self.embeddings.text()
    }
}
