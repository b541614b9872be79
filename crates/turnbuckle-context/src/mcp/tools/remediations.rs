//! Tools for remediations: fixes for errors.

use std::{collections::BTreeMap, fmt::Write as _};

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
        tool(state, "remediation_save", "Save fix", save)
            .description("Save the fix for an error after verifying it.")
            .destructive(false)
            .idempotent(),
        tool(state, "remediation_search", "Search fixes", search)
            .description("Find known fixes for an error. Call it before debugging.")
            .read_only(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct RemediationSaveArgs {
    /// Error message (at most 1000 characters).
    error_msg: String,
    /// The fix (at most 5000 characters).
    solution: String,
    /// Omit to share the fix with all projects.
    project_path: Option<String>,
    /// Circumstances of the error.
    context: Option<String>,
    /// tags: comma-separated.
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, JsonSchema)]
struct SavedRemediation {
    remediation_id: String,
    #[serde(flatten)]
    save_response: SaveResponse,
}

async fn save(
    state: AppState,
    args: RemediationSaveArgs,
    cx: Context,
) -> Result<SavedRemediation, ContextError> {
    let mut metadata = args.metadata.unwrap_or_default();
    let tags = metadata.remove("tags").unwrap_or_default();
    let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    let rest = metadata
        .into_iter()
        .map(|(key, value)| (key, Value::from(value)));
    let new_item = NewItem::remediation(args.error_msg, args.solution)
        .detail(args.context.unwrap_or_default())
        .tags(tags.map(str::to_owned).collect::<Vec<_>>())
        .meta(rest.collect());
    let (remediation_id, save_response) =
        memories::save(&state, &cx, args.project_path, new_item).await?;
    Ok(SavedRemediation {
        remediation_id,
        save_response,
    })
}

#[derive(Deserialize, JsonSchema)]
struct RemediationSearchArgs {
    /// Error message.
    #[schemars(length(min = 1))]
    error_msg: String,
    /// Omit to search shared fixes only.
    project_path: Option<String>,
    /// Maximum number.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
    #[serde(flatten)]
    response: ResponseOptions,
}

fn default_limit() -> usize {
    5
}

#[derive(Serialize, JsonSchema)]
struct RemediationHits {
    remediations: Vec<RemediationHit>,
    embeddings: EmbeddingStatus,
    #[serde(flatten)]
    page: PageInfo,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct RemediationHit {
    remediation: RemediationView,
    score: f64,
}

async fn search(
    state: AppState,
    args: RemediationSearchArgs,
    cx: Context,
) -> Result<RemediationHits, ContextError> {
    let search = MemorySearch {
        kind: ItemKind::Remediation,
        text: args.error_msg,
        limit: args.limit,
        project_path: args.project_path,
        response: &args.response,
    };
    let found = memories::search(&state, &cx, search).await?;
    let remediations = args
        .response
        .fit_to_limit(&found.hits, |hit, mode| RemediationHit {
            remediation: RemediationView::from_item(&hit.item, mode),
            score: round_score(hit.score),
        });
    Ok(RemediationHits {
        page: found.page(remediations.len()),
        embeddings: found.embeddings,
        remediations,
    })
}

// A remediation in a result. The start of the fix is always included.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct RemediationView {
    id: String,
    error_msg: String,
    solution: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    context: String,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    updated_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
}

impl RemediationView {
    fn from_item(item: &MemoryItem, mode: ContentMode) -> Self {
        let is_full = mode == ContentMode::Full;
        let shown = |text: &str| match mode {
            ContentMode::Minimal => one_line(text, 160),
            ContentMode::Preview => truncate(text, 600).into_owned(),
            ContentMode::Full => text.to_owned(),
        };
        Self {
            id: item.id.clone(),
            error_msg: shown(&item.title),
            solution: shown(&item.body),
            context: match mode {
                ContentMode::Minimal => String::new(),
                _ => shown(&item.detail),
            },
            created_at: format_time(item.created),
            updated_at: is_full.then(|| format_time(item.updated)),
            tags: tags_for_mode(&item.tags, mode),
            metadata: item.meta.clone().into_iter().filter(|_| is_full).collect(),
        }
    }
}

impl ToText for SavedRemediation {
    fn to_text(&self) -> String {
        self.save_response.text("remediation", &self.remediation_id)
    }
}

impl ToText for RemediationHits {
    fn to_text(&self) -> String {
        if self.remediations.is_empty() {
            return "No known fix. After solving the error, save the fix with remediation_save."
                .to_owned();
        }
        let mut text = format!(
            "{}, best first:",
            plural(self.remediations.len(), "known fix")
        )
        .replace("fixs", "fixes");
        for RemediationHit { remediation, score } in &self.remediations {
            let RemediationView {
                id,
                error_msg,
                solution,
                context,
                ..
            } = remediation;
            let _ = write!(text, "\n- {id} ({score}) {error_msg}\n  Fix: {solution}");
            if !context.is_empty() {
                let _ = write!(text, "\n  When: {context}");
            }
        }
        text + &self.page.text() + self.embeddings.text()
    }
}
