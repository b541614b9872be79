//! How the server is, how fresh an index is, and what came of an operation.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnbuckle_server::{Context, Tool};

use super::tool;
use crate::ContextError;
use crate::answer::{Readable, time};
use crate::desk::Desk;
use crate::operations::{self, Operation};

pub(super) fn tools(desk: &Desk) -> Vec<Tool> {
    vec![
        tool(desk, "status", "Status", status)
            .description(
                "Health; with operation_id what came of a call; with project_path what is kept and how fresh its index is.",
            )
            .read_only()
            .destructive(false)
            .idempotent(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct StatusArgs {
    operation_id: Option<String>,
    /// Absolute path of the project.
    project_path: Option<String>,
}

#[derive(Default, Serialize, JsonSchema)]
struct Status {
    /// `healthy`, or pending, running, completed or failed.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    service: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    version: Option<&'static str>,
    /// The model of the embeddings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    embeddings: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    operation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    updated_at: Option<String>,
}

async fn status(desk: Desk, args: StatusArgs, cx: Context) -> Result<Status, ContextError> {
    let owner = desk.owner(&cx)?;
    if let Some(id) = args.operation_id {
        let operation = desk
            .block(move |desk| desk.find_operation(&owner, &id))
            .await?;
        return Ok(Status::of(operation));
    }
    Ok(Status {
        status: "healthy",
        service: Some("turnbuckle"),
        version: Some(env!("CARGO_PKG_VERSION")),
        embeddings: desk.embedder().map(|embedder| embedder.model().to_owned()),
        ..Status::default()
    })
}

impl Status {
    fn of(operation: Operation) -> Self {
        Self {
            status: match operation.status {
                operations::Status::Pending => "pending",
                operations::Status::Running => "running",
                operations::Status::Completed => "completed",
                operations::Status::Failed => "failed",
            },
            operation_id: Some(operation.id),
            result: operation.result,
            error: operation.error,
            created_at: Some(time(operation.created)),
            updated_at: Some(time(operation.updated)),
            ..Self::default()
        }
    }
}

impl Readable for Status {
    fn text(&self) -> String {
        let mut text = match &self.operation_id {
            Some(id) => format!("{id}: {}", self.status),
            None => self.status.to_owned(),
        };
        if let (Some(service), Some(version)) = (self.service, self.version) {
            let embeddings = self.embeddings.as_deref().unwrap_or("off");
            let _ = write!(text, ": {service} {version}, embeddings {embeddings}");
        }
        if let Some(result) = &self.result {
            let _ = write!(text, "\n{result}");
        }
        if let Some(error) = &self.error {
            let _ = write!(text, "\n{error}");
        }
        text
    }
}
