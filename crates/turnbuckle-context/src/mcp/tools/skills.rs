//! Tools for skills: instructions for tasks. They belong to the owner, not to a project.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnbuckle_server::{Context, Tool};

use super::{
    memories,
    memories::{MemorySearch, PageInfo, SaveResponse, round_score},
    tool,
};
use crate::{
    ContextError,
    app_state::AppState,
    embedding::service::EmbeddingStatus,
    mcp::{
        display::{format_time, one_line, plural, truncate},
        tool_response::{ContentMode, ResponseOptions, ToText, tags_for_mode},
    },
    memory::{ItemKind, MemoryItem, NewItem},
};

pub(super) fn tools(state: &AppState) -> Vec<Tool> {
    vec![
        tool(state, "skill_save", "Save skill", save)
            .description(
                "Save instructions for a recurring task. Replaces a skill of the same name.",
            )
            .destructive(true)
            .idempotent(),
        tool(state, "skill_search", "Search skills", search)
            .description("Find saved instructions for a task.")
            .read_only(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct SkillSaveArgs {
    /// At most 200 characters.
    name: String,
    /// Purpose and when to use it (at most 2000 characters).
    description: String,
    /// Instructions in Markdown (at most 50000 characters).
    content: String,
    /// Search words.
    tags: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct SavedSkill {
    skill_id: String,
    #[serde(flatten)]
    save_response: SaveResponse,
}

async fn save(
    state: AppState,
    args: SkillSaveArgs,
    cx: Context,
) -> Result<SavedSkill, ContextError> {
    let new_item = NewItem::skill(args.name, args.description, args.content)
        .tags(args.tags.unwrap_or_default());
    let (skill_id, save_response) = memories::save(&state, &cx, None, new_item).await?;
    Ok(SavedSkill {
        skill_id,
        save_response,
    })
}

#[derive(Deserialize, JsonSchema)]
struct SkillSearchArgs {
    /// A question or words.
    #[schemars(length(min = 1))]
    query: String,
    /// Maximum number.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    #[serde(flatten)]
    response: ResponseOptions,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
struct SkillHits {
    skills: Vec<SkillHit>,
    embeddings: EmbeddingStatus,
    #[serde(flatten)]
    page: PageInfo,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct SkillHit {
    skill: SkillView,
    score: f64,
}

async fn search(
    state: AppState,
    args: SkillSearchArgs,
    cx: Context,
) -> Result<SkillHits, ContextError> {
    let search = MemorySearch {
        kind: ItemKind::Skill,
        text: args.query,
        limit: args.limit,
        project_path: None,
        response: &args.response,
    };
    let found = memories::search(&state, &cx, search).await?;
    let skills = args
        .response
        .fit_to_limit(&found.hits, |hit, mode| SkillHit {
            skill: SkillView::from_item(&hit.item, mode),
            score: round_score(hit.score),
        });
    Ok(SkillHits {
        page: found.page(skills.len()),
        embeddings: found.embeddings,
        skills,
    })
}

// A skill in a result.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct SkillView {
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

impl SkillView {
    fn from_item(item: &MemoryItem, mode: ContentMode) -> Self {
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
                ContentMode::Preview => Some(truncate(&item.body, 600).into_owned()),
                ContentMode::Full => Some(item.body.clone()),
            },
            tags: tags_for_mode(&item.tags, mode),
            created_at: format_time(item.created),
            updated_at: format_time(item.updated),
            metadata: item.meta.clone().into_iter().filter(|_| is_full).collect(),
        }
    }
}

impl ToText for SavedSkill {
    fn to_text(&self) -> String {
        self.save_response.text("skill", &self.skill_id)
    }
}

impl ToText for SkillHits {
    fn to_text(&self) -> String {
        if self.skills.is_empty() {
            return "No skill matches.".to_owned();
        }
        let mut text = format!("{}, best first:", plural(self.skills.len(), "skill"));
        for SkillHit { skill, score } in &self.skills {
            let SkillView {
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
