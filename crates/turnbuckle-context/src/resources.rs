//! What clients read by address: checkpoints, remediations, skills and collections.
//!
//! Templates reach everything; [`published`](crate::published) lists the newest.

use std::fmt::Write as _;

use serde::Deserialize;
use turnbuckle_protocol::types::{ResourceContents, TextResourceContents};
use turnbuckle_server::{Completing, Contents, Context, RequestError, ResourceTemplate};

use crate::answer::{time, visible};
use crate::desk::Desk;
use crate::failure::for_reader;
use crate::known::KnownItem;
use crate::memory::{self, Kind};
use crate::{ContextError, Owner, Owners, collections};

const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";
/// Values that a completion offers; clients are sent no more.
const MOST_COMPLETIONS: usize = 100;
/// Skills among which a completion looks.
const MOST_SKILLS: usize = 1_000;

/// The templates of a server whose owner is known, or of everyone.
pub(crate) fn templates(desk: &Desk) -> Vec<ResourceTemplate> {
    let mut templates = vec![
        items(desk, Kind::Checkpoint).description("A checkpoint, whole"),
        items(desk, Kind::Remediation).description("A remediation, whole"),
    ];
    match desk.owners() {
        Owners::One(owner) => templates.push(collection(desk, owner)),
        // The skills extension, which owns these addresses otherwise, shows the same to everyone.
        Owners::ByPrincipal => {
            let description = "A saved skill, by its name";
            templates.push(skills(desk).description(description));
        }
    }
    templates
}

/// The address of something that was saved.
pub(crate) fn address(kind: Kind, id: &str) -> String {
    format!("{kind}://{id}")
}

/// The address of a collection. A branch may be called almost anything.
pub(crate) fn collection_address(name: &str) -> String {
    let mut uri = "collection://".to_owned();
    for (at, part) in name.splitn(3, '/').enumerate() {
        if at > 0 {
            uri.push('/');
        }
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    uri.push(char::from(byte));
                }
                _ => {
                    let _ = write!(uri, "%{byte:02X}");
                }
            }
        }
    }
    uri
}

#[derive(Deserialize)]
struct ById {
    id: String,
}

fn items(desk: &Desk, kind: Kind) -> ResourceTemplate {
    let (reading, completing) = (desk.clone(), desk.clone());
    let read = move |by: ById, cx: Context| {
        let desk = reading.clone();
        async move { read_item(&desk, kind, by.id, &cx).await }
    };
    let complete = move |typed: Completing, cx: Context| {
        let desk = completing.clone();
        async move { complete_id(&desk, kind, typed, &cx).await }
    };
    ResourceTemplate::new(format!("{kind}://{{id}}"), kind.as_str(), read)
        .mime_type(MARKDOWN)
        .complete("id", complete)
}

#[derive(Deserialize)]
struct ByName {
    name: String,
}

fn skills(desk: &Desk) -> ResourceTemplate {
    let (reading, completing) = (desk.clone(), desk.clone());
    let read = move |by: ByName, cx: Context| {
        let desk = reading.clone();
        async move { read_skill(&desk, by.name, &cx).await }
    };
    let complete = move |typed: Completing, cx: Context| {
        let desk = completing.clone();
        async move { complete_skill(&desk, typed, &cx).await }
    };
    ResourceTemplate::new("skill://{name}", "skill", read)
        .mime_type(MARKDOWN)
        .complete("name", complete)
}

#[derive(Deserialize)]
struct ByBranch {
    project: String,
    branch: String,
}

/// The collections of one owner: the address has the owner in it, so that others find nothing to subscribe to.
pub(crate) fn collection(desk: &Desk, owner: &Owner) -> ResourceTemplate {
    let (reading, its_owner) = (desk.clone(), owner.clone());
    let read = move |by: ByBranch, cx: Context| {
        let (desk, owner) = (reading.clone(), its_owner.clone());
        async move {
            let name = format!("{owner}/project_{}/{}", by.project, by.branch);
            read_collection(&desk, name, &cx).await
        }
    };
    ResourceTemplate::new(collection_template(owner), "collection", read)
        .description("How much is kept of a branch")
        .mime_type(JSON)
}

/// What describes the addresses of an owner's collections.
pub(crate) fn collection_template(owner: &Owner) -> String {
    format!("collection://{owner}/project_{{project}}/{{branch}}")
}

/// Reads an item that is of this kind and of the caller.
pub(crate) async fn read_item(
    desk: &Desk,
    kind: Kind,
    id: String,
    cx: &Context,
) -> Result<Contents, RequestError> {
    let owner = desk.owner(cx).map_err(for_reader)?;
    let known = desk
        .block_read(&owner.clone(), move |desk| desk.find_item(&owner, &id))
        .await
        .map_err(for_reader)?;
    if known.item.kind != kind {
        return Err(RequestError::not_found());
    }
    Ok(Contents::from(contents(&known)))
}

