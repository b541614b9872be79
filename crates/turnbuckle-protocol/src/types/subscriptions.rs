//! Subscriptions to changes (since 2026-07-28).

use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// Parameters of `subscriptions/listen`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenParams {
    /// The requested notifications.
    pub notifications: SubscriptionFilter,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListenParams {
    /// Requests notifications.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self {
            notifications,
            meta: Meta::default(),
        }
    }
}

setters!(ListenParams { plain { meta: Meta } });

/// The changes that a client subscribes to; empty is allowed and means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// Changes of the list of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Changes of the list of prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Changes of the list of resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// Changes of these resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// Changes of these tasks (tasks extension).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_ids: Option<Vec<String>>,
}

impl SubscriptionFilter {
    /// Creates an empty filter.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(SubscriptionFilter {
    optional {
        tools_list_changed: bool,
        prompts_list_changed: bool,
        resources_list_changed: bool,
        resource_subscriptions: Vec<String>,
        task_ids: Vec<String>,
    }
});

/// Parameters of `notifications/subscriptions/acknowledged`: the part of the filter that the server serves.
pub type SubscriptionsAcknowledgedParams = ListenParams;

/// The result that ends a listen stream; its `_meta` must contain the subscription id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListenResult {
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

setters!(ListenResult { plain { meta: Meta } });
