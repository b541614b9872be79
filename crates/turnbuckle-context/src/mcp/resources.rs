//! Resources: checkpoints, remediations, skills and collections.
//!
//! Templates give access to all of them; [`resource_sync`](crate::mcp::resource_sync) lists the newest.

use std::fmt::Write as _;

use serde::Deserialize;
use turnbuckle_protocol::types::{ResourceContents, TextResourceContents};
use turnbuckle_server::{CompletionRequest, Contents, Context, RequestError, ResourceTemplate};
use turnbuckle_text::percent::encode_component;

use super::{
    display::{format_time, sanitize},
    error_messages::request_error,
};
use crate::{
    ContextError, Owner, OwnershipPolicy,
    app_state::{AppState, ItemRef},
    memory,
    memory::ItemKind,
    memory_store::{Partition, Scope},
};

const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";
/// Maximum number of completion values, as in the specification.
const MAX_COMPLETIONS: usize = 100;
/// Maximum number of skills considered for a completion.
const MAX_SKILLS: usize = 1_000;

/// Returns the resource templates.
pub(crate) fn templates(state: &AppState) -> Vec<ResourceTemplate> {
    let mut templates = vec![
        item_template(state, ItemKind::Checkpoint).description("The full text of a checkpoint"),
        item_template(state, ItemKind::Remediation).description("The full text of a remediation"),
    ];
    match state.ownership() {
        OwnershipPolicy::Single(owner) => templates.push(collection_template(state, owner)),
        // With a single owner the skills extension serves these URIs; it shows the same skills to every caller.
        OwnershipPolicy::PerPrincipal => {
            let description = "A saved skill by name";
            templates.push(skill_template(state).description(description));
        }
    }
    templates
}

/// Returns the URI of an item.
pub(crate) fn item_uri(kind: ItemKind, id: &str) -> String {
    format!("{kind}://{id}")
}

/// Returns the URI of a collection. Branch names can contain almost any character.
pub(crate) fn collection_uri(name: &str) -> String {
    let segments: Vec<_> = name.splitn(3, '/').map(encode_component).collect();
    format!("collection://{}", segments.join("/"))
}

#[derive(Deserialize)]
struct ItemParams {
    id: String,
}

fn item_template(state: &AppState, kind: ItemKind) -> ResourceTemplate {
    let (reading, completing) = (state.clone(), state.clone());
    let read = move |by: ItemParams, cx: Context| {
        let state = reading.clone();
        async move { read_item(&state, kind, by.id, &cx).await }
    };
    let complete = move |typed: CompletionRequest, cx: Context| {
        let state = completing.clone();
        async move { complete_id(&state, kind, typed, &cx).await }
    };
    ResourceTemplate::new(format!("{kind}://{{id}}"), kind.as_str(), read)
        .mime_type(MARKDOWN)
        .complete("id", complete)
}

#[derive(Deserialize)]
struct SkillParams {
    name: String,
}

fn skill_template(state: &AppState) -> ResourceTemplate {
    let (reading, completing) = (state.clone(), state.clone());
    let read = move |by: SkillParams, cx: Context| {
        let state = reading.clone();
        async move { read_skill(&state, by.name, &cx).await }
    };
    let complete = move |typed: CompletionRequest, cx: Context| {
        let state = completing.clone();
        async move { complete_skill(&state, typed, &cx).await }
    };
    ResourceTemplate::new("skill://{name}", "skill", read)
        .mime_type(MARKDOWN)
        .complete("name", complete)
}

#[derive(Deserialize)]
struct CollectionParams {
    project: String,
    branch: String,
}

/// Returns the template for the collections of one owner. The URI contains the owner, so that other callers cannot subscribe to
/// it.
pub(crate) fn collection_template(state: &AppState, owner: &Owner) -> ResourceTemplate {
    let (reading, its_owner) = (state.clone(), owner.clone());
    let read = move |by: CollectionParams, cx: Context| {
        let (state, owner) = (reading.clone(), its_owner.clone());
        async move {
            let name = format!("{owner}/project_{}/{}", by.project, by.branch);
            read_collection(&state, name, &cx).await
        }
    };
    ResourceTemplate::new(collection_uri_template(owner), "collection", read)
        .description("The size of the data of a branch")
        .mime_type(JSON)
}

/// Returns the URI template of an owner's collections.
pub(crate) fn collection_uri_template(owner: &Owner) -> String {
    format!("collection://{owner}/project_{{project}}/{{branch}}")
}

/// Reads an item of this kind that belongs to the caller.
pub(crate) async fn read_item(
    state: &AppState,
    kind: ItemKind,
    id: String,
    cx: &Context,
) -> Result<Contents, RequestError> {
    let owner = state.owner(cx).map_err(request_error)?;
    let known = state
        .read_memory(&owner.clone(), async move |state| {
            state.find_item(&owner, &id).await
        })
        .await
        .map_err(request_error)?;
    if known.item.kind != kind {
        return Err(RequestError::not_found());
    }
    Ok(Contents::from(item_contents(&known)))
}

