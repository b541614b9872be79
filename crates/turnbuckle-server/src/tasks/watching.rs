//! Tasks that a subscription follows.

use std::sync::Arc;

use turnbuckle_protocol::RpcError;
use turnbuckle_store::TaskRecord;

use super::{extension_needed, knows_tasks, methods::find};
use crate::context::Call;

/// Of the tasks that a listener names, those it may hear of.
pub(crate) async fn watched(call: &Call, mut ids: Vec<String>) -> Result<Vec<String>, RpcError> {
    if !knows_tasks(&call.caller) {
        return Err(extension_needed(&call.caller, "`taskIds` is about tasks"));
    }
    ids.sort_unstable();
    ids.dedup();
    let mut known = Vec::with_capacity(ids.len());
    for id in ids {
        if find(call, &id).await.is_ok() {
            known.push(id);
        }
    }
    Ok(known)
}

/// The tasks that a listener follows, as they are now.
pub(crate) async fn all(call: &Call, ids: impl Iterator<Item = &String>) -> Vec<Arc<TaskRecord>> {
    let mut records = Vec::new();
    for id in ids {
        records.extend(find(call, id).await.ok());
    }
    records
}
