//! Records of operations as table rows.

use serde_json::Value;
use tokio_postgres::{Row, Transaction};

use super::{
    error::AttemptError,
    params,
    partitions::{self, PartitionId},
    text,
};
use crate::{
    Owner,
    memory_store::{OperationRecord, OperationState, OperationStatus, Partition},
    storage::database::now,
};

/// Maximum number of stored operations of a partition; the oldest are deleted.
const MAX_STORED: i64 = 1_000;

/// An [`OperationState`] with its values.
#[derive(Clone, Debug)]
pub(super) enum StoredState {
    Running,
    Completed(Value),
    Failed(String),
}

impl From<OperationState<'_>> for StoredState {
    fn from(state: OperationState<'_>) -> Self {
        match state {
            OperationState::Running => Self::Running,
            OperationState::Completed(result) => Self::Completed(result.clone()),
            OperationState::Failed(error) => Self::Failed(error.to_owned()),
        }
    }
}

impl StoredState {
    pub(super) fn as_state(&self) -> OperationState<'_> {
        match self {
            Self::Running => OperationState::Running,
            Self::Completed(result) => OperationState::Completed(result),
            Self::Failed(error) => OperationState::Failed(error),
        }
    }
}

/// Stores an operation. It is stored once, also if its first transaction was committed without an answer.
pub(super) async fn record(
    tx: &Transaction<'_>,
    place: PartitionId,
    id: &str,
    kind: &str,
    state: OperationState<'_>,
) -> Result<(), AttemptError> {
    let insert = "INSERT INTO turnbuckle.operation \
                  (partition, id, kind, status, result, error, created, updated) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $7) ON CONFLICT (partition, id) DO NOTHING";
    let (status, result, error) = columns(state);
    let parameters = params![
        place.0 => INT8,
        id => TEXT,
        text::encode(kind) => TEXT,
        status => TEXT,
        result => TEXT,
        error => TEXT,
        now() => INT8,
    ];
    tx.execute_typed(insert, parameters).await?;
    let prune = "DELETE FROM turnbuckle.operation WHERE partition = $1 AND id IN \
                 (SELECT id FROM turnbuckle.operation WHERE partition = $1 \
                 ORDER BY updated DESC, id OFFSET $2)";
    tx.execute_typed(prune, params![place.0 => INT8, MAX_STORED => INT8])
        .await?;
    Ok(())
}

/// Updates an operation unless it has ended.
pub(super) async fn update(
    tx: &Transaction<'_>,
    place: PartitionId,
    id: &str,
    state: OperationState<'_>,
) -> Result<(), AttemptError> {
    let update = "UPDATE turnbuckle.operation SET status = $3, result = $4, error = $5, updated = $6 \
                  WHERE partition = $1 AND id = $2 AND status IN ('pending', 'running')";
    let (status, result, error) = columns(state);
    let parameters = params![
        place.0 => INT8,
        text::encode(id) => TEXT,
        status => TEXT,
        result => TEXT,
        error => TEXT,
        now() => INT8,
    ];
    tx.execute_typed(update, parameters).await?;
    Ok(())
}

/// Returns the operation of an owner with this id.
pub(super) async fn find(
    tx: &Transaction<'_>,
    owner: &Owner,
    id: &str,
) -> Result<Option<OperationRecord>, AttemptError> {
    let select = "SELECT o.id, o.kind, o.status, o.result, o.error, o.created, o.updated \
                  FROM turnbuckle.partition p JOIN turnbuckle.operation o ON o.partition = p.id \
                  WHERE p.owner = $1 AND o.id = $2 LIMIT 1";
    let parameters = params![owner.id() => TEXT, text::encode(id) => TEXT];
    let row = tx.query_typed_opt(select, parameters).await?;
    let operation = row.as_ref().map(operation_from_row).transpose()?;
    Ok(operation.map(|operation| operation.with_stale_as_failed(now())))
}

/// Returns the ids of running operations, newest first.
pub(super) async fn running(
    tx: &Transaction<'_>,
    partition: &Partition,
) -> Result<Vec<String>, AttemptError> {
    let Some(place) = partitions::find(tx, partition).await? else {
        return Ok(Vec::new());
    };
    let select = "SELECT id FROM turnbuckle.operation WHERE partition = $1 \
                  AND status IN ('pending', 'running') AND updated >= $2 \
                  ORDER BY created DESC LIMIT 20";
    let since = now() - OperationRecord::STALE_AFTER_MS;
    let rows = tx
        .query_typed(select, params![place.0 => INT8, since => INT8])
        .await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Returns the status, the result as JSON and the error of a state, as they are stored.
fn columns(state: OperationState<'_>) -> (&'static str, Option<String>, Option<String>) {
    let encoded = |text: &str| Some(text::encode(text).into_owned());
    match state {
        OperationState::Running => ("running", None, None),
        OperationState::Completed(result) => ("completed", encoded(&result.to_string()), None),
        OperationState::Failed(error) => ("failed", None, encoded(error)),
    }
}

fn operation_from_row(row: &Row) -> Result<OperationRecord, AttemptError> {
    let status: &str = row.try_get(2)?;
    let decoded = |column: usize| -> Result<Option<String>, tokio_postgres::Error> {
        let text: Option<String> = row.try_get(column)?;
        Ok(text.map(text::decode))
    };
    Ok(OperationRecord {
        id: row.try_get(0)?,
        kind: text::decode(row.try_get(1)?),
        status: match status {
            "pending" => OperationStatus::Pending,
            "running" => OperationStatus::Running,
            "completed" => OperationStatus::Completed,
            _ => OperationStatus::Failed,
        },
        result: decoded(3)?.and_then(|text| serde_json::from_str(&text).ok()),
        error: decoded(4)?,
        created: row.try_get(5)?,
        updated: row.try_get(6)?,
    })
}
