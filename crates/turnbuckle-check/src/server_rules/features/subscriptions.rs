//! Being told of changes.

mod changed_lists;
mod legacy;
mod modern;

use crate::rule::{Area, Rule, Transports};

/// What tells that something has changed, with what asks for it and what declares it.
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

/// What tells that a resource has new content.
const UPDATED: &str = "notifications/resources/updated";

/// What says that somebody listens from now on.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "subscriptions.subscribe",
        Area::Subscriptions,
        &["resources.subscribe.legacy-methods"],
    )
    .requirement("A server that declares `resources.subscribe` lets a resource be subscribed to, and unsubscribed from.")
    .fix("Answer `resources/subscribe` and `resources/unsubscribe` with an empty result, or do not declare `resources.subscribe`.")
    .active(|ctx| Box::pin(legacy::subscribe(ctx))),
    Rule::server(
        "subscriptions.only-subscribed",
        Area::Subscriptions,
        &["resources.subscribe.updated"],
    )
    .requirement("New content is told of resources that are subscribed to, and of no others.")
    .fix("Send `notifications/resources/updated` only between `resources/subscribe` and `resources/unsubscribe` for the URI.")
    .warn_only()
    .active(|ctx| Box::pin(legacy::only_subscribed(ctx))),
    Rule::server(
        "subscriptions.changes-declared",
        Area::Subscriptions,
        &["lifecycle.operation.capabilities-should", "lifecycle.operation.capabilities-must"],
    )
    .requirement("A server that tells of changed lists declares `listChanged` for them.")
    .fix("Declare `listChanged` with the capability whose list changes, or send no such notification.")
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
    .fix("Send `notifications/tools/list_changed`, or the one for prompts or resources, whenever an entry is added, removed or renamed.")
    .active(|ctx| Box::pin(changed_lists::notified(ctx))),
    Rule::server(
        "subscriptions.acknowledged-first",
        Area::Subscriptions,
        &["subscriptions.ack.first", "subscriptions.ack.nothing-before"],
    )
    .requirement("Whoever listens hears first that it is acknowledged.")
    .fix("Send `notifications/subscriptions/acknowledged` before anything else of the subscription.")
    .active(|ctx| Box::pin(modern::acknowledged_first(ctx))),
    Rule::server(
        "subscriptions.acknowledges-less-or-equal",
        Area::Subscriptions,
        &["subscriptions.ack.subset"],
    )
    .requirement("What is acknowledged was asked for.")
    .fix("Repeat in the acknowledgement only the parts of the filter that will be served.")
    .active(|ctx| Box::pin(modern::acknowledges_subset(ctx))),
    Rule::server(
        "subscriptions.tagged",
        Area::Subscriptions,
        &["subscriptions.id.tag", "subscriptions.id.value"],
    )
    .requirement("All that is told to a listener bears the id of its request, a number as a number and a text as a text.")
    .fix("Put the id of the request `subscriptions/listen` into `_meta` of every notification, with its type.")
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
    .requirement("A listener hears what its filter asks for, and neither other changes nor progress nor log messages.")
    .fix("Compare each change with the filter of each subscription, and keep all else on the stream of its own request.")
    .active(|ctx| Box::pin(modern::only_asked(ctx))),
    Rule::server(
        "subscriptions.stops",
        Area::Subscriptions,
        &["subscriptions.client-cancel.stop"],
    )
    .requirement("A subscription that was cancelled tells no more.")
    .fix("Forget the subscription when `notifications/cancelled` names its request.")
    .transports(Transports::Ndjson)
    .active(|ctx| Box::pin(modern::stops(ctx))),
    Rule::server(
        "subscriptions.end-tagged",
        Area::Subscriptions,
        &["subscriptions.close.response-id"],
    )
    .requirement("The result that ends a subscription bears its id.")
    .fix("Put the id of the request into `_meta` of the result that ends it.")
    .passive(|ctx, _| modern::end_tagged(ctx)),
    Rule::server(
        "subscriptions.subscribe-is-gone",
        Area::Subscriptions,
        &["resources.subscribe.removed"],
    )
    .requirement("There is no `resources/subscribe` and no `resources/unsubscribe` any more.")
    .fix("Treat both as unknown methods in this revision; `subscriptions/listen` is there instead.")
    .warn_only()
    .active(|ctx| Box::pin(modern::subscribe_is_gone(ctx))),
];
