//! Collections: what is kept of one branch of one project.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle_server::{Context, Tool};

use super::tool;
use crate::answer::{Readable, plural, visible};
use crate::collections::{self, Removed};
use crate::desk::Desk;
use crate::{ContextError, operations};

pub(super) fn tools(desk: &Desk) -> Vec<Tool> {
    vec![
        tool(desk, "collection_create", "Create collection", create)
            .description("Make a collection by name. Rarely needed: saving and indexing make them.")
            .destructive(false)
            .idempotent(),
        tool(desk, "collection_delete", "Delete collection", delete)
            .description("Delete all that is kept of one branch: memory and index.")
            .destructive(true)
            .idempotent(),
        tool(desk, "collection_list", "List collections", list)
            .description("What is kept, by project and branch.")
            .read_only()
            .destructive(false)
            .idempotent(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct CreateArgs {
    /// `owner_<id>/project_<id>/<branch>`, as collection_list names them.
    collection_name: String,
    /// Dimensions of its embeddings.
    vector_size: u32,
}

#[derive(Serialize, JsonSchema)]
struct Created {
    operation_id: String,
    collection_name: String,
    vector_size: u64,
}

async fn create(desk: Desk, args: CreateArgs, cx: Context) -> Result<Created, ContextError> {
    let owner = desk.owner(&cx)?;
    let created = desk
        .block(&owner.clone(), move |desk| {
            desk.check_quota(&owner)?;
            let library = desk.library();
            let name = &args.collection_name;
            let made = collections::create(library, &owner, name, args.vector_size.into())?;
            let result = json!({ "collection_name": made.name, "vector_size": made.vector_size });
            let shared = library.shared(&owner)?;
            Ok(Created {
                operation_id: operations::completed(&shared, "collection_create", &result)?,
                collection_name: made.name,
                vector_size: made.vector_size,
            })
        })
        .await?;
    desk.publish(&cx).await;
    Ok(created)
}

#[derive(Deserialize, JsonSchema)]
struct DeleteArgs {
    /// As collection_list names it.
    collection_name: String,
}

#[derive(Serialize, JsonSchema)]
struct Deleted {
    operation_id: String,
    collection_name: String,
    deleted: bool,
    /// What was in it.
    items: u64,
    files: u64,
    chunks: u64,
}

async fn delete(desk: Desk, args: DeleteArgs, cx: Context) -> Result<Deleted, ContextError> {
    let owner = desk.owner(&cx)?;
    let deleted = desk
        .block(&owner.clone(), move |desk| {
            let library = desk.library();
            let name = args.collection_name;
            let Removed {
                items,
                files,
                chunks,
            } = collections::delete(library, &owner, &name)?;
            let result = json!({ "collection_name": name, "deleted": true });
            let shared = library.shared(&owner)?;
            Ok(Deleted {
                operation_id: operations::completed(&shared, "collection_delete", &result)?,
                collection_name: name,
                deleted: true,
                items,
                files,
                chunks,
            })
        })
        .await?;
    desk.publish(&cx).await;
    Ok(deleted)
}

#[derive(Deserialize, JsonSchema)]
struct ListArgs {}

#[derive(Serialize, JsonSchema)]
struct Listed {
    collections: Vec<Collection>,
    #[serde(skip_serializing_if = "super::memories::is_zero")]
    left_out: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Collection {
    name: String,
    vector_size: u64,
    point_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    project_path: Option<String>,
}

/// Collections that are listed.
const MOST: usize = 100;

async fn list(desk: Desk, _: ListArgs, cx: Context) -> Result<Listed, ContextError> {
    let owner = desk.owner(&cx)?;
    desk.block_read(&owner.clone(), move |desk| {
        let all = collections::list(desk.library(), &owner)?;
        let projects = desk.known_projects(&owner)?;
        let left_out = all.len().saturating_sub(MOST);
        let collections = all.into_iter().take(MOST).map(|one| {
            let project = projects
                .iter()
                .find(|project| one.name.contains(&format!("/project_{}/", project.id)));
            Collection {
                project_path: project.map(|project| project.root.clone()),
                name: one.name,
                vector_size: one.vector_size,
                point_count: one.point_count,
            }
        });
        Ok(Listed {
            collections: collections.collect(),
            left_out,
        })
    })
    .await
}

impl Readable for Created {
    fn text(&self) -> String {
        format!("Collection {} is there.", visible(&self.collection_name))
    }
}

impl Readable for Deleted {
    fn text(&self) -> String {
        let collection_name = visible(&self.collection_name);
        let Self {
            items,
            files,
            chunks,
            ..
        } = self;
        format!(
            "Deleted {collection_name}: {items} remembered, {files} indexed files, {chunks} chunks."
        )
    }
}

impl Readable for Listed {
    fn text(&self) -> String {
        if self.collections.is_empty() {
            return "Nothing is kept yet.".to_owned();
        }
        let mut text = format!("{}:", plural(self.collections.len(), "collection"));
        for one in &self.collections {
            let path = one.project_path.as_deref().unwrap_or("?");
            let _ = write!(
                text,
                "\n- {} ({}): {} points",
                visible(&one.name),
                visible(path),
                one.point_count
            );
        }
        if self.left_out > 0 {
            let _ = write!(text, "\n{} more are not shown.", self.left_out);
        }
        text
    }
}