async fn read_skill(desk: &Desk, name: String, cx: &Context) -> Result<Contents, RequestError> {
    let owner = desk.owner(cx).map_err(for_reader)?;
    let item = desk
        .block_read(&owner.clone(), move |desk| {
            let shared = desk.library().known_shared(&owner)?;
            let found = shared.map(|shared| memory::find_skill(&shared, &name));
            let found = found.transpose()?.flatten();
            found
                .map(|item| desk.clean(item))
                .ok_or_else(|| ContextError::missing("such skill"))
        })
        .await
        .map_err(for_reader)?;
    Ok(Contents::from(contents(&KnownItem { item, root: None })))
}

pub(crate) async fn read_collection(
    desk: &Desk,
    name: String,
    cx: &Context,
) -> Result<Contents, RequestError> {
    let owner = desk.owner(cx).map_err(for_reader)?;
    let found = desk
        .block_read(&owner.clone(), move |desk| {
            collections::find(desk.library(), &owner, &name)
        })
        .await
        .map_err(for_reader)?;
    let found = found.ok_or_else(RequestError::not_found)?;
    let text = serde_json::to_string(&found)?;
    let uri = collection_address(&found.name);
    let contents = TextResourceContents::new(uri, text).mime_type(JSON);
    Ok(Contents::from(ResourceContents::from(contents)))
}

/// An item as a page to read, at its own address.
pub(crate) fn contents(known: &KnownItem) -> ResourceContents {
    let uri = address(known.item.kind, &known.item.id);
    TextResourceContents::new(uri, page(known))
        .mime_type(MARKDOWN)
        .into()
}

fn page(known: &KnownItem) -> String {
    let KnownItem { item, root } = known;
    let mut about = vec![
        format!("{} {}", item.kind, item.id),
        format!("branch {}", visible(&item.branch)),
        format!("saved {}", time(item.updated)),
    ];
    about.extend(root.iter().map(|root| format!("project {}", visible(root))));
    if !item.tags.is_empty() {
        about.push(format!("tags {}", item.tags.join(", ")));
    }
    let about = about.join(" · ");
    match item.kind {
        Kind::Checkpoint => format!("# {}\n\n{about}\n\n{}\n", item.headline(), item.body),
        Kind::Skill => format!(
            "# {}\n\n{}\n\n{about}\n\n{}\n",
            item.title, item.detail, item.body
        ),
        Kind::Remediation => {
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

/// Ids that begin with what was typed, newest first: of the project that is named already, or of all.
pub(crate) async fn complete_id(
    desk: &Desk,
    kind: Kind,
    typed: Completing,
    cx: &Context,
) -> Result<Vec<String>, RequestError> {
    let owner = desk.owner(cx).map_err(for_reader)?;
    let whose = owner.clone();
    let ids = desk.block_read(&whose, move |desk| {
        let library = desk.library();
        let databases: Vec<_> = match typed.arguments.get("project_path") {
            Some(path) => desk.look(&owner, path)?.1.into_iter().collect(),
            None => library
                .projects(&owner)?
                .iter()
                .filter_map(|id| library.open_id(&owner, id).ok().flatten())
                .chain(library.known_shared(&owner)?)
                .collect(),
        };
        let mut ids = Vec::new();
        for database in databases {
            ids.extend(memory::ids(
                &database,
                kind,
                &typed.value,
                MOST_COMPLETIONS,
            )?);
        }
        ids.sort_by_key(|(created, _)| std::cmp::Reverse(*created));
        let newest = ids.into_iter().take(MOST_COMPLETIONS);
        Ok(newest.map(|(_, id)| id).collect())
    });
    ids.await.map_err(for_reader)
}

/// Names of skills that have what was typed in them; those that begin with it come first.
pub(crate) async fn complete_skill(
    desk: &Desk,
    typed: Completing,
    cx: &Context,
) -> Result<Vec<String>, RequestError> {
    let owner = desk.owner(cx).map_err(for_reader)?;
    let whose = owner.clone();
    let names = desk.block_read(&whose, move |desk| {
        let Some(shared) = desk.library().known_shared(&owner)? else {
            return Ok(Vec::new());
        };
        let names = memory::titles(&shared, Kind::Skill, MOST_SKILLS)?.into_iter();
        let clean = |name: String| desk.redactor().redact(&name).text.into_owned();
        Ok(fitting(names.map(clean), &typed.value))
    });
    names.await.map_err(for_reader)
}

/// Folders of known projects that have what was typed in them.
pub(crate) async fn complete_project(
    desk: &Desk,
    typed: Completing,
    cx: &Context,
) -> Result<Vec<String>, RequestError> {
    let owner = desk.owner(cx).map_err(for_reader)?;
    let whose = owner.clone();
    let roots = desk.block_read(&whose, move |desk| {
        let projects = desk.known_projects(&owner)?;
        Ok(fitting(
            projects.into_iter().map(|project| project.root),
            &typed.value,
        ))
    });
    roots.await.map_err(for_reader)
}

fn fitting(values: impl Iterator<Item = String>, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let place = |value: &String| value.to_lowercase().find(&typed);
    let mut fitting: Vec<_> = values.filter(|value| place(value).is_some()).collect();
    fitting.sort_by_key(|value| (place(value) != Some(0), value.clone()));
    fitting.truncate(MOST_COMPLETIONS);
    fitting
}
