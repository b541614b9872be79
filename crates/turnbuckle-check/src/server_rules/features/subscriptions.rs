//! Subscriptions and change notifications.

mod changed_lists;
mod legacy;
mod modern;

use crate::rule::{Area, Rule, Transports};

/// The list change notifications, with the filter member and the capability of each.
const CHANGES: [(&str, &str, &str); 3] = [
    (
        "notifications/tools/list_changed",
        "toolsListChanged",
        "/tools/listChanged",
    ),
    (
        "notifications/prompts/list_changed",
        "promptsListChanged",
        "/prompts/listChanged",
    ),
    (
        "notifications/resources/list_changed",
        "resourcesListChanged",
        "/resources/listChanged",
    ),
];

/// The notification about new content of a resource.
const UPDATED: &str = "notifications/resources/updated";

/// The notification that starts a subscription.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "subscriptions.subscribe",
        Area::Subscriptions,
        &["resources.subscribe.legacy-methods"],
    )
    .requirement("A server that declares `resources.subscribe` supports `resources/subscribe` and `resources/unsubscribe`.")
    .hint("Return an empty result for `resources/subscribe` and `resources/unsubscribe`, or do not declare `resources.subscribe`.")
    .active(|ctx| Box::pin(legacy::subscribe(ctx))),
    Rule::server(
        "subscriptions.only-subscribed",
        Area::Subscriptions,
        &["resources.subscribe.updated"],
    )
    .requirement("The server sends `notifications/resources/updated` for subscribed resources only.")
    .hint("Send `notifications/resources/updated` only between `resources/subscribe` and `resources/unsubscribe` for the URI.")
    .warn_only()
    .active(|ctx| Box::pin(legacy::only_subscribed(ctx))),
    Rule::server(
        "subscriptions.changes-declared",
        Area::Subscriptions,
        &["lifecycle.operation.capabilities-should", "lifecycle.operation.capabilities-must"],
    )
    .requirement("A server that sends list change notifications declares `listChanged`.")
    .hint("Declare `listChanged` for the capability, or send no such notification.")
    .active(|ctx| Box::pin(legacy::changes_declared(ctx))),
    Rule::server(
        "subscriptions.changes-told",
        Area::Subscriptions,
        &[
            "tools.list-changed.send",
            "prompts.list-changed.send",
            "resources.list-changed.send",
        ],
    )
    .requirement("A server that declares `listChanged` sends a notification when the list changes.")
    .hint("Send `notifications/tools/list_changed`, or the one for prompts or resources, whenever an entry is added, removed or renamed.")
    .active(|ctx| Box::pin(changed_lists::notified(ctx))),
    Rule::server(
        "subscriptions.acknowledged-first",
        Area::Subscriptions,
        &["subscriptions.ack.first", "subscriptions.ack.nothing-before"],
    )
    .requirement("The first message of a subscription is its acknowledgement.")
    .hint("Send `notifications/subscriptions/acknowledged` before any other message of the subscription.")
    .active(|ctx| Box::pin(modern::acknowledged_first(ctx))),
    Rule::server(
        "subscriptions.acknowledges-less-or-equal",
        Area::Subscriptions,
        &["subscriptions.ack.subset"],
    )
    .requirement("The acknowledgement contains only what the client requested.")
    .hint("Include only those parts of the filter in the acknowledgement that the server supports.")
    .active(|ctx| Box::pin(modern::acknowledges_subset(ctx))),
    Rule::server(
        "subscriptions.tagged",
        Area::Subscriptions,
        &["subscriptions.id.tag", "subscriptions.id.value"],
    )
    .requirement("Every notification of a subscription has the id of the `subscriptions/listen` request, with its type.")
    .hint("Put the id of the `subscriptions/listen` request into `_meta` of every notification, with its type.")
    .active(|ctx| Box::pin(modern::tagged(ctx))),
    Rule::server(
        "subscriptions.only-asked",
        Area::Subscriptions,
        &[
            "subscriptions.filter.only-requested",
            "subscriptions.no-request-scoped",
            "resources.subscribe.modern",
            "logging.request.own-stream",
        ],
    )
    .requirement("The server sends only notifications that match the filter of a subscription, without progress or log messages.")
    .hint("Compare each change with the filter of each subscription, and send all other messages on the stream of their request.")
    .active(|ctx| Box::pin(modern::only_requested(ctx))),
    Rule::server(
        "subscriptions.stops",
        Area::Subscriptions,
        &["subscriptions.client-cancel.stop"],
    )
    .requirement("The server sends no notifications for a cancelled subscription.")
    .hint("Remove the subscription when `notifications/cancelled` references its request.")
    .transports(Transports::Ndjson)
    .active(|ctx| Box::pin(modern::stops(ctx))),
    Rule::server(
        "subscriptions.end-tagged",
        Area::Subscriptions,
        &["subscriptions.close.response-id"],
    )
    .requirement("The result that ends a subscription has its id.")
    .hint("Put the id of the request into `_meta` of the result that ends the subscription.")
    .passive(|ctx, _| modern::end_tagged(ctx)),
    Rule::server(
        "subscriptions.subscribe-is-gone",
        Area::Subscriptions,
        &["resources.subscribe.removed"],
    )
    .requirement("The server returns error -32601 for `resources/subscribe` and `resources/unsubscribe`, which this revision removed.")
    .hint("Treat both as unknown methods in this revision, and support `subscriptions/listen`.")
    .warn_only()
    .active(|ctx| Box::pin(modern::subscribe_removed(ctx))),
];
