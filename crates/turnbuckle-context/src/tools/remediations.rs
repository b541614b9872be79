//! Remediations: how an error was overcome.

use std::collections::BTreeMap;
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
        tool(desk, "remediation_save", "Save fix", save)
            .description("Save how an error was solved, once the fix is proven.")
            .destructive(false)
            .idempotent(),
        tool(desk, "remediation_search", "Search fixes", search)
            .description(
                "Find how an error like this one was solved before. Call it before debugging.",
            )
            .read_only()
            .destructive(false)
            .idempotent(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct SaveArgs {
    /// The error as it was shown (at most 1000 characters).
    error_msg: String,
    /// What solved it (at most 5000 characters).
    solution: String,
    /// Without it all projects share the fix.
    project_path: Option<String>,
    /// When it happens.
    context: Option<String>,
    /// tags: comma list.
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, JsonSchema)]
struct SavedRemediation {
    remediation_id: String,
    #[serde(flatten)]
    receipt: Receipt,
}

async fn save(desk: Desk, args: SaveArgs, cx: Context) -> Result<SavedRemediation, ContextError> {
    let mut metadata = args.metadata.unwrap_or_default();
    let tags = metadata.remove("tags").unwrap_or_default();
    let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    let rest = metadata
        .into_iter()
        .map(|(key, value)| (key, Value::from(value)));
    let draft = Draft::remediation(args.error_msg, args.solution)
        .detail(args.context.unwrap_or_default())
        .tags(tags.map(str::to_owned).collect::<Vec<_>>())
        .meta(rest.collect());
    let (remediation_id, receipt) = memories::save(&desk, &cx, args.project_path, draft).await?;
    Ok(SavedRemediation {
        remediation_id,
        receipt,
    })
}

#[derive(Deserialize, JsonSchema)]
struct SearchArgs {
    /// The error as it is shown.
    #[schemars(length(min = 1))]
    error_msg: String,
    /// Without it only shared fixes are searched.
    project_path: Option<String>,
    /// At most so many.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
    #[serde(flatten)]
    wanted: Wanted,
}

fn five() -> usize {
    5
}

#[derive(Serialize, JsonSchema)]
struct Hits {
    remediations: Vec<Hit>,
    embeddings: Embeddings,
    #[serde(flatten)]
    page: Page,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Hit {
    remediation: Remediation,
    score: f64,
}

async fn search(desk: Desk, args: SearchArgs, cx: Context) -> Result<Hits, ContextError> {
    let search = Search {
        kind: Kind::Remediation,
        text: args.error_msg,
        limit: args.limit,
        project_path: args.project_path,
        wanted: &args.wanted,
    };
    let found = memories::search(&desk, &cx, search).await?;
    let remediations = args.wanted.fit(&found.hits, |hit, mode| Hit {
        remediation: Remediation::of(&hit.item, mode),
        score: rounded(hit.score),
    });
    Ok(Hits {
        page: found.page(remediations.len()),
        embeddings: found.embeddings,
        remediations,
    })
}

// A remediation as it is told. A fix is what one came for, so its beginning is always there.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Remediation {
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

impl Remediation {
    fn of(item: &Item, mode: ContentMode) -> Self {
        let is_full = mode == ContentMode::Full;
        let shown = |text: &str| match mode {
            ContentMode::Minimal => one_line(text, 160),
            ContentMode::Preview => cut(text, 600).into_owned(),
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
            created_at: time(item.created),
            updated_at: is_full.then(|| time(item.updated)),
            tags: tags(&item.tags, mode),
            metadata: item.meta.clone().into_iter().filter(|_| is_full).collect(),
        }
    }
}

impl Readable for SavedRemediation {
    fn text(&self) -> String {
        self.receipt.text("remediation", &self.remediation_id)
    }
}

impl Readable for Hits {
    fn text(&self) -> String {
        if self.remediations.is_empty() {
            return "No known fix. Once it is solved, remediation_save keeps it for next time."
                .to_owned();
        }
        let mut text = format!(
            "{}, best first:",
            plural(self.remediations.len(), "known fix")
        )
        .replace("fixs", "fixes");
        for Hit { remediation, score } in &self.remediations {
            let Remediation {
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