async fn read_skill(
    state: &AppState,
    name: String,
    cx: &Context,
) -> Result<Contents, RequestError> {
    let owner = state.owner(cx).map_err(request_error)?;
    let item = state
        .read_memory(&owner.clone(), async move |state| {
            let shared = Partition::shared(&owner);
            memory::find_skill(&**state.memory(), &shared, &name)
                .await?
                .map(|item| state.redact_item(item))
                .ok_or_else(|| ContextError::not_found("such skill"))
        })
        .await
        .map_err(request_error)?;
    Ok(Contents::from(item_contents(&ItemRef { item, root: None })))
}

pub(crate) async fn read_collection(
    state: &AppState,
    name: String,
    cx: &Context,
) -> Result<Contents, RequestError> {
    let owner = state.owner(cx).map_err(request_error)?;
    let found = state
        .read_memory(&owner.clone(), async move |state| {
            state.collections().find(&owner, &name).await
        })
        .await
        .map_err(request_error)?;
    let found = found.ok_or_else(RequestError::not_found)?;
    let text = serde_json::to_string(&found)?;
    let uri = collection_uri(&found.name);
    let contents = TextResourceContents::new(uri, text).mime_type(JSON);
    Ok(Contents::from(ResourceContents::from(contents)))
}

/// Returns an item as Markdown, with its URI.
pub(crate) fn item_contents(known: &ItemRef) -> ResourceContents {
    let uri = item_uri(known.item.kind, &known.item.id);
    TextResourceContents::new(uri, render_item(known))
        .mime_type(MARKDOWN)
        .into()
}

fn render_item(known: &ItemRef) -> String {
    let ItemRef { item, root } = known;
    let mut about = vec![
        format!("{} {}", item.kind, item.id),
        format!("branch {}", sanitize(&item.branch)),
        format!("saved {}", format_time(item.updated)),
    ];
    about.extend(
        root.iter()
            .map(|root| format!("project {}", sanitize(root))),
    );
    if !item.tags.is_empty() {
        about.push(format!("tags {}", item.tags.join(", ")));
    }
    let about = about.join(" · ");
    match item.kind {
        ItemKind::Checkpoint => format!("# {}\n\n{about}\n\n{}\n", item.headline(), item.body),
        ItemKind::Skill => format!(
            "# {}\n\n{}\n\n{about}\n\n{}\n",
            item.title, item.detail, item.body
        ),
        ItemKind::Remediation => {
            let mut text = format!(
                "# Fix\n\n{about}\n\n## Error\n\n{}\n\n## Solution\n\n{}\n",
                item.title, item.body
            );
            if !item.detail.is_empty() {
                let _ = write!(text, "\n## Context\n\n{}\n", item.detail);
            }
            text
        }
    }
}

/// Completes ids, newest first: of the project in `project_path`, or of all projects.
pub(crate) async fn complete_id(
    state: &AppState,
    kind: ItemKind,
    typed: CompletionRequest,
    cx: &Context,
) -> Result<Vec<String>, RequestError> {
    let owner = state.owner(cx).map_err(request_error)?;
    let job_owner = owner.clone();
    let ids = state.read_memory(&job_owner, async move |state| {
        let partition = match typed.arguments.get("project_path") {
            Some(path) => Some(state.find_partition(&owner, path)?.1),
            None => None,
        };
        let scope = partition
            .as_ref()
            .map_or(Scope::Owner(&owner), Scope::Partition);
        let ids = state
            .memory()
            .ids(scope, kind, &typed.value, MAX_COMPLETIONS);
        let mut ids = ids.await?;
        ids.sort_by_key(|(created, _)| std::cmp::Reverse(*created));
        let newest = ids.into_iter().take(MAX_COMPLETIONS);
        Ok(newest.map(|(_, id)| id).collect())
    });
    ids.await.map_err(request_error)
}

/// Completes skill names that contain the typed text; names that start with it come first.
pub(crate) async fn complete_skill(
    state: &AppState,
    typed: CompletionRequest,
    cx: &Context,
) -> Result<Vec<String>, RequestError> {
    let owner = state.owner(cx).map_err(request_error)?;
    let job_owner = owner.clone();
    let names = state.read_memory(&job_owner, async move |state| {
        let shared = Partition::shared(&owner);
        let names = state.memory().titles(&shared, ItemKind::Skill, MAX_SKILLS);
        let names = names.await?.into_iter();
        let clean = |name: String| state.redactor().redact(&name).text.into_owned();
        Ok(matching_values(names.map(clean), &typed.value))
    });
    names.await.map_err(request_error)
}

/// Completes folders of projects that contain the typed text.
pub(crate) async fn complete_project(
    state: &AppState,
    typed: CompletionRequest,
    cx: &Context,
) -> Result<Vec<String>, RequestError> {
    let owner = state.owner(cx).map_err(request_error)?;
    let job_owner = owner.clone();
    let roots = state.read_memory(&job_owner, async move |state| {
        let projects = state.memory().projects(&owner).await?;
        Ok(matching_values(
            projects.into_iter().map(|project| project.root),
            &typed.value,
        ))
    });
    roots.await.map_err(request_error)
}

fn matching_values(values: impl Iterator<Item = String>, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let position = |value: &String| value.to_lowercase().find(&typed);
    let mut matching: Vec<_> = values.filter(|value| position(value).is_some()).collect();
    matching.sort_by_key(|value| (position(value) != Some(0), value.clone()));
    matching.truncate(MAX_COMPLETIONS);
    matching
}
