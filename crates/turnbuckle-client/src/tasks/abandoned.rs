//! Calls that became tasks after they had been given up.

use turnbuckle_protocol::json;
use turnbuckle_protocol::types::{
    ResultType,
    tasks::{CreateTaskResult, legacy},
};

use super::cancel::Leash;
use crate::call::Options;
use crate::client::Client;
use crate::lifecycle::TaskDesign;

/// Ends the task that a late result speaks of, if it is one: nobody will ever ask for it.
pub(crate) fn abandon(client: &Client, result: &str) {
    let id = match client.inner.rules().tasks {
        TaskDesign::None => None,
        TaskDesign::Offered => match ResultType::of(result) {
            Ok(ResultType::Task) => json::from_str(result)
                .ok()
                .map(|created: CreateTaskResult| created.task.task_id),
            _ => None,
        },
        TaskDesign::Asked => json::from_str(result)
            .ok()
            .map(|created: legacy::CreateTaskResult| created.task.task_id),
    };
    if let Some(id) = id {
        drop(Leash::new(client, &id, &Options::of(client)));
    }
}
